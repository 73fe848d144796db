// SPDX-License-Identifier: BSL-1.0
#include "convert/store/reference_sink.hpp"

#include "convert/text/json_text.hpp"
#include "convert/text/names.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace zarrbits::conversion {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view beginning = R"({"version":1,"zarrbits":{)";  // of every file of ours

bool is_journal(std::string_view key) { return key.starts_with(unfinished_folder); }
bool is_metadata(std::string_view key) { return key == "zarr.json" || key.ends_with("/zarr.json"); }

bool are_references(const std::string& path) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string head(beginning.size(), '\0');
  return fd && ::pread(fd.get(), head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) && head == beginning;
}

// Of a file that a source has open: libhdf5 and the tables of joined files know them by numbers alone.
std::string name_of(int fd) {
  std::string name(PATH_MAX, '\0');
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name.data(), name.size());
  name.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  struct stat there {
  }, here{};
  if (!name.starts_with('/') || ::stat(name.c_str(), &there) != 0 || ::fstat(fd, &here) != 0 || there.st_dev != here.st_dev ||
      there.st_ino != here.st_ino)
    throw convert_error("a source has no name that references could use" + (name.empty() ? "" : ": \"" + name + "\"") +
                        "; convert it without references");
  if (!is_utf8(name))
    throw convert_error(
        "the name of a source is no UTF-8, which references have to be; rename it, or convert it without references");
  return name;
}

}  // namespace

std::string data_beside(const std::string& references) { return references + ".data"; }

reference_sink::reference_sink(const std::string& path, std::uint64_t inline_bytes, const sink_options& options)
    : inline_bytes_(inline_bytes),
      options_(options),
      file_(path, unfinished_zip(path), options, {"a file of references that zarrbits made", are_references}) {
  std::error_code e;
  const std::string other = data_beside(path);
  if (fs::exists(fs::symlink_status(other, e)) && !(options.target == sink_options::existing::replace && fs::exists(path, e)))
    throw convert_error("\"" + other + "\" exists, which would be a part of the store; choose another name or remove it");
}

bool reference_sink::remove_unfinished(const std::string& target) {
  const std::string other = data_beside(target);
  const bool data = file_target::remove_unfinished(other, unfinished_zip(other));
  return file_target::remove_unfinished(target, unfinished_zip(target)) || data;
}

void reference_sink::add(std::string_view key, reference made) {
  check_key(key);
  count(key, made.size);
  const std::lock_guard lock(mutex_);
  all_.emplace_back(key, std::move(made));
}

std::size_t reference_sink::number_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw convert_error("a source cannot be looked at");
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = known_.emplace(std::pair{info.st_dev, info.st_ino}, files_.size());
  if (is_new)
    files_.push_back(
        {name_of(fd), static_cast<std::uint64_t>(info.st_size), info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec});
  return at->second;
}

file_target& reference_sink::data() {
  if (!data_) {
    const std::string other = data_beside(file_.path());
    data_ = std::make_unique<file_target>(
        other, unfinished_zip(other), options_,
        file_target::kind{"the data of such a store", [this](const std::string&) { return are_references(file_.path()); }});
  }
  return *data_;
}

void reference_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_journal(key)) {
    const std::lock_guard lock(mutex_);
    kept_.insert_or_assign(std::string(key), std::string(text));
    return;
  }
  if (is_metadata(key) || bytes.size() <= inline_bytes_) return add(key, {in_text, 0, bytes.size(), std::string(text)});
  std::uint64_t at = 0;
  file_target* file = nullptr;
  {
    const std::lock_guard lock(mutex_);
    file = &data();
    at = std::exchange(data_end_, data_end_ + bytes.size());
  }
  file->write_at(at, bytes);
  add(key, {beside, at, bytes.size()});
}

void reference_sink::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  require_range(fd, offset, size);
  add(key, {number_of(fd), offset, size});
}

class reference_sink::writer final : public object_writer {
 public:
  writer(reference_sink& sink, std::string_view key) : sink_(sink), key_(key) {}
  void append(std::span<const std::byte> bytes) override { waiting_.insert(waiting_.end(), bytes.begin(), bytes.end()); }
  void commit() override { sink_.put(key_, std::span<const std::byte>(waiting_)); }

