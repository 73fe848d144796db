// SPDX-License-Identifier: BSL-1.0
#include "codecs/chunk_encoder.hpp"

#include "array/extents.hpp"
#include "codecs/vlen_encoder.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/named_configuration.hpp"

#include <zarrbits/chunk.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::codecs {

using metadata::codec_id;

namespace {

std::vector<std::size_t> order_in(const text::json& configuration) {
  std::vector<std::size_t> order;
  const auto list = configuration.find("order");
  if (list == configuration.end() || !list->is_array())
    throw error(errc::unsupported, "chunks with a transpose whose order is not a list cannot be encoded");
  for (const text::json& n : *list) order.push_back(n.is_number_unsigned() ? n.get<std::size_t>() : order.max_size());
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) throw error(errc::unsupported, "chunks with a transpose that is not a permutation cannot be encoded");
  }
  return order;
}

// Calls `put` with the index of each element in the order of the transposed chunk.
template <class Put>
void for_each_transposed(const std::vector<std::size_t>& order, const std::vector<std::uint64_t>& shape, const Put& put) {
  const std::size_t rank = shape.size();
  const array::extents stride = array::strides_of(shape);
  std::vector<std::uint64_t> index(rank, 0);
  const std::uint64_t count = array::product(shape);
  std::uint64_t source = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    put(static_cast<std::size_t>(source));
    for (std::size_t k = rank; k-- > 0;) {
      const std::size_t d = order[k];
      source += stride[d];
      if (++index[d] < shape[d]) break;
      source -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

chunk_encoder::chunk_encoder(const text::json& codecs, const text::json& data_type) {
  bool in_bytes = false;
  for (const text::json& entry : codecs) {
    const std::string name = metadata::name_of(entry);
    const text::json configuration = metadata::configuration_of(entry);
    const known_codec* const codec = find_codec(metadata::codec_id_of(name));
    if (codec && codec->encode) {
      bytes_encoders_.push_back(
          {codec, codec->parse_encoder ? codec->parse_encoder(configuration, element_) : encoder_settings()});
    } else if (codec && codec->id == codec_id::transpose) {
      order_ = order_in(configuration);
    } else if (codec && codec->kind == codec_kind::array_to_bytes && codec->content == chunk_content::strings) {
      in_bytes = true;
    } else if (codec && codec->kind == codec_kind::array_to_bytes && codec->content == chunk_content::numbers) {
      codec_ = parse_codec(text::json_text(entry), zarrbits::data_type(data_type.is_string() ? data_type.get<std::string>()
                                                                                             : text::json_text(data_type)));
      element_ = codec_->element_size();
      in_bytes = true;
    } else {
      throw error(errc::unsupported, "chunks with the codec " + (name.empty() ? "without a name" : name) + " cannot be encoded");
    }
  }
  if (!in_bytes) throw error(errc::unsupported, "chunks without a codec from array to bytes cannot be encoded");
}

compressors::buffer chunk_encoder::compressed(compressors::buffer bytes) const {
  for (const bytes_encoder& e : bytes_encoders_) bytes = e.codec->encode(std::move(bytes), e.settings);
  return bytes;
}

compressors::buffer chunk_encoder::encode(std::span<const std::byte> values, const std::vector<std::uint64_t>& shape) const {
  if (!codec_) throw std::logic_error("numbers are encoded as strings");
  compressors::buffer transposed;
  if (!order_.empty()) {
    transposed.resize(values.size());
    std::byte* target = transposed.data();
    for_each_transposed(order_, shape, [&](std::size_t source) {
      std::memcpy(target, values.data() + source * element_, element_);
      target += element_;
    });
    values = transposed;
  }
  compressors::buffer bytes(static_cast<std::size_t>(codec_->encoded_size(element_ == 0 ? 0 : values.size() / element_)));
  const chunk_result result = encode_chunk(*codec_, values, bytes);
  if (!result) throw data_error(result.failure, codec_->explain(result.failure));
  return compressed(std::move(bytes));
}

compressors::buffer chunk_encoder::encode(std::span<const std::string> values, const std::vector<std::uint64_t>& shape) const {
  if (codec_) throw std::logic_error("strings are encoded as numbers");
  vlen_encoder chunk;
  if (order_.empty()) {
    for (const std::string& s : values) chunk.add(s);
  } else {
    for_each_transposed(order_, shape, [&](std::size_t source) { chunk.add(values[source]); });
  }
  return compressed(chunk.take());
}

}  // namespace zarrbits::codecs
