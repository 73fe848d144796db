// SPDX-License-Identifier: BSL-1.0
#include "hdf5/scale_attributes.hpp"

#include <cstddef>
#include <cstdio>

namespace zarrbits::hdf5 {

hobj_ref_t reference_to(hid_t file, const std::string& path) {
  hobj_ref_t reference = 0;
  check(H5Rcreate(&reference, file, path.c_str(), H5R_OBJECT, -1), "refer to a dataset");
  return reference;
}

void write_text_attribute(hid_t object, const char* name, const std::string& text) {
  const handle type(H5Tcopy(H5T_C_S1), "copy a string type");
  check(H5Tset_size(type, text.size() + 1), "create a string type");
  const handle space(H5Screate(H5S_SCALAR), "create a dataspace");
  const handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute of a scale");
  check(H5Awrite(attribute, type, text.c_str()), "write an attribute of a scale");
}

void write_number_attribute(hid_t object, const char* name, const std::vector<std::int32_t>& numbers, bool scalar) {
  const hsize_t n = numbers.size();
  const handle space(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, nullptr), "create a dataspace");
  const handle attribute(H5Acreate2(object, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT),
                         "create an attribute of a scale");
  check(H5Awrite(attribute, H5T_NATIVE_INT32, numbers.data()), "write an attribute of a scale");
}

std::string name_without_variable(std::uint64_t length) {
  char name[80];
  std::snprintf(name, sizeof name, "This is a netCDF dimension but not a netCDF variable.%10llu",
                static_cast<unsigned long long>(length));
  return name;
}

void write_scale_list(hid_t dataset, std::vector<std::vector<hobj_ref_t>> scales) {
  std::vector<hvl_t> list;
  for (std::vector<hobj_ref_t>& of_dimension : scales)
    list.push_back({of_dimension.size(), of_dimension.empty() ? nullptr : of_dimension.data()});
  const handle type(H5Tvlen_create(H5T_STD_REF_OBJ), "create a sequence type");
  const hsize_t rank = list.size();
  const handle space(H5Screate_simple(1, &rank, nullptr), "create a dataspace");
  const handle attribute(H5Acreate2(dataset, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT), "create DIMENSION_LIST");
  check(H5Awrite(attribute, type, list.data()), "write DIMENSION_LIST");
}

void write_scale_users(hid_t scale, const std::vector<scale_user>& users) {
  const auto make = [](std::size_t size, std::size_t offset, hid_t number) {
    handle t(H5Tcreate(H5T_COMPOUND, size), "create a compound type");
    check(H5Tinsert(t, "dataset", 0, H5T_STD_REF_OBJ), "create a compound type");
    check(H5Tinsert(t, "dimension", offset, number), "create a compound type");
    return t;
  };
  const handle type = make(sizeof(scale_user), offsetof(scale_user, dimension), H5T_NATIVE_INT32);
  const hsize_t n = users.size();
  const handle space(H5Screate_simple(1, &n, nullptr), "create a dataspace");
  const handle attribute(H5Acreate2(scale, "REFERENCE_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT),
                         "create an attribute of a scale");
  check(H5Awrite(attribute, type, users.data()), "write an attribute of a scale");
}

}  // namespace zarrbits::hdf5
