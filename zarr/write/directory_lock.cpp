// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/directory_lock.hpp"

#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/version.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace zarrbits::zarr {

namespace fs = std::filesystem;
using if_exists = store_writer_options::if_exists;

namespace {

std::string read_text_file(int folder, const char* name) {
  try {
    const auto bytes = io::read_regular_file(folder, name, name);
    if (bytes) return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  } catch (const zarrbits::error&) {  // the converter writes no such file
  }
  return {};
}

bool is_node(int folder) {
  return metadata::is_store_root([&](const char* key) { return read_text_file(folder, key); });
}
bool is_plan(int mark) { return text::is_zarrbits_plan(read_text_file(mark, text::plan_name)); }

bool is_removing(int mark) {
  const auto j = text::parse_untrusted_json(read_text_file(mark, text::removal_marker));
  return j.is_object() && j.contains("zarrbits") && j["zarrbits"].is_string() && j.contains("removing");
}

// Removes the metadata of every node below `folder`, outermost first: a reader sees no node there afterwards.
void remove_metadata(const fs::path& folder) {
  for (const char* key : metadata::root_keys) {
    if (!fs::is_directory(fs::symlink_status(folder / key))) fs::remove(folder / key);
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) remove_metadata(entry.path());
  }
}

// Empties the folder of the unfinished, which is not a symbolic link. The lock stays.
void empty_mark(const fs::path& mark, const std::string& but = {}) {
  for (const auto& entry : fs::directory_iterator(mark)) {
    const std::string name = entry.path().filename().native();
    if (name != text::lock_name && name != but) fs::remove_all(entry.path());
  }
}

}  // namespace

void remove_content(const std::string& root) {
  remove_metadata(root);
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().filename() != text::unfinished_folder) fs::remove_all(entry.path());
  }
}

// The content of the target, without the lock.
struct directory_lock::content {
  bool mark = false, plan = false, half_removed = false, has_other_content = false;
  bool has_mark_content = false, begun = false;  // a plan that another process is still writing does not count as begun

  explicit content(const directory_lock& t) {
    for (const auto& entry : fs::directory_iterator(t.path_))
      has_other_content = has_other_content || entry.path().filename() != text::unfinished_folder;
    const io::file_descriptor mark_fd(
        ::openat(t.root(), text::unfinished_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!mark_fd && errno == ENOENT) return;
    if (!mark_fd)
      io::throw_errno("cannot use the folder", t.path_ + "/" + text::unfinished_folder, errno,
                      "remove it or choose another target");
    mark = true;
    for (const auto& entry : fs::directory_iterator(fs::path(t.path_) / text::unfinished_folder)) {
      const std::string name = entry.path().filename().native();
      has_mark_content = has_mark_content || name != text::lock_name;
      begun = begun || (name != text::lock_name && !is_temporary(name));
    }
    plan = is_plan(mark_fd.get());
    half_removed = is_removing(mark_fd.get());
  }
  bool empty() const { return !has_other_content && !begun; }
};

directory_lock::directory_lock(const std::string& path) : path_(path) {}

directory_lock::directory_lock(const std::string& path, const store_writer_options& options) : path_(path) {
  const bool shared = attaches(options.target) && options.shared;
  const auto busy = [&] {
    return zarrbits::error(errc::busy,
                           options.target == if_exists::finalize
                               ? "another process is at work on \"" + path_ +
                                     "\": a share that is not done yet, or another finalize; wait until it ends"
                               : "another conversion is writing to \"" + path_ + "\"; wait for it or choose another name",
                           {path_});
  };
  for (int tries = 0;; ++tries) {  // another process may remove at any time what this one has just seen
    if (tries == 200) throw busy();
    if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    created_root_ = false;
    if (options.target != if_exists::finalize && ::mkdir(path_.c_str(), 0777) == 0) created_root_ = true;
    else if (options.target != if_exists::finalize && errno != EEXIST)
      io::throw_errno("cannot create the store", path_, errno, "choose a place that exists and that you may write to");
    root_ = io::file_descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root_ && errno == ENOTDIR)
      throw zarrbits::error(errc::already_exists,
                            "the target \"" + path_ + "\" exists and is not a directory; choose another name or remove it",
                            {path_});
    if (!root_ && errno == ENOENT && options.target == if_exists::finalize) throw nothing_to_finalize(path_);
    if (!root_ && errno == ENOENT) continue;
    if (!root_) io::throw_errno("cannot list the target", path_, errno, "choose another place");
    try {
      check_content(options, false);
      if (!open_mark()) continue;
      const io::lock_state state = io::take_lock(lock_.get(), mark_.get(), text::lock_name, shared);
      if (state == io::lock_state::removed) continue;
      if (state == io::lock_state::contended || (state == io::lock_state::unsupported && !attaches(options.target) &&
                                                 options.target != if_exists::replace && !created_mark_))
        throw busy();
    } catch (const fs::filesystem_error& e) {
      if (e.code() == std::errc::no_such_file_or_directory) continue;
      io::throw_errno("cannot list the target", path_, e.code().value(), "choose another place");
    }
    break;
  }
  try {
    const bool replaced = check_content(options, true);
    if (!shared) {
      const bool alone = !attaches(options.target) && !(found_unfinished_ && options.target == if_exists::resume);
      const std::string run = alone ? options.run : "";  // what others made is not for this run to remove
      const int error =
          ::ftruncate(lock_.get(), 0) != 0 ? errno : io::write_all(lock_.get(), std::as_bytes(std::span(run.data(), run.size())));
      if (error) io::throw_errno("cannot write to the store", path_, error);
    }
    if (replaced) replace(options);
  } catch (const fs::filesystem_error& e) {
    rollback();
    io::throw_errno("cannot list the target", path_, e.code().value(), "choose another place");
  } catch (...) {
    rollback();
    throw;
  }
}

