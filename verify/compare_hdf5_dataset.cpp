// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_hdf5_dataset.hpp"

#include "hdf5/chunk_index.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/registered_decoders.hpp"
#include "verify/blocks.hpp"
#include "verify/compare_hdf5_attributes.hpp"
#include "verify/compare_hdf5_chunks.hpp"
#include "verify/compare_metadata.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_pair_element = 1u << 30;
constexpr std::uint64_t max_whole_chunk = 256u << 20;  // of a chunk that is read at once
constexpr std::uint64_t max_visited_blocks = 1u << 22;

std::uint64_t bytes_of(const std::vector<std::uint64_t>& shape, std::uint64_t element) {
  const std::uint64_t factors[] = {product(shape), element};
  return product(std::begin(factors), std::end(factors));
}

std::vector<std::uint64_t> grid_of(const std::vector<std::uint64_t>& dims, const std::vector<std::uint64_t>& block) {
  std::vector<std::uint64_t> grid(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) grid[d] = (dims[d] - 1) / block[d] + 1;
  return grid;
}

}  // namespace

hdf5_dataset_comparison::hdf5_dataset_comparison(hid_t first, hid_t second, const hdf5_context& context, finding& f)
    : context_(context), f_(f), first_{first, context.first, ""}, second_{second, context.second, " in the second file"} {}

void hdf5_dataset_comparison::run() {
  try {
    if (!open(first_) || !open(second_) || !compare_description()) return;
    compare_elements();
  } catch (const zarr::not_supported& e) {
    add_reason(f_, verdict::unreadable, std::string("cannot be compared: this reader does not support ") + e.what());
  } catch (const std::runtime_error& e) {  // source_error, hdf5::failure, io::read_error
    add_reason(f_, verdict::unreadable, std::string("cannot be compared: ") + e.what());
  }
}

// False if not even the extent is known.
bool hdf5_dataset_comparison::open(side& s) {
  const auto needs = hdf5::find_external_dependencies(s.id, *s.file.policy());
  if (!needs.obstacle.empty() || needs.refused > 0) {
    add_reason(
        f_, verdict::unreadable,
        "cannot be read" + std::string(s.name) + ": " +
            (needs.obstacle.empty() ? "one of its sources must not be read: " + needs.refusal_reason : needs.obstacle.sentence));
    return false;
  }
  s.type = checked(H5Dget_type(s.id), "cannot read the datatype");
  s.properties = checked(H5Dget_create_plist(s.id), "cannot read the properties");
  s.space = checked(H5Dget_space(s.id), "cannot read the dataspace");
  hdf5::register_decoders(s.properties.get());
  s.layout = H5Pget_layout(s.properties.get());
  if (s.layout == H5D_CHUNKED) s.chunk = hdf5::chunk_extent(s.properties.get());
  s.stored_bytes = H5Dget_storage_size(s.id);
  if (s.layout == H5D_VIRTUAL)
    s.is_stored = std::any_of(needs.sources.begin(), needs.sources.end(), [](const auto& v) { return v.is_available; });
  else s.is_stored = s.stored_bytes > 0 || H5Pget_external_count(s.properties.get()) > 0;
  H5Eclear2(H5E_DEFAULT);
  return true;
}

// Compares type, shape and fill value. False if the elements cannot be compared.
bool hdf5_dataset_comparison::compare_description() {
  bool is_comparable = true;
  std::string reason = datatype_difference(first_.type.get(), second_.type.get());
  if (!reason.empty()) is_comparable = false;
  else reason = context_.elements.named_type_difference(first_.type.get(), second_.type.get());
  if (!reason.empty()) add_reason(f_, verdict::differs, "has a different type: " + reason);
  reason = dataspace_difference(first_.space.get(), second_.space.get(), context_.compares_maximum);
  if (!reason.empty()) add_reason(f_, verdict::differs, reason);
  if (H5Sget_simple_extent_type(first_.space.get()) != H5Sget_simple_extent_type(second_.space.get())) return false;
  if (H5Sget_simple_extent_type(first_.space.get()) != H5S_NULL) {
    dims_ = extent_of(first_.space.get());
    is_comparable = is_comparable && dims_ == extent_of(second_.space.get());
  }
  if (!is_comparable) return false;
  form_ = form_of(first_.type.get());
  memory_ = source_type_of(form_);
  if (form_.size > max_pair_element) throw zarr::not_supported(reason_code::too_large, "elements of more than 1 GiB");
  compare_fill();
  return H5Sget_simple_extent_type(first_.space.get()) != H5S_NULL;
}

