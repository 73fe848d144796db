// SPDX-License-Identifier: BSL-1.0
//
// References in kerchunk's JSON format, versions 0 and 1.
//
#include "io/reference_json.hpp"

#include "io/reference_builder.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "text/json_writer.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <utility>
#include <vector>

namespace zarrbits::io {

namespace {

std::string from_base64(std::string_view text) {
  const auto bytes = text::decode_base64(text);
  if (!bytes) throw reference_error("a reference is not valid base64");
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

class json_reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit json_reader(table_builder& out) : out_(out) {}

  bool start_object(std::size_t) override {
    if (inside_ > 0 || (is_reference() && arrays_ == 0)) {
      ++inside_;
      return write_bounded([&] { metadata_writer_.begin('{'); });
    }
    path_.emplace_back();
    return path_.size() <= 8;
  }
  bool end_object() override {
    if (inside_ > 0) {
      metadata_writer_.end('}');
      leave();
      return true;
    }
    if (path_.size() == 3 && in("zarrbits", "sources"))
      out_.add_source(url_, size_, std::exchange(time_, {}), std::exchange(etag_, {}));
    path_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    if (inside_ > 0) return write_bounded([&] { metadata_writer_.key(name); });
    path_.back() = name;
    if (path_.size() == 1 && (name == "version" || name == "refs")) has_version_ = true;
    return true;
  }
  bool start_array(std::size_t) override {
    if (inside_ > 0) {
      ++inside_;
      return write_bounded([&] { metadata_writer_.begin('['); });
    }
    ++arrays_;
    list_ = {};
    if (path_.size() == 1 && path_[0] == "gen") in_gen_ = true;
    return arrays_ <= 8;
  }
  bool end_array() override {
    if (inside_ > 0) {
      metadata_writer_.end(']');
      leave();
      return true;
    }
    --arrays_;
    if (path_.size() == 1 && path_[0] == "gen") in_gen_ = false;
    if (!is_reference()) return true;
    if (list_.texts != 1 || (list_.numbers != 2 && list_.numbers != 0)) return false;
    if (list_.numbers == 0) out_.add_file(path_.back(), list_.place);
    else out_.add_range(path_.back(), list_.place, list_.offset, list_.size);
    return true;
  }
  bool string(std::string& value) override {
    if (inside_ > 0) return write_bounded([&] { metadata_writer_.value(value); });
    if (in_gen_) throw_gen_unsupported();
    if (is_reference() && arrays_ == 1) {
      ++list_.texts;
      list_.place = value;
    } else if (is_reference()) {
      const bool encoded = value.starts_with("base64:");
      out_.add_content(path_.back(), encoded ? from_base64(std::string_view(value).substr(7)) : value);
    } else if (path_.size() == 2 && path_[0] == "templates" && arrays_ == 0) {
      out_.add_template(path_.back(), value);
    } else if (path_.size() == 2 && path_[0] == nodes_key && arrays_ == 0) {
      out_.set_no_v3();
      out_.add_content(path_.back(), value);
    } else if (in("zarrbits", "sources") && path_.back() == "url") {
      url_ = value;
    } else if (in("zarrbits", "sources") && path_.back() == "etag") {
      etag_ = value;
    }
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (inside_ > 0) return write_bounded([&] { metadata_writer_.value(value); });
    if (in_gen_) throw_gen_unsupported();
    if (is_reference()) (++list_.numbers == 1 ? list_.offset : list_.size) = value;
    else if (in("zarrbits", "sources") && path_.back() == "size") size_ = value;
    else if (in("zarrbits", "sources") && path_.back() == "modified") time_ = static_cast<std::int64_t>(value);
    return true;
  }
  bool number_integer(std::int64_t value) override {
    if (inside_ > 0) return write_bounded([&] { metadata_writer_.value(value); });
    if (in("zarrbits", "sources") && path_.back() == "modified") time_ = value;
    return !is_reference();
  }
  bool number_float(double value, const std::string&) override { return scalar_value(value); }
  bool null() override { return scalar_value(nullptr); }
  bool boolean(bool value) override { return scalar_value(value); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  struct list {
    unsigned texts = 0, numbers = 0;
    std::uint64_t offset = 0, size = 0;
    std::string place = {};
  };
  // Whether the value belongs to a reference. Version 0 has nothing but references.
  bool is_reference() const {
    if (path_.size() == 2) return path_[0] == "refs";
    return path_.size() == 1 && !has_version_ && path_[0] != nodes_key && path_[0] != "zarrbits" && path_[0] != "templates" &&
           path_[0] != "gen";
  }
  bool in(const char* a, const char* b) const { return path_.size() == 3 && path_[0] == a && path_[1] == b; }
  bool scalar_value(const text::json& value) {
    if (inside_ > 0) return write_bounded([&] { metadata_writer_.value(value); });
    return !is_reference();
  }
  [[noreturn]] static void throw_gen_unsupported() {
    throw reference_error("references that are to be generated (\"gen\") are not read; make them without");
  }

  // Metadata that are JSON themselves, and not a text of it.
  bool write_bounded(const auto& write) {
    constexpr int deepest = 128;
    constexpr std::uint64_t max_bytes = 64U << 20;
    write();
    return inside_ <= deepest && metadata_writer_.size() <= max_bytes;
  }
  void leave() {
    if (--inside_ == 0) out_.add_content(path_.back(), metadata_writer_.take());
  }

  table_builder& out_;
  std::vector<std::string> path_;
  unsigned arrays_ = 0;
  int inside_ = 0;  // lists and objects of metadata that are open
  bool has_version_ = false, in_gen_ = false;
  text::json_writer metadata_writer_;
  list list_;
  std::string url_;
  std::optional<std::string> etag_;
  std::uint64_t size_ = 0;
  std::optional<std::int64_t> time_;
};

}  // namespace

void parse_references(const std::string& path, nlohmann::json_sax<nlohmann::json>& handler) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s {};
  if (!fd || ::fstat(fd.get(), &s) != 0)
    throw reference_error("\"" + path + "\" cannot be opened: " + std::system_category().message(errno));
  if (!S_ISREG(s.st_mode)) throw reference_error("\"" + path + "\" is not a regular file");  // a FIFO would block
  std::ifstream in("/proc/self/fd/" + std::to_string(fd.get()), std::ios::binary);
  if (!in || !nlohmann::json::sax_parse(in, &handler))
    throw reference_error(
        "\"" + path + "\" does not hold references in kerchunk's JSON format; make the references again, or use a Zarr store");
}

reference_table read_json_references(const std::string& path, std::uint64_t memory) {
  table_builder builder(memory);
  json_reader reader(builder);
  parse_references(path, reader);
  return builder.take();
}

}  // namespace zarrbits::io
