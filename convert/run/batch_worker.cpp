// SPDX-License-Identifier: BSL-1.0
#include "convert/run/batch_worker.hpp"

#include "convert/run/chunk_destination.hpp"
#include "convert/run/remote_chunks.hpp"
#include "io/files.hpp"
#include "io/work_queue.hpp"
#include "text/words.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace zarrbits::conversion {

// A chunk in work. Its functions return true if the chunk is done; otherwise `why` says what is wrong with it, if anything is.
struct batch_worker::one_chunk {
  chunk_input& chunk;
  const array_plan& plan;
  chunk_destination& out;
  const remote_chunks* remote;  // null if all is local
  array_result& result;
  const hdf5::chunk_source& data = plan.data;
  const chunk_maker maker{plan};
  std::string why = chunk.why;

  void count(outcome how, std::uint64_t bytes) {
    result.store_bytes += bytes;
    (how == outcome::raw ? result.counts.raw : how == outcome::rewrapped ? result.counts.rewrapped : result.counts.recoded) += 1;
    result.worst = std::max(result.worst, how);
  }
  stored_range place() const { return {chunk.offset, chunk.size, chunk.file}; }
  void put(made_chunk made) {
    result.dangling = result.dangling || made.dangling;
    count(made.how, made.bytes.size());
    out.put(chunk.at, std::move(made.bytes));
  }
  void copy(bool refers) {
    const auto bytes = remote && !refers ? remote->bytes(place()) : std::nullopt;
    if (bytes) out.put(chunk.at, *bytes);
    else out.put_range(chunk.at, place());
    count(outcome::raw, chunk.size);
  }
  // Throws unreadable_range, zarrbits::error.
  void read(std::span<std::byte> to) const {
    if (const auto bytes = remote ? remote->bytes(place()) : std::nullopt) std::memcpy(to.data(), bytes->data(), to.size());
    else data.bytes_of(chunk.file)->read(chunk.offset, to);
  }
  void note_rounding() {
    if (!plan.leaf.maybe_lossy || result.rounded) return;
    result.rounded = !(plan.view.whole && plan.leaf.kind == hdf5::type_class::floating) || data.chunk_loses(chunk.at);
  }
};

std::uint64_t batch_worker::work(chunk_batch& all) {
  // a thread-safe libhdf5 has one error stack per thread, and prints it unless told not to
  [[maybe_unused]] static thread_local const bool quiet = [] {
    const hdf5::lock one_thread;
    return H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  }();
  array_result result;
  std::uint64_t progress = 0;
  chunk_destination out(out_, all.node().store_path, *all.plan, all.shard, all.turn);
  try {
    for (std::size_t i = 0; i < all.chunks.size() && !all.stopped(); ++i) {
      chunk_input& chunk = all.chunks[i];
      progress += chunk.progress;
      one_chunk c{chunk, *all.plan, out, all.coming.get(), result};
      try {
        if (const auto why = hdf5::reason_to_skip([&] { make(c); })) all.unit->skip({all.part, chunk.at}, *why);
      } catch (const wrong_assumption& wrong) {
        all.unit->drop_assumption({all.part, chunk.at}, wrong);
      }
      chunk.bytes = {};
    }
  } catch (...) {
    out.finish(false);
    throw;
  }
  result.store_bytes += out.finish(!all.stopped());
  all.unit->add(all.part, result);
  return progress;
}

void batch_worker::make(one_chunk& c) {
  using form = chunk_input::form_type;
  if (c.chunk.form == form::range && from_range(c)) return;
  if ((c.chunk.form == form::stored || c.chunk.form == form::in_file) && from_stored(c)) return;
  // a chunk that was rejected here is lost: libhdf5 checks neither its decoded length nor whether it could be read before
  if (c.why.empty() && through_libhdf5(c)) return;
  lose(c);
}

bool batch_worker::from_range(one_chunk& c) {
  const chunk_input& chunk = c.chunk;
  try {
    if (c.maker.is_copied(chunk.at, chunk.size, 0)) {
      c.copy(out_.refers());
      return true;
    }
    // elements beyond the edge read as the fill value
    const std::size_t element = c.data.element_size, plain = static_cast<std::size_t>(c.plan.chunk_bytes(chunk.at));
    compressors::buffer bytes(plain);
    c.read(std::span(bytes).first(static_cast<std::size_t>(chunk.size)));
    for (std::size_t i = static_cast<std::size_t>(chunk.size); i < plain; i += element)
      std::memcpy(bytes.data() + i, c.plan.fill.data(), element);
    c.put(std::move(*c.maker.from_stored(std::move(bytes), 0, chunk.at)));
    return true;
  } catch (const io::unreadable_range& e) {
    c.why = e.what();
    return false;
  }
}

