// SPDX-License-Identifier: BSL-1.0
//
// Makes and writes the chunks of units. One thread reads (chunk_reader.hpp); all threads do the rest (batch_worker.hpp). This
// class decides the order: it makes the parts of a unit, makes a part again if an assumption about it was wrong, and reports when
// a unit is done.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_WORK_UNIT_RUNNER_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_WORK_UNIT_RUNNER_HPP

#include "convert/from_hdf5/batch_worker.hpp"
#include "convert/from_hdf5/chunk_reader.hpp"
#include "convert/pipeline/work_unit_result.hpp"
#include "convert/plan/dataset_plan.hpp"
#include "io/thread_pool.hpp"
#include "zarr/write/store_writer.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class work_unit_runner {
 public:
  // `unit_done` is called for each finished unit, and `advance` for bytes of the source that are done. Both are called from any
  // thread, one at a time. `array_begins`, if set, is called before the chunks of an array are put: for each unit, and again with
  // other metadata if an assumption about it was wrong. The length of a derived array is 0 in it.
  struct callbacks {
    std::function<void(const work_unit_id&, work_unit_result&&)> unit_done;
    std::function<void(std::uint64_t)> advance;
    std::function<void(const std::string& store_path, const metadata::array_metadata&)> array_begins = {};
  };
  work_unit_runner(zarr::store_writer& out, const convert_options& options, io::thread_pool& queue, callbacks calls);

  // Begins a unit of a prepared dataset, and reads what it needs. Its chunks may be made later. Throws zarrbits::error.
  void run(std::shared_ptr<const dataset_plan> dataset, const work_unit_id& id);
  // Likewise, of these chunks alone, which is for samples.
  void run(std::shared_ptr<const dataset_plan> dataset, const work_unit_id& id, const chunk_range& range);
  // Waits until all units are done.
  void finish();

 private:
  void produce(const std::shared_ptr<work_unit_state>& unit);
  void produce_part(const std::shared_ptr<work_unit_state>& unit, std::size_t part);
  void submit(chunk_batch& next);
  void release(const std::shared_ptr<work_unit_state>& unit);
  void repeat_units();

  zarr::store_writer& out_;
  const convert_options& options_;
  io::thread_pool& queue_;
  callbacks callbacks_;
  chunk_reader reader_;
  batch_worker worker_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<work_unit_state>> repeat_;
};

}  // namespace zarrbits::conversion

#endif
