// SPDX-License-Identifier: BSL-1.0
//
// Where a store is read from: keys to bytes, and nothing else. The counterpart of store_writer.
//
//   const store_folder root = open_store("out.zarr", {}, {}, 512 << 20);  // or "out.zip", "s3://bucket/prefix"
//   if (const auto object = (root / "a").open("c/0/0")) bytes = read_object(*object, max_size);
//
#ifndef ZARRBITS_ZARR_READ_STORE_READER_HPP
#define ZARRBITS_ZARR_READ_STORE_READER_HPP

#include "io/byte_source.hpp"
#include "io/files.hpp"
#include "io/source_url_map.hpp"
#include "io/store_kind.hpp"
#include "metadata/parse_error.hpp"
#include "text/coded_reason.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::zarr {

// The store violates the Zarr specification, or a part of it cannot be read.
struct store_error : std::runtime_error {
  explicit store_error(const std::string& message, errc kind = errc::damaged_store, reason_code cause = reason_code::damaged)
      : std::runtime_error(message), code(kind), reason(cause) {}
  errc code;
  reason_code reason;  // says more, if `code` is damaged_store
};

// The store may be right, but this reader cannot decide.
struct not_supported : text::coded_error {
  using coded_error::coded_error;
};

// Calls `run`, and turns what it throws into zarrbits::error: errors of the store, and any other, which is libhdf5's of the
// source. `damaged`: the code for a damaged store.
template <class F>
auto as_public_errors(const std::string& store, const std::string& source, errc damaged, F&& run) {
  try {
    return run();
  } catch (const error&) {
    throw;
  } catch (const store_error& e) {
    throw error(e.code == errc::damaged_store ? damaged : e.code, e.what(), {store});
  } catch (const not_supported& e) {
    throw error(errc::unsupported, e.what(), {store});
  } catch (const std::runtime_error& e) {
    throw error(errc::damaged_source, e.what(), {source});
  }
}

// Calls `run`, and turns what metadata/ throws into store_error and not_supported.
template <class F>
auto as_store_errors(F&& run) {
  try {
    return run();
  } catch (const metadata::parse_error& e) {
    throw store_error(e.what());
  } catch (const metadata::unknown_extension& e) {
    throw not_supported(reason_code::unsupported_feature, e.what());
  }
}

// All functions of these classes throw store_error or not_supported, with a sentence.

// Where the bytes of an object lie: in a file that is open here, or in one on a server.
struct object_location {
  int descriptor = -1;        // of a local file
  std::string url = {};       // "s3://bucket/key"; without a descriptor
  io::file_state state = {};  // of the file at `url`
  std::uint64_t offset = 0;   // of the object's first byte
};

class stored_object {
 public:
  virtual ~stored_object() = default;
  virtual std::uint64_t size() const = 0;
  // As store_entry::state, for the bytes that are read here.
  virtual io::file_state state() const { return {}; }
  // Bytes from `offset` on, which must be within size().
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // The local file's descriptor, for copies in the kernel; negative if the object is not a local file.
  virtual int descriptor() const noexcept { return -1; }
  // For those that refer to the bytes, and do not copy them; none if no file has them as they are read here. Valid as long as the
  // object.
  virtual std::optional<object_location> location() const {
    return descriptor() < 0 ? std::nullopt : std::optional(object_location{.descriptor = descriptor()});
  }
};

// One that this reader has made.
class text_object final : public stored_object {
 public:
  explicit text_object(std::string text) : text_(std::move(text)) {}
  std::uint64_t size() const override { return text_.size(); }
  io::file_state state() const override { return {.regular = true, .size = text_.size(), .etag = text_}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::string text_;
};

// All of its bytes. not_supported if they are more than `max_size`.
std::vector<std::byte> read_object(const stored_object& object, std::uint64_t max_size);

struct store_entry {
  std::string name;
  bool is_folder = false;
  bool is_link = false;     // a symbolic link
  bool is_readable = true;  // false: neither a file nor a folder, but a link that leads nowhere, a FIFO, ...
  std::uint64_t size = 0;   // of an object
  // An object's state: another once it was changed, as far as the store tells (by time, ETag or checksum). It equals the state()
  // of the opened object.
  io::file_state state = {};
};

// Equal for equal states, on every machine; different for different ones, in all likelihood.
std::uint64_t fingerprint(const io::file_state& state) noexcept;

class store_reader {
 public:
  virtual ~store_reader() = default;
  // Null if there is no such object.
  virtual std::unique_ptr<stored_object> open(const std::string& key) const = 0;
  // Lists a folder's direct content ("" is the root), in any order, until `visit` returns false.
  virtual void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const = 0;
  // True if the store is of Zarr v2, and its metadata are translated.
  virtual bool is_v2() const noexcept { return false; }
  // For a store that is one file: throws errc::changed if it is another one than was opened. Asks the server of a remote one.
  virtual void require_unchanged() const {}
};

// A folder of a store: a node's, or the root.
class store_folder {
 public:
  store_folder(std::shared_ptr<const store_reader> store, std::string name, std::string path = "")
      : store_(std::move(store)), name_(std::move(name)), path_(std::move(path)) {}

  store_folder operator/(const std::string& child) const {
    store_folder out(store_, name_, key(child));
    out.max_string_bytes = max_string_bytes;
    return out;
  }
  const std::string& path() const noexcept { return path_; }                        // "a/b"; "" is the root
  std::string name() const { return path_.empty() ? name_ : name_ + "/" + path_; }  // for sentences
  std::string leaf_name() const { return path_.substr(path_.rfind('/') + 1); }

