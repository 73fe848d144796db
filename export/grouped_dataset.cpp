// SPDX-License-Identifier: BSL-1.0
#include "export/grouped_dataset.hpp"

#include "array/box.hpp"
#include "codecs/codec_chain.hpp"
#include "export/dataset_spec.hpp"
#include "export/netcdf_types.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace zarrbits::exporting {

using zarr::store_folder;
using zarr::zarr_array;
using zarr::zarr_kind;

namespace {

std::uint64_t elements_in(const array::extents& shape) {
  const std::uint64_t n = array::product(shape);
  if (n == UINT64_MAX) throw unsupported_in_hdf5(reason_code::too_large, "an array of more than 2^64 elements");
  return n;
}

store_folder child_of(const store_folder& folder, const store_node& node, const std::string& name) {
  for (const store_folder& child : folder.nodes()) {
    if (name_in_file(node, child.leaf_name()) == name) return child;
  }
  throw unsupported_in_hdf5(reason_code::damaged, "the member \"" + name + "\" of its notes is not in the store");
}

// All elements of an array, in C order.
zarr::element_buffer all_elements(const zarr_array& array, std::uint64_t memory) {
  const std::vector<std::uint64_t>& shape = array.shape();
  const std::uint64_t elements = elements_in(shape);
  const std::size_t size = array.type().variable() ? sizeof(std::string) : array.type().size;
  if (elements > memory / std::max<std::size_t>(size, 1))
    throw unsupported_in_hdf5(reason_code::too_large,
                              "a part of it takes more than " + text::format_bytes(memory) + "; increase `memory`");
  zarr::element_buffer result;
  const zarr::element_buffer& fill = array.fill();
  if (array.type().variable()) {
    result.strings.assign(static_cast<std::size_t>(elements), fill.strings[0]);
  } else {
    result.data.resize(static_cast<std::size_t>(elements) * size);
    array::fill_elements(result.data, fill.data);
  }
  const auto chunks = array.list_chunks(static_cast<std::size_t>(memory / 256));
  if (!chunks)
    throw unsupported_in_hdf5(reason_code::too_large, "a part of it has more chunks than `memory` can list; increase it");
  const array::box whole{array::extents(shape.size(), 0), shape};
  std::uint64_t text = 0;
  for (const zarr_array::chunk_index& index : *chunks) {
    zarr::element_buffer values;
    if (!array.read_chunk(index, values)) continue;
    array::box chunk{{}, array.shape_of(index)};
    for (std::size_t d = 0; d < shape.size(); ++d) chunk.first.push_back(array.grid(d).start(index[d]));
    const array::box shared = array::intersect(chunk, whole);
    if (!array.type().variable()) {
      array::copy_elements(values.data, chunk, result.data, whole, shared, size);
      continue;
    }
    array::for_each_run(chunk, whole, shared, [&](std::uint64_t source, std::uint64_t target, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) {
        std::string& value = values.strings[static_cast<std::size_t>(source + i)];
        text += value.size();
        if (text > memory)
          throw unsupported_in_hdf5(reason_code::too_large,
                                    "its strings take more than " + text::format_bytes(memory) + "; increase `memory`");
        result.strings[static_cast<std::size_t>(target + i)] = std::move(value);
      }
    });
  }
  return result;
}

// Values of a type, by their number.
class value_source {
 public:
  virtual ~value_source() = default;
  virtual std::uint64_t count() const = 0;
  virtual void put(std::uint64_t i, std::byte* out) = 0;
};

struct source_context {
  std::uint64_t memory;
  reference_maker& references;
  value_arena& arena;
};

class leaf_source final : public value_source {
 public:
  leaf_source(const type_spec& form, const store_folder& folder, const source_context& context)
      : spec_(form), context_(context), array_(folder, codecs::make_decoder), values_(all_elements(array_, context.memory)) {
    const zarr::zarr_type& type = array_.type();
    // bytes are in a dimension of their own
    bytes_ = form.kind == type_kind::bytes && type.kind == zarr_kind::unsigned_integer && type.size == 1;
    same_layout_ = !bytes_ && is_same_layout(form, type);
  }
  std::uint64_t count() const override {
    if (array_.type().variable()) return values_.strings.size();
    return values_.data.size() / (bytes_ ? spec_.size : array_.type().size);
  }
  void put(std::uint64_t i, std::byte* out) override {
    const zarr::zarr_type& type = array_.type();
    if (type.variable()) return write_text_value(spec_, values_.strings[i], out, context_.references, context_.arena);
    if (bytes_ || same_layout_) {
      std::memcpy(out, values_.data.data() + i * spec_.size, spec_.size);
      if (same_layout_) set_order(spec_, out, 1);
      return;
    }
    write_element(spec_, type, values_.data.data() + i * type.size, out, context_.references, context_.arena);
  }

 private:
  const type_spec& spec_;
  const source_context& context_;
  zarr_array array_;
  zarr::element_buffer values_;
  bool bytes_ = false, same_layout_ = false;
};

