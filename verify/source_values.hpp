// SPDX-License-Identifier: BSL-1.0
//
// The HDF5 side of `zarrbits verify`: the meaning of datatypes, and elements through H5Dread in our own memory types.
//
#ifndef ZARRBITS_VERIFY_SOURCE_VALUES_HPP
#define ZARRBITS_VERIFY_SOURCE_VALUES_HPP

#include "hdf5/h5.hpp"

#include <cstddef>
#include <cstdint>
#include <hdf5.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::hdf5 {
class vlen_allocator;
}

namespace zarrbits::verification {

// libhdf5 cannot read something. what() has its reason.
struct source_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Wraps the result of an HDF5 function; throws source_error if it failed. `message` begins the sentence.
hdf5::handle checked(hid_t id, const char* message);
void check(herr_t status, const char* message);
// After H5Dread: names the external file that cannot be opened.
void check_read(herr_t status, hid_t dataset);
// The innermost reason on libhdf5's error stack; clears the stack.
std::string hdf5_reason();

// Bytes. Damaged files have numbers of 64 KiB, which make libhdf5 crash.
inline constexpr std::size_t max_number_bytes = 16;

enum class source_kind {
  integer,
  bitfield,
  floating,
  text,  // fixed length
  variable_text,
  opaque,
  compound,
  array,
  reference,  // to objects
  region,     // a reference to a part of a dataset
  sequence,   // variable length, not text
  unsupported,
};

struct source_member;

// A datatype of the file, and the memory type for its elements.
struct source_type {
  source_kind kind = source_kind::unsupported;
  std::size_t size = 0;  // bytes of an element in memory
  bool is_signed = false;
  bool exact = true;     // memory has exactly the bits of the file: integers of 8, 16, 32, 64 bits, IEEE floats
  bool is_bool = false;  // h5py's boolean: an enum FALSE = 0, TRUE = 1
  bool is_enum = false;
  bool swapped = false;   // numbers: the file has the other byte order
  bool reversed = false;  // and so has memory, because libhdf5 would change the value if it converted it
  bool is_wide = false;   // opaque: an integer of more than 64 bits
  std::string tag;        // opaque
  H5T_str_t padding = H5T_STR_NULLTERM;
  std::vector<source_member> members;  // compound: all; array and sequence: one, the base
  std::vector<std::uint64_t> dims;     // array
  std::string name;                    // for sentences

  bool has_variable_parts() const;  // True if libhdf5 allocates memory for its values
};

struct source_member {
  std::string name;
  std::size_t offset = 0;
  source_type type;
};

source_type describe(hid_t file_type, unsigned depth = 0);

// The memory type of `t` for H5Dread, with the layout from describe().
hdf5::handle memory_type(const source_type& t, hid_t file_type);

// A buffer of elements with their strings and sequences, whose size is limited: in a small file, any number of them may share the
// same piece. It holds identifiers of libhdf5, also where its last owner is a task of another thread: see hdf5::lock.
class source_values {
 public:
  // `max_bytes`: of strings and sequences that read() takes. Throws source_error.
  source_values(const source_type& type, hid_t memory_type, std::uint64_t max_bytes = 512u << 20);
  ~source_values();
  source_values(const source_values&) = delete;
  source_values& operator=(const source_values&) = delete;

  // Reads elements start[i] ... start[i] + count[i] - 1 of a dataset. Throws source_error, and not_supported if they are too
  // large.
  void read(hid_t dataset, const std::vector<std::uint64_t>& start, const std::vector<std::uint64_t>& count);
  // Reads all `elements` of an attribute, whose datatype in the file is `file_type`. Throws the same.
  void read_attribute(hid_t attribute, hid_t file_type, std::uint64_t elements);
  // Reads the dataset's fill value as one element.
  void read_fill(hid_t creation_properties);

  const std::byte* data() const noexcept { return data_.data(); }

 private:
  void reclaim();

  const source_type type_;  // own ones: values may be kept longer than what describes them
  hdf5::handle memory_;
  std::uint64_t max_bytes_;
  std::vector<std::byte> data_;
  std::unique_ptr<hdf5::vlen_allocator> variable_;  // H5Dread's allocations
  std::size_t live_ = 0;                            // elements with variable parts that libhdf5 must free
};

}  // namespace zarrbits::verification

#endif
