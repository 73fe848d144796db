// SPDX-License-Identifier: BSL-1.0
//
// The three callbacks of an HDF5 filter, over a codec:
//
//   struct codec {
//     using chunk = ...;                                       // all that is known of a chunk
//     static constexpr int id;                                 // the filter's
//     static constexpr const char* name;                       // in sentences
//     static constexpr unsigned stored;                        // length of cd_values in a file
//     static bool resolve(const creation&, chunk&, sentence&); // from the user's parameters, or refuses
//     static void store(const chunk&, unsigned cd_values[stored]);
//     static unsigned flags(const creation&, const chunk&);    // that the filter has in the pipeline of the new dataset
//     static void created(const creation&, const chunk&);      // a dataset is accepted: warnings
//     static bool load(std::size_t n, const unsigned cd_values[], chunk&, sentence&);
//     // size of the result, or 0 with the sentence and nothing changed
//     static std::size_t run(const library&, unsigned flags, const chunk&, std::size_t nbytes, std::size_t* buf_size, void** buf,
//     sentence&); static bool expected(unsigned flags, const chunk&);      // is 0 what the user asked for, and no error?
//   };
//   const filter_class c = {class_version, codec::id, 1, 1, "...", can_apply_callback<codec>, set_local_callback<codec>,
//   filter_callback<codec>};
//
#ifndef ZARRBITS_FILTER_CALLBACKS_HPP
#define ZARRBITS_FILTER_CALLBACKS_HPP

#include "filter/creation.hpp"

namespace zarrbits::filter {

template <class Codec>
bool prepare(const library& h5, hid dcpl, hid type, hid space, creation& c, typename Codec::chunk& chunk,
             sentence& why) noexcept {
  if (!h5.complete)
    return why.set(
        minor::cant_filter,
        "zarrbits: %s: the functions of the libhdf5 that calls cannot be found; a program that links libhdf5 statically must "
        "export its symbols (-rdynamic)",
        Codec::name);
  return examine(h5, dcpl, type, space, Codec::id, Codec::name, c, why) && Codec::resolve(c, chunk, why);
}

// Refuses everything that can be known to fail, with a negative result: after 0, HDF5 would still keep an optional filter in the
// pipeline, and call it.
template <class Codec>
htri can_apply_callback(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  typename Codec::chunk chunk;
  sentence why;
  if (prepare<Codec>(h5, dcpl, type, space, c, chunk, why)) return 1;
  report(h5, "can_apply", why);
  return -1;
}

template <class Codec>
herr set_local_callback(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  typename Codec::chunk chunk;
  sentence why;
  if (prepare<Codec>(h5, dcpl, type, space, c, chunk, why)) {
    unsigned stored[Codec::stored];
    Codec::store(chunk, stored);
    if (h5.call.plist_modify_filter(c.dcpl, Codec::id, Codec::flags(c, chunk), Codec::stored, stored) >= 0) {
      Codec::created(c, chunk);
      return 0;
    }
    why.set(minor::cant_filter, "zarrbits: %s: HDF5 does not take the filter's resolved parameters", Codec::name);
  }
  report(h5, "set_local", why);
  return -1;
}

template <class Codec>
std::size_t filter_callback(unsigned flags, std::size_t cd_nelmts, const unsigned cd_values[], std::size_t nbytes,
                            std::size_t* buf_size, void** buf) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  typename Codec::chunk chunk;
  sentence why;
  const bool usable = Codec::load(cd_nelmts, cd_values, chunk, why);
  const std::size_t result = usable ? Codec::run(h5, flags, chunk, nbytes, buf_size, buf, why) : 0;
  if (result != 0) return result;
  if (usable && Codec::expected(flags, chunk)) note(why);
  else  // HDF5 continues after an optional filter that fails on writing, and clears the error stack
    report(h5, "filter", why, (flags & flag_optional) && !(flags & flag_reverse));
  return 0;
}

}  // namespace zarrbits::filter

#endif
