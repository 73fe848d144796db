// SPDX-License-Identifier: BSL-1.0
//
// A store of references in kerchunk's JSON format, version 1: a key is a text, "base64:..", or [file, offset, size].
//
#include "convert/io/files.hpp"
#include "verify/zarr/sorted_keys.hpp"
#include "verify/zarr/store_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <utility>

namespace zarrbits::verification {

namespace {

namespace fs = std::filesystem;

struct reference {
  std::optional<std::size_t> file;  // not set: `text` is the object
  std::uint64_t offset = 0, size = 0;
  std::string text = {};
};

struct referred_file {
  std::string url;
  std::optional<std::pair<std::uint64_t, std::int64_t>> state = {};  // size and time of change, as they were
};

struct reference_table {
  std::map<std::string, reference> keys;
  std::vector<referred_file> files;
};

// 10^6 references as a tree of JSON would take a gigabyte.
class table_maker final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit table_maker(reference_table& out) : out_(out) {}

  bool start_object(std::size_t) override {
    path_.emplace_back();
    return path_.size() <= 8;
  }
  bool end_object() override {
    if (path_.size() == 3 && in("zarrbits", "sources")) add_source();
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
    if (is_reference()) place_.clear();
    return arrays_ <= 8;
  }
  bool end_array() override {
    --arrays_;
    if (!is_reference()) return true;
    if (list_.numbers != 2 || list_.texts != 1) return false;
    const auto [at, is_new] = known_.emplace(place_, out_.files.size());
    if (is_new) out_.files.push_back({place_});
    out_.keys[path_.back()] = {at->second, list_.offset, list_.size};
    return true;
  }
  bool string(std::string& value) override {
    if (is_reference() && arrays_ == 1) {
      ++list_.texts;
      place_ = value;
    } else if (is_reference()) {
      out_.keys[path_.back()] = {{}, 0, value.size(), std::move(value)};
    } else if (in("zarrbits", "sources") && path_.back() == "url") {
      url_ = value;
    }
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (is_reference()) (++list_.numbers == 1 ? list_.offset : list_.size) = value;
    else if (in("zarrbits", "sources")) (path_.back() == "size" ? size_ : time_) = value;
    return true;
  }
  bool number_integer(std::int64_t value) override {
    return !is_reference() && (time_ = static_cast<std::uint64_t>(value), true);
  }
  bool number_float(double, const std::string&) override { return !is_reference(); }
  bool null() override { return !is_reference(); }
  bool boolean(bool) override { return !is_reference(); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  struct numbers_of_list {
    unsigned texts = 0, numbers = 0;
    std::uint64_t offset = 0, size = 0;
  };
  bool is_reference() const { return path_.size() == 2 && path_[0] == "refs"; }
  bool in(const char* a, const char* b) const { return path_.size() == 3 && path_[0] == a && path_[1] == b; }
  void add_source() {
    const auto [at, is_new] = known_.emplace(url_, out_.files.size());
    if (is_new) out_.files.push_back({url_});
    out_.files[at->second].state = {size_, static_cast<std::int64_t>(time_)};
  }

  reference_table& out_;
  std::vector<std::string> path_;
  unsigned arrays_ = 0;
  numbers_of_list list_;
  std::string place_, url_;
  std::uint64_t size_ = 0, time_ = 0;
  std::map<std::string, std::size_t> known_;
};

std::vector<std::byte> from_base64(std::string_view text) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::vector<std::byte> out;
  std::uint32_t bits = 0;
  unsigned n = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == digits.npos) throw store_error("a reference's base64 is none");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((n += 6) < 8) continue;
    n -= 8;
    out.push_back(static_cast<std::byte>(bits >> n & 0xFF));
  }
  return out;
}

class bytes_object final : public stored_object {
 public:
  explicit bytes_object(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::vector<std::byte> bytes_;
};

class range_object final : public stored_object {
 public:
  range_object(std::shared_ptr<const conversion::file_descriptor> file, const reference& r) : file_(std::move(file)), r_(r) {}
  std::uint64_t size() const override { return r_.size; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    try {
      conversion::read_range(file_->get(), r_.offset + offset, out);
    } catch (const conversion::unreadable_range& e) {
      throw store_error(std::string("a reference cannot be read: ") + e.what());
    }
  }

