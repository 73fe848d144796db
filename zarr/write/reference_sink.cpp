// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/reference_sink.hpp"

#include "io/remote_name.hpp"
#include "io/remote_object.hpp"
#include "text/node_names.hpp"
#include "text/words.hpp"

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

std::string name_of(int fd) {
  std::string name(PATH_MAX, '\0');
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name.data(), name.size());
  name.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  struct stat there {
  }, here{};
  if (!name.starts_with('/') || ::stat(name.c_str(), &there) != 0 || ::fstat(fd, &here) != 0 || there.st_dev != here.st_dev ||
      there.st_ino != here.st_ino)
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

}  // namespace

std::string url_of_open_file(int fd) {
  const std::string name = name_of(fd);
  require_utf8(name);
  return std::string(io::file_url) + name;
}

reference_sink::reference_sink(const std::string& path, std::uint64_t inline_bytes, const sink_options& options)
    : path_(path),
      inline_bytes_(inline_bytes),
      options_(options),
      names_(options.base, {options.source}, path),
      writer_(make_reference_writer(path, options)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  if (options.target == sink_options::existing::grow) take_what_is_there();
  else if (const std::string other = io::data_beside(path_); exists(other) && !exists(path_))
    throw zarrbits::error(errc::already_exists,
                          "\"" + other + "\" exists, and would become a part of the store; choose another name or remove it",
                          {other});
}

// The sources must be unchanged: otherwise an append would make stale references look new.
void reference_sink::take_what_is_there() {
  try {
    io::reference_table table = io::read_references(path_, options_.memory);
    files_ = std::move(table.files);
    options_.formats = table.formats;
    if (table.relative && !names_.any()) names_ = io::told_names(source_base{{}, "."}, {}, path_);
    for (io::referred_file& f : files_) f.url = names_.local(f.url);
    for (auto& [key, r] : table.keys) {
      if (r.whole)
        throw io::reference_error("\"" + path_ +
                              "\" refers to whole files, and zarrbits appends to references that say their sizes; " +
                              "make them again with `concat`");
      if (r.file) all_.add(key, {*r.file, r.offset, r.size});
      else add_text(key, std::move(r.content));
    }
    old_ = all_.size();
  } catch (const io::reference_error& e) {
    throw zarrbits::error(errc::damaged_store, e.what(), {path_});
  }
  for (const io::referred_file& f : files_) {
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
    if (remote ? io::find_object(name, options_.remote)->now() != *f.state
               : ::stat(name.c_str(), &s) != 0 || !io::is_as_it_was(f, io::state_in(s))) {
      throw zarrbits::error(errc::changed,
                            "\"" + name + "\" is not as it was when the references in \"" + path_ +
                                "\" were made: it was changed, moved or removed; make them again with `concat`",
                            {name});
    }
  }
}

bool reference_sink::remove_unfinished(const std::string& target) {
  bool some = false;
  for (std::size_t n = 0; n == 0 || exists(io::data_beside(target, n - 1)); ++n) {
    const std::string other = io::data_beside(target, n);
    some = file_target::remove_unfinished(other, unfinished_name(other)) || some;
  }
  return remove_unfinished_references(target) || some;
}

void reference_sink::add(std::string_view key, const member& made) {
  check_key(key);
  if (made.file == in_text || made.file == data_file_) count(key, made.size);
  else ++referred_objects_, referred_bytes_ += made.size;
  all_.add(key, made);
}

void reference_sink::add_text(std::string_view key, std::string text) {
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

std::size_t reference_sink::number_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw zarrbits::error(errc::io_failed, "a source cannot be examined");
  const std::lock_guard lock(mutex_);
  const auto found = known_.find({info.st_dev, info.st_ino});
  return found != known_.end() ? found->second : number_of_local(info, url_of_open_file(fd));
}

// Of several names of one file, the first.
std::size_t reference_sink::number_of_local(const struct stat& info, const std::string& url) {
  const auto [at, is_new] = known_.emplace(std::pair{info.st_dev, info.st_ino}, files_.size());
  if (is_new) {
    files_.push_back({url, io::state_in(info)});
    names_.told(url);  // which throws now, and not at the end
  }
  return at->second;
}

std::size_t reference_sink::number_of(const std::string& url, const io::file_state& state) {
  const std::lock_guard lock(mutex_);
  if (const auto found = known_urls_.find(url); found != known_urls_.end()) return found->second;
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
  known_urls_.emplace(url, number);
  return number;
}

// Under a name that no other store has used: the old content reads as before until the new references have replaced it.
void reference_sink::open_data() {
  if (data_) return;
  std::size_t number = 0;
  while (exists(io::data_beside(path_, number))) ++number;
  const std::string name = io::data_beside(path_, number);
  sink_options options = options_;
  options.target = sink_options::existing::refuse;
  data_ = std::make_unique<file_target>(name, unfinished_name(name), options, file_target::kind{});
  data_file_ = files_.size();
  files_.push_back({std::string(io::file_url) + absolute(name)});
}

