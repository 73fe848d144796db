// SPDX-License-Identifier: BSL-1.0
//
// The values of a dataset in an HDF5 file: which chunks exist, and whether each can be decoded. Without chunks, pieces of it are
// read.
//
//   dataset_chunks chunks(file, object);    // throws if the dataset cannot be opened
//   chunks.list();
//   chunks.submit(pool, memory, progress);
//   pool.finish();
//   chunks.report(options, findings);
//
#ifndef ZARRBITS_CHECK_DATASET_CHUNKS_HPP
#define ZARRBITS_CHECK_DATASET_CHUNKS_HPP

#include "check/chunk_partition.hpp"
#include "check/chunk_results.hpp"
#include "check/sample.hpp"
#include "hdf5/source_dataset.hpp"
#include "io/thread_pool.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::checking {

class dataset_chunks {
 public:
  // Throws hdf5::failure.
  dataset_chunks(hdf5::source_file& file, const hdf5::source_object& object);
  dataset_chunks(const dataset_chunks&) = delete;
  dataset_chunks& operator=(const dataset_chunks&) = delete;

  const std::string& path() const noexcept { return result_.path; }
  const hdf5::source_dataset& dataset() const noexcept { return data_; }

  // Finds the stored chunks. Throws hdf5::failure, hdf5::unsupported_dataset, and not_supported if they are more than
  // `max_chunks`.
  void list(std::uint64_t max_chunks);
  std::uint64_t listed() const noexcept { return chunks_.size(); }
  void sample(double share, random_numbers& random) { take_sample(chunks_, share, random); }
  void select(chunk_partition& own) { own.select(chunks_); }
  std::uint64_t bytes() const { return bytes_of(chunks_); }

  // As array_chunks::submit().
  void submit(io::thread_pool& pool, std::uint64_t memory, const std::function<void(std::uint64_t bytes)>& progress);
  checked_array report(const integrity_options& options, finding_list& findings);

 private:
  bool is_chunked() const { return data_.layout == H5D_CHUNKED; }
  std::uint64_t element_bytes() const;
  void check_chunks(const std::vector<listed_chunk>& batch, std::uint64_t memory);
  // The caller holds hdf5::lock.
  void check_chunk(const array::extents& index, std::uint64_t memory) const;
  void read_with_libhdf5(const array::extents& first, const array::extents& count) const;

  checked_array result_;
  array::chunk_grid grid_;
  const hdf5::source_dataset data_;
  std::vector<listed_chunk> chunks_;
  std::uint64_t stored_chunks_ = 0;
  bool is_variable_ = false, is_listed_ = false;
  bool has_unknown_type_ = false;  // one that only libhdf5 reads
  chunk_results results_;
};

}  // namespace zarrbits::checking

#endif
