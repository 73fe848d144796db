// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/compress.hpp"

#include "compressors/blosc.hpp"
#include "compressors/bzip2.hpp"
#include "compressors/deflate.hpp"
#include "compressors/fletcher32.hpp"
#include "compressors/lz4.hpp"
#include "compressors/shuffle.hpp"
#include "compressors/zstd.hpp"

#include <utility>

namespace zarrbits::conversion {

compressors::buffer compress(const compression& c, compressors::buffer bytes, std::size_t typesize) {
  return c.kind == compressor::none ? std::move(bytes) : compressed(c, bytes, typesize);
}

compressors::buffer compressed(const compression& c, std::span<const std::byte> bytes, std::size_t typesize) {
  switch (c.kind) {
    case compressor::none: break;
    case compressor::gzip: return compressors::gzip_member(bytes, c.level);
    case compressor::zstd: return compressors::zstd_frame(bytes, c.level);
    case compressor::blosc:
      return compressors::blosc_buffer(bytes, typesize, c.level, static_cast<int>(c.shuffle), to_string(c.inside));
  }
  return {bytes.begin(), bytes.end()};
}

compressors::buffer apply_native(const hdf5::pipeline& p, compressors::buffer values, std::size_t typesize) {
  for (const hdf5::filter& f : p.filters) {
    switch (f.id) {
      case H5Z_FILTER_DEFLATE: values = compressors::zlib_stream(values, deflate_level(f)); break;
      case H5Z_FILTER_SHUFFLE: values = compressors::shuffled(std::move(values), f.values.at(0)); break;
      case H5Z_FILTER_FLETCHER32: compressors::append_fletcher32(values); break;
      case hdf5::bzip2_filter: values = compressors::bzip2_stream(values, bzip2_level(f)); break;
      case hdf5::lz4_filter: values = compressors::lz4_numcodecs_frame(values); break;
      default: values = compress(compression_of(f), std::move(values), typesize); break;
    }
  }
  return values;
}

}  // namespace zarrbits::conversion
