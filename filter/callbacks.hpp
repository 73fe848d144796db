// SPDX-License-Identifier: BSL-1.0
//
// The callbacks of an HDF5 filter, over a codec:
//
//   struct codec {
//     using chunk = ...;                                    // all that is known of a chunk; store() and load() take it
//     static constexpr int id;                              // the filter's
//     static constexpr const char* name;                    // in sentences
//     static constexpr unsigned given, stored;              // length of cd_values: at most, as a user gives them; in a file
//     static bool resolve(creation&, chunk&, sentence&);    // from the user's parameters, or refuses; may change the flags
//     // size of the result, or 0 with the sentence and nothing changed
//     static std::size_t run(const library&, unsigned flags, const unsigned cd_values[], const chunk&, std::size_t nbytes,
//                            std::size_t* buf_size, void** buf, sentence&);
//   };
//   const filter_class c = {class_version, codec::id, 1, 1, "...", nullptr, set_local_callback<codec>, filter_callback<codec>};
//
// There is no can_apply: HDF5 asks it again when a process first writes to a dataset that it opened, and makes every write fail
// if the answer is no. set_local is called when a dataset is created, and never again.
//
#ifndef ZARRBITS_FILTER_CALLBACKS_HPP
#define ZARRBITS_FILTER_CALLBACKS_HPP

#include "filter/creation.hpp"

namespace zarrbits::filter {

// Refuses everything that can be known to fail. The parameters stay as they were given where HDF5 stores pointers to the values
// instead of the values: most releases do not call this function for them.
template <class Codec>
herr set_local_callback(hid dcpl, hid type, hid space) noexcept {
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  creation c;
  typename Codec::chunk chunk;
  sentence reason;
  if (!h5.complete) {
    reason.set(minor::cant_filter,
               "zarrbits: %s: the functions of the calling libhdf5 cannot be found; a program that links libhdf5 statically must "
               "export its symbols (-rdynamic)",
               Codec::name);
  } else if (holds_pointers(h5, h5.id(type))) {
    return 0;
  } else if (examine(h5, dcpl, type, space, Codec::id, Codec::name, c, reason) && Codec::resolve(c, chunk, reason)) {
    unsigned stored[Codec::stored];
    store(chunk, stored);
    if (h5.call.plist_modify_filter(c.dcpl, Codec::id, c.flags, Codec::stored, stored) >= 0) return 0;
    reason.set(minor::cant_filter, "zarrbits: %s: HDF5 does not accept the filter's resolved parameters", Codec::name);
  }
  report(h5, "set_local", reason);
  return -1;
}

template <class Codec>
std::size_t filter_callback(unsigned flags, std::size_t cd_nelmts, const unsigned cd_values[], std::size_t nbytes,
                            std::size_t* buf_size, void** buf) noexcept {
  sentence reason;
  if (cd_nelmts <= Codec::given) {
    static const char key = 0;
    reason.set(
        minor::bad_value,
        "zarrbits: %s: the filter leaves a dataset's chunks as they are, because its parameters were not resolved when the "
        "dataset was created: its values have variable length or are references, or HDF5 did not find the plugin then",
        Codec::name);
    warn(reinterpret_cast<std::uintptr_t>(&key), reason);
    return nbytes;
  }
  library scratch;
  const library& h5 = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  typename Codec::chunk chunk;
  const std::size_t result =
      load(cd_nelmts, cd_values, chunk, reason) ? Codec::run(h5, flags, cd_values, chunk, nbytes, buf_size, buf, reason) : 0;
  // HDF5 continues after an optional filter that fails on writing, and clears the error stack
  if (result == 0) report(h5, "filter", reason, (flags & flag_optional) && !(flags & flag_reverse));
  return result;
}

}  // namespace zarrbits::filter

#endif
