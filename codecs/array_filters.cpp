// SPDX-License-Identifier: BSL-1.0
#include "codecs/array_codecs.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

namespace zarrbits::codecs {

using nlohmann::json;

namespace {

// The data types of numpy that these filters take.
enum class number { bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64 };

struct number_name {
  number type;
  std::string_view name, numpy_name;
  std::size_t size;
};
constexpr number_name number_names[] = {
    {number::bool_, "bool", "b1", 1},      {number::int8, "int8", "i1", 1},       {number::int16, "int16", "i2", 2},
    {number::int32, "int32", "i4", 4},     {number::int64, "int64", "i8", 8},     {number::uint8, "uint8", "u1", 1},
    {number::uint16, "uint16", "u2", 2},   {number::uint32, "uint32", "u4", 4},   {number::uint64, "uint64", "u8", 8},
    {number::float32, "float32", "f4", 4}, {number::float64, "float64", "f8", 8},
};

const number_name& name_of(number type) { return number_names[static_cast<std::size_t>(type)]; }

// "<i4", "i4" or "int32".
std::optional<number> parse_number(std::string_view dtype) {
  if (dtype.find_first_of("<>|=") == 0) dtype.remove_prefix(1);
  for (const number_name& n : number_names) {
    if (dtype == n.name || dtype == n.numpy_name) return n.type;
  }
  return {};
}

// The data type under a key of the configuration.
number number_in(const array_codec_source& source, const char* key, std::optional<number> otherwise) {
  const json value = source.configuration.value(key, json());
  if (value.is_null() && otherwise) return *otherwise;
  const auto parsed = value.is_string() ? parse_number(value.get_ref<const std::string&>()) : std::nullopt;
  if (!parsed)
    throw zarr::not_supported(reason_code::unsupported_codec, "the codec " + std::string(metadata::codec_name(source.codec)) +
                                                                  " with the " + key + " " + text::sorted_json_text(value));
  return *parsed;
}

double real_in(const json& configuration, const char* key) {
  const json value = configuration.value(key, json());
  if (!value.is_number()) throw zarr::store_error("\"" + std::string(key) + "\" of numcodecs.fixedscaleoffset is not a number");
  return value.get<double>();
}

// Calls `call` with a zero of the type.
template <class Call>
void visit(number type, const Call& call) {
  switch (type) {
    case number::bool_:
    case number::uint8: return call(std::uint8_t());
    case number::uint16: return call(std::uint16_t());
    case number::uint32: return call(std::uint32_t());
    case number::uint64: return call(std::uint64_t());
    case number::int8: return call(std::int8_t());
    case number::int16: return call(std::int16_t());
    case number::int32: return call(std::int32_t());
    case number::int64: return call(std::int64_t());
    case number::float32: return call(float());
    case number::float64: return call(double());
  }
}

// As C converts; a number that no 64-bit integer holds becomes the smallest one, as on x86.
template <class To, class From>
To cast(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr double limit = 0x1p63;
    const auto wide = static_cast<double>(value);
    if (wide >= limit && wide < 2 * limit) return static_cast<To>(static_cast<std::uint64_t>(wide));
    return static_cast<To>(wide >= -limit && wide < limit ? static_cast<std::int64_t>(wide) : INT64_MIN);
  } else {
    return static_cast<To>(value);
  }
}

// Decodes value by value: `decode` gets an encoded value and the decoded one before it (0 for the first).
template <class To, class From, class Decode>
std::vector<std::byte> decode_each(const std::vector<std::byte>& in, const Decode& decode) {
  const std::size_t count = in.size() / sizeof(From);
  std::vector<std::byte> out(count * sizeof(To));
  To decoded{};
  for (std::size_t i = 0; i < count; ++i) {
    From encoded;
    std::memcpy(&encoded, in.data() + i * sizeof encoded, sizeof encoded);
    decoded = decode(encoded, decoded);
    std::memcpy(out.data() + i * sizeof decoded, &decoded, sizeof decoded);
  }
  return out;
}

// delta, fixedscaleoffset; quantize and astype, whose values only change their type; and bitround, whose values stay.
class number_filter final : public array_codec {
 public:
  enum class operation { none, cast, sum, scale };

  number_filter(operation op, number encoded, number decoded, double scale = 1, double offset = 0)
      : operation_(op), encoded_(encoded), decoded_(decoded), scale_(scale), offset_(offset) {}

  std::string encoded_type() const override { return std::string(name_of(encoded_).name); }

  void decode(zarr::element_buffer& values, const std::vector<std::uint64_t>&, std::uint64_t) const override {
    if (operation_ == operation::none) return;
    visit(encoded_, [&](auto source) {
      visit(decoded_, [&](auto target) { values.data = decoded<decltype(target), decltype(source)>(values.data); });
    });
  }

