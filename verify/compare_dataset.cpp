// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_dataset.hpp"

#include "hdf5/registered_decoders.hpp"
#include "verify/blocks.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/decode/plain_codec_chain.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_element_bytes = 1u << 30;

}  // namespace

std::string dataset_comparison::view::member() const {
  std::string s;
  for (const step& inner_step : steps) {
    if (inner_step.dims.empty()) s += (s.empty() ? "" : ".") + inner_step.member;
  }
  return s;
}

void dataset_comparison::conclude(verdict v, const std::string& reason, const std::string& member) {
  if (v <= finding_.outcome) return;
  finding_.outcome = v;
  finding_.reason = member.empty() ? reason : "member " + member + ": " + reason;
}

bool dataset_comparison::report_difference(const view& v, const index& coordinates, const difference& d) {
  std::string field = v.member();
  if (!d.field.empty()) field += (field.empty() ? "" : ".") + d.field;
  if (finding_.outcome != verdict::differs) {
    finding_.has_index = true;
    finding_.index = coordinates;
    finding_.field = field;
    finding_.source_value = d.source;
    finding_.store_value = d.store;
  }
  conclude(verdict::differs,
           "differs at " + join(coordinates) + (field.empty() ? "" : " in member " + field) + ": source " + d.source +
               ", store " + d.store,
           "");
  return false;
}

void dataset_comparison::read_properties() {
  properties_ = checked(H5Dget_create_plist(dataset_), "cannot read the creation properties");
  hdf5::register_decoders(properties_.get());
  const H5D_layout_t kind = H5Pget_layout(properties_.get());
  if (kind == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(dims_.size());
    if (H5Pget_chunk(properties_.get(), static_cast<int>(chunk.size()), chunk.data()) == static_cast<int>(dims_.size())) {
      source_chunk_.assign(chunk.begin(), chunk.end());
    }
    const hdf5::handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
    std::vector<hsize_t> limit(dims_.size());
    if (!limit.empty())
      check(H5Sget_simple_extent_dims(space.get(), nullptr, limit.data()) < 0 ? -1 : 0, "cannot read the dataspace");
    // libhdf5 lists extensible arrays, which have one unlimited dimension, as if it were the first
    index_unreliable_ = std::count(limit.begin(), limit.end(), H5S_UNLIMITED) == 1 && limit[0] != H5S_UNLIMITED;
  }
  const bool plain = kind == H5D_CHUNKED || (kind == H5D_CONTIGUOUS && H5Pget_external_count(properties_.get()) == 0);
  nothing_stored_ = plain && H5Dget_storage_size(dataset_) == 0;
  H5D_fill_value_t state = H5D_FILL_VALUE_ERROR;
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  check(H5Pfill_value_defined(properties_.get(), &state), "cannot read the fill value");
  check(H5Pget_fill_time(properties_.get(), &time), "cannot read the fill time");
  if (place_) {  // parts that one file never wrote may be written in the array
    source_chunk_.clear();
    nothing_stored_ = false;
  }
  may_be_undefined_ = !place_ && (state == H5D_FILL_VALUE_UNDEFINED || time == H5D_FILL_TIME_NEVER);
}

// An error on either side is this dataset's verdict; the comparison continues.
template <class F>
void dataset_comparison::guarded(const std::string& member, F&& f) {
  try {
    f();
  } catch (const zarr::not_supported& e) {
    unchecked_ += product(dims_);
    conclude(verdict::unchecked, std::string("was not compared: this reader does not support ") + e.what(), member);
  } catch (const zarr::store_error& e) {
    conclude(verdict::differs, std::string("cannot be read from the store: ") + e.what(), member);
  } catch (const zarrbits::error& e) {
    if (!is_codec_error(e)) throw;
    conclude(verdict::differs, std::string("cannot be read from the store: ") + e.what(), member);
  } catch (const source_error& e) {
    conclude(verdict::unreadable, std::string("cannot be read from the source: ") + e.what(), member);
  }
}

void dataset_comparison::run(const zarr::store_folder& folder) {
  guarded("", [&] { compare(folder); });
}

void dataset_comparison::compare(const zarr::store_folder& folder) {
  const hdf5::handle type = checked(H5Dget_type(dataset_), "cannot read the datatype");
  const hdf5::handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
  const metadata::node_kind kind = zarr::kind_of(folder);
  check_older(folder, "");
  if (kind == metadata::node_kind::none) return conclude(verdict::missing, "is not in the store", "");

  const H5S_class_t shape = H5Sget_simple_extent_type(space.get());
  if (shape == H5S_NULL) {
    // without elements, a group is right, or an array that has none either
    if (kind == metadata::node_kind::array && product(zarr::zarr_array(folder, make_plain_decoder).shape()) != 0) {
      conclude(verdict::differs, "has no dataspace, but the store's array has elements", "");
    }
    if (kind == metadata::node_kind::group) add_rest(zarr::child_nodes(folder, zarr::read_node(folder)));
    return;
  }
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) throw source_error("cannot read the dataspace: " + hdf5_reason());
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  if (rank > 0 && H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) < 0)
    throw source_error("cannot read the dataspace: " + hdf5_reason());
  dims_.assign(dims.begin(), dims.end());
  read_properties();
  if (place_ && place_->added) {
    dims_.insert(dims_.begin(), 1);
    if (!lengths_.empty()) lengths_.insert(lengths_.begin(), 0);
  }

  source_type t = describe(type.get());
  if (t.kind == source_kind::unsupported || t.size == 0) {
    unchecked_ += product(dims_);
    return conclude(verdict::unchecked, "was not compared: " + t.name, "");
  }
  if (netcdf_ && t.kind == source_kind::integer && t.size == 1 && t.is_signed && !t.is_enum) {
    is_stored_bool_ = text_attribute(dataset_, "dtype") == std::vector<std::string>{"bool"};
    t.is_bool = is_stored_bool_;
  }
  if (t.size > max_element_bytes) return conclude(verdict::unchecked, "was not compared: its elements are larger than 1 GiB", "");
  const hdf5::handle memory = memory_type(t, type.get());
  node({t, type.get(), memory.get(), {}}, folder);
}

