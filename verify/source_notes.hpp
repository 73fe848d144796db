// SPDX-License-Identifier: BSL-1.0
//
// The notes that a store should have on the source's datatypes, under "zarrbits": in the form of docs/reference/types.md, from
// libhdf5's answers.
//
#ifndef ZARRBITS_VERIFY_SOURCE_NOTES_HPP
#define ZARRBITS_VERIFY_SOURCE_NOTES_HPP

#include <hdf5.h>
#include <nlohmann/json_fwd.hpp>

#include <string>

namespace zarrbits::verification {

// The description of a datatype, as in "named_types" and "hdf5_type". A type that Zarr cannot have is {"class": "unsupported"}.
// Throws source_error.
nlohmann::json type_note(hid_t type);

// The names and values of an enumeration, as in "enum". Throws source_error.
nlohmann::json enum_note(hid_t type);

// The error in the store's description of a type, or "".
std::string type_difference(const nlohmann::json& source, const nlohmann::json& store);

}  // namespace zarrbits::verification

#endif
