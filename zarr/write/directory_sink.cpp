// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/directory_sink.hpp"

#include "io/files.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

namespace {

std::string upper_folder(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Removes what killed runs left.
void remove_temporaries(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (is_temporary(entry.path().filename().native())) fs::remove(entry.path());
  }
}

void sync_path(const std::string& path) {
  const io::file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL)) io::fail_file("cannot flush to the disk", path, errno, "check the disk");
}

}  // namespace

directory_sink::directory_sink(std::string path, const sink_options& options)
    : root_(without_slashes(std::move(path))),
      target_(root_, options),
      sync_(options.sync),
      joined_(joins(options.target) || target_.found_unfinished()),
      is_alone_(!joined_),
      token_(io::unique_token()) {
  if (sync_) {
    if (target_.created_root()) remember(upper_folder(fs::absolute(root_).native()));
    remember(root_);
  }
  std::string upper = path_of(text::unfinished_folder);
  for (std::size_t i = root_.size(); i < upper.size(); ++i) {
    if (upper[i] >= 'a' && upper[i] <= 'z') upper[i] = static_cast<char>(upper[i] - 'a' + 'A');
  }
  tells_case_apart_ = ::access(upper.c_str(), F_OK) != 0;
}

directory_sink::~directory_sink() {
  if (finished_) return;
  if (!joined_ && !kept_) target_.discard();  // a failed run must not leave anything that looks like a store
  else if (root_written_) ::unlinkat(target_.root(), "zarr.json", 0);
}

bool directory_sink::remove_unfinished(const std::string& path, const sink_options& options) {
  return directory_target::remove_unfinished(without_slashes(path), options);
}

void directory_sink::tidy_whole(const std::string& path) noexcept { directory_target::tidy_whole(without_slashes(path)); }

