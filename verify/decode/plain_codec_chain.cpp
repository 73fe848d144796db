// SPDX-License-Identifier: BSL-1.0
#include "verify/decode/plain_codec_chain.hpp"

#include "core/codec_state.hpp"
#include "core/kernels/kernels.hpp"
#include "metadata/named_configuration.hpp"
#include "text/format.hpp"
#include "verify/decode/plain_bytes.hpp"

#include <zarrbits/chunk.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

zarr::not_supported string_limit_exceeded(std::uint64_t limit) {
  return zarr::not_supported(reason_code::too_large, "a chunk of strings that takes more than " + text::format_bytes(limit) +
                                                         ", half of the memory that is allowed");
}

constexpr std::uint64_t max_chunk_bytes = 1u << 30;  // limit for one chunk in memory
constexpr std::size_t max_codecs = 32;

}  // namespace

plain_codec_chain::plain_codec_chain(const zarr::encoding& e)
    : type_(e.type), chunk_shape_(e.chunk_shape), max_string_bytes_(e.max_string_bytes) {
  const json &list = e.codecs, &data_type = e.data_type;
  if (!list.is_array()) throw zarr::store_error("\"codecs\" is not a list");
  static const std::pair<const char*, bytes_codec::kind_type> codec_kinds[] = {
      {"gzip", bytes_codec::gzip},
      {"zstd", bytes_codec::zstd},
      {"blosc", bytes_codec::blosc},
      {"crc32c", bytes_codec::crc32c},
      {"numcodecs.zlib", bytes_codec::zlib},
      {"numcodecs.bz2", bytes_codec::bz2},
      {"numcodecs.lz4", bytes_codec::lz4},
      {"numcodecs.shuffle", bytes_codec::shuffle},
      {"numcodecs.fletcher32", bytes_codec::fletcher32},
      {"numcodecs.crc32c", bytes_codec::crc32c_of_numcodecs}};
  bool in_bytes = false;
  for (const json& entry : list) {
    const auto extension = zarr::as_store_errors([&] { return metadata::parse_named_configuration(entry); });
    const std::string& name = extension.name;
    const json& configuration = extension.configuration;
    if (name == "transpose") {
      if (in_bytes || !order_.empty() || !filters_.empty())
        throw zarr::not_supported(reason_code::unsupported_codec, "a second transpose, or one of bytes or encoded values");
      read_order(configuration);
    } else if (is_array_filter(name)) {
      if (in_bytes || filters_.size() >= max_codecs)
        throw zarr::not_supported(reason_code::unsupported_codec, "the codec " + name + " after one from array to bytes");
      if (type_.variable() && !filters_.empty())
        throw zarr::not_supported(reason_code::unsupported_codec, "a codec before " + name);
      filters_.emplace_back(name, configuration, filters_.empty() ? type_ : zarr::parse_type(filters_.back().stored().name()));
    } else if (const auto known_codec =
                   std::find_if(std::begin(codec_kinds), std::end(codec_kinds), [&](const auto& k) { return name == k.first; });
               known_codec != std::end(codec_kinds)) {
      if (!in_bytes) throw zarr::store_error("the codec " + name + " comes before the array to bytes codec");
      read_bytes_codec(known_codec->second, configuration);
    } else if (name == "sharding_indexed") {
      if (in_bytes) throw zarr::store_error("there are two array to bytes codecs");
      read_shards(configuration, data_type);
      in_bytes = true;
    } else if (name == "vlen-utf8" || name == "vlen-bytes") {
      if (in_bytes) throw zarr::store_error("there are two array to bytes codecs");
      if (!type_.variable() || !filters_.empty()) throw zarr::store_error("the codec " + name + " does not take " + type_.name);
      in_bytes = true;
    } else if (name == "bytes" || name == "endian" || name == "packbits" || name == "numcodecs.packbits") {
      if (in_bytes) throw zarr::store_error("there are two array to bytes codecs");
      if (type_.variable() && filters_.empty()) throw zarr::store_error("the codec " + name + " does not take " + type_.name);
      try {
        const json type_here = filters_.empty() ? data_type : json(filters_.back().stored().name());
        // in structs any byte may be a boolean: `convert` copies chunks, of which the part beyond the array's edge is anything
        const codec_policy policy = {.nonzero_is_true = type_.kind == zarr::zarr_kind::record};
        const zarrbits::codec c = parse_codec(
            text::sorted_json_text(entry),
            zarrbits::data_type(type_here.is_string() ? type_here.get<std::string>() : text::sorted_json_text(type_here)),
            policy);
        codec_ = detail::with_kernels(c, detail::portable_kernels);
      } catch (const zarrbits::error& error) {
        throw zarr::store_error(error.what());
      }
      in_bytes = true;
    } else {
      throw zarr::not_supported(reason_code::unsupported_codec, "the codec " + name);
    }
  }
  if (!in_bytes) throw zarr::store_error("there is no array to bytes codec");
}

