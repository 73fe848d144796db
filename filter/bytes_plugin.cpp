// SPDX-License-Identifier: BSL-1.0
#include "filter/bytes_plugin.hpp"

#include "filter/bytes.hpp"
#include "filter/creation.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

namespace zarrbits::filter {

namespace {

bool incomplete(sentence& why) noexcept {
  return why.set(minor::cant_filter,
                 "zarrbits: bytes: the functions of the libhdf5 that calls cannot be found; a program that links libhdf5 statically must "
                 "export its symbols (-rdynamic)");
}

bool prepare(const library& h5, hid dcpl, hid type, hid space, creation& c, bytes_chunk& chunk, sentence& why) noexcept {
  bool big_endian = false;
  return (h5.complete || incomplete(why)) && examine(h5, dcpl, type, space, ZARRBITS_HDF5_BYTES_ID, "bytes", c, why) &&
         read_parameters(c.cd_nelmts, c.cd_values, big_endian, why) && resolve(big_endian, c.what, c.elements, chunk, why);
}

}  // namespace

extern "C" {

// Negative, never 0: see packbits_plugin.cpp
static htri bytes_can_apply(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  bytes_chunk chunk;
  sentence why;
  if (prepare(h5, dcpl, type, space, c, chunk, why)) return 1;
  report(h5, "can_apply", why);
  return -1;
}

static herr bytes_set_local(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  bytes_chunk chunk;
  sentence why;
  if (prepare(h5, dcpl, type, space, c, chunk, why)) {
    unsigned stored[bytes_stored];
    store(chunk, stored);
    if (h5.call.plist_modify_filter(c.dcpl, ZARRBITS_HDF5_BYTES_ID, c.flags, bytes_stored, stored) >= 0) return 0;
    why.set(minor::cant_filter, "zarrbits: bytes: HDF5 does not take the filter's resolved parameters");
  }
  report(h5, "set_local", why);
  return -1;
}

static std::size_t bytes_filter(unsigned, std::size_t cd_nelmts, const unsigned cd_values[], std::size_t nbytes, std::size_t*,
                                void** buf) noexcept {
  bytes_chunk chunk;
  sentence why;
  if (load(cd_nelmts, cd_values, chunk, why) && convert(chunk, nbytes, *buf, why) != 0) return nbytes;
  library scratch;
  report(*find_library(ZARRBITS_FILTER_CALLER(), scratch), "filter", why);
  return 0;
}

}  // extern "C"

const filter_class bytes_class = {class_version, ZARRBITS_HDF5_BYTES_ID, 1, 1, "bytes (zarrbits)", bytes_can_apply, bytes_set_local, bytes_filter};

}  // namespace zarrbits::filter
