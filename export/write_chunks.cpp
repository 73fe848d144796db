// SPDX-License-Identifier: BSL-1.0
#include "export/write_chunks.hpp"

#include "array/box.hpp"
#include "export/regridder.hpp"
#include "text/format.hpp"

#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

namespace zarrbits::exporting {

using conversion::source_array;
using chunk_index = array::extents;

namespace {

// Throws corrupt_chunk with the position; the caller adds the array. `array`: null if the chunk is not one of its own.
[[noreturn]] void refuse(const source_array* array, const chunk_index& chunk, const std::string& reason) {
  const auto [store, index] = array ? array->find_source(chunk) : std::pair(std::string(), chunk);
  throw compressors::corrupt_chunk("chunk " + (index.empty() ? "0" : array::joined_text(index, '/')) +
                                   (store.empty() ? "" : " in \"" + store + "\"") + ": " + reason);
}

std::vector<chunk_index> existing_chunks(const source_array& array, std::uint64_t memory) {
  const std::uint64_t entry_bytes = 64 + 8 * array.shape().size();
  auto chunks = array.list_chunks(static_cast<std::size_t>(memory / entry_bytes));
  if (!chunks) {
    throw zarr::not_supported(reason_code::too_large,
                              "an array of more chunks than " + text::format_bytes(memory) + " can list; increase `memory`");
  }
  std::sort(chunks->begin(), chunks->end(),
            [&](const chunk_index& a, const chunk_index& b) { return array.in_storage_order(a, b); });
  chunks->erase(std::unique(chunks->begin(), chunks->end()), chunks->end());  // "c/00" is not another one than "c/0"
  return std::move(*chunks);
}

// All chunks, in order: those that do not exist get the fill value.
std::vector<chunk_index> all_chunks(const source_array& array, const dataset_spec& form, std::uint64_t memory) {
  constexpr std::uint64_t max_bytes = std::uint64_t{4} << 30;
  const std::uint64_t count = array::product(array.chunks()),
                      bytes = array::saturating_mul(std::max<std::size_t>(form.type().size, 1), array::product(form.dims));
  if (bytes > max_bytes || count > memory / (64 + 8 * array.shape().size()))
    throw unsupported_in_hdf5(
        reason_code::unsupported_type,
        "a fill value that HDF5 cannot have, so it has to be written, in more than 4 GiB or too many chunks");
  std::vector<chunk_index> chunks;
  array::for_each_index({array::extents(array.chunks().size(), 0), array.chunks()},
                        [&](const chunk_index& index) { chunks.push_back(index); });
  std::sort(chunks.begin(), chunks.end(),
            [&](const chunk_index& a, const chunk_index& b) { return array.in_storage_order(a, b); });
  return chunks;
}

// The size of the longest chunk of an array whose values have a fixed length.
std::uint64_t bytes_of_longest(const source_array& array) {
  return std::min(array::saturating_mul(array.type().size, array::product(array.chunk_shape())), UINT64_MAX / 4);
}

// Where a chunk of the store begins in the dataset.
std::vector<hsize_t> offset_of(const source_array& array, const chunk_index& chunk, std::size_t rank) {
  std::vector<hsize_t> result(rank);
  for (std::size_t i = 0; i < std::min(rank, chunk.size()); ++i) result[i] = array.grid(i).start(chunk[i]);
  return result;
}

// Some of the chunks' elements, as chunk_plan::encode() takes them; none if they are damaged, or if they are few: these are
// encoded in the time of a trial.
std::vector<std::vector<std::byte>> samples_of(const source_array& array, const std::vector<chunk_index>& chunks) {
  constexpr std::size_t min_chunks_for_trial = 32;
  std::vector<std::vector<std::byte>> samples;
  if (chunks.size() < min_chunks_for_trial) return samples;
  for (const std::size_t i : {chunks.size() / 3, 2 * chunks.size() / 3}) {
    try {
      auto stored = array.read_stored(chunks[i]);
      if (!stored) continue;
      zarr::element_buffer values;
      array.decode(chunks[i], std::move(*stored), values);
      samples.push_back(std::move(values.data));
    } catch (const zarr::store_error&) {  // said when it is written
    } catch (const compressors::corrupt_chunk&) {
    }
  }
  return samples;
}

// A chunk on its way from the store into the file.
struct prepared_chunk {
  encoded_chunk encoded;
  std::uint64_t stored_size = 0;
  bool exists = false;
  std::string damage;  // of one that is left out
};

// Copies of an array for several threads: each copy keeps a shard open.
class array_copies {
 public:
  explicit array_copies(const source_array& array) : array_(array) {}
  source_array take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return array_;
    source_array copy = std::move(idle_.back());
    idle_.pop_back();
    return copy;
  }
  void put_back(source_array copy) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(copy));
  }

 private:
  const source_array& array_;
  std::mutex mutex_;
  std::vector<source_array> idle_;
};

