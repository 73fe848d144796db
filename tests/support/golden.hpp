// SPDX-License-Identifier: BSL-1.0
//
// The golden vectors: made by an independent, slow model, never by this library.
//
#ifndef ZARRBITS_TESTS_SUPPORT_GOLDEN_HPP
#define ZARRBITS_TESTS_SUPPORT_GOLDEN_HPP

#include "test_data.hpp"

#include <zarrbits/codec.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace golden {

using bytes = std::vector<std::byte>;

struct vector {
  std::size_t index = 0;
  std::string codec;      // JSON
  std::string data_type;  // name or JSON
  std::uint64_t elements = 0;
  std::optional<bytes> decoded, encoded;  // decoded: as it lies in this machine's memory
  std::string error;                      // why it must be refused; empty: it must work
  std::string stage;                      // "configure", "encode", "decode"; without an error: the only direction that holds
  zarrbits::codec_policy policy;

  zarrbits::codec make() const { return zarrbits::parse_codec(codec, zarrbits::data_type(data_type), policy); }
  bool encodes() const { return decoded && stage != "decode" && stage != "configure"; }
  bool decodes() const { return encoded && stage != "encode" && stage != "configure"; }
  std::string name() const {
    return "vector " + std::to_string(index) + ": " + codec + " " + data_type + " x" + std::to_string(elements);
  }
};

inline bytes from_hex(const std::string& hex) {
  bytes out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

inline std::string to_hex(const bytes& b) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte x : b) {
    out += digits[std::to_integer<unsigned>(x) >> 4];
    out += digits[std::to_integer<unsigned>(x) & 15];
  }
  return out;
}

// The file has decoded elements in little-endian order. Reverses each component that `data` has whole, with nothing of the
// library but the sizes of types; returns the rest of `data` after one element.
inline std::span<std::byte> reverse_components(const nlohmann::json& type, std::span<std::byte> data) {
  if (type.is_object() && type["name"] == "struct") {
    for (const nlohmann::json& field : type["configuration"]["fields"]) data = reverse_components(field["data_type"], data);
    return data;
  }
  const zarrbits::data_type t(type.is_string() ? type.get<std::string>() : type.dump());
  const std::size_t size = t.element_size(), unit = t.name() == "fixed_length_utf32" ? 4
                                                    : t.components() != 0            ? size / t.components()
                                                                                     : 1;
  for (std::size_t at = 0; at < size && at + unit <= data.size(); at += unit)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at), data.begin() + static_cast<std::ptrdiff_t>(at + unit));
  return data.subspan(std::min(size, data.size()));
}

inline const std::vector<vector>& vectors() {
  static const std::vector<vector> all = [] {
    std::ifstream file(golden_file("codecs.json"));
    std::vector<vector> out;
    for (const nlohmann::json& j : nlohmann::json::parse(file)) {
      vector v;
      v.index = out.size();
      v.codec = j.contains("codec_json") ? j["codec_json"].dump()
                                         : nlohmann::json{{"name", j["codec"]}, {"configuration", j["configuration"]}}.dump();
      v.data_type = j["data_type"].is_string() ? j["data_type"].get<std::string>() : j["data_type"].dump();
      v.elements = j["elements"];
      if (j.contains("decoded")) v.decoded = from_hex(j["decoded"]);
      if (j.contains("encoded")) v.encoded = from_hex(j["encoded"]);
      v.error = j.value("error", "");
      v.stage = j.value("stage", "");
      if (std::endian::native == std::endian::big && v.decoded && v.stage != "configure")
        for (std::span<std::byte> rest = *v.decoded; !rest.empty();) rest = reverse_components(j["data_type"], rest);
      v.policy.truncate = j.value("truncate", false);
      v.policy.nonzero_is_true = j.value("nonzero_is_true", false);
      out.push_back(std::move(v));
    }
    if (out.size() < 4000) throw std::runtime_error("the golden vectors are not all there");
    return out;
  }();
  return all;
}

}  // namespace golden

#endif
