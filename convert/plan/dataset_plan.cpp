// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/dataset_plan.hpp"

#include "array/chunk_grid.hpp"
#include "convert/concat/joined_dataset.hpp"
#include "convert/plan/chunk_grid_choice.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/type_json.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Stored bytes of a unit, approximate: many units of a dataset, so that shares of it are of equal size and little is repeated,
// and none so small that its bookkeeping counts.
constexpr std::uint64_t units_per_dataset = 64, min_unit_bytes = 1U << 20, max_unit_bytes = 64U << 20;
constexpr std::uint64_t max_unit_chunks = 1024;
constexpr std::uint64_t max_sparse_units = 4096;

// True if a chunk may prove an assumption about the whole array wrong.
bool assumes_something(const array_plan& plan) {
  return (plan.text && plan.leaf.kind == hdf5::type_class::text) || plan.leaf.kind == hdf5::type_class::boolean ||
         plan.packed_in_source || plan.packed_if_it_fits;
}

}  // namespace

dataset_plan::dataset_plan(hdf5::source_file& file, const hdf5::source_object& object, const convert_options& o)
    : source_(open_chunks(file, object)), data(*source_), options(o) {}

field_view dataset_plan::make_view(const hdf5::type_description& type, std::vector<step> steps) const {
  field_view v;
  const hdf5::type_description* leaf = &type;
  while (leaf->kind == hdf5::type_class::array) {
    steps.push_back({leaf, nullptr});
    leaf = &leaf->element();
  }
  v.leaf = leaf;
  v.memory = hdf5::handle(leaf->memory ? H5Tcopy(leaf->memory) : H5I_INVALID_HID);
  v.size = leaf->size;
  for (const step& s : steps) {
    if (s.array) v.extra.insert(v.extra.end(), s.array->dims.begin(), s.array->dims.end());
    if (s.member) v.is_complete = false;
  }
  if (!v.memory) return v;  // only the members of this compound can be read
  for (std::size_t i = steps.size(); i-- > 0;) {
    hdf5::handle outer;
    if (const hdf5::type_description* a = steps[i].array) {
      outer = hdf5::handle(H5Tarray_create2(v.memory, static_cast<unsigned>(a->dims.size()), hdf5::to_hsize(a->dims).data()),
                           "make an array type");
      v.size *= static_cast<std::size_t>(array::product(a->dims));
    } else {
      outer = hdf5::handle(H5Tcreate(H5T_COMPOUND, v.size), "make a compound type");
      hdf5::check(H5Tinsert(outer, steps[i].member->name.c_str(), 0, v.memory), "make a compound type");
    }
    v.memory = std::move(outer);
  }
  return v;
}

text::json dataset_plan::own_attributes() const {
  text::json attributes = text::json::object();
  const hdf5::type_description* t = &data.leaf();
  const bool plain =
      (t->kind == hdf5::type_class::integer || t->kind == hdf5::type_class::floating || hdf5::is_int8_boolean(*t) ||
       (t->kind == hdf5::type_class::complex && (t->parts.empty() || t->parts[0].name == "r"))) &&
      t->stored.empty();
  if (t->kind == hdf5::type_class::enumeration) attributes["enum"] = hdf5::enumeration_members(*t);
  if (!plain && (t->kind != hdf5::type_class::boolean || t->names.empty()) &&
      (t->kind != hdf5::type_class::enumeration || !t->stored.empty()) &&
      (!(t->kind == hdf5::type_class::text && t->variable) || data.null)) {
    attributes["hdf5_type"] = hdf5::datatype_json(*t);
  }
  // in netCDF such a scale is a dimension without values; xarray would take its zeros for coordinates
  if (hdf5::is_dimension_without_variable(data.dataset)) attributes["dimension_without_variable"] = true;
  if (data.object.store_path == "/") attributes["selection"] = data.file.selection_note();
  if (std::find(data.max_dims.begin(), data.max_dims.end(), H5S_UNLIMITED) != data.max_dims.end() || data.max_dims != data.dims) {
    text::json list = text::json::array();
    const std::size_t added = data.object.overrides.new_dimension.empty() ? 0 : 1;
    for (const std::uint64_t m : std::span(data.max_dims).subspan(added))
      list.push_back(m == H5S_UNLIMITED ? text::json(nullptr) : text::json(m));
    attributes["maxshape"] = std::move(list);  // null: unlimited
  }
  if (data.null) attributes["null_dataspace"] = true;
  text::json extents = text::json::array();
  for (const hdf5::type_description* a = &data.type; a->kind == hdf5::type_class::array; a = &a->element()) {
    for (const std::uint64_t e : a->dims) extents.push_back(e);
  }
  if (!extents.empty()) attributes["array_type"] = std::move(extents);
  return attributes;
}

void dataset_plan::prepare() {
  if (std::exchange(prepared_, true)) return;
  if (const std::string reason = hdf5::unsupported_reason(data.type); !reason.empty())
    throw hdf5::unsupported_dataset(reason_code::unsupported_type, "its datatype is not supported: " + reason);
  if (!data.dependencies->obstacle.empty()) throw hdf5::unsupported_dataset(data.dependencies->obstacle);
  if (data.null) return;
  choose_grid(*source_, options);
  add_parts(data.type, {}, data.object.store_path, text::json::object());
  choose_units();
}