 private:
  reference_sink& sink_;
  std::string key_;
  std::vector<std::byte> waiting_;
};

std::unique_ptr<object_writer> reference_sink::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

bool reference_sink::put_new(std::string_view key, std::span<const std::byte> bytes) {
  if (get(key)) return false;  // nobody else writes to it
  put(key, bytes);
  return true;
}

std::optional<std::vector<std::byte>> reference_sink::get(std::string_view key) {
  const auto bytes_of = [](const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  reference found;
  std::string name;  // taken under the lock, for other threads add files
  {
    const std::lock_guard lock(mutex_);
    if (const auto kept = kept_.find(key); kept != kept_.end()) return bytes_of(kept->second);
    const auto at = std::find_if(all_.rbegin(), all_.rend(), [&](const auto& e) { return e.first == key; });
    if (at == all_.rend()) return std::nullopt;
    if (at->second.file == in_text) return bytes_of(at->second.text);
    found = at->second;
    if (found.file != beside) name = files_[found.file].name;
  }
  const file_descriptor from(found.file == beside ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::vector<std::byte> bytes(static_cast<std::size_t>(found.size));
  try {
    read_range(found.file == beside ? data_->descriptor() : from.get(), found.offset, bytes);
  } catch (const unreadable_range& e) {
    throw convert_error("cannot read \"" + std::string(key) + "\" of \"" + file_.path() + "\": " + e.what());
  }
  return bytes;
}

std::vector<std::string> reference_sink::list(std::string_view folder) {
  const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
  std::vector<std::string> keys;
  const auto add_all = [&](const auto& all) {
    for (const auto& [whole, content] : all) {
      if (whole.starts_with(prefix)) keys.push_back(whole.substr(0, whole.find('/', prefix.size())));
    }
  };
  const std::lock_guard lock(mutex_);
  add_all(all_);
  add_all(kept_);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void reference_sink::each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& found) {
  const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
  const std::lock_guard lock(mutex_);
  for (const auto& [key, r] : all_) {
    if (key.starts_with(prefix)) found(key, r.size);
  }
}

void reference_sink::append(std::string_view key, std::string_view text) {
  const std::lock_guard lock(mutex_);
  kept_[std::string(key)] += text;
}

void reference_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  const std::string prefix = std::string(folder) + "/";
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const auto& r) { return r.first.starts_with(prefix) || r.first == folder; });
}

std::string reference_sink::url_of(std::size_t file) const {
  return "file://" + (file == beside ? fs::absolute(data_beside(file_.path())).lexically_normal().string() : files_[file].name);
}

void reference_sink::finish() {
  std::stable_sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::uint64_t at = 0;
  std::string text(beginning);
  const auto flush = [&] {
    file_.write_at(at, std::as_bytes(std::span(text.data(), text.size())));
    at += text.size();
    text.clear();
  };
  text += R"("sources":[)";
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    urls.push_back(json_text(json(url_of(i))));
    const source& s = files_[i];
    text += (i ? ",{\"url\":" : "{\"url\":") + urls[i] + ",\"size\":" + std::to_string(s.size) +
            ",\"modified\":" + std::to_string(s.modified) + "}";
  }
  text += "]},\"refs\":{";
  const std::string data_url = data_ ? json_text(json(url_of(beside))) : "";
  bool first = true;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& [key, r] = all_[i];
    if (i + 1 < all_.size() && all_[i + 1].first == key) continue;
    text += (first ? "\n" : ",\n") + json_text(json(key)) + ":";
    first = false;
    if (r.file != in_text) {
      text += "[" + (r.file == beside ? data_url : urls[r.file]) + "," + std::to_string(r.offset) + "," + std::to_string(r.size) +
              "]";
    } else {
      text += is_metadata(key) ? json_text(json(r.text)) : "\"base64:" + base64(r.text) + "\"";
    }
    if (text.size() > (1U << 20)) flush();
  }
  text += "\n}}\n";
  flush();
  if (file_.replaces()) ::unlink(file_.path().c_str());  // it would tell of other data
  if (data_) data_->finish();
  else if (file_.replaces()) ::unlink(data_beside(file_.path()).c_str());
  file_.finish();
}

}  // namespace zarrbits::conversion
