// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/chunk_transcoder.hpp"

#include "array/chunk_grid.hpp"
#include "codecs/vlen_encoder.hpp"
#include "compressors/blosc.hpp"
#include "compressors/crc32c.hpp"
#include "compressors/deflate.hpp"
#include "compressors/fletcher32.hpp"
#include "compressors/lz4.hpp"
#include "compressors/zstd.hpp"
#include "convert/from_hdf5/compress.hpp"
#include "hdf5/file_references.hpp"
#include "hdf5/flat_struct.hpp"
#include "metadata/array_metadata.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

using strategy = array_plan::strategy_type;

void reverse_each(compressors::buffer& values, std::size_t unit) {
  for (std::size_t i = 0; i + unit <= values.size(); i += unit) {
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + unit));
  }
}

}  // namespace

std::string format_index(const array::extents& index) {
  std::string s = "[";
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i) s += ", ";
    s += std::to_string(index[i]);
  }
  return s + "]";
}

void chunk_transcoder::require_size(const compressors::buffer& stored, std::size_t size) const {
  if (stored.size() != size)
    throw compressors::corrupt_chunk("it holds " + text::pluralize(stored.size(), "byte") + " instead of " +
                                     std::to_string(size));
}

std::optional<encoded_chunk> chunk_transcoder::from_stored(compressors::buffer stored, unsigned mask,
                                                           const array::extents& chunk_index) const {
  auto chunk = without_checksum(std::move(stored), mask, chunk_index);
  if (chunk && plan_.checksum) {
    compressors::append_crc32c(chunk->bytes);
    chunk->chunk_outcome = std::max(chunk->chunk_outcome, outcome::rewrapped);
  }
  return chunk;
}

encoded_chunk chunk_transcoder::from_values(compressors::buffer values, const array::extents& chunk_index) const {
  encoded_chunk chunk = encoded(std::move(values), chunk_index);
  if (plan_.checksum) compressors::append_crc32c(chunk.bytes);
  return chunk;
}

std::optional<encoded_chunk> chunk_transcoder::without_checksum(compressors::buffer stored, unsigned mask,
                                                                const array::extents& chunk_index) const {
  using step = array_plan::step;
  const step action = plan_.step_for(chunk_index, stored.size(), mask);
  if (action == step::take) return encoded_chunk{std::move(stored), outcome::raw};
  const std::size_t plain_size = static_cast<std::size_t>(plan_.chunk_bytes(chunk_index));
  if (plan_.strategy != strategy::copy_blosc) data_.require_plausible_size(stored.size());
  switch (action) {
    case step::check: return checked(std::move(stored), chunk_index);
    case step::native: return native(std::move(stored), plain_size);
    case step::rewrap: return rewrapped(std::move(stored), mask, chunk_index);
    case step::decode: return decoded(std::move(stored), mask, chunk_index);
    case step::encode:
      if (stored.size() != plain_size) throw compressors::corrupt_chunk("its length differs from the chunk's");
      return encoded(std::move(stored), chunk_index);
    case step::take:
    case step::read: break;
  }
  return {};
}

// The bytes are the chunk; damaged ones are not.
encoded_chunk chunk_transcoder::checked(compressors::buffer stored, const array::extents& chunk_index) const {
  const std::size_t plain_size = static_cast<std::size_t>(plan_.chunk_bytes(chunk_index));
  if (plan_.strategy == strategy::copy) {
    require_size(stored, plain_size);
    check_bools(stored);
  } else if (plan_.strategy == strategy::copy_blosc) {
    compressors::check_blosc(stored, plain_size);
  } else if (plan_.strategy == strategy::packed) {
    throw compressors::corrupt_chunk(
        "packbits: it holds " + text::pluralize(stored.size(), "byte") + " instead of " +
        std::to_string(plan_.packed->encoded_size(data_.grid.chunk_elements(chunk_index) * plan_.view.per_element())));
  } else if (plan_.leaf.kind == hdf5::type_class::boolean || !compressors::check_zstd(stored, plain_size)) {
    compressors::buffer plain = compressors::decompress_zstd(stored, plain_size);
    check_bools(plain);
  }
  return {std::move(stored), outcome::raw};
}

