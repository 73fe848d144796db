// SPDX-License-Identifier: BSL-1.0
//
// Copies the values of one dataset after another, or gives them other chunks and filters.
//
//   dataset_copier copier(options, &references, total);
//   copier.run(pair);
//
#ifndef ZARRBITS_REPACK_DATASET_COPIER_HPP
#define ZARRBITS_REPACK_DATASET_COPIER_HPP

#include "repack/dataset_pair.hpp"
#include "repack/reference_map.hpp"

#include <zarrbits/repack.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zarrbits::repacking {

class dataset_copier {
 public:
  // `references`: null if no value has any. `total`: bytes of all datasets, for the progress. The references live as long as
  // this.
  dataset_copier(const repack_options& options, const reference_map* references, std::uint64_t total)
      : options_(options), references_(references), total_(total) {}

  // Throws hdf5::failure, io::read_error, compressors::corrupt_chunk and zarrbits::error, without the path.
  void run(const dataset_pair& d);
  // How many, in all datasets so far.
  std::uint64_t copied_chunks() const { return copied_chunks_; }
  std::uint64_t encoded_chunks() const { return encoded_chunks_; }
  // Throws what run() would throw for filters that nothing here has, if none of the chunks or all of them can be copied.
  static void require_filters(const dataset_pair& d);

 private:
  struct stored_chunk {
    std::uint64_t number, size;  // of its part
  };

  static void require_filters_of_library(const dataset_pair& d);
  static void require_recodable(const dataset_pair& d, const dataset_part& part);
  void copy_linked(const dataset_pair& d);
  void copy_linked_box(const dataset_pair& d, const dataset_part& part, const array::box& b);
  bool was_written(const dataset_pair& d, const array::box& b, const std::vector<std::byte>& values) const;
  void write_one_by_one(const dataset_pair& d, const array::box& b, const std::vector<std::byte>& values) const;
  void copy_unchunked(const dataset_pair& d);
  void copy_chunked(const dataset_pair& d);
  void add_needed(const dataset_pair& d, const array::box& b, std::vector<std::uint64_t>& needed) const;
  void copy_chunks(const dataset_pair& d, const dataset_part& part, const std::vector<stored_chunk>& chunks);
  void recode(const dataset_pair& d, std::vector<std::uint64_t> needed);
  void add_progress(const dataset_pair& d, std::uint64_t bytes);

  const repack_options& options_;
  const reference_map* references_;
  const std::uint64_t total_;
  std::uint64_t done_ = 0, copied_chunks_ = 0, encoded_chunks_ = 0;
  std::uint64_t copied_ = 0;  // of the current dataset, as stored
};

}  // namespace zarrbits::repacking

#endif
