// SPDX-License-Identifier: BSL-1.0
#include "convert/store/zip_sink.hpp"

#include "convert/io/zip_archive.hpp"
#include "convert/text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zarrbits::conversion {

namespace fs = std::filesystem;

namespace {

std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

bool is_journal(std::string_view key) { return key.starts_with(unfinished_folder); }

bool is_zip_store(const std::string& path) {
  constexpr std::uint64_t largest_node = 64U << 20;
  try {
    if (!is_zip_file(path)) return false;
    const zip_archive zip(path);
    const auto root = zip.find("zarr.json");
    if (!root || root->size > largest_node) return false;
    std::string text(static_cast<std::size_t>(root->size), '\0');
    zip.read(*root, 0, std::as_writable_bytes(std::span(text)));
    return is_zarr_node(text);
  } catch (const std::exception&) {  // any other archive
    return false;
  }
}

// A file of a run that was killed, locked: nobody else writes to it. Nothing where there is no file; throws where somebody
// writes, or where it is none of ours.
file_descriptor take_left_over(const std::string& temporary, const std::string& target) {
  struct stat info {};
  if (::lstat(temporary.c_str(), &info) != 0) return {};
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
    throw convert_error("\"" + temporary +
                        "\" is in the way, and is no file of a conversion; remove it or choose another target");
  }
  file_descriptor fd(::open(temporary.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return {};
  if (!fd) fail_file("cannot open what an earlier run left,", temporary, errno, "remove it or choose another target");
  const lock_state state = take_lock(fd.get(), AT_FDCWD, temporary, false);
  if (state == lock_state::gone) return {};
  if (state != lock_state::taken)
    throw convert_error("another conversion writes to \"" + target + "\"; wait for it or choose another name");
  return fd;
}

}  // namespace

zip_sink::zip_sink(std::string path, const sink_options& options)
    : path_(std::move(path)), temporary_(unfinished_zip(path_)), sync_(options.sync) {
  if (options.target == sink_options::existing::join) {
    throw convert_error("a .zip file cannot be written in partitions, nor resumed; choose a directory for \"" + path_ + "\"");
  }
  replaces_ = options.target == sink_options::existing::replace;
  check_target(options);
  open_temporary();
  try {
    check_target(options);  // another run may have been faster
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

void zip_sink::check_target(const sink_options& options) const {
  std::error_code e;
  if (!fs::exists(fs::symlink_status(path_, e))) return;
  if (!replaces_) throw convert_error("the target \"" + path_ + "\" exists; choose another name, or replace it with `overwrite`");
  if (!fs::is_regular_file(path_, e) || !is_zip_store(path_)) {
    throw convert_error("the target \"" + path_ +
                        "\" exists and is no .zip file of a Zarr v3 store, so `overwrite` does not replace it; "
                        "choose another name or remove it yourself");
  }
  if (!options.source.empty() && fs::equivalent(options.source, path_, e)) {
    throw convert_error("the source \"" + options.source + "\" is the target, too; choose another target");
  }
}

// A file that was not there before, and that no other process takes for one that was left.
void zip_sink::open_temporary() {
  for (int tries = 0; tries < 200; ++tries) {
    fd_ = file_descriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd_) {
      const lock_state state = take_lock(fd_.get(), AT_FDCWD, temporary_, false);
      if (state == lock_state::taken || state == lock_state::unknown) return;
      continue;
    }
    if (errno != EEXIST)
      fail_file("cannot create the store", path_, errno, "choose a place that exists and that you may write to");
    if (const file_descriptor old = take_left_over(temporary_, path_)) ::unlink(temporary_.c_str());
  }
  throw convert_error("another conversion writes to \"" + path_ + "\"; wait for it or choose another name");
}

bool zip_sink::remove_unfinished(const std::string& target) {
  const std::string temporary = unfinished_zip(target);
  const file_descriptor old = take_left_over(temporary, target);
  return old && ::unlink(temporary.c_str()) == 0;
}

zip_sink::~zip_sink() {
  if (!finished_ && fd_) ::unlink(temporary_.c_str());
}

void zip_sink::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_file("cannot write", path_, n < 0 ? errno : ENOSPC);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

std::uint64_t zip_sink::reserve(std::string_view key, std::uint64_t size) {
  check_key(key);
  if (key.size() > 0xFFFF)
    throw convert_error("the key \"" + std::string(key.substr(0, 100)) + "...\" is too long for a .zip file; choose a directory");
  const std::uint64_t header = zip_header_size(key, size);
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = end_ + header;
  end_ = at + size;
  return at;
}

void zip_sink::complete(std::string_view key, const zip_member& m) {
  const zip_record header = zip_header(key, m);
  write_at(m.offset - header.bytes().size(), header.bytes());
  const std::lock_guard lock(mutex_);
  members_.emplace_back(key, m);
  count(key, m.size);
}

void zip_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  if (is_journal(key)) {
    const std::lock_guard lock(mutex_);
    kept_.insert_or_assign(std::string(key), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return;
  }
  const zip_member m{.offset = reserve(key, bytes.size()), .size = bytes.size(), .crc = crc_of(bytes)};
  write_at(m.offset, bytes);
  complete(key, m);
}

void zip_sink::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  require_range(fd, offset, size);
  zip_member m{.offset = reserve(key, size), .size = size};
  std::vector<std::byte> room(static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 20)));
  for (std::uint64_t done = 0; done < size;) {
    const auto piece = std::span(room).first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), size - done)));
    read_range(fd, offset + done, piece);
    m.crc = crc_of(piece, m.crc);
    write_at(m.offset + done, piece);
    done += piece.size();
  }
  complete(key, m);
}

