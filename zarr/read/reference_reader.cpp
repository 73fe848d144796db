// SPDX-License-Identifier: BSL-1.0
//
// A store of references in kerchunk's formats, of which none leads to a file that has nothing to do with the source.
//
#include "io/byte_source.hpp"
#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"
#include "text/node_names.hpp"
#include "zarr/read/readable_folders.hpp"
#include "zarr/read/sorted_keys.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

namespace {

namespace fs = std::filesystem;

// The state of a range in a file: it differs if the file's does.
io::file_state state_of_range(io::file_state file, const io::reference& r) {
  return {true, r.is_entire_file ? file.size : r.size, file.seconds, file.nanoseconds,
          file.etag + "@" + std::to_string(r.offset) + "/" + std::to_string(file.size)};
}

class range_object final : public stored_object {
 public:
  // `server_state`: the state of a file on a server, which is asked for no other; null for a local file.
  range_object(std::shared_ptr<const io::byte_source> file, const io::reference& r, const io::file_state* server_state)
      : file_(std::move(file)), r_(r), server_state_(server_state) {}
  std::uint64_t size() const override { return r_.size; }
  io::file_state state() const override { return state_of_range(server_state_ ? *server_state_ : file_->state(), r_); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    try {
      file_->read(r_.offset + offset, out);
    } catch (const io::read_error& e) {
      throw store_error(std::string("a reference cannot be read: ") + e.what());
    } catch (const zarrbits::error& e) {
      if (e.kind() == errc::changed)
        throw store_error("a source has changed since the references were made; make them again", e.kind());
      throw store_error(e.what(), e.kind());
    }
  }

  std::optional<object_location> location() const override {
    if (const remote::remote_file* remote = file_->remote())
      return object_location{.url = remote->name(), .state = remote->state(), .offset = r_.offset};
    return object_location{.descriptor = file_->descriptor(), .offset = r_.offset};
  }

 private:
  std::shared_ptr<const io::byte_source> file_;
  io::reference r_;
  const io::file_state* server_state_;
};

// True for a remote source, and for objects in its folder or below.
bool is_in_source_folder(const std::string& url, const std::string& source) {
  const std::string path = source.substr(0, source.find('?'));
  const std::size_t folder = path.rfind('/');
  if (!io::is_remote(source) || folder == std::string::npos || folder < path.find("://") + 3) return false;
  if (url == source) return true;
  if (!url.starts_with(path.substr(0, folder + 1))) return false;
  std::string relative_path = text::case_fold(url.substr(folder + 1));
  if (relative_path.find('\\') != std::string::npos) return false;
  for (const char* escape : {"%2e", "%2f", "%5c"}) {  // a server may take them for what they stand for
    if (relative_path.find(escape) != std::string::npos) return false;
  }
  relative_path = "/" + relative_path + "/";
  return relative_path.find("/../") == std::string::npos && relative_path.find("/./") == std::string::npos;
}

class reference_reader final : public store_reader {
 public:
  reference_reader(const std::string& path, const remote_access& remote, const std::vector<std::string>& sources,
                   std::uint64_t memory, access_pattern use, const io::source_url_map* names)
      : access_(remote),
        sources_(sources),
        folders_(sources),
        extent_(use == access_pattern::full ? io::access_hint::full : io::access_hint::partial) {
    try {
      table_ = io::read_references(path, memory);
    } catch (const io::reference_error& e) {
      throw store_error(e.what());
    }
    if (use != access_pattern::sparse && !table_.differing_v2.empty())
      throw store_error(
          "\"" + table_.differing_v2 + "\" of \"" + path +
          "\", which readers of Zarr v2 use, does not say what the metadata of Zarr v3 say; make the references again");
    for (io::referenced_file& f : table_.files) {
      if (names) f.url = names->local_url(f.url);
    }
    if (names && !names->folder().empty()) folders_.add(names->folder());  // whoever names it lets it be read
    std::error_code e;
    path_ = fs::weakly_canonical(path, e).string();
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto entry = table_.keys.find(key);
    if (entry == table_.keys.end()) return nullptr;
    const io::reference& r = entry->second;
    if (r.file && io::is_remote(table_.files[*r.file].url)) return open_remote(*r.file, r);
    if (r.file) {
      const auto file = open_local(*r.file, r);
      return std::make_unique<range_object>(
          file, r.is_entire_file ? io::reference{.size = file->state().size, .is_entire_file = true} : r, nullptr);
    }
    return std::make_unique<text_object>(r.content);
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    list_sorted(
        table_.keys, folder, [this](const io::reference& r) { return listed_state(r); }, visit);
  }

 private:
  // What the references say of a file on a server; nothing if they do not.
  const io::file_state& remote_state(std::size_t number) const {
    static const io::file_state unknown;
    const auto& recorded = table_.files[number].state;
    return recorded ? *recorded : unknown;
  }

