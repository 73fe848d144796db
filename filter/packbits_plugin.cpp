// SPDX-License-Identifier: BSL-1.0
#include "filter/plugins.hpp"

#include "core/kernels/kernels.hpp"
#include "filter/callbacks.hpp"
#include "filter/packbits.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

#include <atomic>

namespace zarrbits::filter {

namespace {

std::atomic<unsigned> created{0};

struct packbits_codec_of_hdf5 {
  using chunk = packbits_chunk;
  static constexpr int id = ZARRBITS_HDF5_PACKBITS_ID;
  static constexpr const char* name = "packbits";
  static constexpr unsigned given = 4, stored = packbits_stored;

  static bool resolve(creation& c, chunk& out, sentence& reason) noexcept {
    packbits_parameters_in user;
    if (!read_parameters(c.cd_nelmts, c.cd_values, user, reason) ||
        !filter::resolve(user, c.element_type, c.elements, out, reason))
      return false;
    created.fetch_add(1, std::memory_order_relaxed);
    out.checksum_before = c.checksum_before;
    out.one_size = c.unsteady_after && out.may_be_raw() && out.policy != range_policy::error;
    if (c.checksum_before && (out.policy == range_policy::truncate || (out.format.is_signed && out.format.zero_above)))
      return reason.set(
          minor::bad_value,
          "zarrbits: packbits: fletcher32 comes before packbits in the pipeline, which may read back different bits than "
          "the checksum covers (%s); put fletcher32 after it",
          out.policy == range_policy::truncate ? "option 4 drops some" : "a sign beyond the datatype's precision");
    const bool fails = out.may_misfit() && out.policy == range_policy::error, raw = out.may_misfit() && !fails;
    if (fails) {
      static const char key = 0;
      c.flags &= ~flag_optional;  // HDF5 would store a chunk that an optional filter refuses, and could misread it later
      hint(&key,
           "zarrbits: packbits: with option 12, a value that does not fit, also the fill value beyond the edge, makes the write "
           "fail when the chunk leaves HDF5's cache; HDF5 may then crash the process, and in a collective write the "
           "other ranks wait forever");
    }
    if (out.format.truncate && out.format.bits < out.format.type_bits && !out.format.zero_above) {
      static const char key = 0;
      hint(&key,
           "zarrbits: packbits: with option 4, what does not fit in the kept bits is dropped without a word, and data is lost; "
           "if 4 "
           "was to be the first bit to keep, it is the third value: bits, 0, first bit");
    }
    if (raw && out.encoded_size == out.decoded_size)
      return reason.set(
          minor::bad_value,
          "zarrbits: packbits: a chunk takes %llu bytes packed and as many unpacked: nothing is saved, and its length could not "
          "tell the two apart; choose a larger chunk%s, or leave packbits out",
          static_cast<unsigned long long>(out.encoded_size), out.count_byte == padding::none ? "" : " or no count byte");
    if (c.element_type.type_class == kind::integer && out.format.is_signed && out.format.bits == 1 &&
        out.format.type_bits == 8 * out.format.size) {
      static const char key = 0;
      hint(
          &key,
          "zarrbits: packbits: one bit of a signed integer holds 0 and -1, and a 1 does not fit; store booleans as bool or as an "
          "unsigned integer, or keep 2 bits");
    }
    const std::uint64_t largest = raw && out.decoded_size > out.encoded_size ? out.decoded_size : out.encoded_size;
    return fits_a_file(out.one_size ? out.filled_size() : largest, name, reason);
  }
  static std::size_t run(const library& h5, unsigned flags, const unsigned cd[], const chunk& c, std::size_t nbytes,
                         std::size_t* buf_size, void** buf, sentence& reason) noexcept {
    if (flags & flag_reverse) return decode(h5, c, nbytes, buf_size, buf, reason);
    const std::size_t result = encode(h5, c, nbytes, buf_size, buf, reason);
    if (result == 0 || *reason.text == '\0') return result;
    // HDF5 keeps the parameters of an open dataset in one place, and may use that place again for the next
    if (c.policy == range_policy::report)
      warn(reinterpret_cast<std::uintptr_t>(cd) + std::uintptr_t{16} * created.load(std::memory_order_relaxed), reason);
    else note(reason);
    return result;
  }

 private:
  static void hint(const char* key, const char* text) noexcept {
    sentence message;
    message.set(minor::bad_value, "%s", text);
    warn(reinterpret_cast<std::uintptr_t>(key), message);
  }
};

}  // namespace

const filter_class packbits_class = {class_version,
                                     packbits_codec_of_hdf5::id,
                                     1,
                                     1,
                                     "zarrbits-packbits",
                                     nullptr,
                                     set_local_callback<packbits_codec_of_hdf5>,
                                     filter_callback<packbits_codec_of_hdf5>};

}  // namespace zarrbits::filter