// Header and checksum come before the content, and others write meanwhile: what is written piece by piece waits in memory, or in
// a file where it becomes large.
class zip_sink::writer final : public object_writer {
 public:
  writer(zip_sink& sink, std::string_view key) : sink_(sink), key_(key) {}
  void append(std::span<const std::byte> bytes) override {
    member_.crc = crc_of(bytes, member_.crc);
    member_.size += bytes.size();
    if (!file_ && waiting_.size() + bytes.size() <= room) {
      waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
      return;
    }
    if (!file_) open();
    check(write_all(file_.get(), bytes));
  }
  void commit() override {
    member_.offset = sink_.reserve(key_, member_.size);
    if (!file_) {
      sink_.write_at(member_.offset, waiting_);
    } else {
      waiting_.resize(room);
      for (std::uint64_t done = 0; done < member_.size;) {
        const auto piece =
            std::span(waiting_).first(static_cast<std::size_t>(std::min<std::uint64_t>(room, member_.size - done)));
        read_range(file_.get(), done, piece);
        sink_.write_at(member_.offset + done, piece);
        done += piece.size();
      }
    }
    sink_.complete(key_, member_);
  }

 private:
  static constexpr std::size_t room = 8 << 20;
  void check(int error) const {
    if (error) fail_file("cannot write", sink_.path_, error);
  }
  void open() {
    std::string name = sink_.temporary_ + "-XXXXXX";
    file_ = file_descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (!file_) check(errno);
    ::unlink(name.c_str());
    check(write_all(file_.get(), waiting_));
    waiting_.clear();
  }
  zip_sink& sink_;
  std::string key_;
  zip_member member_;
  std::vector<std::byte> waiting_;
  file_descriptor file_;
};

std::unique_ptr<object_writer> zip_sink::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

bool zip_sink::put_new(std::string_view key, std::span<const std::byte> bytes) {
  if (get(key)) return false;  // nobody else writes to it
  put(key, bytes);
  return true;
}

std::optional<std::vector<std::byte>> zip_sink::get(std::string_view key) {
  zip_member m;
  {
    const std::lock_guard lock(mutex_);
    if (const auto kept = kept_.find(key); kept != kept_.end()) {
      const auto bytes = std::as_bytes(std::span(kept->second.data(), kept->second.size()));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    }
    const auto found = std::find_if(members_.rbegin(), members_.rend(), [&](const auto& e) { return e.first == key; });
    if (found == members_.rend()) return std::nullopt;
    m = found->second;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.size));
  try {
    read_range(fd_.get(), m.offset, bytes);
  } catch (const unreadable_range& e) {
    throw convert_error("cannot read \"" + std::string(key) + "\" in \"" + temporary_ + "\": " + e.what());
  }
  return bytes;
}

std::vector<std::string> zip_sink::list(std::string_view folder) {
  const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
  std::vector<std::string> keys;
  const auto add = [&](const auto& all) {
    for (const auto& [whole, content] : all) {
      if (whole.starts_with(prefix)) keys.push_back(whole.substr(0, whole.find('/', prefix.size())));
    }
  };
  const std::lock_guard lock(mutex_);
  add(members_);
  add(kept_);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void zip_sink::each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& found) {
  const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
  const std::lock_guard lock(mutex_);
  for (const auto& [key, m] : members_) {
    if (key.starts_with(prefix)) found(key, m.size);
  }
}

void zip_sink::append(std::string_view key, std::string_view text) {
  const std::lock_guard lock(mutex_);
  kept_[std::string(key)] += text;
}

void zip_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  const std::string prefix = std::string(folder) + "/";
  const std::lock_guard lock(mutex_);
  std::erase_if(members_, [&](const auto& m) { return m.first.starts_with(prefix) || m.first == folder; });
}

void zip_sink::finish() {
  std::stable_sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::uint64_t directory = end_;
  std::uint64_t at = end_;
  zip_record list;
  const auto flush = [&] {
    write_at(at, list.bytes());
    at += list.bytes().size();
    list = {};
  };
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& [key, m] = members_[i];
    if (i + 1 < members_.size() && members_[i + 1].first == key) continue;
    ++n;
    add_to_directory(list, key, m);
    if (list.bytes().size() > (1U << 20)) flush();
  }
  flush();
  add_end(list, n, directory, at);
  flush();
  if (sync_ && ::fsync(fd_.get()) != 0) fail_file("cannot bring to the disk", path_, errno, "check the disk");
  // a server may tell only now that there is no room; the lock stays with the other descriptor until the file has its name
  const file_descriptor lock(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (const int error = fd_.close()) {
    ::unlink(temporary_.c_str());
    fail_file("cannot write", path_, error);
  }
  rename_to_target();
  finished_ = true;
  if (!sync_) return;
  const fs::path folder = fs::absolute(path_).parent_path();
  const file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && (::fsync(fd.get()) == 0 || errno == EINVAL)) return;
  const int error = errno;
  ::unlink(path_.c_str());  // who reads of a failure finds no store
  fail_file("cannot bring to the disk", folder.native(), error, "check the disk");
}

void zip_sink::rename_to_target() {
  int error = ENOSYS;
#ifdef RENAME_NOREPLACE
  if (!replaces_) error = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
#endif
  if (error == ENOSYS || error == EINVAL) error = ::rename(temporary_.c_str(), path_.c_str()) == 0 ? 0 : errno;
  if (!error) return;
  ::unlink(temporary_.c_str());
  fail_file("cannot finish the store", path_, error, "choose another name");
}

}  // namespace zarrbits::conversion

std::string zarrbits::unfinished_zip(const std::string& store) { return store + conversion::unfinished_folder; }