  // Without opening anything.
  io::file_state listed_state(const io::reference& r) const {
    if (!r.file) return text_object(r.content).state();
    const std::string& url = table_.files[*r.file].url;
    if (io::is_remote(url)) return state_of_range(remote_state(*r.file), r);
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = listed_.try_emplace(*r.file);
    struct stat info = {};
    if (is_new && ::stat(local_path(url).c_str(), &info) == 0) entry->second = io::state_in(info);
    return state_of_range(entry->second, r);
  }

  static std::string local_path(const std::string& url) {
    return url.starts_with(io::file_url) ? url.substr(io::file_url.size()) : url;
  }

  // Only of a source, or beside one: the keys may allow reading more on a server than that.
  std::unique_ptr<stored_object> open_remote(std::size_t number, const io::reference& r) const {
    const io::referenced_file& file = table_.files[number];
    if (std::none_of(sources_.begin(), sources_.end(), [&](const std::string& s) { return is_in_source_folder(file.url, s); }))
      throw store_error(
          "the references point to \"" + file.url + "\", which is neither a source nor in the folder of one" +
              (file.size_only ? "; if that is what they call a file that is here, say where: `base` FOLDER=URL" : ""),
          errc::damaged_store, reason_code::refused_file);
    const std::lock_guard lock(mutex_);
    if (remote_.size() >= max_remote && !remote_.contains(number)) remote_.clear();
    auto& source = remote_[number];
    try {
      if (!source) {
        source = std::make_shared<const remote::remote_file>(file.url, access_, cache, file.size_only ? std::nullopt : file.state,
                                                             extent_);
        if (!io::is_unchanged(file, source->state()))
          throw zarrbits::error(errc::changed,
                                "\"" + file.url + "\" has changed since the references were made; make them again");
      }
    } catch (const zarrbits::error& e) {
      throw store_error(e.what(), e.kind());
    }
    const std::uint64_t size = source->state().size;
    if (r.is_entire_file)
      return std::make_unique<range_object>(source, io::reference{.size = size, .is_entire_file = true}, &remote_state(number));
    if (r.offset > size || r.size > size - r.offset)
      throw store_error("a reference points beyond the end of \"" + file.url + "\"");
    return std::make_unique<range_object>(source, r, &remote_state(number));
  }

  // A file that may be read for this store: of the source's folder or below, or the one beside it. References may name any file.
  std::shared_ptr<const io::byte_source> open_local(std::size_t number, const io::reference& r) const {
    const std::lock_guard lock(mutex_);
    auto& source = open_[number];
    const io::referenced_file& file = table_.files[number];
    const std::string name = local_path(file.url);
    if (!source) {
      std::error_code e;
      const std::string real = fs::canonical(name, e).string();
      if (e)
        throw store_error("the references point to \"" + name + "\", which cannot be opened: " + e.message(), errc::damaged_store,
                          reason_code::missing_file);
      if (!io::is_data_file(path_, real) && !folders_.contains(real))
        throw store_error(
            "the references point to \"" + name + "\", which is not in the folder of a source; name it with `external`",
            errc::damaged_store, reason_code::refused_file);
      if (open_.size() > max_open) {
        open_.clear();
        open_[number] = {};
      }
      io::file_descriptor fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      const io::file_state state = io::state_of(fd.get());
      if (!state.regular)
        throw store_error("the references point to \"" + name + "\", which is not a regular file that can be read");
      if (!io::is_unchanged(file, state))
        throw store_error("\"" + name + "\" has changed since the references were made; make them again");
      open_[number] = std::make_shared<const io::local_bytes>(std::move(fd));
    }
    const auto opened = open_[number];
    const io::file_state state = opened->state();
    if (!state.regular || r.offset > state.size || r.size > state.size - r.offset)
      throw store_error("a reference points beyond the end of \"" + name + "\"");
    return opened;
  }

  static constexpr std::size_t max_open = 64;
  static constexpr std::size_t max_remote = 2;       // neighbours, where a chunk has values of both
  static constexpr std::uint64_t cache = 64U << 20;  // bytes of a remote file
  io::reference_table table_;
  std::string path_;
  remote_access access_;
  std::vector<std::string> sources_;
  readable_folders folders_;
  io::access_hint extent_;
  mutable std::map<std::size_t, std::shared_ptr<const remote::remote_file>> remote_;
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, std::shared_ptr<const io::byte_source>> open_;
  mutable std::map<std::size_t, io::file_state> listed_;  // of local files
};

}  // namespace

std::shared_ptr<const store_reader> open_references(const std::string& path, const remote_access& remote,
                                                    const std::vector<std::string>& sources, std::uint64_t memory,
                                                    access_pattern use, const io::source_url_map* names) {
  return std::make_shared<reference_reader>(path, remote, sources, memory, use, names);
}

}  // namespace zarrbits::zarr