  std::unique_ptr<stored_object> open(const std::string& child) const;
  void list(const std::function<bool(const store_entry&)>& visit) const { store_->list(path_, visit); }
  bool is_v2() const noexcept { return store_->is_v2(); }
  void require_unchanged() const { store_->require_unchanged(); }
  // True for a group without metadata, as nodes() finds them.
  bool is_bare() const noexcept { return is_bare_; }
  // The folders in a group that are nodes. One without metadata is a group, too, if there are nodes in it, at any depth: some
  // programs write arrays without the groups around them, and all find these by their paths.
  std::vector<store_folder> nodes() const;
  // A child of a group, if it is one of them.
  std::optional<store_folder> node(const store_entry& child) const;

  // Limit for a decoded chunk of strings in it: unlike one of numbers, it may become any size.
  std::uint64_t max_string_bytes = std::uint64_t{1} << 30;

 private:
  std::string key(const std::string& child) const { return path_.empty() ? child : path_ + "/" + child; }
  bool holds_nodes() const;

  std::shared_ptr<const store_reader> store_;
  std::string name_;  // as the user wrote it
  std::string path_;
  bool is_bare_ = false;  // a group without metadata
};

// Another number once an object in the folder or below was changed, as far as store_entry::state tells.
std::uint64_t fingerprint(const store_folder& folder);

// A directory, a .zip file, references (a .json file or a folder of Parquet files), a netCDF-3 file, or "s3://bucket/prefix" with
// a zarr.json.
// References, and symbolic links in a directory, may lead to files in `sources` that are folders, in the folders of those that
// are files, and references to those that are remote; `names` says which URLs are local files. `memory` is for references. Throws
// store_error.
// `use` decides how an S3 server is asked, and whether references are checked.
enum class access_pattern {
  sparse,  // each object when it is needed
  // One listing for all names and sizes; read bytes are kept, so that each object is requested once. store_error if references
  // have metadata of Zarr v2 that do not say what those of v3 say.
  partial,
  full,  // as partial, and files on servers that references lead to are read as a whole
};
// whether symbolic links in a directory are followed as far as they may be, or refused
enum class symbolic_links { follow, refuse };
store_folder open_store(const std::string& name, const remote_access& remote, const std::vector<std::string>& sources,
                        std::uint64_t memory, access_pattern use = access_pattern::sparse,
                        symbolic_links links = symbolic_links::follow, const io::source_url_map* names = nullptr);
// The kind of a source to read, by its name and what the file system says: a directory, a .zip file, references, a netCDF-3 file
// (on a server: if it was probed), "s3://bucket/x.zarr" or "s3://bucket/prefix/". None of other files, and of names that do not
// exist. Its name may end with ":/a/b", a node.
io::store_kind kind_of_source(const std::string& source);
inline bool is_store_name(const std::string& source) { return kind_of_source(source) != io::store_kind::none; }
// Like is_store_name(), but asks the server of a remote source whose name does not say it, unless it was asked before. For a
// process that forks before the source is read: nothing but the answer is kept. Throws zarrbits::error.
bool is_store_source(const std::string& source, const remote_access& remote);
// Whether a local file is one of netCDF-3, or one on a server that was probed; false if it cannot be read.
bool is_netcdf3_file(const std::string& path) noexcept;
// As is_store_name(), for a source that may be joined with others: netCDF-3 files are then read as HDF5 files are.
bool is_read_as_store(const std::string& source, bool is_joined);
// Looks at the first bytes of a source on a server whose name does not say whether it is a store: it may be a netCDF-3 file. The
// program that then opens it gets these bytes without another request. Returns its state; nothing if there is no such file, or
// its name says it. Throws zarrbits::error.
std::optional<io::file_state> probe_source(const std::string& source, const remote_access& remote,
                                           io::access_hint hint = io::access_hint::partial);
// Opens such a source.
store_folder open_source_store(const std::string& source, const remote_access& remote, const std::vector<std::string>& sources,
                               std::uint64_t memory, access_pattern use = access_pattern::full);
// The group or array at this path: "/a/b", or "" for the root. Throws store_error.
store_folder node_at(const store_folder& root, const std::string& path);
// Like open_store(), for a directory or "s3://bucket/prefix" without a zarr.json: an incomplete store.
store_folder open_folder(const std::string& name, const remote_access& remote = {});

std::shared_ptr<const store_reader> open_zip(const std::string& path);  // zip_reader.cpp
// A netCDF-3 file; `memory`: bytes that its header may take, and bytes of a file on a server that are kept.
std::shared_ptr<const store_reader> open_netcdf3(const std::string& path, const remote_access& remote, std::uint64_t memory,
                                                 access_pattern use);  // netcdf3_reader.cpp
std::shared_ptr<const store_reader> open_references(const std::string& path, const remote_access& remote,
                                                    const std::vector<std::string>& sources, std::uint64_t memory,
                                                    access_pattern use,
                                                    const io::source_url_map* names = nullptr);  // reference_reader.cpp
std::shared_ptr<const store_reader> open_s3(const std::string& name, const remote_access& remote, std::uint64_t memory,
                                            access_pattern use);  // s3_reader.cpp

}  // namespace zarrbits::zarr

#endif
