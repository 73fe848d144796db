// SPDX-License-Identifier: BSL-1.0
#include "hdf5/dimensions.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::hdf5 {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void take_scales(const source_file& source, hid_t dataset, std::vector<std::string>& names, std::size_t rank) {
  const auto scales = dimension_scales(dataset, rank);
  for (std::size_t d = 0; d < scales.size(); ++d) {
    for (std::size_t i = 0; i < scales[d].size() && names[d].empty(); ++i) {
      const std::string name = text::base_name(source.target_of(dataset, &scales[d][i], H5R_OBJECT));
      if (!name.empty() && !contains(names, name)) names[d] = name;  // tensorstore refuses an array with two equal names
    }
  }
}

void take_labels(hid_t dataset, std::size_t rank, std::vector<std::string>& names) {
  if (H5Aexists(dataset, "DIMENSION_LABELS") <= 0) return;
  const std::vector<std::string> labels = text_attribute(dataset, "DIMENSION_LABELS");
  for (std::size_t d = 0; d < std::min(rank, labels.size()); ++d) {
    const std::string label = text::escape_name(labels[d]);
    if (names[d].empty() && !label.empty() && !contains(names, label)) names[d] = label;
  }
}

}  // namespace

std::vector<std::vector<hobj_ref_t>> dimension_scales(hid_t dataset, std::size_t rank) {
  constexpr std::uint64_t max_bytes = 1 << 20;  // bytes of references
  if (H5Aexists(dataset, "DIMENSION_LIST") <= 0) return {};
  const handle attribute(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT), "open DIMENSION_LIST");
  const handle type(H5Aget_type(attribute), "get a type"), space(H5Aget_space(attribute), "get a dataspace");
  if (H5Tget_class(type) != H5T_VLEN || extent(space) != array::extents{rank}) return {};
  const handle base(H5Tget_super(type), "get a type");
  if (H5Tequal(base, H5T_STD_REF_OBJ) <= 0) return {};
  count_variable_bytes(attribute, describe_type(type), rank, max_bytes);
  const handle memory(H5Tvlen_create(H5T_STD_REF_OBJ), "create a type");
  std::vector<hvl_t> lists(rank);
  check(H5Aread(attribute, memory, lists.data()), "read DIMENSION_LIST");
  std::vector<std::vector<hobj_ref_t>> scales;
  for (const hvl_t& list : lists) {
    const auto* first = static_cast<const hobj_ref_t*>(list.p);
    scales.emplace_back(first, first + list.len);
  }
  H5Dvlen_reclaim(memory, space, H5P_DEFAULT, lists.data());
  return scales;
}

bool is_dimension_scale(hid_t object) {
  if (H5Aexists(object, "CLASS") <= 0) return false;
  const std::vector<std::string> text = text_attribute(object, "CLASS");
  return text.size() == 1 && text[0] == "DIMENSION_SCALE";
}

bool is_dimension_without_variable(hid_t dataset) {
  if (H5Aexists(dataset, "NAME") <= 0 || !is_dimension_scale(dataset)) return false;
  const std::vector<std::string> text = text_attribute(dataset, "NAME");
  return text.size() == 1 && text[0].starts_with("This is a netCDF dimension but not a netCDF variable");
}

std::vector<std::string> dimension_namer::known_names(const source_object& o, hid_t dataset, std::size_t rank) const {
  if (!o.overrides.new_dimension.empty() && rank > 0) {
    source_object part = o;
    part.overrides.new_dimension.clear();
    std::vector<std::string> result = known_names(part, dataset, rank - 1);
    result.insert(result.begin(), o.overrides.new_dimension);
    return result;
  }
  std::vector<std::string> names(rank);
  std::copy_n(o.overrides.dimension_names.begin(), std::min(rank, o.overrides.dimension_names.size()), names.begin());
  try {
    take_scales(source_, dataset, names, rank);
    if (rank == 1 && names[0].empty() && is_dimension_scale(dataset)) names[0] = text::base_name(o.path);
    take_labels(dataset, rank, names);
  } catch (const failure&) {  // damaged attributes are reported when attributes are converted
    H5Eclear2(H5E_DEFAULT);
  }
  return names;
}

std::vector<std::string> dimension_namer::names(const source_object& o, hid_t dataset, std::span<const std::uint64_t> shape,
                                                std::size_t rank) {
  std::vector<std::string> names = known_names(o, dataset, rank);
  names.resize(shape.size());
  fill_in(o.store_path.substr(0, o.store_path.rfind('/')), shape, names);
  return names;
}

std::vector<std::string> dimension_namer::phony(const std::string& group, std::span<const std::uint64_t> shape) {
  std::vector<std::string> names(shape.size());
  fill_in(group, shape, names);
  return names;
}

void dimension_namer::fill_in(const std::string& group, std::span<const std::uint64_t> shape, std::vector<std::string>& names) {
  std::map<std::uint64_t, std::size_t> used_counts;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!names[d].empty()) continue;
    std::vector<std::string>& candidates = phony_[{group, shape[d]}];
    std::size_t& n = used_counts[shape[d]];
    while (n < candidates.size() && contains(names, candidates[n])) ++n;
    if (n == candidates.size()) candidates.push_back(std::string(text::phony_prefix) + std::to_string(next_++));
    names[d] = candidates[n++];
  }
}

}  // namespace zarrbits::hdf5
