// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/file_reader.hpp"

#include "convert/concat/cf_terms.hpp"
#include "convert/concat/compare_files.hpp"
#include "convert/concat/joined_axis.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/file_references.hpp"
#include "hdf5/source_dataset.hpp"
#include "text/cf_calendar.hpp"
#include "text/node_names.hpp"
#include "text/shown.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace zarrbits::conversion {

namespace {

using kind_type = hdf5::source_object::kind_type;
using different = concatenation::different_type;

constexpr std::size_t most_places = 64;  // chunks of a dataset that are kept in memory
// What values mean: these are compared, and put in one file's terms.
const std::set<std::string> cf_attributes = {"scale_factor", "add_offset", "_FillValue", "missing_value", "units", "calendar"};

// Asked for now, the file need not be opened once more for each of its variables.
std::vector<hdf5::stored_place> places_of(const hdf5::source_dataset& data) {
  try {
    return data.places_of_chunks(most_places);
  } catch (const hdf5::failure&) {  // told where the chunks are read
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
}

haddr_t info_address(hid_t object) {
  H5O_info_t info{};
  hdf5::check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "get information about an object");
  return info.addr;
}

std::string text_or_none(hid_t object, const char* name) {
  const std::vector<std::string> text = hdf5::text_attribute(object, name);
  return text.size() == 1 ? text[0] : "";
}

std::vector<double> values_of(const hdf5::source_dataset& data) {
  compressors::buffer bytes(static_cast<std::size_t>(data.dims[0]) * sizeof(double));
  if (!bytes.empty()) data.read_block(H5T_NATIVE_DOUBLE, sizeof(double), {0}, data.dims, data.dims, bytes);
  std::vector<double> values(static_cast<std::size_t>(data.dims[0]));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

file_reader::file_reader(hdf5::source_file& first, const setting& all)
    : first_(first), all_(all), concat_(*all.options.concat), wanted_(all.options.include, all.options.exclude) {
  for (const variable& v : all_.variables) joined_.insert(first_.objects()[v.object].store_path);
  lenders_ = all_.store ? unit_lenders_in(all_.store->nodes()) : unit_lenders_in(first_);
}

hdf5::handle file_reader::lender_of(const std::string& store_path, hid_t dataset, const hdf5::source_file& file, const objects& there) {
  const bool has_units = H5Aexists(dataset, "units") > 0;
  if (has_units && (H5Aexists(dataset, "calendar") > 0 || !text::is_time_units(text_or_none(dataset, "units")))) return {};
  if (!own_lenders_) own_lenders_ = unit_lenders_in(file);
  for (const unit_lenders* known : {&std::as_const(lenders_), &std::as_const(*own_lenders_)}) {
    const auto lender = known->find(store_path);
    if (lender == known->end()) continue;
    const auto object = there.find(lender->second);
    if (object != there.end() && object->second->kind == kind_type::dataset) return file.open(*object->second);
  }
  return {};
}

std::uint64_t file_reader::memory() const { return std::max<std::uint64_t>(all_.options.memory, 16U << 20); }

file_metadata file_reader::read(std::size_t k) {
  file_metadata found;
  try {
    found.why = hdf5::reason_to_skip([&] { read_file(k, found); });
  } catch (const unjoinable& e) {
    found.why = e.what();
    found.stops = true;
  } catch (const zarrbits::error& e) {
    found.why = e.what();
  }
  return found;
}

void file_reader::read_file(std::size_t k, file_metadata& found) {
  const source_name name = split_source(all_.names[k]);
  const std::shared_ptr<hdf5::source_file> other = k == 0 ? nullptr : all_.files.open(name.file);
  hdf5::source_file& file = k == 0 ? first_ : *other;
  found.state = file.state();
  if (k > 0) {
    file.walk(all_.tells_case_apart, name.object);
    rules_ = conventions::find_convention(file, all_.options.convention, rules_);
    conventions::arrange(file, rules_);
  }
  own_lenders_.reset();
  objects there;
  for (const hdf5::source_object& o : file.objects()) there[o.store_path] = &o;
  for (std::size_t v = 0; v < all_.variables.size(); ++v) add_part(k, v, file, there, found);
  if (all_.store) compare_with_store(k, file, found);
  else if (k > 0) compare_rest(k, file, there, found);
}

// Of integers: what a reader sees who is not told that it means a missing value.
std::string file_reader::fill_of(const hdf5::source_object& model) const {
  if (all_.store) return "";
  std::int64_t value = 0;
  const hdf5::source_dataset data(first_, model);
  if (H5Tget_class(data.stored_type) != H5T_INTEGER || H5Aexists(data.dataset, "_FillValue") > 0 ||
      H5Pget_fill_value(data.dcpl, H5T_NATIVE_INT64, &value) < 0)
    return "";
  return ", " + std::to_string(value) + ", which nothing marks as missing (it has no \"_FillValue\")";
}

void file_reader::add_part(std::size_t k, std::size_t variable, hdf5::source_file& file, const objects& there, file_metadata& found) {
  const auto& v = all_.variables[variable];
  const hdf5::source_object& model = first_.objects()[v.object];
  const auto at = there.find(model.store_path);
  if (at == there.end() || at->second->kind != kind_type::dataset) {
    found.remarks.push_back({"it has no \"" + model.path + "\": its part reads as the fill value" + fill_of(model)});
    return;
  }
  const hdf5::source_object& o = *at->second;
  const hdf5::source_dataset data(file, o);
  const auto axis = axis_of(concat_, file, o, data);
  const auto refuse = [&](const std::string& what) {
    throw unjoinable(
        "\"" + model.path + "\" of \"" + all_.names[0] + "\" and of \"" + all_.names[k] + "\" cannot be joined: " + what,
        {all_.names[k], model.path});
  };
  if (axis != v.axis || data.dims.size() != v.dims.size()) refuse("its dimensions differ");
  for (std::size_t d = 0; d < v.dims.size(); ++d) {
    if ((concat_.is_new || d != v.axis) && data.dims[d] != v.dims[d])
      refuse("along another dimension they have " + std::to_string(v.dims[d]) + " and " + std::to_string(data.dims[d]) +
             " elements");
  }
  if (hdf5::holds_references(data.type) && !(data.type.kind == hdf5::type_class::text))
    throw unjoinable("\"" + o.path + "\" of \"" + all_.names[k] +
                         "\" cannot be joined: its values are references or sequences; leave it out with `exclude`",
                     {all_.names[k], o.path});
  found_part part;
  part.variable = variable;
  part.form = form_of(data, lender_of(model.store_path, data.dataset, file, there));
  part.address = info_address(data.dataset);
  part.count = concat_.is_new ? 1 : data.dims[v.axis];
  part.room = part.count;
  if (!concat_.is_new && o.arranged.shape.size() > v.axis) part.room = std::max<hsize_t>(part.room, o.arranged.shape[v.axis]);
  part.stored = data.stored_bytes;
  part.nothing_stored = data.nothing_stored();
  if (part.count > 0) part.chunks = places_of(data);
  if (v.dimension == model.store_path && data.dims.size() == 1 && !concat_.allow_overlap && part.form.terms.kind.size > 0) {
    if (const std::string name = lacks_packing(part.form.terms); !name.empty())
      throw unjoinable("\"" + model.path + "\" of \"" + all_.names[k] + "\" cannot be joined: its \"" + name +
                           "\" is not a single number that can be read exactly, and the order of its values cannot be checked; "
                           "`allow_overlap` skips the check",
                       {all_.names[k], model.path});
    part.values = values_of(data);
  }
  found.parts.push_back(std::move(part));
  if (k > 0) compare_attributes(model, file, data.dataset, &data.leaf(), true, found);
}

void file_reader::compare_attributes(const hdf5::source_object& model, hdf5::source_file& file, hid_t object, const hdf5::type_tree* leaf,
                                     bool joined, file_metadata& found) {
  std::vector<hdf5::attribute_report> unused;
  auto known = attributes_.find(model.store_path);
  if (known == attributes_.end()) {
    const hdf5::handle mine = first_.open(model);
    std::optional<hdf5::type_tree> type;
    if (model.kind == kind_type::dataset) {
      type = hdf5::describe_type(hdf5::handle(H5Dget_type(mine), "get the datatype"));
    }
    hdf5::file_references references(first_, mine);
    text::json all = hdf5::convert_attributes(mine, references, type ? &*type : nullptr, {}, memory(), unused);
    known = attributes_.emplace(model.store_path, std::move(all)).first;
  }
  hdf5::file_references references(file, object);
  const text::json theirs = hdf5::convert_attributes(object, references, leaf, {}, memory(), unused);
  std::string names;
  for (const std::string& name : differing_attributes(known->second, theirs)) {
    if (!joined || !cf_attributes.contains(name)) names += (names.empty() ? "\"" : ", \"") + text::shown(name) + "\"";
  }
  if (names.empty()) return;
  found.remarks.push_back({"its attributes " + names + " of \"" + model.path + "\" differ from the first file's, which are kept",
                           joined ? "" : model.store_path, false, true});
}

// What is not joined is the same in all files.
void file_reader::compare_rest(std::size_t k, hdf5::source_file& file, const objects& there, file_metadata& found) {
  const auto differs = [&](const std::string& path, const std::string& store_path, const std::string& what) {
    if (concat_.different == different::refuse) {
      throw unjoinable("\"" + path + "\" of \"" + all_.names[0] + "\" and of \"" + all_.names[k] + "\" is not joined, and " +
                           what + "; leave it out with `exclude`, or set `different`",
                       {all_.names[k], path});
    }
    const bool skip = concat_.different == different::skip;
    if (skip) left_out_.insert(store_path);
    found.remarks.push_back(
        {"\"" + path + "\": " + what + "; " + (skip ? "it is left out" : "the first file's is kept"), store_path, skip});
  };
  std::set<std::string> known;
  for (const hdf5::source_object& o : first_.objects()) {
    known.insert(o.store_path);
    if (joined_.contains(o.store_path) || left_out_.contains(o.store_path)) continue;
    const auto at = there.find(o.store_path);
    if (at == there.end() || at->second->kind != o.kind) {
      differs(o.path, o.store_path, "is not in the other file");
      continue;
    }
    const hdf5::handle object = file.open(*at->second);
    if (o.kind == kind_type::dataset) {
      const hdf5::source_dataset mine(first_, o), theirs(file, *at->second);
      if (const std::string what = difference(mine, theirs); !what.empty()) differs(o.path, o.store_path, what);
      compare_attributes(o, file, object, &theirs.leaf(), false, found);
    } else if (o.kind == kind_type::group) {
      compare_attributes(o, file, object, nullptr, false, found);
    } else if (o.kind == kind_type::dimension && text::leaf_of(o.store_path) != concat_.dimension &&
               o.arranged.shape != at->second->arranged.shape) {
      differs(o.path, o.store_path, "the dimension's lengths differ");
    }
  }
  for (const auto& [path, o] : there) {
    if (known.contains(path) || o->kind == kind_type::group || !wanted_.wants(o->path)) continue;
    if (concat_.different == different::refuse) {
      throw unjoinable("\"" + o->path + "\" is in \"" + all_.names[k] + "\", and not in \"" + all_.names[0] +
                           "\", the first; put a file first that has everything, leave it out with `exclude`, or set `different`",
                       {all_.names[k], o->path});
    }
    found.remarks.push_back({"\"" + o->path + "\" is not in the first file, and is left out"});
  }
}

// What is not joined is the same in the store.
void file_reader::compare_with_store(std::size_t k, hdf5::source_file& file, file_metadata& found) {
  for (const hdf5::source_object& o : file.objects()) {
    if (o.kind != kind_type::dataset || joined_.contains(o.store_path) || !wanted_.wants(o.path)) continue;
    const std::string what = all_.store->difference(o.store_path, hdf5::source_dataset(file, o));
    if (what.empty()) continue;
    if (concat_.different == different::refuse) {
      throw unjoinable("\"" + o.path + "\" of \"" + all_.names[k] + "\" is not joined, and compared with \"" +
                           all_.store->name() + "\" " + what + "; leave it out with `exclude`, or set `different`",
                       {all_.names[k], o.path});
    }
    found.remarks.push_back({"\"" + o.path + "\": compared with the store, " + what + "; the store's is kept"});
  }
}

}  // namespace zarrbits::conversion
