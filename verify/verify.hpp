// SPDX-License-Identifier: BSL-1.0
//
// Does a Zarr v3 store hold what an HDF5 file holds? By a path that shares nothing with what makes chunks: values come from
// H5Dread on one side, from zarr.json and the chunks on the other, decoded on the portable kernels. Shared with the converter are
// names and patterns (text/), files, S3 and .zip archives (io/), and which other files a source may read (hdf5/).
//
//   const auto r = zarrbits::verify::compare_file("in.h5", zarrbits::verify::open_store("out.zarr"));
//   if (r.failed()) for (const auto& f : r.findings) std::cout << f.path << ": " << f.reason << '\n';
//
// Compared are the hierarchy, the shape, data type and fill value of every dataset, and every element. Attributes, links and
// named types are counted only. What the store says of itself is no reason to leave anything out: a selection is the caller's,
// and what only the store says was not wanted is `unchecked`.
//
#ifndef ZARRBITS_VERIFY_VERIFY_HPP
#define ZARRBITS_VERIFY_VERIFY_HPP

#include "verify/zarr/store_reader.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::verify {

// In the order of severity: of several verdicts on one dataset, the last one counts.
enum class verdict {
  equal,
  unchecked,   // nothing was found to differ, but something could not be compared
  unreadable,  // libhdf5 cannot read it
  missing,     // not in the store
  differs,
};
inline constexpr std::size_t verdict_count = 5;
const char* name_of(verdict v) noexcept;

// One object of the source.
struct finding {
  std::string path;        // in the source
  std::string store_path;  // in the store; empty where it is missing
  std::string kind;        // "group", "dataset", "link"
  verdict outcome = verdict::equal;
  std::string reason;      // a sentence; empty where all is equal
  bool has_index = false;  // outcome `differs` at this element:
  std::vector<std::uint64_t> index;
  std::string field;  // of a compound
  std::string source_value;
  std::string store_value;
};

struct result {
  std::vector<finding> findings;                      // all that is not equal
  std::array<std::uint64_t, verdict_count> groups{};  // by verdict
  std::array<std::uint64_t, verdict_count> datasets{};
  std::uint64_t elements = 0;  // compared
  std::uint64_t elements_unchecked = 0;
  std::vector<std::string> only_in_store;                    // nodes that the source does not have
  std::uint64_t attributes = 0, links = 0, named_types = 0;  // not compared

  bool failed() const noexcept;      // something differs, is missing or cannot be read
  bool incomplete() const noexcept;  // something could not be compared, or the store has more than the source
};

// What of the source the store is to hold.
struct scope {
  std::string object;                         // that is the store's root; "": the whole file
  std::vector<std::string> include, exclude;  // patterns of paths, as convert takes them
  std::vector<std::string> external = {};     // folders in which the source's other files may be read, as convert takes them
};

using told = std::function<void(const std::string& path)>;  // what is at hand; again and again for the same object, as it goes on

// Throws source_error (source_values.hpp) or store_error (zarr/store_reader.hpp) where the file or the store cannot be opened at
// all.
result compare_file(const std::string& source, const store_folder& store, const scope& wanted = {}, const told& at = {});

}  // namespace zarrbits::verify

#endif
