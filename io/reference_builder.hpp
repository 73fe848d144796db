// SPDX-License-Identifier: BSL-1.0
//
// Gathers references while they are read, within bounds.
//
#ifndef ZARRBITS_IO_REFERENCE_BUILDER_HPP
#define ZARRBITS_IO_REFERENCE_BUILDER_HPP

#include "io/reference_table.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zarrbits::io {

// A key that a store can have: names between slashes.
inline bool is_key(std::string_view key) {
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view name = key.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return true;
}

// Each file is in the table once.
class table_builder {
 public:
  explicit table_builder(std::uint64_t memory) : memory_(memory) {}

  // A few bytes can say that there are a million references, or repeat one text a million times.
  void count(std::uint64_t bytes) {
    if (bytes > memory_ - used_)
      throw reference_error("the references take more than " + text::format_bytes(memory_) +
                            " of memory; increase `memory`, or do not trust them");
    used_ += bytes;
  }
  std::size_t file(const std::string& url) {
    const auto [it, is_new] = file_indices_.emplace(url, table_.files.size());
    if (is_new) table_.files.push_back({url});
    return it->second;
  }
  // `timestamp`: nanoseconds since 1970; neither it nor an ETag: only the size is known.
  void add_source(const std::string& url, std::uint64_t size, std::optional<std::int64_t> timestamp,
                  std::optional<std::string> etag) {
    const std::int64_t modified = timestamp.value_or(0);
    count(sizeof(referenced_file) + 2 * url.size() + (etag ? etag->size() : 0));
    constexpr std::int64_t second = 1'000'000'000;
    std::int64_t seconds = modified / second, part = modified % second;
    if (part < 0) part += second, --seconds;
    referenced_file& f = table_.files[file(url)];
    f.size_only = !timestamp && !etag;
    f.state = file_state{true, size, seconds, part, std::move(etag).value_or("")};
  }
  void add_range(std::string key, const std::string& url, std::uint64_t offset, std::uint64_t size) {
    check(key, 0);
    table_.keys.insert_or_assign(std::move(key), reference{file(url), offset, size});
  }
  void add_file(std::string key, const std::string& url) {
    check(key, 0);
    table_.keys.insert_or_assign(std::move(key), reference{.file = file(url), .is_entire_file = true});
  }
  void add_content(std::string key, std::string_view content) {
    check(key, content.size());
    const std::uint64_t size = content.size();
    table_.keys.insert_or_assign(std::move(key), reference{{}, 0, size, false, std::string(content)});
  }
  // The nodes are not among the references themselves.
  void set_no_v3() { table_.formats.v3 = false; }
  // Names of files may begin with the name of a template: "{{u}}/a.nc".
  void add_template(const std::string& name, const std::string& text) {
    count(name.size() + text.size() + 64);
    templates_.insert_or_assign("{{" + name + "}}", text);
  }
  reference_table take() {
    for (referenced_file& f : table_.files) {
      for (const auto& [name, text] : templates_) {
        for (std::size_t position = 0; (position = f.url.find(name, position)) != std::string::npos; position += text.size()) {
          count(text.size());
          f.url.replace(position, name.size(), text);
        }
      }
      if (!templates_.empty() && f.url.find("{{") != std::string::npos)
        throw reference_error("the name of a file, \"" + text::escape_name(f.url) +
                              "\", has a template that is an expression; make the references without templates");
    }
    return std::move(table_);
  }

 private:
  void check(const std::string& key, std::size_t content) {
    if (!is_key(key))
      throw reference_error("\"" + text::escape_name(key) + "\" is not a key of a store; make the references again");
    count(sizeof(reference) + 80 + key.size() + content);  // with a node of the map
  }

  reference_table table_;
  std::map<std::string, std::size_t> file_indices_;
  std::map<std::string, std::string> templates_;
  std::uint64_t memory_ = 0, used_ = 0;
};

// Reads a JSON file. Throws reference_error.
reference_table read_json_references(const std::string& path, std::uint64_t memory);  // reference_json.cpp

}  // namespace zarrbits::io

#endif
