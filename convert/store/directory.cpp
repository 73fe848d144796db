// SPDX-License-Identifier: BSL-1.0
#include "convert/store/directory.hpp"

#include "convert/store/files.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::conversion {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view temporary_prefix = ".zarrbits-";
constexpr std::string_view temporary_suffix = ".tmp";

// The name cannot be taken for a chunk key or a node.
bool is_temporary(std::string_view name) { return name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix); }

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Removes every zarr.json below `folder`, the outermost first: from then on no reader sees a node there.
void remove_metadata(const fs::path& folder) {
  fs::remove(folder / "zarr.json");
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) remove_metadata(entry.path());
  }
}

// Everything but the folder of the unfinished.
void remove_content(const fs::path& root) {
  remove_metadata(root);
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().filename() != unfinished_folder) fs::remove_all(entry.path());
  }
}

// What killed runs left.
void remove_temporaries(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (is_temporary(entry.path().filename().native())) fs::remove(entry.path());
  }
}

void sync_path(const std::string& path) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL)) fail_file("cannot bring to the disk", path, errno, "check the disk");
}

}  // namespace

directory_sink::directory_sink(std::string path, const sink_options& options)
    : root_(std::move(path)), sync_(options.sync), joined_(options.target == sink_options::existing::join), token_(unique_token()) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
  open_target(options);
  std::string upper = path_of(unfinished_folder);
  for (std::size_t i = root_.size(); i < upper.size(); ++i) {
    if (upper[i] >= 'a' && upper[i] <= 'z') upper[i] = static_cast<char>(upper[i] - 'a' + 'A');
  }
  tells_case_apart_ = ::access(upper.c_str(), F_OK) != 0;
}

void directory_sink::open_target(const sink_options& options) {
  using existing = sink_options::existing;
  const std::string mark = path_of(unfinished_folder);
  if (::mkdir(root_.c_str(), 0777) == 0) {
    created_root_ = true;
    if (sync_) remember(folder_of(fs::absolute(root_).native()));
  } else if (errno != EEXIST) {
    fail_file("cannot create the store", root_, errno, "choose a place that exists and that you may write to");
  } else {
    std::error_code e;
    if (!fs::is_directory(root_, e)) {
      throw convert_error("the target \"" + root_ + "\" exists and is no directory; choose another name or remove it");
    }
    const bool empty = fs::is_empty(root_, e);
    if (e) fail_file("cannot list the target", root_, e.value(), "choose another place");
    if (!empty && options.target == existing::refuse) {
      throw convert_error("the target \"" + root_ + "\" exists; choose another name, or replace it with --overwrite");
    }
    if (!empty && options.target == existing::replace) return replace(options);
    if (!empty && !fs::exists(mark)) {
      throw convert_error("the target \"" + root_ + "\" exists and is no unfinished store that could be gone on with; choose another name" +
                          (fs::exists(fs::path(root_) / "zarr.json") ? ", or replace it with --overwrite" : ""));
    }
    if (fs::exists(fs::path(mark) / removing)) {
      throw convert_error("the target \"" + root_ + "\" is an old store that was not wholly removed; replace it with --overwrite");
    }
    found_unfinished_ = !empty;
  }
  if (::mkdir(mark.c_str(), 0777) != 0 && !(errno == EEXIST && joined_)) {
    const int error = errno;
    if (created_root_) ::rmdir(root_.c_str());
    if (error == EEXIST) throw convert_error("another conversion writes to \"" + root_ + "\"; wait for it or choose another name");
    fail_file("cannot write to the store", root_, error);
  }
  is_alone_ = !joined_ && !found_unfinished_;
  if (sync_) remember(root_);
}

void directory_sink::replace(const sink_options& options) {
  const fs::path root = root_, mark = root / unfinished_folder;
  if (!fs::exists(root / "zarr.json") && !fs::exists(mark)) {
    throw convert_error("the target \"" + root_ + "\" exists and is no Zarr v3 store, so --overwrite does not remove it; "
                        "choose another name or remove it yourself");
  }
  std::error_code e;
  const fs::path relative = fs::weakly_canonical(options.source, e).lexically_relative(fs::weakly_canonical(root, e));
  if (!options.source.empty() && !relative.empty() && *relative.begin() != "..") {
    throw convert_error("the source \"" + options.source + "\" lies inside the target \"" + root_ + "\"; choose another target");
  }
  try {
    fs::create_directory(mark);
    if (const file_descriptor fd(::open((mark / removing).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)); !fd) {
      fail_file("cannot write", (mark / removing).native(), errno);
    }
    remove_content(root);
    // the journal of an older run is no journal of this one
    for (const auto& entry : fs::directory_iterator(mark)) {
      if (entry.path().filename() != removing) fs::remove_all(entry.path());
    }
    fs::remove(mark / removing);
  } catch (const fs::filesystem_error& error) {
    throw convert_error("cannot remove the old store \"" + root_ + "\": " + error.code().message() +
                        "; remove it yourself or choose another name");
  }
}

directory_sink::~directory_sink() {
  if (finished_ || joined_) return;
  // A failed run leaves nothing that looks like a store: zarr.json files first, the mark last.
  try {
    remove_content(root_);
    fs::remove_all(path_of(unfinished_folder));
    if (created_root_) fs::remove(root_);
  } catch (...) {  // the mark still says that the store is not whole
  }
}

// Becomes the file `path` with commit(); else it goes.
class directory_sink::new_file {
 public:
  // A rename costs as much as copying tens of KiB: what nobody looks at before the store is whole may have its name from the beginning.
  enum class named { with_commit, at_once };

