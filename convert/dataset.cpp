// SPDX-License-Identifier: BSL-1.0
//
// What kind of node(s) a dataset becomes, and how its values are read. array_writer.cpp writes the chunks.
//
#include "convert/dataset.hpp"

#include "convert/array_writer.hpp"
#include "convert/attributes.hpp"
#include "convert/names.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace zarrbits::conversion {

dataset_job::dataset_job(conversion_context& context, const source_object& object) : context_(context), object_(object) {}

value_view dataset_job::make_view(const type_tree& type, std::vector<step> steps) const {
  value_view v;
  const type_tree* leaf = &type;
  while (leaf->kind == type_class::array) {
    steps.push_back({leaf, nullptr});
    leaf = &leaf->element();
  }
  v.leaf = leaf;
  v.memory = h5::handle(leaf->memory ? H5Tcopy(leaf->memory) : H5I_INVALID_HID);
  v.size = leaf->size;
  for (const step& s : steps) {
    if (s.array) v.extra.insert(v.extra.end(), s.array->dims.begin(), s.array->dims.end());
    if (s.member) v.whole = false;
  }
  if (!v.memory) return v;  // a compound of which only the members can be read
  for (std::size_t i = steps.size(); i-- > 0;) {
    h5::handle outer;
    if (const type_tree* a = steps[i].array) {
      outer = h5::handle(H5Tarray_create2(v.memory, static_cast<unsigned>(a->dims.size()), a->dims.data()), "make an array type");
      v.size *= static_cast<std::size_t>(product(a->dims));
    } else {
      outer = h5::handle(H5Tcreate(H5T_COMPOUND, v.size), "make a compound type");
      h5::check(H5Tinsert(outer, steps[i].member->name.c_str(), 0, v.memory), "make a compound type");
    }
    v.memory = std::move(outer);
  }
  return v;
}

void dataset_job::choose_grid() {
  grid_.shape = dims_;
  if (layout_ == H5D_CHUNKED) {
    grid_.chunk.resize(dims_.size());
    if (H5Pget_chunk(dcpl_, static_cast<int>(dims_.size()), grid_.chunk.data()) != static_cast<int>(dims_.size())) {
      throw skip_dataset("the chunk shape does not fit the dataspace");
    }
    for (const hsize_t c : grid_.chunk) {
      if (c == 0) throw skip_dataset("a chunk length is 0");
    }
  } else {
    const std::size_t element = holds_references(type_) ? std::max<std::size_t>(type_.size, 64) : std::max<std::size_t>(type_.size, 1);
    grid_.chunk = chunk_shape_for(dims_, element);
  }
}

json dataset_job::own_attributes() const {
  json own = json::object();
  const type_tree* t = &type_;
  while (t->kind == type_class::array) t = &t->element();
  const bool plain = (t->kind == type_class::integer || t->kind == type_class::floating || t->kind == type_class::complex) && t->stored.empty();
  if (t->kind == type_class::enumeration) own["enum"] = enumeration_members(*t);
  if (!plain && t->kind != type_class::boolean && t->kind != type_class::enumeration && !(t->kind == type_class::text && t->variable)) {
    own["hdf5_type"] = type_description(*t);
  }
  if (std::find(max_dims_.begin(), max_dims_.end(), H5S_UNLIMITED) != max_dims_.end() || max_dims_ != dims_) {
    json list = json::array();
    for (const hsize_t m : max_dims_) list.push_back(m == H5S_UNLIMITED ? json(nullptr) : json(m));
    own["maxshape"] = std::move(list);  // null: unlimited
  }
  return own;
}

