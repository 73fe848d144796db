// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/store_reader.hpp"

#include "io/files.hpp"
#include "io/netcdf3_header.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "io/zip_archive.hpp"
#include "metadata/array_metadata.hpp"
#include "remote/remote_file.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/readable_folders.hpp"
#include "zarr/read/v2_store.hpp"
#include "zarr/read/web_reader.hpp"

#include <zarrbits/source_name.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

constexpr const char* metadata_name = "zarr.json";

namespace {

// A file, read in pieces.
class regular_file {
 public:
  // Null if there is no such file; store_error if it is not a regular file.
  static std::unique_ptr<regular_file> open(const fs::path& root, const std::string& key, symbolic_links links,
                                            const readable_folders& readable);
  std::uint64_t size() const noexcept { return size_; }
  io::file_state state() const noexcept { return io::state_of(fd_.get()); }
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  int descriptor() const noexcept { return fd_.get(); }

 private:
  io::file_descriptor fd_;
  std::string path_;
  std::uint64_t size_ = 0;
};

// A link that leads nowhere, as git-annex has them for files that are elsewhere, is not an object that was never written.
void require_no_broken_link(const fs::path& root, fs::path path) {
  std::error_code e;
  for (; path.native().size() > root.native().size(); path = path.parent_path()) {
    const fs::file_status status = fs::symlink_status(path, e);
    if (status.type() == fs::file_type::symlink && !fs::exists(path, e))
      throw store_error(path.string() + " is a link to a file that is not there; get that file", errc::damaged_store,
                        reason_code::missing_file);
    if (fs::exists(status)) return;
  }
}

[[noreturn]] void refuse_link(const std::string& path, const std::string& real) {
  throw store_error("\"" + path + "\" leads to \"" + real +
                        "\", which is outside of the store, and may be read only if `external` has its "
                        "folder",
                    errc::damaged_store, reason_code::refused_file);
}

// Where it is, if that may be read. Throws store_error if it may not.
std::string require_readable(const std::string& path, const readable_folders& readable) {
  std::error_code e;
  std::string real = fs::canonical(path, e).string();
  if (e) throw store_error("cannot read " + path + ": " + e.message());
  if (!readable.contains(real)) refuse_link(path, real);
  return real;
}

// Opens a file, or a link to one. A link is not opened before it is known where it leads; folders on the way may be links, too,
// and so it counts where the opened file is. Negative, with errno, if there is nothing.
io::file_descriptor open_readable(const std::string& path, const readable_folders& readable) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;  // a FIFO in a store must not block
  io::file_descriptor fd(::open(path.c_str(), flags));
  if (!fd && errno == ELOOP) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return {};
    fd = io::file_descriptor(::open(require_readable(path, readable).c_str(), flags));
  }
  if (!fd) return fd;
  const std::string real = io::path_of(fd.get());
  if (!real.empty() && readable.contains(real)) return fd;
  struct stat opened {
  }, resolved{};
  const std::string target_path = require_readable(path, readable);
  if (::fstat(fd.get(), &opened) != 0 || ::stat(target_path.c_str(), &resolved) != 0 || opened.st_dev != resolved.st_dev ||
      opened.st_ino != resolved.st_ino)
    refuse_link(path, real);
  return fd;
}

std::unique_ptr<regular_file> regular_file::open(const fs::path& root, const std::string& key, symbolic_links links,
                                                 const readable_folders& readable) {
  auto file = std::make_unique<regular_file>();
  const std::string path = file->path_ = (root / key).string();
  file->fd_ = links == symbolic_links::refuse ? io::open_without_links(root.string(), key) : open_readable(path, readable);
  if (!file->fd_) {
    if (errno == ENOENT || errno == ENOTDIR) {
      require_no_broken_link(root, path);
      return nullptr;
    }
    if (errno == ELOOP && links == symbolic_links::refuse)
      throw store_error(path +
                        " is a symbolic link, or is reached through one, and links are not followed; put the file itself there");
    throw store_error("cannot read " + path + ": " + std::generic_category().message(errno));
  }
  struct stat s = {};
  if (::fstat(file->fd_.get(), &s) != 0 || !S_ISREG(s.st_mode)) throw store_error(path + " is not a regular file");
  file->size_ = static_cast<std::uint64_t>(s.st_size);
  return file;
}

