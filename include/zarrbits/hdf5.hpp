// SPDX-License-Identifier: BSL-1.0
//
// Rows and boxes of an HDF5 dataset in several threads: packed and unpacked outside of libhdf5, which does one thing at a time.
//
//   zarrbits::hdf5::write_chunks(camera, 0, frames);   // a std::vector<std::uint16_t>: frames 0, 1, ... of the dataset
//   zarrbits::hdf5::read_chunks(camera, 100, some);    // as many as `some` holds, from frame 100 on
//   zarrbits::hdf5::read_chunks(camera, {.first = {0, 40, 60}, .count = {500, 8, 8}}, spot);   // 8 x 8 pixels of 500 frames
//
// Both do what H5Dwrite() and H5Dread() do, in any dataset, with any libhdf5 since 1.10.5: the file is the same, byte for byte,
// and so are the values. What they do faster are whole chunks with zarrbits' packbits or bytes as their first filter, and chunks
// in the other byte order: the calling thread hands stored chunks to libhdf5 (H5Dwrite_chunk) and takes them from it
// (H5Dread_chunk), and all threads encode and decode. So they do fletcher32 after these filters and, if ZARRBITS_HDF5_ZLIB is
// defined and zlib is linked, deflate. Everything else goes through H5Dwrite() and H5Dread(): other filters, types that HDF5 has
// to convert, chunks that begin before the first row or end after the last one, boxes within one chunk, what a box has of a chunk
// that it does not write as a whole, and files of parallel HDF5.
//
// Define ZARRBITS_HDF5_ZLIB in all of a program or in none of it. Deflate makes the same bytes as libhdf5 does if both have the
// same zlib.
//
// Define ZARRBITS_HDF5_DECODERS in all of a program, and link zarrbits::convert: read_chunks() then decodes, and write_chunks()
// encodes, in all threads and with no plugin, every pipeline of the filters in <zarrbits/hdf5_decoders.hpp>. Values are
// the same then; the bytes of compressed chunks differ from those of libhdf5's deflate and of plugins.
//
// Link zarrbits::core and zarrbits::hdf5, your libhdf5, and threads. Only the calling thread calls HDF5, so that a libhdf5 that
// is not thread-safe will do. They ask HDF5 for the plugins of the dataset; whole chunks need none. No other thread may use it in
// the meantime, and none may use the rows.
//
#ifndef ZARRBITS_HDF5_HPP
#define ZARRBITS_HDF5_HPP

#include <zarrbits/chunk.hpp>
#include <zarrbits/hdf5.h>
#include <zarrbits/hdf5_box.hpp>

#include <zarrbits/detail/hdf5_boxes.hpp>
#include <zarrbits/detail/hdf5_rows.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::hdf5 {

// How write_chunks() and read_chunks() work.
struct chunk_options {
  unsigned threads = 0;  // that work, with the calling one; 0: one for each processor
};

// How rows were read or written.
struct chunk_counts {
  std::uint64_t chunks = 0;          // encoded or decoded here
  std::uint64_t libhdf5_values = 0;  // that H5Dwrite() wrote or H5Dread() read
};

// Writes rows along the first dimension, beginning with row `first`: `rows` holds all values of each of them, in C order and in
// this machine's byte order. The dataset must be as long already (H5Dset_extent), and its file open for writing. Values have the
// type of the dataset, or one that HDF5 converts to it: numbers of any type, integers as large as an enumeration or a bitfield,
// bool for an enumeration of 0 and 1, std::complex, std::array for an array type, structs for compounds and opaque bytes of their
// size. Throws `error`: element_count_mismatch if the values are not a number of whole rows, invalid_range if the dataset is
// shorter, unsupported_data_type, value_does_not_fit for an integer that the one under an enumeration cannot be, and io_failed
// with HDF5's reason; rows may be written in part then. Faster with whole chunks of rows, that is if `first` and the number of
// rows are multiples of the chunk's length.
template <elements_in_memory R>
chunk_counts write_chunks(hid_t dataset, hsize_t first, const R& rows, const chunk_options& options = {}) {
  using T = std::ranges::range_value_t<R>;
  const detail::dataset_rows d(dataset, detail::memory_of<T>(), true);
  d.write(first, std::as_bytes(std::span(rows)), detail::threads_or_all(options.threads));
  return {d.chunks(), d.libhdf5_values()};
}

// Reads rows along the first dimension into `rows`, as many as it holds, beginning with row `first`. Values that were never
// written are the fill value. Throws as write_chunks() does, and damaged_source for a chunk that cannot be decoded.
template <writable_elements R>
chunk_counts read_chunks(hid_t dataset, hsize_t first, R&& rows, const chunk_options& options = {}) {
  using T = std::ranges::range_value_t<R>;
  const detail::dataset_rows d(dataset, detail::memory_of<T>(), false);
  d.read(first, std::as_writable_bytes(std::span(rows)), detail::threads_or_all(options.threads));
  return {d.chunks(), d.libhdf5_values()};
}

// Writes a box: `values` holds all of its values, in C order. Otherwise as with rows; faster with whole chunks in the box, which
// has no steps.
template <elements_in_memory R>
chunk_counts write_chunks(hid_t dataset, const hdf5_box& box, const R& values, const chunk_options& options = {}) {
  using T = std::ranges::range_value_t<R>;
  const detail::dataset_boxes d(dataset, detail::memory_of<T>(), true);
  d.write(box, std::as_bytes(std::span(values)), detail::threads_or_all(options.threads));
  return {d.chunks(), d.libhdf5_values()};
}

// Reads a box into `values`, which holds as many as the box has. Otherwise as with rows. Each chunk that has some of them is
// decoded once, however few they are.
template <writable_elements R>
chunk_counts read_chunks(hid_t dataset, const hdf5_box& box, R&& values, const chunk_options& options = {}) {
  using T = std::ranges::range_value_t<R>;
  const detail::dataset_boxes d(dataset, detail::memory_of<T>(), false);
  d.read(box, std::as_writable_bytes(std::span(values)), detail::threads_or_all(options.threads));
  return {d.chunks(), d.libhdf5_values()};
}

}  // namespace zarrbits::hdf5

#endif