void plain_codec_chain::read_order(const json& configuration) {
  if (!configuration.contains("order") || !configuration["order"].is_array())
    throw zarr::not_supported(reason_code::unsupported_codec, "a transpose whose order is not a list");
  std::vector<bool> is_used(chunk_shape_.size());
  for (const json& n : configuration["order"]) {
    if (!n.is_number_unsigned() || n.get<std::uint64_t>() >= is_used.size() || is_used[n.get<std::size_t>()]) {
      throw zarr::store_error("the order of transpose is not a permutation");
    }
    is_used[n.get<std::size_t>()] = true;
    order_.push_back(n.get<std::size_t>());
  }
  if (order_.size() != chunk_shape_.size())
    throw zarr::store_error("the order of transpose has a different number of dimensions than the array");
}

void plain_codec_chain::read_bytes_codec(bytes_codec::kind_type kind, const json& configuration) {
  if (bytes_codecs_.size() >= max_codecs)
    throw zarr::not_supported(reason_code::unsupported_codec, "more than " + std::to_string(max_codecs) + " codecs");
  std::size_t element = 1;
  const json location = configuration.value("location", json());
  if (kind == bytes_codec::crc32c_of_numcodecs && !location.is_null() && location != "start" && location != "end")
    throw zarr::store_error("the location of numcodecs.crc32c is neither start nor end");
  if (kind == bytes_codec::shuffle) {
    const json size = configuration.value("elementsize", json());
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() == 0)
      throw zarr::store_error("the elementsize of numcodecs.shuffle is not a size");
    element = size.get<std::size_t>();
  }
  bytes_codecs_.push_back({kind, element, location != "start"});
}

void plain_codec_chain::read_shards(const json& configuration, const json& data_type) {
  if (!order_.empty()) throw zarr::not_supported(reason_code::unsupported_codec, "a transpose of whole shards");
  if (!filters_.empty()) throw zarr::not_supported(reason_code::unsupported_codec, "filters of whole shards");
  const metadata::sharding parsed = zarr::as_store_errors([&] { return metadata::parse_sharding(configuration); });
  sharding s;
  s.chunk_shape = parsed.chunk_shape;
  s.index_at_end = parsed.index_at_end;
  if (s.chunk_shape.size() != chunk_shape_.size())
    throw zarr::store_error("the chunks inside shards have a different number of dimensions");
  std::vector<std::uint64_t> index_shape;
  for (std::size_t i = 0; i < chunk_shape_.size(); ++i) {
    if (s.chunk_shape[i] == 0 || chunk_shape_[i] % s.chunk_shape[i] != 0)
      throw zarr::store_error("the chunks inside shards do not divide them");
    index_shape.push_back(chunk_shape_[i] / s.chunk_shape[i]);
  }
  index_shape.push_back(2);
  const json number = "uint64";
  const zarr::zarr_type number_type = zarr::parse_type(number);
  chunks_ =
      std::make_shared<plain_codec_chain>(zarr::encoding{parsed.codecs, data_type, type_, s.chunk_shape, max_string_bytes_});
  index_ = std::make_shared<plain_codec_chain>(
      zarr::encoding{parsed.index_codecs, number, number_type, index_shape, max_string_bytes_});
  const auto index_size = index_->encoded_size();
  if (!index_size) throw zarr::not_supported(reason_code::unsupported_codec, "an index of shards that is compressed");
  s.index_size = *index_size;
  shards_ = std::move(s);
}

