// SPDX-License-Identifier: BSL-1.0
//
// The HDF5 filters through H5Dwrite and H5Dread, beside HDF5's own filters and the compressors whose plugins are found.
// HDF5_PLUGIN_PATH must name the folder of our plugins. Names:
//
//   hdf5/1MiB/write/16/12         64 MiB of uint16 of which 12 bits matter, noise, in chunks of 1 MiB; bool and swap as in
//   kernels.cpp hdf5/1MiB/write/mask          a mask of discs, which compressors like hdf5_noop/1MiB/write/16/12    the same, its
//   ratio is to a filter that does nothing
//
#include "bench/data.hpp"
#include "bench/harness.hpp"
#include "bench/hdf5_dataset.hpp"
#include "core/kernels/kernels.hpp"

#include <zarrbits/hdf5.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace zarrbits;
using bench::dataset, bench::decoded_buffer, bench::handle, bench::other_buffer;

constexpr std::size_t total = bench::largest_size;
constexpr H5Z_filter_t blosc_filter = 32001, bitshuffle_filter = 32008;

struct data_kind {
  const char* name;
  std::size_t size;  // bytes
  unsigned bits;
  bool mask = false;
};

// Discs of many sizes on 2048 columns: borders are a small part of it.
void fill_mask() {
  constexpr std::size_t columns = 2048, rows = total / columns;
  std::memset(decoded_buffer(), 0, total);
  for (std::size_t i = 0; i < 12000; ++i) {
    // a Weyl sequence scatters them evenly
    const std::size_t row = i * 2654435761u % rows, column = i * 40503u % columns, radius = 4 + i * 97 % 40;
    for (std::size_t y = 0; y <= 2 * radius; ++y)
      for (std::size_t x = 0; x <= 2 * radius; ++x) {
        const std::size_t dy = y < radius ? radius - y : y - radius, dx = x < radius ? radius - x : x - radius;
        if (dx * dx + dy * dy <= radius * radius && row + y < rows && column + x < columns)
          decoded_buffer()[(row + y) * columns + column + x] = std::byte{1};
      }
  }
}

void fill(const data_kind& d) {
  if (d.mask) fill_mask();
  else
    bench::fill({.size = static_cast<std::uint8_t>(d.size),
                 .type_bits = static_cast<std::uint8_t>(8 * d.size),
                 .bits = static_cast<std::uint8_t>(d.bits)},
                decoded_buffer(), total);
}

struct way {
  std::string peer;  // empty: ours
  handle file_type, memory_type;
  dataset::filters set = {};
  bool chunked = true;
};

void add(const std::string& group, const data_kind& d, std::size_t chunk, const way& w, bool to_noop) {
  for (const bool writes : {true, false}) {
    const std::string name = group + (chunk >> 20 == 1 ? "/1MiB/" : "/4MiB/") + (writes ? "write/" : "read/") + d.name;
    const bench::row what{.name = name,
                          .kernels = w.peer.empty() ? detail::kernels().name : "",
                          .peer = w.peer,
                          .base = to_noop ? "no-op filter" : "",
                          .bytes = total};
    bench::add(what, [=](bench::row& r) {
      fill(d);
      const dataset set(w.file_type, w.memory_type, total, w.chunked ? chunk : 0, w.set, decoded_buffer());
      r.stored = set.stored();
      const auto back = [] { return std::memcmp(other_buffer(), decoded_buffer(), total) == 0; };
      bench::subject s{.run = [set, writes] { return writes ? set.write(decoded_buffer()) : set.read(other_buffer()); },
                       .verify = {}};
      // of ours only: n-bit takes seconds
      if (w.peer.empty()) s.verify = [=] { return (!writes || set.read(other_buffer())) && back(); };
      if (to_noop) {
        const dataset::filters set_noop = [](hid_t p) {
          return H5Pset_filter(p, bench::noop_filter, H5Z_FLAG_MANDATORY, 0, nullptr);
        };
        const dataset noop(w.file_type, w.memory_type, total, chunk, set_noop, decoded_buffer());
        s.base = [noop, writes] { return writes ? noop.write(decoded_buffer()) : noop.read(other_buffer()); };
      }
      return s;
    });
  }
}