 private:
  template <class To, class From>
  std::vector<std::byte> decoded(const std::vector<std::byte>& in) const {
    const bool to_bool = decoded_ == number::bool_;
    const auto final_value = [=](auto v) { return to_bool ? static_cast<To>(v != decltype(v)(0)) : cast<To>(v); };
    if (operation_ == operation::sum) {
      return decode_each<To, From>(in, [=](From v, To previous) {
        if constexpr (std::is_integral_v<To>) {  // wraps around
          return static_cast<To>(static_cast<std::uint64_t>(previous) + static_cast<std::uint64_t>(final_value(v)));
        } else {
          return previous + static_cast<To>(v);
        }
      });
    }
    if (operation_ == operation::scale) {
      // float32 stays float32 in numpy; integers become float64
      using real = std::conditional_t<std::is_same_v<From, float>, float, double>;
      const auto scale = static_cast<real>(scale_), offset = static_cast<real>(offset_);
      return decode_each<To, From>(in, [=](From v, To) {
        const real quotient = static_cast<real>(v) / scale;
        return final_value(static_cast<real>(quotient + offset));
      });
    }
    return decode_each<To, From>(in, [=](From v, To) { return final_value(v); });
  }

  operation operation_;
  number encoded_, decoded_;
  double scale_, offset_;
};

// Numbers of labels, from 1 on; all others are "".
class categorize final : public array_codec {
 public:
  categorize(number encoded, std::vector<std::string> labels, const zarr::zarr_type& type)
      : encoded_(encoded), labels_(std::move(labels)), type_(type) {}

  std::string encoded_type() const override { return std::string(name_of(encoded_).name); }

  void decode(zarr::element_buffer& values, const std::vector<std::uint64_t>&, std::uint64_t max_string_bytes) const override {
    std::vector<std::byte> numbers;
    visit(encoded_, [&](auto source) {
      using source_type = decltype(source);
      numbers = decode_each<std::uint64_t, source_type>(values.data,
                                                        [](source_type v, std::uint64_t) { return cast<std::uint64_t>(v); });
    });
    const std::size_t count = numbers.size() / sizeof(std::uint64_t);
    if (count > max_string_bytes / sizeof(std::string))
      throw zarr::not_supported(reason_code::too_large, "a chunk of more texts than the memory holds");
    // calls `put` with the index of an element and that of its label
    const auto for_each_label = [&](const auto& put) {
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t label = 0;
        std::memcpy(&label, numbers.data() + i * sizeof label, sizeof label);
        if (label >= 1 && label <= labels_.size()) put(i, static_cast<std::size_t>(label - 1));
      }
    };
    values.data.clear();
    if (type_.kind == zarr::zarr_kind::text32) {
      std::vector<std::vector<std::byte>> elements;
      for (const std::string& label : labels_) elements.push_back(zarr::parse_fill(type_, json(label)).data);
      values.data.resize(count * type_.size);
      for_each_label([&](std::size_t i, std::size_t label) {
        std::memcpy(values.data.data() + i * type_.size, elements[label].data(), type_.size);
      });
      return;
    }
    values.strings.assign(count, "");
    std::uint64_t bytes = 0;
    for_each_label([&](std::size_t i, std::size_t label) {
      bytes += labels_[label].size();
      if (bytes > max_string_bytes)
        throw zarr::not_supported(reason_code::too_large, "a chunk of longer texts than the memory holds");
      values.strings[i] = labels_[label];
    });
  }

 private:
  number encoded_;
  std::vector<std::string> labels_;
  zarr::zarr_type type_;
};

}  // namespace

std::shared_ptr<const array_codec> make_categorize(const array_codec_source& source) {
  const number encoded = number_in(source, "astype", number::uint8);
  const json list = source.configuration.value("labels", json());
  if (!list.is_array()) throw zarr::store_error("the \"labels\" of numcodecs.categorize are not a list");
  std::vector<std::string> labels;
  for (const json& label : list) {
    if (!label.is_string()) throw zarr::store_error("a label of numcodecs.categorize is not a text");
    labels.push_back(label.get<std::string>());
  }
  if (source.type.kind != zarr::zarr_kind::text && source.type.kind != zarr::zarr_kind::text32)
    throw zarr::store_error("the codec numcodecs.categorize does not take " + source.type.name);
  return std::make_shared<categorize>(encoded, std::move(labels), source.type);
}

std::shared_ptr<const array_codec> make_array_filter(const array_codec_source& source) {
  using operation = number_filter::operation;
  using metadata::codec_id;
  const std::string name(metadata::codec_name(source.codec));
  const auto array = parse_number(source.type.name);
  if (source.codec == codec_id::bit_round) {
    number same = number::uint8;
    if (array) same = *array;
    else if (const auto unsigned_number = parse_number("u" + std::to_string(source.type.size))) same = *unsigned_number;
    else throw zarr::not_supported(reason_code::unsupported_codec, "the codec " + name + " of " + source.type.name);
    return std::make_shared<number_filter>(operation::none, same, same);
  }
  const bool casts = source.codec == codec_id::as_type;
  const number decoded = number_in(source, casts ? "decode_dtype" : "dtype", array);
  const number encoded = number_in(source, casts ? "encode_dtype" : "astype", casts ? std::nullopt : std::optional(decoded));
  if (name_of(decoded).size != source.type.size)
    throw zarr::store_error("the codec " + name + " makes " + std::string(name_of(decoded).name) + ", but the array is " +
                            source.type.name);
  if (source.codec == codec_id::fixed_scale_offset) {
    return std::make_shared<number_filter>(operation::scale, encoded, decoded, real_in(source.configuration, "scale"),
                                           real_in(source.configuration, "offset"));
  }
  return std::make_shared<number_filter>(source.codec == codec_id::delta ? operation::sum : operation::cast, encoded, decoded);
}

}  // namespace zarrbits::codecs
