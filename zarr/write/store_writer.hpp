// SPDX-License-Identifier: BSL-1.0
//
// Where a store goes: keys to bytes, and nothing else.
//
//   const auto out = make_store_writer("out.zarr", {.source = "in.h5"});  // or "out.zip", "s3://bucket/prefix"
//   out->put("a/c/0/0", chunk);       // complete or not at all, from any thread
//   out->put("zarr.json", metadata);  // last
//   out->finish();                    // without it the store is removed again, or (keep_unfinished()) left for a later run
//
#ifndef ZARRBITS_ZARR_WRITE_STORE_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_STORE_WRITER_HPP

#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "text/reserved_names.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/remote_access.hpp>
#include <zarrbits/source_name.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

// True of the keys below unfinished_folder, where the conversion has its own files.
inline bool in_unfinished_folder(std::string_view key) { return key.starts_with(text::unfinished_folder); }
// There, lock_name is the lock of a single writing process, or of several that share a plan. It holds the
// store_writer_options::run of a process that writes alone.

// Throws zarrbits::error if this is not like "a/b/c": parts that are empty, ".", "..", or too long for a file system, and NUL.
// A store and its journal are untrusted. Every store writer calls this where a key becomes a path, so no other code needs to
// check.
void check_key(std::string_view key);

// One object that one thread writes piece by piece. It appears with commit(), or never.
class object_writer {
 public:
  virtual ~object_writer() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  // Bytes of a file; not copied through memory if the store writer can avoid it. Throws read_error.
  virtual void append_range(int fd, std::uint64_t offset, std::uint64_t size);
  virtual void commit() = 0;
};

struct store_writer_options;
using unit_key = std::pair<std::uint64_t, std::uint64_t>;  // dataset and unit

// All functions except remove() and finish() may be called from several threads at once. Keys are "/"-separated, without empty
// parts, "." or "..". A failed write throws zarrbits::error.
class store_writer {
 public:
  virtual ~store_writer() = default;
  store_writer() = default;
  store_writer(const store_writer&) = delete;
  store_writer& operator=(const store_writer&) = delete;

  // Writes one object; replaces an object with the same key.
  virtual void put(std::string_view key, std::span<const std::byte> bytes) = 0;
  void put(std::string_view key, std::string_view text) { put(key, std::as_bytes(std::span(text.data(), text.size()))); }
  // Like put(), with bytes of a file. Throws read_error too; the object then does not exist.
  virtual void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size);
  // Like put(), with bytes that stay in "s3://bucket/key", where the store can refer to them; its state is as it is now.
  virtual bool supports_references() const { return false; }
  virtual void put_reference(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                             std::uint64_t size);
  virtual std::unique_ptr<object_writer> begin(std::string_view key) = 0;
  // Writes one object if it does not exist, else returns false. If several callers in any processes do so at once, exactly one
  // gets true.
  virtual bool put_new(std::string_view key, std::span<const std::byte> bytes) = 0;

  // Empty if there is no such object.
  virtual std::optional<std::vector<std::byte>> get(std::string_view key) = 0;
  // The keys of objects and folders directly in a folder ("" for the root), sorted. None if there is no such folder.
  virtual std::vector<std::string> list(std::string_view folder) = 0;
  // All objects below a folder, at any depth, in no order, with their sizes.
  virtual void for_each(std::string_view folder,
                        const std::function<void(std::string_view key, std::uint64_t size)>& callback) = 0;

  // Appends lines to an object, for the journal; `text` ends with a newline. If objects cannot grow, each call makes a new one:
  // its key begins with `key` and "-". To read all: list() the folder, and get() each key that begins with `key`.
  virtual void append(std::string_view key, std::string_view text) = 0;
  // Removes everything below a key's folder ("a/b"): a node that cannot be completed.
  virtual void remove(std::string_view folder) = 0;
  // A unit of a dataset is made: what was put since the last call belongs to it. For a writer that keeps the work of several
  // processes until it can be put in the order in which one process does it.
  virtual void end_unit(const unit_key&) {}
  // All units are made, these, in order: what follows is metadata. `options`: those of the store, with what its plan says.
  virtual void end_units(const std::vector<unit_key>&, const store_writer_options&) {}
  // For a store that grows: removes objects that it had before, unless they were put since.
  virtual void remove_old(const std::vector<std::string>&) {}
  // Everything is written: completes the store. Removes the folder of the unfinished.
  virtual void finish() = 0;
  // Without finish() the store stays, unfinished, as with if_exists::attach: its journal has units that are done.
  virtual void keep_unfinished() {}

  // False if two keys that differ only in case would be the same object.
  virtual bool is_case_sensitive() const { return true; }
  // True if it has the work of an earlier run, or of another process.
  virtual bool found_unfinished() const { return false; }
  // False if an interrupted run leaves nothing: no later run can resume it.
  virtual bool can_resume() const { return true; }
  // False if the bytes of the store depend on the order of put() and commit(): they must then come in a fixed order, so that
  // every run makes the same bytes.
  virtual bool is_order_independent() const { return true; }

  // Without the journal.
  virtual std::uint64_t objects() const noexcept { return objects_; }
  virtual std::uint64_t bytes() const noexcept { return bytes_; }
  // For bytes that stay in the source.
  virtual std::uint64_t referenced_objects() const noexcept { return 0; }
  virtual std::uint64_t referenced_bytes() const noexcept { return 0; }

 protected:
  void count(std::string_view key, std::uint64_t bytes) noexcept {
    if (in_unfinished_folder(key)) return;
    ++objects_;
    bytes_ += bytes;
  }

 private:
  std::atomic<std::uint64_t> objects_ = 0, bytes_ = 0;
};

