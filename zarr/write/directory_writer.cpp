// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/directory_writer.hpp"

#include "io/files.hpp"
#include "metadata/v2_metadata.hpp"
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

std::string parent_folder(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Removes what killed runs left.
void remove_temporaries(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (is_temporary(entry.path().filename().native())) fs::remove(entry.path());
  }
}

void sync_path(const std::string& path) {
  const io::file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
    io::throw_errno("cannot flush to the disk", path, errno, "check the disk");
}

}  // namespace

directory_writer::directory_writer(std::string path, const store_writer_options& options)
    : root_(text::strip_trailing_slashes(std::move(path))),
      lock_(root_, options),
      sync_(options.sync),
      joined_(attaches(options.target) || lock_.found_unfinished()),
      is_alone_(!joined_),
      token_(io::unique_token()) {
  if (sync_) {
    if (lock_.created_root()) mark_unsynced(parent_folder(fs::absolute(root_).native()));
    mark_unsynced(root_);
  }
  std::string upper = path_of(text::unfinished_folder);
  for (std::size_t i = root_.size(); i < upper.size(); ++i) {
    if (upper[i] >= 'a' && upper[i] <= 'z') upper[i] = static_cast<char>(upper[i] - 'a' + 'A');
  }
  is_case_sensitive_ = ::access(upper.c_str(), F_OK) != 0;
}

directory_writer::~directory_writer() {
  if (finished_) return;
  if (!joined_ && !keep_unfinished_) lock_.discard();  // a failed run must not leave anything that looks like a store
  else if (root_written_) remove_root();
}

void directory_writer::remove_root() const noexcept {
  for (const char* key : metadata::root_keys) ::unlinkat(lock_.root(), key, 0);
}

bool directory_writer::remove_unfinished(const std::string& path, const store_writer_options& options) {
  return directory_lock::remove_unfinished(text::strip_trailing_slashes(path), options);
}

void directory_writer::remove_stale_lock(const std::string& path) noexcept {
  directory_lock::remove_stale_lock(text::strip_trailing_slashes(path));
}

