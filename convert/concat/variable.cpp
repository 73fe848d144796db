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

// The same shape, but for the length along the axis.
bool same_across(std::vector<hsize_t> a, const std::vector<hsize_t>& b, std::size_t axis) {
  if (axis < a.size() && a.size() == b.size()) a[axis] = b[axis];
  return a == b;
}

bool both_are_text(const variant& a, const variant& b) {
  return H5Tis_variable_str(a.type) > 0 && H5Tis_variable_str(b.type) > 0;
}

}  // namespace

void add_note(joined_source& source, std::string text, bool minor) {
  const std::size_t before = minor ? 0 : source.minor_notes;
  source.notes.insert(source.notes.end() - static_cast<std::ptrdiff_t>(before), std::move(text));
  if (minor) ++source.minor_notes;
}

variant form_of(const hdf5::opened_dataset& data, hid_t lender) {
  variant form{terms_of(data.dataset, lender),
               hdf5::handle(H5Tcopy(data.stored_type), "copy a type"),
               {},
               hdf5::chunk_form(data.dcpl, data.stored_type),
               {}};
  if (data.layout == H5D_CHUNKED) {
    form.chunk.resize(data.dims.size());
    H5Pget_chunk(data.dcpl, static_cast<int>(form.chunk.size()), form.chunk.data());
  }
  return form;
}

std::size_t variable::variant_of(variant form) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const variant& known = variants[i];
    if (known.terms == form.terms && known.chunk == form.chunk && known.layout == form.layout &&
        H5Tequal(known.type, form.type) > 0)
      return i;
  }
  variants.push_back(std::move(form));
  return variants.size() - 1;
}

void variable::finish(hdf5::source_object& o, hsize_t length, const std::shared_ptr<const hdf5::source_files>& files,
                      std::vector<joined_source>& sources, const std::string& store, const std::string& added) {
  auto made = std::make_shared<joined_parts>();
  made->axis = axis;
  made->length = length;
  made->stored_bytes = stored;
  made->nothing_stored = nothing_stored;
  made->files = files;
  std::map<std::vector<hsize_t>, std::uint64_t> shapes;
  std::vector<cf_terms> terms;
  std::vector<std::string> who;
  for (const variant& each : variants) {
    shapes[each.chunk] += each.parts;
    terms.push_back(each.terms);
    who.push_back(each.file);
    if (each.terms.kind.size == 0 && H5Tequal(each.type, variants[0].type) <= 0 && !both_are_text(each, variants[0])) {
      throw unjoinable(
          "\"" + o.path + "\" of \"" + who[0] + "\" and of \"" + each.file + "\" cannot be joined: their datatypes differ",
          {each.file, o.path});
    }
  }
  made->chunk =
      std::max_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  if (variants[0].chunk.empty()) made->chunk.clear();
  const std::vector<hsize_t> chunk_of_file = made->chunk;
  if (!added.empty() && !made->chunk.empty()) made->chunk.insert(made->chunk.begin(), 1);
  o.arranged.new_dimension = added;
  // booleans have no terms, and are int8 in the files
  if (before && before->data_type == "bool") std::fill(terms.begin(), terms.end(), cf_terms());
  std::vector<cf_terms> all = terms;
  if (before) {  // in its terms
    made->before = before;
    made->chunk.assign(before->chunk.begin(), before->chunk.begin() + static_cast<std::ptrdiff_t>(dims.size()));
    // an enumeration has no terms, and is integers in the store
    const bool enumeration = H5Tget_class(variants[0].type) == H5T_ENUM;
    all.insert(all.begin(), enumeration ? cf_terms() : terms_in_store(*node, *before, terms[0], lender));
    who.insert(who.begin(), store);
  }
  const agreement way = agree(all, who, o.path, before != nullptr);
  if (before && (way.terms.kind != all[0].kind || (way.unpacked && (all[0].scale || all[0].offset || all[0].kind.integer)))) {
    throw unjoinable("\"" + o.path + "\" cannot be appended to \"" + store + "\", where it would need a different type: " +
                         way.why + "; make the store again from all files with `concat`",
                     {store, o.path});
  }
  const bool other_type =
      before ? before->missing && H5Tequal(variants[0].type, before->number) <= 0 && H5Tget_class(variants[0].type) != H5T_ENUM
             : way.unpacked || way.terms.kind != terms[0].kind;
  if (other_type) made->type = hdf5::handle(H5Tcopy(before ? before->number.get() : native_type(way.terms.kind)), "copy a type");
  made->missing_is_nan = way.unpacked;
  if (way.unpacked) made->without = packing_attributes;
  std::vector<std::shared_ptr<const value_change>> changes;
  for (const cf_terms& t : terms) changes.push_back(change_of(t, way));
  for (draft_part& p : parts) {
    const variant &mine = variants[p.variant], &model = variants[0];
    const std::vector<hsize_t>& wanted = before ? made->chunk : chunk_of_file;
    const bool alike = !other_type && !changes[p.variant] && !mine.chunk.empty() &&
                       (added.empty() ? same_across(mine.chunk, wanted, axis) : mine.chunk == wanted) &&
                       mine.layout == model.layout && H5Tequal(mine.type, model.type) > 0;
    const hsize_t own_length = !alike ? 0 : added.empty() ? mine.chunk[axis] : 1;
    made->list.push_back({p.file, p.address, p.first, p.count, alike, own_length, changes[p.variant], {}});
    if (alike) made->list.back().chunks = std::move(p.chunks);
    if (changes[p.variant] && (before || (p.variant > 0 && !way.unpacked)))
      add_note(sources[p.file],
               "\"" + o.path + "\": its values are converted to the encoding of the " + (before ? "store" : "first file"));
    if (other_type && !before) {
      add_note(sources[p.file], "\"" + o.path + "\": stored " + (way.unpacked ? "unpacked, as " : "as ") +
                                    (way.terms.kind.integer ? "integers" : "floats") + " of " +
                                    std::to_string(8 * way.terms.kind.size) + " bits, for " + way.why);
    }
  }
  if (!added.empty() && !o.arranged.shape.empty()) o.arranged.shape.insert(o.arranged.shape.begin(), made->length);
  else if (o.arranged.shape.size() > axis) o.arranged.shape[axis] = made->length;
  o.joined = std::move(made);
}

}  // namespace zarrbits::conversion
