// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/options_json.hpp"

#include "convert/pipeline/compression.hpp"
#include "convert/pipeline/target_options.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

namespace {

// Thrown for an invalid value of an option: the plan is untrusted.
struct invalid_value {};

std::uint64_t number_in(const text::json& j, std::uint64_t max_value = std::numeric_limits<std::uint64_t>::max()) {
  if (!j.is_number_unsigned() || j.get<std::uint64_t>() > max_value) throw invalid_value();
  return j.get<std::uint64_t>();
}

bool truth(const text::json& j) {
  if (!j.is_boolean()) throw invalid_value();
  return j.get<bool>();
}

const text::json& member(const text::json& j, const char* key) {
  if (!j.is_object() || !j.contains(key)) throw invalid_value();
  return j[key];
}

template <class E>
void take_enum(const text::json& j, E last, E& target) {
  target = static_cast<E>(number_in(j, static_cast<std::uint64_t>(last)));
}

void take_list(const text::json& j, std::vector<std::string>& target) {
  if (!j.is_array()) throw invalid_value();
  for (const text::json& text : j) {
    if (!text.is_string()) throw invalid_value();
    target.push_back(text.get<std::string>());
  }
}

void take_list(const text::json& j, std::vector<std::uint64_t>& target) {
  if (!j.is_array()) throw invalid_value();
  for (const text::json& n : j) target.push_back(number_in(n));
}

template <class E>
std::uint64_t as_number(E value) {
  return static_cast<std::uint64_t>(value);
}

text::json value_of(const std::optional<compression>& setting) {
  if (!setting) return nullptr;
  const compression c = with_level(*setting);
  return {{"kind", as_number(c.kind)},
          {"level", as_number(c.level)},
          {"inside", as_number(c.inside)},
          {"shuffle", as_number(c.shuffle)}};
}

void take(const text::json& j, std::optional<compression>& target) {
  if (j.is_null()) return;
  compression& c = target.emplace();
  take_enum(member(j, "kind"), compressor::blosc, c.kind);
  c.level = static_cast<int>(number_in(member(j, "level"), 100));
  take_enum(member(j, "inside"), blosc_compressor::zstd, c.inside);
  take_enum(member(j, "shuffle"), blosc_shuffle::bits, c.shuffle);
}

// For an enumeration that is optional.
template <class E>
text::json value_of(const std::optional<E>& setting) {
  return setting ? text::json(as_number(*setting)) : text::json(nullptr);
}

template <class E>
void take(const text::json& j, E last, std::optional<E>& target) {
  if (!j.is_null()) take_enum(j, last, target.emplace());
}

text::json bits_of(const convert_options& o) {
  text::json result = {{"all", value_of(o.encoding.bits)}, {"of", text::json::array()}};
  for (const auto& b : o.encoding.bits_of)
    result["of"].push_back({{"pattern", b.pattern}, {"first", b.first_bit}, {"last", b.last_bit}});
  return result;
}

void take_bits(const text::json& j, convert_options& o) {
  if (const text::json& all_bits = member(j, "all"); !all_bits.is_null())
    o.encoding.bits = static_cast<unsigned>(number_in(all_bits, 64));
  if (!member(j, "of").is_array()) throw invalid_value();
  for (const text::json& of : member(j, "of")) {
    if (!member(of, "pattern").is_string()) throw invalid_value();
    o.encoding.bits_of.push_back({of["pattern"].get<std::string>(), static_cast<unsigned>(number_in(member(of, "first"), 63)),
                                  static_cast<unsigned>(number_in(member(of, "last"), 63))});
  }
}

text::json chunks_of(const convert_options& o) {
  text::json result = {{"shape", o.encoding.chunk}, {"along", text::json::array()}};
  for (const auto& c : o.encoding.chunk_along) {
    text::json lengths = text::json::array();
    for (const auto& along : c.lengths) lengths.push_back({{"dimension", along.dimension}, {"length", along.length}});
    result["along"].push_back({{"pattern", c.pattern}, {"lengths", std::move(lengths)}});
  }
  return result;
}

std::string text_in(const text::json& j) {
  if (!j.is_string()) throw invalid_value();
  return j.get<std::string>();
}

void take_chunks(const text::json& j, convert_options& o) {
  take_list(member(j, "shape"), o.encoding.chunk);
  if (!member(j, "along").is_array()) throw invalid_value();
  for (const text::json& entry : member(j, "along")) {
    auto& chunks = o.encoding.chunk_along.emplace_back();
    chunks.pattern = text_in(member(entry, "pattern"));
    if (!member(entry, "lengths").is_array()) throw invalid_value();
    for (const text::json& along : member(entry, "lengths"))
      chunks.lengths.push_back({text_in(member(along, "dimension")), number_in(member(along, "length"))});
  }
}

text::json value_of(const std::optional<source_base>& base) {
  return base ? text::json{{"folder", base->folder}, {"url", base->url}} : text::json(nullptr);
}

void take(const text::json& j, std::optional<source_base>& target) {
  if (j.is_null()) return;
  target = {text_in(member(j, "folder")), text_in(member(j, "url"))};
}

text::json value_of(const std::optional<shard_size>& shard) {
  return shard ? text::json{{"bytes", shard->bytes}, {"shape", shard->shape}} : text::json(nullptr);
}

void take(const text::json& j, std::optional<shard_size>& target) {
  if (j.is_null()) return;
  shard_size& shard = target.emplace();
  shard.bytes = number_in(member(j, "bytes"));
  take_list(member(j, "shape"), shard.shape);
}

using options_in = const convert_options&;
using options_out = convert_options&;

// An option: whether it is set, how to write it to the plan, and how to read it.
struct option {
  const char* name;
  bool (*is_set)(options_in);
  text::json (*value)(options_in);
  void (*take)(const text::json&, options_out);
};

// clang-format off
const option known_options[] = {
    {"profile",
     [](options_in o) { return o.encoding.profile.has_value(); },
     [](options_in o) { return value_of(o.encoding.profile); },
     [](const text::json& j, options_out o) { take(j, profile::recode, o.encoding.profile); }},
    {"compress",
     [](options_in o) { return o.encoding.compress.has_value(); },
     [](options_in o) { return value_of(o.encoding.compress); },
     [](const text::json& j, options_out o) { take(j, o.encoding.compress); }},
    {"chunk",
     [](options_in o) { return o.encoding.sets_chunks(); },
     chunks_of,
     take_chunks},
    {"write_empty_chunks",
     [](options_in o) { return o.encoding.write_empty_chunks; },
     [](options_in o) { return text::json(o.encoding.write_empty_chunks); },
     [](const text::json& j, options_out o) { o.encoding.write_empty_chunks = truth(j); }},
    {"shard",
     [](options_in o) { return o.encoding.shard.has_value(); },
     [](options_in o) { return value_of(o.encoding.shard); },
     [](const text::json& j, options_out o) { take(j, o.encoding.shard); }},
    {"grid",
     [](options_in o) { return o.encoding.grid != grid_type::regular; },
     [](options_in o) { return text::json(as_number(o.encoding.grid)); },
     [](const text::json& j, options_out o) { take_enum(j, grid_type::rectilinear, o.encoding.grid); }},
    {"checksum",
     [](options_in o) { return o.encoding.checksum != checksum::none; },
     [](options_in o) { return text::json(as_number(o.encoding.checksum)); },
     [](const text::json& j, options_out o) { take_enum(j, checksum::crc32c, o.encoding.checksum); }},
    {"codec",
     [](options_in o) { return o.encoding.codec != array_codec::automatic; },
     [](options_in o) { return text::json(as_number(o.encoding.codec)); },
     [](const text::json& j, options_out o) { take_enum(j, array_codec::packbits, o.encoding.codec); }},
    {"convention",
     [](options_in o) { return o.target.convention.has_value(); },
     [](options_in o) { return value_of(o.target.convention); },
     [](const text::json& j, options_out o) { take(j, convention::pytables, o.target.convention); }},
    {"links",
     [](options_in o) { return o.selection.links.has_value(); },
     [](options_in o) { return value_of(o.selection.links); },
     [](const text::json& j, options_out o) { take(j, link_policy::refuse, o.selection.links); }},
    {"bits",
     [](options_in o) { return o.encoding.bits || !o.encoding.bits_of.empty(); },
     bits_of,
     take_bits},
    {"include",
     [](options_in o) { return !o.selection.include.empty(); },
     [](options_in o) { return text::json(o.selection.include); },
     [](const text::json& j, options_out o) { take_list(j, o.selection.include); }},
    {"with_coordinates",
     [](options_in o) { return o.selection.with_coordinates; },
     [](options_in o) { return text::json(o.selection.with_coordinates); },
     [](const text::json& j, options_out o) { o.selection.with_coordinates = truth(j); }},
    {"exclude",
     [](options_in o) { return !o.selection.exclude.empty(); },
     [](options_in o) { return text::json(o.selection.exclude); },
     [](const text::json& j, options_out o) { take_list(j, o.selection.exclude); }},
    {"references",
     [](options_in o) { return o.target.references; },
     [](options_in o) { return value_of(inline_limit(o.target)); },
     [](const text::json& j, options_out o) { if (!j.is_null()) o.target.references = true, o.target.inline_bytes = number_in(j); }},
    {"zarr_format",
     [](options_in o) { return o.target.zarr_format.has_value(); },
     [](options_in o) {
       if (o.target.references) return value_of(std::optional(o.target.zarr_format.value_or(zarr_format::both)));
       return value_of(o.target.is_v2_copy() ? o.target.zarr_format : std::nullopt);
     },
     [](const text::json& j, options_out o) { take(j, zarr_format::both, o.target.zarr_format); }},
    {"base",
     [](options_in o) { return o.target.base.has_value(); },
     [](options_in o) { return value_of(o.target.base); },
     [](const text::json& j, options_out o) { take(j, o.target.base); }},
    {"keep_going",
     [](options_in o) { return o.execution.keep_going; },
     [](options_in o) { return text::json(o.execution.keep_going); },
     [](const text::json& j, options_out o) { o.execution.keep_going = truth(j); }},
    {"allow_expansion",
     [](options_in o) { return o.execution.allow_expansion; },
     [](options_in o) { return text::json(o.execution.allow_expansion); },
     [](const text::json& j, options_out o) { o.execution.allow_expansion = truth(j); }},
};
// clang-format on

}  // namespace

