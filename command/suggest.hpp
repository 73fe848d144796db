// SPDX-License-Identifier: BSL-1.0
//
// Which bits of a dataset's values are ever used, and what packbits would make of it.
//
#ifndef ZARRBITS_COMMAND_SUGGEST_HPP
#define ZARRBITS_COMMAND_SUGGEST_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::suggest {

// The bits that values differ in, collected value by value.
struct used_bits {
  std::uint64_t any = 0;     // bits that are set in some value
  std::uint64_t beyond = 0;  // signed: bits that are not what the sign would repeat there

  // The smallest first_bit and last_bit from which every value comes back, of `width` bits.
  void range(unsigned width, bool is_signed, unsigned& first_bit, unsigned& last_bit) const noexcept;
};

struct suggestion {
  std::string path;
  std::string type;    // "uint16", "bool", "float32"
  unsigned width = 0;  // bits of a value in memory
  unsigned first_bit = 0, last_bit = 0;
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> chunk;  // of the packed dataset
  bool chunk_is_new = false;         // the dataset has none
  std::uint64_t before = 0;          // stored bytes
  std::uint64_t after = 0;           // ... with packbits
  std::string parameters;            // for h5repack: "1,12"; "0" where the datatype says it all
  std::string obstacle;              // why packbits is of no use here, or ""
  std::string h5repack;              // options for a shell, where it is of use, and where it is but of little
};

struct omission {
  std::string path, reason;
};

struct result {
  std::vector<suggestion> datasets;
  std::vector<omission> left_out;
  std::vector<omission> unfound;  // datasets with a filter that HDF5 does not find: h5repack stops at them, or leaves them out
};

struct progress {
  std::string path;
  std::uint64_t bytes = 0, of = 0;  // read since the last call, and to be read in all
};

// Reads every value of the datasets that hold integers, booleans, enumerations and floats; a few MiB at a time. `external`
// and `lock` as convert_options has them.
result examine(const std::string& path, const std::function<void(const progress&)>& at,
               const std::vector<std::string>& external = {}, bool lock = true);

}  // namespace zarrbits::suggest

#endif