// All texts are in memory here and where they are read, and a column of a Parquet file has at most 2 GiB.
bool reference_sink::has_room(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  return inlined_ + size <= std::min<std::uint64_t>(options_.memory / 4, std::uint64_t{1} << 30);
}

void reference_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  if (in_unfinished_folder(key)) return all_.keep(key, bytes);
  if (text::is_node_key(key) || (bytes.size() <= inline_bytes_ && has_room(bytes.size())))
    return add_text(key, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::uint64_t at = 0;
  {
    const std::lock_guard lock(mutex_);
    open_data();
    at = std::exchange(data_end_, data_end_ + bytes.size());
  }
  data_->write_at(at, bytes);
  add(key, {data_file_, at, bytes.size()});
}

void reference_sink::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  io::require_range(fd, offset, size);
  add(key, {number_of(fd), offset, size});
}

void reference_sink::refer(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                           std::uint64_t size) {
  add(key, {number_of(url, state), offset, size});
}

bool reference_sink::put_new(std::string_view key, std::span<const std::byte> bytes) {
  if (get(key)) return false;  // no other process writes to it
  put(key, bytes);
  return true;
}

std::optional<std::vector<std::byte>> reference_sink::get(std::string_view key) {
  if (auto kept = all_.kept(key)) return kept;
  const auto found = all_.find(key);
  if (!found) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(found->size));
  std::string url;  // taken under the lock, for other threads add files
  {
    const std::lock_guard lock(mutex_);
    if (found->file == in_text) {
      const auto text = std::as_bytes(std::span(texts_[static_cast<std::size_t>(found->offset)]));
      return std::vector<std::byte>(text.begin(), text.end());
    }
    url = files_[found->file].url;
  }
  const bool own = data_ && found->file == data_file_;
  const io::file_descriptor from(own ? -1 : ::open(url.substr(io::file_url.size()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  try {
    io::read_range(own ? data_->descriptor() : from.get(), found->offset, bytes);
  } catch (const io::unreadable_range& e) {
    throw zarrbits::error(errc::io_failed, "cannot read \"" + std::string(key) + "\" of \"" + path_ + "\": " + e.what(), {path_});
  }
  return bytes;
}

// The metadata of Zarr v2, where it is wanted and possible; sets `formats` to what there is then.
std::map<std::string, text::json> reference_sink::v2_documents(io::v2_references& v2, io::zarr_formats& formats) {
  const auto each = [&](bool nodes, const auto& take) {
    all_.each_sorted([&](const std::string& key, const member& m) {
      if (text::is_node_key(key) == nodes) take(key, m);
    });
  };
  each(true, [&](const std::string& key, const member& m) { v2.node(key, texts_[static_cast<std::size_t>(m.offset)]); });
  if (!formats.v2) return {};
  each(false, [&](const std::string& key, const member&) { v2.chunk(key); });
  const std::string missing = v2.only_v3();
  if (missing.empty() || (formats.v3 && !is_parquet_target(path_))) return v2.documents();
  if (!formats.v3)
    throw zarrbits::error(errc::unsupported, "Zarr v2 cannot have the array \"" + missing + "\"; set `format` to both or 3",
                          {path_, missing});
  // fsspec needs an entry ".zarray" of each array in Parquet, so that readers of Zarr v2 would fail on that one
  formats.v2 = false;
  if (options_.warning)
    options_.warning("\"" + path_ + "\" has the metadata of Zarr v3 only, because Zarr v2 cannot have the array \"" + missing +
                     "\"; leave it out with `exclude`, or make references \"OUT.json\"");
  return {};
}

// As readers are to see them. What has another name here has only its size: they have copies, with times of their own.
std::vector<io::referred_file> reference_sink::told_files() const {
  std::vector<io::referred_file> all = files_;
  for (std::size_t i = 0; names_.any() && i < all.size(); ++i) {
    const std::string name = names_.told(all[i].url);
    if (name == all[i].url) continue;
    if (i == data_file_) all[i].state = io::file_state{.regular = true, .size = data_end_};
    all[i] = {name, all[i].state, true};
  }
  return all;
}

void reference_sink::finish() {
  io::v2_references v2;
  io::zarr_formats formats = options_.formats;
  const std::map<std::string, text::json> documents = v2_documents(v2, formats);
  writer_->begin(told_files(), formats, v2.arrays());
  for (const bool nodes : {true, false}) {
    all_.each_sorted([&](const std::string& key, const member& m) {
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
  remove_other_data();
}

// Of what was replaced, or of a run that was killed.
void reference_sink::remove_other_data() const {
  std::set<std::string> ours;
  for (const io::referred_file& f : files_) ours.insert(f.url);
  const std::string path = absolute(path_);
  std::vector<std::string> others;
  std::error_code e;
  for (fs::directory_iterator i(fs::path(path).parent_path(), e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().string();
    if (io::is_data_beside(path, name) && !ours.contains(std::string(io::file_url) + name)) others.push_back(name);
  }
  for (const std::string& name : others) ::unlink(name.c_str());
}

}  // namespace zarrbits::zarr
