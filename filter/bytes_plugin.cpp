// SPDX-License-Identifier: BSL-1.0
#include "filter/bytes_plugin.hpp"

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
  static constexpr unsigned stored = bytes_stored;

  static bool resolve(const creation& c, chunk& out, sentence& why) noexcept {
    bool big_endian = false;
    return read_parameters(c.cd_nelmts, c.cd_values, big_endian, why) &&
           filter::resolve(big_endian, c.what, c.elements, out, why);
  }
  static void store(const chunk& c, unsigned cd[bytes_stored]) noexcept { filter::store(c, cd); }
  static unsigned flags(const creation& c, const chunk&) noexcept { return c.flags; }
  static void created(const creation&, const chunk&) noexcept {}
  static bool load(std::size_t n, const unsigned cd[], chunk& out, sentence& why) noexcept {
    return filter::load(n, cd, out, why);
  }
  // a swap is its own reverse
  static std::size_t run(const library&, unsigned, const chunk& c, std::size_t nbytes, std::size_t*, void** buf,
                         sentence& why) noexcept {
    return convert(c, nbytes, *buf, why);
  }
  static bool expected(unsigned, const chunk&) noexcept { return false; }
};

}  // namespace

const filter_class bytes_class = {class_version,
                                  bytes_codec::id,
                                  1,
                                  1,
                                  "bytes (zarrbits)",
                                  can_apply_callback<bytes_codec>,
                                  set_local_callback<bytes_codec>,
                                  filter_callback<bytes_codec>};

}  // namespace zarrbits::filter