encoded_chunk chunk_transcoder::decoded(compressors::buffer stored, unsigned mask, const array::extents& chunk_index) const {
  const std::size_t plain_size = static_cast<std::size_t>(plan_.chunk_bytes(chunk_index));
  original source{stored.size(), reusable_stream(stored, mask, plain_size)};
  compressors::buffer values = to_memory(hdf5::undo(data_.filters, mask, std::move(stored), plain_size, data_.type));
  if (plan_.packed) clear_beyond_edge(values, chunk_index);
  if (plan_.strategy == strategy::copy && hdf5::has_byte_order(plan_.leaf) && plan_.big_endian != plan_.leaf.big_endian) {
    // the bytes filter was left out for this chunk, so it has the other byte order
    reverse_each(values, plan_.leaf.kind == hdf5::type_class::complex ? plan_.leaf.size / 2 : plan_.leaf.size);
  }
  return encoded(std::move(values), chunk_index, &source);
}

// The chunk's shuffled deflate stream as a buffer of blosc, if the plan is to keep it and the chunk has all of its filters.
compressors::buffer chunk_transcoder::reusable_stream(const compressors::buffer& stored, unsigned mask, std::size_t size) const {
  if (!plan_.keeps_stream || mask != 0) return {};
  const std::vector<hdf5::filter>& filters = data_.filters.filters;
  std::span<const std::byte> zlib = stored;
  if (filters.back().id == H5Z_FILTER_FLETCHER32) {
    if (zlib.size() < 4) return {};
    zlib = zlib.first(zlib.size() - 4);
  }
  const auto shuffle = std::find_if(filters.begin(), filters.end(), [](const hdf5::filter& f) { return !hdf5::is_no_op(f); });
  return compressors::shuffled_zlib_to_blosc(zlib, size, shuffle->values[0]);
}

// A last filter that Zarr readers do not have in this form.
encoded_chunk chunk_transcoder::native(compressors::buffer stored, std::size_t plain_size) const {
  const std::vector<hdf5::filter>& codecs = plan_.native.filters;
  if (data_.filters.filters.back().id == H5Z_FILTER_FLETCHER32) {
    compressors::buffer chunk = stored;
    compressors::drop_fletcher32(chunk);
    if (codecs.size() == data_.filters.filters.size()) {
      // HDF5 before 1.6.3 wrote the checksum's bytes in another order, which Zarr readers do not know
      compressors::append_fletcher32(chunk);
      const outcome chunk_outcome = chunk == stored ? outcome::raw : outcome::rewrapped;
      return {std::move(chunk), chunk_outcome};
    }
    if (codecs.empty()) require_size(chunk, plain_size);
    if (codecs.empty() || codecs.back().id != hdf5::lz4_filter) return {std::move(chunk), outcome::rewrapped};
    stored = std::move(chunk);  // lz4, whose checksum becomes a crc32c
  }
  // lz4; no filter before it changes the size
  if (auto chunk = compressors::lz4_hdf5_to_numcodecs(stored, plain_size)) return {std::move(*chunk), outcome::rewrapped};
  return {compressors::lz4_numcodecs_frame(compressors::decompress_lz4(stored, plain_size)), outcome::recoded};
}

// Undoes the outermost filters first, until the deflate stream itself is the payload.
encoded_chunk chunk_transcoder::rewrapped(compressors::buffer stored, unsigned mask, const array::extents& chunk_index) const {
  const hdf5::pipeline& p = data_.filters;
  const std::size_t plain_size = static_cast<std::size_t>(plan_.chunk_bytes(chunk_index));
  for (std::size_t i = p.filters.size(); i-- > 0;) {
    if (!hdf5::applied(mask, i)) continue;
    if (hdf5::is_no_op(p.filters[i])) continue;
    if (p.filters[i].id == H5Z_FILTER_FLETCHER32) {
      compressors::drop_fletcher32(stored);
      continue;
    }
    bool inner = false;
    for (std::size_t j = 0; j < i; ++j) inner = inner || (hdf5::applied(mask, j) && !hdf5::is_no_op(p.filters[j]));
    if (inner) {  // a checksum inside the compression
      mask |= ~((2U << i) - 1);
      for (std::size_t j = i + 1; j < p.filters.size(); ++j) mask |= 1U << j;
      return encoded(hdf5::undo(p, mask, std::move(stored), plain_size, data_.type), chunk_index);
    }
    compressors::buffer plain;
    compressors::buffer chunk = compressors::zlib_to_gzip(stored, plain_size, plain);
    check_bools(plain);
    return {std::move(chunk), outcome::rewrapped};
  }
  require_size(stored, plain_size);
  check_bools(stored);
  if (plan_.target_compression.kind == compressor::none)
    return {std::move(stored), mask == 0 ? outcome::rewrapped : outcome::raw};
  return encoded(std::move(stored), chunk_index);
}

