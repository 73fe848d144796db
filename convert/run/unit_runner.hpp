// SPDX-License-Identifier: BSL-1.0
//
// Makes and writes the chunks of units. One thread reads: it alone finds chunks and takes their stored bytes, under libhdf5's lock. What
// comes then (checking, inflating, encoding, writing) is the work of all threads.
//
#ifndef ZARRBITS_CONVERT_RUN_UNIT_RUNNER_HPP
#define ZARRBITS_CONVERT_RUN_UNIT_RUNNER_HPP

#include "convert/plan/dataset_plan.hpp"
#include "convert/run/chunk_maker.hpp"
#include "convert/run/unit_result.hpp"
#include "convert/run/work_queue.hpp"
#include "convert/store/sink.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace zarrbits::conversion {

class chunk_destination;

class unit_runner {
 public:
  // `done` is called for each unit that is finished, from any thread, one at a time; `advance` so for bytes of the source that are done.
  struct calls {
    std::function<void(const unit_id&, unit_result&&)> done;
    std::function<void(std::uint64_t)> advance;
  };
  unit_runner(source_file& source, sink& out, const convert_options& options, work_queue& queue, calls calls);

  // Begins a unit of a dataset that is prepared, and reads what it needs. Its chunks may be made later. Throws convert_error.
  void run(std::shared_ptr<const dataset_plan> dataset, const unit_id& id);
  // Until all units are done.
  void finish();

 private:
  struct state;
  struct chunk_input;
  struct batch;
  void produce(const std::shared_ptr<state>& unit);
  void produce_part(const std::shared_ptr<state>& unit, std::size_t part);
  void produce_stored(batch& next, const chunk_range& range);
  void produce_read(batch& next, const chunk_range& range);
  void enter_shard(batch& next, const std::vector<hsize_t>& at);
  void leave_shard(batch& next);
  void submit(batch& next);
  void work(batch& all);
  bool work_on(batch& all, std::size_t index, chunk_destination& out, array_result& result);
  void release(const std::shared_ptr<state>& unit);
  // Strings that libhdf5 allocated for a chunk. As many threads as there are may hold some; much of it one alone.
  struct held_strings {
    std::shared_lock<std::shared_mutex> one_of_many;
    std::unique_lock<std::shared_mutex> alone;
    std::unique_ptr<variable_memory> memory;
  };
  buffer read_values(const chunk_maker& maker, const source_dataset& data, const std::vector<hsize_t>& at, held_strings& strings);
  void repeat_units();

  source_file& source_;
  sink& out_;
  const convert_options& options_;
  work_queue& queue_;
  calls calls_;
  std::shared_mutex strings_turn_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<state>> repeat_;
};

}  // namespace zarrbits::conversion

#endif
