// SPDX-License-Identifier: BSL-1.0
//
// What was made for a store beside it, and its way into the store.
//
//   waiting_append waiting("out.zarr");                // takes the lock: nobody else appends
//   if (waiting.is_whole()) waiting.move();            // of a run that was killed
//   convert into waiting.folder() ...
//   waiting.declare({"t2m/zarr.json", ..., "zarr.json"}, old_texts);
//   waiting.move();
//
#ifndef ZARRBITS_CONVERT_APPEND_MOVE_INTO_HPP
#define ZARRBITS_CONVERT_APPEND_MOVE_INTO_HPP

#include "convert/io/files.hpp"

#include <string>
#include <vector>

namespace zarrbits::conversion {

// The folder ".zarrbits-append" of a store. It has a whole store of its own in it, with the new chunks alone, and the metadata of
// what the store is to become. Each of its files takes the place of the store's by a rename: chunks first, which nobody looks at
// before the metadata, or which say the same as the ones before where these say anything; then the metadata, in the order that
// was declared. The next run completes what a killed one has begun.
class waiting_append {
 public:
  // Throws convert_error.
  waiting_append(std::string store, bool sync);
  // Nothing is left of what is not declared; of what a run before left, too.
  ~waiting_append();
  waiting_append(const waiting_append&) = delete;
  waiting_append& operator=(const waiting_append&) = delete;

  // Where the new parts are made, as a store.
  std::string folder() const;
  // All is made, and nothing more is needed but move().
  bool is_whole() const;
  // From here on it is whole. `metadata`: keys of zarr.json files, in the order in which they become the store's; what each
  // replaces is checked to be what it was at this moment, or what it is to be.
  void declare(const std::vector<std::string>& metadata);
  // Takes chunks out of the store, which nobody sees for they lie beyond its arrays.
  void remove_from_store(const std::string& key);
  bool has(const std::string& key) const;
  // Throws convert_error; what is moved then stays so, and a further call goes on.
  void move();
  // What is there of a run that was not whole.
  void discard();
  // A run that fails leaves what it has made, for the same command to go on with.
  void keep() { keep_ = true; }

 private:
  std::string store_;
  bool sync_ = false, keep_ = false;
  file_descriptor root_, own_, lock_;
};

}  // namespace zarrbits::conversion

#endif
