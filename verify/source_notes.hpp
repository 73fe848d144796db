// SPDX-License-Identifier: BSL-1.0
//
// What a store says of the source's datatypes, under "zarrbits": as docs/converter.md has it, made from libhdf5's own answers.
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

// Why the store's description of a type is not the right one, or "".
std::string type_difference(const nlohmann::json& source, const nlohmann::json& store);

}  // namespace zarrbits::verification

#endif
