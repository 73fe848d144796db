// SPDX-License-Identifier: BSL-1.0
//
// The kinds of reasons in reports, for programs; the sentence beside each says which object, number or name it is about.
//
//   for (const zarrbits::converted_object& o : result.objects)
//     if (o.code == zarrbits::reason_code::missing_filter) std::cerr << o.path << ": " << o.reason << '\n';
//
#ifndef ZARRBITS_REASON_CODE_HPP
#define ZARRBITS_REASON_CODE_HPP

#include <zarrbits/detail/requirements.hpp>

namespace zarrbits {

// Why an object is skipped, lossy or unusual. docs/reference/report.md says what to do about each. An object with several reasons
// has the code of the first one in its sentence.
enum class reason_code {
  none,                 // there is no reason: the sentence is empty
  not_selected,         // `include` or `exclude` leaves it out
  parent_skipped,       // the object that it belongs to is not in the target
  unsupported_type,     // a data type, or a value of it, that the target or this program does not have
  unsupported_feature,  // anything else that the target or this program does not have: a layout, a kind of link, a depth
  unsupported_codec,    // a codec of Zarr that this program does not have
  missing_filter,       // an HDF5 filter that is not installed
  zarr_v3_only,         // Zarr v2 cannot have it
  too_large,            // larger than `memory`, a limit for untrusted files, or the target allows
  invalid_name,         // a name that the target does not allow, or has already
  damaged,              // contradicts itself, or its checksum
  unreadable,           // libhdf5 cannot read it
  lost_chunks,          // some chunks cannot be read; `keep_going` leaves them out
  missing_file,         // another file that has its values, or a part of them, is absent
  refused_file,         // another file must not be read; `external` allows it
  not_joinable,         // a file or store that does not fit the others, or an array in the target
  link_not_followed,    // the target of a link is not in the target: it cannot be opened, or is in another file
  dangling_reference,   // a reference to nothing that the target has
  rounded,              // values are rounded, because the target has no such numbers
  changed_form,         // in the target in another form, without a loss: another encoding or type, a note, a copy
  bookkeeping,          // HDF5's or netCDF's own, which the target does not need
};
// Its name, as in reports: "missing_filter".
const char* to_string(reason_code code) noexcept;

}  // namespace zarrbits

#endif