io::file_descriptor directory_sink::folder_of(std::string_view key, missing folders) const {
  io::file_descriptor at(::openat(target_.root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t begin = 0, end = 0; (end = key.find('/', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string part(key.substr(begin, end - begin));
    if (folders == missing::is_made && ::mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
      io::fail_file("cannot create the folder", path_of(key.substr(0, end)), errno);
    }
    at = io::file_descriptor(::openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (at) continue;
    if (errno == ELOOP || errno == ENOTDIR) {
      throw zarrbits::error(errc::refused,
                            "\"" + path_of(key.substr(0, end)) +
                                "\" is a symbolic link, or not a folder, in a store that others may write to; start over with "
                                "`overwrite`, or choose another name",
                            {path_of(key)});
    }
    break;
  }
  return at;
}

directory_sink::place directory_sink::place_of(std::string_view key, missing folders) const {
  check_key(key);
  if (is_alone_) return {{}, AT_FDCWD, path_of(key)};
  place p{folder_of(key, missing::stays), 0, std::string(key.substr(key.rfind('/') + 1))};
  if (!p.folder && errno == ENOENT && folders == missing::is_made) p.folder = folder_of(key, folders);
  if (!p.folder && errno != ENOENT) io::fail_file("cannot open the folder of", path_of(key), errno);
  p.at = p.folder.get();  // -1 if there is none: every call with it fails
  return p;
}

// commit() turns it into the file `path`; otherwise it is removed.
class directory_sink::new_file {
 public:
  // A rename costs as much as copying tens of KiB: a file that is not read before the store is complete may have its name from
  // the start.
  enum class named { with_commit, at_once };

  new_file(directory_sink& sink, std::string_view key, named when)
      : sink_(sink), key_(key), place_(sink.place_of(key, missing::is_made)) {
    if (when == named::at_once) {
      written_ = place_.name;
      open();
    }
    if (!fd_) {  // or there is one, from an earlier try
      written_ = place_.name.substr(0, place_.name.rfind('/') + 1) + std::string(temporary_prefix) + sink.token_ + "-" +
                 std::to_string(sink.next_temporary_++) + std::string(temporary_suffix);
      open();
    }
    if (!fd_) io::fail_file("cannot write", sink_.path_of(key_), errno);
  }
  ~new_file() {
    if (!committed_ && fd_) ::unlinkat(place_.at, written_.c_str(), 0);
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  int fd() const { return fd_.get(); }
  void check(int error) const {
    if (error) io::fail_file("cannot write", sink_.path_of(key_), error);
  }
  void write(std::span<const std::byte> bytes) { check(io::write_all(fd(), bytes)); }
  void write(int from, std::uint64_t offset, std::uint64_t size) { check(io::copy_range(from, offset, size, fd())); }
  void commit() {
    close();
    if (written_ != place_.name && ::renameat(place_.at, written_.c_str(), place_.at, place_.name.c_str()) != 0)
      remove_and_fail(errno);
    done();
  }
  // Returns false, and removes the new file, if there is a file of this name.
  bool commit_if_new() {
    close();
    if (written_ != place_.name) {
      const int error = ::linkat(place_.at, written_.c_str(), place_.at, place_.name.c_str(), 0) == 0 ? 0 : errno;
      if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK) {  // no hard links here: almost as good
        struct stat info {};
        if (::fstatat(place_.at, place_.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
          return ::unlinkat(place_.at, written_.c_str(), 0), false;
        if (::renameat(place_.at, written_.c_str(), place_.at, place_.name.c_str()) != 0) remove_and_fail(errno);
      } else {
        ::unlinkat(place_.at, written_.c_str(), 0);
        if (error == EEXIST) return false;
        check(error);
      }
    }
    done();
    return true;
  }

 private:
  void open() {
    const auto try_to = [this] {
      fd_ = io::file_descriptor(::openat(place_.at, written_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    };
    try_to();
    if (fd_ || errno != ENOENT || place_.folder) return;
    sink_.make_folders(upper_folder(place_.name));
    try_to();
  }
  void close() {
    if (sink_.sync_ && ::fsync(fd()) != 0) check(errno);
    const int error = fd_.close();
    if (error) remove_and_fail(error);
  }
  [[noreturn]] void remove_and_fail(int error) {
    ::unlinkat(place_.at, written_.c_str(), 0);
    io::fail_file("cannot write", sink_.path_of(key_), error);
  }
  void done() {
    committed_ = true;
    if (sink_.sync_) sink_.remember(upper_folder(sink_.path_of(key_)));
  }

  directory_sink& sink_;
  std::string key_;
  place place_;
  std::string written_;
  io::file_descriptor fd_;
  bool committed_ = false;
};

class directory_sink::writer final : public object_writer {
 public:
  writer(directory_sink& sink, std::string_view key) : sink_(sink), key_(key), file_(sink, key, new_file::named::with_commit) {}
  void append(std::span<const std::byte> bytes) override {
    size_ += bytes.size();
    if (bytes.size() < room - pending_.size()) {  // many small chunks are one write
      pending_.insert(pending_.end(), bytes.begin(), bytes.end());
      return;
    }
    flush();
    file_.write(bytes);
  }
  void append_range(int fd, std::uint64_t offset, std::uint64_t size) override {
    if (size < room / 4) return object_writer::append_range(fd, offset, size);
    flush();
    file_.write(fd, offset, size);
    size_ += size;
  }
  void commit() override {
    flush();
    file_.commit();
    sink_.count(key_, size_);
  }

 private:
  static constexpr std::size_t room = 256 << 10;
  void flush() {
    file_.write(pending_);
    pending_.clear();
  }
  directory_sink& sink_;
  std::string key_;
  new_file file_;
  std::vector<std::byte> pending_;
  std::uint64_t size_ = 0;
};

void directory_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  const bool chunk = !text::is_node_key(key) && !in_unfinished_folder(key);
  if (sync_ && !chunk) sync_folders();  // what it refers to comes first
  if (key == "zarr.json") root_written_ = true;
  new_file file(*this, key, chunk && is_alone_ ? new_file::named::at_once : new_file::named::with_commit);
  file.write(bytes);
  file.commit();
  count(key, bytes.size());
}

void directory_sink::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  new_file file(*this, key, is_alone_ ? new_file::named::at_once : new_file::named::with_commit);
  file.write(fd, offset, size);
  file.commit();
  count(key, size);
}

std::unique_ptr<object_writer> directory_sink::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

bool directory_sink::put_new(std::string_view key, std::span<const std::byte> bytes) {
  new_file file(*this, key, new_file::named::with_commit);
  file.write(bytes);
  if (!file.commit_if_new()) return false;
  count(key, bytes.size());
  return true;
}

std::optional<std::vector<std::byte>> directory_sink::get(std::string_view key) {
  const place p = place_of(key, missing::stays);
  if (p.at < 0 && p.at != AT_FDCWD) return std::nullopt;
  return io::read_regular_file(p.at, p.name, path_of(key));
}

std::vector<std::string> directory_sink::list(std::string_view folder) {
  if (!folder.empty() && !is_alone_) folder_of(std::string(folder) + "/", missing::stays);  // no symbolic link in the path
  std::vector<std::string> keys;
  std::error_code e;
  for (fs::directory_iterator i(path_of(folder), e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().filename().native();
    if (!is_temporary(name) && (name != text::lock_name || folder != text::unfinished_folder))
      keys.push_back(folder.empty() ? name : std::string(folder) + "/" + name);
  }
  if (e && e != std::errc::no_such_file_or_directory)
    io::fail_file("cannot list", path_of(folder), e.value(), "check the permissions there");
  std::sort(keys.begin(), keys.end());
  return keys;
}

void directory_sink::each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& found) {
  if (!folder.empty()) check_key(folder);
  if (!folder.empty() && !is_alone_) folder_of(std::string(folder) + "/", missing::stays);
  std::error_code e;
  const std::string above = root_ + "/";
  for (fs::recursive_directory_iterator i(path_of(folder), e), end; !e && i != end; i.increment(e)) {
    struct stat info {};
    const std::string& path = i->path().native();
    if (i.depth() == 0 && folder.empty() && i->path().filename() == text::unfinished_folder) i.disable_recursion_pending();
    if (is_temporary(i->path().filename().native()) || ::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    found(std::string_view(path).substr(above.size()), static_cast<std::uint64_t>(info.st_size));
  }
  if (e && e != std::errc::no_such_file_or_directory)
    io::fail_file("cannot list", path_of(folder), e.value(), "check the permissions there");
}

void directory_sink::append(std::string_view key, std::string_view text) {
  if (sync_) sync_folders();  // the journal must only claim what is on disk
  const std::string path = path_of(key);
  std::string line(text);
  const place p = place_of(key, missing::stays);
  {
    const std::lock_guard lock(append_mutex_);
    if (appended_.insert(path).second) {
      const auto before = get(key);
      if (before && !before->empty() && before->back() != std::byte{'\n'})
        line.insert(0, "\n");  // a killed run left a partial last line
    }
  }
  io::file_descriptor fd(::openat(p.at, p.name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!fd && (errno == ENOENT || errno == EBADF))
    throw zarrbits::error(errc::changed, "the store \"" + root_ + "\" was finished or removed by another process in the meantime",
                          {root_});
  struct stat info {};
  int error = fd && ::fstat(fd.get(), &info) == 0 ? 0 : errno;
  if (!error && (!S_ISREG(info.st_mode) || info.st_nlink > 1))
    throw zarrbits::error(errc::refused, "\"" + path + "\" is not a file of this store; start over with `overwrite`", {path});
  if (!error) error = io::write_all(fd.get(), std::as_bytes(std::span(line.data(), line.size())));
  if (!error && sync_ && ::fsync(fd.get()) != 0) error = errno;
  if (const int closing = fd.close(); !error) error = closing;
  if (error) io::fail_file("cannot write", path, error);
  if (sync_) sync_path(upper_folder(path));
}

void directory_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  check_key(folder);
  if (!is_alone_) folder_of(folder, missing::stays);  // no symbolic link in the path; a link at its end would itself be removed
  std::error_code e;
  fs::remove_all(path_of(folder), e);
  if (e) io::fail_file("cannot remove", path_of(folder), e.value(), "check the permissions there");
}

void directory_sink::finish() {
  sync_folders();
  try {
    if (joined_) remove_temporaries(root_);
  } catch (const fs::filesystem_error& e) {
    io::fail_file("cannot finish the store", root_, e.code().value(), "convert again");
  }
  target_.declare_whole();
  finished_ = true;
  target_.finish();
  if (!sync_) return;
  try {
    sync_path(root_);
  } catch (...) {
    if (joined_) ::unlinkat(target_.root(), "zarr.json", 0);  // after a failure, there is no store
    else target_.discard();
    throw;
  }
}

void directory_sink::make_folders(const std::string& path) {
  if (!sync_ && ::mkdir(path.c_str(), 0777) == 0) return;
  std::error_code e;
  if (sync_) {  // each new folder is an entry of its parent
    for (fs::path p = path; p.native().size() > root_.size() && !fs::exists(p, e); p = p.parent_path())
      remember(p.parent_path().native());
  }
  fs::create_directories(path, e);
  if (e == std::errc::filename_too_long) {  // libstdc++ refuses more than 1,000 at once
    for (std::size_t end = root_.size(); (end = path.find('/', end + 1)) != std::string::npos;)
      ::mkdir(path.substr(0, end).c_str(), 0777);
    fs::create_directories(path, e);
  }
  if (e) io::fail_file("cannot create the folder", path, e.value());
}

void directory_sink::remember(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  unsynced_.insert(folder);
}

void directory_sink::sync_folders() {
  if (!sync_) return;
  std::set<std::string> folders;
  {
    const std::lock_guard lock(mutex_);
    folders.swap(unsynced_);
  }
  for (const std::string& folder : folders) sync_path(folder.empty() ? "/" : folder);
}

}  // namespace zarrbits::zarr
