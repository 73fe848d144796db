// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/reference_store_writer.hpp"

#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "remote/remote_object.hpp"
#include "text/format.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

namespace {

std::string path_of_open_file(int fd) {
  std::string name(PATH_MAX, '\0');
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name.data(), name.size());
  name.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  struct stat path_info {
  }, fd_info{};
  if (!name.starts_with('/') || ::stat(name.c_str(), &path_info) != 0 || ::fstat(fd, &fd_info) != 0 ||
      path_info.st_dev != fd_info.st_dev || path_info.st_ino != fd_info.st_ino)
    throw zarrbits::error(errc::unsupported, "a source has no name that references could use" +
                                                 (name.empty() ? "" : ": \"" + name + "\"") + "; convert it without references");
  return name;
}

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

bool exists(const std::string& path) {
  std::error_code e;
  return fs::exists(fs::symlink_status(path, e));
}

// A name of a source is a text in the references.
void require_utf8(const std::string& name) {
  if (!text::is_utf8(name))
    throw zarrbits::error(
        errc::unsupported,
        "the name of a source is not UTF-8, which references have to be; rename it, or convert it without references");
}

// A run that was killed between the two renames of finish() left the data file under its name, and the references under their
// temporary one. Nothing else leaves both: a data file that exists before the references is refused. True if it was removed.
bool remove_data_of_killed_run(const std::string& path) {
  const std::string data_path = io::data_file_path(path), temporary = unfinished_name(path);
  if (!exists(data_path) || exists(path) || !exists(temporary)) return false;
  const io::file_descriptor lock = lock_leftover(
      temporary, path, io::kind_of_target(path) == io::store_kind::parquet ? leftover_kind::folder : leftover_kind::file);
  return lock && ::unlink(data_path.c_str()) == 0;
}

// The name of the references, beside which there may be a data file only if they exist.
std::string with_free_data_file(const std::string& name, const store_writer_options& options) {
  std::string path = text::strip_trailing_slashes(name);
  if (options.target == store_writer_options::if_exists::append) return path;
  remove_data_of_killed_run(path);
  if (const std::string data_path = io::data_file_path(path); exists(data_path) && !exists(path))
    throw zarrbits::error(errc::already_exists,
                          "\"" + data_path + "\" exists, and would become a part of the store; choose another name or remove it",
                          {data_path});
  return path;
}

}  // namespace

std::string url_of_open_file(int fd) {
  const std::string name = path_of_open_file(fd);
  require_utf8(name);
  return std::string(io::file_url) + name;
}

reference_store_writer::reference_store_writer(const std::string& path, std::uint64_t inline_bytes,
                                               const store_writer_options& options)
    : path_(with_free_data_file(path, options)),
      inline_bytes_(inline_bytes),
      options_(options),
      names_(options.base, {options.source}, path),
      writer_(make_reference_writer(path, options)) {
  if (options.target == store_writer_options::if_exists::append) load_existing();
}

// The sources must be unchanged: otherwise an append would make stale references look new.
void reference_store_writer::load_existing() {
  try {
    io::reference_table table = io::read_references(path_, options_.memory);
    files_ = std::move(table.files);
    options_.formats = table.formats;
    if (table.relative && !names_.has_base()) names_ = io::source_url_map(source_base{{}, "."}, {}, path_);
    for (io::referenced_file& f : files_) f.url = names_.local_url(f.url);
    for (auto& [key, r] : table.keys) {
      if (r.is_entire_file)
        throw io::reference_error("\"" + path_ +
                                  "\" refers to whole files, and zarrbits appends to references that say their sizes; " +
                                  "make them again with `concat`");
      if (r.file) members_.add(key, {*r.file, r.offset, r.size});
      else add_text(key, std::move(r.content));
    }
    initial_size_ = members_.size();
  } catch (const io::reference_error& e) {
    throw zarrbits::error(errc::damaged_store, e.what(), {path_});
  }
  for (const io::referenced_file& f : files_) {
    struct stat s {};
    if (!f.state) continue;
    const bool remote = io::is_remote(f.url);
    if (remote && f.size_only)
      throw zarrbits::error(errc::invalid_option,
                            "\"" + path_ + "\" calls local files by URLs, such as \"" + f.url +
                                "\"; say where they are, as when it was made: `base` FOLDER=URL",
                            {path_});
    if (!remote && !f.url.starts_with(io::file_url)) continue;
    const std::string name = remote ? f.url : f.url.substr(io::file_url.size());
    if (remote ? remote::find_object(name, options_.remote)->current_state() != *f.state
               : ::stat(name.c_str(), &s) != 0 || !io::is_unchanged(f, io::state_in(s))) {
      throw zarrbits::error(errc::changed,
                            "\"" + name + "\" is not as it was when the references in \"" + path_ +
                                "\" were made: it was changed, moved or removed; make them again with `concat`",
                            {name});
    }
  }
}

