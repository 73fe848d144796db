// SPDX-License-Identifier: BSL-1.0
//
// Where a store goes: keys to bytes, and nothing else.
//
//   const auto out = make_sink("out.zarr", {.source = "in.h5"});  // or "out.zip", "s3://bucket/prefix"
//   out->put("a/c/0/0", chunk);       // whole or not at all, from any thread
//   out->put("zarr.json", metadata);  // last
//   out->finish();                    // without it the store is removed again, or left for a later run that joins it
//
#ifndef ZARRBITS_CONVERT_STORE_SINK_HPP
#define ZARRBITS_CONVERT_STORE_SINK_HPP

#include "convert/io/files.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

// Stands in the root of a store that is being written: a folder for what the conversion keeps to itself (plan and journal). A
// reader finds no zarr.json beside it; --overwrite knows what it may remove, and --resume what it may resume.
constexpr const char* unfinished_folder = ".zarrbits-unfinished";
// A file in that folder while an old store is removed. What is left then is no part of the new one.
constexpr const char* removing = "removing";
// Another: that of a process that writes, or the lock of several that share a plan. It holds the sink_options::run of a process
// that writes alone.
constexpr const char* lock_name = "lock";

// Throws convert_error where this is no "a/b/c": parts that are empty, ".", "..", or longer than a file system holds, and NUL.
// What a store or its journal says may come from anybody; every sink calls this where a key becomes a place, and nowhere else
// need it be thought of.
void check_key(std::string_view key);

// One object, written piece by piece by one thread. It appears with commit(), or never.
class object_writer {
 public:
  virtual ~object_writer() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  // Bytes of a file, without a way through memory where the sink knows one. Throws unreadable_range.
  virtual void append_range(int fd, std::uint64_t offset, std::uint64_t size);
  virtual void commit() = 0;
};

// All functions but remove() and finish() may be called from several threads at once. Keys are "/"-separated, without empty
// parts,
// "." or "..". Whatever cannot be written throws convert_error.
class sink {
 public:
  virtual ~sink() = default;
  sink() = default;
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;

  // Writes one object, in place of another under the same key.
  virtual void put(std::string_view key, std::span<const std::byte> bytes) = 0;
  void put(std::string_view key, std::string_view text) { put(key, std::as_bytes(std::span(text.data(), text.size()))); }
  // The same with bytes of a file. Throws unreadable_range, too; then there is no object.
  virtual void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size);
  virtual std::unique_ptr<object_writer> begin(std::string_view key) = 0;
  // Writes one object where there is none. False where there is one; of several that do so at once, in whatever process, one
  // hears true.
  virtual bool put_new(std::string_view key, std::span<const std::byte> bytes) = 0;

  // Nothing where there is no such object.
  virtual std::optional<std::vector<std::byte>> get(std::string_view key) = 0;
  // The keys of objects and folders directly below a folder ("" for the root), sorted. None where there is no such folder.
  virtual std::vector<std::string> list(std::string_view folder) = 0;
  // All objects below a folder, at any depth, in no order, with their sizes.
  virtual void each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& found) = 0;

  // Adds lines to an object, for the journal; `text` ends with a newline. Where objects cannot grow, each call makes one of its
  // own: its key begins with `key` and "-". To read all: list() the folder and get() what begins with `key`.
  virtual void append(std::string_view key, std::string_view text) = 0;
  // Removes everything below a key's folder ("a/b"): the half of a node that cannot be finished.
  virtual void remove(std::string_view folder) = 0;
  // All is written: the store is whole. Removes the folder of the unfinished.
  virtual void finish() = 0;

  // False where two keys that differ in case alone would be one object.
  virtual bool tells_case_apart() const { return true; }
  // False where nothing is left of a run that was cut off: no later run can join it.
  virtual bool keeps_unfinished() const { return true; }
  // False where the order of put() and commit() shows in the bytes of the store: to be the same each time, they must come in one
  // order.
  virtual bool any_order() const { return true; }

  // Without the journal.
  virtual std::uint64_t objects() const noexcept { return objects_; }
  virtual std::uint64_t bytes() const noexcept { return bytes_; }

 protected:
  void count(std::string_view key, std::uint64_t bytes) noexcept {
    if (key.starts_with(unfinished_folder)) return;
    ++objects_;
    bytes_ += bytes;
  }

 private:
  std::atomic<std::uint64_t> objects_ = 0, bytes_ = 0;
};

struct sink_options {
  // What to do with a target that exists.
  enum class existing {
    refuse,   // an empty directory is as good as none
    replace,  // remove it, if it is a Zarr store or an unfinished one, its metadata first
    join,     // resume an unfinished store, or begin one; without finish() it stays as it is, but for the root's zarr.json
  } target = existing::refuse;
  bool shared = false;  // with join: other processes write to it, too. Else nobody may
  std::string run =
      {};  // tells what this run began from what others did, for remove_unfinished(); kept in the store until it is whole
  std::string source = {};                               // the file that is read: a store that holds it is never removed
  bool sync = false;                                     // all is on the disk before it is said to be written
  std::function<void(const std::string&)> warning = {};  // a sentence on what the target's server does not support
  std::optional<std::uint64_t> references = {};  // "x.json": bytes of sources are named, and larger objects stand beside it
  std::string endpoint = {};                     // of an S3 server that is not Amazon's: "http://127.0.0.1:7070"
};

// "s3://bucket/prefix", "x.zip" for one file, "x.json" for references, or a directory.
std::unique_ptr<sink> make_sink(const std::string& target, const sink_options& options);

// Removes what a conversion left that was killed: that of options.run, or, where that is empty, any that nobody writes to. True
// where there was something.
bool remove_unfinished(const std::string& target, const sink_options& options) noexcept;

}  // namespace zarrbits::conversion

#endif