void hdf5_dataset_comparison::compare_fill() {
  const auto state_of = [](const side& s) {
    H5D_fill_value_t state = H5D_FILL_VALUE_ERROR;
    check(H5Pfill_value_defined(s.properties.get(), &state), "cannot read the fill value");
    return state;
  };
  const auto name_of = [](H5D_fill_value_t state) -> std::string {
    return state == H5D_FILL_VALUE_UNDEFINED ? "none" : state == H5D_FILL_VALUE_DEFAULT ? "the default" : "one that was set";
  };
  const H5D_fill_value_t state = state_of(first_), other_state = state_of(second_);
  if (state != other_state)
    return add_reason(f_, verdict::differs, in_both("has another fill value: " + name_of(state), name_of(other_state)));
  if (state != H5D_FILL_VALUE_USER_DEFINED) return;
  source_values fill(memory_, first_.type.get()), other_fill(memory_, second_.type.get());
  fill.read_fill(first_.properties.get());
  other_fill.read_fill(second_.properties.get());
  difference d;
  if (context_.elements.compare(form_, fill.data(), other_fill.data(), d) != likeness::equal)
    add_reason(f_, verdict::differs,
               in_both("has another fill value" + (d.field.empty() ? "" : " in " + d.field) + ": " + d.source, d.store));
}

void hdf5_dataset_comparison::compare_elements() {
  const std::uint64_t total = product(dims_);
  if (total == 0) return;
  values_ = std::make_unique<source_values>(memory_, first_.type.get(), context_.memory);
  other_values_ = std::make_unique<source_values>(memory_, second_.type.get(), context_.memory);
  const index shape = block_shape(), grid = grid_of(dims_, shape);
  std::vector<std::uint64_t> numbers;
  const bool is_listed = list_blocks(first_, shape, numbers) && list_blocks(second_, shape, numbers);
  if (!is_listed && product(grid) > max_visited_blocks)
    throw zarr::not_supported(reason_code::too_large, "datasets of more than " + std::to_string(max_visited_blocks) +
                                                          " blocks of " + std::to_string(bytes_of(shape, form_.size)) + " bytes");
  const auto compare_number = [&](std::uint64_t number) {
    index start(dims_.size()), count(dims_.size());
    for (std::size_t d = dims_.size(); d-- > 0; number /= grid[d]) {
      start[d] = number % grid[d] * shape[d];
      count[d] = std::min(shape[d], dims_[d] - start[d]);
    }
    const std::uint64_t limit = std::max(context_.memory, std::min(bytes_of(shape, form_.size), max_whole_chunk));
    return for_each_block(start, count, std::max<std::uint64_t>(1, limit / form_.size),
                          [&](const index& first, const index& n) { return compare_block(first, n); });
  };
  bool is_equal = true;
  try {
    if (is_listed) {
      std::sort(numbers.begin(), numbers.end());
      numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      for (std::size_t i = 0; is_equal && i < numbers.size(); ++i) is_equal = compare_number(numbers[i]);
    } else {
      for (std::uint64_t i = 0; is_equal && i < product(grid); ++i) is_equal = compare_number(i);
    }
  } catch (const source_error& e) {
    // equal bytes are equal values, also those that no filter can decode
    const bool is_same = !form_.has_variable_parts() && !form_.has_references() && first_.layout == H5D_CHUNKED &&
                         second_.layout == H5D_CHUNKED &&
                         has_same_stored_chunks({first_.id, first_.properties.get(), first_.file},
                                                {second_.id, second_.properties.get(), second_.file}, dims_);
    if (!is_same) throw;
  }
  if (is_equal) elements_ = total;
}

// A block has whole chunks of both files where that fits into memory: otherwise libhdf5 would decode each several times.
hdf5_dataset_comparison::index hdf5_dataset_comparison::block_shape() const {
  const std::size_t rank = dims_.size();
  index shape(rank, 1);
  for (const side* s : {&first_, &second_}) {
    for (std::size_t d = 0; d < std::min(rank, s->chunk.size()); ++d) shape[d] = std::max(shape[d], s->chunk[d]);
  }
  for (std::size_t d = 0; d < rank; ++d) shape[d] = std::min(shape[d], dims_[d]);
  for (std::size_t d = rank; d-- > 0;) {
    const std::uint64_t factor = context_.memory / std::max<std::uint64_t>(1, bytes_of(shape, form_.size));
    if (factor < 2) break;
    shape[d] = shape[d] > dims_[d] / factor ? dims_[d] : shape[d] * factor;
  }
  return shape;
}

