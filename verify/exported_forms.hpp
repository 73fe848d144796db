// SPDX-License-Identifier: BSL-1.0
//
// What `export` makes of values whose types no note of the store gives (docs/reference/exported.md): a type of the file that
// follows from the store in this way needs no note there. Written from that page alone; nothing is shared with export/.
//
#ifndef ZARRBITS_VERIFY_EXPORTED_FORMS_HPP
#define ZARRBITS_VERIFY_EXPORTED_FORMS_HPP

#include "verify/compare_metadata.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::verification {

// True if an attribute of this name and value has this type (of source_notes.hpp) in the file. `array`: the data type of its
// array, or null. `netcdf`: the file has netCDF's dimensions.
bool is_exported_type(const nlohmann::json& type, const std::string& name, const nlohmann::json& value,
                      const nlohmann::json& array, bool netcdf);

// The value as the file has it where JSON says it otherwise: numbers for booleans, floats for integers among floats. A value that
// HDF5 cannot have is JSON text: then this is the text's if that is the same value.
// `netcdf`: lists of lists are one list.
nlohmann::json exported_value(const attribute_values& a, const std::string& name, const nlohmann::json& stored, bool netcdf);

// The type of datasets of arrays of this data type, as a note. `references`: of hdmf-zarr, "object_reference" or the names of
// fields that are references, or null.
nlohmann::json exported_type(const zarr::zarr_type& array, const nlohmann::json& references = nullptr, bool netcdf = false);
// The attributes by which netCDF says what an array's type says in Zarr: of booleans and of numpy's times.
nlohmann::json exported_attributes(const zarr::zarr_type& array);

// The limits of a dataset of the shape: HDF5 allows no chunk that is longer than they are. Null if they are the shape.
nlohmann::json exported_limits(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk);

// zarr.json of an array with the dimension names that export takes: those of "_ARRAY_DIMENSIONS" if there are no others.
nlohmann::json with_dimension_names(nlohmann::json array);

// netCDF's name of a dimension without a name. `array`: the path of its array in the store.
std::string exported_dimension(const std::string& array, std::size_t d);

// True if netCDF's dimension of that length may be one that the store calls `name`: another has this name, or a group.
bool is_exported_dimension(const std::string& exported_name, const std::string& name, std::uint64_t length);

// The names and lengths of the dimensions of a store's arrays.
class stored_dimensions {
 public:
  explicit stored_dimensions(const zarr::store_folder& root);  // Throws store_error.
  // True if an array in the group ("/a"), or below it, has such a dimension.
  bool contains(const std::string& group, const std::string& name, std::uint64_t length) const;

 private:
  std::map<std::pair<std::string, std::uint64_t>, std::set<std::string>> groups_;  // of these arrays
};

}  // namespace zarrbits::verification

#endif
