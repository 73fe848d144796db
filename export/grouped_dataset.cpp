// SPDX-License-Identifier: BSL-1.0
#include "export/grouped_dataset.hpp"

#include "export/dataset_form.hpp"
#include "export/netcdf_types.hpp"
#include "text/base64.hpp"
#include "text/words.hpp"

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

std::uint64_t product(const std::vector<hsize_t>& extents) {
  std::uint64_t n = 1;
  for (const hsize_t e : extents) {
    if (__builtin_mul_overflow(n, e, &n)) throw not_expressible("an array of more than 2^64 elements");
  }
  return n;
}

store_folder child_of(const store_folder& folder, const store_node& node, const std::string& name) {
  for (const store_folder& child : folder.nodes()) {
    if (name_in_file(node, child.last()) == name) return child;
  }
  throw not_expressible("the member \"" + name + "\" of its notes is not in the store");
}

// All elements of an array, in C order.
zarr::zarr_values all_elements(const zarr_array& array, std::uint64_t memory) {
  const std::vector<std::uint64_t>& shape = array.shape();
  const std::uint64_t elements = product({shape.begin(), shape.end()});
  const std::size_t size = array.type().variable() ? sizeof(std::string) : array.type().size;
  if (elements > memory / std::max<std::size_t>(size, 1))
    throw not_expressible("a part of it takes more than " + text::human_bytes(memory) + "; increase `memory`");
  zarr::zarr_values all;
  const zarr::zarr_values& fill = array.fill();
  if (array.type().variable()) {
    all.strings.assign(static_cast<std::size_t>(elements), fill.strings[0]);
  } else {
    all.data.resize(static_cast<std::size_t>(elements) * size);
    for (std::size_t i = 0; i < elements; ++i) std::memcpy(all.data.data() + i * size, fill.data.data(), size);
  }
  const auto chunks = array.list_chunks(static_cast<std::size_t>(memory / 256));
  if (!chunks) throw not_expressible("a part of it has more chunks than `memory` can list; increase it");
  std::uint64_t text = 0;
  for (const zarr_array::chunk_index& at : *chunks) {
    zarr::zarr_values values;
    if (!array.read_chunk(at, values)) continue;
    const std::vector<std::uint64_t> chunk = array.shape_of(at);
    const std::size_t count =
        array.type().variable() ? values.strings.size() : values.data.size() / std::max<std::size_t>(size, 1);
    std::vector<std::uint64_t> in(shape.size(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t to = 0;
      bool within = true;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::uint64_t place = array.edges(d).start(at[d]) + in[d];
        within = within && place < shape[d];
        to = to * shape[d] + place;
      }
      if (within && array.type().variable()) {
        text += values.strings[i].size();
        if (text > memory)
          throw not_expressible("its strings take more than " + text::human_bytes(memory) + "; increase `memory`");
        all.strings[static_cast<std::size_t>(to)] = std::move(values.strings[i]);
      } else if (within) {
        std::memcpy(all.data.data() + to * size, values.data.data() + i * size, size);
      }
      for (std::size_t d = shape.size(); d-- > 0;) {
        if (++in[d] < chunk[d]) break;
        in[d] = 0;
      }
    }
  }
  return all;
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
  leaf_source(const type_form& form, const store_folder& folder, const source_context& context)
      : form_(form), context_(context), array_(folder), values_(all_elements(array_, context.memory)) {
    const zarr::zarr_type& type = array_.type();
    // bytes are in a dimension of their own
    bytes_ = form.kind == form_kind::bytes && type.kind == zarr_kind::unsigned_integer && type.size == 1;
    same_ = !bytes_ && is_same_layout(form, type);
  }
  std::uint64_t count() const override {
    if (array_.type().variable()) return values_.strings.size();
    return values_.data.size() / (bytes_ ? form_.size : array_.type().size);
  }
  void put(std::uint64_t i, std::byte* out) override {
    const zarr::zarr_type& type = array_.type();
    if (type.variable()) return put_text(form_, values_.strings[i], out, context_.references, context_.arena);
    if (bytes_ || same_) {
      std::memcpy(out, values_.data.data() + i * form_.size, form_.size);
      if (same_) set_order(form_, out, 1);
      return;
    }
    put_element(form_, type, values_.data.data() + i * type.size, out, context_.references, context_.arena);
  }

 private:
  const type_form& form_;
  const source_context& context_;
  zarr_array array_;
  zarr::zarr_values values_;
  bool bytes_ = false, same_ = false;
};

std::unique_ptr<value_source> make_source(const type_form& form, const store_folder& folder, const source_context& context,
                                          unsigned level);

