// SPDX-License-Identifier: BSL-1.0
//
// Gives the values of a dataset other chunks or filters, in bounded memory and in all threads.
//
//   recoder work(pair, options, pair.needed_chunks());
//   work.run([](double share) { ... });   // of the dataset, since the last call
//
#ifndef ZARRBITS_REPACK_RECODER_HPP
#define ZARRBITS_REPACK_RECODER_HPP

#include "array/rechunk_plan.hpp"
#include "repack/box_reader.hpp"

#include <zarrbits/repack.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace zarrbits::io {
class scratch_file;
}

namespace zarrbits::repacking {

// About what becomes of a dataset, and how long a thread takes to read and encode it.
struct copy_estimate {
  std::uint64_t chunks = 0, bytes = 0;  // as stored
  double seconds = 0;
};

// The estimate for a dataset whose chunks are copied: some of them are read.
copy_estimate estimate_copied(const dataset_pair& d);

// So many threads that each has `bytes` of the memory; at least one.
std::size_t threads_for(const repack_options& options, std::uint64_t bytes);

class recoder {
 public:
  // `needed`: numbers of the chunks of the copy that are encoded, sorted. The references live as long as this.
  recoder(const dataset_pair& d, const repack_options& options, std::vector<std::uint64_t> needed);

  // Throws hdf5::failure, io::read_error, compressors::corrupt_chunk and zarrbits::error.
  void run(const std::function<void(double share)>& progress);
  // By chunks of the copy that are made and go nowhere. Throws what run() throws.
  copy_estimate estimate() const;

 private:
  struct loaded_box {
    array::box box;
    compressors::buffer values = {};
  };
  using numbers = std::vector<std::uint64_t>;  // sorted

  std::uint64_t largest_chunk() const;  // bytes, of the source or the copy
  array::rechunk_plan plan() const;
  hdf5::pipeline fastest_encoding() const;
  template <class Make>
  void in_all_threads(std::size_t count, const Make& make) const;
  template <class Use>
  void for_each_group(const array::chunk_grid& grid, const numbers& boxes, const Use& use) const;
  bool is_needed(const array::box& b) const;
  void decode(std::span<loaded_box> boxes) const;
  void decode(std::span<const std::shared_ptr<const dataset_part>> parts, std::span<loaded_box> boxes) const;
  void stage(const array::rechunk_plan& plan, const std::function<void(double share)>& progress);
  void read_staged(std::span<loaded_box> regions) const;
  std::uint64_t offset_of(const array::box& tile, const array::box& region) const;
  void write(std::span<const loaded_box> regions, const hdf5::pipeline& filters,
             const std::function<void(double share)>& progress) const;

  const dataset_pair& dataset_;
  const repack_options& options_;
  const box_reader reader_;
  const std::uint64_t element_;  // bytes
  const array::box array_box_;
  const numbers needed_;  // chunks of the copy
  // two passes
  std::shared_ptr<io::scratch_file> scratch_;
  array::chunk_grid staged_boxes_;
  numbers staged_;  // those with values
};

}  // namespace zarrbits::repacking

#endif
