// SPDX-License-Identifier: BSL-1.0
//
// The plan to make one array from a dataset, before its first chunk is made: data type, codecs, fill value, and the cheapest
// correct way for its chunks. Reads only metadata, and writes nothing.
//
#ifndef ZARRBITS_CONVERT_PLAN_ARRAY_PLAN_HPP
#define ZARRBITS_CONVERT_PLAN_ARRAY_PLAN_HPP

#include "append/existing_array.hpp"
#include "convert/pipeline/work_unit_result.hpp"
#include "convert/plan/filter_compression.hpp"
#include "hdf5/chunk_source.hpp"
#include "metadata/array_metadata.hpp"

#include <zarrbits/codec.hpp>
#include <zarrbits/convert.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// The part of a dataset's values that becomes one array: all of them, or one member of a compound.
struct field_view {
  const hdf5::type_description* leaf = nullptr;  // the type of one value, not an array type
  array::extents extra;                          // extents that array types add
  hdf5::handle memory;                           // the type to request from H5Dread
  std::size_t size = 0;                          // its size in bytes for one element of the dataset
  bool is_complete = true;                       // false: a member

  std::uint64_t per_element() const { return array::product(extra); }
};

// Values that no run with these options can store.
struct option_mismatch : error {
  explicit option_mismatch(const std::string& message, error_place place = {})
      : error(errc::no_match, message, std::move(place)) {}
};

struct array_plan {
  // Throws unsupported_dataset. The plan refers to `data`, `view` and `options`.
  array_plan(const hdf5::chunk_source& data, const field_view& view, const convert_options& options, const assumptions& assumed);

  // How the chunks are made. Everything that follows for a single chunk is decided here, too: chunk_origin(), step_for(),
  // is_read(), outcome_if_read(). convert/from_hdf5/ carries it out.
  enum class strategy_type {
    copy,         // the stored bytes are the Zarr chunk
    copy_zstd,    // the same, with the codec zstd
    copy_blosc,   // the same, with blosc
    copy_native,  // the same, with the codecs that numcodecs has for the filters
    rewrap,       // deflate becomes gzip, checksums are dropped
    packed,       // chunks of our packbits filter are copied
    decode,       // our code undoes the filters
    read,         // H5Dread reads the values
  };

  const hdf5::chunk_source& data;
  const field_view& view;
  const hdf5::type_description& leaf;
  const append::existing_array* const in_store;  // what a growing store already has of the array; null: it does not grow
  assumptions assumed;
  metadata::array_metadata meta;  // without attributes and dimension names, and without shards
  strategy_type strategy = strategy_type::read;
  bool text = false, opaque = false;
  bool characters = false;  // strings of one byte, as bytes
  text::json time;          // the data type of numpy's times, which HDF5 stores as opaque bytes; else null
  bool flat = false;        // a compound whose strings have one length per field: flat_struct.hpp
  bool big_endian = false;
  bool keeps_empty = false;        // convert_encoding::write_empty_chunks
  bool materialize = false;        // Zarr has no such fill value: all values are read, and all chunks are written
  bool writes_gaps = false;        // Zarr v2 does not have it: chunks that were never written are written beside the others
  compression target_compression;  // compression of re-encoded chunks
  // If a chunk gets larger by it than it is in the source: the source's own deflate stream is kept, in a buffer of blosc, or if
  // it cannot be, another compression replaces it.
  bool keeps_stream = false;
  std::optional<compression> fallback;
  hdf5::pipeline native;     // copy_native: the filters that become codecs
  bool checksum = false;     // each chunk ends with its crc32c
  std::size_t typesize = 1;  // of the shuffle: bytes of one number
  std::size_t trailing = 0;  // dimensions after the dataset's own
  compressors::buffer fill;  // one dataset element, in memory
  std::optional<codec> packed;
  bool packed_in_source = false;   // its parameters come from the source's filter, not from an option
  bool packed_if_it_fits = false;  // its parameters come from an option for all datasets
  bool undoable = false;           // our code can undo the filters
  bool as_stored = false;          // the values in the store are the bytes that HDF5's first filter got
  text::coded_reason loss;         // loss by the plan itself: why the fill value differs from the source's

  // Where the chunks come from: each from the source's own chunks, from one range of the file that has all values (if the source
  // can tell where it is), or from values that libhdf5 reads.
  enum class origin { chunks, range, values };
  origin chunk_origin() const;
  // What has to be done with a stored chunk.
  enum class step {
    take,    // nothing: its bytes are the chunk, without a look at them
    check,   // its bytes are the chunk, if they are sound
    native,  // a checksum or a frame is changed to numcodecs' format
    rewrap,  // likewise, around a deflate stream
    decode,  // its filters are undone, and the values encoded
    encode,  // it has plain values, which are encoded
    read,    // only libhdf5 can decode it
  };
  // For a chunk of this stored size, and HDF5's filter mask.
  step step_for(const array::extents& coordinates, std::uint64_t stored, unsigned mask) const;
  // True if libhdf5 reads the chunk, whatever is stored of it. `of_several`: it has to be put together from several datasets.
  bool is_read(const array::extents& coordinates, bool of_several) const;
  // What a chunk is called that libhdf5 read: its values may be stored as they are in the source.
  outcome outcome_if_read() const;

  // True if the array is larger than the dataset.
  bool is_extended() const { return !std::equal(data.grid.shape.begin(), data.grid.shape.end(), meta.shape.begin()); }

  // True if the array has all of its chunks.
  bool is_complete() const { return materialize || writes_gaps; }
  // True if chunks are written where the array goes on and the dataset does not: the file has no text of the fill value there.
  bool writes_beyond() const { return writes_gaps && is_extended() && (!text || meta.fill_value == ""); }
  // Throws unsupported_dataset if these chunks, which were never written, would take far more than the file.
  void require_plausible_gaps(std::uint64_t chunks) const;

  // Bytes of one element of the dataset in the store, before compression; for strings their size in memory.
  std::size_t element_size() const;
  // The size of the largest chunk of the dataset, or of one, as its first filter gets it.
  std::uint64_t chunk_bytes() const;
  std::uint64_t chunk_bytes(const array::extents& coordinates) const;

  // As written to the store: with shards, if there are any.
  metadata::array_metadata stored_metadata() const;

 private:
  void choose_shape();
  void choose_boolean(const convert_options& options);
  void choose_fill();
  void choose_gaps();
  void choose_strategy(const convert_options& options);
  bool can_be_native() const;
  void choose_compression(const convert_options& options);
  bool can_keep_stream(const hdf5::pipeline& p) const;
  void choose_packbits(const convert_options& options);
  void choose_codecs();
  // For an existing array that grows: takes over its form. Throws unsupported_dataset if its chunks cannot be made.
  void match_existing_array();
};

// Frees what libhdf5 allocated for values of the view, if anything.
void release(const field_view& view, compressors::buffer& values);

}  // namespace zarrbits::conversion

#endif
