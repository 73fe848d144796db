// SPDX-License-Identifier: BSL-1.0
#include "conventions/references.hpp"

namespace zarrbits::conventions {

const hdf5::source_object* dereference(const hdf5::source_file& file, hid_t object, const std::string& attribute) {
  const hdf5::handle id(H5Aopen(object, attribute.c_str(), H5P_DEFAULT));
  if (!id) {
    H5Eclear2(H5E_DEFAULT);
    return nullptr;
  }
  const hdf5::handle type(H5Aget_type(id)), space(H5Aget_space(id));
  hobj_ref_t reference = 0;
  const bool one = type && space && H5Tequal(type, H5T_STD_REF_OBJ) > 0 && H5Sget_simple_extent_type(space) == H5S_SCALAR;
  if (!one || H5Aread(id, H5T_STD_REF_OBJ, &reference) < 0) return nullptr;
  return file.target(object, &reference, H5R_OBJECT);
}

}  // namespace zarrbits::conventions
