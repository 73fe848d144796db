// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/work_unit_runner.hpp"

#include "convert/from_hdf5/chunk_prefetch.hpp"
#include "convert/from_hdf5/ragged_arrays.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::conversion {

using part_kind = dataset_part::kind_type;

work_unit_runner::work_unit_runner(zarr::store_writer& out, const convert_options& options, io::thread_pool& queue, callbacks c)
    : out_(out),
      options_(options),
      queue_(queue),
      callbacks_(std::move(c)),
      reader_(out, [this](chunk_batch& next) { submit(next); }),
      worker_(out, options) {}

void work_unit_runner::run(std::shared_ptr<const dataset_plan> dataset, const work_unit_id& id) {
  const chunk_range range = dataset->unit(id.number);
  run(std::move(dataset), id, range);
}

void work_unit_runner::run(std::shared_ptr<const dataset_plan> dataset, const work_unit_id& id, const chunk_range& range) {
  produce(std::make_shared<work_unit_state>(std::move(dataset), id, range));
  repeat_units();
}

void work_unit_runner::finish() {
  do {
    queue_.finish();
    repeat_units();
    queue_.finish();
  } while ([&] {
    const std::lock_guard lock(mutex_);
    return !repeat_.empty();
  }());
}

void work_unit_runner::repeat_units() {
  for (;;) {
    std::shared_ptr<work_unit_state> unit;
    {
      const std::lock_guard lock(mutex_);
      if (repeat_.empty()) return;
      unit = std::move(repeat_.back());
      repeat_.pop_back();
    }
    produce(unit);
  }
}

void work_unit_runner::produce(const std::shared_ptr<work_unit_state>& unit) {
  unit->open();
  const auto& parts = unit->dataset->parts();
  for (std::size_t part = 0; part < parts.size() && !unit->stopped(); ++part) {
    if (!unit->to_do(part) || parts[part].kind == part_kind::group) continue;
    if (const auto skip_reason = hdf5::skip_reason([&] { produce_part(unit, part); })) unit->skip({part, {}}, *skip_reason);
  }
  release(unit);
}

void work_unit_runner::produce_part(const std::shared_ptr<work_unit_state>& unit, std::size_t part) {
  const hdf5::chunk_source& data = unit->dataset->data;
  const dataset_part& node = unit->dataset->parts()[part];
  if (node.kind == part_kind::sequences) {
    if (!out_.is_order_independent()) queue_.finish();  // what was submitted before is put before
    const hdf5::lock one_thread;
    const std::uint64_t memory = std::max<std::uint64_t>(options_.execution.memory, 16U << 20);
    write_ragged_arrays(data, node.view, node.store_path,
                        {data, out_, unit->result_of(part), unit->derived_arrays(), options_.encoding.checksum != checksum::none,
                         memory, callbacks_.array_begins});
    return callbacks_.advance(data.stored_bytes);
  }
  if (unit->range.count == 0) return;
  chunk_batch next{unit, part};
  next.is_remote = data.is_remote();
  {
    const hdf5::lock one_thread;
    next.plan = unit->dataset->array(part, unit->assumed(part));
  }
  if (callbacks_.array_begins) callbacks_.array_begins(node.store_path, next.plan->meta);
  reader_.read(next, unit->range);
}

void work_unit_runner::submit(chunk_batch& next) {
  if (next.chunks.empty()) return;
  const hdf5::lock::unlock_guard unlocked;  // the queue may wait for threads that wait for the lock
  std::vector<chunk_input> chunks = std::exchange(next.chunks, {});
  auto batch = std::make_shared<chunk_batch>(next);
  batch->chunks = std::move(chunks);
  if (next.shard) batch->turn = next.shard->next_turn();
  next.cost = 0;
  next.unit->open();
  if (batch->is_remote) {
    queue_.reserve(batch->cost);
    batch->prefetch = std::make_shared<const chunk_prefetch>(*batch, out_.supports_references());
  }
  queue_.submit(batch->cost, [this, batch] {
    const std::uint64_t processed = worker_.work(*batch);
    {
      const std::lock_guard one_at_a_time(mutex_);
      callbacks_.advance(processed);
    }
    release(batch->unit);
  });
}

void work_unit_runner::release(const std::shared_ptr<work_unit_state>& unit) {
  if (!unit->close()) return;
  unit->dataset->data.require_unchanged(unit->range.first, unit->range.count);
  const std::lock_guard one_at_a_time(mutex_);
  if (unit->begin_again()) repeat_.push_back(unit);
  else callbacks_.unit_done(unit->id, unit->take());
}

}  // namespace zarrbits::conversion