// The chunks of a dataset.
class chunk_series {
 public:
  // `cut`: null if the chunks are those of the store.
  chunk_series(hid_t dataset, const source_array& array, const dataset_spec& form, const chunk_plan& recipe, bool writes_fill,
               const std::vector<chunk_index>& chunks, const regridder* cut, bool keep_going)
      : dataset_(dataset),
        arrays_(array),
        spec_(form),
        plan_(recipe),
        writes_fill_(writes_fill),
        chunks_(chunks),
        regridder_(cut),
        keep_going_(keep_going) {}

  // In any thread.
  prepared_chunk prepare(std::size_t i) {
    source_array array = arrays_.take();
    prepared_chunk result;
    try {
      if (regridder_) {
        if (auto elements = regridder_->elements(array, i, result.stored_size)) {
          result.exists = true;
          result.encoded = plan_.encode(std::move(*elements));
        }
      } else if (auto stored = array.read_stored(chunks_[i])) {
        result.exists = true;
        result.stored_size = stored->size();
        result.encoded = plan_.make(array, chunks_[i], std::move(*stored));
      }
      if (!result.exists && writes_fill_) {
        result.exists = true;
        result.encoded = plan_.encode(
            conversion::filled(array::product(spec_.chunk) / std::max<std::size_t>(spec_.characters, 1), array.fill()).data);
      }
    } catch (const zarr::store_error& e) {
      if (!keep_going_ && e.code != errc::damaged_store) throw;  // of a server
      if (!keep_going_) refuse(regridder_ ? nullptr : &array, chunks_[i], e.what());
      result.damage = e.what();
    } catch (const compressors::corrupt_chunk& e) {
      if (!keep_going_) refuse(regridder_ ? nullptr : &array, chunks_[i], e.what());
      result.damage = e.what();
    }
    arrays_.put_back(std::move(array));
    return result;
  }

  // In one thread, in order.
  void write(std::size_t i, const prepared_chunk& chunk) {
    if (!chunk.damage.empty()) {
      written_.lost_chunks.emplace_back(chunks_[i], chunk.damage);
    } else if (chunk.exists) {
      std::vector<hsize_t> offset(spec_.dims.size());
      for (std::size_t d = 0; d < std::min(offset.size(), chunks_[i].size()); ++d) offset[d] = chunks_[i][d] * spec_.chunk[d];
      const auto bytes = chunk.encoded.bytes();
      {
        const hdf5::lock libhdf5;
        hdf5::check(H5Dwrite_chunk(dataset_, H5P_DEFAULT, 0, offset.data(), bytes.size(), bytes.data()), "write a chunk");
      }
      ++written_.count;
      written_.any_recoded = written_.any_recoded || chunk.encoded.is_recoded;
      written_.store_bytes += chunk.stored_size;
      written_.file_bytes += bytes.size();
    }
  }
  written_chunks take_result() { return std::move(written_); }

 private:
  hid_t dataset_;
  array_copies arrays_;
  const dataset_spec& spec_;
  const chunk_plan& plan_;
  const bool writes_fill_;
  const std::vector<chunk_index>& chunks_;
  const regridder* regridder_;
  const bool keep_going_;
  written_chunks written_;
};

// Brings the elements of a chunk into the form that libhdf5 takes. Elements beyond the edge of the array stay zeros.
void put_chunk(const dataset_spec& form, const source_array& array, const zarr::element_buffer& values,
               const std::vector<std::uint64_t>& shape, const array::extents& count, std::vector<std::byte>& out,
               reference_maker& references, value_arena& arena) {
  const std::size_t size = form.element.size;
  if (form.same_layout) {
    std::memcpy(out.data(), values.data.data(), std::min(out.size(), values.data.size()));
    set_order(form.element, out.data(), out.size() / size);
    return;
  }
  const zarr::zarr_type& type = array.type();
  const array::extents zero(shape.size(), 0);
  array::extents inside = shape;  // extents of the part in the array
  std::copy(count.begin(), count.end(), inside.begin());
  array::for_each_run({zero, shape}, {zero, shape}, {zero, inside}, [&](std::uint64_t first, std::uint64_t, std::uint64_t n) {
    for (std::size_t i = static_cast<std::size_t>(first); i < first + n; ++i) {
      std::byte* target = out.data() + i * size;
      if (type.variable()) write_text_value(form.element, values.strings[i], target, references, arena);
      else write_element(form.element, type, values.data.data() + i * type.size, target, references, arena);
    }
  });
}

}  // namespace

