// SPDX-License-Identifier: BSL-1.0
//
// What netCDF can hold, for files that its programs have to read: types, names, and times.
//
//   | Zarr                              | netCDF-4                                                                      |
//   |-----------------------------------|-------------------------------------------------------------------------------|
//   | integers, float32, float64        | the same                                                                      |
//   | float16                           | float                                                                         |
//   | bool                              | byte, with the attribute dtype = "bool", as xarray has it                     |
//   | null_terminated_bytes             | char, with a dimension of the characters                                      |
//   | other texts                       | string                                                                        |
//   | datetime64, timedelta64           | int64 with CF's units, days to nanoseconds                                    |
//   | complex, struct                   | a committed compound                                                          |
//   | raw bytes                         | a committed opaque type                                                       |
//   | enumerations, sequences           | the same, committed                                                           |
//   | references                        | none                                                                          |
//
#ifndef ZARRBITS_EXPORT_NETCDF_TYPES_HPP
#define ZARRBITS_EXPORT_NETCDF_TYPES_HPP

#include "export/type_spec.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

// The form of values in a file that netCDF reads. In memory, values stay as they are. Throws unsupported_in_hdf5.
type_spec netcdf_spec(type_spec t);

// True if netCDF needs a named type for it.
bool is_user_type(const type_spec& t);

// The attributes by which CF says what an integer of numpy's times means; an empty object for other types.
text::json cf_time_attributes(const zarr::zarr_type& type);

// Why netCDF cannot have a variable, group or dimension of this name; "" if it can.
std::string fault_of_netcdf_name(const std::string& name);
// True if netCDF keeps the name of an attribute for its own bookkeeping, which its programs do not show.
bool is_netcdf_bookkeeping(const std::string& attribute);

// Named types, which objects have whose type is not one number or text. netCDF knows such a type only if the file has it as a
// named type, made before what uses it.
class committed_types {
 public:
  // `is_taken`: whether the root has, or will have, something of a name. Null: only types that the file has are used.
  committed_types(hid_t file, std::function<bool(const std::string& name)> is_taken)
      : file_(file), is_taken_(std::move(is_taken)) {}
  // The type to create an object with; for netCDF, commits it, and those in it, if the file does not have them yet. `name`: of
  // the object. Throws hdf5::failure.
  hid_t commit(const type_spec& t, const std::string& name);
  // Only those in it.
  void commit_parts(const type_spec& t, const std::string& name);
  // A type that the file has.
  void add(hdf5::handle type) { types_.push_back(std::move(type)); }

 private:
  hid_t find(hid_t type) const;

  hid_t file_;
  std::function<bool(const std::string&)> is_taken_;
  std::vector<hdf5::handle> types_;
};

}  // namespace zarrbits::exporting

#endif
