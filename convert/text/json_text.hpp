// SPDX-License-Identifier: BSL-1.0
//
// JSON from text and to text: json's parser and writer are templates, which every file that calls them compiles anew, for a
// second or two.
//
#ifndef ZARRBITS_CONVERT_TEXT_JSON_TEXT_HPP
#define ZARRBITS_CONVERT_TEXT_JSON_TEXT_HPP

#include "text/words.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

using json = nlohmann::ordered_json;

// Text that is no JSON throws nlohmann::json::exception, or, where it may be anything, becomes a value that is_discarded().
json parse_json(std::string_view text, bool may_be_anything = false);

// Of a store or a journal, which anybody may have written. What is none, nests deeper than 128 levels (what is done with JSON
// later recurses) or gives a key twice is_discarded(). Any number of members takes its time.
json parse_foreign_json(std::string_view text);

// Text that reads as a node of Zarr v3, and as the plan of an unfinished store of ours: what --overwrite may remove.
bool is_zarr_node(std::string_view text);
bool is_own_plan(std::string_view text);

// An object with many members, which the file names: no key is in it twice, and each takes the same time (json looks through all
// for each).
class object_builder {
 public:
  object_builder();
  object_builder(object_builder&&) noexcept;
  object_builder& operator=(object_builder&&) noexcept;
  ~object_builder();
  // False, and nothing changes, where the key is there already.
  bool add(const std::string& key, json value);
  bool empty() const;
  json take();

 private:
  struct content;
  std::unique_ptr<content> content_;
};

using text::json_text;

// As json_text(), but what is not UTF-8 throws nlohmann::json::exception.
std::string strict_json_text(const json& j, int indent = -1);

}  // namespace zarrbits::conversion

#endif
