// SPDX-License-Identifier: BSL-1.0
//
// Writes one array: for each chunk the cheapest way that is right (copy, rewrap, or decode and encode), then its zarr.json.
//
#ifndef ZARRBITS_CONVERT_ARRAY_WRITER_HPP
#define ZARRBITS_CONVERT_ARRAY_WRITER_HPP

#include "convert/dataset.hpp"

#include <zarrbits/codec.hpp>

namespace zarrbits::conversion {

class dataset_job::array_writer {
 public:
  array_writer(conversion_context& context, dataset_job& job, const value_view& view, std::string store_path, json attributes);
  void run();

 private:
  // How the chunks of this array are made; found before the first, the same for all.
  enum class strategy {
    copy,      // stored bytes are the Zarr chunk
    copy_zstd,   // so are these, under the codec zstd
    copy_blosc,  // or blosc
    rewrap,    // deflate becomes gzip, checksums are dropped
    packed,    // chunks of our packbits filter are copied
    decode,    // filters are undone here
    read,      // through H5Dread
  };
  // A choice proved wrong by the data; another attempt is made.
  enum class attempt { text_is_not_utf8, bool_is_not_0_or_1, raw_chunk_does_not_fit };

  void plan();
  void plan_fill();
  void plan_packbits();
  void write_chunks();
  void write_stored_chunk(const std::vector<hsize_t>& at, hsize_t stored_size);
  void write_read_chunk(const std::vector<hsize_t>& at, bool drop_if_fill);
  void write_metadata();

  buffer read_stored(const std::vector<hsize_t>& at, hsize_t stored_size, unsigned& mask) const;
  buffer read_values(const std::vector<hsize_t>& at) const;
  buffer to_memory(buffer stored) const;
  std::vector<hsize_t> index_in_chunk(std::uint64_t element, const std::vector<hsize_t>& at) const;
  void check_bools(buffer& values) const;
  buffer encode(buffer values, const std::vector<hsize_t>& at);
  buffer compress(buffer bytes) const;
  buffer encode_text(const buffer& values) const;
  void release(buffer& values) const;
  void put(const std::vector<hsize_t>& at, const buffer& bytes, outcome how);
  void lose(const std::vector<hsize_t>& at, const std::string& why);
  void note_loss(const std::vector<hsize_t>& at);

  conversion_context& context_;
  dataset_job& job_;
  const value_view& view_;
  const type_tree& leaf_;
  std::string store_path_;
  array_metadata meta_;

  strategy strategy_ = strategy::read;
  bool text_ = false, utf8_ = true, opaque_ = false, bool_as_integer_ = false, packing_refused_ = false;
  bool big_endian_ = false;
  bool materialize_ = false;  // the fill value is none that Zarr can say: chunks never written are written
  int gzip_level_ = 0;  // 0: no gzip
  std::size_t trailing_ = 0;  // dimensions after the dataset's own
  buffer fill_;               // of one dataset element, in memory
  std::optional<codec> packbits_;
  chunk_counts counts_;
  outcome worst_ = outcome::raw;
};

}  // namespace zarrbits::conversion

#endif