void dataset_job::run(converted_object& entry, std::vector<converted_object>& attributes_report) {
  entry_ = &entry;
  const h5::handle object = context_.source.open(object_);
  dataset_ = h5::handle(H5Dopen2(object, ".", H5P_DEFAULT));
  if (!dataset_) {  // an object id of a dataset is a dataset id
    H5Eclear2(H5E_DEFAULT);
    H5Iinc_ref(object);
    dataset_ = h5::handle(object.get());
  }
  stored_type_ = h5::handle(H5Dget_type(dataset_), "tell the datatype");
  space_ = h5::handle(H5Dget_space(dataset_), "tell the dataspace");
  dcpl_ = h5::handle(H5Dget_create_plist(dataset_), "tell the properties");
  type_ = describe_type(stored_type_);
  layout_ = H5Pget_layout(dcpl_);
  pipeline_ = read_pipeline(dcpl_);
  external_ = H5Pget_external_count(dcpl_) > 0;
  entry.source_bytes = H5Dget_storage_size(dataset_);
  if (const std::string why = unsupported_reason(type_); !why.empty()) throw skip_dataset("its datatype is not supported: " + why);

  const type_tree* leaf = &type_;
  while (leaf->kind == type_class::array) leaf = &leaf->element();
  json attributes = convert_attributes(dataset_, entry.path, context_.source, leaf, attributes_report);
  const bool null = H5Sget_simple_extent_type(space_) == H5S_NULL;
  if (!null) {
    dims_ = h5::extent(space_);
    max_dims_ = h5::maximum_extent(space_);
  }
  json own = own_attributes();
  if (null) own["null_dataspace"] = true;
  if (!own.empty()) attributes[own_key] = std::move(own);
  if (null) {
    array_metadata m;
    m.shape = {0};
    m.chunk = {1};
    json type = zarr_data_type(*leaf);
    const bool fixed = !type.is_null();
    m.data_type = fixed ? type : json("uint8");
    const buffer zeros(leaf->size);
    m.fill_value = fixed ? fill_json(*leaf, zeros.data()) : json(0);
    m.codecs = bytes_codecs(m.data_type, fixed && has_byte_order(*leaf), false, 0);
    m.attributes = std::move(attributes);
    m.dimension_names = context_.dimensions.phony(object_.store_path.substr(0, object_.store_path.rfind('/')), m.shape);
    context_.out.put(metadata_key(object_.store_path), array_text(m));
    entry.outcome = outcome::mapped;
    return;
  }
  choose_grid();
  write_view(make_view(type_, {}), {}, object_.store_path, std::move(attributes));
}

void dataset_job::write_view(const value_view& view, const std::vector<step>& steps, const std::string& store_path, json attributes) {
  const type_tree& leaf = *view.leaf;
  if (leaf.kind == type_class::sequence) {
    entry_->outcome = outcome::mapped;
    return write_sequences(view, store_path, std::move(attributes));
  }
  if (leaf.kind == type_class::compound && zarr_data_type(leaf).is_null()) {
    std::vector<step> inner = steps;
    const type_tree* t = steps.empty() ? &type_ : steps.back().member;
    for (; t && t->kind == type_class::array; t = &t->element()) inner.push_back({t, nullptr});
    entry_->outcome = outcome::mapped;
    return write_members(leaf, inner, store_path, std::move(attributes));
  }
  write_array(view, store_path, std::move(attributes));
}

void dataset_job::write_members(const type_tree& compound, const std::vector<step>& steps, const std::string& store_path, json attributes) {
  for (const type_tree& m : compound.parts) {
    std::vector<step> inner = steps;
    inner.push_back({nullptr, &m});
    json own = json::object();
    const type_tree* t = &m;
    while (t->kind == type_class::array) t = &t->element();
    if (t->kind == type_class::enumeration) own[own_key] = {{"enum", enumeration_members(*t)}};
    const value_view view = make_view(m, inner);
    write_view(view, inner, join_path(store_path, node_name(m.name)), std::move(own));
  }
  entry_->outcome = outcome::mapped;
  context_.out.put(metadata_key(store_path), group_text(attributes));
}

void dataset_job::write_array(const value_view& view, const std::string& store_path, json attributes) {
  array_writer(context_, *this, view, store_path, std::move(attributes)).run();
}