 private:
  std::shared_ptr<const conversion::file_descriptor> file_;
  reference r_;
};

class reference_reader final : public store_reader {
 public:
  reference_reader(const std::string& path, const std::vector<std::string>& sources) {
    std::ifstream in(path, std::ios::binary);
    table_maker maker(table_);
    if (!in || !nlohmann::json::sax_parse(in, &maker)) {
      throw store_error("\"" + path +
                        "\" is neither a directory nor a .zip file, nor does it hold references in kerchunk's JSON format; "
                        "give a Zarr v3 store");
    }
    std::error_code e;
    data_ = fs::weakly_canonical(path + ".data", e).string();
    for (const std::string& source : sources) {
      const fs::path real = fs::canonical(source, e);
      if (!e) folders_.push_back(real.parent_path().string());
    }
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto found = table_.keys.find(key);
    if (found == table_.keys.end()) return nullptr;
    const reference& r = found->second;
    if (r.file) return std::make_unique<range_object>(opened(*r.file, r), r);
    const std::string_view text = r.text;
    if (text.starts_with("base64:")) return std::make_unique<bytes_object>(from_base64(text.substr(7)));
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return std::make_unique<bytes_object>(std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& each) const override {
    list_sorted(table_.keys, folder, each);
  }

 private:
  // A file that may be read for this store: of the source's folder or below, or the one beside it. A JSON text may name any.
  std::shared_ptr<const conversion::file_descriptor> opened(std::size_t number, const reference& r) const {
    const std::lock_guard held(turn_);
    auto& known = open_[number];
    const referred_file& file = table_.files[number];
    const std::string name = file.url.starts_with("file://") ? file.url.substr(7) : file.url;
    if (!known) {
      std::error_code e;
      const std::string real = fs::canonical(name, e).string();
      if (e) throw store_error("the references lead to \"" + name + "\", which cannot be opened: " + e.message());
      const auto below = [&](const std::string& folder) { return folder == "/" || real.starts_with(folder + "/"); };
      if (real != data_ && std::none_of(folders_.begin(), folders_.end(), below))
        throw store_error("the references lead to \"" + name + "\", which is not in the source's folder");
      if (open_.size() > most_open) {
        open_.clear();
        open_[number] = {};
      }
      auto fd = std::make_shared<const conversion::file_descriptor>(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      struct stat s = {};
      if (!*fd || ::fstat(fd->get(), &s) != 0 || !S_ISREG(s.st_mode))
        throw store_error("the references lead to \"" + name + "\", which is no regular file that can be read");
      const std::pair state(static_cast<std::uint64_t>(s.st_size),
                            s.st_mtim.tv_sec * std::int64_t{1'000'000'000} + s.st_mtim.tv_nsec);
      if (file.state && *file.state != state)
        throw store_error("\"" + name + "\" has changed since the references were made; make them anew");
      open_[number] = fd;
    }
    const auto fd = open_[number];
    struct stat s = {};
    if (::fstat(fd->get(), &s) != 0 || r.offset > static_cast<std::uint64_t>(s.st_size) ||
        r.size > static_cast<std::uint64_t>(s.st_size) - r.offset)
      throw store_error("a reference leads behind the end of \"" + name + "\"");
    return fd;
  }

  static constexpr std::size_t most_open = 64;
  reference_table table_;
  std::string data_;
  std::vector<std::string> folders_;
  mutable std::mutex turn_;
  mutable std::map<std::size_t, std::shared_ptr<const conversion::file_descriptor>> open_;
};

}  // namespace

std::shared_ptr<const store_reader> open_references(const std::string& path, const std::vector<std::string>& sources) {
  return std::make_shared<reference_reader>(path, sources);
}

}  // namespace zarrbits::verification