written_chunks write_chunks(hid_t dataset, const source_array& array, const dataset_spec& form, chunk_plan recipe,
                            const export_options& options, const chunk_progress& progress) {
  const bool writes_fill = must_write_fill(array, form);
  std::vector<chunk_index> chunks =
      writes_fill ? all_chunks(array, form, options.memory / 4) : existing_chunks(array, options.memory / 4);
  std::optional<regridder> cut;
  if (!array.is_regular()) {
    cut.emplace(array, form, std::move(chunks), options.memory / 4);
    chunks = cut->chunks();
  }
  if (!cut && recipe.may_deflate_faster()) recipe.deflate_faster_if_no_larger(samples_of(array, chunks));
  std::uint64_t bytes = H5Tget_size(form.type().file);
  for (const std::uint64_t extent : form.chunk) bytes *= extent;
  if (cut) bytes = std::max(bytes, bytes_of_longest(array));
  if (cut && bytes > options.memory / 3)
    throw unsupported_in_hdf5(reason_code::too_large, "a chunk that takes more than a third of `memory`; increase it");
  // each thread has a chunk at most three times in memory (stored, decoded, encoded), and two of its results may wait
  const std::uint64_t max_threads = std::max<std::uint64_t>(1, options.memory / 2 / std::max<std::uint64_t>(5 * bytes, 1));
  const std::uint64_t threads = std::min({std::uint64_t{hdf5::detail::threads_or_all(options.threads)}, max_threads,
                                          std::uint64_t{256}, std::uint64_t{(chunks.size() + 3) / 4}});
  chunk_series series(dataset, array, form, recipe, writes_fill, chunks, cut ? &*cut : nullptr, options.keep_going);
  hdf5::detail::ordered_work work(chunks.size(), static_cast<std::size_t>(std::max<std::uint64_t>(threads, 1)));
  std::vector<prepared_chunk> prepared(work.places());
  work.make_then_use([&](std::size_t i, std::size_t place) { prepared[place] = series.prepare(i); },
                     [&](std::size_t i, std::size_t place) {
    series.write(i, std::exchange(prepared[place], {}));
    progress(i + 1, chunks.size());
  });
  return series.take_result();
}

written_chunks write_values(hid_t dataset, const source_array& array, const dataset_spec& form, const export_options& options,
                            reference_maker& references, const chunk_progress& progress) {
  if (form.type().must_be_written_alone())
    throw unsupported_in_hdf5(reason_code::unsupported_type, "arrays of compounds with strings in them");
  const bool writes_fill = must_write_fill(array, form);
  const std::vector<chunk_index> chunks =
      writes_fill ? all_chunks(array, form, options.memory / 4) : existing_chunks(array, options.memory / 4);
  const std::size_t rank = form.dims.size();
  if (array::product(array.chunk_shape()) > options.memory / 2 / std::max<std::size_t>(form.element.size, 1))
    throw unsupported_in_hdf5(reason_code::too_large, "a chunk that takes more than half of `memory`; increase it");
  const hdf5::handle in_file(H5Dget_space(dataset), "get a dataspace");
  value_arena arena(options.memory / 4);
  written_chunks written;
  zarr::element_buffer values;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    std::optional<std::vector<std::byte>> stored;
    std::uint64_t stored_size = 0;
    try {
      stored = array.read_stored(chunks[i]);
      if (!stored && !writes_fill) continue;
      stored_size = stored ? stored->size() : 0;
      if (stored) array.decode(chunks[i], std::move(*stored), values);
      else values = conversion::filled(array::product(array.shape_of(chunks[i])), array.fill());
    } catch (const zarr::store_error& e) {
      if (!options.keep_going && e.code != errc::damaged_store) throw;  // of a server
      if (!options.keep_going) refuse(&array, chunks[i], e.what());
      written.lost_chunks.emplace_back(chunks[i], e.what());
      continue;
    }
    std::vector<std::uint64_t> shape = array.shape_of(chunks[i]);
    if (form.characters > 0) shape.push_back(form.characters);
    const std::vector<hsize_t> chunk_extents(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(rank));
    const hdf5::handle in_memory(
        rank ? H5Screate_simple(static_cast<int>(rank), chunk_extents.data(), nullptr) : H5Screate(H5S_SCALAR),
        "create a dataspace");
    const std::vector<hsize_t> first = offset_of(array, chunks[i], rank);
    array::extents count(rank);
    for (std::size_t d = 0; d < rank; ++d) count[d] = std::min<std::uint64_t>(chunk_extents[d], form.dims[d] - first[d]);
    arena.clear();
    std::vector<std::byte> out(static_cast<std::size_t>(array::product(shape)) * form.element.size);
    put_chunk(form, array, values, shape, count, out, references, arena);
    if (rank > 0) {
      const std::vector<hsize_t> zero(rank, 0), n = hdf5::to_hsize(count);
      hdf5::check(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, first.data(), nullptr, n.data(), nullptr), "select values");
      hdf5::check(H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, zero.data(), nullptr, n.data(), nullptr), "select values");
    }
    hdf5::check(H5Dwrite(dataset, form.type().memory, in_memory, in_file, H5P_DEFAULT, out.data()), "write values");
    ++written.count;
    written.store_bytes += stored_size;
    progress(i + 1, chunks.size());
  }
  hdf5::check(H5Dflush(dataset), "write values");  // H5Dget_storage_size writes them, too, and cannot say that it failed
  if (written.count > 0) written.file_bytes = H5Dget_storage_size(dataset);
  return written;
}

}  // namespace zarrbits::exporting
