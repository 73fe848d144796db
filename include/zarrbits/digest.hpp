// SPDX-License-Identifier: BSL-1.0
//
// Digests of the values of arrays: equal for equal values, whatever the format, chunks, codecs and byte order.
//
//   zarrbits::digest_report a = zarrbits::digest({.source = "in.nc"});
//   zarrbits::digest_report b = zarrbits::digest({.source = "out.zarr"});
//   if (a.digest == b.digest) std::cout << "the same data\n";
//
// A digest shows accidents. It does not protect from attackers, who can make other values with the same digest:
// docs/reference/digest.md has its form, and what to do.
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call these functions from one thread at a time.
//
#ifndef ZARRBITS_DIGEST_HPP
#define ZARRBITS_DIGEST_HPP

#include <zarrbits/convert_options.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/reason_code.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits {

// What is read, and what of it counts.
struct digest_options {
  // An HDF5 or netCDF-4 file, or a Zarr store (a directory, "x.zip", references, "s3://bucket/prefix"); with ":/a/b" at the end,
  // an object of it, which then is the root.
  std::string source = {};
  remote_access remote = {};                        // how a source on a server is reached
  bool attributes = false;                          // also digests of attributes
  bool any_nan = false;                             // all NaNs are one value; not set: their bits count
  std::vector<std::string> include = {};            // patterns of paths: only these arrays, as in convert_options
  std::vector<std::string> exclude = {};            // and without these
  std::vector<std::string> external = {};           // files, or folders of files, that the source may lead to; "all": any
  bool lock = true;                                 // false: also read an HDF5 file that another process has open for writing
  bool allow_expansion = false;                     // allow chunks of HDF5 files to expand more than 1,000 times, beyond `memory`
  unsigned threads = 0;                             // threads that decode; 0: as many as there are processors
  std::uint64_t memory = std::uint64_t{512} << 20;  // bytes for the chunks in work
  // Read only this share of the values: the report has sums in place of digests, and add_digests() makes one of the reports of
  // all shares. The source must not change in between.
  std::optional<zarrbits::partition> partition = {};
  std::function<void(const std::string& path, std::uint64_t done, std::uint64_t bytes)> progress = {};  // called repeatedly
  std::function<void(const std::string& sentence)> warning = {};  // called with a promise that this run cannot keep
};

// The digest of one array.
struct array_digest {
  std::string path;                      // "/a/b", as a Zarr store has it
  std::string data_type;                 // a name as in docs/reference/digest.md: "float32"
  std::vector<std::uint64_t> shape;      // elements along each dimension
  std::string digest;                    // 64 hexadecimal digits; empty if it cannot be made
  std::string reason;                    // why not; or what Zarr's data type changes of the values
  reason_code code = reason_code::none;  // of `reason`
  // With `partition`: what its values add to the sums of both lanes, and the sums of an array of fill values; 32 hexadecimal
  // digits.
  std::vector<std::string> sums = {}, fill_sums = {};
};

// The digest of the attributes of one array or group.
struct attribute_digest {
  std::string path;    // as that of an array
  std::string digest;  // 64 hexadecimal digits
};

// The digests of all arrays, in the order of their paths.
struct digest_report {
  std::string source;                                            // as in the options
  std::vector<array_digest> arrays;                              // each that is selected
  std::optional<std::vector<attribute_digest>> attributes = {};  // if requested: of each object that has some
  std::string digest;  // of all paths and digests, 64 hexadecimal digits; empty if an array has none
  double seconds = 0;  // elapsed time
  // What the values are a share of, and the patterns that selected arrays.
  struct partition_type {
    zarrbits::partition share;
    std::vector<std::string> include, exclude;
  };
  std::optional<partition_type> partition = {};

  // The report as strict JSON; docs/schema has its keys.
  std::string report_json() const;
};

// Throws error if an option makes no sense. digest() calls it first.
void check_options(const digest_options& options);

// Reads all values. Throws error, for a damaged chunk, too. An array that cannot be read as a whole does not stop the others.
[[nodiscard]] digest_report digest(const digest_options& options);

// The digests of a source whose shares were read by several runs: of the reports that report_json() made of these, in files, in
// any order. Throws error if one is missing or repeated, or if they are not of the same source, options and shapes.
[[nodiscard]] digest_report add_digests(const std::vector<std::string>& files);

// Notes the digest of all values at the root of a store of Zarr v3 in a directory or in S3, or of an HDF5 file, for check().
// Returns the reason if such a store has no place for it, "" otherwise. Throws error if it cannot be written.
std::string note_digest(const std::string& name, const std::string& digest, const remote_access& remote = {});

// The hash of an object of a store, as it is stored, or of a file.
struct object_hash {
  std::string name;        // its key in the store: "a/c/0/0"; of a file, its name without folders
  std::uint64_t size = 0;  // bytes
  std::string hash;        // in hexadecimal digits
};

// SHA-256 of all objects of a store in a directory or in S3, or of a local file, sorted by their names. Reads no values: of the
// options, only those for servers, threads and memory matter. Throws error.
[[nodiscard]] std::vector<object_hash> hash_objects(const digest_options& options);

// The checksum that the DANDI archive has for such a store: "481a2f77ab786a0f45aafd5db0971caa-707--73617". Needs a build with S3,
// whose OpenSSL computes MD5. Throws error.
[[nodiscard]] std::string dandi_checksum(const digest_options& options);

}  // namespace zarrbits

#endif