text::json options_json(const convert_options& o) {
  text::json result = text::json::object();
  for (const option& entry : known_options) result[entry.name] = entry.value(o);
  return result;
}

namespace {

bool is_permission(const std::string& name) { return name == "keep_going" || name == "allow_expansion"; }

}  // namespace

bool same_options(const text::json& plan, const text::json& other) {
  return std::all_of(std::begin(known_options), std::end(known_options), [&](const option& entry) {
    return is_permission(entry.name) ||
           (plan.contains(entry.name) && other.contains(entry.name) && plan[entry.name] == other[entry.name]);
  });
}

bool load_options_json(const text::json& plan, convert_options& o, bool strict) {
  const text::json own_values = text::parse_json(text::json_text(options_json(o)));  // numbers as the parser returns them
  convert_options updated = o;
  conflicting_options differing;
  bool has_changes = false;
  try {
    for (const option& entry : known_options) {
      const text::json& plan_value = member(plan, entry.name);
      if (plan_value == own_values[entry.name]) continue;
      const bool permission = is_permission(entry.name), is_given = entry.is_set(o);
      convert_options read = o;
      entry.take(plan_value, read);  // whether it can be read at all
      if (!is_given && (!strict || permission)) entry.take(plan_value, updated);
      else if (!permission) differing.names += (differing.names.empty() ? "`" : ", `") + std::string(entry.name) + "`";
      has_changes = true;
    }
  } catch (const invalid_value&) {
    throw invalid_plan();
  }
  if (!differing.names.empty()) throw differing;
  o = std::move(updated);
  check_options(o);
  return has_changes;
}

}  // namespace zarrbits::conversion