class compound_source final : public value_source {
 public:
  compound_source(const type_form& form, const store_folder& folder, const source_context& context) : form_(form) {
    const store_node node = read_store_node(folder);
    for (const form_member& m : form.members) {
      members_.push_back(make_source(m.type, child_of(folder, node, m.name), context, 0));
      if (members_.back()->count() != members_.front()->count()) throw not_expressible("its members differ in length");
    }
  }
  std::uint64_t count() const override { return members_.front()->count(); }
  void put(std::uint64_t i, std::byte* out) override {
    for (std::size_t m = 0; m < members_.size(); ++m) members_[m]->put(i, out + form_.members[m].offset);
  }

 private:
  const type_form& form_;
  std::vector<std::unique_ptr<value_source>> members_;
};

class list_source final : public value_source {
 public:
  list_source(const type_form& form, const store_folder& folder, const source_context& context)
      : form_(form), inner_(product(form.dims)), base_(make_source(form.base(), folder, context, 0)) {
    if (base_->count() % inner_ != 0) throw not_expressible("its arrays differ in length");
  }
  std::uint64_t count() const override { return base_->count() / inner_; }
  void put(std::uint64_t i, std::byte* out) override {
    for (std::uint64_t k = 0; k < inner_; ++k) base_->put(i * inner_ + k, out + k * form_.base().size);
  }

 private:
  const type_form& form_;
  std::uint64_t inner_;
  std::unique_ptr<value_source> base_;
};

class sequence_source final : public value_source {
 public:
  sequence_source(const type_form& form, const store_folder& folder, const source_context& context, unsigned level)
      : form_(form), context_(context) {
    const zarr_array offsets(folder / (level == 0 ? "offsets" : "offsets_" + std::to_string(level)));
    const zarr::zarr_type& type = offsets.type();
    const bool number = type.kind == zarr_kind::signed_integer || type.kind == zarr_kind::unsigned_integer;
    if (!number || type.size != 8 || offsets.shape().size() != 1) throw not_expressible("its offsets are not a list of integers");
    const zarr::zarr_values all = all_elements(offsets, context.memory);
    offsets_.resize(all.data.size() / 8);
    std::memcpy(offsets_.data(), all.data.data(), all.data.size());
    const bool nested = form.base().kind == form_kind::sequence;
    base_ = make_source(form.base(), nested ? folder : folder / "values", context, nested ? level + 1 : 0);
    if (offsets_.empty() || !std::is_sorted(offsets_.begin(), offsets_.end()) || offsets_.back() > base_->count())
      throw not_expressible("its offsets do not fit its values");
  }
  std::uint64_t count() const override { return offsets_.size() - 1; }
  void put(std::uint64_t i, std::byte* out) override {
    const std::uint64_t n = offsets_[i + 1] - offsets_[i];
    hvl_t v{static_cast<std::size_t>(n), nullptr};
    if (n > 0) {
      std::byte* items = context_.arena.block(static_cast<std::size_t>(n) * form_.base().size);
      for (std::uint64_t k = 0; k < n; ++k) base_->put(offsets_[i] + k, items + k * form_.base().size);
      v.p = items;
    }
    std::memcpy(out, &v, sizeof v);
  }

 private:
  const type_form& form_;
  const source_context& context_;
  std::vector<std::uint64_t> offsets_;
  std::unique_ptr<value_source> base_;
};

std::unique_ptr<value_source> make_source(const type_form& form, const store_folder& folder, const source_context& context,
                                          unsigned level) {
  // what Zarr has as one array is one, whatever its type
  const bool leaf = zarr::kind_of(folder) == zarr::node_kind::array;
  switch (form.kind) {
    case form_kind::sequence: return std::make_unique<sequence_source>(form, folder, context, level);
    case form_kind::array: return std::make_unique<list_source>(form, folder, context);
    case form_kind::compound:
      if (!leaf) return std::make_unique<compound_source>(form, folder, context);
      [[fallthrough]];
    default: return std::make_unique<leaf_source>(form, folder, context);
  }
}

std::vector<hsize_t> extents_in(const text::json& list) {
  std::vector<hsize_t> out;
  if (!list.is_array()) throw not_expressible("a note on its shape that is not a list of extents");
  for (const text::json& e : list) {
    if (!e.is_number_unsigned()) throw not_expressible("a note on its shape that is not a list of extents");
    out.push_back(e.get<hsize_t>());
  }
  return out;
}

