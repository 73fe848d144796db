// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/batch_worker.hpp"

#include "convert/concat/joined_parts.hpp"
#include "convert/from_hdf5/chunk_prefetch.hpp"
#include "convert/from_hdf5/zarr_chunk_sink.hpp"
#include "io/files.hpp"
#include "io/thread_pool.hpp"
#include "text/format.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace zarrbits::conversion {

// A chunk in progress. Its functions return true if the chunk is done; otherwise `reason` describes the problem, if any.
struct batch_worker::one_chunk {
  chunk_input& chunk;
  const array_plan& plan;
  zarr_chunk_sink& out;
  const chunk_prefetch* prefetch;  // null if all is local
  array_result& result;
  const hdf5::chunk_source& data = plan.data;
  const chunk_transcoder transcoder{plan};
  std::string reason = chunk.reason;

  void count(outcome chunk_outcome, std::uint64_t bytes) {
    result.store_bytes += bytes;
    (chunk_outcome == outcome::raw         ? result.counts.raw
     : chunk_outcome == outcome::rewrapped ? result.counts.rewrapped
                                           : result.counts.recoded) += 1;
    result.worst = std::max(result.worst, chunk_outcome);
  }
  stored_range range() const { return {chunk.offset, chunk.size, chunk.file}; }
  void put(encoded_chunk encoded) {
    result.dangling = result.dangling || encoded.dangling;
    count(encoded.chunk_outcome, encoded.bytes.size());
    out.put(chunk.index, std::move(encoded.bytes));
  }
  void copy(bool refers) {
    const auto bytes = prefetch && !refers ? prefetch->bytes(range()) : std::nullopt;
    if (bytes) out.put(chunk.index, *bytes);
    else out.put_range(chunk.index, range());
    count(outcome::raw, chunk.size);
  }
  // Throws io::read_error, zarrbits::error.
  void read(std::span<std::byte> destination) const {
    if (const auto bytes = prefetch ? prefetch->bytes(range()) : std::nullopt)
      std::memcpy(destination.data(), bytes->data(), destination.size());
    else data.bytes_of(chunk.file)->read(chunk.offset, destination);
  }
  void note_rounding() {
    if (!plan.leaf.maybe_lossy || result.rounded) return;
    result.rounded = !(plan.view.is_complete && plan.leaf.kind == hdf5::type_class::floating) || data.is_chunk_lossy(chunk.index);
  }
};

std::uint64_t batch_worker::work(chunk_batch& batch) {
  // a thread-safe libhdf5 has one error stack per thread, and prints it unless told not to
  [[maybe_unused]] static thread_local const bool quiet = [] {
    const hdf5::lock one_thread;
    return H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  }();
  array_result result;
  std::uint64_t progress = 0;
  zarr_chunk_sink out(out_, batch.node().store_path, *batch.plan, batch.shard, batch.turn);
  try {
    for (std::size_t i = 0; i < batch.chunks.size() && !batch.stopped(); ++i) {
      chunk_input& chunk = batch.chunks[i];
      progress += chunk.progress;
      one_chunk c{chunk, *batch.plan, out, batch.prefetch.get(), result};
      try {
        if (const auto skip_reason = hdf5::skip_reason([&] { make(c); }))
          batch.unit->skip({batch.part, chunk.index}, *skip_reason);
      } catch (const wrong_assumption& wrong) {
        batch.unit->drop_assumption({batch.part, chunk.index}, wrong);
      }
      chunk.bytes = {};
    }
  } catch (...) {
    out.finish(false);
    throw;
  }
  result.store_bytes += out.finish(!batch.stopped());
  batch.unit->add(batch.part, result);
  return progress;
}

void batch_worker::make(one_chunk& c) {
  using form = chunk_input::form_type;
  if (c.chunk.form == form::range && from_range(c)) return;
  if ((c.chunk.form == form::stored || c.chunk.form == form::in_file) && from_stored(c)) return;
  // a chunk that was rejected here is lost: libhdf5 checks neither its decoded length nor whether it could be read before
  const bool is_through_libhdf5 = c.reason.empty();
  if (is_through_libhdf5 && through_libhdf5(c)) return;
  record_lost_chunk(c);
  if (is_through_libhdf5) put_readable_parts(c);
}

bool batch_worker::from_range(one_chunk& c) {
  const chunk_input& chunk = c.chunk;
  try {
    if (c.transcoder.is_copied(chunk.index, chunk.size, 0)) {
      c.copy(out_.supports_references());
      return true;
    }
    // elements beyond the edge read as the fill value
    const std::size_t element = c.data.element_size, plain = static_cast<std::size_t>(c.plan.chunk_bytes(chunk.index));
    compressors::buffer bytes(plain);
    c.read(std::span(bytes).first(static_cast<std::size_t>(chunk.size)));
    for (std::size_t i = static_cast<std::size_t>(chunk.size); i < plain; i += element)
      std::memcpy(bytes.data() + i, c.plan.fill.data(), element);
    c.put(std::move(*c.transcoder.from_stored(std::move(bytes), 0, chunk.index)));
    return true;
  } catch (const io::read_error& e) {
    c.reason = e.what();
    return false;
  }
}