void dataset_comparison::node(const view& v, const zarr::store_folder& folder) {
  guarded(v.member(), [&] {
    check_older(folder, v.member());
    switch (zarr::kind_of(folder)) {
      case metadata::node_kind::none: return conclude(verdict::missing, "is not in the store", v.member());
      case metadata::node_kind::array: return array(v, folder);
      case metadata::node_kind::group: break;
    }
    const source_type* leaf = &v.type;
    while (leaf->kind == source_kind::array) leaf = &leaf->members[0].type;
    if (leaf->kind == source_kind::compound) return members(v, folder);
    if (leaf->kind == source_kind::sequence) return sequences(v, folder);
    conclude(verdict::differs, "is a group in the store", v.member());
  });
}

// A compound that Zarr's struct cannot hold becomes a group with one array for each member.
void dataset_comparison::members(const view& v, const zarr::store_folder& folder) {
  zarr::child_nodes nodes(folder, zarr::read_node(folder));
  std::vector<step> outer = v.steps;
  index dims;  // dimensions of the array types around the compound
  const bool in_array = std::any_of(outer.begin(), outer.end(), [](const step& s) { return !s.dims.empty(); });
  const source_type* compound = &v.type;
  hdf5::handle file_type = checked(H5Tcopy(v.file_type), "cannot copy a type");
  for (; compound->kind == source_kind::array; compound = &compound->members[0].type) {
    const bool in_steps = in_array && dims.empty();  // from the array types in the steps
    dims.insert(dims.end(), compound->dims.begin(), compound->dims.end());
    if (in_steps) continue;
    outer.push_back({"", compound->dims});
    file_type = checked(H5Tget_super(file_type.get()), "cannot read an array type");
  }
  for (unsigned i = 0; i < compound->members.size(); ++i) {
    const source_member& m = compound->members[i];
    std::vector<step> path = outer;
    path.push_back({m.name, {}});
    const std::string name = v.member().empty() ? m.name : v.member() + "." + m.name;
    const std::vector<zarr::store_folder> children = nodes.match(m.name);
    if (m.type.kind == source_kind::unsupported || m.type.size == 0) {
      unchecked_ += product(dims_);
      conclude(verdict::unchecked, "was not compared: " + m.type.name, name);
      continue;
    }
    if (children.empty()) {
      conclude(verdict::missing, "is not in the store", name);
      continue;
    }
    const hdf5::handle member = checked(H5Tget_member_type(file_type.get(), i), "cannot read a compound's member");
    // H5Dread takes a compound of the wanted members: this member replaces the whole
    hdf5::handle memory = memory_type(m.type, member.get());
    std::size_t size = m.type.size;
    for (std::size_t k = path.size(); k-- > 0;) {
      hdf5::handle around;
      if (path[k].dims.empty()) {
        around = checked(H5Tcreate(H5T_COMPOUND, size), "cannot make a memory type");
        check(H5Tinsert(around.get(), path[k].member.c_str(), 0, memory.get()), "cannot make a memory type");
      } else {
        const std::vector<hsize_t> extent(path[k].dims.begin(), path[k].dims.end());
        around = checked(H5Tarray_create2(memory.get(), static_cast<unsigned>(extent.size()), extent.data()),
                         "cannot make a memory type");
        size *= static_cast<std::size_t>(product(path[k].dims));
      }
      memory = std::move(around);
    }
    source_type type = m.type;
    if (!dims.empty()) {
      type.kind = source_kind::array;
      type.dims = dims;
      type.size = size;
      type.members = {{"", 0, m.type}};
    }
    for (const zarr::store_folder& child : children) node({type, member.get(), memory.get(), path}, child);
  }
  add_rest(nodes);
}

void dataset_comparison::check_older(const zarr::store_folder& folder, const std::string& member) {
  if (const std::string reason = refused_field(folder); !reason.empty()) conclude(verdict::differs, reason, member);
  const std::string older = zarr::v2_metadata_key(folder);
  if (older.empty()) return;
  conclude(verdict::unchecked,
           "has metadata of Zarr v2 beside the zarr.json in the store (" + older +
               "), which were not compared; readers may use either",
           member);
}

void dataset_comparison::add_rest(const zarr::child_nodes& children) {
  for (const zarr::store_folder& child : children.unmatched()) only_in_store_.push_back(child);
}

}  // namespace zarrbits::verification
