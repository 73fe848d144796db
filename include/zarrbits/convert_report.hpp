// SPDX-License-Identifier: BSL-1.0
//
// What became of every object of a source: the result of convert() of <zarrbits/convert.hpp>.
//
//   for (const zarrbits::converted_object& o : result.objects)
//     if (o.lossy) std::cerr << o.path << ": " << o.reason << '\n';
//
#ifndef ZARRBITS_CONVERT_REPORT_HPP
#define ZARRBITS_CONVERT_REPORT_HPP

#include <zarrbits/convert_options.hpp>
#include <zarrbits/reason_code.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits {

// What the conversion did with an object, cheapest first. Of a dataset: the costliest way that any of its chunks took.
enum class outcome {
  raw,        // the stored bytes were copied
  rewrapped,  // the payload was kept, its framing or checksum changed
  recoded,    // decoded and encoded again
  mapped,     // no exact counterpart in Zarr: stored in another layout, or as an attribute
  skipped,    // not in the store; `reason` says why
};
// Its name, as in the report.
const char* to_string(outcome o) noexcept;

// The links of a source.
struct link_counts {
  std::uint64_t copied = 0;  // the target was copied to the link's place
  std::uint64_t kept = 0;    // only a note
  std::uint64_t lost = 0;    // only a note, because the target was to be copied and cannot be opened
};

// The chunks of a dataset, by what the conversion did with them.
struct chunk_counts {
  std::uint64_t raw = 0;        // as outcome::raw
  std::uint64_t rewrapped = 0;  // as outcome::rewrapped
  std::uint64_t recoded = 0;    // as outcome::recoded
  std::uint64_t absent = 0;     // never written in the source, therefore not in the store
  std::uint64_t lost = 0;       // unreadable in the source
};

// What an entry of the report is about.
enum class object_kind {
  group,
  dataset,
  datatype,    // a named datatype
  attribute,   // of the object at `path`
  link,        // a further link to an object, or one that leads to none
  user_block,  // the bytes before the HDF5 superblock
};
// Its name, as in the report: "user_block".
const char* to_string(object_kind k) noexcept;

// The kinds of HDF5's links.
enum class link_kind {
  hard,      // a further hard link
  soft,      // a path in the same file
  external,  // a path in another file
  user,      // of a class that a program registered
  broken,    // that leads nowhere
};
// Its name, as in the report: "soft".
const char* to_string(link_kind k) noexcept;

// An entry of the report.
struct converted_object {
  std::string path;                                       // in the source; bytes that are not UTF-8 as %XX
  object_kind kind = object_kind::group;                  // what it is about
  std::string attribute;                                  // its name, if `kind` is attribute
  std::optional<link_kind> link;                          // set if `kind` is link
  std::string target;                                     // target of the link
  zarrbits::outcome outcome = zarrbits::outcome::mapped;  // what the conversion did with it
  bool lossy = false;                                     // something cannot be rebuilt from the store
  bool selected = true;                                 // false: skipped because it was not selected, with all below it; no loss
  std::string reason;                                   // why skipped, lossy or unusual
  reason_code code = reason_code::none;                 // of `reason`
  std::string zarr_path;                                // where it is in the store, if not at `path`
  std::string zarr_name;                                // the attribute's name in the store, if it differs
  chunk_counts chunks;                                  // chunks of a dataset
  std::vector<std::vector<std::uint64_t>> lost_chunks;  // grid coordinates of chunks that were lost
  std::uint64_t source_bytes = 0;                       // stored size of a dataset in the source
  std::uint64_t store_bytes = 0;                        // size of its chunks in the store
};

// How far the conversion is.
struct convert_progress {
  std::string_view path;            // the current object
  std::uint64_t objects_done;       // objects done, out of `objects`
  std::uint64_t objects;            // objects in the source
  std::uint64_t bytes_done;         // bytes done, out of `bytes`
  std::uint64_t bytes;              // stored bytes of what this run has to convert; 0 if not measured first
  std::uint64_t bytes_resumed = 0;  // of `bytes_done`: what earlier runs have converted
};

// One file of several.
struct joined_source {
  std::string file;                      // its name
  std::uint64_t bytes = 0;               // its size; 0 if it was not opened
  std::uint64_t first = 0;               // its first index along the dimension
  std::uint64_t count = 0;               // its length along the dimension
  bool left_out = false;                 // it cannot be read; only with convert_execution::keep_going
  reason_code code = reason_code::none;  // why it is left out; the first of `notes` says it in words
  std::vector<std::string> notes;        // sentences: how this file differs from the joined store
  std::size_t minor_notes = 0;           // how many of them, the last ones, are not about values, types or sizes
};

// The result of a conversion.
struct convert_result {
  std::string source;                                            // as in the options
  std::string store;                                             // as in the options
  zarrbits::profile profile = zarrbits::profile::portable;       // convert_options::effective_profile()
  zarrbits::convention convention = zarrbits::convention::none;  // the one that was asked for, or that the file declares
  link_counts links;                                             // links other than the first one to an object
  std::vector<converted_object> objects;                         // everything that the source has
  std::uint64_t source_bytes = 0;        // size of the source, of all files that were read for it with `concat`
  std::uint64_t store_objects = 0;       // number of files of the store; of a share or an append: of those that it wrote
  std::uint64_t store_bytes = 0;         // bytes of these files; of references, until the run ends, of what is not in the source
  std::uint64_t referenced_objects = 0;  // with convert_target::references: number of objects that stay in the source
  std::uint64_t referenced_bytes = 0;    // bytes of these
  std::string started;                   // when, in UTC: "2026-01-31T12:34:56Z"
  double seconds = 0;                    // elapsed time
  std::vector<std::string> other_files;  // files that were read besides the source
  // A file that was not read, and why.
  struct refused_file {
    std::string file;                              // its name
    std::string reason;                            // a sentence
    reason_code code = reason_code::refused_file;  // of `reason`
  };
  std::vector<refused_file> refused_files;  // files that were not read
  std::vector<joined_source> sources;       // with convert_source::concat, in order; otherwise empty

  // True if something was skipped, or cannot be rebuilt from the store.
  bool has_losses() const noexcept;
  // The report as strict JSON; docs/reference/report.md lists its keys.
  std::string report_json() const;
};

}  // namespace zarrbits

#endif