void dataset_job::read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                             const std::vector<hsize_t>& room, buffer& out) const {
  if (out.size() < product(room) * size) throw skip_dataset("a block that does not fit in memory");
  if (dims_.empty()) {
    h5::check(H5Dread(dataset_, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "read the values");
    return;
  }
  const h5::handle file_space(H5Scopy(space_), "copy a dataspace");
  h5::check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), "select a block");
  const h5::handle memory_space(H5Screate_simple(static_cast<int>(room.size()), room.data(), nullptr), "make a dataspace");
  const std::vector<hsize_t> zero(room.size(), 0);
  h5::check(H5Sselect_hyperslab(memory_space, H5S_SELECT_SET, zero.data(), nullptr, count.data(), nullptr), "select a block");
  h5::check(H5Dread(dataset_, memory, memory_space, file_space, H5P_DEFAULT, out.data()), "read the values");
}

bool dataset_job::nothing_stored() const {
  return layout_ == H5D_CONTIGUOUS && !external_ && H5Dget_storage_size(dataset_) == 0;
}

// Where libhdf5 looks: the name as it is, beside the source, and below the prefix that the environment names.
bool dataset_job::virtual_source_exists(std::size_t mapping) const {
  const ssize_t length = H5Pget_virtual_filename(dcpl_, mapping, nullptr, 0);
  if (length <= 0 || length > 65536) return true;
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  if (H5Pget_virtual_filename(dcpl_, mapping, name.data(), name.size()) < 0) return true;
  name.resize(static_cast<std::size_t>(length));
  if (name == ".") {  // this file; the dataset may lie behind an external link
    const ssize_t n = H5Pget_virtual_dsetname(dcpl_, mapping, nullptr, 0);
    if (n <= 0 || n > 65536) return true;
    std::string dataset(static_cast<std::size_t>(n) + 1, '\0');
    if (H5Pget_virtual_dsetname(dcpl_, mapping, dataset.data(), dataset.size()) < 0 || dataset.find('%') != std::string::npos) return true;
    const h5::handle there(H5Dopen2(context_.source.file(), dataset.c_str(), H5P_DEFAULT));
    H5Eclear2(H5E_DEFAULT);
    return static_cast<bool>(there);
  }
  if (name.find('%') != std::string::npos) return true;  // names that are made while reading
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(context_.options.source).parent_path();
  std::error_code e;
  if (fs::exists(name, e) || fs::exists(beside / name, e) || fs::exists(beside / fs::path(name).filename(), e)) return true;
  const char* prefix = std::getenv("HDF5_VDS_PREFIX");
  if (!prefix) return false;
  std::string folder = prefix;
  if (folder.starts_with("${ORIGIN}")) folder = beside.string() + folder.substr(9);
  return fs::exists(fs::path(folder) / name, e);
}

// For virtual datasets: whether a block can hold mapped values at all. Of a virtual dataset of terabytes with few sources, only
// these blocks are read.
std::function<bool(const std::vector<hsize_t>&, const std::vector<hsize_t>&)> dataset_job::mapped_test() const {
  struct box {
    std::vector<hsize_t> low, high;
  };
  std::vector<box> boxes;
  std::size_t n = 0;
  if (layout_ != H5D_VIRTUAL || H5Pget_virtual_count(dcpl_, &n) < 0 || n > 100000) return {};
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!virtual_source_exists(i)) {
      ++missing;
      continue;
    }
    const h5::handle space(H5Pget_virtual_vspace(dcpl_, i));
    box b{std::vector<hsize_t>(dims_.size()), std::vector<hsize_t>(dims_.size())};
    if (!space || H5Sget_simple_extent_ndims(space) != static_cast<int>(dims_.size()) ||
        H5Sget_select_bounds(space, b.low.data(), b.high.data()) < 0) {
      H5Eclear2(H5E_DEFAULT);
      return {};  // an unlimited selection: any block may be mapped
    }
    boxes.push_back(std::move(b));
  }
  if (missing > 0) {
    entry_->lossy = true;
    entry_->reason = counted(missing, "source") + " of the virtual dataset cannot be found; what they hold reads as the fill value";
  }
  return [boxes = std::move(boxes)](const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) {
    return std::any_of(boxes.begin(), boxes.end(), [&](const box& b) {
      for (std::size_t d = 0; d < first.size(); ++d) {
        if (first[d] > b.high[d] || first[d] + count[d] <= b.low[d]) return false;
      }
      return true;
    });
  };
}

}  // namespace zarrbits::conversion
