// SPDX-License-Identifier: BSL-1.0
//
// References in kerchunk's JSON format, version 1.
//
#include "io/reference_builder.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

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

namespace zarrbits::conversion {

namespace {

std::string from_base64(std::string_view text) {
  const auto bytes = decode_base64(text);
  if (!bytes) throw reference_error("a reference is not valid base64");
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// 10^6 references as a tree of JSON would take a gigabyte.
class json_reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit json_reader(table_builder& out) : out_(out) {}

  bool start_object(std::size_t) override {
    path_.emplace_back();
    return path_.size() <= 8;
  }
  bool end_object() override {
    if (path_.size() == 3 && in("zarrbits", "sources"))
      out_.add_source(url_, size_, std::exchange(time_, {}), std::exchange(etag_, {}));
    path_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    path_.back() = name;
    return true;
  }
  bool start_array(std::size_t) override {
    ++arrays_;
    list_ = {};
    return arrays_ <= 8;
  }
  bool end_array() override {
    --arrays_;
    if (!is_reference()) return true;
    if (list_.numbers != 2 || list_.texts != 1) return false;
    out_.add_range(path_.back(), list_.place, list_.offset, list_.size);
    return true;
  }
  bool string(std::string& value) override {
    if (is_reference() && arrays_ == 1) {
      ++list_.texts;
      list_.place = value;
    } else if (is_reference()) {
      const bool encoded = value.starts_with("base64:");
      out_.add_content(path_.back(), encoded ? from_base64(std::string_view(value).substr(7)) : value);
    } else if (path_.size() == 2 && path_[0] == own_nodes && arrays_ == 0) {
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
    if (is_reference()) (++list_.numbers == 1 ? list_.offset : list_.size) = value;
    else if (in("zarrbits", "sources") && path_.back() == "size") size_ = value;
    else if (in("zarrbits", "sources") && path_.back() == "modified") time_ = static_cast<std::int64_t>(value);
    return true;
  }
  bool number_integer(std::int64_t value) override {
    if (in("zarrbits", "sources") && path_.back() == "modified") time_ = value;
    return !is_reference();
  }
  bool number_float(double, const std::string&) override { return !is_reference(); }
  bool null() override { return !is_reference(); }
  bool boolean(bool) override { return !is_reference(); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  struct list {
    unsigned texts = 0, numbers = 0;
    std::uint64_t offset = 0, size = 0;
    std::string place = {};
  };
  bool is_reference() const { return path_.size() == 2 && path_[0] == "refs"; }
  bool in(const char* a, const char* b) const { return path_.size() == 3 && path_[0] == a && path_[1] == b; }

  table_builder& out_;
  std::vector<std::string> path_;
  unsigned arrays_ = 0;
  list list_;
  std::string url_;
  std::optional<std::string> etag_;
  std::uint64_t size_ = 0;
  std::optional<std::int64_t> time_;
};

}  // namespace

reference_table read_json_references(const std::string& path, std::uint64_t memory) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s {};
  if (!fd || ::fstat(fd.get(), &s) != 0)
    throw reference_error("\"" + path + "\" cannot be opened: " + std::system_category().message(errno));
  if (!S_ISREG(s.st_mode)) throw reference_error("\"" + path + "\" is not a regular file");  // a FIFO would block
  std::ifstream in("/proc/self/fd/" + std::to_string(fd.get()), std::ios::binary);
  table_builder builder(memory);
  json_reader reader(builder);
  if (!in || !nlohmann::json::sax_parse(in, &reader))
    throw reference_error("\"" + path + "\" does not hold references in kerchunk's JSON format; give a Zarr v3 store");
  return builder.take();
}

}  // namespace zarrbits::conversion