std::uint64_t plain_codec_chain::elements() const {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : chunk_shape_) {
    if (__builtin_mul_overflow(n, extent, &n))
      throw zarr::not_supported(reason_code::too_large, "a chunk of more than 2^64 elements");
  }
  return n;
}

std::optional<std::uint64_t> plain_codec_chain::encoded_size() const {
  std::uint64_t decoded = 0;
  if (!codec_ || __builtin_mul_overflow(elements(), codec_->element_size(), &decoded) || decoded > (std::uint64_t{1} << 62))
    return {};
  std::uint64_t size = codec_->encoded_size(elements());
  for (const bytes_codec& c : bytes_codecs_) {
    if (c.kind != bytes_codec::crc32c && c.kind != bytes_codec::crc32c_of_numcodecs && c.kind != bytes_codec::fletcher32 &&
        c.kind != bytes_codec::shuffle)
      return {};
    if (c.kind != bytes_codec::shuffle) size += 4;
  }
  return size;
}

// Upper limit of the bytes after each step, so that a few bytes cannot fill the memory.
void plain_codec_chain::require_decodable() const { (void)(chunks_ ? *chunks_ : *this).max_step_bytes(); }

std::uint64_t plain_codec_chain::max_step_bytes() const {
  if (!codec_) return std::min(max_string_bytes_, max_chunk_bytes);
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(elements(), codec_->element_size(), &size) || size > max_chunk_bytes) {
    throw zarr::not_supported(reason_code::too_large,
                              "a chunk of " + std::to_string(elements()) + " elements, which does not fit in 1 GiB");
  }
  return 2 * codec_->encoded_size(elements()) + (64u << 10);
}

std::vector<std::byte> plain_codec_chain::decode_bytes_codecs(std::vector<std::byte> bytes, std::uint64_t max_size) const {
  for (std::size_t i = bytes_codecs_.size(); i-- > 0;) {
    switch (bytes_codecs_[i].kind) {
      case bytes_codec::gzip: bytes = decode_gzip(bytes, max_size); continue;
      case bytes_codec::zstd: bytes = decode_zstd(bytes, max_size); continue;
      case bytes_codec::blosc: bytes = decode_blosc(bytes, max_size); continue;
      case bytes_codec::zlib: bytes = decode_zlib(bytes, max_size); continue;
      case bytes_codec::bz2: bytes = decode_bz2(bytes, max_size); continue;
      case bytes_codec::lz4: bytes = decode_lz4(bytes, max_size); continue;
      case bytes_codec::shuffle: bytes = unshuffle(bytes, bytes_codecs_[i].element); continue;
      case bytes_codec::fletcher32: drop_fletcher32(bytes); continue;
      case bytes_codec::crc32c_of_numcodecs:
        if (!bytes_codecs_[i].at_end && bytes.size() >= 4) std::rotate(bytes.begin(), bytes.begin() + 4, bytes.end());
        [[fallthrough]];
      case bytes_codec::crc32c: drop_crc32c(bytes); continue;
    }
  }
  return bytes;
}

std::vector<std::byte> plain_codec_chain::decode_shard(std::vector<std::byte> stored) const {
  return decode_bytes_codecs(std::move(stored), max_chunk_bytes);
}

std::vector<std::uint64_t> plain_codec_chain::decode_index(std::vector<std::byte> stored) const {
  zarr::element_buffer values;
  index_->decode_chunk_bytes(std::move(stored), values);
  std::vector<std::uint64_t> index(values.data.size() / sizeof(std::uint64_t));
  std::memcpy(index.data(), values.data.data(), values.data.size());
  return index;
}

void plain_codec_chain::decode(std::vector<std::byte> stored, zarr::element_buffer& out) const {
  (chunks_ ? *chunks_ : *this).decode_chunk_bytes(std::move(stored), out);
}

