// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/variable.hpp"

#include "hdf5/chunk_form.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Attributes of packed values: an unpacked array has none of them.
const std::vector<std::string> packing_attributes = {"scale_factor", "add_offset", "_FillValue", "missing_value",
                                                     "valid_min",    "valid_max",  "valid_range"};

// True if two shapes differ at most in the length along the axis.
bool same_across(array::extents a, const array::extents& b, std::size_t axis) {
  if (axis < a.size() && a.size() == b.size()) a[axis] = b[axis];
  return a == b;
}

std::string growth_text(const number_kind& from, const number_kind& to) {
  return from.size == 0 || to.size <= from.size
             ? ""
             : " (" + std::to_string(to.size / from.size) + " times as large, before compression)";
}

bool both_are_text(const variant& a, const variant& b) {
  return H5Tis_variable_str(a.type) > 0 && H5Tis_variable_str(b.type) > 0;
}

}  // namespace

void add_note(joined_source& source, std::string text, bool minor) {
  const std::size_t minor_count = minor ? 0 : source.minor_notes;
  source.notes.insert(source.notes.end() - static_cast<std::ptrdiff_t>(minor_count), std::move(text));
  if (minor) ++source.minor_notes;
}

variant form_of(const hdf5::opened_dataset& data, hid_t lender) {
  variant form{read_cf_encoding(data.dataset, lender),
               hdf5::handle(H5Tcopy(data.stored_type), "copy a type"),
               {},
               hdf5::chunk_form(data.dcpl, data.stored_type),
               {}};
  if (data.layout == H5D_CHUNKED) {
    form.chunk = hdf5::chunk_extent(data.dcpl);
    form.chunk.resize(data.dims.size());
  }
  return form;
}

std::size_t variable::variant_of(variant form) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const variant& candidate = variants[i];
    if (candidate.encoding == form.encoding && candidate.chunk == form.chunk && candidate.layout == form.layout &&
        H5Tequal(candidate.type, form.type) > 0)
      return i;
  }
  variants.push_back(std::move(form));
  return variants.size() - 1;
}

void variable::finish(hdf5::source_object& o, std::uint64_t length, const std::shared_ptr<const hdf5::source_files>& files,
                      std::vector<joined_source>& sources, const std::string& store, const std::string& added) {
  auto result = std::make_shared<joined_parts>();
  result->axis = axis;
  result->length = length;
  result->stored_bytes = stored;
  result->nothing_stored = nothing_stored;
  result->files = files;
  std::map<array::extents, std::uint64_t> shapes;
  std::vector<cf_encoding> terms;
  std::vector<std::string> file_names;
  for (const variant& form : variants) {
    shapes[form.chunk] += form.parts;
    terms.push_back(form.encoding);
    file_names.push_back(form.file);
    if (form.encoding.kind.size == 0 && H5Tequal(form.type, variants[0].type) <= 0 && !both_are_text(form, variants[0])) {
      throw unjoinable(
          "\"" + o.path + "\" of \"" + file_names[0] + "\" and of \"" + form.file + "\" cannot be joined: their datatypes differ",
          {form.file, o.path});
    }
  }
  result->chunk =
      std::max_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  if (variants[0].chunk.empty()) result->chunk.clear();
  const array::extents chunk_of_file = result->chunk;
  if (!added.empty() && !result->chunk.empty()) result->chunk.insert(result->chunk.begin(), 1);
  o.overrides.new_dimension = added;
  // booleans have no terms, and are int8 in the files
  if (existing && existing->data_type == "bool") std::fill(terms.begin(), terms.end(), cf_encoding());
  std::vector<cf_encoding> encodings = terms;
  if (existing) {  // in its terms
    result->existing = existing;
    result->chunk.assign(existing->chunk.begin(), existing->chunk.begin() + static_cast<std::ptrdiff_t>(dims.size()));
    // an enumeration has no terms, and is integers in the store
    const bool enumeration = H5Tget_class(variants[0].type) == H5T_ENUM;
    encodings.insert(encodings.begin(),
                     enumeration ? cf_encoding() : stored_cf_encoding(*node, *existing, terms[0], units_source));
    file_names.insert(file_names.begin(), store);
  }
  const reconciled_encoding reconciled = reconcile(encodings, file_names, o.path, existing != nullptr);
  if (existing && (reconciled.encoding.kind != encodings[0].kind ||
                   (reconciled.unpacked && (encodings[0].scale || encodings[0].offset || encodings[0].kind.is_integer)))) {
    throw unjoinable("\"" + o.path + "\" cannot be appended to \"" + store + "\", where it would need a different type: " +
                         reconciled.reason + "; make the store again from all files with `concat`",
                     {store, o.path});
  }
  const bool other_type = existing ? existing->missing && H5Tequal(variants[0].type, existing->number) <= 0 &&
                                         H5Tget_class(variants[0].type) != H5T_ENUM
                                   : reconciled.unpacked || reconciled.encoding.kind != terms[0].kind;
  if (other_type)
    result->type =
        hdf5::handle(H5Tcopy(existing ? existing->number.get() : native_type(reconciled.encoding.kind)), "copy a type");
  result->missing_is_nan = reconciled.unpacked;
  if (reconciled.unpacked) result->removed_attributes = packing_attributes;
  std::vector<std::shared_ptr<const value_change>> changes;
  for (const cf_encoding& t : terms) changes.push_back(change_of(t, reconciled));
  for (pending_part& p : parts) {
    const variant &part_spec = variants[p.variant], &model = variants[0];
    const array::extents& target_chunk = existing ? result->chunk : chunk_of_file;
    const bool alike = !other_type && !changes[p.variant] && !part_spec.chunk.empty() &&
                       (added.empty() ? same_across(part_spec.chunk, target_chunk, axis) : part_spec.chunk == target_chunk) &&
                       part_spec.layout == model.layout && H5Tequal(part_spec.type, model.type) > 0;
    const std::uint64_t own_length = !alike ? 0 : added.empty() ? part_spec.chunk[axis] : 1;
    result->list.push_back({p.file, p.address, p.first, p.count, alike, own_length, changes[p.variant], {}});
    if (alike) result->list.back().chunks = std::move(p.chunks);
    if (changes[p.variant] && (existing || (p.variant > 0 && !reconciled.unpacked)))
      add_note(sources[p.file],
               "\"" + o.path + "\": its values are converted to the encoding of the " + (existing ? "store" : "first file"));
    if (other_type && !existing) {
      add_note(sources[p.file], "\"" + o.path + "\": stored " + (reconciled.unpacked ? "unpacked, as " : "as ") +
                                    (reconciled.encoding.kind.is_integer ? "integers" : "floats") + " of " +
                                    std::to_string(8 * reconciled.encoding.kind.size) + " bits" +
                                    growth_text(terms[p.variant].kind, reconciled.encoding.kind) + ", for " + reconciled.reason);
    }
  }
  if (!added.empty() && !o.overrides.shape.empty()) o.overrides.shape.insert(o.overrides.shape.begin(), result->length);
  else if (o.overrides.shape.size() > axis) o.overrides.shape[axis] = result->length;
  o.joined = std::move(result);
}

}  // namespace zarrbits::conversion
