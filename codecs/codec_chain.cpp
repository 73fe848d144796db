// SPDX-License-Identifier: BSL-1.0
#include "codecs/codec_chain.hpp"

#include "metadata/named_configuration.hpp"
#include "text/format.hpp"

#include <zarrbits/chunk.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::codecs {

using nlohmann::json;
using zarr::element_buffer;
using zarr::not_supported;
using zarr::store_error;

namespace {

constexpr std::uint64_t max_chunk_bytes = 1U << 30;  // limit for one chunk in memory
constexpr std::size_t max_codecs = 32;

not_supported string_limit_exceeded(std::uint64_t limit) {
  return not_supported(reason_code::too_large, "a chunk of strings that takes more than " + text::format_bytes(limit) +
                                                   ", half of the memory that is allowed");
}

std::uint64_t elements_in(const std::vector<std::uint64_t>& shape) {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(n, extent, &n)) throw not_supported(reason_code::too_large, "a chunk of more than 2^64 elements");
  }
  return n;
}

std::string type_text(const json& data_type) {
  return data_type.is_string() ? data_type.get<std::string>() : text::sorted_json_text(data_type);
}

}  // namespace

codec_chain::codec_chain(const zarr::encoding& e)
    : type_(e.type), chunk_shape_(e.chunk_shape), max_string_bytes_(e.max_string_bytes) {
  if (!e.codecs.is_array()) throw store_error("\"codecs\" is not a list");
  bool in_bytes = false;
  for (const json& entry : e.codecs) {
    const auto extension = zarr::as_store_errors([&] { return metadata::parse_named_configuration(entry); });
    const std::string& name = extension.name;
    const json& configuration = extension.configuration;
    const known_codec* const codec = find_codec(metadata::codec_id_of(name));
    if (!codec) throw not_supported(reason_code::unsupported_codec, "the codec " + name);
    switch (codec->kind) {
      case codec_kind::array_to_array:
        if (in_bytes) {
          throw not_supported(reason_code::unsupported_codec, is_array_filter(codec->id)
                                                                  ? "the codec " + name + " after one from array to bytes"
                                                                  : "a second transpose, or one of bytes or encoded values");
        }
        add_array_codec(*codec, configuration);
        break;
      case codec_kind::array_to_bytes:
        if (in_bytes) throw store_error("there are two array to bytes codecs");
        add_array_to_bytes(*codec, entry, configuration, e);
        in_bytes = true;
        break;
      case codec_kind::bytes_to_bytes:
        if (!in_bytes) throw store_error("the codec " + name + " comes before the array to bytes codec");
        add_bytes_codec(*codec, configuration);
        break;
    }
  }
  if (!in_bytes) throw store_error("there is no array to bytes codec");
}

void codec_chain::add_array_codec(const known_codec& codec, const json& configuration) {
  const std::string name(codec.name());
  const auto filters =
      std::count_if(array_codecs_.begin(), array_codecs_.end(), [](const auto& a) { return !a->encoded_type().empty(); });
  if (!is_array_filter(codec.id)) {
    if (!array_codecs_.empty())
      throw not_supported(reason_code::unsupported_codec, "a second transpose, or one of bytes or encoded values");
  } else if (filters >= static_cast<std::ptrdiff_t>(max_codecs)) {
    throw not_supported(reason_code::unsupported_codec, "the codec " + name + " after one from array to bytes");
  } else if (type_.variable() && !encoded_type_.empty()) {
    throw not_supported(reason_code::unsupported_codec, "a codec before " + name);
  }
  const zarr::zarr_type type = encoded_type_.empty() ? type_ : zarr::parse_type(encoded_type_);
  array_codecs_.push_back(codec.make({codec.id, configuration, type, chunk_shape_.size()}));
  if (const std::string encoded = array_codecs_.back()->encoded_type(); !encoded.empty()) encoded_type_ = encoded;
}

void codec_chain::add_array_to_bytes(const known_codec& codec, const json& entry, const json& configuration,
                                     const zarr::encoding& e) {
  const bool is_filtered = !encoded_type_.empty();
  const auto require = [&](bool takes_type) {
    if (!takes_type) throw store_error("the codec " + std::string(codec.name()) + " does not take " + type_.name);
  };
  switch (codec.content) {
    case chunk_content::shards: add_shards(configuration, e.data_type); return;
    case chunk_content::strings: require(type_.variable() && !is_filtered); return;
    case chunk_content::numbers: break;
  }
  require(!type_.variable() || is_filtered);
  // in structs any byte may be a boolean: `convert` copies chunks, of which the part beyond the array's edge is anything
  const codec_policy policy = {.nonzero_is_true = type_.kind == zarr::zarr_kind::record};
  try {
    codec_ = parse_codec(text::sorted_json_text(entry), zarrbits::data_type(is_filtered ? encoded_type_ : type_text(e.data_type)),
                         policy);
  } catch (const zarrbits::error& error) {
    throw store_error(error.what());
  }
}