std::unique_ptr<value_source> make_source(const type_spec& form, const store_folder& folder, const source_context& context,
                                          unsigned level);

class compound_source final : public value_source {
 public:
  compound_source(const type_spec& form, const store_folder& folder, const source_context& context) : spec_(form) {
    const store_node node = read_store_node(folder);
    for (const member_spec& m : form.members) {
      members_.push_back(make_source(m.type, child_of(folder, node, m.name), context, 0));
      if (members_.back()->count() != members_.front()->count())
        throw unsupported_in_hdf5(reason_code::damaged, "its members differ in length");
    }
  }
  std::uint64_t count() const override { return members_.front()->count(); }
  void put(std::uint64_t i, std::byte* out) override {
    for (std::size_t m = 0; m < members_.size(); ++m) members_[m]->put(i, out + spec_.members[m].offset);
  }

 private:
  const type_spec& spec_;
  std::vector<std::unique_ptr<value_source>> members_;
};

class list_source final : public value_source {
 public:
  list_source(const type_spec& form, const store_folder& folder, const source_context& context)
      : spec_(form), inner_(elements_in(form.dims)), base_(make_source(form.base(), folder, context, 0)) {
    if (base_->count() % inner_ != 0) throw unsupported_in_hdf5(reason_code::damaged, "its arrays differ in length");
  }
  std::uint64_t count() const override { return base_->count() / inner_; }
  void put(std::uint64_t i, std::byte* out) override {
    for (std::uint64_t k = 0; k < inner_; ++k) base_->put(i * inner_ + k, out + k * spec_.base().size);
  }

 private:
  const type_spec& spec_;
  std::uint64_t inner_;
  std::unique_ptr<value_source> base_;
};

class sequence_source final : public value_source {
 public:
  sequence_source(const type_spec& form, const store_folder& folder, const source_context& context, unsigned level)
      : spec_(form), context_(context) {
    const zarr_array offsets(folder / (level == 0 ? "offsets" : "offsets_" + std::to_string(level)), codecs::make_decoder);
    const zarr::zarr_type& type = offsets.type();
    const bool number = type.kind == zarr_kind::signed_integer || type.kind == zarr_kind::unsigned_integer;
    if (!number || type.size != 8 || offsets.shape().size() != 1)
      throw unsupported_in_hdf5(reason_code::damaged, "its offsets are not a list of integers");
    const zarr::element_buffer values = all_elements(offsets, context.memory);
    offsets_.resize(values.data.size() / 8);
    std::memcpy(offsets_.data(), values.data.data(), values.data.size());
    const bool nested = form.base().kind == type_kind::sequence;
    base_ = make_source(form.base(), nested ? folder : folder / "values", context, nested ? level + 1 : 0);
    if (offsets_.empty() || !std::is_sorted(offsets_.begin(), offsets_.end()) || offsets_.back() > base_->count())
      throw unsupported_in_hdf5(reason_code::damaged, "its offsets do not fit its values");
  }
  std::uint64_t count() const override { return offsets_.size() - 1; }
  void put(std::uint64_t i, std::byte* out) override {
    const std::uint64_t n = offsets_[i + 1] - offsets_[i];
    hvl_t v{static_cast<std::size_t>(n), nullptr};
    if (n > 0) {
      std::byte* items = context_.arena.block(static_cast<std::size_t>(n) * spec_.base().size);
      for (std::uint64_t k = 0; k < n; ++k) base_->put(offsets_[i] + k, items + k * spec_.base().size);
      v.p = items;
    }
    std::memcpy(out, &v, sizeof v);
  }

 private:
  const type_spec& spec_;
  const source_context& context_;
  std::vector<std::uint64_t> offsets_;
  std::unique_ptr<value_source> base_;
};

std::unique_ptr<value_source> make_source(const type_spec& form, const store_folder& folder, const source_context& context,
                                          unsigned level) {
  // what Zarr has as one array is one, whatever its type
  const bool leaf = zarr::kind_of(folder) == metadata::node_kind::array;
  switch (form.kind) {
    case type_kind::sequence: return std::make_unique<sequence_source>(form, folder, context, level);
    case type_kind::array: return std::make_unique<list_source>(form, folder, context);
    case type_kind::compound:
      if (!leaf) return std::make_unique<compound_source>(form, folder, context);
      [[fallthrough]];
    default: return std::make_unique<leaf_source>(form, folder, context);
  }
}

array::extents extents_in(const text::json& list) {
  array::extents out;
  if (!list.is_array()) throw unsupported_in_hdf5(reason_code::damaged, "a note on its shape that is not a list of extents");
  for (const text::json& e : list) {
    if (!e.is_number_unsigned())
      throw unsupported_in_hdf5(reason_code::damaged, "a note on its shape that is not a list of extents");
    out.push_back(e.get<std::uint64_t>());
  }
  return out;
}

