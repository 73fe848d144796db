// SPDX-License-Identifier: BSL-1.0
#include "filter/packbits_plugin.hpp"

#include "filter/callbacks.hpp"
#include "filter/packbits.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

namespace zarrbits::filter {

namespace {

struct packbits_codec_of_hdf5 {
  using chunk = packbits_chunk;
  static constexpr int id = ZARRBITS_HDF5_PACKBITS_ID;
  static constexpr const char* name = "packbits";
  static constexpr unsigned stored = packbits_stored;

  static bool resolve(const creation& c, chunk& out, sentence& why) noexcept {
    packbits_parameters_in user;
    return read_parameters(c.cd_nelmts, c.cd_values, user, why) && filter::resolve(user, c.what, c.elements, out, why);
  }
  static void store(const chunk& c, unsigned cd[packbits_stored]) noexcept { filter::store(c, cd); }
  static void created(const creation& c, const chunk& out) noexcept {
    if ((c.flags & flag_optional) || !out.how.partial() || out.policy == range_policy::truncate) return;
    sentence why;
    why.set(minor::bad_value,
            "zarrbits: packbits: the filter is mandatory in the new dataset's pipeline: a value that does not fit will make the write fail, "
            "when the chunk is flushed; set it as optional (H5Z_FLAG_OPTIONAL) so that such chunks are stored as they are");
    note(why);
  }
  static bool load(std::size_t n, const unsigned cd[], chunk& out, sentence& why) noexcept { return filter::load(n, cd, out, why); }
  static std::size_t run(const library& h5, unsigned flags, const chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                         sentence& why) noexcept {
    return flags & flag_reverse ? decode(h5, c, nbytes, buf_size, buf, why) : encode(h5, c, nbytes, buf_size, buf, why);
  }
  // HDF5 stores the chunk as it is and says so in its filter mask
  static bool expected(unsigned flags, const chunk& c) noexcept {
    return !(flags & flag_reverse) && (flags & flag_optional) && c.policy != range_policy::report;
  }
};

}  // namespace

const filter_class packbits_class = {class_version,
                                     packbits_codec_of_hdf5::id,
                                     1,
                                     1,
                                     "packbits (zarrbits)",
                                     can_apply_callback<packbits_codec_of_hdf5>,
                                     set_local_callback<packbits_codec_of_hdf5>,
                                     filter_callback<packbits_codec_of_hdf5>};

}  // namespace zarrbits::filter