void regular_file::read(std::uint64_t offset, std::span<std::byte> out) const {
  try {
    io::read_range(fd_.get(), offset, out);
  } catch (const io::read_error& e) {
    throw store_error("cannot read " + path_ + ": " + e.what());
  }
}

class file_object final : public stored_object {
 public:
  explicit file_object(std::unique_ptr<regular_file> file) : file_(std::move(file)) {}
  std::uint64_t size() const override { return file_->size(); }
  io::file_state state() const override { return file_->state(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { file_->read(offset, out); }
  int descriptor() const noexcept override { return file_->descriptor(); }

 private:
  std::unique_ptr<regular_file> file_;
};

class directory_reader final : public store_reader {
 public:
  directory_reader(fs::path root, symbolic_links links, const std::vector<std::string>& sources)
      : root_(std::move(root)), links_(links), readable_(sources) {
    readable_.add_store(root_.string());
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    auto file = regular_file::open(root_, key, links_, readable_);
    if (!file) return nullptr;
    return std::make_unique<file_object>(std::move(file));
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    std::error_code error, ignored;
    const fs::path path = folder.empty() ? root_ : root_ / folder;
    // the real path is looked up folder by folder, so a deep one is asked of the system first
    if (const io::file_descriptor opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        opened && !folder.empty() && !readable_.contains(io::path_of(opened.get())))
      require_readable(path.string(), readable_);
    for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error)) {
      store_entry e;
      e.name = i->path().filename().string();
      e.is_link = i->is_symlink(ignored);
      e.is_folder = i->is_directory(ignored);
      if (!e.is_folder) {
        struct stat s = {};
        e.is_readable = ::stat(i->path().c_str(), &s) == 0 && S_ISREG(s.st_mode);
        if (e.is_readable) {
          e.state = io::state_in(s);
          e.size = e.state.size;
        }
      }
      if (!visit(e)) return;
    }
    if (error) throw store_error((root_ / folder).string() + " cannot be listed: " + error.message());
  }

 private:
  fs::path root_;
  symbolic_links links_;
  readable_folders readable_;
};

}  // namespace

void text_object::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (!out.empty()) std::memcpy(out.data(), text_.data() + offset, out.size());
}

std::vector<std::byte> read_object(const stored_object& object, std::uint64_t max_size) {
  if (object.size() > max_size)
    throw not_supported(reason_code::too_large,
                        "an object of " + std::to_string(object.size()) + " bytes, which is too large to read at once");
  std::vector<std::byte> bytes(static_cast<std::size_t>(object.size()));
  object.read(0, bytes);
  return bytes;
}

std::unique_ptr<stored_object> store_folder::open(const std::string& child) const {
  auto object = store_->open(key(child));
  if (object || !is_bare_ || child != metadata_name) return object;
  return std::make_unique<text_object>(metadata::group_text(text::json::object()));
}

namespace {

// Also if they cannot be read: whoever reads them says why.
bool has_metadata(const store_folder& folder) {
  try {
    return folder.open(metadata_name) != nullptr;
  } catch (const store_error& e) {
    if (e.code != errc::damaged_store) throw;
  } catch (const not_supported&) {
  }
  return true;
}

}  // namespace

bool store_folder::holds_nodes() const {
  bool has_node = false;
  list([&](const store_entry& e) {
    if (!e.is_folder || e.is_link || e.name.starts_with(text::internal_prefix)) return true;
    const store_folder child = *this / e.name;
    has_node = has_metadata(child) || child.holds_nodes();
    return !has_node;
  });
  return has_node;
}

std::optional<store_folder> store_folder::node(const store_entry& child) const {
  if (!child.is_folder) return {};
  store_folder folder = *this / child.name;
  if (has_metadata(folder)) return folder;
  // links may lead above themselves
  if (child.is_link || child.name.starts_with(text::internal_prefix) || !folder.holds_nodes()) return {};
  folder.is_bare_ = true;
  return folder;
}