// Throws if `options` do not allow the existing content. True if it must be removed.
bool directory_lock::check_content(const store_writer_options& options, bool locked) {
  const content current(*this);
  const std::string target = "the target \"" + path_ + "\"";
  if (current.empty() && options.target == if_exists::finalize) throw nothing_to_finalize(path_);
  if (current.empty()) return false;
  const bool node = is_node(root());
  if (options.target == if_exists::replace) {
    if (node || current.plan || current.half_removed) return true;
    throw zarrbits::error(
        errc::already_exists,
        target + " exists and is not a Zarr store, so `overwrite` does not remove it; choose another name or remove it yourself",
        {path_});
  }
  if (current.half_removed)
    throw zarrbits::error(errc::already_exists,
                          target + " is an old store that was only partly removed; replace it with `overwrite`", {path_});
  if (!current.plan || options.target == if_exists::refuse)
    throw zarrbits::error(errc::already_exists, target + target_exists_message(options.target, current.plan, node), {path_});
  if (locked) found_unfinished_ = true;
  return false;
}

// Opens the folder of the unfinished and its lock. False if they were removed in the meantime.
bool directory_lock::open_mark() {
  created_mark_ = ::mkdirat(root(), text::unfinished_folder, 0777) == 0;
  if (!created_mark_ && errno != EEXIST) {
    const int error = errno;
    if (created_root_) ::rmdir(path_.c_str());
    if (error == ENOENT) return false;
    io::throw_errno("cannot write to the store", path_, error);
  }
  const std::string name = path_ + "/" + text::unfinished_folder;
  mark_ = io::file_descriptor(::openat(root(), text::unfinished_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!mark_ && errno == ENOENT) return false;
  if (!mark_) io::throw_errno("cannot use the folder", name, errno, "remove it or choose another target");
  lock_ =
      io::file_descriptor(::openat(mark_.get(), text::lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!lock_ && errno == ENOENT) return false;
  struct stat info {};
  if (!lock_ || ::fstat(lock_.get(), &info) != 0) {
    const int error = errno;
    rollback();
    io::throw_errno("cannot write to the store", name + "/" + text::lock_name, error);
  }
  if (!S_ISREG(info.st_mode) || info.st_nlink > 1)
    throw zarrbits::error(errc::refused,
                          "\"" + name + "/" + text::lock_name + "\" is not a file of this store; choose another target", {name});
  return true;
}

// Removes its folders if nothing was begun.
void directory_lock::rollback() noexcept {
  try {
    if (!content(*this).has_mark_content) remove_mark();
    if (created_root_) ::rmdir(path_.c_str());
  } catch (...) {
  }
}

void directory_lock::replace(const store_writer_options& options) {
  const fs::path root = path_, mark = root / text::unfinished_folder;
  std::error_code e;
  const fs::path relative = fs::weakly_canonical(options.source, e).lexically_relative(fs::weakly_canonical(root, e));
  if (!options.source.empty() && !relative.empty() && *relative.begin() != "..") {
    throw zarrbits::error(errc::refused,
                          "the source \"" + options.source + "\" lies inside the target \"" + path_ + "\"; choose another target",
                          {path_});
  }
  try {
    fs::remove_all(mark / text::removal_marker);
    const std::string text = text::json_text({{"zarrbits", version()}, {"removing", true}}) + "\n";
    io::file_descriptor fd(::openat(mark_.get(), text::removal_marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    int error = fd ? io::write_all(fd.get(), std::as_bytes(std::span(text.data(), text.size()))) : errno;
    if (const int closing = fd.close(); !error) error = closing;
    if (error) io::throw_errno("cannot write", (mark / text::removal_marker).native(), error);
    remove_content(path_);
    empty_mark(mark, text::removal_marker);  // the journal of an older run does not belong to this run
    fs::remove(mark / text::removal_marker);
  } catch (const fs::filesystem_error& error) {
    throw zarrbits::error(errc::io_failed,
                          "cannot remove the old store \"" + path_ + "\": " + error.code().message() +
                              "; remove it yourself or choose another name",
                          {path_});
  }
}

// Removes the plan late: what a killed run leaves can be resumed. Removes the lock before the folder: a process that waits for it
// then checks the content again. Another process may create its own lock in the folder before that is removed; then the folder is
// that process's, which may already be replacing the store.
void directory_lock::remove_mark() {
  const fs::path mark = fs::path(path_) / text::unfinished_folder;
  empty_mark(mark, text::plan_name);
  empty_mark(mark);
  ::unlinkat(mark_.get(), text::lock_name, 0);
  for (int tries = 0;; ++tries) {
    if (::unlinkat(root(), text::unfinished_folder, AT_REMOVEDIR) == 0 || errno == ENOENT) return;
    const int error = errno;
    if (error != ENOTEMPTY && error != EEXIST) io::throw_errno("cannot finish the store", path_, error, "convert again");
    if (::faccessat(mark_.get(), text::lock_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return;
    if (tries >= 3) io::throw_errno("cannot finish the store", path_, error, "convert again");
  }
}

void directory_lock::discard() noexcept {
  try {
    remove_content(path_);
    if (fs::exists(fs::path(path_) / text::unfinished_folder)) remove_mark();
    if (created_root_) ::rmdir(path_.c_str());
  } catch (...) {  // the mark still says that the store is unfinished
  }
}

void directory_lock::mark_complete() {
  if (::unlinkat(mark_.get(), text::plan_name, 0) != 0 && errno != ENOENT)
    io::throw_errno("cannot finish the store", path_, errno, "convert again");
}

void directory_lock::finish() {
  try {
    remove_mark();
  } catch (const fs::filesystem_error& e) {
    if (e.code() != std::errc::no_such_file_or_directory)
      io::throw_errno("cannot finish the store", path_, e.code().value(), "convert again");
  }
}

bool directory_lock::remove_unfinished(const std::string& path, const store_writer_options& options) {
  directory_lock t(path);
  t.root_ = io::file_descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!t.root_) return false;
  const content current(t);
  if (!current.mark && !options.run.empty())
    ::rmdir(path.c_str());  // killed before it made more than the folder; a folder that is not empty stays
  if (!current.mark || (options.run.empty() && !current.empty() && !current.plan && !current.half_removed) || !t.open_mark())
    return false;
  if (io::take_lock(t.lock_.get(), t.mark_.get(), text::lock_name, false) != io::lock_state::acquired) return false;
  if (!options.run.empty()) {
    const auto run = io::read_regular_file(t.mark_.get(), text::lock_name, text::lock_name);
    if (run && run->empty() &&
        !content(t).has_mark_content) {  // the run was killed before it touched anything, or even wrote its name
      t.remove_mark();
      ::rmdir(path.c_str());
      return false;
    }
    if (!run || std::string_view(reinterpret_cast<const char*>(run->data()), run->size()) != options.run) return false;
  }
  t.created_root_ = true;  // removed if it is otherwise empty
  t.discard();
  return true;
}

void directory_lock::remove_stale_lock(const std::string& path) noexcept {
  try {
    directory_lock t(path);
    t.root_ = io::file_descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto is_whole = [&] {
      const content current(t);
      return current.mark && current.has_other_content && !current.plan && !current.half_removed && is_node(t.root());
    };
    if (!t.root_ || !is_whole() || !t.open_mark()) return;
    if (io::take_lock(t.lock_.get(), t.mark_.get(), text::lock_name, false) == io::lock_state::acquired && is_whole())
      t.remove_mark();
  } catch (...) {  // it does no harm
  }
}

}  // namespace zarrbits::zarr