// A chunk may be unpacked only because the fill value does not fit, which HDF5 has where the chunk reaches over the edge.
void chunk_transcoder::clear_beyond_edge(compressors::buffer& values, const array::extents& chunk_index) const {
  const array::chunk_grid& grid = data_.grid;
  if (!grid.is_partial(chunk_index)) return;
  const array::extents inside = grid.inside(chunk_index), extent = grid.extent(chunk_index);
  const std::size_t size = plan_.view.size;
  array::extents index(grid.rank(), 0);
  for (std::size_t i = 0; i + size <= values.size(); i += size) {
    bool is_beyond = false;
    for (std::size_t d = 0; d < index.size(); ++d) is_beyond = is_beyond || index[d] >= inside[d];
    if (is_beyond) std::memset(values.data() + i, 0, size);
    array::next_index(index, extent);
  }
}

compressors::buffer chunk_transcoder::to_memory(compressors::buffer stored) const {
  if (data_.type.as_stored) return stored;
  const std::size_t stored_size = data_.element_size, n = stored.size() / stored_size;
  stored.resize(n * std::max(stored_size, plan_.view.size));
  compressors::buffer background(stored.size(), std::byte{0});
  const hdf5::lock one_thread;
  hdf5::check(H5Tconvert(data_.stored_type, plan_.view.memory, n, stored.data(), background.data(), H5P_DEFAULT),
              "convert the values");
  stored.resize(n * plan_.view.size);
  return stored;
}

compressors::buffer chunk_transcoder::fill_values(const array::extents& chunk_index) const {
  const array::chunk_grid& grid = data_.grid;
  const std::size_t elements = static_cast<std::size_t>(grid.chunk_elements(chunk_index)), size = plan_.view.size;
  compressors::buffer values(elements * size, std::byte{0});
  // elements beyond the edge, or between the parts, read as fill value; packbits needs a value that fits: 0 beyond the edge
  const bool inside = plan_.is_extended() || data_.has_gaps();
  const bool zero = std::all_of(plan_.fill.begin(), plan_.fill.end(), [](std::byte b) { return b == std::byte{0}; });
  if (!zero && !hdf5::holds_references(plan_.leaf) && (!plan_.packed || inside)) {
    for (std::size_t i = 0; i < elements; ++i) std::memcpy(values.data() + i * size, plan_.fill.data(), size);
  }
  return values;
}

compressors::buffer chunk_transcoder::read_values(const array::extents& chunk_index, hdf5::vlen_allocator* strings) const {
  compressors::buffer values = fill_values(chunk_index);
  if (!is_beyond(chunk_index)) read_box(chunk_index, data_.grid.box_of(chunk_index), values, strings);
  return values;
}

void chunk_transcoder::read_box(const array::extents& chunk_index, const array::box& box, compressors::buffer& values,
                                hdf5::vlen_allocator* strings) const {
  const array::extents chunk_start = data_.grid.start(chunk_index);
  array::extents corner(box.first.size());
  for (std::size_t d = 0; d < corner.size(); ++d) corner[d] = box.first[d] - chunk_start[d];
  if (std::all_of(corner.begin(), corner.end(), [](std::uint64_t n) { return n == 0; })) corner.clear();
  data_.read_block(plan_.view.memory, plan_.view.size, box.first, box.shape, data_.grid.extent(chunk_index), values, strings,
                   corner);
}

std::optional<compressors::buffer> chunk_transcoder::read_parts(const array::extents& chunk_index) const {
  if (is_beyond(chunk_index) || has_strings()) return {};
  compressors::buffer values = fill_values(chunk_index);
  const compressors::buffer fill = values;
  const array::box chunk{data_.grid.start(chunk_index), data_.grid.extent(chunk_index)};
  bool any_read = false;
  const auto leave_out = [&](const array::box& part) {  // it may have been read in part
    array::copy_elements(fill, chunk, values, chunk, part, plan_.view.size);
  };
  data_.for_each_stored_part(data_.grid.box_of(chunk_index), [&](const array::box& part) {
    try {
      read_box(chunk_index, part, values, nullptr);
      any_read = true;
    } catch (const hdf5::failure&) {
      leave_out(part);
    } catch (const compressors::corrupt_chunk&) {
      leave_out(part);
    }
  });
  return any_read ? std::optional(std::move(values)) : std::nullopt;
}

