// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_hdf5_attributes.hpp"

#include "text/name_escaping.hpp"
#include "verify/blocks.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace zarrbits::verification {

namespace {

struct attribute_entry {
  std::string name;
  bool has_order;
  H5O_msg_crt_idx_t order;
  H5T_cset_t character_set;
};

herr_t collect_attribute(hid_t, const char* name, const H5A_info_t* info, void* out) {
  try {
    static_cast<std::vector<attribute_entry>*>(out)->push_back({name, info->corder_valid != 0, info->corder, info->cset});
    return 0;
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
}

std::vector<attribute_entry> attributes_of(hid_t object) {
  std::vector<attribute_entry> entries;
  hsize_t position = 0;
  check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &position, collect_attribute, &entries), "cannot list the attributes");
  return entries;
}

hdf5::handle creation_properties(hid_t object) {
  switch (H5Iget_type(object)) {
    case H5I_GROUP: return checked(H5Gget_create_plist(object), "cannot read the properties");
    case H5I_DATASET: return checked(H5Dget_create_plist(object), "cannot read the properties");
    default: return checked(H5Tget_create_plist(object), "cannot read the properties");
  }
}

bool is_order_tracked(hid_t object) {
  const hdf5::handle properties = creation_properties(object);
  unsigned flags = 0;
  if (H5Iget_type(object) == H5I_DATATYPE && H5Pget_attr_creation_order(properties.get(), &flags) < 0) {
    H5Eclear2(H5E_DEFAULT);  // properties of named types do not have it in all versions
    return false;
  }
  check(H5Pget_attr_creation_order(properties.get(), &flags), "cannot read the order of the attributes");
  return (flags & H5P_CRT_ORDER_TRACKED) != 0;
}

// The names that both have, in their order of creation.
std::vector<std::string> names_in_order(std::vector<attribute_entry> entries, const std::vector<attribute_entry>& others) {
  std::set<std::string> names;
  for (const attribute_entry& e : others) names.insert(e.name);
  std::sort(entries.begin(), entries.end(), [](const attribute_entry& a, const attribute_entry& b) { return a.order < b.order; });
  std::vector<std::string> ordered;
  for (const attribute_entry& e : entries) {
    if (names.contains(e.name)) ordered.push_back(e.name);
  }
  return ordered;
}

void compare_order(hid_t first, hid_t second, const std::vector<attribute_entry>& a, const std::vector<attribute_entry>& b,
                   finding& object) {
  const bool is_tracked = is_order_tracked(first);
  if (is_tracked != is_order_tracked(second))
    return add_reason(
        object, verdict::differs,
        std::string("has attributes whose order of creation only the ") + (is_tracked ? "first" : "second") + " file tracks");
  if (is_tracked && names_in_order(a, b) != names_in_order(b, a))
    add_reason(object, verdict::differs, "has attributes that were created in another order in the second file");
}

struct attribute_side {
  hdf5::handle id, type, space;

  attribute_side(hid_t object, const std::string& name) {
    id = checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), "cannot open the attribute");
    type = checked(H5Aget_type(id.get()), "cannot read the datatype");
    space = checked(H5Aget_space(id.get()), "cannot read the dataspace");
  }
};

// Position in a list, as "[1, 2]"; "" of a single value.
std::string position_in(const std::vector<std::uint64_t>& dims, std::uint64_t number) {
  std::vector<std::uint64_t> index(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; number /= dims[d]) index[d] = number % dims[d];
  return index.empty() ? "" : join(index);
}

// Sets what differs.
void compare_values(const attribute_side& a, const attribute_side& b, const hdf5_context& context, finding& f,
                    const std::string& prefix) {
  const auto differs = [&](const std::string& reason) {
    f.outcome = verdict::differs;
    f.reason = prefix + reason;
  };
  if (const std::string reason = datatype_difference(a.type.get(), b.type.get()); !reason.empty())
    return differs("of a different type: " + reason);
  if (const std::string reason = context.elements.named_type_difference(a.type.get(), b.type.get()); !reason.empty())
    return differs("of a different type: " + reason);
  if (const std::string reason = dataspace_difference(a.space.get(), b.space.get()); !reason.empty())
    return differs("that " + reason);
  if (H5Sget_simple_extent_type(a.space.get()) == H5S_NULL) return;
  const element_form form = form_of(a.type.get());
  const source_type type = source_type_of(form);
  const std::vector<std::uint64_t> dims = extent_of(a.space.get());
  const std::uint64_t elements = product(dims);
  source_values values(type, a.type.get()), other_values(type, b.type.get());
  values.read_attribute(a.id.get(), a.type.get(), elements);
  try {
    other_values.read_attribute(b.id.get(), b.type.get(), elements);
  } catch (const source_error& e) {
    throw source_error(std::string("in the second file, ") + e.what());
  }
  for (std::uint64_t i = 0; i < elements; ++i) {
    difference d;
    if (context.elements.compare(form, values.data() + i * form.size, other_values.data() + i * form.size, d) == likeness::equal)
      continue;
    const std::string position = position_in(dims, i);
    f.field = position + (position.empty() || d.field.empty() || d.field.front() == '[' ? "" : ".") + d.field;
    f.source_value = d.source;
    f.store_value = d.store;
    return differs("with another value" + (f.field.empty() ? "" : " at " + f.field) + ": " + in_both(d.source, d.store));
  }
}

}  // namespace

