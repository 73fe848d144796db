// SPDX-License-Identifier: BSL-1.0
#include "check/dataset_chunks.hpp"

#include "hdf5/external_files.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/format.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace zarrbits::checking {

namespace {

constexpr std::uint64_t piece_bytes = 4U << 20;  // of values without chunks

// A dataset that changes while it is used would be another one: the grid is set once.
hdf5::source_dataset opened(hdf5::source_file& file, const hdf5::source_object& object, array::chunk_grid& grid) {
  hdf5::opened_dataset dataset(file, object);
  grid.shape = dataset.dims;
  grid.chunk = dataset.layout == H5D_CHUNKED
                   ? dataset.chunk_in_file
                   : array::chunk_shape_for(dataset.dims, std::max<std::uint64_t>(dataset.element_size, 1), piece_bytes);
  return hdf5::source_dataset(std::move(dataset));
}

}  // namespace

dataset_chunks::dataset_chunks(hdf5::source_file& file, const hdf5::source_object& object)
    : data_(opened(file, object, grid_)),
      is_variable_(hdf5::holds_variable(data_.type)),
      has_unknown_type_(!hdf5::unsupported_reason(data_.type).empty()) {
  result_.path = object.path;
  if (data_.null || data_.layout == H5D_VIRTUAL) return;  // the sources have the values
  if (grid_.chunk.size() != grid_.shape.size() || array::product(grid_.chunk) == 0)
    throw hdf5::failure("its chunks do not fit its dataspace");
  result_.chunks = grid_.chunks();
}

std::uint64_t dataset_chunks::element_bytes() const { return std::max<std::uint64_t>(data_.element_size, data_.type.size); }

void dataset_chunks::list(std::uint64_t max_chunks) {
  if (data_.null || result_.chunks == 0) {
    is_listed_ = true;
    return;
  }
  const auto add = [&](const array::extents& index, std::uint64_t bytes) {
    if (chunks_.size() >= max_chunks)
      throw zarr::not_supported(reason_code::too_large,
                                "a dataset of more than " + text::pluralize(max_chunks, "chunk") + "; increase `memory`");
    chunks_.push_back({array::ravel(index, grid_.counts()), bytes});
  };
  if (is_chunked()) {
    try {
      hdf5::for_each_stored_chunk(data_.dataset, grid_, add);
    } catch (const hdf5::failure& e) {
      if (e.code != reason_code::too_large) throw;  // few chunks in a grid that is far too large to look at
      throw hdf5::unsupported_dataset(e.code, e.what());
    }
  } else if (!data_.dependencies->obstacle.empty()) {
    throw hdf5::unsupported_dataset(data_.dependencies->obstacle);
  } else if (!data_.nothing_stored()) {
    if (result_.chunks > max_chunks)
      throw zarr::not_supported(
          reason_code::too_large,
          "a dataset of more than " + text::format_bytes(array::saturating_mul(max_chunks, piece_bytes)) + "; increase `memory`");
    for (std::uint64_t i = 0; i < result_.chunks; ++i) chunks_.push_back({i, grid_.chunk_elements() * data_.element_in_file});
  }
  stored_chunks_ = chunks_.size();
  is_listed_ = true;
}

void dataset_chunks::submit(io::thread_pool& pool, std::uint64_t memory, const std::function<void(std::uint64_t)>& progress) {
  const std::uint64_t decoded = array::saturating_mul(array::product(grid_.chunk), element_bytes());
  const auto failure = read_failure_of([&] {
    if (decoded > memory)
      throw zarr::not_supported(reason_code::too_large, "chunks of " + text::format_bytes(decoded) + "; increase `memory`");
    if (!is_chunked()) return;
    if (const std::string names = data_.filters.unavailable_filters(data_.type); !names.empty())
      throw hdf5::missing_filter(names);
  });
  if (failure && !chunks_.empty()) {
    results_.add_failure(0, "", *failure);
    return;
  }
  const std::uint64_t strings = is_variable_ ? memory / 8 : 0;
  for_each_batch(chunks_, [&](std::vector<listed_chunk> batch, std::uint64_t bytes, std::uint64_t largest) {
    pool.submit(2 * decoded + largest + strings, [this, memory, chunks = std::move(batch)] { check_chunks(chunks, memory); });
    progress(bytes);
  });
}

void dataset_chunks::check_chunks(const std::vector<listed_chunk>& batch, std::uint64_t memory) {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;  // of this thread
  for (const listed_chunk& chunk : batch) {
    const array::extents index = array::unravel(chunk.number, grid_.counts());
    auto failure = read_failure_of([&] { check_chunk(index, memory); });
    if (failure) results_.add_failure(chunk.number, is_chunked() ? array::joined_text(index, '/') : "", std::move(*failure));
    else results_.add_checked(1, chunk.bytes);
  }
}

void dataset_chunks::check_chunk(const array::extents& index, std::uint64_t memory) const {
  const array::extents first = grid_.start(index), count = grid_.inside(index);
  if (has_unknown_type_) return read_with_libhdf5(first, count);
  if (!is_variable_ && is_chunked()) {
    const hdf5::lock::unlock_guard unlocked;
    data_.decoded_chunk(first);
    return;
  }
  hdf5::vlen_allocator strings(memory / 8);
  const bool as_stored = !is_variable_;
  const std::size_t size = as_stored ? data_.element_size : data_.type.size;
  compressors::buffer values(static_cast<std::size_t>(array::product(count) * size));
  try {
    data_.read_block(as_stored ? data_.stored_type.get() : data_.type.memory.get(), size, first, count, count, values,
                     as_stored ? nullptr : &strings);
  } catch (const hdf5::failure&) {
    if (!strings.exceeded()) throw;
    throw zarr::not_supported(reason_code::too_large, "a chunk whose strings or sequences take more than " +
                                                          text::format_bytes(memory / 8) + "; increase `memory`");
  }
}

void dataset_chunks::read_with_libhdf5(const array::extents& first, const array::extents& count) const {
  compressors::buffer values(static_cast<std::size_t>(array::product(count) * data_.element_size));
  if (first.empty()) {
    hdf5::check_read(H5Dread(data_.dataset, data_.stored_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), data_.dataset,
                     "read the values");
    return;
  }
  const hdf5::handle file_space(H5Scopy(data_.space), "copy a dataspace"),
      memory_space(H5Screate_simple(static_cast<int>(count.size()), hdf5::to_hsize(count).data(), nullptr), "create a dataspace");
  hdf5::check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, hdf5::to_hsize(first).data(), nullptr, hdf5::to_hsize(count).data(),
                                  nullptr),
              "select a block");
  hdf5::check_read(H5Dread(data_.dataset, data_.stored_type, memory_space, file_space, H5P_DEFAULT, values.data()), data_.dataset,
                   "read the values");
}

checked_array dataset_chunks::report(const integrity_options& options, finding_list& findings) {
  const std::uint64_t unlisted =
      is_listed_ && reports_metadata(options) ? result_.chunks - std::min(result_.chunks, stored_chunks_) : 0;
  results_.report(result_, unlisted, options.allow_missing, findings);
  return result_;
}

}  // namespace zarrbits::checking