void dataset_plan::add_parts(const hdf5::type_description& type, const std::vector<step>& steps, const std::string& store_path,
                             text::json attributes) {
  field_view view = make_view(type, steps);
  const hdf5::type_description& leaf = *view.leaf;
  using kind = dataset_part::kind_type;
  if (leaf.kind == hdf5::type_class::sequence) {
    parts_.push_back({kind::sequences, store_path, std::move(view), std::move(attributes)});
    return;
  }
  const bool flat = steps.empty() && view.extra.empty() && !data.object.overrides.text_lengths.empty();
  if (leaf.kind != hdf5::type_class::compound || flat || !hdf5::zarr_data_type(leaf).is_null()) {
    parts_.push_back({kind::array, store_path, std::move(view), std::move(attributes)});
    return;
  }
  std::vector<step> outer = steps;
  for (const hdf5::type_description* t = &type; t->kind == hdf5::type_class::array; t = &t->element())
    outer.push_back({t, nullptr});
  text::object_builder names;  // members that are stored under another name
  const std::vector<std::string> stored = hdf5::member_nodes(leaf);
  for (std::size_t i = 0; i < leaf.parts.size(); ++i) {
    const hdf5::type_description& m = leaf.parts[i];
    std::vector<step> inner = outer;
    inner.push_back({nullptr, &m});
    text::json member_attributes = text::json::object();
    const hdf5::type_description* t = &m;
    while (t->kind == hdf5::type_class::array) t = &t->element();
    if (t->kind == hdf5::type_class::enumeration)
      member_attributes[text::annotation_key] = {{"enum", hdf5::enumeration_members(*t)}};
    const std::string& name = stored[i];
    if (name != m.name) names.add(name, hdf5::text_or_base64(m.name));
    add_parts(m, inner, text::join_path(store_path, name), std::move(member_attributes));
  }
  if (!names.empty()) attributes[text::annotation_key]["names"] = names.take();
  parts_.push_back({kind::group, store_path, {}, std::move(attributes)});
}

std::shared_ptr<const array_plan> dataset_plan::array(std::size_t part, const assumptions& assumed) const {
  for (const cached_plan& cached : plans_) {
    if (cached.part == part && cached.assumed == assumed) return cached.plan;
  }
  auto plan = std::make_shared<const array_plan>(data, parts_[part].view, options, assumed);
  plans_.push_back({part, assumed, plan});
  return plan;
}

void dataset_plan::remove_shards() {
  source_->use_grid(source_->grid, array::shards_of(source_->grid), source_->rechunked());
  choose_units();
}

void dataset_plan::choose_units() {
  const std::uint64_t total = data.shards.chunks();
  const auto has_nodes_inside = [](const dataset_part& p) { return p.kind == dataset_part::kind_type::sequences; };
  units_ = total > 0 || std::any_of(parts_.begin(), parts_.end(), has_nodes_inside) ? 1 : 0;  // also if they are all empty
  per_unit_ = total;
  if (parts_.size() != 1 || parts_[0].kind != dataset_part::kind_type::array) return;
  const array_plan& plan = *array(0);
  if (total == 0) {
    if (plan.writes_beyond()) units_ = 1;
    return;
  }
  if (assumes_something(plan) || (data.nothing_stored() && !plan.is_complete()) || !data.can_be_walked()) return;
  divisible_ = true;
  const std::uint64_t plain = array::product(
      array::extents{data.shards.chunk_elements(), data.grid.chunk_elements(), std::max<std::size_t>(1, parts_[0].view.size)});
  const std::uint64_t bytes_per_shard = std::max<std::uint64_t>(1, data.stored_bytes > 0 ? data.stored_bytes / total : plain);
  const std::uint64_t unit_bytes = std::clamp(data.stored_bytes / units_per_dataset, min_unit_bytes, max_unit_bytes);
  per_unit_ = std::clamp<std::uint64_t>(unit_bytes / bytes_per_shard, 1, max_unit_chunks);
  // most of it may be empty, or in the store already
  if (data.layout == H5D_VIRTUAL || in_store(data.object)) per_unit_ = std::max(per_unit_, total / max_sparse_units);
  units_ = total / per_unit_ + (total % per_unit_ != 0);
}

chunk_range dataset_plan::unit(std::uint64_t number) const {
  const std::uint64_t total = data.shards.chunks(), first = number * per_unit_, count = std::min(per_unit_, total - first);
  if (total == 0) return {};
  return {first, count,
          static_cast<std::uint64_t>(static_cast<double>(data.stored_bytes) *
                                     (static_cast<double>(count) / static_cast<double>(total)))};
}

std::optional<std::uint64_t> dataset_plan::unit_of(std::string_view text) const {
  const auto coordinates = metadata::chunk_coordinates(text);
  if (!coordinates || coordinates->size() < data.shards.rank()) return {};  // zeros of further dimensions follow
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < data.shards.rank(); ++d) {
    if ((*coordinates)[d] >= data.shards.chunks_along(d)) return {};
    number = number * data.shards.chunks_along(d) + (*coordinates)[d];
  }
  return number / per_unit_;
}

}  // namespace zarrbits::conversion
