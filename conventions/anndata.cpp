// SPDX-License-Identifier: BSL-1.0
#include "conventions/anndata.hpp"

#include "conventions/references.hpp"
#include "hdf5/attributes.hpp"
#include "text/node_names.hpp"

namespace zarrbits::conventions {

namespace {

std::string encoding_of(hid_t object) {
  if (H5Aexists(object, "encoding-type") <= 0) return "";
  const std::vector<std::string> text = hdf5::text_attribute(object, "encoding-type");
  return text.size() == 1 ? text[0] : "";
}

// A table from before 0.8, when files did not name their type: a group with a mark or, before 0.7, a compound.
bool is_table(hid_t root, const char* name) {
  if (H5Lexists(root, name, H5P_DEFAULT) <= 0) return false;
  const hdf5::handle table(H5Oopen(root, name, H5P_DEFAULT));
  if (!table) return false;
  if (H5Iget_type(table) == H5I_GROUP) return encoding_of(table) == "dataframe";
  const hdf5::handle type(H5Iget_type(table) == H5I_DATASET ? H5Dget_type(table) : H5I_INVALID_HID);
  return type && H5Tget_class(type) == H5T_COMPOUND && H5Tget_member_index(type, "index") >= 0;
}

}  // namespace

bool is_anndata(const hdf5::source_file& file) {
  const hdf5::handle root(H5Gopen2(file.file(), "/", H5P_DEFAULT));
  try {
    const std::string encoding = root ? encoding_of(root) : "";
    return encoding == "anndata" || encoding == "MuData" || (root && is_table(root, "obs") && is_table(root, "var"));
  } catch (const hdf5::failure&) {
    return false;
  }
}

void anndata_attributes(const hdf5::source_file& file, const hdf5::source_object& object, hid_t id,
                        const hdf5::type_description* leaf, text::json& attributes) {
  // up to 0.7 a column refers to its categories; in Zarr this is their path below the table
  if (!leaf || object.parent == hdf5::no_object || !attributes.contains("categories")) return;
  const hdf5::source_object* categories = dereference(file, id, "categories");
  const std::string parent_path = text::join_path(file.objects()[object.parent].store_path, "");
  if (categories && categories->store_path.starts_with(parent_path))
    attributes["categories"] = categories->store_path.substr(parent_path.size());
}

}  // namespace zarrbits::conventions
