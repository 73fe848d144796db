// SPDX-License-Identifier: BSL-1.0
//
// What is in an HDF5 file or a Zarr v3 store, what our filters did in a file, and which bits of its values they need not store.
//
//   for (const auto& n : zarrbits::inspect({.name = "in.h5"}).nodes) std::cout << n.path << ' ' << n.type << '\n';
//   for (const auto& d : zarrbits::report_filters({.file = "in.h5"}).ours) std::cout << d.path << ' ' << d.parameters << '\n';
//   for (const auto& s : zarrbits::suggest_bits({.file = "in.h5"}).datasets) std::cout << s.path << ' ' << s.last_bit << '\n';
//
// Links as zarrbits/convert.hpp does, and is called from one thread at a time for the same reason.
//
#ifndef ZARRBITS_INSPECT_HPP
#define ZARRBITS_INSPECT_HPP

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits {

// The file or the store cannot be opened, or is neither. what() is a sentence.
struct inspect_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A group, an array, or what else is in a tree.
struct inspected_node {
  std::string path;                                 // "/a/b"; bytes that are not UTF-8 as %XX
  std::string kind;                                 // "group", "array", "datatype", "link", "unreadable"
  std::string type;                                 // of arrays: "float32", "int16 big-endian"; of links: "soft link"
  std::optional<std::vector<std::uint64_t>> shape;  // of arrays; not set: null dataspace
  std::string layout;                               // HDF5: "contiguous", "compact", "virtual", "external"; empty: chunked
  std::vector<std::uint64_t> chunk;                 // its shape
  std::vector<std::uint64_t> shard;                 // its shape, where chunks are inside of shards
  std::string codecs;                               // filters or codecs, in words
  std::uint64_t stored_bytes = 0;                   // of its chunks
  std::uint64_t objects = 0;                        // chunks of the file, files of the store
  std::uint64_t attributes = 0;                     // how many
  std::string note;                                 // target of a link; why it is unreadable
  std::string details;  // a JSON object: data type and filters or codecs as they stand there; empty where there is nothing
};

// A file, a store, or a part of one.
struct inspected_tree {
  std::string name;                   // as it was asked for
  std::string format;                 // "HDF5", "Zarr v3"
  std::string top = "/";              // where in the file the first node is
  std::vector<inspected_node> nodes;  // parents first, in the order of names
  std::uint64_t bytes = 0;            // of the file, of all files of the store
  std::uint64_t files = 0;            // how many
  std::string incomplete;             // why not everything is told
};

// What to inspect.
struct inspect_options {
  std::string name = {};      // an HDF5 file, one of its objects ("in.h5:/a/b"), or a store: a directory, "x.zip", "s3://..."
  std::string endpoint = {};  // URL of an S3 server; "" asks the environment (AWS_ENDPOINT_URL), and is Amazon's otherwise
  bool lock = true;           // of an HDF5 file, as convert_options has it
  std::function<void(const std::string& path)> progress = {};     // the object at hand
  std::function<void(const std::string& sentence)> warning = {};  // a promise that this run cannot keep
};

// Values are not read. Throws inspect_error; what cannot be read in it is in the tree.
[[nodiscard]] inspected_tree inspect(const inspect_options& options);

// An HDF5 file whose chunks are looked into.
struct file_options {
  std::string file = {};                   // its name
  std::vector<std::string> external = {};  // folders in which its other files may be read, as convert_options has them
  bool lock = true;                        // as convert_options has it
};

// A chunk that is stored without our filter.
struct raw_chunk {
  std::vector<std::uint64_t> origin;  // its first element
  std::string why;                    // in words
};

// A dataset that has one of our filters.
struct filtered_dataset {
  std::string path;                  // in the file
  std::string filter;                // "packbits" or "bytes"
  std::string parameters;            // in words
  std::vector<std::string> after;    // names of the filters after ours
  bool mandatory = false;            // a write fails where the filter does; else the chunk is stored raw
  std::vector<std::uint64_t> chunk;  // its shape
  std::uint64_t chunks = 0;          // stored
  std::uint64_t raw = 0;             // of them, without the filter
  std::vector<raw_chunk> shown;      // the first of the raw ones
  std::uint64_t decoded = 0;         // bytes of the stored chunks without filters
  std::uint64_t stored = 0;          // bytes of the stored chunks
  std::string problem;               // what is wrong with it, or ""
};

// What our filters did in a file.
struct filter_report {
  std::uint64_t datasets = 0;           // in the file, of all kinds
  std::vector<filtered_dataset> ours;   // those with our filters
  std::vector<std::string> unreadable;  // objects, with the reason
};

// `progress` hears of each object: the one at hand, and how many there are. Throws inspect_error.
[[nodiscard]] filter_report report_filters(
    const file_options& options, const std::function<void(const std::string& path, std::uint64_t objects)>& progress = {});

// The bits that a dataset's values need, and what packbits would make of it.
struct suggestion {
  std::string path;                   // in the file
  std::string type;                   // "uint16", "bool", "float32"
  unsigned width = 0;                 // bits of a value in memory
  unsigned first_bit = 0;             // the smallest range from which every value comes back,
  unsigned last_bit = 0;              // inclusive
  std::uint64_t elements = 0;         // how many
  std::vector<std::uint64_t> chunk;   // of the packed dataset
  bool chunk_is_new = false;          // the dataset has none
  std::uint64_t before = 0;           // stored bytes
  std::uint64_t after = 0;            // ... with packbits
  std::string parameters;             // of the HDF5 filter: "1,12"; "0" where the datatype says it all
  std::string obstacle;               // why packbits is of no use here, or of little, or ""
  std::vector<std::string> h5repack;  // its arguments that pack this dataset, where that is of use or of little
};

// What packbits would make of a file.
struct suggested_bits {
  // A dataset, and why it is here.
  struct omission {
    std::string path;    // in the file
    std::string reason;  // in words
  };
  std::vector<suggestion> datasets;  // of integers, booleans, enumerations and floats
  std::vector<omission> left_out;    // all others
  std::vector<omission> unfound;  // with a filter that HDF5 does not find, the reason: h5repack stops there, or leaves them out
};

// How far suggest_bits() is.
struct suggest_progress {
  std::string path;         // the dataset at hand
  std::uint64_t bytes = 0;  // read since the last call
  std::uint64_t of = 0;     // to be read in all
};

// Reads every value, a few MiB at a time. Throws inspect_error.
[[nodiscard]] suggested_bits suggest_bits(const file_options& options,
                                          const std::function<void(const suggest_progress&)>& progress = {});

}  // namespace zarrbits

#endif
