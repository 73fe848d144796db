// SPDX-License-Identifier: BSL-1.0
//
// Several HDF5 files whose datasets make up an array, local or remote. Only a few are open at a time.
//
//   source_files files(options, largest_expansion);
//   files.add({name, state});
//   files.dataset(0, address)->read_block(...);
//
#ifndef ZARRBITS_HDF5_SOURCE_FILES_HPP
#define ZARRBITS_HDF5_SOURCE_FILES_HPP

#include "hdf5/chunk_source.hpp"
#include "hdf5/source_file.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

class source_dataset;

// Where the bytes of a stored chunk are in its file.
struct stored_place {
  std::uint64_t offset = 0, size = 0;  // size 0: it was never written
  unsigned mask = 0;                   // of filters that were left out
};

// A chunk of a dataset in one of several files.
struct chunk_in_files {
  std::size_t file = 0;  // index in source_files
  haddr_t address = 0;   // address of the dataset in its file
  array::extents first;  // the first element of the chunk in that dataset
};

class source_files {
 public:
  struct entry {
    std::string name;
    io::file_state state;  // state when its metadata was read; not regular: it was unreadable, and no part uses it
  };
  // Opens `max_open` files at a time: few if they are read in order, because libhdf5 keeps decoded chunks of each.
  source_files(source_options options, std::uint64_t largest_expansion, std::size_t max_open = 8)
      : options_(std::move(options)), largest_expansion_(largest_expansion), max_open_(max_open) {}

  // The first file of the list is already open, and stays so as long as its datasets are in use: it is not opened once more. If a
  // file is open twice, libhdf5 gives the fill value of strings the handle of the one that a dataset was first opened through,
  // and uses it after that one is closed.
  void lend_first(source_file& first) { first_ = {std::shared_ptr<void>(), &first}; }
  // Reopens a file. Throws zarrbits::error.
  std::shared_ptr<source_file> open(const std::string& name) const;
  void add(entry file);
  const std::vector<entry>& list() const { return files_; }

  // The dataset at an address of a file. Throws zarrbits::error, failure. The caller holds lock, or is alone.
  std::shared_ptr<const source_dataset> dataset(std::size_t file, haddr_t address) const;
  // As in chunk_source, for a chunk of a dataset in one of the files. The size is 0 if it was never written.
  std::uint64_t stored_size(const chunk_in_files& chunk) const;
  stored_chunk find_chunk(const chunk_in_files& chunk, std::uint64_t size) const;
  // The bytes of a file, which is then open as long as they are in use. Callable from any thread. Throws zarrbits::error.
  std::shared_ptr<const io::byte_source> bytes(std::size_t file) const;
  bool any_remote() const { return any_remote_; }
  // Throws zarrbits::error if a file has changed. Asks the server once for each remote file.
  void require_unchanged() const;
  void require_unchanged(std::size_t file) const;

 private:
  // The last requested values, newest first.
  template <class Key, class Value>
  using recent = std::list<std::pair<Key, std::shared_ptr<Value>>>;
  std::shared_ptr<source_file> opened(std::size_t file) const;

  source_options options_;
  std::uint64_t largest_expansion_;
  std::size_t max_open_;
  bool any_remote_ = false;
  std::shared_ptr<source_file> first_ = {};  // does not own it
  std::vector<entry> files_;
  mutable recent<std::size_t, source_file> open_;
  mutable recent<std::pair<std::size_t, haddr_t>, const source_dataset> datasets_;
  mutable std::mutex bytes_mutex_;
  mutable recent<std::size_t, const io::byte_source> bytes_;
};

}  // namespace zarrbits::hdf5

#endif
