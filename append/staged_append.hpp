// SPDX-License-Identifier: BSL-1.0
//
// New parts of a store: they wait in a folder of their own until they are complete, and then move into the store.
//
//   const auto staged = staged_append::begin("out.zarr", {});  // takes the lock: no other process appends
//   if (staged->is_complete()) staged->commit();                // of a run that was killed
//   convert into staged->folder() ...
//   staged->declare({{"t2m/zarr.json", old_checksum, new_checksum}, ..., {"zarr.json", ...}}, bytes);
//   staged->commit();
//
#ifndef ZARRBITS_APPEND_STAGED_APPEND_HPP
#define ZARRBITS_APPEND_STAGED_APPEND_HPP

#include "text/reserved_names.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::zarr {
struct store_writer_options;
}

namespace zarrbits::append {

// A zarr.json of the store that is going to be replaced, with its checksum_of_text() when it was read, and that of the new one.
struct replaced_metadata {
  std::string key, old_checksum, new_checksum;
};

std::string checksum_of_text(std::string_view text);

// The folder ".zarrbits-append" inside of a store. It is a store itself: it has only the new chunks, and the future metadata of
// the outer store. Its objects take the places of those of the outer store. Chunks go first: no reader looks for them before the
// metadata changes, or they say the same as the chunks that they replace. Then the metadata follows, in the declared order. If a
// run is killed, the next one completes its moves.
class staged_append {
 public:
  // In a directory or "s3://bucket/prefix", with options.sync, .remote and .run. Throws zarrbits::error.
  static std::unique_ptr<staged_append> begin(const std::string& store, const zarr::store_writer_options& options);
  // Removes undeclared objects, also those of an earlier run.
  virtual ~staged_append() = default;
  staged_append(const staged_append&) = delete;
  staged_append& operator=(const staged_append&) = delete;

  // The folder for the new parts, used as a store.
  virtual std::string folder() const = 0;
  // True if everything is written, and only commit() is missing.
  virtual bool is_complete() const = 0;
  // Removes chunks from the store that no reader sees, because they are beyond the ends of its arrays. Those that are going to be
  // replaced stay.
  virtual void remove_from_store(const std::vector<std::string>& keys) = 0;
  // Marks it as complete. `metadata`: in the order in which it becomes the store's. `chunk_bytes`: of all new chunks. Throws
  // zarrbits::error if the store has other metadata by now, or the staged parts are not as they were written.
  void declare(const std::vector<replaced_metadata>& metadata, std::uint64_t chunk_bytes);
  // Replaces only metadata that is as it was declared. Throws zarrbits::error; moved objects stay moved, and a further call
  // continues.
  void commit();
  // Removes the objects that an incomplete run left.
  virtual void discard() = 0;

 protected:
  explicit staged_append(std::string store) : store_(std::move(store)) {}

  const std::string& store() const { return store_; }
  // Throws: nothing can be appended, for the root has no zarr.json. `is_v2`: it has metadata of Zarr v2.
  [[noreturn]] void refuse_store(bool is_v2) const;
  // Throws: the declared objects cannot be moved any more.
  [[noreturn]] void refuse(const std::string& reason) const;
  [[noreturn]] void refuse_changed(const std::string& key) const;

  // Texts of objects; "" if absent.
  virtual std::string store_text(const std::string& key) = 0;
  virtual std::string staged_text(const std::string& key) = 0;
  // The list of declared objects.
  virtual std::string list() = 0;
  virtual void put_list(const std::string& text, std::uint64_t chunk_bytes) = 0;
  virtual void remove_list() = 0;
  // Everything but metadata.
  virtual void move_chunks() = 0;
  // Unless the store already has it.
  virtual void move_metadata(const replaced_metadata& metadata) = 0;

 private:
  const std::string store_;
};

constexpr const char* staged_store = "store";  // in append_folder: the new parts
constexpr const char* declared_list = "metadata";

std::unique_ptr<staged_append> append_in_directory(std::string store,
                                                   const zarr::store_writer_options& options);  // append_in_directory.cpp
std::unique_ptr<staged_append> append_in_s3(std::string store, const zarr::store_writer_options& options);  // append_in_s3.cpp

}  // namespace zarrbits::append

#endif
