// SPDX-License-Identifier: BSL-1.0
#include "codecs/array_codecs.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <utility>

namespace zarrbits::codecs {

namespace {

// Calls `copy` for each row of the last dimension, with the index of the first element in the decoded and in the encoded chunk.
template <class Copy>
void for_each_row(const std::vector<std::uint64_t>& shape, const std::vector<std::size_t>& stride, const Copy& copy) {
  const std::size_t last = shape.size() - 1;
  std::size_t rows = 1;
  for (std::size_t d = 0; d < last; ++d) rows *= static_cast<std::size_t>(shape[d]);
  std::vector<std::uint64_t> index(last, 0);
  std::size_t encoded = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    copy(row * static_cast<std::size_t>(shape[last]), encoded);
    for (std::size_t d = last; d-- > 0;) {
      encoded += stride[d];
      if (++index[d] < shape[d]) break;
      encoded -= stride[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
}

// `size`: of an element; a constant in the calls for the usual sizes.
inline void copy_strided(const std::byte* in, std::size_t step, std::byte* out, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(out + i * size, in + i * step * size, size);
}

void copy_row(const std::byte* in, std::size_t step, std::byte* out, std::size_t count, std::size_t size) {
  switch (size) {
    case 1: return copy_strided(in, step, out, count, 1);
    case 2: return copy_strided(in, step, out, count, 2);
    case 4: return copy_strided(in, step, out, count, 4);
    case 8: return copy_strided(in, step, out, count, 8);
    default: return copy_strided(in, step, out, count, size);
  }
}

class transpose final : public array_codec {
 public:
  transpose(std::vector<std::size_t> order, const zarr::zarr_type& type)
      : order_(std::move(order)), is_variable_(type.variable()), size_(type.size) {}

  void decode(zarr::element_buffer& values, const std::vector<std::uint64_t>& shape, std::uint64_t) const override {
    if (order_.empty()) return;
    std::vector<std::size_t> stride(order_.size());  // of the decoded dimensions, in elements of the encoded chunk
    std::size_t step = 1;
    for (std::size_t i = order_.size(); i-- > 0;) {
      stride[order_[i]] = step;
      step *= static_cast<std::size_t>(shape[order_[i]]);
    }
    const auto length = static_cast<std::size_t>(shape.back());
    if (is_variable_) {
      std::vector<std::string> decoded(values.strings.size());
      for_each_row(shape, stride, [&](std::size_t target, std::size_t source) {
        for (std::size_t i = 0; i < length; ++i) decoded[target + i] = std::move(values.strings[source + i * stride.back()]);
      });
      values.strings = std::move(decoded);
    } else {
      std::vector<std::byte> decoded(values.data.size());
      for_each_row(shape, stride, [&](std::size_t target, std::size_t source) {
        copy_row(values.data.data() + source * size_, stride.back(), decoded.data() + target * size_, length, size_);
      });
      values.data = std::move(decoded);
    }
  }

 private:
  std::vector<std::size_t> order_;
  bool is_variable_;
  std::size_t size_;
};

}  // namespace

std::shared_ptr<const array_codec> make_transpose(const array_codec_source& source) {
  const auto list = source.configuration.find("order");
  if (list == source.configuration.end() || !list->is_array())
    throw zarr::not_supported(reason_code::unsupported_codec, "a transpose whose order is not a list");
  std::vector<std::size_t> order;
  std::vector<bool> is_used(source.rank);
  for (const nlohmann::json& entry : *list) {
    const std::uint64_t dimension = entry.is_number_unsigned() ? entry.get<std::uint64_t>() : source.rank;
    if (dimension >= source.rank || is_used[static_cast<std::size_t>(dimension)])
      throw zarr::store_error("the order of transpose is not a permutation");
    is_used[static_cast<std::size_t>(dimension)] = true;
    order.push_back(static_cast<std::size_t>(dimension));
  }
  if (order.size() != source.rank)
    throw zarr::store_error("the order of transpose has a different number of dimensions than the array");
  return std::make_shared<transpose>(std::move(order), source.type);
}

}  // namespace zarrbits::codecs
