// SPDX-License-Identifier: BSL-1.0
//
// Compares everything in the zarr.json of a node besides shape, data type and fill value: attributes, dimension names, and the
// notes under "zarrbits". It reads the source again through libhdf5, and uses no code of the converter for it.
//
#ifndef ZARRBITS_VERIFY_COMPARE_METADATA_HPP
#define ZARRBITS_VERIFY_COMPARE_METADATA_HPP

#include "hdf5/open_source.hpp"
#include "verify/compare_values.hpp"
#include "verify/convention.hpp"
#include "verify/source_objects.hpp"
#include "verify/source_values.hpp"

#include <zarrbits/verify.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::verification {

// Counts a finding by its kind, and keeps it unless it is equal.
void add_finding(verify_result& result, finding&& f);

// An attribute of the source in memory.
struct attribute_values {
  hdf5::handle file_type;
  source_type type;                 // type of the attribute
  bool null = false;                // has a null dataspace
  std::vector<std::uint64_t> dims;  // empty: a scalar
  hdf5::handle memory;              // the type of `values`
  std::unique_ptr<source_values> values;
};

// Both throw source_error and not_supported.
attribute_values read_attribute(hid_t object, const std::string& name);
std::vector<std::string> text_attribute(hid_t object, const char* name);  // none if there is no such attribute
bool is_dimension_scale(hid_t object);
bool has_only_bookkeeping(hid_t scale);  // no attributes but those of scales and of netCDF
std::vector<std::uint64_t> extent_of(hid_t space);

// The possible names of each of `rank` dimensions in the source, best first: those of its scales, then its label. A scale has all
// of its names.
using dimension_names_of = std::vector<std::vector<std::vector<std::string>>>;
dimension_names_of names_of_dimensions(hid_t dataset, std::size_t rank, const source_objects& objects);

// A sentence on a field of the node's zarr.json that Zarr does not have and that readers must understand, so that they refuse the
// node; "" if absent. Throws store_error.
std::string refused_field(const zarr::store_folder& node);

// An object of the source, and a node of the store.
struct node_pair {
  std::string path;  // in the source
  std::string store_path;
  const nlohmann::json& node;  // its zarr.json

  const nlohmann::json& attributes() const;
  const nlohmann::json& notes() const;  // the attribute "zarrbits"
};

class metadata_comparison {
 public:
  metadata_comparison(const source_objects& objects, convention rules, verify_result& result)
      : objects_(objects), rules_(rules), result_(result) {}

  // The attributes of a group, a dataset or a named type.
  void attributes(hid_t object, const node_pair& n, bool is_dataset);
  // For an array that is unpacked: the source's packing attributes need not be there.
  void unpacked(const std::string& store_path) { unpacked_.insert(store_path); }
  // A netCDF dimension that is not a node: compares its note in its group.
  void dimension(hid_t scale, const node_pair& group, const std::string& name, std::uint64_t length);
  // A dataset that is not a node: compares its attributes, if the group keeps them.
  void skipped(hid_t dataset, const node_pair& group, const std::string& name);
  // The notes and dimension names of a dataset's node, and of its inner nodes.
  void dataset(hid_t dataset, const node_pair& n, const zarr::store_folder& folder);
  // Compares the notes that the source implies, by name. The content of those in `handled` is compared elsewhere.
  void notes(const node_pair& n, const std::map<std::string, nlohmann::json>& expected, const std::set<std::string>& handled);
  // The note of the order in which the links of a group were created, if the store has it.
  void order(hid_t group, const node_pair& n);
  // Compares the HDF5 names of the nodes in a group, by their names in the store.
  void names(const node_pair& n, const std::map<std::string, std::string>& children);

  // Compares the `size` bytes before the HDF5 superblock.
  void user_block(const node_pair& n, const hdf5::opened_source& file, std::uint64_t size);

  // Reports a finding on a named part of an object: "has a different attribute "a": ...".
  void report_finding(const node_pair& n, const char* kind, const std::string& name, verdict outcome, const std::string& reason,
                      const difference& d = {});
  // Reports what only the store has.
  void report_extra(const node_pair& n, const char* kind, const std::string& name);

  // The next dataset has this additional first dimension in the store; "": none.
  void add_dimension(const std::string& name) { added_dimension_ = name; }

 private:
  // Compares the attributes that NWB's reader needs and the source does not have; returns their names.
  std::set<std::string> nwb_attributes(hid_t object, const node_pair& n);
  // Like nwb_attributes(), for a store of hdmf-zarr, which says the type of every array.
  std::set<std::string> hdmf_attributes(hid_t object, const node_pair& n);
  void attribute(hid_t object, const node_pair& n, const std::string& name, const std::string& key, bool is_dataset);
  // The error in the store's type of an attribute under `key`, or "".
  std::string type_fault(const attribute_values& a, const node_pair& n, const std::string& key,
                         const nlohmann::json* noted) const;
  likeness compare(const attribute_values& a, const std::string& name, const nlohmann::json& stored, difference& d) const;
  likeness compare_noted(const attribute_values& a, const nlohmann::json& noted, const nlohmann::json* reader_value,
                         const nlohmann::json* array, difference& d) const;
  likeness compare_fill(const attribute_values& a, const nlohmann::json& reader_value, const nlohmann::json& array,
                        difference& d) const;
  void dimension_names(hid_t dataset, std::size_t rank, const node_pair& n);
  std::string dimension_difference(const node_pair& n, std::size_t d, const std::vector<std::vector<std::string>>& right);
  void part(hid_t type, const node_pair& n, const zarr::store_folder& folder, const std::vector<std::uint64_t>* shape,
            bool is_whole, std::map<std::string, nlohmann::json> expected);

  const source_objects& objects_;
  const convention rules_;
  verify_result& result_;
  std::set<std::string> unpacked_;
  std::string added_dimension_;
  std::map<std::string, std::pair<std::string, std::uint64_t>> phony_;  // by name: group and length of the dimensions that have
                                                                        // it
};

}  // namespace zarrbits::verification

#endif