void plain_codec_chain::decode(const std::vector<std::uint64_t>& shape, std::vector<std::byte> stored,
                               zarr::element_buffer& out) const {
  plain_codec_chain smaller = *this;
  smaller.chunk_shape_ = shape;
  smaller.decode_chunk_bytes(std::move(stored), out);
}

void plain_codec_chain::decode_chunk_bytes(std::vector<std::byte> bytes, zarr::element_buffer& out) const {
  try {
    bytes = decode_bytes_codecs(std::move(bytes), max_step_bytes());
  } catch (const zarr::size_limit_exceeded&) {
    if (codec_) throw;
    throw string_limit_exceeded(max_string_bytes_);
  }
  out.data.clear();
  out.strings.clear();
  if (codec_) {
    // check before allocating: a few bytes may claim to be a gigabyte
    const std::uint64_t size = codec_->encoded_size(elements());
    if (bytes.size() != size)
      throw zarr::store_error("a chunk has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(size));
    out.data.resize(static_cast<std::size_t>(codec_->decoded_size(elements())));
    const chunk_result r = decode_chunk(*codec_, bytes, out.data);
    if (!r) throw zarr::store_error(codec_->explain(r.failure));
    for (std::size_t i = filters_.size(); i-- > 0;) filters_[i].decode(out, max_string_bytes_);
  } else {
    decode_strings(bytes, out);
  }
  if (!order_.empty()) untranspose(out);
}

void plain_codec_chain::decode_strings(const std::vector<std::byte>& in, zarr::element_buffer& out) const {
  std::size_t offset = 0;
  const auto number = [&] {
    if (in.size() - offset < 4) throw zarr::store_error("a chunk of strings ends too early");
    std::uint32_t n = 0;
    for (std::size_t k = 0; k < 4; ++k) n |= std::to_integer<std::uint32_t>(in[offset + k]) << (8 * k);
    offset += 4;
    return n;
  };
  const std::uint32_t count = number();
  if (count != elements()) {
    throw zarr::store_error("a chunk of strings holds " + std::to_string(count) + " elements instead of " +
                            std::to_string(elements()));
  }
  if (count > in.size() / 4) throw zarr::store_error("a chunk of strings ends too early");
  if (in.size() + count * sizeof(std::string) > 2 * max_string_bytes_) throw string_limit_exceeded(max_string_bytes_);
  out.strings.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = number();
    if (in.size() - offset < size) throw zarr::store_error("a chunk of strings ends too early");
    out.strings.emplace_back(reinterpret_cast<const char*>(in.data()) + offset, size);
    offset += size;
  }
  if (offset != in.size()) throw zarr::store_error("a chunk of strings continues after its last element");
}

void plain_codec_chain::untranspose(zarr::element_buffer& values) const {
  const std::size_t rank = order_.size();
  // strides of the array's dimensions within the transposed chunk
  std::vector<std::size_t> stride(rank);
  std::size_t step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    stride[order_[i]] = step;
    step *= static_cast<std::size_t>(chunk_shape_[order_[i]]);
  }
  zarr::element_buffer out;
  out.data.resize(values.data.size());
  out.strings.resize(values.strings.size());
  std::vector<std::uint64_t> index(rank, 0);
  std::size_t source = 0;
  for (std::size_t target = 0; target < step; ++target) {
    if (type_.variable()) {
      out.strings[target] = std::move(values.strings[source]);
    } else {
      std::memcpy(out.data.data() + target * type_.size, values.data.data() + source * type_.size, type_.size);
    }
    for (std::size_t i = rank; i-- > 0;) {
      source += stride[i];
      if (++index[i] < chunk_shape_[i]) break;
      source -= stride[i] * static_cast<std::size_t>(chunk_shape_[i]);
      index[i] = 0;
    }
  }
  values = std::move(out);
}

std::shared_ptr<const zarr::chunk_decoder> make_plain_decoder(const zarr::encoding& e) {
  return std::make_shared<plain_codec_chain>(e);
}

}  // namespace zarrbits::verification
