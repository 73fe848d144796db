// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/variable.hpp"

#include "convert/hdf5/chunk_form.hpp"
#include "convert/text/names.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Of packed values: an array that is unpacked has none.
const std::vector<std::string> packing_attributes = {"scale_factor", "add_offset", "_FillValue", "missing_value",
                                                     "valid_min",    "valid_max",  "valid_range"};

bool both_are_text(const variant& a, const variant& b) {
  return H5Tis_variable_str(a.type) > 0 && H5Tis_variable_str(b.type) > 0;
}

}  // namespace

std::size_t variable::variant_of(const source_dataset& data, const std::string& name) {
  variant mine{terms_of(data.dataset),
               h5::handle(H5Tcopy(data.stored_type), "copy a type"),
               {},
               chunk_form(data.dcpl, data.stored_type),
               name};
  if (data.layout == H5D_CHUNKED) {
    mine.chunk.resize(data.dims.size());
    H5Pget_chunk(data.dcpl, static_cast<int>(mine.chunk.size()), mine.chunk.data());
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const variant& known = variants[i];
    if (known.terms == mine.terms && known.chunk == mine.chunk && known.layout == mine.layout &&
        H5Tequal(known.type, mine.type) > 0)
      return i;
  }
  variants.push_back(std::move(mine));
  return variants.size() - 1;
}

void variable::finish(source_object& o, hsize_t length, const std::shared_ptr<const joined_files>& files,
                      std::vector<joined_source>& sources) const {
  auto made = std::make_shared<joined_parts>();
  made->axis = axis;
  made->length = length;
  made->stored_bytes = stored;
  made->files = files;
  std::map<std::vector<hsize_t>, std::uint64_t> shapes;
  std::vector<cf_terms> terms;
  std::vector<std::string> who;
  for (const variant& each : variants) {
    shapes[each.chunk] += each.parts;
    terms.push_back(each.terms);
    who.push_back(each.file);
    if (each.terms.kind.size == 0 && H5Tequal(each.type, variants[0].type) <= 0 && !both_are_text(each, variants[0])) {
      throw unjoinable("\"" + o.path + "\" of \"" + who[0] + "\" and of \"" + each.file +
                       "\" cannot be joined: their datatypes differ");
    }
  }
  made->chunk =
      std::max_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  if (variants[0].chunk.empty()) made->chunk.clear();
  const agreement way = agree(terms, who, o.path);
  const bool other_type = way.unpacked || way.terms.kind != terms[0].kind;
  if (other_type) made->type = h5::handle(H5Tcopy(native_type(way.terms.kind)), "copy a type");
  made->missing_is_nan = way.unpacked;
  if (way.unpacked) made->without = packing_attributes;
  std::vector<std::shared_ptr<const value_change>> changes;
  for (const cf_terms& t : terms) changes.push_back(change_of(t, way));
  for (const draft_part& p : parts) {
    const variant &mine = variants[p.variant], &model = variants[0];
    const bool alike = !other_type && !changes[p.variant] && !mine.chunk.empty() && mine.chunk == made->chunk &&
                       mine.layout == model.layout && H5Tequal(mine.type, model.type) > 0;
    made->list.push_back({p.file, p.address, p.first, p.count, alike, changes[p.variant]});
    if (changes[p.variant] && p.variant > 0 && !way.unpacked)
      sources[p.file].notes.push_back("\"" + o.path + "\": its values are put in the terms of the first file");
    if (other_type) {
      sources[p.file].notes.push_back("\"" + o.path + "\": stored " + (way.unpacked ? "unpacked, as " : "as ") +
                                      (way.terms.kind.integer ? "integers" : "floats") + " of " +
                                      std::to_string(8 * way.terms.kind.size) + " bits, for " + way.why);
    }
  }
  if (o.arranged.shape.size() > axis) o.arranged.shape[axis] = made->length;
  o.joined = std::move(made);
}

}  // namespace zarrbits::conversion
