// SPDX-License-Identifier: BSL-1.0
//
// What a conversion reads, whatever it is: HDF5 files, or Zarr stores. A converter drives it.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_CONVERSION_SOURCE_HPP
#define ZARRBITS_CONVERT_PIPELINE_CONVERSION_SOURCE_HPP

#include "convert/pipeline/work_unit_result.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

// What distinguishes a source from another one of the same name.
struct source_identity {
  std::uint64_t size = 0;
  std::string etag = {};                      // in S3
  std::int64_t seconds = 0, nanoseconds = 0;  // of the last change; 0 if that is not known
  std::string checksum = {};                  // of what costs little to read
  std::string joined = {};                    // of several files: what identifies the others
  std::uint64_t region_memory = 0;            // the `memory` by which the regions of an array were chosen; 0: it has no regions
};

// The work on one object of the source that has chunks. Only one thread calls it, save for the queue's own.
class object_work {
 public:
  virtual ~object_work() = default;

  // Why the object is not converted; empty if it is. It then has one unit, without chunks.
  virtual const text::coded_reason& skip_reason() const = 0;
  virtual std::uint64_t units() const = 0;
  virtual chunk_range unit(std::uint64_t number) const = 0;
  // The unit of the chunk or shard whose key ends in this, "3/0". Empty if absent, and if one chunk may change how all are made.
  virtual std::optional<std::uint64_t> unit_of(std::string_view coordinates) const = 0;
  // Begins these units. converter::unit_done() is called for each of them, in any thread, at the latest in
  // conversion_source::finish_units(). Throws zarrbits::error.
  virtual void make(std::span<const std::uint64_t> numbers) = 0;
};

// Its objects have numbers, and parents come before their children.
class conversion_source {
 public:
  virtual ~conversion_source() = default;

  // Reads the metadata of the objects that the options select: before anything else, and again if the plan of an unfinished store
  // has changed the options. Throws zarrbits::error.
  virtual void open(bool is_case_sensitive) = 0;
  // Warnings and notes about what was opened.
  virtual void report_warnings() const = 0;
  virtual source_identity identity() = 0;
  // Throws zarrbits::error if the source has changed. `unit_done`: only what costs little, after each unit.
  enum class change_check { unit_done, complete };
  virtual void require_unchanged(change_check check) const = 0;
  // Whether readers of such a source expect consolidated metadata.
  virtual bool is_consolidated() const = 0;

  virtual std::size_t size() const = 0;
  virtual bool has_chunks(std::size_t object) const = 0;
  virtual const std::string& path(std::size_t object) const = 0;
  // In the store, "/a/b"; "/" is the root.
  virtual const std::string& store_path(std::size_t object) const = 0;
  // Plans the object. Throws zarrbits::error.
  virtual std::shared_ptr<object_work> work(std::size_t object) = 0;
  // Whether the work on all objects is planned in a moment.
  virtual bool counts_units_quickly() const = 0;

  // Before the first unit, when converter::queue() is there: warns of chunks that need more memory than is allowed. Returns the
  // stored bytes of all objects; 0 if that costs time and is not requested.
  virtual std::uint64_t begin_units(bool measure) = 0;
  // Waits until all units are done.
  virtual void finish_units() = 0;
  // Whether chunks are downloaded while others are made, and the queue accounts for it.
  virtual bool downloads_ahead() const = 0;

  // Writes the metadata when all chunks are there, the root's last, and returns the report's entries of all objects.
  virtual std::vector<converted_object> write_metadata() = 0;
  // Several that are joined; none if the source is one.
  virtual std::vector<joined_source> joined_sources() const = 0;
  // Sets what the report says about the source. `is_complete`: false if this is one share of the work.
  virtual void describe(convert_result& result, bool is_complete) = 0;

  // A dry run: the entries of all objects, and what the options `further` request.
  virtual void plan(convert_plan& result, const plan_options& further) = 0;
  // Whether write_metadata() needs nothing that has to be downloaded.
  virtual bool has_local_metadata() const = 0;
};

}  // namespace zarrbits::conversion

#endif
