// SPDX-License-Identifier: BSL-1.0
#include "export/chunk_plan.hpp"

#include "codecs/registry.hpp"
#include "compressors/blosc.hpp"
#include "compressors/deflate.hpp"
#include "compressors/lz4.hpp"
#include "compressors/zstd.hpp"
#include "hdf5/filter_table.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/named_configuration.hpp"
#include "text/json_text.hpp"

#include <zarrbits/version.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::exporting {

using compressors::buffer;
using conversion::source_array;
using metadata::codec_id;

namespace {

unsigned number_in(const text::json& configuration, const char* key, unsigned max_value, unsigned otherwise) {
  return static_cast<unsigned>(metadata::number_in(configuration, key, max_value, otherwise));
}

// The parameters of filter 32001: version, version, type size, bytes of a chunk, level, shuffle, compressor.
std::vector<unsigned> blosc_values(const text::json& c, std::size_t bytes) {
  const auto code_in = [&](const char* key, const auto& names) {
    const auto match = std::find(names.begin(), names.end(), text::text_member(c, key));
    return static_cast<unsigned>(match == names.end() ? 0 : match - names.begin());
  };
  return {2,
          2,
          number_in(c, "typesize", 255, 1),
          static_cast<unsigned>(bytes),
          number_in(c, "clevel", 9, 5),
          code_in("shuffle", compressors::blosc_shuffle_names),
          code_in("cname", compressors::blosc_compressor_names)};
}

// Whether HDF5's shuffle and deflate have the content of the buffers: those that `convert` makes, and others of one block.
bool is_shuffled_zlib(const text::json& c, std::size_t bytes_of_value) {
  return text::text_member(c, "cname") == "zlib" && text::text_member(c, "shuffle") == "shuffle" &&
         number_in(c, "typesize", 255, 0) == bytes_of_value;
}

constexpr unsigned fastest_level = 1;  // of libdeflate

constexpr unsigned own_magic = 0x5A504201, version_of_zarrbits = 0;

}  // namespace

chunk_plan::chunk_plan(const source_array& array, const store_node& node, const dataset_spec& form, const export_options& options)
    : spec_(form) {
  for (const std::uint64_t extent : form.chunk) values_ *= static_cast<std::size_t>(extent);
  in_file_ = H5Tget_size(form.type().file);
  plain_ = values_ * in_file_;
  // the fill value is encoded here
  if (array.is_regular() && !must_write_fill(array, form)) plan_copy(array, node, options.standard_filters);
  const auto can_encode = [](const hdf5::filter& f) {
    const hdf5::known_filter* entry = hdf5::find_filter(f.id);
    return entry && entry->apply;
  };
  // some chunks of joined stores are encoded, with the filters of those that are copied
  if (!array.has_stored_chunks()) copies_ = copies_ && std::all_of(filters_.begin(), filters_.end(), can_encode);
  if (!copies_) choose_filters(codecs_of_chunks(node), options);
}

void chunk_plan::add(H5Z_filter_t id, const char* name, std::vector<unsigned> values) {
  filters_.push_back({id, std::move(values), name});
}

// zarrbits' own filter: its parameters are those that it would find itself (filter/packbits.hpp).
bool chunk_plan::packs(const source_array& array, const text::json& configuration) {
  const type_spec& t = spec_.element;
  const bool boolean = t.kind == type_kind::boolean;
  const bool number = t.kind == type_kind::integer && H5Tget_class(t.file) == H5T_INTEGER && !t.big_endian;
  if (spec_.composite || (!boolean && !number)) return false;
  const unsigned width = boolean ? 1 : static_cast<unsigned>(8 * t.size);
  const unsigned first = number_in(configuration, configuration.contains("first_bit") ? "first_bit" : "start_bit", 63, 0);
  const unsigned last = number_in(configuration, configuration.contains("last_bit") ? "last_bit" : "end_bit", 63, width - 1);
  if (last < first || last >= width) return false;
  const unsigned bits = last - first + 1;
  const std::string padding = configuration.value("padding_encoding", "none");
  const unsigned count_byte = padding == "none" ? 0 : padding.starts_with("first") || padding.starts_with("start") ? 1 : 2;
  if (bits == 8 * t.size) return false;
  const std::uint64_t elements = array.chunk_shape().empty() ? 1 : values_;
  plain_ = static_cast<std::size_t>((elements * bits + 7) / 8 + (count_byte != 0 ? 1 : 0));
  const auto size = static_cast<unsigned>(t.size);
  add(hdf5::packbits_filter, "packbits",
      {bits, count_byte, first, 0, own_magic, size, 1,
       size | width << 8 | (number && t.is_signed ? 1U << 17 : 0U) | (boolean ? 1U << 18 : 0U), static_cast<unsigned>(elements),
       static_cast<unsigned>(elements >> 32), static_cast<unsigned>(plain_), version_of_zarrbits});
  return true;
}