dataset::filters plugin(H5Z_filter_t id, std::vector<unsigned> values) {
  return [=](hid_t p) { return H5Pset_filter(p, id, H5Z_FLAG_MANDATORY, values.size(), values.data()); };
}

herr_t set_deflate(hid_t p) { return H5Pset_deflate(p, 1); }

void register_cases() {
  bench::register_noop_filter();
  const bool has_blosc = H5Zfilter_avail(blosc_filter) > 0, has_bitshuffle = H5Zfilter_avail(bitshuffle_filter) > 0;
  if (!has_blosc) std::fprintf(stderr, "SKIPPED: the blosc plugin of HDF5 is not found\n");
  if (!has_bitshuffle) std::fprintf(stderr, "SKIPPED: the bitshuffle plugin of HDF5 is not found\n");

  const data_kind kinds[] = {{"bool", 1, 1}, {"8/4", 1, 4}, {"16/12", 2, 12}, {"swap/4", 4, 32}, {"mask", 1, 1, true}};
  for (const data_kind& d : kinds)
    for (const std::size_t chunk : {std::size_t{1} << 20, std::size_t{4} << 20}) {
      if ((d.mask || bench::is_quick()) && chunk >> 20 != 1) continue;
      if (bench::is_quick() && d.size == 1 && d.bits == 4) continue;
      const handle whole = bench::integer(d.size, 8 * d.size), narrow = bench::integer(d.size, d.bits);
      const bool is_bool = d.bits == 1, swap = d.bits == 32;
      // bools have their own datatype, which says all; other integers are plain ones
      const handle ours = is_bool ? bench::boolean() : whole;
      const unsigned bits = is_bool ? 0 : d.bits;
      const way us{"", ours, ours,
                   [=](hid_t p) { return swap ? H5Pset_zarrbits_bytes(p, 1) : H5Pset_zarrbits_packbits(p, bits, 0, 0); }};
      add("hdf5", d, chunk, us, false);
      if (!d.mask) add("hdf5_noop", d, chunk, us, true);
      add("hdf5", d, chunk, {"no filter", whole, whole}, false);
      add("hdf5", d, chunk, {"no-op filter", whole, whole, plugin(bench::noop_filter, {})}, false);
      if (swap) {
        const handle big(H5Tcopy(H5T_STD_U32BE), H5Tclose);
        add("hdf5", d, chunk, {"HDF5's conversion", big, whole}, false);
        continue;
      }
      if (!d.mask) {
        add("hdf5", d, chunk, {"n-bit as used", narrow, whole, H5Pset_nbit}, false);
        add("hdf5", d, chunk, {"n-bit filter alone", narrow, narrow, H5Pset_nbit}, false);
      }
      add("hdf5", d, chunk,
          {"scale-offset", whole, whole, [](hid_t p) { return H5Pset_scaleoffset(p, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT); }},
          false);
      if (chunk >> 20 == 1) add("hdf5", d, chunk, {"deflate 1", whole, whole, set_deflate}, false);
      if (has_blosc)
        add("hdf5", d, chunk, {"blosc lz4 bitshuffle", whole, whole, plugin(blosc_filter, {0, 0, 0, 0, 1, 2, 1})}, false);
      if (has_bitshuffle) add("hdf5", d, chunk, {"bitshuffle lz4", whole, whole, plugin(bitshuffle_filter, {0, 2})}, false);
      if (d.mask)
        add("hdf5", d, chunk,
            {"packbits, then deflate 1", ours, ours,
             [](hid_t p) { return H5Pset_zarrbits_packbits(p, 0, 0, 0) < 0 ? -1 : set_deflate(p); }},
            false);
    }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return bench::main(argc, argv, register_cases);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
