// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/partitioned_references.hpp"

#include "io/files.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t max_pending_bytes = 1U << 20;  // bytes of a log in memory
const std::string log_prefix = std::string(text::unfinished_folder) + "/references-";

// The folder of the work, before it is opened.
std::string work_folder(const std::string& path, const store_writer_options& options) {
  std::error_code e;
  if (fs::exists(fs::symlink_status(path, e)))
    throw zarrbits::error(
        errc::already_exists,
        "the target \"" + path + "\"" + target_exists_message(options.target, false, io::is_zarrbits_references(path)), {path});
  if (options.target == store_writer_options::if_exists::finalize && !has_partitions(path)) throw nothing_to_finalize(path);
  return io::partitions_path(path);
}

}  // namespace

partitioned_references::partitioned_references(const std::string& path, const store_writer_options& options)
    : path_(path),
      names_(options.base, {options.source}, path),
      work_(work_folder(path, options), options),
      own_key_(log_prefix + io::unique_token()) {}

void partitioned_references::put(std::string_view key, std::span<const std::byte> bytes) {
  if (in_unfinished_folder(key)) return work_.put(key, bytes);
  if (references_) return references_->put(key, bytes);
  {
    const std::lock_guard lock(mutex_);
    own_log_.bytes(key, bytes);
    if (own_log_.pending_bytes() > max_pending_bytes) flush();
  }
  count(key, bytes.size());
}

void partitioned_references::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  io::require_range(fd, offset, size);
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw zarrbits::error(errc::io_failed, "a source cannot be examined");
  const std::lock_guard lock(mutex_);
  auto file = files_.find({info.st_dev, info.st_ino});
  if (file == files_.end()) {
    const std::string url = url_of_open_file(fd);
    names_.published_url(url);  // which throws now, and not at the end
    file = files_.emplace(std::pair{info.st_dev, info.st_ino}, std::pair{url, io::state_in(info)}).first;
  }
  add(key, file->second.first, file->second.second, offset, size);
}

void partitioned_references::put_reference(std::string_view key, const std::string& url, const io::file_state& state,
                                           std::uint64_t offset, std::uint64_t size) {
  require_public_name(url);
  const std::lock_guard lock(mutex_);
  add(key, url, state, offset, size);
}

void partitioned_references::add(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                                 std::uint64_t size) {
  own_log_.range(key, url, state, offset, size);
  if (own_log_.pending_bytes() > max_pending_bytes) flush();
  ++referenced_objects_;
  referenced_bytes_ += size;
}

bool partitioned_references::put_new(std::string_view key, std::span<const std::byte> bytes) {
  if (in_unfinished_folder(key)) return work_.put_new(key, bytes);
  if (references_) return references_->put_new(key, bytes);
  put(key, bytes);
  return true;
}

std::optional<std::vector<std::byte>> partitioned_references::get(std::string_view key) {
  if (in_unfinished_folder(key)) return work_.get(key);
  return references_ ? references_->get(key) : std::nullopt;
}

std::vector<std::string> partitioned_references::list(std::string_view folder) {
  return in_unfinished_folder(folder) || !references_ ? work_.list(folder) : references_->list(folder);
}

void partitioned_references::append(std::string_view key, std::string_view text) {
  const std::lock_guard lock(mutex_);
  flush();  // the journal must only list units that are in a log
  work_.append(key, text);
}

void partitioned_references::end_unit(const unit_key& unit) {
  const std::lock_guard lock(mutex_);
  own_log_.end(unit);
}

void partitioned_references::flush() {
  const std::string text = own_log_.take();
  if (text.empty()) return;
  work_.append(own_key_, text);
  are_read_ = false;
}