void codec_chain::add_shards(const json& configuration, const json& data_type) {
  if (!array_codecs_.empty())
    throw not_supported(reason_code::unsupported_codec,
                        encoded_type_.empty() ? "a transpose of whole shards" : "filters of whole shards");
  const metadata::sharding parsed = zarr::as_store_errors([&] { return metadata::parse_sharding(configuration); });
  sharding s;
  s.chunk_shape = parsed.chunk_shape;
  s.index_at_end = parsed.index_at_end;
  if (s.chunk_shape.size() != chunk_shape_.size())
    throw store_error("the chunks inside shards have a different number of dimensions");
  std::vector<std::uint64_t> index_shape;
  for (std::size_t d = 0; d < chunk_shape_.size(); ++d) {
    if (s.chunk_shape[d] == 0 || chunk_shape_[d] % s.chunk_shape[d] != 0)
      throw store_error("the chunks inside shards do not divide them");
    index_shape.push_back(chunk_shape_[d] / s.chunk_shape[d]);
  }
  index_shape.push_back(2);
  const json number = "uint64";
  const zarr::zarr_type number_type = zarr::parse_type(number);
  inner_ = std::make_shared<codec_chain>(zarr::encoding{parsed.codecs, data_type, type_, s.chunk_shape, max_string_bytes_});
  index_ =
      std::make_shared<codec_chain>(zarr::encoding{parsed.index_codecs, number, number_type, index_shape, max_string_bytes_});
  const auto index_size = index_->encoded_size(elements_in(index_shape));
  if (!index_size) throw not_supported(reason_code::unsupported_codec, "an index of shards that is compressed");
  s.index_size = *index_size;
  shards_ = std::move(s);
}

void codec_chain::add_bytes_codec(const known_codec& codec, const json& configuration) {
  if (bytes_codecs_.size() >= max_codecs)
    throw not_supported(reason_code::unsupported_codec, "more than " + std::to_string(max_codecs) + " codecs");
  bytes_codecs_.push_back({&codec, codec.parse ? codec.parse(configuration) : bytes_settings()});
}

// The size of a chunk in the store, if all chunks have the same.
std::optional<std::uint64_t> codec_chain::encoded_size(std::uint64_t elements) const {
  std::uint64_t decoded = 0;
  if (!codec_ || __builtin_mul_overflow(elements, codec_->element_size(), &decoded) || decoded > (std::uint64_t{1} << 62))
    return {};
  std::uint64_t size = codec_->encoded_size(elements);
  for (const bytes_codec& c : bytes_codecs_) {
    if (!c.codec->added_bytes) return {};
    size += *c.codec->added_bytes;
  }
  return size;
}

void codec_chain::require_decodable() const {
  const codec_chain& chunks = inner_ ? *inner_ : *this;
  (void)chunks.max_decoded_bytes(elements_in(chunks.chunk_shape_));
}

// Limit for the output of each codec from bytes to bytes, so that a few bytes cannot fill the memory.
std::uint64_t codec_chain::max_decoded_bytes(std::uint64_t elements) const {
  if (!codec_) return std::min(max_string_bytes_, max_chunk_bytes);
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(elements, codec_->element_size(), &size) || size > max_chunk_bytes)
    throw not_supported(reason_code::too_large,
                        "a chunk of " + std::to_string(elements) + " elements, which does not fit in 1 GiB");
  return 2 * codec_->encoded_size(elements) + (64U << 10);
}

