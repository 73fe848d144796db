// SPDX-License-Identifier: BSL-1.0
#include "rename/json_renaming.hpp"

#include "io/reference_json.hpp"
#include "io/reference_table.hpp"
#include "text/json_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace zarrbits::rename {

namespace {

constexpr std::size_t max_depth = 128, max_source_members = 16, write_size = 1U << 20;

// Writes what it is given, with other names.
class json_renamer final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `more_sources`: entries to add to the list of sources.
  json_renamer(url_renaming& names, std::vector<text::json> more_sources, std::function<void(std::string_view)> write)
      : names_(names), more_sources_(std::move(more_sources)), write_(std::move(write)) {}

  bool start_object(std::size_t) override {
    if (is_in_reference_ || is_in_source_ || stack_.size() >= max_depth) return false;
    require_plain_names();
    is_in_source_ = is_list_of_sources();
    if (is_in_source_) source_ = text::json::object();
    else writer_.begin('{');
    stack_.emplace_back();
    return true;
  }
  bool end_object() override {
    stack_.pop_back();
    if (std::exchange(is_in_source_, false)) {
      names_.rename_source(source_);
      return write_value(source_);
    }
    if (stack_.size() == 1 && has_lines()) writer_.new_line();
    writer_.end('}');
    return flush(stack_.empty() ? 0 : write_size);
  }
  bool key(std::string& name) override {
    stack_.back().key = name;
    if (stack_.size() == 1 && (name == "version" || name == "refs")) has_version_ = true;
    if (!is_in_source_) writer_.key(name, stack_.size() == 2 && has_lines());
    return true;
  }
  bool start_array(std::size_t) override {
    if (is_in_reference_ || is_in_source_ || is_list_of_sources() || stack_.empty() || stack_.size() >= max_depth) return false;
    require_plain_names();
    is_in_reference_ = is_reference();
    texts_ = numbers_ = 0;
    writer_.begin('[');
    stack_.push_back({.is_list = true});
    return true;
  }
  bool end_array() override {
    if (is_list_of_sources()) {
      for (const text::json& source : more_sources_) writer_.value(source);
    }
    stack_.pop_back();
    if (std::exchange(is_in_reference_, false) && (texts_ != 1 || (numbers_ != 0 && numbers_ != 2))) return false;
    writer_.end(']');
    return flush(write_size);
  }
  bool string(std::string& value) override {
    if (!is_in_reference_) return scalar(value);
    return ++texts_ == 1 && write_value(names_.renamed(value).value_or(value));
  }
  bool number_unsigned(std::uint64_t value) override {
    if (!is_in_reference_) return !is_reference() && scalar(value);
    ++numbers_;
    writer_.raw(std::to_string(value));
    return true;
  }
  bool number_integer(std::int64_t value) override { return !is_in_reference_ && !is_reference() && scalar(value); }
  bool number_float(double value, const std::string& text) override {
    if (is_in_reference_ || is_reference()) return false;
    if (is_in_source_) return scalar(value);
    if (stack_.empty() || is_list_of_sources()) return false;
    require_plain_names();
    writer_.raw(text);
    return true;
  }
  bool boolean(bool value) override { return !is_in_reference_ && !is_reference() && scalar(value); }
  bool null() override { return !is_in_reference_ && !is_reference() && scalar(nullptr); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  struct level {
    bool is_list = false;
    std::string key = {};  // of an object: the last one
  };

  bool is_member_of(std::string_view key) const { return !stack_.empty() && stack_[0].key == key; }
  bool has_lines() const { return is_member_of("refs") || is_member_of(io::nodes_key); }
  // Whether the next value is in the list of sources itself.
  bool is_list_of_sources() const {
    return stack_.size() == 3 && is_member_of("zarrbits") && stack_[1].key == "sources" && stack_[2].is_list;
  }
  // Whether the next value is that of a key of the store. Version 0 has nothing but these.
  bool is_reference() const {
    if (stack_.size() == 2) return is_member_of("refs") && !stack_[1].is_list;
    return stack_.size() == 1 && !has_version_ && !is_member_of("zarrbits") && !is_member_of(io::nodes_key) &&
           !is_member_of("templates") && !is_member_of("gen");
  }
  // A part of a name could be in a template, and another one in the reference.
  void require_plain_names() const {
    if (stack_.size() >= 2 && (is_member_of("templates") || is_member_of("gen")))
      throw io::reference_error("the references have templates, or are to be generated; make them without");
  }

  bool scalar(const text::json& value) {
    if (stack_.empty() || is_list_of_sources()) return false;
    require_plain_names();
    if (!is_in_source_) return write_value(value);
    source_[stack_.back().key] = value;
    return source_.size() <= max_source_members;
  }
  bool write_value(const text::json& value) {
    writer_.value(value);
    return flush(write_size);
  }
  bool flush(std::size_t size) {
    if (writer_.size() >= size) write_(writer_.take());
    return true;
  }

  url_renaming& names_;
  std::vector<text::json> more_sources_;
  std::function<void(std::string_view)> write_;
  text::json_writer writer_;
  std::vector<level> stack_;  // open objects and lists
  bool has_version_ = false, is_in_reference_ = false, is_in_source_ = false;
  unsigned texts_ = 0, numbers_ = 0;  // of the reference
  text::json source_;
};

}  // namespace

void rename_in_json(const std::string& path, url_renaming& names, const std::function<void(std::string_view)>& write) {
  json_renamer finder(names, {}, [](std::string_view) {});
  io::parse_references(path, finder);
  json_renamer renamer(names, names.unlisted_sources(), write);
  io::parse_references(path, renamer);
  write("\n");
}

}  // namespace zarrbits::rename