bool reference_store_writer::remove_unfinished(const std::string& name) {
  const std::string target = text::strip_trailing_slashes(name);
  bool is_removed = remove_data_of_killed_run(target);
  for (std::size_t n = 0; n == 0 || exists(io::data_file_path(target, n - 1)); ++n) {
    const std::string data_path = io::data_file_path(target, n);
    is_removed = atomic_file::remove_unfinished(data_path, unfinished_name(data_path)) || is_removed;
  }
  return remove_unfinished_references(target) || is_removed;
}

void reference_store_writer::add(std::string_view key, const member& entry) {
  check_key(key);
  if (entry.file == in_text || entry.file == data_file_) count(key, entry.size);
  else ++referenced_objects_, referenced_bytes_ += entry.size;
  members_.add(key, entry);
}

void reference_store_writer::add_text(std::string_view key, std::string text) {
  const std::uint64_t size = text.size();
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = texts_.size();
    inlined_ += size;
    texts_.push_back(std::move(text));
  }
  add(key, {in_text, number, size});
}

std::size_t reference_store_writer::number_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw zarrbits::error(errc::io_failed, "a source cannot be examined");
  const std::lock_guard lock(mutex_);
  const auto known_file = file_by_inode_.find({info.st_dev, info.st_ino});
  return known_file != file_by_inode_.end() ? known_file->second : number_of_local(info, url_of_open_file(fd));
}

// The number of a local file; of its several names, the first one counts.
std::size_t reference_store_writer::number_of_local(const struct stat& info, const std::string& url) {
  const auto [entry, is_new] = file_by_inode_.emplace(std::pair{info.st_dev, info.st_ino}, files_.size());
  if (is_new) {
    files_.push_back({url, io::state_in(info)});
    names_.published_url(url);  // which throws now, and not at the end
  }
  return entry->second;
}

std::size_t reference_store_writer::number_of(const std::string& url, const io::file_state& state) {
  const std::lock_guard lock(mutex_);
  if (const auto known_file = file_by_url_.find(url); known_file != file_by_url_.end()) return known_file->second;
  require_utf8(url);
  std::size_t number = files_.size();
  if (url.starts_with(io::file_url)) {
    const std::string name = url.substr(io::file_url.size());
    struct stat info {};
    if (::stat(name.c_str(), &info) != 0 || io::state_in(info) != state)
      throw zarrbits::error(errc::changed,
                            "\"" + name +
                                "\" is not as it was when references to it were made: it was changed, moved or removed, " +
                                "or has another name on this machine; start over with `overwrite`",
                            {name});
    number = number_of_local(info, url);
  } else {
    files_.push_back({url, state});
  }
  file_by_url_.emplace(url, number);
  return number;
}

// Under a name that no other store has used: the old content reads as before until the new references have replaced it.
void reference_store_writer::open_data() {
  if (data_) return;
  std::size_t number = 0;
  while (exists(io::data_file_path(path_, number))) ++number;
  const std::string name = io::data_file_path(path_, number);
  store_writer_options options = options_;
  options.target = store_writer_options::if_exists::refuse;
  data_ = std::make_unique<atomic_file>(name, unfinished_name(name), options, atomic_file::kind{});
  data_file_ = files_.size();
  files_.push_back({std::string(io::file_url) + absolute(name)});
}

// All texts are in memory here and where they are read, and a column of a Parquet file has at most 2 GiB.
bool reference_store_writer::has_room(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  return inlined_ + size <= std::min<std::uint64_t>(options_.memory / 4, std::uint64_t{1} << 30);
}

void reference_store_writer::put(std::string_view key, std::span<const std::byte> bytes) {
  if (in_unfinished_folder(key)) return members_.put_journal(key, bytes);
  if (text::is_node_key(key) || (bytes.size() <= inline_bytes_ && has_room(bytes.size())))
    return add_text(key, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::uint64_t offset = 0;
  {
    const std::lock_guard lock(mutex_);
    open_data();
    offset = std::exchange(data_end_, data_end_ + bytes.size());
  }
  data_->write_at(offset, bytes);
  add(key, {data_file_, offset, bytes.size()});
}

bool reference_store_writer::is_temporary(int fd) const {
  struct stat source {
  }, opened{};
  return options_.is_source_temporary && ::stat(options_.source.c_str(), &source) == 0 && ::fstat(fd, &opened) == 0 &&
         source.st_dev == opened.st_dev && source.st_ino == opened.st_ino;
}

void reference_store_writer::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  if (is_temporary(fd)) return store_writer::put_range(key, fd, offset, size);
  io::require_range(fd, offset, size);
  add(key, {number_of(fd), offset, size});
}

void reference_store_writer::put_reference(std::string_view key, const std::string& url, const io::file_state& state,
                                           std::uint64_t offset, std::uint64_t size) {
  require_public_name(url);
  add(key, {number_of(url, state), offset, size});
}

