// SPDX-License-Identifier: BSL-1.0
//
// New parts of a store: they wait in a folder of their own until they are complete, and then move into the store.
//
//   waiting_append waiting("out.zarr");                // takes the lock: no other process appends
//   if (waiting.is_whole()) waiting.move();            // of a run that was killed
//   convert into waiting.folder() ...
//   waiting.declare({"t2m/zarr.json", ..., "zarr.json"}, old_texts);
//   waiting.move();
//
#ifndef ZARRBITS_CONVERT_APPEND_MOVE_INTO_HPP
#define ZARRBITS_CONVERT_APPEND_MOVE_INTO_HPP

#include "io/files.hpp"

#include <string>
#include <vector>

namespace zarrbits::conversion {

// The folder ".zarrbits-append" inside of a store. It is a store itself: it has only the new chunks, and the future metadata of
// the outer store. Its files replace those of the outer store by renames. Chunks go first: no reader looks for them before the
// metadata changes, or they say the same as the chunks that they replace. Then the metadata follows, in the declared order. If a
// run is killed, the next one completes its moves.
class waiting_append {
 public:
  // Throws zarrbits::error.
  waiting_append(std::string store, bool sync);
  // Removes what is not declared, also that of an earlier run.
  ~waiting_append();
  waiting_append(const waiting_append&) = delete;
  waiting_append& operator=(const waiting_append&) = delete;

  // The folder for the new parts, used as a store.
  std::string folder() const;
  // True if everything is made, and only move() is missing.
  bool is_whole() const;
  // Marks it as complete. `metadata`: keys of zarr.json files, in the order in which they become the store's. move() checks that
  // each file to replace is as it was at this moment, or is replaced already.
  void declare(const std::vector<std::string>& metadata);
  // Removes chunks from the store that no reader sees, because they are beyond the ends of its arrays.
  void remove_from_store(const std::string& key);
  bool has(const std::string& key) const;
  // Throws zarrbits::error; files that are moved stay moved, and a further call continues.
  void move();
  // Removes what an incomplete run left.
  void discard();
  // Keeps the work of a run that fails, so that the same command can resume it.
  void keep() { keep_ = true; }

 private:
  std::string store_;
  bool sync_ = false, keep_ = false;
  file_descriptor root_, own_, lock_;
};

}  // namespace zarrbits::conversion

#endif