namespace {

// Bytes and numbers as one number, for the state of each of a million objects, twice: SHA-256 takes a hundred times as long, more
// than a second for them. Nobody gains from a collision, which hides a change that an owner of the store makes to it.
class hasher {
 public:
  void add(std::uint64_t word) noexcept {
    n_ = (n_ ^ word) * 0x100000001B3;
    n_ ^= n_ >> 29;
  }
  void add(const std::string& text) noexcept {
    add(std::uint64_t{text.size()});
    for (const char c : text) add(std::uint64_t{static_cast<unsigned char>(c)});
  }
  std::uint64_t value() const noexcept { return n_; }

 private:
  std::uint64_t n_ = 0xCBF29CE484222325;
};

}  // namespace

std::uint64_t fingerprint(const io::file_state& state) noexcept {
  hasher hash;
  hash.add(state.size);
  hash.add(static_cast<std::uint64_t>(state.seconds));
  hash.add(static_cast<std::uint64_t>(state.nanoseconds));
  hash.add(state.etag);
  return hash.value();
}

std::uint64_t fingerprint(const store_folder& folder) {
  std::uint64_t sum = 0;  // of objects in any order
  folder.list([&](const store_entry& e) {
    if (e.name.starts_with(text::internal_prefix)) return true;  // an append that is not complete
    if (e.is_folder) {
      if (!e.is_link) sum += fingerprint(folder / e.name);  // a link may lead to a folder above it
      return true;
    }
    hasher one;
    one.add((folder / e.name).path());
    one.add(fingerprint(e.state));
    sum += one.value();
    return true;
  });
  return sum;
}

std::vector<store_folder> store_folder::nodes() const {
  std::vector<store_folder> out;
  list([&](const store_entry& e) {
    if (auto child = node(e)) out.push_back(std::move(*child));
    return true;
  });
  return out;
}

namespace {

// The kind of the file, folder or URL with this name, without a node after it.
io::store_kind kind_of_existing(const std::string& name) {
  using kind = io::store_kind;
  if (io::is_remote(name))
    return is_netcdf3_file(name) ? kind::netcdf3 : io::is_object_store(name) ? kind::object_store : kind::web;
  std::error_code e;
  if (io::is_parquet_references(name)) return kind::parquet;
  if (fs::is_directory(name, e)) return kind::directory;
  if (!fs::exists(name, e)) return kind::none;
  if (name.ends_with(".json")) return kind::json;
  if (!fs::is_regular_file(name, e)) return kind::none;
  if (io::is_zip_file(name) || name.ends_with(".zip")) return kind::zip;
  return is_netcdf3_file(name) ? kind::netcdf3 : kind::none;
}

std::shared_ptr<const store_reader> open_reader(const std::string& name, const remote_access& remote,
                                                const std::vector<std::string>& sources, std::uint64_t memory, access_pattern use,
                                                symbolic_links links, const io::source_url_map* names) {
  const io::store_kind kind = kind_of_existing(name);
  if (!io::is_remote(name)) {
    if (!remote.endpoint.empty() && !io::any_in_object_store(sources))
      throw store_error("an endpoint is only for a store or a source \"s3://...\", \"gs://...\" or \"az://...\", not for \"" +
                        name + "\"");
    std::error_code e;
    if (!fs::exists(name, e))
      throw store_error("cannot open \"" + name + "\": " + (e ? e.message() : "No such file or directory"), errc::not_found);
  }
  switch (kind) {
    case io::store_kind::object_store:
#ifdef ZARRBITS_WITH_S3
      return open_s3(name, remote, memory, use);
#else
      throw store_error(
          "this zarrbits was built without libcurl and cannot read \"" + name + "\"; build it with -DZARRBITS_S3=ON",
          errc::unsupported);
#endif
    case io::store_kind::web: return open_web(name, remote, memory);
    case io::store_kind::directory: return std::make_shared<directory_reader>(name, links, sources);
    case io::store_kind::zip:
      if (!io::is_zip_file(name)) break;
      return open_zip(name);
    case io::store_kind::netcdf3: return open_netcdf3(name, remote, memory, use);
    case io::store_kind::json:
    case io::store_kind::parquet: return open_references(name, remote, sources, memory, use, names);
    case io::store_kind::none: break;
  }
  throw store_error("\"" + name +
                    "\" is neither a directory nor a .zip file, nor a .json file of references, nor a netCDF-3 file; use a Zarr "
                    "v3 store");
}

}  // namespace