// Several processes may have made the same unit, which are equal, unless the journal did not fit and this process makes it again.
void partitioned_references::read_logs() {
  flush();
  if (are_read_) return;
  logs_.clear();
  log_of_.clear();
  std::vector<std::string> names;
  for (const std::string& name : work_.list(text::unfinished_folder)) {
    if (name.starts_with(log_prefix)) names.push_back(name);
  }
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) { return name == own_key_; });
  for (const std::string& name : names) {
    io::file_descriptor fd = io::open_without_links(io::partitions_path(path_), name);
    if (!fd || !io::state_of(fd.get()).regular) continue;
    reference_log& log = logs_.emplace_back(std::move(fd));
    for (const auto& [unit, calls] : log.units()) log_of_.emplace(unit, &log);
  }
  are_read_ = true;
}

void partitioned_references::list_calls() {
  sizes_.clear();
  for (const auto& [unit, log] : log_of_) {
    for (const reference_log::call& c : log->units().at(unit)) sizes_.emplace_back(c.key, c.size);
  }
  std::stable_sort(sizes_.begin(), sizes_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

void partitioned_references::for_each(std::string_view folder,
                                      const std::function<void(std::string_view key, std::uint64_t size)>& callback) {
  if (references_) return references_->for_each(folder, callback);
  const std::lock_guard lock(mutex_);
  if (!are_read_) read_logs(), list_calls();
  const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
  auto position =
      std::lower_bound(sizes_.begin(), sizes_.end(), prefix, [](const auto& a, const auto& b) { return a.first < b; });
  for (; position != sizes_.end() && position->first.starts_with(prefix); ++position) {
    if (position + 1 == sizes_.end() || (position + 1)->first != position->first)
      callback(position->first, position->second);  // of several, the last counts
  }
}

// The units of this dataset are redone.
void partitioned_references::remove(std::string_view folder) {
  if (references_) return references_->remove(folder);
  const std::lock_guard lock(mutex_);
  if (!are_read_) read_logs(), list_calls();
  const std::string prefix = std::string(folder) + "/";
  std::erase_if(log_of_, [&](const auto& entry) {
    const auto& calls = entry.second->units().at(entry.first);
    return !calls.empty() && calls.front().key.starts_with(prefix);
  });
  list_calls();
}

void partitioned_references::end_units(const std::vector<unit_key>& units, const store_writer_options& options) {
  if (!options.references)
    throw zarrbits::error(
        errc::damaged_store,
        "the plan in \"" + io::partitions_path(path_) + "\" is not one of references; start over with `overwrite`", {path_});
  store_writer_options final_options = options;
  final_options.target = store_writer_options::if_exists::refuse;
  auto references = std::make_unique<reference_store_writer>(path_, *options.references, final_options);
  const std::lock_guard lock(mutex_);
  read_logs();
  std::vector<std::pair<std::string_view, std::uint64_t>>().swap(sizes_);
  for (const unit_key& unit : units) {
    const auto log_entry = log_of_.find(unit);
    if (log_entry == log_of_.end()) continue;  // of no chunks: the journal was compared with sizes
    reference_log& log = *log_entry->second;
    for (const reference_log::call& c : log.take(unit)) {
      try {
        if (!c.file) references->put(c.key, std::span<const std::byte>(log.bytes(c)));
        else references->put_reference(c.key, log.files()[*c.file].url, *log.files()[*c.file].state, c.offset, c.size);
      } catch (const io::read_error& e) {
        throw zarrbits::error(errc::io_failed,
                              "cannot read \"" + c.key + "\" in \"" + io::partitions_path(path_) + "\": " + e.what() +
                                  "; convert again with `resume`",
                              {path_});
      }
    }
  }
  logs_.clear();
  log_of_.clear();
  references_ = std::move(references);
}

void partitioned_references::finish() {
  if (!references_) throw std::logic_error("references were finished before their units");
  references_->finish();
  work_.discard();  // and not finish(): the plan says until the end that the folder may be removed, if this process is killed
  ::rmdir(io::partitions_path(path_).c_str());
}

bool partitioned_references::remove_work(const std::string& path) noexcept {
  const std::string folder = io::partitions_path(path);
  try {
    directory_writer::remove_unfinished(folder, {});
  } catch (...) {
  }
  ::rmdir(folder.c_str());  // a run may have been killed before it made more
  return !has_partitions(path);
}

}  // namespace zarrbits::zarr