  new_file(directory_sink& sink, std::string path, named when) : sink_(sink), path_(std::move(path)), slash_(path_.rfind('/')) {
    if (when == named::at_once) {
      written_ = path_;
      open();
    }
    if (!fd_) {  // or there is one, of an earlier try
      written_ = path_.substr(0, slash_ + 1) + std::string(temporary_prefix) + sink.token_ + "-" + std::to_string(sink.next_temporary_++) +
                 std::string(temporary_suffix);
      open();
    }
    if (!fd_) fail_file("cannot write", path_, errno);
  }
  ~new_file() {
    if (!committed_ && fd_) ::unlink(written_.c_str());
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  int fd() const { return fd_.get(); }
  void check(int error) const {
    if (error) fail_file("cannot write", path_, error);
  }
  void write(std::span<const std::byte> bytes) { check(write_all(fd(), bytes)); }
  void write(int from, std::uint64_t offset, std::uint64_t size) { check(copy_range(from, offset, size, fd())); }
  void commit() {
    if (sink_.sync_ && ::fsync(fd()) != 0) check(errno);
    if (const int error = ::close(fd_.get()) == 0 ? 0 : errno) {
      fd_.release();
      ::unlink(written_.c_str());
      check(error);
    }
    fd_.release();
    if (written_ != path_ && ::rename(written_.c_str(), path_.c_str()) != 0) {
      const int error = errno;
      ::unlink(written_.c_str());
      check(error);
    }
    committed_ = true;
    if (sink_.sync_) sink_.remember(path_.substr(0, slash_));
  }

 private:
  void open() {
    const auto try_to = [this] { fd_ = file_descriptor(::open(written_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)); };
    try_to();
    if (fd_ || errno != ENOENT) return;
    sink_.make_folders(path_.substr(0, slash_));
    try_to();
  }

  directory_sink& sink_;
  std::string path_;
  std::size_t slash_;
  std::string written_;
  file_descriptor fd_;
  bool committed_ = false;
};

class directory_sink::writer final : public object_writer {
 public:
  writer(directory_sink& sink, std::string_view key) : sink_(sink), key_(key), file_(sink, sink.path_of(key), new_file::named::with_commit) {}
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
  const bool chunk = key != "zarr.json" && !key.ends_with("/zarr.json") && !key.starts_with(unfinished_folder);
  if (sync_ && !chunk) sync_folders();  // what it speaks of comes first
  new_file file(*this, path_of(key), chunk && is_alone_ ? new_file::named::at_once : new_file::named::with_commit);
  file.write(bytes);
  file.commit();
  count(key, bytes.size());
}

void directory_sink::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  new_file file(*this, path_of(key), is_alone_ ? new_file::named::at_once : new_file::named::with_commit);
  file.write(fd, offset, size);
  file.commit();
  count(key, size);
}

std::unique_ptr<object_writer> directory_sink::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

std::optional<std::vector<std::byte>> directory_sink::get(std::string_view key) {
  const std::string path = path_of(key);
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) fail_file("cannot read", path, errno, "check the permissions there");
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  try {
    read_range(fd.get(), 0, bytes);
  } catch (const unreadable_range& e) {
    throw convert_error("cannot read \"" + path + "\": " + e.what());
  }
  return bytes;
}

std::vector<std::string> directory_sink::list(std::string_view folder) {
  std::vector<std::string> keys;
  std::error_code e;
  for (fs::directory_iterator i(path_of(folder), e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().filename().native();
    if (!is_temporary(name)) keys.push_back(folder.empty() ? name : std::string(folder) + "/" + name);
  }
  if (e && e != std::errc::no_such_file_or_directory) fail_file("cannot list", path_of(folder), e.value(), "check the permissions there");
  std::sort(keys.begin(), keys.end());
  return keys;
}

void directory_sink::append(std::string_view key, std::string_view text) {
  if (sync_) sync_folders();  // the journal speaks of what is there
  const std::string path = path_of(key);
  std::string line(text);
  {
    const std::lock_guard lock(append_mutex_);
    if (appended_.insert(path).second) {
      make_folders(folder_of(path));
      const auto before = get(key);
      if (before && !before->empty() && before->back() != std::byte{'\n'}) line.insert(0, "\n");  // a killed run tore its last line
    }
  }
  file_descriptor fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  int error = fd ? write_all(fd.get(), std::as_bytes(std::span(line.data(), line.size()))) : errno;
  if (!error && sync_ && ::fsync(fd.get()) != 0) error = errno;
  if (const int closing = fd.close(); !error) error = closing;
  if (error) fail_file("cannot write", path, error);
  if (sync_) sync_path(folder_of(path));
}

void directory_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  std::error_code e;
  fs::remove_all(path_of(folder), e);
  if (e) fail_file("cannot remove", path_of(folder), e.value(), "check the permissions there");
}

void directory_sink::finish() {
  sync_folders();
  try {
    if (found_unfinished_) remove_temporaries(root_);
    fs::remove_all(path_of(unfinished_folder));
  } catch (const fs::filesystem_error& e) {
    fail_file("cannot finish the store", root_, e.code().value(), "convert again");
  }
  if (sync_) sync_path(root_);
  finished_ = true;
}

void directory_sink::make_folders(const std::string& path) {
  if (!sync_ && ::mkdir(path.c_str(), 0777) == 0) return;
  std::error_code e;
  if (sync_) {  // each new folder is an entry of the one above it
    for (fs::path p = path; p.native().size() > root_.size() && !fs::exists(p, e); p = p.parent_path()) remember(p.parent_path().native());
  }
  fs::create_directories(path, e);
  if (e) fail_file("cannot create the folder", path, e.value());
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

}  // namespace zarrbits::conversion