// Fills `filters_` with those that are the codecs. Leaves `copies_` false if none are.
void chunk_plan::plan_copy(const source_array& array, const store_node& node, bool standard) {
  if (!spec_.same_layout || spec_.type().has_converted_parts()) return;
  const text::json& codecs = codecs_of_chunks(node);
  std::size_t compressors = 0, i = 0;
  for (; i < codecs.size(); ++i) {
    const text::json configuration = metadata::configuration_of(codecs[i]);
    const codec_id id = metadata::codec_id_in(codecs[i]);
    const codecs::known_codec* const known = codecs::find_codec(id);
    const H5Z_filter_t filter = known ? known->hdf5_filter : 0;
    if (ends_with_crc32c_) return;  // a checksum of what later codecs make cannot be taken off
    if (i == 0) {
      if (id == codec_id::packbits && !standard && packs(array, configuration)) continue;
      if (id != codec_id::bytes || !has_order(spec_.element, metadata::is_big_endian(codecs))) return;
      continue;
    }
    const bool reframed = check_ == check::gzip || check_ == check::lz4 || check_ == check::zlib_in_blosc;
    if (reframed && id != codec_id::crc32c) return;  // a frame that changes is the last one
    const bool packed = !filters_.empty() && filters_[0].id == hdf5::packbits_filter;
    const auto compresses = [&](check required) {
      check_ = ++compressors > 1 ? check::decode : required;
      return !packed || required == check::zstd || required == check::gzip;
    };
    if (id == codec_id::crc32c) {
      ends_with_crc32c_ = frames_ = true;
    } else if (id == codec_id::gzip) {
      if (compressors > 0 || !compresses(check::gzip)) return;
      frames_ = true;
      add(filter, "deflate", {number_in(configuration, "level", 9, 6)});
    } else if (id == codec_id::zlib) {
      if (!compresses(check::decode)) return;
      add(filter, "deflate", {number_in(configuration, "level", 9, 6)});
    } else if (id == codec_id::fletcher32) {
      if (compressors == 0) plain_ += 4;
      else check_ = check::decode;  // the checksum is not a part of what the compressor made
      add(filter, "fletcher32", {});
    } else if (id == codec_id::shuffle) {
      // libhdf5 itself gives the filter the size of a value
      const bool is_shuffled =
          std::any_of(filters_.begin(), filters_.end(), [](const auto& f) { return f.id == H5Z_FILTER_SHUFFLE; });
      if (is_shuffled || packed || compressors > 0 || number_in(configuration, "elementsize", 0x7FFFFFFF, 0) != in_file_ ||
          plain_ % in_file_ != 0)
        return;
      add(filter, "shuffle", {static_cast<unsigned>(in_file_)});
    } else if (standard && id == codec_id::blosc && filters_.empty() && is_shuffled_zlib(configuration, in_file_)) {
      compresses(check::zlib_in_blosc);
      frames_ = true;
      add(H5Z_FILTER_SHUFFLE, "shuffle", {static_cast<unsigned>(in_file_)});
      add(H5Z_FILTER_DEFLATE, "deflate", {number_in(configuration, "clevel", 9, 5)});
    } else if (standard) {
      return;
    } else if (id == codec_id::zstd) {
      if (!compresses(check::zstd)) return;
      add(filter, "zstd", {number_in(configuration, "level", 22, 3)});
    } else if (id == codec_id::blosc) {
      if (!compresses(check::blosc)) return;
      add(filter, "blosc", blosc_values(configuration, plain_));
    } else if (id == codec_id::bz2) {
      if (!compresses(check::decode)) return;
      add(filter, "bzip2", {number_in(configuration, "level", 9, 9)});
    } else if (id == codec_id::lz4) {
      if (compressors > 0 || !compresses(check::lz4)) return;
      frames_ = true;
      add(filter, "lz4", {});
    } else {
      return;
    }
  }
  copies_ = i > 0;
}

// Chunks that are compressed in the store are compressed in the file.
void chunk_plan::choose_filters(const text::json& codecs, const export_options& options) {
  filters_.clear();
  plain_ = values_ * in_file_;
  const bool compressed = std::any_of(codecs.begin(), codecs.end(), [](const text::json& codec) {
    const codec_id id = metadata::codec_id_in(codec);
    return id != codec_id::bytes && id != codec_id::transpose && id != codec_id::crc32c && id != codec_id::fletcher32;
  });
  if (!compressed || options.filter == export_filter::none) return;
  if (in_file_ > 1 && !spec_.composite) add(H5Z_FILTER_SHUFFLE, "shuffle", {static_cast<unsigned>(in_file_)});
  const auto level = static_cast<unsigned>(options.level);
  if (options.filter == export_filter::zstd) add(hdf5::zstd_filter, "zstd", {level});
  else add(H5Z_FILTER_DEFLATE, "deflate", {level});
}

