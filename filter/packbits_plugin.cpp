// SPDX-License-Identifier: BSL-1.0
#include "filter/packbits_plugin.hpp"

#include "core/kernels/kernels.hpp"
#include "filter/callbacks.hpp"
#include "filter/packbits.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

#include <atomic>

namespace zarrbits::filter {

namespace {

// Without a fill value of the user's it is 0, which always fits.
bool fill_value_fits(const creation& c, const packbits_chunk& chunk) noexcept {
  const functions& call = c.h5->call;
  const std::uint64_t size = std::uint64_t{chunk.how.size} * chunk.components;
  std::byte value[1024];
  int status = 0;
  if (size > sizeof value || !call.plist_fill_value || !call.plist_fill_value_defined ||
      call.plist_fill_value_defined(c.dcpl, &status) < 0 || status != fill_value_user_defined ||
      call.plist_fill_value(c.dcpl, c.type, value) < 0)
    return true;
  return detail::first_refused(detail::kernels(), chunk.how, value, chunk.components) == chunk.components;
}

struct packbits_codec_of_hdf5 {
  using chunk = packbits_chunk;
  static constexpr int id = ZARRBITS_HDF5_PACKBITS_ID;
  static constexpr const char* name = "packbits";
  static constexpr unsigned stored = packbits_stored;

  // If the filter is optional, HDF5 stores a chunk that does not fit unfiltered, and says so in the chunk's filter mask. But when
  // it writes a chunk again, it leaves the old mask if the new size equals the old one, and the chunk is misread forever. So the
  // filter is optional only if raw and packed chunks always differ in size. If another filter follows, this cannot be known: ours
  // then becomes mandatory, and a value that does not fit is an error.
  static bool resolve(const creation& c, chunk& out, sentence& why) noexcept {
    packbits_parameters_in user;
    if (!read_parameters(c.cd_nelmts, c.cd_values, user, why) || !filter::resolve(user, c.what, c.elements, out, why))
      return false;
    if (!(flags(c, out) & flag_optional) || !out.may_misfit() || out.encoded_size != out.decoded_size) return true;
    return why.set(
        minor::bad_value,
        "zarrbits: packbits: a chunk takes %llu bytes packed and as many unpacked: nothing is saved, and HDF5 would misread a "
        "chunk that "
        "is written again and fits no longer; choose a larger chunk%s, leave packbits out, or set it as mandatory so that values "
        "that do not fit are errors",
        static_cast<unsigned long long>(out.encoded_size), out.count_byte == padding::none ? "" : " or no count byte");
  }
  static void store(const chunk& c, unsigned cd[packbits_stored]) noexcept { filter::store(c, cd); }
  static unsigned flags(const creation& c, const chunk& out) noexcept {
    return c.followed && out.may_misfit() ? c.flags & ~flag_optional : c.flags;
  }
  static void created(const creation& c, const chunk& out) noexcept {
    sentence why;
    if (c.what.what == kind::integer && out.how.is_signed && out.how.bits == 1 && out.how.type_bits == 8 * out.how.size) {
      static std::atomic<bool> said;
      why.set(minor::bad_value,
              "zarrbits: packbits: one bit of a signed integer holds 0 and -1, and a 1 does not fit; store booleans as bool or "
              "as an unsigned "
              "integer, or keep 2 bits");
      warn_once(said, why);
    }
    if ((flags(c, out) & flag_optional) || !out.may_misfit()) return;
    if (c.h5->parallel()) {
      static std::atomic<bool> said;
      why.set(minor::bad_value,
              "zarrbits: packbits: this is parallel HDF5, and the filter is mandatory%s: in a collective write, a value that "
              "does not fit is an error "
              "in the rank that has it, for which the others wait for ever; end the program when a write fails (MPI_Abort), keep "
              "enough bits, or %s",
              c.followed ? ", since another filter follows it" : "",
              c.followed ? "have no filter but fletcher32 after it" : "set it as optional (H5Z_FLAG_OPTIONAL)");
      warn_once(said, why);
    }
    if (!fill_value_fits(c, out)) {
      static std::atomic<bool> said;
      why.set(minor::bad_value,
              "zarrbits: packbits: the fill value does not fit in the kept bits, and the filter is mandatory%s: chunks that are "
              "written in part, or reach "
              "over the edge, will fail; give a fill value that fits, keep more bits, or %s",
              c.followed ? ", since another filter follows it" : "",
              c.followed ? "have no filter but fletcher32 after it" : "set it as optional (H5Z_FLAG_OPTIONAL)");
      warn_once(said, why);
    }
    why.set(minor::bad_value,
            "zarrbits: packbits: the filter is mandatory in the new dataset's pipeline%s: a value that does not fit will make "
            "the write fail, "
            "when the chunk is flushed; %s so that such chunks are stored as they are",
            c.followed ? ", since another filter follows it" : "",
            c.followed ? "have no filter but fletcher32 after it" : "set it as optional (H5Z_FLAG_OPTIONAL)");
    note(why);
  }
  static bool load(std::size_t n, const unsigned cd[], chunk& out, sentence& why) noexcept {
    return filter::load(n, cd, out, why);
  }
  static std::size_t run(const library& h5, unsigned flags, const chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                         sentence& why) noexcept {
    return flags & flag_reverse ? decode(h5, c, nbytes, buf_size, buf, why)
                                : encode(h5, c, (flags & flag_optional) != 0, nbytes, buf_size, buf, why);
  }
  // HDF5 stores the chunk unfiltered, and says so in its filter mask
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