// Whether the array has the chunk, and the dataset no element of it.
bool chunk_transcoder::is_beyond(const array::extents& chunk_index) const {
  if (!plan_.is_extended()) return false;
  const array::extents first = data_.grid.start(chunk_index);
  for (std::size_t d = 0; d < first.size(); ++d) {
    if (first[d] >= data_.grid.shape[d]) return true;
  }
  return false;
}

// Bytes of the whole chunk in memory.
std::uint64_t chunk_transcoder::plain_bytes() const {
  return array::product(array::extents{data_.grid.chunk_elements(), std::max(data_.element_size, plan_.view.size)});
}

std::uint64_t chunk_transcoder::memory_from_stored(std::uint64_t stored) const {
  switch (plan_.strategy) {
    case strategy::copy:
    case strategy::packed:
    case strategy::copy_blosc:
    case strategy::copy_native: {
      const bool checksum =
          plan_.checksum || (!data_.filters.empty() && data_.filters.filters.back().id == H5Z_FILTER_FLETCHER32);
      return checksum ? 2 * stored : stored;  // appending the checksum may move it
    }
    case strategy::copy_zstd: return stored + plain_bytes();
    case strategy::rewrap: return 2 * stored + plain_bytes();
    case strategy::decode:
    case strategy::read: break;
  }
  // each step has its input and its output
  return (plan_.keeps_stream ? 2 * stored : stored) + 2 * plain_bytes();
}

// libhdf5 has the stored chunk and the decoded one, and copies from that.
std::uint64_t chunk_transcoder::memory_from_read() const { return 2 * plain_bytes() + plain_bytes() / 2; }

std::uint64_t chunk_transcoder::memory() const {
  if (plan_.chunk_origin() == array_plan::origin::chunks && plan_.strategy != strategy::read)
    return memory_from_stored(std::min(data_.stored_bytes, plain_bytes()));
  return data_.layout == H5D_CONTIGUOUS && plan_.strategy == strategy::copy ? 0 : memory_from_read();  // 0: copied by the kernel
}

bool chunk_transcoder::is_all_fill(const compressors::buffer& values) const {
  if (hdf5::holds_references(plan_.leaf)) return false;
  for (std::size_t i = 0; i < values.size(); i += plan_.view.size) {
    if (std::memcmp(values.data() + i, plan_.fill.data(), plan_.view.size) != 0) return false;
  }
  return true;
}

encoded_chunk chunk_transcoder::encoded(compressors::buffer values, const array::extents& chunk_index, original* source) const {
  encoded_chunk chunk{{}, outcome::recoded};
  if (plan_.text) {
    encode_text(chunk, values);
    compress(chunk, std::move(chunk.bytes), source);
    return chunk;
  }
  if (plan_.leaf.kind == hdf5::type_class::compound && plan_.strategy != strategy::copy) {
    hdf5::unify_byte_order(plan_.leaf, values.data(), values.size() / plan_.leaf.size, plan_.big_endian);
  }
  if (plan_.flat) encode_flat(chunk, values);
  check_bools(values);
  if (plan_.packed) encode_packed(values, chunk_index);
  compress(chunk, std::move(values), source);
  return chunk;
}

void chunk_transcoder::encode_text(encoded_chunk& chunk, const compressors::buffer& values) const {
  const hdf5::type_description& leaf = plan_.leaf;
  constexpr std::uint64_t max_text_bytes = 256U << 20;
  std::uint64_t regions = 0;
  codecs::vlen_encoder strings;
  hdf5::file_references references(data_.file, data_.dataset);
  for (std::size_t i = 0; i + leaf.size <= values.size(); i += leaf.size) {
    const std::byte* p = values.data() + i;
    if (leaf.kind == hdf5::type_class::text) {
      const std::string_view s = hdf5::text_of(leaf, p);
      if (plan_.assumed.text_is_utf8 && !text::is_utf8(s)) throw wrong_assumption{&assumptions::text_is_utf8};
      strings.add(s);
      continue;
    }
    const hdf5::lock one_thread;
    const text::json target = leaf.kind == hdf5::type_class::object_reference ? references.object(p) : references.region(p);
    if (target.is_null()) chunk.dangling = true;
    const std::string text = target.is_null()     ? ""
                             : target.is_string() ? target.get<std::string>()
                                                  : text::strict_json_text(target);
    if ((regions += text.size()) > max_text_bytes)
      throw hdf5::unsupported_dataset(reason_code::too_large,
                                      "the regions of a chunk take more than " + text::format_bytes(max_text_bytes) + " as text");
    strings.add(text);
  }
  chunk.bytes = strings.take();
}

