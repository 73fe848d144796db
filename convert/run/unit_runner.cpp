// SPDX-License-Identifier: BSL-1.0
#include "convert/run/unit_runner.hpp"

#include "convert/hdf5/chunk_grid.hpp"
#include "convert/hdf5/chunk_index.hpp"
#include "convert/io/files.hpp"
#include "convert/run/chunk_destination.hpp"
#include "convert/run/sequences.hpp"
#include "convert/store/concurrent_shard.hpp"
#include "convert/store/node.hpp"
#include "convert/store/sink.hpp"
#include "convert/text/names.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

namespace zarrbits::conversion {

namespace {

using strategy = array_plan::strategy;
using part_kind = dataset_part::kind_type;
using position = std::pair<std::size_t, std::vector<hsize_t>>;  // part and chunk

constexpr std::uint64_t largest_stored = std::uint64_t{4} << 30;
constexpr std::uint64_t most_chunks = 50'000'000;  // that are written without being stored one by one in the source
constexpr std::uint64_t batch_bytes = 256U << 10;  // small chunks go to a thread by the dozen
constexpr std::size_t batch_chunks = 64;
constexpr std::uint64_t copied_share = 4;  // of a copied range, so much comes into memory at most
constexpr std::uint64_t least_cost = 256;  // of knowing of a chunk

// Where a chunk's values are one range of all values, and the beginning of the chunk: how many come before it, and how many it has.
std::optional<std::pair<std::uint64_t, std::uint64_t>> run_of(const chunk_grid& grid, const std::vector<hsize_t>& at) {
  const std::vector<hsize_t> inside = grid.inside(at), first = grid.start(at);
  std::size_t d = 0;
  while (d < grid.rank() && inside[d] == 1) ++d;
  for (++d; d < grid.rank(); ++d) {
    if (inside[d] != grid.shape[d] || inside[d] != grid.chunk[d]) return {};
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < grid.rank(); ++i) before = before * grid.shape[i] + first[i];
  return std::pair{before, product(inside)};
}

}  // namespace

struct unit_runner::state {
  std::shared_ptr<const dataset_plan> dataset;
  unit_id id;
  std::mutex mutex;
  unit_result result;
  std::vector<assumptions> assumed;  // for each part
  std::vector<bool> to_do;           // parts
  std::vector<char> wrong;           // parts whose assumptions are wrong
  std::optional<std::pair<position, std::string>> skipped;
  std::atomic<bool> stop = false;    // the dataset is skipped: nothing more is needed of it
  std::atomic<std::uint64_t> open = 0;

  void skip(const position& where, const std::string& why) {
    const std::lock_guard held(mutex);
    if (!skipped || where < skipped->first) skipped.emplace(where, why);
    stop = true;
  }
  bool is_wrong(std::size_t part) {
    const std::lock_guard held(mutex);
    return wrong[part] != 0;
  }
};

// How a chunk comes to the thread that makes it.
struct unit_runner::chunk_input {
  enum class form_type {
    stored,   // bytes of H5Dread_chunk
    in_file,  // the same, still in the source's file
    range,    // values, a range of the source's file
    retry,    // none: libhdf5 is asked for the values, by the thread itself
  } form = form_type::stored;
  std::vector<hsize_t> at;
  buffer bytes = {};
  unsigned mask = 0;
  std::uint64_t offset = 0, size = 0;  // in_file, range
  bool drop_if_fill = false;           // retry
  std::string why = {};                // why it came to that, if it did
  std::uint64_t progress = 0;
};

struct unit_runner::batch {
  std::shared_ptr<state> unit;
  std::size_t part = 0;
  std::shared_ptr<const array_plan> plan;
  std::vector<chunk_input> chunks = {};
  std::uint64_t cost = 0;
  std::shared_ptr<concurrent_shard> shard = {};  // that all of them go to; null where there are no shards
  std::vector<hsize_t> shard_at = {};
  std::uint64_t turn = 0;