bool batch_worker::from_stored(one_chunk& c) {
  chunk_input& chunk = c.chunk;
  const bool in_file = chunk.form == chunk_input::form_type::in_file;
  try {
    if (in_file && c.transcoder.is_copied(chunk.index, chunk.size, chunk.mask)) {
      c.note_rounding();
      c.copy(out_.supports_references());
      return true;
    }
    if (in_file) {
      chunk.bytes.resize(static_cast<std::size_t>(chunk.size));
      c.read(chunk.bytes);
    }
    if (auto encoded = c.transcoder.from_stored(std::move(chunk.bytes), chunk.mask, chunk.index)) {
      c.note_rounding();
      // the chunk had to be looked at, and is in the file as the store has it
      if (in_file && encoded->chunk_outcome == outcome::raw && out_.supports_references()) c.copy(true);
      else c.put(std::move(*encoded));
      return true;
    }
  } catch (const compressors::corrupt_chunk& e) {
    c.reason = e.what();
  } catch (const io::read_error& e) {
    c.reason = e.what();
  } catch (const hdf5::failure& e) {
    c.reason = e.what();
  }
  return false;
}

bool batch_worker::through_libhdf5(one_chunk& c) {
  try {
    allocated_strings strings;
    compressors::buffer values = read_values(c.transcoder, c.data, c.chunk.index, strings);
    if (c.chunk.drop_if_fill && c.transcoder.is_all_fill(values)) {
      ++c.result.counts.absent;
      return true;
    }
    c.note_rounding();
    encoded_chunk encoded = c.transcoder.from_values(std::move(values), c.chunk.index);
    strings.memory.reset();
    strings = {};  // before the wait for the shard
    encoded.chunk_outcome = c.plan.outcome_if_read();
    c.put(std::move(encoded));
    return true;
  } catch (const hdf5::failure& e) {
    c.reason = e.what();
    if (c.data.external) throw hdf5::unsupported_dataset(reason_code::missing_file, c.reason);
  } catch (const compressors::corrupt_chunk& e) {
    c.reason = e.what();
  }
  return false;
}

namespace {

// The files of a joined array in which the values of a chunk are.
std::vector<std::string> joined_files_of(const hdf5::chunk_source& data, const array::extents& index) {
  const joined_parts& parts = *data.object.joined;
  const std::uint64_t begin = data.grid.start(index)[parts.axis], end = begin + data.grid.inside(index)[parts.axis];
  std::vector<std::string> names;
  for (std::size_t i = parts.first_over(begin); i < parts.list.size() && parts.list[i].first < end; ++i)
    names.push_back(parts.files->list()[parts.list[i].file].name);
  return names;
}

}  // namespace

void batch_worker::record_lost_chunk(one_chunk& c) {
  std::string file = c.data.file.path(), named;
  if (c.data.object.joined) {
    const std::vector<std::string> files = joined_files_of(c.data, c.chunk.index);
    if (!files.empty()) {
      file = files.front();
      named = " of \"" + file + "\"";
      if (files.size() > 1) named += " to \"" + files.back() + "\"";
    }
  }
  if (!options_.execution.keep_going) {
    throw zarrbits::error(errc::damaged_source,
                          "chunk " + format_index(c.chunk.index) + " of dataset \"" + c.data.object.path + "\"" + named +
                              " cannot be read: " + c.reason + "; `keep_going` leaves out such chunks and reports them",
                          {file, c.data.object.path});
  }
  ++c.result.counts.lost;
  c.result.worst = std::max(c.result.worst, outcome::recoded);
  c.result.lost_chunks[c.chunk.index] = c.reason;
}

// A chunk of other shape than the stored ones would lose the values of all that it has a part of.
void batch_worker::put_readable_parts(one_chunk& c) {
  if (auto values = c.transcoder.read_parts(c.chunk.index)) {
    encoded_chunk encoded = c.transcoder.from_values(std::move(*values), c.chunk.index);
    c.result.dangling = c.result.dangling || encoded.dangling;
    c.result.store_bytes += encoded.bytes.size();
    c.out.put(c.chunk.index, std::move(encoded.bytes));
  }
}

compressors::buffer batch_worker::read_values(const chunk_transcoder& maker, const hdf5::chunk_source& data,
                                              const array::extents& chunk_index, allocated_strings& strings) {
  if (!maker.has_strings()) return maker.read_values(chunk_index, nullptr);
  const std::uint64_t max_bytes = std::max<std::uint64_t>(options_.execution.memory, 16U << 20) / 4;
  const unsigned threads = std::max(8U, options_.execution.threads ? options_.execution.threads : detail::usable_processors());
  strings.one_of_many = std::shared_lock(strings_mutex_);
  for (const bool alone : {false, true}) {
    {
      const hdf5::lock one_thread;
      strings.memory = std::make_unique<hdf5::vlen_allocator>(alone ? max_bytes : max_bytes / threads);
    }
    try {
      compressors::buffer values = maker.read_values(chunk_index, strings.memory.get());
      data.count_variable(strings.memory->used());
      return values;
    } catch (const hdf5::failure&) {
      if (!strings.memory->exceeded()) throw;
    }
    strings.memory.reset();
    if (!alone) strings.one_of_many.unlock();
    if (!alone) strings.alone = std::unique_lock(strings_mutex_);
  }
  throw hdf5::unsupported_dataset(reason_code::too_large, "the strings of chunk " + format_index(chunk_index) +
                                                              " take more than " + text::format_bytes(max_bytes) +
                                                              ", a quarter of `memory`");
}

}  // namespace zarrbits::conversion