// An object that is in memory until it is put.
std::unique_ptr<object_writer> buffered_object(store_writer& out, std::string_view key);

struct store_writer_options {
  // What to do with a target that exists.
  enum class if_exists {
    refuse,    // an empty directory counts as missing
    replace,   // remove it if it is a Zarr store or an unfinished one, its metadata first
    resume,    // like attach, for an unfinished store that no process writes to; otherwise as refuse
    attach,    // resume an unfinished store, or begin one; without finish() it stays, except the root's metadata
    finalize,  // like attach, but there must be an unfinished store
    append,    // references only: add to the existing ones
  } target = if_exists::refuse;
  bool shared = false;               // with attach: other processes write to it too; otherwise no other may
  std::string run = {};              // identifies this run's work for remove_unfinished(); kept in the store until it is complete
  std::string source = {};           // the input file: a store that contains it is never removed
  bool is_source_temporary = false;  // references do not name the input file: its bytes are copied
  bool sync = false;                 // flush everything to disk before it counts as written
  std::function<void(const std::string&)> warning = {};  // called with a sentence on what the target's server does not support
  std::optional<std::uint64_t> references = {};     // refer to bytes of sources; objects larger than this are stored next to them
  std::optional<source_base> base = {};             // what references call local files; without a folder: that of `source`
  io::zarr_formats formats = {};                    // of references; with append, those of the existing ones
  std::uint64_t memory = std::uint64_t{512} << 20;  // bytes for references that exist already
  remote_access remote = {};                        // how a store in S3 is reached
};

inline bool attaches(store_writer_options::if_exists target) {
  return target == store_writer_options::if_exists::attach || target == store_writer_options::if_exists::finalize;
}

// "s3://bucket/prefix", "x.zip" for one file, "x.json" and "x.parquet" for references, or a directory.
std::unique_ptr<store_writer> make_store_writer(const std::string& target, const store_writer_options& options);

// Why something that exists is in the way, as the end of a sentence: "plan" if it is an unfinished store, "node" if a Zarr store.
std::string target_exists_message(store_writer_options::if_exists target, bool plan, bool node);
// For if_exists::finalize.
zarrbits::error nothing_to_finalize(const std::string& target);

// True for the name of an HDF5 file, such as "out.nc", which a new store does not get.
bool is_hdf5_name(const std::string& target);
// Whether a store appears complete, in one step, so that an interrupted run leaves nothing to resume: unless it is one of
// references, begun in partitions.
bool is_one_file(const std::string& target);
bool has_partitions(const std::string& target) noexcept;

// The files of a complete store of references, side by side, and their bytes.
std::pair<std::uint64_t, std::uint64_t> count_reference_files(const std::string& target);

// Removes what a killed conversion left: that of options.run or, if this is empty, any that no process writes to. True if there
// was something.
bool remove_unfinished(const std::string& target, const store_writer_options& options) noexcept;
// What options.run, which was killed, has made stays for the next run, which need not wait.
void release_unfinished(const std::string& target, const store_writer_options& options) noexcept;

// Removes the mark of a complete store, whose writer was killed as it ended, if no process is at work. Only in a folder.
void remove_stale_lock(const std::string& target) noexcept;

}  // namespace zarrbits::zarr

#endif
