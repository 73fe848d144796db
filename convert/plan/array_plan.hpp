// SPDX-License-Identifier: BSL-1.0
//
// How one array is made from a dataset, found before its first chunk is: data type, codecs, fill value, and the cheapest way that
// is right for its chunks. Nothing is read but metadata, and nothing is written.
//
#ifndef ZARRBITS_CONVERT_PLAN_ARRAY_PLAN_HPP
#define ZARRBITS_CONVERT_PLAN_ARRAY_PLAN_HPP

#include "convert/hdf5/joined_parts.hpp"
#include "convert/hdf5/source_dataset.hpp"
#include "convert/plan/compression.hpp"
#include "convert/store/node.hpp"

#include <zarrbits/codec.hpp>
#include <zarrbits/convert.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A part of a dataset's values that becomes one array: all of them, or one member of a compound.
struct value_view {
  const type_tree* leaf = nullptr;  // the type of one value, not an array type
  std::vector<hsize_t> extra;       // extents that array types add
  h5::handle memory;                // what H5Dread is asked for
  std::size_t size = 0;             // bytes of it for one element of the dataset
  bool whole = true;                // not a member

  std::uint64_t per_element() const { return product(extra); }
};

// What is taken for granted of the data until a chunk proves it wrong. Then the array is planned and made again, without it: all
// its chunks are written over, under the same keys.
struct assumptions {
  bool text_is_utf8 = true;
  bool bools_are_0_or_1 = true;
  bool raw_packing_fits = true;  // chunks of our packbits filter are chunks of the codec

  friend bool operator==(const assumptions&, const assumptions&) = default;
};

// Thrown where the data are not as assumed: the assumption, to be dropped.
struct wrong_assumption {
  bool assumptions::*which;
};

struct array_plan {
  // Throws skip_dataset. What is planned for refers to `data`, `view` and `options`.
  array_plan(const source_dataset& data, const value_view& view, const convert_options& options, const assumptions& assumed);

  // How the chunks are made; single chunks may need a costlier way.
  enum class strategy {
    copy,         // stored bytes are the Zarr chunk
    copy_zstd,    // so are these, under the codec zstd
    copy_blosc,   // or blosc
    copy_native,  // or the codecs that numcodecs has for the filters
    rewrap,       // deflate becomes gzip, checksums are dropped
    packed,       // chunks of our packbits filter are copied
    decode,       // filters are undone here
    read,         // through H5Dread
  };

  const source_dataset& data;
  const value_view& view;
  const type_tree& leaf;
  assumptions assumed;
  array_metadata meta;  // without attributes and dimension names, and without shards
  strategy way = strategy::read;
  bool text = false, opaque = false;
  bool characters = false;  // strings of one byte, as bytes
  json time;                // the data type of numpy's times, which HDF5 has as opaque bytes; else null
  bool flat = false;        // a compound whose strings have one length each: flat_struct.hpp
  bool big_endian = false;
  bool materialize = false;            // the fill value is none that Zarr can say: chunks never written are written
  compression after;                   // of what is encoded anew
  std::optional<compression> instead;  // of chunks that this makes larger than they are stored in the source
  pipeline native;                     // copy_native: the filters whose codecs the chunks have
  bool checksum = false;               // each chunk ends with its crc32c
  std::size_t typesize = 1;            // for that: bytes of one number
  std::size_t trailing = 0;            // dimensions after the dataset's own
  buffer fill;                         // of one dataset element, in memory
  std::optional<codec> packed;
  bool packed_in_source = false;  // its parameters are those of the source's filter, and not asked for
  std::string loss;               // of the plan itself: why the fill value is not the source's

  // The array is larger than the dataset.
  bool is_extended() const { return !std::equal(data.grid.shape.begin(), data.grid.shape.end(), meta.shape.begin()); }

  // Bytes of one element of the dataset in the store, before compression; of strings what they take in memory.
  std::size_t element_size() const;

  // As they are written: with shards, where there are any.
  array_metadata stored_metadata() const;

 private:
  void choose_shape();
  void choose_fill();
  void choose_way(const convert_options& options);
  void choose_compression(const convert_options& options);
  void choose_packbits(const convert_options& options);
  void choose_codecs();
  // Of an array that is in the store and grows: it stays as it is there. Throws skip_dataset where its chunks cannot be made.
  void adopt(const stored_values& there);
};

// Releases what libhdf5 allocated for values of the view, where it did.
void release(const value_view& view, buffer& values);

}  // namespace zarrbits::conversion

#endif
