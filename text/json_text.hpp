// SPDX-License-Identifier: BSL-1.0
//
// JSON from text and to text: the parser and writer of the JSON library are templates, and every file that calls them would spend
// a second or two to compile them.
//
#ifndef ZARRBITS_TEXT_JSON_TEXT_HPP
#define ZARRBITS_TEXT_JSON_TEXT_HPP

#include "core/json.hpp"
#include "text/format.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

using json = nlohmann::ordered_json;

// Invalid JSON throws nlohmann::json::exception or, with `may_be_anything`, becomes a value that is_discarded().
json parse_json(std::string_view text, bool may_be_anything = false);

// For a store or a journal, which may come from anyone. The result is_discarded() if it is not JSON, nests deeper than 128
// levels (later code recurses), or repeats a key. Time stays linear for any number of members. Accepts the words NaN, Infinity
// and -Infinity as numbers: zarr-python writes them. Numbers that fit in no type are binary values (core/json.hpp).
json parse_untrusted_json(std::string_view text);

// The metadata of a node of a store, or its attributes alone, as core/json.hpp has them. Throws zarrbits::error, which begins
// with `context`.
json parse_untrusted_node(std::string_view text, const std::string& context, std::vector<detail::attribute_remark>& remarks,
                          bool attributes_alone = false);

// The text that an object has under a name; "" for any other value.
std::string text_member(const json& object, const char* name);

// True if the text is the plan of an unfinished store of ours: --overwrite may remove it.
bool is_zarrbits_plan(std::string_view text);

// An object with many members whose names come from the file: no key is repeated, and each insertion takes the same time (json
// searches all members each time).
class object_builder {
 public:
  object_builder();
  object_builder(object_builder&&) noexcept;
  object_builder& operator=(object_builder&&) noexcept;
  ~object_builder();
  // False, without a change, if the key exists.
  bool add(const std::string& key, json value);
  bool empty() const;
  json take();

 private:
  struct content;
  std::unique_ptr<content> content_;
};

// As json_text(), for an object whose members are sorted.
std::string sorted_json_text(const nlohmann::json& j);

// As json_text(), but bytes that are not UTF-8 throw nlohmann::json::exception.
std::string strict_json_text(const json& j, int indent = -1);

// Texts "NaN", "Infinity" and "-Infinity", as Zarr spells fill values, in place of such numbers.
json nonfinite_to_strings(json j);

// As strict_json_text(), for a node that others wrote: numbers that are not finite, or fit in no type, stay the words that were
// read.
std::string python_json_text(const json& j, int indent = -1);

}  // namespace zarrbits::text

#endif