  const dataset_part& node() const { return unit->dataset->parts()[part]; }
  bool stopped() const { return unit->stop || unit->is_wrong(part); }
  // The batches of one shard wait for each other, so there had better be few: all that is copied to it is one, if it can be.
  bool is_full() const { return cost >= batch_bytes || (!shard && chunks.size() >= batch_chunks); }
  std::uint64_t memory_of_copy(std::uint64_t size) const { return shard ? 0 : size / copied_share; }
  void add(chunk_input chunk, std::uint64_t memory) {
    cost += std::max(least_cost, memory);
    chunks.push_back(std::move(chunk));
  }
};

unit_runner::unit_runner(source_file& source, sink& out, const convert_options& options, work_queue& queue, calls c)
    : source_(source), out_(out), options_(options), queue_(queue), calls_(std::move(c)) {}

void unit_runner::run(std::shared_ptr<const dataset_plan> dataset, const unit_id& id) {
  const auto unit = std::make_shared<state>();
  const std::size_t parts = dataset->parts().size();
  unit->dataset = std::move(dataset);
  unit->id = id;
  unit->result.arrays.resize(parts);
  unit->assumed.resize(parts);
  unit->to_do.assign(parts, true);
  unit->wrong.assign(parts, 0);
  produce(unit);
  repeat_units();
}

void unit_runner::finish() {
  do {
    queue_.finish();
    repeat_units();
    queue_.finish();
  } while ([&] {
    const std::lock_guard held(mutex_);
    return !repeat_.empty();
  }());
}

void unit_runner::repeat_units() {
  for (;;) {
    std::shared_ptr<state> unit;
    {
      const std::lock_guard held(mutex_);
      if (repeat_.empty()) return;
      unit = std::move(repeat_.back());
      repeat_.pop_back();
    }
    produce(unit);
  }
}

void unit_runner::produce(const std::shared_ptr<state>& unit) {
  ++unit->open;
  for (std::size_t part = 0; part < unit->to_do.size() && !unit->stop; ++part) {
    if (!unit->to_do[part] || unit->dataset->parts()[part].kind == part_kind::group) continue;
    if (const auto why = reason_to_skip([&] { produce_part(unit, part); })) unit->skip({part, {}}, *why);
  }
  release(unit);
}

void unit_runner::release(const std::shared_ptr<state>& unit) {
  if (--unit->open > 0) return;
  const std::lock_guard one_at_a_time(mutex_);
  bool again = false;
  for (std::size_t part = 0; part < unit->wrong.size(); ++part) {
    unit->to_do[part] = unit->wrong[part] != 0;
    if (!unit->wrong[part]) continue;
    again = true;
    unit->wrong[part] = 0;
    unit->result.arrays[part] = {};
  }
  if (again && !unit->stop) {
    repeat_.push_back(unit);
    return;
  }
  if (unit->skipped) {
    unit->result = {};
    unit->result.skipped = unit->skipped->second;
  } else {
    for (std::size_t part = 0; part < unit->assumed.size(); ++part) unit->result.arrays[part].assumed = unit->assumed[part];
  }
  calls_.done(unit->id, std::move(unit->result));
}

void unit_runner::produce_part(const std::shared_ptr<state>& unit, std::size_t part) {
  const source_dataset& data = unit->dataset->data;
  const dataset_part& node = unit->dataset->parts()[part];
  if (node.kind == part_kind::sequences) {
    const h5::lock one_thread;
    write_sequences(data, node.view, node.store_path, {source_, out_, unit->result.arrays[part], unit->result.made, !options_.checksum.empty(), std::max<std::uint64_t>(options_.memory, 16U << 20)});
    return calls_.advance(data.stored_bytes);
  }
  batch next{unit, part, {}};
  {
    const h5::lock one_thread;
    next.plan = std::make_shared<const array_plan>(data, node.view, options_, unit->assumed[part]);
  }
  const chunk_range range = unit->dataset->unit(unit->id.number);
  if (data.keeps_chunks() && !next.plan->materialize) produce_stored(next, range);
  else produce_read(next, range);
  submit(next);
  leave_shard(next);
}

void unit_runner::enter_shard(batch& next, const std::vector<hsize_t>& at) {
  const source_dataset& data = next.plan->data;
  if (!data.sharded()) return;
  std::vector<hsize_t> shard = data.shards.chunk_of(at);
  if (next.shard && shard == next.shard_at) return;
  submit(next);
  leave_shard(next);
  next.shard = std::make_shared<concurrent_shard>(out_, chunk_key(next.node().store_path, key_numbers(shard), next.plan->trailing),
                                                  static_cast<std::size_t>(data.shards.chunk_elements()));
  next.shard_at = std::move(shard);
}

void unit_runner::leave_shard(batch& next) {
  if (!next.shard) return;
  const h5::lock::pause others;  // the last of it may be written here
  const std::uint64_t overhead = std::exchange(next.shard, nullptr)->close();
  const std::lock_guard held(next.unit->mutex);
  next.unit->result.arrays[next.part].store_bytes += overhead;
}

void unit_runner::produce_stored(batch& next, const chunk_range& range) {
  const source_dataset& data = next.plan->data;
  const array_plan& plan = *next.plan;
  const chunk_maker maker(plan);
  std::uint64_t stored = 0;
  std::string missing;
  const h5::lock one_thread;
  for_each_stored_chunk(data.dataset, data.grid, data.shards, range.first, range.count, [&](const std::vector<hsize_t>& at, hsize_t size) {
    if (next.stopped()) return false;
    enter_shard(next, at);
    if (stored++ == 0 && plan.way != strategy::copy_blosc) missing = data.filters.missing(data.type);
    chunk_input chunk;
    chunk.at = at;
    chunk.progress = size;
    const bool read = plan.way == strategy::read && missing.empty();
    const std::uint64_t cost = read ? maker.memory_from_read() : maker.memory_from_stored(size);
    if (read) {
      chunk.form = chunk_input::form_type::retry;
    } else if (size > largest_stored) {
      chunk.form = chunk_input::form_type::retry;
      chunk.why = "a stored size of " + human_bytes(size);
    } else {
      // where there is no locator, the chunk comes into memory at once
      if (cost >= batch_bytes && data.file.chunks().descriptor() < 0) {
        const h5::lock::pause others;
        queue_.make_room(cost);
      }
      try {
        source_dataset::stored_chunk found = data.find_chunk(data.grid.start(at), size);
        chunk.mask = found.mask;
        chunk.bytes = std::move(found.bytes);
        if (found.offset) {
          chunk.form = chunk_input::form_type::in_file;
          chunk.offset = *found.offset;
          chunk.size = size;
        }
      } catch (const h5::failure& e) {
        chunk.form = chunk_input::form_type::retry;
        chunk.why = e.what();
      } catch (const damaged_chunk& e) {
        chunk.form = chunk_input::form_type::retry;
        chunk.why = e.what();
      }
      // a writer that did not have the filter either may have stored the chunk without
      if (!missing.empty() && !data.filters.missing(data.type, chunk.mask).empty()) {
        throw missing_filter(missing);
      }
      if (plan.way == strategy::read) {
        chunk.form = chunk_input::form_type::retry;
        chunk.bytes = {};
      }
      // such chunks are stored without filters, and the mask does not say so
      if (data.filters.partial_unfiltered && data.grid.partial(at)) chunk.mask = 0xFFFFFFFFU;
    }
    const bool copied = chunk.form == chunk_input::form_type::in_file && maker.is_copied(size, chunk.mask);
    next.add(std::move(chunk), copied ? next.memory_of_copy(size) : cost);
    if (next.is_full()) submit(next);
    return true;
  });
  const std::lock_guard held(next.unit->mutex);
  next.unit->result.arrays[next.part].counts.absent += chunks_in(data.shards, range.first, range.count) - stored;
}

void unit_runner::produce_read(batch& next, const chunk_range& range) {
  const source_dataset& data = next.plan->data;
  const array_plan& plan = *next.plan;
  const chunk_grid& grid = data.grid;
  const std::uint64_t all = grid.chunks();
  const std::uint64_t chunks = chunks_in(data.shards, range.first, range.count);
  std::uint64_t absent = 0;
  std::optional<std::uint64_t> address;
  source_dataset::mapping mapping;
  {
    const h5::lock one_thread;
    if (data.nothing_stored() && !plan.materialize) {
      absent = chunks;
    } else {
      if (const std::string missing = data.layout == H5D_CHUNKED ? data.filters.missing(data.type) : ""; !missing.empty() && !data.nothing_stored()) {
        throw missing_filter(missing);
      }
      mapping = data.virtual_mapping();
      if (!mapping && all > most_chunks) throw skip_dataset("it would take " + std::to_string(all) + " chunks");
      if (plan.way == strategy::copy && !plan.packed) address = data.contiguous_address();
    }
  }
  const chunk_maker maker(plan);
  const std::uint64_t read_cost = maker.memory_from_read(), plain_cost = maker.memory_from_stored(grid.chunk_elements() * data.element_size);
  std::uint64_t visited = 0;
  const auto visit = [&](const std::vector<hsize_t>& at) {
    if (next.stopped()) return false;
    if (++visited > most_chunks) throw skip_dataset("it would take more than " + std::to_string(most_chunks) + " chunks");
    enter_shard(next, at);
    chunk_input chunk;
    chunk.at = at;
    chunk.progress = range.bytes / chunks;
    std::uint64_t memory = read_cost;
    const auto run = address ? run_of(grid, at) : std::nullopt;
    if (run) {
      chunk.form = chunk_input::form_type::range;
      chunk.offset = *address + run->first * data.element_size;
      chunk.size = run->second * data.element_size;
      memory = maker.is_copied(chunk.size, 0) ? next.memory_of_copy(chunk.size) : plain_cost;
    } else {
      chunk.form = chunk_input::form_type::retry;
      // what was never written cannot be told from the fill value here
      chunk.drop_if_fill = (data.layout == H5D_VIRTUAL || data.layout == H5D_CHUNKED) && !plan.materialize;
    }
    next.add(std::move(chunk), memory);
    if (next.is_full()) submit(next);
    return true;
  };
  if (absent < chunks && mapping) {
    const auto is_mapped = [&](const std::vector<hsize_t>& first, std::vector<hsize_t> count) {
      const std::vector<hsize_t> element = grid.start(first);
      for (std::size_t d = 0; d < count.size(); ++d) count[d] = std::min(count[d] * grid.chunk[d], grid.shape[d] - element[d]);
      return mapping(element, count);
    };
    for_each_wanted_chunk(data.shards, range.first, range.count, is_mapped, visit);
    absent = chunks - visited;
  } else if (absent < chunks) {
    for_each_chunk(data.shards, range.first, range.count, visit);
  }
  const std::lock_guard held(next.unit->mutex);
  next.unit->result.arrays[next.part].counts.absent += absent;
}

void unit_runner::submit(batch& next) {
  if (next.chunks.empty()) return;
  const h5::lock::pause others;  // the queue may wait for threads that wait for libhdf5
  std::vector<chunk_input> chunks = std::exchange(next.chunks, {});
  auto work_of = std::make_shared<batch>(next);
  work_of->chunks = std::move(chunks);
  if (next.shard) work_of->turn = next.shard->next_turn();
  next.cost = 0;
  ++next.unit->open;
  queue_.submit(work_of->cost, [this, work_of] {
    work(*work_of);
    release(work_of->unit);
  });
}

void unit_runner::work(batch& all) {
  // each thread has its own errors where libhdf5 was built for several, and prints them unless told not to
  [[maybe_unused]] static thread_local const bool quiet = [] {
    const h5::lock one_thread;
    return H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  }();
  array_result result;
  std::uint64_t progress = 0;
  chunk_destination out(out_, source_, all.node().store_path, *all.plan, all.shard, all.turn);
  try {
    for (std::size_t i = 0; i < all.chunks.size() && !all.stopped(); ++i) {
      progress += all.chunks[i].progress;
      const position where{all.part, all.chunks[i].at};
      try {
        if (const auto why = reason_to_skip([&] { work_on(all, i, out, result); })) all.unit->skip(where, *why);
      } catch (const wrong_assumption& wrong) {
        const std::lock_guard held(all.unit->mutex);
        all.unit->assumed[all.part].*wrong.which = false;
        all.unit->wrong[all.part] = 1;
      }
      all.chunks[i].bytes = {};
    }
  } catch (...) {
    out.finish(false);
    throw;
  }
  result.store_bytes += out.finish(!all.stopped());
  {
    const std::lock_guard held(all.unit->mutex);
    all.unit->result.arrays[all.part].add(result);
  }
  const std::lock_guard one_at_a_time(mutex_);
  calls_.advance(progress);
}

buffer unit_runner::read_values(const chunk_maker& maker, const source_dataset& data, const std::vector<hsize_t>& at, held_strings& strings) {
  if (!maker.has_strings()) return maker.read_values(at, nullptr);
  const std::uint64_t most = std::max<std::uint64_t>(options_.memory, 16U << 20) / 4;
  const unsigned threads = std::max(8U, options_.threads ? options_.threads : usable_processors());
  strings.one_of_many = std::shared_lock(strings_turn_);
  for (const bool alone : {false, true}) {
    {
      const h5::lock one_thread;
      strings.memory = std::make_unique<variable_memory>(alone ? most : most / threads);
    }
    try {
      buffer values = maker.read_values(at, strings.memory.get());
      data.count_variable(strings.memory->used());
      return values;
    } catch (const h5::failure&) {
      if (!strings.memory->exceeded()) throw;
    }
    strings.memory.reset();
    if (!alone) strings.one_of_many.unlock();
    if (!alone) strings.alone = std::unique_lock(strings_turn_);
  }
  throw skip_dataset("the strings of chunk " + place(at) + " take more than " + human_bytes(most) + ", a quarter of --memory");
}

bool unit_runner::work_on(batch& all, std::size_t index, chunk_destination& out, array_result& result) {
  using form = chunk_input::form_type;
  chunk_input& chunk = all.chunks[index];
  const array_plan& plan = *all.plan;
  const source_dataset& data = plan.data;
  const chunk_maker maker(plan);
  const auto count = [&](outcome how, std::uint64_t bytes) {
    result.store_bytes += bytes;
    (how == outcome::raw ? result.counts.raw : how == outcome::rewrapped ? result.counts.rewrapped : result.counts.recoded) += 1;
    result.worst = std::max(result.worst, how);
  };
  const auto put = [&](made_chunk made) {
    result.dangling = result.dangling || made.dangling;
    count(made.how, made.bytes.size());
    out.put(chunk.at, std::move(made.bytes));
    return true;
  };
  const auto note_rounding = [&] {
    if (!plan.leaf.maybe_lossy || result.rounded) return;
    result.rounded = !(plan.view.whole && plan.leaf.kind == type_class::floating) || data.chunk_loses(chunk.at);
  };
  const std::size_t plain = static_cast<std::size_t>(data.grid.chunk_elements()) * data.element_size;
  if (chunk.form == form::range) {
    try {
      if (maker.is_copied(chunk.size, 0)) {
        out.put_range(chunk.at, chunk.offset, chunk.size);
        count(outcome::raw, chunk.size);
        return true;
      }
      // what lies over the edge reads as the fill value
      buffer bytes(plain);
      read_range(source_.descriptor(), chunk.offset, std::span(bytes).first(static_cast<std::size_t>(chunk.size)));
      for (std::size_t i = static_cast<std::size_t>(chunk.size); i < plain; i += data.element_size) std::memcpy(bytes.data() + i, plan.fill.data(), data.element_size);
      return put(std::move(*maker.from_stored(std::move(bytes), 0, chunk.at)));
    } catch (const unreadable_range& e) {
      chunk.why = e.what();
    }
  } else if (chunk.form == form::stored || chunk.form == form::in_file) {
    try {
      if (chunk.form == form::in_file && maker.is_copied(chunk.size, chunk.mask)) {
        note_rounding();
        out.put_range(chunk.at, chunk.offset, chunk.size);
        count(outcome::raw, chunk.size);
        return true;
      }
      if (chunk.form == form::in_file) {
        chunk.bytes.resize(static_cast<std::size_t>(chunk.size));
        read_range(source_.descriptor(), chunk.offset, chunk.bytes);
      }
      if (auto made = maker.from_stored(std::move(chunk.bytes), chunk.mask, chunk.at)) {
        note_rounding();
        return put(std::move(*made));
      }
    } catch (const damaged_chunk& e) {
      chunk.why = e.what();
    } catch (const unreadable_range& e) {
      chunk.why = e.what();
    } catch (const h5::failure& e) {
      chunk.why = e.what();
    }
  }
  // what was rejected here is lost: libhdf5 does not look at how long a chunk becomes, nor at what it could not read before
  std::string why = chunk.why;
  if (why.empty()) {
    try {
      held_strings strings;
      buffer values = read_values(maker, data, chunk.at, strings);
      if (chunk.drop_if_fill && maker.all_fill(values)) {
        ++result.counts.absent;
        return true;
      }
      note_rounding();
      made_chunk made = maker.from_values(std::move(values), chunk.at);
      strings.memory.reset();
      strings = {};  // before the shard is waited for
      if (plan.way == strategy::copy && !plan.packed) made.how = plan.checksum ? outcome::rewrapped : outcome::raw;
      return put(std::move(made));
    } catch (const h5::failure& e) {
      why = e.what();
      if (data.external) throw skip_dataset("its external files cannot be read: " + why);
    } catch (const damaged_chunk& e) {
      why = e.what();
    }
  }
  if (!options_.keep_going) {
    throw convert_error("chunk " + place(chunk.at) + " of dataset \"" + data.object.path + "\" cannot be read: " + why +
                        "; --keep-going leaves such chunks out and names them");
  }
  ++result.counts.lost;
  result.worst = std::max(result.worst, outcome::recoded);
  result.lost[{chunk.at.begin(), chunk.at.end()}] = why;
  return false;
}

}  // namespace zarrbits::conversion
