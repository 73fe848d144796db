// SPDX-License-Identifier: BSL-1.0
#include "verify/decode/plain_array_filters.hpp"

#include "text/format.hpp"
#include "text/json_text.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr std::string_view prefix = "numcodecs.";

struct named_kind {
  char letter;
  std::string_view name;
};
constexpr std::array<named_kind, 3> kinds = {{{'i', "int"}, {'u', "uint"}, {'f', "float"}}};

// Calls `call` with a value of the number's type.
template <class Call>
void visit_type(const numpy_number& n, const Call& call) {
  const bool is_float = n.kind == 'f', is_signed = n.kind == 'i';
  switch (n.size) {
    case 1: return is_signed ? call(std::int8_t()) : call(std::uint8_t());
    case 2: return is_signed ? call(std::int16_t()) : call(std::uint16_t());
    case 4: return is_float ? call(float()) : is_signed ? call(std::int32_t()) : call(std::uint32_t());
    default: return is_float ? call(double()) : is_signed ? call(std::int64_t()) : call(std::uint64_t());
  }
}

// As C converts, but without an undefined case: what no integer holds becomes the smallest one, as processors have it.
template <class To, class From>
To converted(From value, bool to_bool) {
  if (to_bool) return static_cast<To>(value != From(0) ? 1 : 0);
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const auto v = static_cast<double>(value);
    if (v >= -0x1p63 && v < 0x1p63) return static_cast<To>(static_cast<std::int64_t>(v));
    if (v >= 0x1p63 && v < 0x1p64) return static_cast<To>(static_cast<std::uint64_t>(v));
    return static_cast<To>(INT64_MIN);
  } else {
    return static_cast<To>(value);
  }
}

// Each value of one type becomes one of another, in order.
template <class Each>
std::vector<std::byte> convert_values(const std::vector<std::byte>& in, const numpy_number& source_type,
                                      const numpy_number& target_type, const Each& convert) {
  const std::size_t n = in.size() / source_type.size;
  std::vector<std::byte> out(n * target_type.size);
  visit_type(source_type, [&](auto source) {
    visit_type(target_type, [&](auto target) {
      auto state = target;
      for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(&source, in.data() + i * sizeof source, sizeof source);
        target = convert(source, state);
        std::memcpy(out.data() + i * sizeof target, &target, sizeof target);
      }
    });
  });
  return out;
}

double real_in(const json& configuration, const char* key) {
  const json value = configuration.value(key, json());
  if (!value.is_number()) throw zarr::store_error("\"" + std::string(key) + "\" of numcodecs.fixedscaleoffset is not a number");
  return value.get<double>();
}

}  // namespace

bool is_array_filter(std::string_view name) {
  for (const char* id : {"delta", "fixedscaleoffset", "quantize", "astype", "bitround", "categorize"}) {
    if (name.starts_with(prefix) && name.substr(prefix.size()) == id) return true;
  }
  return false;
}

std::string numpy_number::name() const {
  if (kind == 'b') return "bool";
  std::string result;
  for (const auto& [letter, word] : kinds) result += letter == kind ? word : "";
  return result + std::to_string(8 * size);
}

std::optional<numpy_number> numpy_number_of(const std::string& dtype) {
  const std::string text =
      !dtype.empty() && std::string_view("<>|=").find(dtype[0]) != std::string_view::npos ? dtype.substr(1) : dtype;
  if (text == "b1" || text == "bool") return numpy_number{'b', 1};
  for (const std::size_t size : {1U, 2U, 4U, 8U}) {
    for (const auto& [letter, word] : kinds) {
      if (letter == 'f' && size < 4) continue;
      if (text == letter + std::to_string(size) || text == std::string(word) + std::to_string(8 * size))
        return numpy_number{letter, size};
    }
  }
  return {};
}