encoded_chunk chunk_plan::make(const source_array& array, const array::extents& chunk, std::vector<std::byte> stored) const {
  if (copies_ && array.is_stored_chunk(chunk)) {
    if (auto result = copied(array, chunk, stored)) return std::move(*result);
  }
  return recoded(array, chunk, std::move(stored));
}

// Empty if this chunk cannot be copied, unlike others: with two gzip members, an LZ4 block as long as its content, or several
// blocks of Blosc.
std::optional<encoded_chunk> chunk_plan::copied(const source_array& array, const array::extents& chunk,
                                                std::vector<std::byte>& stored) const {
  std::vector<std::byte> original;
  if (ends_with_crc32c_) {
    if (check_ != check::size) original = stored;  // in case it must be decoded
    stored.resize(codecs::find_codec(codec_id::crc32c)->check(stored, {}).size());
  }
  encoded_chunk result;
  const auto refused = [&]() -> std::optional<encoded_chunk> {
    if (ends_with_crc32c_) stored = std::move(original);
    return std::nullopt;
  };
  switch (check_) {
    case check::size:
      if (stored.size() != plain_)
        throw compressors::corrupt_chunk("it has " + std::to_string(stored.size()) + " bytes instead of " +
                                         std::to_string(plain_));
      break;
    case check::gzip:
      result.encoded = compressors::gzip_to_zlib(stored, plain_);
      if (result.encoded.empty()) return refused();
      result.is_encoded = true;
      return result;
    case check::lz4: {
      auto framed = compressors::lz4_numcodecs_to_hdf5(stored, plain_);
      if (!framed) return refused();
      result.encoded = std::move(*framed);
      result.is_encoded = true;
      return result;
    }
    case check::blosc: compressors::check_blosc(stored, plain_); break;
    case check::zlib_in_blosc: {
      const auto zlib = compressors::blosc_to_shuffled_zlib(stored, plain_, in_file_);
      if (zlib.empty()) return refused();
      zarr::element_buffer ignored;
      array.decode(chunk, ends_with_crc32c_ ? original : stored, ignored);  // the stream does not say its length
      result.stored.assign(zlib.begin(), zlib.end());
      return result;
    }
    case check::zstd:
      if (compressors::check_zstd(stored, plain_)) break;
      [[fallthrough]];
    case check::decode: {
      zarr::element_buffer ignored;
      array.decode(chunk, ends_with_crc32c_ ? original : stored, ignored);  // refuses other lengths
      break;
    }
  }
  result.stored = std::move(stored);
  return result;
}

encoded_chunk chunk_plan::recoded(const source_array& array, const array::extents& chunk, std::vector<std::byte> stored) const {
  zarr::element_buffer values;
  array.decode(chunk, std::move(stored), values);
  return encode(std::move(values.data));
}

encoded_chunk chunk_plan::encode(std::vector<std::byte> values) const {
  const std::size_t elements = values_ * spec_.inner;
  encoded_chunk result;
  result.is_encoded = result.is_recoded = true;
  buffer& out = result.encoded;
  out.assign(values.begin(), values.end());
  values = {};
  set_order(spec_.element, out.data(), elements);
  const type_spec& type = spec_.type();
  if (type.has_converted_parts()) {
    out.resize(values_ * std::max(type.size, in_file_));
    const hdf5::lock one_thread;
    const hdf5::silence quiet;  // of this thread
    hdf5::check(H5Tconvert(type.memory, type.file, values_, out.data(), nullptr, H5P_DEFAULT), "convert numbers");
    out.resize(values_ * in_file_);
  }
  // the filters are those of choose_filters(), or of plan_copy() where this chunk is unlike the others
  for (const hdf5::filter& f : filters_) {
    const hdf5::known_filter* entry = hdf5::find_filter(f.id);
    if (!entry || !entry->apply)
      throw unsupported_in_hdf5(reason_code::damaged, "chunks of which some have a different form than their codecs say");
    out = entry->apply(f, std::move(out));
  }
  return result;
}

bool chunk_plan::may_deflate_faster() const noexcept {
  return !copies_ && !filters_.empty() && filters_.back().id == H5Z_FILTER_DEFLATE && filters_.back().values[0] > fastest_level;
}

void chunk_plan::deflate_faster_if_no_larger(const std::vector<std::vector<std::byte>>& samples) {
  chunk_plan before_deflate = *this;
  before_deflate.filters_.pop_back();
  const auto level = static_cast<int>(filters_.back().values[0]);
  if (samples.empty()) return;
  std::size_t by_zlib = 0, fast = 0;
  for (const std::vector<std::byte>& elements : samples) {
    const encoded_chunk chunk = before_deflate.encode(elements);
    by_zlib += compressors::size_by_zlib(chunk.bytes(), level);
    fast += compressors::zlib_stream(chunk.bytes(), fastest_level).size();
  }
  if (fast <= by_zlib) filters_.back().values[0] = fastest_level;
}

}  // namespace zarrbits::exporting
