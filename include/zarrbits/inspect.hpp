// SPDX-License-Identifier: BSL-1.0
//
// The content of an HDF5 file or a Zarr v3 store, the effect of our filters in a file, and the bits of its values that need not
// be stored.
//
//   for (const auto& n : zarrbits::inspect({.name = "in.h5"}).nodes) std::cout << n.path << ' ' << n.type << '\n';
//   for (const auto& d : zarrbits::report_filters({.file = "in.h5"}).filtered)
//     std::cout << d.path << ' ' << d.parameters << '\n';
//   for (const auto& s : zarrbits::suggest_bits({.file = "in.h5"}).datasets)
//     std::cout << s.path << ' ' << s.last_bit << '\n';
//
// Needs libhdf5 at link time as zarrbits/convert.hpp does; call it from one thread at a time for the same reason.
//
#ifndef ZARRBITS_INSPECT_HPP
#define ZARRBITS_INSPECT_HPP

#include <zarrbits/detail/linkage.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/reason_code.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits {

// A group, an array, or another object of a tree.
struct inspected_node {
  std::string path;                                 // "/a/b"; bytes that are not UTF-8 as %XX
  std::string kind;                                 // "group", "array", "datatype", "link", "unreadable"
  std::string type;                                 // of arrays: "float32", "int16 big-endian"; of links: "soft link"
  std::optional<std::vector<std::uint64_t>> shape;  // of arrays; not set: null dataspace
  std::vector<std::size_t> unlimited;               // HDF5: the dimensions that may grow without a limit
  std::string layout;                               // HDF5: "contiguous", "compact", "virtual", "external"; empty: chunked
  std::vector<std::uint64_t> chunk;                 // shape of a chunk, or of the largest one, if they differ
  std::vector<std::uint64_t> shard;                 // shape of a shard, if chunks are inside of shards
  std::vector<std::string> dimension_names;         // of arrays; "" for a dimension without a name; empty: none has one
  std::string fill_value;                           // of arrays, as JSON; empty: none, or of a type that JSON does not show
  std::string codecs;                               // filters or codecs, in words
  std::uint64_t stored_bytes = 0;                   // stored bytes of its chunks
  std::uint64_t objects = 0;                        // number of chunks (file) or files (store)
  std::uint64_t attributes = 0;                     // number of attributes
  std::string attribute_values;                     // a JSON object, with inspect_options::attributes; empty if there are none
  bool rectilinear = false;                         // chunks differ in their lengths, which `details` has
  std::string note;                                 // target of a link; reason why it is unreadable
  reason_code code = reason_code::none;             // of `note`, if that is a reason
  std::string details;  // a JSON object: data type and filters or codecs as stored; empty if there are none
  std::optional<std::uint64_t>
      unpacked;  // of these chunks, those that packbits left unpacked; not set: their sizes do not show it
};

// A file, a store, or a part of one.
struct inspected_tree {
  std::string name;                   // as given
  std::string format;                 // "HDF5", "Zarr v2", "Zarr v3"
  std::string top = "/";              // path of the first node in the file
  std::vector<inspected_node> nodes;  // parents first, in order of their names
  std::uint64_t bytes = 0;            // size of the file, or of all files of the store
  std::uint64_t files = 0;            // number of files
  std::string incomplete;             // why the tree is incomplete, or ""
};

// What to inspect.
struct inspect_options {
  std::string name = {};      // an HDF5 file, one of its objects ("in.h5:/a/b"), or a store: a directory, "x.zip", "s3://..."
  remote_access remote = {};  // how sources and stores on servers are reached
  bool lock = true;           // of an HDF5 file, as convert_options has it
  bool attributes = false;    // read the values of attributes, too
  std::uint64_t memory = std::uint64_t{512} << 20;                // bytes for a store's references
  std::function<void(const std::string& path)> progress = {};     // called with the current object
  std::function<void(const std::string& sentence)> warning = {};  // called with a promise that this run cannot keep
};

// Does not read values. Throws error; the tree names the objects that cannot be read.
[[nodiscard]] inspected_tree inspect(const inspect_options& options);

// A store that a conversion began and has not completed. This is what the store says about itself, and any program may have
// written it.
struct unfinished_store {
  std::string version;               // of the zarrbits that began it
  std::string source;                // the name of its source, without its folder
  std::vector<std::string> command;  // the command that began it; empty if it was not a command
  std::uint64_t units_done = 0;      // pieces of work that are done
  std::uint64_t units = 0;           // all of them; 0: not known
  std::uint64_t bytes_done = 0;      // bytes of their chunks
  // One of the shares that processes make (convert_execution::partition).
  struct share {
    unsigned index = 0;            // from 0
    std::uint64_t units_done = 0;  // pieces of work that are done
    std::uint64_t units = 0;       // all of them; 0: not known
    bool done = false;             // it has said that it is done
  };
  unsigned share_count = 0;            // 0: it is not made in shares
  std::vector<share> shares;           // those that have begun
  std::vector<unsigned> missing;       // those that have not
  std::optional<double> seconds_left;  // at the rate of the last run
  std::optional<double> seconds_ago;   // since the last unit was done
};

// Empty if there is no unfinished store. Reads its plan and journals only. Throws error.
[[nodiscard]] std::optional<unfinished_store> find_unfinished(const std::string& store, const remote_access& remote = {});