plain_array_filter::plain_array_filter(const std::string& name, const json& configuration, const zarr::zarr_type& array)
    : array_(array) {
  const auto number = [&](const char* key, std::optional<numpy_number> otherwise) {
    const json value = configuration.value(key, json());
    if (value.is_null() && otherwise) return *otherwise;
    const auto parsed = value.is_string() ? numpy_number_of(value.get<std::string>()) : std::nullopt;
    if (!parsed)
      throw zarr::not_supported(reason_code::unsupported_codec,
                                "the codec " + name + " with the " + key + " " + text::sorted_json_text(value));
    return *parsed;
  };
  if (name == "numcodecs.categorize") {
    kind_ = categories;
    encoded_ = number("astype", numpy_number{'u', 1});
    const json labels = configuration.value("labels", json());
    if (!labels.is_array()) throw zarr::store_error("the \"labels\" of numcodecs.categorize are not a list");
    labels_.emplace();
    for (const json& label : labels) {
      if (!label.is_string()) throw zarr::store_error("a label of numcodecs.categorize is not a text");
      labels_->push_back(label.get<std::string>());
    }
    if (array.kind != zarr::zarr_kind::text && array.kind != zarr::zarr_kind::text32)
      throw zarr::store_error("the codec numcodecs.categorize does not take " + array.name);
    return;
  }
  const auto array_number = numpy_number_of(array.name);
  if (name == "numcodecs.bitround") {
    encoded_ = decoded_ = array_number ? *array_number : numpy_number{'u', array.size};
    if (encoded_.size != 1 && encoded_.size != 2 && encoded_.size != 4 && encoded_.size != 8)
      throw zarr::not_supported(reason_code::unsupported_codec, "the codec " + name + " of " + array.name);
    return;
  }
  const bool casts = name == "numcodecs.astype";
  decoded_ = number(casts ? "decode_dtype" : "dtype", array_number);
  encoded_ = number(casts ? "encode_dtype" : "astype", casts ? std::nullopt : std::optional(decoded_));
  if (decoded_.size != array.size)
    throw zarr::store_error("the codec " + name + " makes " + decoded_.name() + ", but the array is " + array.name);
  kind_ = name == "numcodecs.delta" ? delta : name == "numcodecs.fixedscaleoffset" ? scaled : cast;
  if (kind_ != scaled) return;
  scale_ = real_in(configuration, "scale");
  offset_ = real_in(configuration, "offset");
}

void plain_array_filter::decode(zarr::element_buffer& values, std::uint64_t max_bytes) const {
  const bool to_bool = decoded_.kind == 'b';
  switch (kind_) {
    case none: return;
    case categories: return decode_texts(values, max_bytes);
    case cast:
      values.data = convert_values(values.data, encoded_, decoded_, [&](auto v, auto& state) {
        return converted<std::remove_reference_t<decltype(state)>>(v, to_bool);
      });
      return;
    case delta:  // sums in the type of the array, as numpy's cumsum() with that output
      values.data = convert_values(values.data, encoded_, decoded_, [&](auto v, auto& sum) {
        using target_type = std::remove_reference_t<decltype(sum)>;
        if constexpr (std::is_integral_v<target_type>) {
          using bits = std::make_unsigned_t<target_type>;
          sum = static_cast<target_type>(
              static_cast<bits>(static_cast<bits>(sum) + static_cast<bits>(converted<target_type>(v, to_bool))));
        } else {
          sum += static_cast<target_type>(v);
        }
        return sum;
      });
      return;
    case scaled:  // float32 stays float32 in numpy; integers become float64
      values.data = convert_values(values.data, encoded_, decoded_, [&](auto v, auto& state) {
        using target_type = std::remove_reference_t<decltype(state)>;
        if constexpr (std::is_same_v<decltype(v), float>) {
          const float one = v / static_cast<float>(scale_);
          return converted<target_type>(one + static_cast<float>(offset_), to_bool);
        } else {
          const double one = static_cast<double>(v) / scale_;
          return converted<target_type>(one + offset_, to_bool);
        }
      });
      return;
  }
}

void plain_array_filter::decode_texts(zarr::element_buffer& values, std::uint64_t max_bytes) const {
  const std::vector<std::byte> numbers = convert_values(values.data, encoded_, {'u', 8}, [](auto v, auto& state) {
    return converted<std::remove_reference_t<decltype(state)>>(v, false);
  });
  const std::size_t n = numbers.size() / 8;
  if (n > max_bytes / sizeof(std::string))
    throw zarr::not_supported(reason_code::too_large, "a chunk of more texts than the memory holds");
  values.data.clear();
  std::vector<std::vector<std::byte>> fixed;
  for (const std::string& label : *labels_) {
    if (array_.kind != zarr::zarr_kind::text32) break;
    fixed.push_back(zarr::parse_fill(array_, json(label)).data);
  }
  if (array_.kind == zarr::zarr_kind::text32) values.data.resize(n * array_.size);
  else values.strings.resize(n);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t label = 0;
    std::memcpy(&label, numbers.data() + 8 * i, 8);
    if (label == 0 || label > labels_->size()) continue;  // numcodecs has "" for them
    const auto index = static_cast<std::size_t>(label - 1);
    if (array_.kind == zarr::zarr_kind::text32) {
      std::memcpy(values.data.data() + i * array_.size, fixed[index].data(), array_.size);
      continue;
    }
    values.strings[i] = (*labels_)[index];
    bytes += values.strings[i].size();
    if (bytes > max_bytes) throw zarr::not_supported(reason_code::too_large, "a chunk of longer texts than the memory holds");
  }
}

}  // namespace zarrbits::verification