store_folder open_folder(const std::string& name, const remote_access& remote) {
  std::error_code e;
  if (!io::is_object_store(name) && !fs::is_directory(name, e)) throw store_error("\"" + name + "\" is not a folder");
  return {io::is_object_store(name)
              ? open_reader(name, remote, {}, 0, access_pattern::sparse, symbolic_links::follow, nullptr)
              : std::make_shared<directory_reader>(name, symbolic_links::follow, std::vector<std::string>()),
          name};
}

store_folder open_store(const std::string& name, const remote_access& remote, const std::vector<std::string>& sources,
                        std::uint64_t memory, access_pattern use, symbolic_links links, const io::source_url_map* names) {
  try {
    auto reader = open_reader(name, remote, sources, memory, use, links, names);
    if (is_v2_store(*reader)) reader = as_v3(std::move(reader), name, memory);
    store_folder root(std::move(reader), name);
    if (!root.open("zarr.json")) throw store_error("\"" + name + "\" is not a Zarr v3 store: it has no zarr.json");
    return root;
  } catch (const not_supported& e) {
    throw store_error("\"" + name + "\" cannot be read: this reader does not support " + e.what());
  }
}

namespace {

bool is_remote_store(const std::string& name) { return name.ends_with('/') || name.ends_with(".zarr"); }

bool may_be_remote_file(const std::string& name) {
  const bool is_bucket = io::is_object_store(name) && name.find('/', name.find("://") + 3) == std::string::npos;
  return io::is_remote(name) && !is_bucket && !is_remote_store(name);
}

}  // namespace

io::store_kind kind_of_source(const std::string& source) {
  const std::string name = split_source(source).file;
  const io::store_kind kind = kind_of_existing(name);
  // one on a server is a store only if its name says so
  return kind != io::store_kind::netcdf3 && io::is_remote(name) && !is_remote_store(name) ? io::store_kind::none : kind;
}

bool is_netcdf3_file(const std::string& path) noexcept {
  try {
    if (io::is_remote(path)) return io::is_netcdf3(remote::probed_signature(path));
    const io::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file || !io::state_of(file.get()).regular) return false;
    std::string head(io::netcdf3_magic_bytes, '\0');
    io::read_range(file.get(), 0, std::as_writable_bytes(std::span(head)));
    return io::is_netcdf3(head);
  } catch (const io::read_error&) {
    return false;
  }
}

bool is_read_as_store(const std::string& source, bool is_joined) {
  const io::store_kind kind = kind_of_source(source);
  return kind != io::store_kind::none && !(is_joined && kind == io::store_kind::netcdf3);
}

std::optional<io::file_state> probe_source(const std::string& source, const remote_access& remote, io::access_hint hint) {
  const std::string name = split_source(source).file;
  return may_be_remote_file(name) ? remote::probe_remote_file(name, remote, hint) : std::nullopt;
}

bool is_store_source(const std::string& source, const remote_access& remote) {
  const std::string name = split_source(source).file;
  if (may_be_remote_file(name) && remote::probed_signature(name).empty()) remote::probe_signature(name, remote);
  return is_store_name(source);
}

store_folder open_source_store(const std::string& source, const remote_access& remote, const std::vector<std::string>& sources,
                               std::uint64_t memory, access_pattern use) {
  const source_name name = split_source(source);
  std::vector<std::string> readable = io::allowed_paths({name.file}, {});  // references lead to files beside them
  readable.insert(readable.end(), sources.begin(), sources.end());
  store_folder root = open_store(name.file, remote, readable, memory / 4, use);
  root.max_string_bytes = memory / 4;
  return node_at(root, name.object);
}

store_folder node_at(const store_folder& root, const std::string& path) {
  store_folder folder = root;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part == "." || part == "..") throw store_error("\"" + path + "\" is not a path of a node");
    begin = end + 1;
    if (part.empty()) continue;
    store_entry child;
    child.name = part;
    child.is_folder = true;
    std::optional<store_folder> child_node;
    try {
      child_node = folder.node(child);
    } catch (const store_error& e) {  // there is no such folder
      if (e.code != errc::damaged_store) throw;
    }
    if (!child_node)
      throw store_error("\"" + root.name() + "\" has no \"" + path + "\"; \"zarrbits inspect\" lists what it has",
                        errc::not_found);
    folder = *child_node;
  }
  return folder;
}

}  // namespace zarrbits::zarr
