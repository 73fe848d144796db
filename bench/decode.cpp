// SPDX-License-Identifier: BSL-1.0
//
// Reads and decodes each chunk of a Zarr store or an HDF5 file in one thread, and does nothing else: what bench/check.py compares
// `zarrbits check` with.
//
//   bench_decode NAME
//
#include "array/chunk_grid.hpp"
#include "codecs/codec_chain.hpp"
#include "compressors/buffer.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/source_file.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstdint>
#include <exception>
#include <iostream>
#include <malloc.h>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace zarrbits;

void decode_array(const zarr::zarr_array& array, std::uint64_t& bytes) {
  zarr::element_buffer values;
  array.for_each_object([&](const array::extents& index, const zarr::store_entry&) {
    if (auto stored = array.read_stored(index)) {
      array.decode(index, std::move(*stored), values);
      bytes += values.data.size();
    }
    return true;
  });
}

void decode_store(const zarr::store_folder& folder, std::uint64_t& bytes) {
  if (zarr::kind_of(folder) == metadata::node_kind::array)
    return decode_array(zarr::zarr_array(folder, codecs::make_decoder), bytes);
  for (const zarr::store_folder& child : folder.nodes()) decode_store(child, bytes);
}

void decode_file(const std::string& name, std::uint64_t& bytes) {
  hdf5::source_file file(name, {});
  file.walk(true, "");
  for (const hdf5::source_object& object : file.objects()) {
    if (object.kind != hdf5::source_object::kind_type::dataset) continue;
    hdf5::opened_dataset dataset(file, object);
    if (dataset.layout != H5D_CHUNKED) continue;
    const array::chunk_grid grid{dataset.dims, dataset.chunk_in_file};
    const hdf5::source_dataset data(std::move(dataset));
    std::vector<array::extents> chunks;
    hdf5::for_each_stored_chunk(data.dataset, grid, [&](const array::extents& index, std::uint64_t) { chunks.push_back(index); });
    for (const array::extents& index : chunks) {
      if (const auto values = data.decoded_chunk(grid.start(index))) bytes += values->size();
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // else each chunk gets new pages, which the command avoids, too
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
  std::uint64_t bytes = 0;
  if (zarr::is_store_name(argv[1])) decode_store(zarr::open_folder(argv[1], {}), bytes);
  else decode_file(argv[1], bytes);
  std::cout << bytes << '\n';
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