bool batch_worker::from_stored(one_chunk& c) {
  chunk_input& chunk = c.chunk;
  const bool in_file = chunk.form == chunk_input::form_type::in_file;
  try {
    if (in_file && c.maker.is_copied(chunk.at, chunk.size, chunk.mask)) {
      c.note_rounding();
      c.copy(out_.refers());
      return true;
    }
    if (in_file) {
      chunk.bytes.resize(static_cast<std::size_t>(chunk.size));
      c.read(chunk.bytes);
    }
    if (auto made = c.maker.from_stored(std::move(chunk.bytes), chunk.mask, chunk.at)) {
      c.note_rounding();
      // the chunk had to be looked at, and is in the file as the store has it
      if (in_file && made->how == outcome::raw && out_.refers()) c.copy(true);
      else c.put(std::move(*made));
      return true;
    }
  } catch (const compressors::damaged_chunk& e) {
    c.why = e.what();
  } catch (const io::unreadable_range& e) {
    c.why = e.what();
  } catch (const hdf5::failure& e) {
    c.why = e.what();
  }
  return false;
}

bool batch_worker::through_libhdf5(one_chunk& c) {
  try {
    held_strings strings;
    compressors::buffer values = read_values(c.maker, c.data, c.chunk.at, strings);
    if (c.chunk.drop_if_fill && c.maker.all_fill(values)) {
      ++c.result.counts.absent;
      return true;
    }
    c.note_rounding();
    made_chunk made = c.maker.from_values(std::move(values), c.chunk.at);
    strings.memory.reset();
    strings = {};  // before the wait for the shard
    made.how = c.plan.outcome_if_read();
    c.put(std::move(made));
    return true;
  } catch (const hdf5::failure& e) {
    c.why = e.what();
    if (c.data.external) throw hdf5::skip_dataset("its external files cannot be read: " + c.why);
  } catch (const compressors::damaged_chunk& e) {
    c.why = e.what();
  }
  return false;
}

void batch_worker::lose(one_chunk& c) {
  if (!options_.keep_going) {
    throw zarrbits::error(errc::damaged_source,
                          "chunk " + place(c.chunk.at) + " of dataset \"" + c.data.object.path + "\" cannot be read: " + c.why +
                              "; `keep_going` leaves out such chunks and reports them",
                          {c.data.file.path(), c.data.object.path});
  }
  ++c.result.counts.lost;
  c.result.worst = std::max(c.result.worst, outcome::recoded);
  c.result.lost[{c.chunk.at.begin(), c.chunk.at.end()}] = c.why;
}

compressors::buffer batch_worker::read_values(const chunk_maker& maker, const hdf5::chunk_source& data, const std::vector<hsize_t>& at,
                                 held_strings& strings) {
  if (!maker.has_strings()) return maker.read_values(at, nullptr);
  const std::uint64_t most = std::max<std::uint64_t>(options_.memory, 16U << 20) / 4;
  const unsigned threads = std::max(8U, options_.threads ? options_.threads : io::usable_processors());
  strings.one_of_many = std::shared_lock(strings_turn_);
  for (const bool alone : {false, true}) {
    {
      const hdf5::lock one_thread;
      strings.memory = std::make_unique<hdf5::variable_memory>(alone ? most : most / threads);
    }
    try {
      compressors::buffer values = maker.read_values(at, strings.memory.get());
      data.count_variable(strings.memory->used());
      return values;
    } catch (const hdf5::failure&) {
      if (!strings.memory->exceeded()) throw;
    }
    strings.memory.reset();
    if (!alone) strings.one_of_many.unlock();
    if (!alone) strings.alone = std::unique_lock(strings_turn_);
  }
  throw hdf5::skip_dataset("the strings of chunk " + place(at) + " take more than " + text::human_bytes(most) + ", a quarter of `memory`");
}

}  // namespace zarrbits::conversion