// The extents of the dataset, by those of its parts.
array::extents shape_of(const type_spec& form, const store_folder& folder) {
  array::extents inner;
  const type_spec* base = &form;
  for (; base->kind == type_kind::array; base = &base->base()) inner.insert(inner.end(), base->dims.begin(), base->dims.end());
  array::extents shape;
  if (zarr::kind_of(folder) == metadata::node_kind::array) {
    const zarr_array array(folder, codecs::make_decoder);
    shape.assign(array.shape().begin(), array.shape().end());
    if (base->kind == type_kind::bytes && array.type().kind == zarr_kind::unsigned_integer && array.type().size == 1)
      inner.push_back(base->size);
  } else {
    const store_node node = read_store_node(folder);
    if (base->kind == type_kind::sequence) shape = extents_in(node.note("shape"));
    else if (base->kind == type_kind::compound)
      shape = shape_of(base->members[0].type, child_of(folder, node, base->members[0].name));
    else throw unsupported_in_hdf5(reason_code::damaged, "a group where its notes have a number");
  }
  const bool fits = shape.size() >= inner.size() &&
                    std::equal(inner.begin(), inner.end(), shape.end() - static_cast<std::ptrdiff_t>(inner.size()));
  if (!fits)
    throw unsupported_in_hdf5(reason_code::damaged, "a part whose last dimensions are not those of the type in its notes");
  shape.resize(shape.size() - inner.size());
  return shape;
}

}  // namespace

std::string name_in_file(const store_node& group, const std::string& stored) {
  const text::json& names = group.note("names");
  if (!names.is_object()) return stored;
  const auto entry = names.find(stored);
  if (entry == names.end()) return stored;
  if (entry->is_string()) return entry->get<std::string>();
  const text::json text = entry->is_object() ? entry->value("base64", text::json()) : text::json();
  const auto bytes = text.is_string() ? text::decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : stored;
}

bool is_grouped_dataset(const store_node& node) { return !node.is_array && node.note("hdf5_type").is_object(); }

grouped_spec grouped_spec_of(const store_folder& folder, const store_node& node, const spec_rules& rules) {
  grouped_spec f;
  f.type = spec_of_note(node.note("hdf5_type"), rules);
  if (const text::json& extents = node.note("array_type"); extents.is_array() && !extents.empty())
    f.type = array_spec(std::move(f.type), extents_in(extents));
  if (rules.netcdf_types) {
    if (f.type.kind == type_kind::array)
      throw unsupported_in_hdf5(reason_code::unsupported_type, "an array of an array type, which netCDF does not have");
    f.type = netcdf_spec(std::move(f.type));
  }
  f.dims = shape_of(f.type, folder);
  if (f.dims.size() > H5S_MAX_RANK)
    throw unsupported_in_hdf5(reason_code::unsupported_feature, "an array of more than 32 dimensions");
  f.max_dims = max_dims_of(node, f.dims);
  if (f.max_dims == f.dims || f.dims.empty()) return f;
  std::uint64_t remaining = 1024;  // values in a chunk
  f.chunk.assign(f.dims.size(), 1);
  for (std::size_t d = f.dims.size(); d-- > 0;) {
    f.chunk[d] = std::max<std::uint64_t>(1, std::min<std::uint64_t>({remaining, f.dims[d] ? f.dims[d] : 1, f.max_dims[d]}));
    remaining = std::max<std::uint64_t>(1, remaining / f.chunk[d]);
  }
  for (std::uint64_t& m : f.max_dims) m = std::max<std::uint64_t>(m, 1);
  return f;
}

void write_grouped(hid_t dataset, const store_folder& folder, const grouped_spec& form, std::uint64_t memory,
                   reference_maker& references) {
  const std::uint64_t count = elements_in(form.dims);
  value_arena arena(memory / 2);
  const source_context context{memory / 4, references, arena};
  const auto source = make_source(form.type, folder, context, 0);
  if (source->count() != count)
    throw unsupported_in_hdf5(reason_code::damaged, "its parts have another length than its shape in the notes");
  if (count == 0) return;
  if (count > memory / 4 / form.type.size)
    throw unsupported_in_hdf5(reason_code::too_large,
                              "it takes more than " + text::format_bytes(memory / 4) + "; increase `memory`");
  std::vector<std::byte> values(static_cast<std::size_t>(count) * form.type.size);
  for (std::uint64_t i = 0; i < count; ++i) source->put(i, values.data() + i * form.type.size);
  if (count == 1 || !form.type.must_be_written_alone()) {
    hdf5::check(H5Dwrite(dataset, form.type.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "write values");
    return;
  }
  const hdf5::handle space(H5Dget_space(dataset), "get a dataspace"), one(H5Screate(H5S_SCALAR), "create a dataspace");
  array::extents index(form.dims.size(), 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    hdf5::check(H5Sselect_elements(space, H5S_SELECT_SET, 1, hdf5::to_hsize(index).data()), "select a value");
    hdf5::check(H5Dwrite(dataset, form.type.memory, one, space, H5P_DEFAULT, values.data() + i * form.type.size), "write values");
    array::next_index(index, form.dims);
  }
}

}  // namespace zarrbits::exporting