// Decodes the codecs from bytes to bytes. `content`: the number of bytes that a sound chunk has then; 0: not known.
void codec_chain::decode_bytes(chunk_bytes& chunk, std::uint64_t content, std::uint64_t max_size) const {
  std::vector<std::size_t> likely;  // the output of each
  for (const bytes_codec& c : bytes_codecs_) {
    likely.push_back(static_cast<std::size_t>(content));
    content = content > 0 && c.codec->added_bytes ? content + *c.codec->added_bytes : 0;
  }
  for (std::size_t i = bytes_codecs_.size(); i-- > 0;) {
    const auto& [codec, settings] = bytes_codecs_[i];
    if (codec->check) {
      chunk.view = codec->check(chunk.view, settings);
    } else {
      chunk.decoded = codec->decode(chunk.view, settings, {likely[i], max_size});
      chunk.view = chunk.decoded;
      chunk.stored = std::vector<std::byte>();  // frees its memory
    }
  }
}

void codec_chain::decode_numbers(std::span<const std::byte> in, std::uint64_t elements, element_buffer& out) const {
  // checked before the allocation: a few bytes may claim to be a gigabyte
  if (const std::uint64_t size = codec_->encoded_size(elements); in.size() != size)
    throw store_error("a chunk has " + std::to_string(in.size()) + " bytes instead of " + std::to_string(size));
  out.data.resize(static_cast<std::size_t>(codec_->decoded_size(elements)));
  if (const chunk_result result = decode_chunk(*codec_, in, out.data); !result)
    throw store_error(codec_->explain(result.failure));
}

// vlen-utf8 and vlen-bytes: the number of strings, then each with its length.
void codec_chain::decode_strings(std::span<const std::byte> in, std::uint64_t elements, element_buffer& out) const {
  const std::size_t stored = in.size();
  const auto take = [&](std::size_t n) {
    if (in.size() < n) throw store_error("a chunk of strings ends too early");
    const auto piece = in.first(n);
    in = in.subspan(n);
    return piece;
  };
  const auto take_length = [&] {
    const auto bytes = take(4);
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < 4; ++i) n |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
    return n;
  };
  const std::uint32_t count = take_length();
  if (count != elements)
    throw store_error("a chunk of strings holds " + std::to_string(count) + " elements instead of " + std::to_string(elements));
  if (count > stored / 4) throw store_error("a chunk of strings ends too early");
  if (stored + count * sizeof(std::string) > 2 * max_string_bytes_) throw string_limit_exceeded(max_string_bytes_);
  out.strings.resize(count);
  for (std::string& s : out.strings) {
    const auto bytes = take(take_length());
    s.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (!in.empty()) throw store_error("a chunk of strings continues after its last element");
}

void codec_chain::decode(const std::vector<std::uint64_t>& shape, std::vector<std::byte> stored, element_buffer& out) const {
  const std::uint64_t elements = elements_in(shape);
  const std::uint64_t max_size = max_decoded_bytes(elements);
  chunk_bytes chunk(std::move(stored));
  try {
    decode_bytes(chunk, codec_ ? codec_->encoded_size(elements) : 0, max_size);
  } catch (const zarr::size_limit_exceeded&) {
    if (codec_) throw;
    throw string_limit_exceeded(max_string_bytes_);
  }
  if (codec_) {
    out.strings.clear();
    // without a compressor, these are the stored bytes, and the codec `bytes` decodes in place
    if (chunk.view.data() == chunk.stored.data() && codec_->name() == "bytes") out.data = std::move(chunk.stored);
    decode_numbers(chunk.view, elements, out);
  } else {
    out.data.clear();
    decode_strings(chunk.view, elements, out);
  }
  for (std::size_t i = array_codecs_.size(); i-- > 0;) array_codecs_[i]->decode(out, shape, max_string_bytes_);
}

void codec_chain::decode(std::vector<std::byte> stored, element_buffer& out) const {
  const codec_chain& chunks = inner_ ? *inner_ : *this;
  chunks.decode(chunks.chunk_shape_, std::move(stored), out);
}

std::vector<std::byte> codec_chain::decode_shard(std::vector<std::byte> stored) const {
  chunk_bytes shard(std::move(stored));
  decode_bytes(shard, 0, max_chunk_bytes);
  return {shard.view.begin(), shard.view.end()};
}

std::vector<std::uint64_t> codec_chain::decode_index(std::vector<std::byte> stored) const {
  element_buffer values;
  index_->decode(index_->chunk_shape_, std::move(stored), values);
  std::vector<std::uint64_t> index(values.data.size() / sizeof(std::uint64_t));
  std::memcpy(index.data(), values.data.data(), values.data.size());
  return index;
}

std::shared_ptr<const zarr::chunk_decoder> make_decoder(const zarr::encoding& e) { return std::make_shared<codec_chain>(e); }

}  // namespace zarrbits::codecs
