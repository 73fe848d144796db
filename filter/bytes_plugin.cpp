// SPDX-License-Identifier: BSL-1.0
#include "filter/plugins.hpp"

#include "filter/bytes.hpp"
#include "filter/callbacks.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

namespace zarrbits::filter {

namespace {

struct bytes_codec {
  using chunk = bytes_chunk;
  static constexpr int id = ZARRBITS_HDF5_BYTES_ID;
  static constexpr const char* name = "bytes";
  static constexpr unsigned given = 1, stored = bytes_stored;

  static bool resolve(creation& c, chunk& out, sentence& reason) noexcept {
    bool big_endian = false;
    if (!read_parameters(c.cd_nelmts, c.cd_values, big_endian, reason) ||
        !filter::resolve(big_endian, c.element_type, c.elements, out, reason))
      return false;
    out.checksum_before = c.checksum_before;
    return fits_a_file(out.chunk_size, name, reason);
  }
  // a swap is its own reverse
  static std::size_t run(const library&, unsigned, const unsigned[], const chunk& c, std::size_t nbytes, std::size_t*, void** buf,
                         sentence& reason) noexcept {
    return convert(c, nbytes, *buf, reason);
  }
};

}  // namespace

const filter_class bytes_class = {class_version,
                                  bytes_codec::id,
                                  1,
                                  1,
                                  "zarrbits-bytes",
                                  nullptr,
                                  set_local_callback<bytes_codec>,
                                  filter_callback<bytes_codec>};

}  // namespace zarrbits::filter