std::string dataspace_difference(hid_t first, hid_t second, bool compares_maximum) {
  const auto describe_space = [](hid_t space, bool is_maximum) -> std::string {
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    if (kind == H5S_NULL) return "of no values";
    if (kind == H5S_SCALAR) return "of a single value";
    const int rank = H5Sget_simple_extent_ndims(space);
    std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(rank, 0))), max_dims(dims.size());
    if (rank < 0 || H5Sget_simple_extent_dims(space, dims.data(), max_dims.data()) < 0)
      throw source_error("cannot read the dataspace: " + hdf5_reason());
    std::string text;
    for (const hsize_t n : is_maximum ? max_dims : dims)
      text += (text.empty() ? "" : ", ") + (n == H5S_UNLIMITED ? std::string("unlimited") : std::to_string(n));
    return "[" + text + "]";
  };
  std::string shape = describe_space(first, false), other = describe_space(second, false);
  if (shape != other) return in_both("has the shape " + shape, other);
  if (!compares_maximum) return "";
  shape = describe_space(first, true);
  other = describe_space(second, true);
  return shape != other ? in_both("has the maximum shape " + shape, other) : "";
}

void compare_hdf5_attributes(hid_t first, hid_t second, const hdf5_context& context, finding& object, verify_result& result,
                             const std::set<std::string>& ignored) {
  std::vector<attribute_entry> a, b;
  try {
    a = attributes_of(first);
    b = attributes_of(second);
    for (auto* entries : {&a, &b}) std::erase_if(*entries, [&](const attribute_entry& e) { return ignored.contains(e.name); });
    compare_order(first, second, a, b, object);
  } catch (const source_error& e) {
    add_reason(object, verdict::unreadable, std::string("has attributes that cannot be read: ") + e.what());
  }
  std::map<std::string, const attribute_entry*> in_second;
  for (const attribute_entry& e : b) in_second.emplace(e.name, &e);
  std::sort(a.begin(), a.end(), [](const attribute_entry& x, const attribute_entry& y) { return x.name < y.name; });
  for (const attribute_entry& e : a) {
    const std::string quoted = format_text(text::escape_name(e.name));
    finding f;
    f.path = object.path;
    f.store_path = object.store_path;
    f.kind = "attribute";
    f.attribute = e.name;
    const auto entry = in_second.find(e.name);
    if (entry == in_second.end()) {
      f.outcome = verdict::missing;
      f.reason = "has an attribute " + quoted + ", which is not in the second file";
      add_finding(result, std::move(f));
      continue;
    }
    const attribute_entry other = *entry->second;
    in_second.erase(entry);
    try {
      if (e.character_set != other.character_set) {
        f.outcome = verdict::differs;
        f.reason = "has an attribute " + quoted + " whose name is in another character set in the second file";
      } else {
        compare_values({first, e.name}, {second, e.name}, context, f, "has an attribute " + quoted + " ");
      }
    } catch (const zarr::not_supported& error) {
      f.outcome = verdict::unreadable;
      f.reason = "has an attribute " + quoted + " that cannot be compared: this reader does not support " + error.what();
    } catch (const std::runtime_error& error) {  // source_error, hdf5::failure
      f.outcome = verdict::unreadable;
      f.reason = "has an attribute " + quoted + " that cannot be compared: " + error.what();
    }
    add_finding(result, std::move(f));
  }
  for (const auto& [name, entry] : in_second)
    result.extras.push_back({format_name(object.store_path), "attribute", format_name(name)});
}

}  // namespace zarrbits::verification
