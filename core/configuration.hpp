// SPDX-License-Identifier: BSL-1.0
//
// The "configuration" object of a codec, read key by key; keys that are not read are refused.
//
#ifndef ZARRBITS_CORE_CONFIGURATION_HPP
#define ZARRBITS_CORE_CONFIGURATION_HPP

#include <zarrbits/codec.hpp>

#include <nlohmann/json_fwd.hpp>

#include <initializer_list>
#include <optional>
#include <set>
#include <string>

namespace zarrbits::detail {

class configuration {
 public:
  configuration(std::string codec, const nlohmann::ordered_json& object) : codec_(std::move(codec)), object_(object) {}

  // The value of the first key, or of its synonym. JSON null means absent. Throws if both are given and differ, or if the value
  // is not a string (bit(): not an integer from 0 on).
  std::optional<std::string> text(const char* key);
  std::optional<unsigned> bit(const char* key, const char* synonym, const data_type& type);

  // Throws unless every key was read.
  void nothing_else() const;

 private:
  const nlohmann::ordered_json* value(const char* key, const char* synonym);

  std::string codec_;
  const nlohmann::ordered_json& object_;
  std::set<std::string> known_keys_;
};

// One entry of the table of codecs: how to make one from JSON.
using codec_parser = codec (*)(configuration& c, const data_type& type, const codec_policy& policy);

codec parse_bytes(configuration& c, const data_type& type, const codec_policy& policy);
codec parse_packbits(configuration& c, const data_type& type, const codec_policy& policy);
codec parse_numcodecs_packbits(configuration& c, const data_type& type, const codec_policy& policy);

}  // namespace zarrbits::detail

#endif