// The extents of the dataset, by those of its parts.
std::vector<hsize_t> shape_of(const type_form& form, const store_folder& folder) {
  std::vector<hsize_t> inner;
  const type_form* at = &form;
  for (; at->kind == form_kind::array; at = &at->base()) inner.insert(inner.end(), at->dims.begin(), at->dims.end());
  std::vector<hsize_t> shape;
  if (zarr::kind_of(folder) == zarr::node_kind::array) {
    const zarr_array array(folder);
    shape.assign(array.shape().begin(), array.shape().end());
    if (at->kind == form_kind::bytes && array.type().kind == zarr_kind::unsigned_integer && array.type().size == 1)
      inner.push_back(at->size);
  } else {
    const store_node node = read_store_node(folder);
    if (at->kind == form_kind::sequence) shape = extents_in(node.note("shape"));
    else if (at->kind == form_kind::compound) shape = shape_of(at->members[0].type, child_of(folder, node, at->members[0].name));
    else throw not_expressible("a group where its notes have a number");
  }
  const bool fits = shape.size() >= inner.size() &&
                    std::equal(inner.begin(), inner.end(), shape.end() - static_cast<std::ptrdiff_t>(inner.size()));
  if (!fits) throw not_expressible("a part whose last dimensions are not those of the type in its notes");
  shape.resize(shape.size() - inner.size());
  return shape;
}

}  // namespace

std::string name_in_file(const store_node& group, const std::string& stored) {
  const text::json& names = group.note("names");
  if (!names.is_object()) return stored;
  const auto found = names.find(stored);
  if (found == names.end()) return stored;
  if (found->is_string()) return found->get<std::string>();
  const text::json text = found->is_object() ? found->value("base64", text::json()) : text::json();
  const auto bytes = text.is_string() ? text::decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : stored;
}

bool is_grouped_dataset(const store_node& node) { return !node.is_array && node.note("hdf5_type").is_object(); }

grouped_form form_of_group(const store_folder& folder, const store_node& node, const form_rules& rules) {
  grouped_form f;
  f.type = form_of_note(node.note("hdf5_type"), rules);
  if (const text::json& extents = node.note("array_type"); extents.is_array() && !extents.empty())
    f.type = array_form(std::move(f.type), extents_in(extents));
  if (rules.netcdf_types) {
    if (f.type.kind == form_kind::array) throw not_expressible("an array of an array type, which netCDF does not have");
    f.type = netcdf_form(std::move(f.type));
  }
  f.dims = shape_of(f.type, folder);
  if (f.dims.size() > H5S_MAX_RANK) throw not_expressible("an array of more than 32 dimensions");
  f.most = limits_of(node, f.dims);
  if (f.most == f.dims || f.dims.empty()) return f;
  std::uint64_t room = 1024;  // values in a chunk
  f.chunk.assign(f.dims.size(), 1);
  for (std::size_t d = f.dims.size(); d-- > 0;) {
    f.chunk[d] = std::max<hsize_t>(1, std::min<hsize_t>({room, f.dims[d] ? f.dims[d] : 1, f.most[d]}));
    room = std::max<std::uint64_t>(1, room / f.chunk[d]);
  }
  for (hsize_t& m : f.most) m = std::max<hsize_t>(m, 1);
  return f;
}

void write_grouped(hid_t dataset, const store_folder& folder, const grouped_form& form, std::uint64_t memory,
                   reference_maker& references) {
  const std::uint64_t count = product(form.dims);
  value_arena arena(memory / 2);
  const source_context context{memory / 4, references, arena};
  const auto source = make_source(form.type, folder, context, 0);
  if (source->count() != count) throw not_expressible("its parts have another length than its shape in the notes");
  if (count == 0) return;
  if (count > memory / 4 / form.type.size)
    throw not_expressible("it takes more than " + text::human_bytes(memory / 4) + "; increase `memory`");
  std::vector<std::byte> values(static_cast<std::size_t>(count) * form.type.size);
  for (std::uint64_t i = 0; i < count; ++i) source->put(i, values.data() + i * form.type.size);
  if (count == 1 || !form.type.must_be_written_alone()) {
    hdf5::check(H5Dwrite(dataset, form.type.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "write values");
    return;
  }
  const hdf5::handle space(H5Dget_space(dataset), "get a dataspace"), one(H5Screate(H5S_SCALAR), "create a dataspace");
  std::vector<hsize_t> at(form.dims.size(), 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    hdf5::check(H5Sselect_elements(space, H5S_SELECT_SET, 1, at.data()), "select a value");
    hdf5::check(H5Dwrite(dataset, form.type.memory, one, space, H5P_DEFAULT, values.data() + i * form.type.size), "write values");
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < form.dims[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace zarrbits::exporting