bool reference_store_writer::put_new(std::string_view key, std::span<const std::byte> bytes) {
  if (get(key)) return false;  // no other process writes to it
  put(key, bytes);
  return true;
}

std::optional<std::vector<std::byte>> reference_store_writer::get(std::string_view key) {
  if (auto journal_object = members_.get_journal(key)) return journal_object;
  const auto entry = members_.find(key);
  if (!entry) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry->size));
  std::string url;  // taken under the lock, for other threads add files
  {
    const std::lock_guard lock(mutex_);
    if (entry->file == in_text) {
      const auto text = std::as_bytes(std::span(texts_[static_cast<std::size_t>(entry->offset)]));
      return std::vector<std::byte>(text.begin(), text.end());
    }
    url = files_[entry->file].url;
  }
  const bool is_in_data_file = data_ && entry->file == data_file_;
  const io::file_descriptor source_fd(
      is_in_data_file ? -1 : ::open(url.substr(io::file_url.size()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  try {
    io::read_range(is_in_data_file ? data_->descriptor() : source_fd.get(), entry->offset, bytes);
  } catch (const io::read_error& e) {
    throw zarrbits::error(errc::io_failed, "cannot read \"" + std::string(key) + "\" of \"" + path_ + "\": " + e.what(), {path_});
  }
  return bytes;
}

// The metadata of Zarr v2, where it is wanted and possible; sets `formats` to what there is then.
std::map<std::string, text::json> reference_store_writer::v2_documents(io::v2_references& v2, io::zarr_formats& formats) {
  const auto for_each_member = [&](bool nodes, const auto& take) {
    members_.for_each_sorted([&](const std::string& key, const member& m) {
      if (text::is_node_key(key) == nodes) take(key, m);
    });
  };
  for_each_member(true,
                  [&](const std::string& key, const member& m) { v2.node(key, texts_[static_cast<std::size_t>(m.offset)]); });
  if (!formats.v2) return {};
  for_each_member(false, [&](const std::string& key, const member&) { v2.chunk(key); });
  const std::string missing = v2.only_v3();
  if (missing.empty() || (formats.v3 && io::kind_of_target(path_) != io::store_kind::parquet)) return v2.documents();
  if (!formats.v3)
    throw zarrbits::error(errc::unsupported, "Zarr v2 cannot have the array \"" + missing + "\"; set `zarr_format` to both or 3",
                          {path_, missing});
  // fsspec needs an entry ".zarray" of each array in Parquet, so that readers of Zarr v2 would fail on that one
  formats.v2 = false;
  if (options_.warning)
    options_.warning("\"" + path_ + "\" has the metadata of Zarr v3 only, because Zarr v2 cannot have the array \"" + missing +
                     "\"; leave it out with `exclude`, or make references \"OUT.json\"");
  return {};
}

// As readers are to see them. What has another name here has only its size: they have copies, with times of their own.
std::vector<io::referenced_file> reference_store_writer::published_files() const {
  std::vector<io::referenced_file> published = files_;
  for (std::size_t i = 0; names_.has_base() && i < published.size(); ++i) {
    const std::string name = names_.published_url(published[i].url);
    if (name == published[i].url) continue;
    if (i == data_file_) published[i].state = io::file_state{.regular = true, .size = data_end_};
    published[i] = {name, published[i].state, true};
  }
  return published;
}

void reference_store_writer::finish() {
  io::v2_references v2;
  io::zarr_formats formats = options_.formats;
  const std::map<std::string, text::json> documents = v2_documents(v2, formats);
  writer_->begin(published_files(), formats, v2.arrays());
  for (const bool nodes : {true, false}) {
    members_.for_each_sorted([&](const std::string& key, const member& m) {
      if (text::is_node_key(key) != nodes) return;
      if (m.file == in_text) writer_->content(key, texts_[static_cast<std::size_t>(m.offset)]);
      else writer_->range(key, m.file, m.offset, m.size);
    });
    for (const auto& [key, document] : documents) {
      if (nodes) writer_->v2(key, document);
    }
  }
  if (data_) data_->finish();
  try {
    writer_->finish();
  } catch (...) {
    if (data_ && !writer_->in_place()) ::unlink(data_->path().c_str());  // nothing leads to it
    throw;
  }
  remove_orphans();
}

// Removes the data files of replaced references, or of a run that was killed.
void reference_store_writer::remove_orphans() const {
  std::set<std::string> referenced_urls;
  for (const io::referenced_file& f : files_) referenced_urls.insert(f.url);
  const std::string path = absolute(path_);
  std::vector<std::string> orphans;
  std::error_code e;
  for (fs::directory_iterator i(fs::path(path).parent_path(), e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().string();
    if (io::is_data_file(path, name) && !referenced_urls.contains(std::string(io::file_url) + name)) orphans.push_back(name);
  }
  for (const std::string& name : orphans) ::unlink(name.c_str());
}

}  // namespace zarrbits::zarr