// An HDF5 file whose chunks are examined.
struct file_options {
  std::string file = {};                   // its name, as inspect_options has it
  remote_access remote = {};               // how a file on a server is reached
  std::vector<std::string> external = {};  // folders in which its other files may be read, as convert_options has them
  bool lock = true;                        // as convert_options has it
};

// A chunk that our filter left as it was.
struct raw_chunk {
  std::vector<std::uint64_t> origin;  // index of its first element
  std::string why;                    // in words
};

// A dataset that has one of our filters.
struct filtered_dataset {
  std::string path;                  // in the file
  std::string filter;                // "packbits" or "bytes"
  std::string parameters;            // in words
  std::vector<std::string> before;   // names of the filters before ours: none, or fletcher32
  std::vector<std::string> after;    // ... after ours
  bool mandatory = false;            // HDF5 does not write where it does not find the plugin; otherwise it stores chunks unpacked
  std::vector<std::uint64_t> chunk;  // shape of a chunk
  std::uint64_t chunks = 0;          // number of stored chunks
  std::uint64_t raw = 0;             // number of them that the filter left unpacked
  std::vector<raw_chunk> shown;      // the first of these
  std::string would_hold_all;        // if values do not fit, the bits that would hold all: "13 bits (0 to 12)"
  std::uint64_t decoded = 0;         // bytes of the stored chunks without filters
  std::uint64_t stored = 0;          // bytes of the stored chunks
  std::string problem;               // what is wrong with it, or ""
  std::vector<std::string> h5repack;  // arguments that store it again, if it was created where the plugin was not found
};

// What our filters did in a file.
struct filter_report {
  std::uint64_t datasets = 0;              // number of datasets of all kinds in the file
  std::vector<filtered_dataset> filtered;  // those with our filters
  std::vector<std::string> unreadable;     // objects that cannot be read, with the reason
};

// `progress` is called with each object and the number of objects. Throws error.
[[nodiscard]] filter_report report_filters(
    const file_options& options, const std::function<void(const std::string& path, std::uint64_t objects)>& progress = {});

// The bits that a dataset's values need, and the effect of packbits on it.
struct suggestion {
  std::string path;                   // in the file
  std::string type;                   // "uint16", "bool", "float32"
  unsigned width = 0;                 // bits of a value in memory
  unsigned first_bit = 0;             // the smallest range that keeps every value,
  unsigned last_bit = 0;              // inclusive
  std::uint64_t elements = 0;         // number of elements
  std::vector<std::uint64_t> chunk;   // chunk shape of the packed dataset
  bool chunk_is_new = false;          // the dataset has none
  std::uint64_t before = 0;           // stored bytes now
  std::uint64_t after = 0;            // ... with packbits
  std::string parameters;             // parameters of the HDF5 filter: "1,12"; "0" if the datatype says it all
  std::string obstacle;               // why packbits is of no or little use here, or ""
  std::vector<std::string> h5repack;  // arguments that pack this dataset, if packbits is of any use
};

// The effect of packbits on a file.
struct suggested_bits {
  // A dataset, and the reason why it is listed.
  struct omission {
    std::string path;    // in the file
    std::string reason;  // in words
  };
  std::vector<suggestion> datasets;       // datasets of integers, booleans, enumerations and floats
  std::vector<omission> left_out;         // all other datasets
  std::vector<omission> missing_filters;  // datasets with a filter that HDF5 does not find, and the reason: h5repack stops there,
                                          // or leaves them out
};

// How far suggest_bits() is.
struct suggest_progress {
  std::string path;         // the current dataset
  std::uint64_t bytes = 0;  // read since the last call
  std::uint64_t total = 0;  // bytes to read
};

// Reads every value, a few MiB at a time. Throws error.
[[nodiscard]] suggested_bits suggest_bits(const file_options& options,
                                          const std::function<void(const suggest_progress&)>& progress = {});

// What is read of an array with a time axis: all times of a point, all points of a time, or either.
enum class chunk_access { both, time_series, maps };

// Chunks and shards for an access.
struct suggested_chunks {
  struct dataset {
    std::string path;                          // in the file or the store
    std::string type;                          // as in inspected_node
    std::vector<std::uint64_t> shape;          // as in inspected_node
    std::vector<std::string> dimension_names;  // as in inspected_node
    std::optional<std::size_t> time_axis;      // the dimension that is time; not set: none is
    std::vector<std::uint64_t> current_chunk;  // empty: it has none
    std::vector<std::uint64_t> chunk;          // that `convert` makes with the suggested arguments
    std::vector<std::uint64_t> shard;          // likewise; empty: its chunks are not in shards
    std::uint64_t chunk_bytes = 0;             // bytes of a decoded chunk
    std::uint64_t chunks = 0;                  // number of chunks
    std::uint64_t objects = 0;                 // number of files or objects for them, at most
    std::string option;                        // value of `chunk`; empty: the array keeps its chunks
    std::string reason;                        // in words
  };
  std::vector<dataset> datasets;                   // arrays of numbers
  std::vector<suggested_bits::omission> left_out;  // all other arrays
  // Options of `convert`, by their names, and their values; empty: nothing to change.
  std::vector<std::pair<std::string, std::string>> options;
  std::string incomplete;  // why not all arrays are listed, or ""
};

// Reads metadata and attributes only. Throws error.
[[nodiscard]] suggested_chunks suggest_chunks(const inspect_options& options, chunk_access access = chunk_access::both);

}  // namespace zarrbits

#endif
