// SPDX-License-Identifier: BSL-1.0
//
// Reads HDF5 files in several threads: libhdf5 has the metadata, and one lock; chunks are read and decoded here, with every
// filter that `zarrbits convert` decodes.
//
//   zarrbits::hdf5_file file("in.h5");   // or "https://host/in.nc", "s3://bucket/in.nc"
//   zarrbits::hdf5_dataset t = file.dataset("/group/temperature");
//   std::vector<float> row = t.read<float>({{0, 0, 0}, {1, 100, 200}});
//   std::vector<double> thinned = t.read<double>({{0, 0, 0}, {10, 50, 100}, {1, 2, 2}});   // converted as H5Dread does
//
// Both classes are thread-safe, and copies share one open file. It is locked as HDF5's own readers lock it, and must not change:
// then reading throws. Values that nothing here decodes (virtual and external datasets, values of variable length) are read by
// libhdf5; statistics() counts them.
//
// Needs libhdf5 at link time, the header does not.
//
#ifndef ZARRBITS_HDF5_FILE_HPP
#define ZARRBITS_HDF5_FILE_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/hdf5_box.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace zarrbits {

// How a file is read.
struct hdf5_file_options {
  remote_access remote = {};               // how a file on a server is reached
  std::vector<std::string> external = {};  // further folders whose files may be read for it (external links), or "all"
  bool lock = true;                        // false: also read a file that another process has open for writing
  unsigned threads = 0;                    // that read and decode, with the calling one; 0: one for each processor
  std::uint64_t chunk_cache = 64U << 20;   // bytes of decoded chunks that are kept for boxes smaller than a chunk
  std::uint64_t remote_cache = 64U << 20;  // bytes of a remote file that are kept
};

// How the values of a file were read.
struct hdf5_statistics {
  std::uint64_t decoded_chunks = 0;  // by the decoders of zarrbits
  std::uint64_t cached_chunks = 0;   // decoded before
  std::uint64_t empty_chunks = 0;    // never written
  std::uint64_t plain_bytes = 0;     // of values without filters
  std::uint64_t libhdf5_values = 0;  // that libhdf5 read
};

class hdf5_file;

// A dataset of an open file.
class hdf5_dataset {
 public:
  const std::vector<std::uint64_t>& shape() const noexcept;
  // The shape of its chunks; empty without chunks.
  std::vector<std::uint64_t> chunk_shape() const;
  // Bytes of a value in memory; values in memory are as stored, of any byte order, unless no language has such numbers.
  std::size_t element_size() const noexcept;
  // The type of a value as JSON: docs/reference/hdf5-types.md.
  std::string type_json() const;
  // True if its values are of variable length, or references: only read_packed() has them.
  bool is_variable() const noexcept;

  // Reads values in C order. `out` has element_size() bytes for each. Throws error: invalid_range, element_count_mismatch,
  // unsupported_data_type, damaged_source, changed, refused, unsupported, io_failed, server_failed.
  void read(const hdf5_box& box, std::span<std::byte> out) const;
  // As numbers of this machine, converted as H5Dread does. Throws as read(), and unsupported_data_type if HDF5 does not convert.
  template <class T>
  requires std::is_arithmetic_v<T> std::vector<T> read(const hdf5_box& box)
  const {
    static_assert(!std::is_same_v<T, bool>, "booleans are enumerations of one byte in HDF5: read std::uint8_t");
    std::vector<T> values(value_count(box));
    read_numbers(box, std::is_floating_point_v<T>, std::is_signed_v<T>, sizeof(T), std::as_writable_bytes(std::span(values)));
    return values;
  }
  // Values of any type, one after the other: docs/reference/hdf5-types.md.
  std::string read_packed(const hdf5_box& box) const;

 private:
  friend class hdf5_file;
  struct content;
  explicit hdf5_dataset(std::shared_ptr<const content> c) : content_(std::move(c)) {}
  static std::size_t value_count(const hdf5_box& box);
  void read_numbers(const hdf5_box& box, bool is_float, bool is_signed, std::size_t size, std::span<std::byte> out) const;
  std::shared_ptr<const content> content_;
};

// An open file.
class hdf5_file {
 public:
  // A file, "s3://bucket/key" or "https://host/path". Throws error: not_found, permission_denied, busy, damaged_source,
  // server_failed.
  explicit hdf5_file(const std::string& path, const hdf5_file_options& options = {});

  // A group, a dataset or a named datatype as JSON, with the names of its members and attributes: docs/reference/hdf5-types.md.
  // Throws error: not_found, refused, damaged_source.
  std::string describe(const std::string& path) const;
  // The values of all attributes of an object, packed, each after a JSON with its name and type: the same page.
  std::string attributes(const std::string& path) const;
  // Throws error as describe(), and unsupported if the object is not a dataset.
  hdf5_dataset dataset(const std::string& path) const;
  // How values of all its datasets were read.
  hdf5_statistics statistics() const;

 private:
  friend class hdf5_dataset;
  struct content;
  std::shared_ptr<content> content_;
};

}  // namespace zarrbits

#endif