// Adds the blocks in which a dataset has stored elements. False if they are too many to list, or if reading all costs no more.
bool hdf5_dataset_comparison::list_blocks(const side& s, const index& shape, std::vector<std::uint64_t>& numbers) const {
  if (!s.is_stored) return true;
  const std::uint64_t bytes = bytes_of(dims_, form_.size);
  if (s.chunk.size() != dims_.size() || bytes <= 8 * context_.memory || bytes / 4 <= s.stored_bytes) return false;
  const index grid = grid_of(dims_, shape);
  if (product(grid) == UINT64_MAX) throw zarr::not_supported(reason_code::too_large, "datasets of more than 2^64 blocks");
  const array::chunk_grid chunks{dims_, s.chunk};
  const array::chunk_grid each_chunk = array::shards_of(chunks);
  bool is_listed = true;
  hdf5::for_each_stored_chunk(s.id, chunks, each_chunk, 0, each_chunk.chunks(), [&](const index& chunk, std::uint64_t) {
    index first(dims_.size()), count(dims_.size());
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const std::uint64_t start = chunk[d] * s.chunk[d], end = start + std::min(s.chunk[d], dims_[d] - start);
      first[d] = start / shape[d];
      count[d] = (end - 1) / shape[d] + 1 - first[d];
    }
    for_each_block(first, count, 1, [&](const index& position, const index&) {
      std::uint64_t number = 0;
      for (std::size_t d = 0; d < dims_.size(); ++d) number = number * grid[d] + position[d];
      if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
      return is_listed = numbers.size() <= max_visited_blocks;
    });
    return is_listed;
  });
  return is_listed;
}

void hdf5_dataset_comparison::read_block(const index& start, const index& count) {
  values_->read(first_.id, start, count);
  try {
    other_values_->read(second_.id, start, count);
  } catch (const source_error& e) {
    throw source_error(std::string("in the second file, ") + e.what());
  }
}

// False at the first difference.
bool hdf5_dataset_comparison::compare_block(const index& start, const index& count) {
  if (can_read_block(start, count)) return compare_values(start, count);
  if (const std::uint64_t n = product(count); n > 1)
    return for_each_block(start, count, (n + 1) / 2,
                          [&](const index& first, const index& half) { return compare_block(first, half); });
  // an element of long texts or sequences is compared alone, with the limit of source_values
  auto values = std::make_unique<source_values>(memory_, first_.type.get());
  auto other_values = std::make_unique<source_values>(memory_, second_.type.get());
  values.swap(values_);
  other_values.swap(other_values_);
  read_block(start, count);
  const bool is_equal = compare_values(start, count);
  values.swap(values_);
  other_values.swap(other_values_);
  return is_equal;
}

// False if the texts and sequences of the block are too large for the memory.
bool hdf5_dataset_comparison::can_read_block(const index& start, const index& count) {
  try {
    read_block(start, count);
    return true;
  } catch (const zarr::not_supported&) {
    return false;
  }
}

bool hdf5_dataset_comparison::compare_values(const index& start, const index& count) {
  const std::uint64_t n = product(count);
  context_.report_progress(n * form_.size);
  const std::byte *a = values_->data(), *b = other_values_->data();
  if (form_.is_plain() && std::memcmp(a, b, n * form_.size) == 0) {
    elements_ += n;
    return true;
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    difference d;
    if (context_.elements.compare(form_, a + i * form_.size, b + i * form_.size, d) == likeness::equal) continue;
    elements_ += i;
    report_element(start, count, i, d);
    return false;
  }
  elements_ += n;
  return true;
}

void hdf5_dataset_comparison::report_element(const index& start, const index& count, std::uint64_t number, const difference& d) {
  f_.has_index = true;
  f_.index = start;
  for (std::size_t i = count.size(); i-- > 0; number /= count[i]) f_.index[i] += number % count[i];
  f_.field = d.field;
  f_.source_value = d.source;
  f_.store_value = d.store;
  add_reason(
      f_, verdict::differs,
      in_both("has another value at " + join(f_.index) + (d.field.empty() ? "" : " in " + d.field) + ": " + d.source, d.store));
}

}  // namespace zarrbits::verification