void chunk_transcoder::encode_flat(encoded_chunk& chunk, compressors::buffer& values) const {
  compressors::buffer flat;
  const hdf5::lock one_thread;  // for references
  hdf5::file_references references(data_.file, data_.dataset);
  for (std::size_t i = 0; i + plan_.leaf.size <= values.size(); i += plan_.leaf.size) {
    if (!hdf5::append_flat(plan_.leaf, values.data() + i, references, data_.object.overrides.text_lengths, flat))
      chunk.dangling = true;
  }
  values = std::move(flat);
}

void chunk_transcoder::encode_packed(compressors::buffer& values, const array::extents& chunk_index) const {
  const data_type& type = plan_.packed->type();
  if (plan_.leaf.big_endian && type.component_size() > 1)
    (void)decode_chunk(zarrbits::bytes(type, {.endian = endian::big}), values,
                       values);  // integers; bytes refuses none
  compressors::buffer out(static_cast<std::size_t>(plan_.packed->encoded_size(values.size() / type.element_size())));
  if (const auto r = encode_chunk(*plan_.packed, values, out); !r) {
    const std::string sentence = plan_.packed->explain(r.failure);
    const std::string reason_text =
        "index " + format_index(index_in_chunk(r.failure.element, chunk_index)) + ": " + sentence.substr(0, sentence.find("; "));
    if (plan_.packed_in_source)
      throw wrong_assumption{&assumptions::raw_packing_fits,
                             "stored with the codec bytes, because the filter packbits left chunk " + format_index(chunk_index) +
                                 " unpacked; " + reason_text};
    if (plan_.packed_if_it_fits) throw wrong_assumption{&assumptions::bits_suffice};
    throw option_mismatch("dataset \"" + data_.object.path + "\", " + reason_text +
                              "; increase its `bits`, or none by its name: what does not fit is then stored as bytes",
                          {data_.file.path(), data_.object.path});
  }
  values = std::move(out);
}

void chunk_transcoder::compress(encoded_chunk& chunk, compressors::buffer bytes, original* source) const {
  const std::size_t typesize = plan_.typesize;
  if (plan_.strategy == strategy::copy_native) {
    chunk.bytes = apply_native(plan_.native, std::move(bytes), typesize);
  } else if (source && (plan_.fallback || !source->fallback_bytes.empty())) {
    chunk.bytes = compressed(plan_.target_compression, bytes, typesize);
    if (chunk.bytes.size() <= std::max(source->size, source->fallback_bytes.size())) return;
    if (plan_.fallback) {
      chunk.bytes = conversion::compress(*plan_.fallback, std::move(bytes), typesize);
    } else {
      chunk.bytes = std::move(source->fallback_bytes);
      chunk.chunk_outcome = outcome::rewrapped;
    }
  } else {
    chunk.bytes = conversion::compress(plan_.target_compression, std::move(bytes), typesize);
  }
}

void chunk_transcoder::check_bools(compressors::buffer& values) const {
  if (plan_.leaf.kind != hdf5::type_class::boolean || !plan_.assumed.bools_are_0_or_1) return;
  if (!decode_chunk(zarrbits::bytes("bool"), values, values)) throw wrong_assumption{&assumptions::bools_are_0_or_1};
}

array::extents chunk_transcoder::index_in_chunk(std::uint64_t element, const array::extents& chunk_index) const {
  const metadata::array_metadata& meta = plan_.meta;
  array::extents lengths = data_.grid.extent(chunk_index);
  lengths.insert(lengths.end(), meta.chunk.begin() + static_cast<std::ptrdiff_t>(lengths.size()), meta.chunk.end());
  array::extents index = array::unravel(element, lengths);
  for (std::size_t d = 0; d < chunk_index.size(); ++d) index[d] += data_.grid.start(d, chunk_index[d]);
  return index;
}

}  // namespace zarrbits::conversion
