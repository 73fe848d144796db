// SPDX-License-Identifier: BSL-1.0
//
// HDF5 files to Zarr v3 stores, with an account of every object.
//
//   zarrbits::convert_result r = zarrbits::convert({.source = {.name = "in.h5"}, .target = {.name = "out.zarr"}});
//   if (r.has_losses()) std::cerr << r.report_json();   // what was skipped, and why
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call convert() from one thread at a time.
//
#ifndef ZARRBITS_CONVERT_HPP
#define ZARRBITS_CONVERT_HPP

#include <zarrbits/convert_options.hpp>
#include <zarrbits/convert_report.hpp>
#include <zarrbits/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits {

// Throws error if an option, or a combination, makes no sense. convert() calls it first.
void check_options(const convert_options& options);

// Converts. Throws error. An object that cannot be converted does not stop the others; the result has it.
[[nodiscard]] convert_result convert(const convert_options& options);

// What convert() would do with one dataset, as far as this is known from metadata and, of `compressed`, a sample.
struct planned_dataset {
  std::string path;  // in the source
  // The costliest way that its chunks are expected to take; single chunks, damaged or with a filter left out, may take another.
  zarrbits::outcome outcome = zarrbits::outcome::mapped;
  std::string how;                              // this way in words, or the reason why it is skipped
  reason_code code = reason_code::none;         // of that reason
  std::string codecs;                           // codecs of its array as JSON; "" if it becomes a group
  std::vector<std::uint64_t> chunk_shape = {};  // of its array; the longest ones of a rectilinear grid; empty as `codecs`
  std::uint64_t objects = 0;                    // upper limit of the files or objects to write: stored chunks, and metadata
  std::uint64_t source_bytes = 0;               // stored bytes in the source
  // Bytes to write for its chunks, never fewer: as in the source for copied chunks, counted for strings, references and sequences
  // (of a million elements at most), else the size without compression and what a compressor may add.
  std::uint64_t store_bytes = 0;
  // About the bytes to write for its chunks, by a sample of them; not set: unknown, as of values on a server.
  std::optional<std::uint64_t> estimated_bytes = {};
  // A range of shards, or of chunks if there are no shards, in C order of their grid.
  struct unit {
    std::uint64_t first = 0;  // index of the first one
    std::uint64_t count = 0;  // number of them
    std::uint64_t bytes = 0;  // approximate size in the source
  };
  std::vector<unit> units;  // the units that processes divide among themselves
  // A joined array, where the grid makes a difference: its chunks on either one, and how many are copied as the files have them.
  struct grid_choice {
    // What a grid means for the array.
    struct count {
      std::uint64_t chunks = 0;  // chunks that the array gets
      std::uint64_t copied = 0;  // of these, chunks of the files
    };
    count regular;                             // on the regular grid
    count rectilinear;                         // on the rectilinear one
    grid_type used = grid_type::regular;       // as convert_encoding::grid, or the store, says
    grid_type suggested = grid_type::regular;  // the other one, if it more than halves what is encoded again
  };
  std::optional<grid_choice> grids = {};  // not set: the grid makes no difference
  // An array that gets no compression, and would become a quarter smaller or more with one, judged by a sample of its values.
  struct compression_choice {
    std::string compress;           // the compression, as the command's `compress` takes it
    std::uint64_t store_bytes = 0;  // estimate of planned_dataset::store_bytes with it
    std::uint64_t sampled = 0;      // bytes of values in the sample
  };
  std::optional<compression_choice> compressed = {};  // not set: a compression gains less, or it has one
};
// What convert() would do.
struct convert_plan {
  std::vector<planned_dataset> datasets;                         // all selected datasets
  std::uint64_t groups = 0;                                      // number of groups to write
  zarrbits::convention convention = zarrbits::convention::none;  // as convert_result has it
  link_counts links;                                             // as convert_result has them
  std::vector<std::string> other_files;                          // as convert_result has them
  std::vector<convert_result::refused_file> refused_files;       // as convert_result has them
  std::vector<joined_source> sources;                            // as convert_result has them
  // About the size of the store, with its metadata; not set: unknown, as of references, of an append, and if the estimate of a
  // dataset is not set.
  std::optional<std::uint64_t> estimated_bytes = {};
  // Free in the file system of the store; not set: `store` is empty, or on a server.
  std::optional<std::uint64_t> free_bytes = {};
  // With plan_options::time: about the time to read and encode everything, without the time to write; not set: unknown.
  std::optional<double> seconds = {};
  std::string json() const;  // strict JSON
};
// What else plan() is to find out.
struct plan_options {
  bool time = false;  // convert_plan::seconds, from about a second of work
};
// Reads metadata and, of local files, a sample of the values: a few MiB of each dataset, 256 MiB or so of all; writes nothing.
// `store` may be empty. Throws error.
[[nodiscard]] convert_plan plan(const convert_options& options, const plan_options& further = {});

// One of several processes that make the chunks of a store together. The units may be handed out in any order. When all are made,
// and no worker is left, finalize() writes the metadata.
//
//   begin_store(options);                     // once, before the others join
//   convert_worker worker(options);           // in each process
//   for (const auto& u : worker.missing()) worker.make(u);
//
class convert_worker {
 public:
  // Some chunks of a dataset.
  struct unit {
    std::size_t dataset = 0;   // index of the dataset's object in the source
    std::uint64_t number = 0;  // number of the unit within its dataset, from 0
    std::string path;          // path of the dataset
  };
  // Opens the source and joins the store. execution.partition identifies the process. Throws error.
  explicit convert_worker(const convert_options& options);
  ~convert_worker();
  convert_worker(convert_worker&& other) noexcept;             // `other` can only be destroyed afterwards
  convert_worker& operator=(convert_worker&& other) noexcept;  // the same

  // The units that no process has made yet. Opens every dataset.
  std::vector<unit> missing();
  // Makes one unit. Throws error; other units can still be made afterwards.
  void make(const unit& u);

 private:
  struct state;
  std::unique_ptr<state> state_;
};
// Refuses an existing store or, with existing_store::overwrite, removes it; does nothing with `resume`. Throws error.
void begin_store(const convert_options& options);

// Writes the metadata of a store whose chunks were made in shares. Throws error if chunks are missing, and says which
// shares; and errc::busy while a process, this one too, makes a share of it or finalizes it.
[[nodiscard]] convert_result finalize(const convert_options& options);

}  // namespace zarrbits

#endif