io::file_descriptor directory_writer::folder_of(std::string_view key, if_missing folders) const {
  io::file_descriptor current(::openat(lock_.root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t begin = 0, end = 0; (end = key.find('/', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string part(key.substr(begin, end - begin));
    if (folders == if_missing::create && ::mkdirat(current.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
      io::throw_errno("cannot create the folder", path_of(key.substr(0, end)), errno);
    }
    current = io::file_descriptor(::openat(current.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (current) continue;
    if (errno == ELOOP || errno == ENOTDIR) {
      throw zarrbits::error(errc::refused,
                            "\"" + path_of(key.substr(0, end)) +
                                "\" is a symbolic link, or not a folder, in a store that others may write to; start over with "
                                "`overwrite`, or choose another name",
                            {path_of(key)});
    }
    break;
  }
  return current;
}

directory_writer::file_location directory_writer::locate(std::string_view key, if_missing folders) const {
  check_key(key);
  if (is_alone_) return {{}, AT_FDCWD, path_of(key)};
  file_location p{folder_of(key, if_missing::ignore), 0, std::string(key.substr(key.rfind('/') + 1))};
  if (!p.folder && errno == ENOENT && folders == if_missing::create) p.folder = folder_of(key, folders);
  if (!p.folder && errno != ENOENT) io::throw_errno("cannot open the folder of", path_of(key), errno);
  p.folder_fd = p.folder.get();  // -1 if absent: every call with it fails
  return p;
}

// commit() turns it into the file `path`; otherwise it is removed.
class directory_writer::new_file {
 public:
  // A rename costs as much as copying tens of KiB: a file that is not read before the store is complete may have its name from
  // the start.
  enum class naming { on_commit, immediate };

  new_file(directory_writer& sink, std::string_view key, naming mode)
      : store_(sink), key_(key), location_(sink.locate(key, if_missing::create)) {
    if (mode == naming::immediate) {
      written_ = location_.name;
      open();
    }
    if (!fd_) {  // or there is one, from an earlier try
      written_ = location_.name.substr(0, location_.name.rfind('/') + 1) + std::string(temporary_prefix) + sink.token_ + "-" +
                 std::to_string(sink.next_temporary_++) + std::string(temporary_suffix);
      open();
    }
    if (!fd_) io::throw_errno("cannot write", store_.path_of(key_), errno);
  }
  ~new_file() {
    if (!committed_ && fd_) ::unlinkat(location_.folder_fd, written_.c_str(), 0);
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  int fd() const { return fd_.get(); }
  void check(int error) const {
    if (error) io::throw_errno("cannot write", store_.path_of(key_), error);
  }
  void write(std::span<const std::byte> bytes) { check(io::write_all(fd(), bytes)); }
  void write(int source_fd, std::uint64_t offset, std::uint64_t size) { check(io::copy_range(source_fd, offset, size, fd())); }
  void commit() {
    close();
    if (written_ != location_.name &&
        ::renameat(location_.folder_fd, written_.c_str(), location_.folder_fd, location_.name.c_str()) != 0)
      remove_and_fail(errno);
    mark_committed();
  }
  // Returns false, and removes the new file, if there is a file of this name.
  bool commit_if_new() {
    close();
    if (written_ != location_.name) {
      const int error =
          ::linkat(location_.folder_fd, written_.c_str(), location_.folder_fd, location_.name.c_str(), 0) == 0 ? 0 : errno;
      if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK) {  // no hard links here: almost as good
        struct stat info {};
        if (::fstatat(location_.folder_fd, location_.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
          return ::unlinkat(location_.folder_fd, written_.c_str(), 0), false;
        if (::renameat(location_.folder_fd, written_.c_str(), location_.folder_fd, location_.name.c_str()) != 0)
          remove_and_fail(errno);
      } else {
        ::unlinkat(location_.folder_fd, written_.c_str(), 0);
        if (error == EEXIST) return false;
        check(error);
      }
    }
    mark_committed();
    return true;
  }

 private:
  void open() {
    const auto try_to = [this] {
      fd_ = io::file_descriptor(
          ::openat(location_.folder_fd, written_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    };
    try_to();
    if (fd_ || errno != ENOENT || location_.folder) return;
    store_.make_folders(parent_folder(location_.name));
    try_to();
  }
  void close() {
    if (store_.sync_ && ::fsync(fd()) != 0) check(errno);
    const int error = fd_.close();
    if (error) remove_and_fail(error);
  }
  [[noreturn]] void remove_and_fail(int error) {
    ::unlinkat(location_.folder_fd, written_.c_str(), 0);
    io::throw_errno("cannot write", store_.path_of(key_), error);
  }
  void mark_committed() {
    committed_ = true;
    if (store_.sync_) store_.mark_unsynced(parent_folder(store_.path_of(key_)));
  }

  directory_writer& store_;
  std::string key_;
  file_location location_;
  std::string written_;
  io::file_descriptor fd_;
  bool committed_ = false;
};

class directory_writer::writer final : public object_writer {
 public:
  writer(directory_writer& sink, std::string_view key) : store_(sink), key_(key), file_(sink, key, new_file::naming::on_commit) {}
  void append(std::span<const std::byte> bytes) override {
    size_ += bytes.size();
    if (bytes.size() < capacity - pending_.size()) {  // many small chunks are one write
      pending_.insert(pending_.end(), bytes.begin(), bytes.end());
      return;
    }
    flush();
    file_.write(bytes);
  }
  void append_range(int fd, std::uint64_t offset, std::uint64_t size) override {
    if (size < capacity / 4) return object_writer::append_range(fd, offset, size);
    flush();
    file_.write(fd, offset, size);
    size_ += size;
  }
  void commit() override {
    flush();
    file_.commit();
    store_.count(key_, size_);
  }

 private:
  static constexpr std::size_t capacity = 256 << 10;
  void flush() {
    file_.write(pending_);
    pending_.clear();
  }
  directory_writer& store_;
  std::string key_;
  new_file file_;
  std::vector<std::byte> pending_;
  std::uint64_t size_ = 0;
};

void directory_writer::put(std::string_view key, std::span<const std::byte> bytes) {
  const bool chunk = !metadata::is_metadata_key(key) && !in_unfinished_folder(key);
  if (sync_ && !chunk) sync_folders();  // what it refers to comes first
  if (key.find('/') == key.npos && metadata::is_metadata_key(key)) root_written_ = true;
  new_file file(*this, key, chunk && is_alone_ ? new_file::naming::immediate : new_file::naming::on_commit);
  file.write(bytes);
  file.commit();
  count(key, bytes.size());
}

void directory_writer::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  new_file file(*this, key, is_alone_ ? new_file::naming::immediate : new_file::naming::on_commit);
  file.write(fd, offset, size);
  file.commit();
  count(key, size);
}

std::unique_ptr<object_writer> directory_writer::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

bool directory_writer::put_new(std::string_view key, std::span<const std::byte> bytes) {
  new_file file(*this, key, new_file::naming::on_commit);
  file.write(bytes);
  if (!file.commit_if_new()) return false;
  count(key, bytes.size());
  return true;
}

std::optional<std::vector<std::byte>> directory_writer::get(std::string_view key) {
  const file_location p = locate(key, if_missing::ignore);
  if (p.folder_fd < 0 && p.folder_fd != AT_FDCWD) return std::nullopt;
  return io::read_regular_file(p.folder_fd, p.name, path_of(key));
}

std::vector<std::string> directory_writer::list(std::string_view folder) {
  if (!folder.empty() && !is_alone_) folder_of(std::string(folder) + "/", if_missing::ignore);  // no symbolic link in the path
  std::vector<std::string> keys;
  std::error_code e;
  for (fs::directory_iterator i(path_of(folder), e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().filename().native();
    if (!is_temporary(name) && (name != text::lock_name || folder != text::unfinished_folder))
      keys.push_back(folder.empty() ? name : std::string(folder) + "/" + name);
  }
  if (e && e != std::errc::no_such_file_or_directory)
    io::throw_errno("cannot list", path_of(folder), e.value(), "check the permissions there");
  std::sort(keys.begin(), keys.end());
  return keys;
}

void directory_writer::for_each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& callback) {
  if (!folder.empty()) check_key(folder);
  if (!folder.empty() && !is_alone_) folder_of(std::string(folder) + "/", if_missing::ignore);
  std::error_code e;
  const std::string prefix = root_ + "/";
  for (fs::recursive_directory_iterator i(path_of(folder), e), end; !e && i != end; i.increment(e)) {
    struct stat info {};
    const std::string& path = i->path().native();
    if (i.depth() == 0 && folder.empty() && i->path().filename() == text::unfinished_folder) i.disable_recursion_pending();
    if (is_temporary(i->path().filename().native()) || ::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    callback(std::string_view(path).substr(prefix.size()), static_cast<std::uint64_t>(info.st_size));
  }
  if (e && e != std::errc::no_such_file_or_directory)
    io::throw_errno("cannot list", path_of(folder), e.value(), "check the permissions there");
}

void directory_writer::append(std::string_view key, std::string_view text) {
  if (sync_) sync_folders();  // the journal must only list objects that are on disk
  const std::string path = path_of(key);
  std::string line(text);
  const file_location p = locate(key, if_missing::ignore);
  {
    const std::lock_guard lock(append_mutex_);
    if (appended_.insert(path).second) {
      const auto previous = get(key);
      if (previous && !previous->empty() && previous->back() != std::byte{'\n'})
        line.insert(0, "\n");  // a killed run left a partial last line
    }
  }
  io::file_descriptor fd(
      ::openat(p.folder_fd, p.name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
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
  if (error) io::throw_errno("cannot write", path, error);
  if (sync_) sync_path(parent_folder(path));
}

void directory_writer::remove(std::string_view folder) {
  if (folder.empty()) return;
  check_key(folder);
  if (!is_alone_)
    folder_of(folder, if_missing::ignore);  // no symbolic link in the path; a link at its end would itself be removed
  std::error_code e;
  fs::remove_all(path_of(folder), e);
  if (e) io::throw_errno("cannot remove", path_of(folder), e.value(), "check the permissions there");
}

void directory_writer::finish() {
  sync_folders();
  try {
    if (joined_) remove_temporaries(root_);
  } catch (const fs::filesystem_error& e) {
    io::throw_errno("cannot finish the store", root_, e.code().value(), "convert again");
  }
  lock_.mark_complete();
  finished_ = true;
  lock_.finish();
  if (!sync_) return;
  try {
    sync_path(root_);
  } catch (...) {
    if (joined_) remove_root();  // after a failure, there is no store
    else lock_.discard();
    throw;
  }
}

void directory_writer::discard() noexcept {
  finished_ = true;
  lock_.discard();
}

void directory_writer::make_folders(const std::string& path) {
  if (!sync_ && ::mkdir(path.c_str(), 0777) == 0) return;
  std::error_code e;
  if (sync_) {  // each new folder is an entry of its parent
    for (fs::path p = path; p.native().size() > root_.size() && !fs::exists(p, e); p = p.parent_path())
      mark_unsynced(p.parent_path().native());
  }
  fs::create_directories(path, e);
  if (e == std::errc::filename_too_long) {  // libstdc++ refuses more than 1,000 at once
    for (std::size_t end = root_.size(); (end = path.find('/', end + 1)) != std::string::npos;)
      ::mkdir(path.substr(0, end).c_str(), 0777);
    fs::create_directories(path, e);
  }
  if (e) io::throw_errno("cannot create the folder", path, e.value());
}

void directory_writer::mark_unsynced(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  unsynced_.insert(folder);
}

void directory_writer::sync_folders() {
  if (!sync_) return;
  std::set<std::string> folders;
  {
    const std::lock_guard lock(mutex_);
    folders.swap(unsynced_);
  }
  for (const std::string& folder : folders) sync_path(folder.empty() ? "/" : folder);
}

}  // namespace zarrbits::zarr
