// SPDX-License-Identifier: BSL-1.0
#include "filter/packbits_plugin.hpp"

#include "filter/creation.hpp"
#include "filter/packbits.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

namespace zarrbits::filter {

namespace {

bool incomplete(sentence& why) noexcept {
  return why.set(minor::cant_filter,
                 "zarrbits: packbits: the functions of the libhdf5 that calls cannot be found; a program that links libhdf5 statically must "
                 "export its symbols (-rdynamic)");
}

bool prepare(const library& h5, hid dcpl, hid type, hid space, creation& c, packbits_chunk& chunk, sentence& why) noexcept {
  packbits_parameters_in user;
  return (h5.complete || incomplete(why)) && examine(h5, dcpl, type, space, ZARRBITS_HDF5_PACKBITS_ID, "packbits", c, why) &&
         read_parameters(c.cd_nelmts, c.cd_values, user, why) && resolve(user, c.what, c.elements, chunk, why);
}

}  // namespace

extern "C" {

// Everything that can be known is refused here, with a negative result: after 0 HDF5 would keep an optional filter in the pipeline
// nevertheless, and call it.
static htri packbits_can_apply(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  packbits_chunk chunk;
  sentence why;
  if (prepare(h5, dcpl, type, space, c, chunk, why)) return 1;
  report(h5, "can_apply", why);
  return -1;
}

static herr packbits_set_local(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  packbits_chunk chunk;
  sentence why;
  if (prepare(h5, dcpl, type, space, c, chunk, why)) {
    unsigned stored[packbits_stored];
    store(chunk, stored);
    if (h5.call.plist_modify_filter(c.dcpl, ZARRBITS_HDF5_PACKBITS_ID, c.flags, packbits_stored, stored) >= 0) {
      if (!(c.flags & flag_optional) && chunk.how.partial() && chunk.policy != range_policy::truncate) {
        why.set(minor::bad_value,
                "zarrbits: packbits: the filter is mandatory in the new dataset's pipeline: a value that does not fit will make the write fail, "
                "when the chunk is flushed; set it as optional (H5Z_FLAG_OPTIONAL) so that such chunks are stored as they are");
        note(why);
      }
      return 0;
    }
    why.set(minor::cant_filter, "zarrbits: packbits: HDF5 does not take the filter's resolved parameters");
  }
  report(h5, "set_local", why);
  return -1;
}

static std::size_t packbits_filter(unsigned flags, std::size_t cd_nelmts, const unsigned cd_values[], std::size_t nbytes,
                                   std::size_t* buf_size, void** buf) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  packbits_chunk chunk;
  sentence why;
  const bool usable = load(cd_nelmts, cd_values, chunk, why);
  const bool decoding = (flags & flag_reverse) != 0;
  std::size_t result = 0;
  if (usable) result = decoding ? decode(h5, chunk, nbytes, buf_size, buf, why) : encode(h5, chunk, nbytes, buf_size, buf, why);
  if (result != 0) return result;
  // HDF5 stores the chunk as it is and says so in its filter mask: that is what the user asked for
  if (usable && !decoding && (flags & flag_optional) && chunk.policy != range_policy::report)
    note(why);
  else
    report(h5, "filter", why);
  return 0;
}

}  // extern "C"

const filter_class packbits_class = {class_version, ZARRBITS_HDF5_PACKBITS_ID, 1,
                                     1,             "packbits (zarrbits)",     packbits_can_apply,
                                     packbits_set_local, packbits_filter};

}  // namespace zarrbits::filter
