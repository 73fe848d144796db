// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/file_reader.hpp"

#include "convert/concat/cf_encoding.hpp"
#include "convert/concat/compare_files.hpp"
#include "convert/concat/joined_axis.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/file_references.hpp"
#include "hdf5/source_dataset.hpp"
#include "text/cf_calendar.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace zarrbits::conversion {

namespace {

using kind_type = hdf5::source_object::kind_type;
using different = concatenation::different_type;

constexpr std::size_t max_places = 64;  // chunks of a dataset that are kept in memory
// What values mean: these are compared, and put in one file's terms.
const std::set<std::string> cf_attributes = {"scale_factor", "add_offset", "_FillValue", "missing_value", "units", "calendar"};

// Asked for now, the file need not be opened once more for each of its variables.
std::vector<hdf5::stored_place> places_of(const hdf5::source_dataset& data) {
  try {
    return data.places_of_chunks(max_places);
  } catch (const hdf5::failure&) {  // reported where the chunks are read
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
}

haddr_t info_address(hid_t object) {
  H5O_info_t info{};
  hdf5::check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "get information about an object");
  return info.addr;
}

// A netCDF variable may have the name of a dimension without being its coordinates: both have that path in the store.
std::string key_of(const hdf5::source_object& o) { return o.kind == kind_type::dimension ? o.store_path + "/" : o.store_path; }

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

file_reader::file_reader(hdf5::source_file& first, const setting& settings)
    : first_(first),
      settings_(settings),
      concat_(*settings.options.source.concat),
      selection_(settings.options.selection.include, settings.options.selection.exclude) {
  for (const variable& v : settings_.variables) joined_.insert(first_.objects()[v.object].store_path);
  inherited_units_ = settings_.store ? find_inherited_units(settings_.store->nodes()) : find_inherited_units(first_);
}

hdf5::handle file_reader::units_source(const std::string& store_path, hid_t dataset, const hdf5::source_file& file,
                                       const objects& file_objects) {
  const bool has_units = H5Aexists(dataset, "units") > 0;
  if (has_units && (H5Aexists(dataset, "calendar") > 0 || !text::is_time_units(text_or_none(dataset, "units")))) return {};
  if (!file_inherited_units_) file_inherited_units_ = find_inherited_units(file);
  for (const inherited_units* candidates : {&std::as_const(inherited_units_), &std::as_const(*file_inherited_units_)}) {
    const auto lender = candidates->find(store_path);
    if (lender == candidates->end()) continue;
    const auto object = file_objects.find(lender->second);
    if (object != file_objects.end() && object->second->kind == kind_type::dataset) return file.open(*object->second);
  }
  return {};
}

std::uint64_t file_reader::memory() const { return std::max<std::uint64_t>(settings_.options.execution.memory, 16U << 20); }

file_metadata file_reader::read(std::size_t k) {
  file_metadata result;
  try {
    result.reason = hdf5::skip_reason([&] { read_file(k, result); });
  } catch (const unjoinable& e) {
    result.reason = text::coded_reason{reason_code::not_joinable, e.what()};
    result.is_fatal = true;
  } catch (const zarrbits::error& e) {
    result.reason = text::coded_reason{text::reason_code_of(e.kind()), e.what()};
  }
  return result;
}

void file_reader::read_file(std::size_t k, file_metadata& result) {
  const source_name name = split_source(settings_.names[k]);
  const std::shared_ptr<hdf5::source_file> opened = k == 0 ? nullptr : settings_.files.open(name.file);
  hdf5::source_file& file = k == 0 ? first_ : *opened;
  result.state = file.state();
  if (k > 0) {
    file.walk(settings_.is_case_sensitive, name.object);
    rules_ = conventions::find_convention(file, settings_.options.target.convention, rules_);
    conventions::override_schema(file, rules_);
  }
  file_inherited_units_.reset();
  objects file_objects;
  for (const hdf5::source_object& o : file.objects()) file_objects[key_of(o)] = &o;
  for (std::size_t v = 0; v < settings_.variables.size(); ++v) add_part(k, v, file, file_objects, result);
  if (settings_.store) compare_with_store(k, file, result);
  else if (k > 0) compare_rest(k, file, file_objects, result);
}

// The fill value of integers that no attribute marks as missing, as the end of a sentence; else "".
std::string file_reader::fill_of(const hdf5::source_object& model) const {
  if (settings_.store) return "";
  std::int64_t value = 0;
  const hdf5::source_dataset data(first_, model);
  if (H5Tget_class(data.stored_type) != H5T_INTEGER || H5Aexists(data.dataset, "_FillValue") > 0 ||
      H5Pget_fill_value(data.dcpl, H5T_NATIVE_INT64, &value) < 0)
    return "";
  return ", " + std::to_string(value) + ", which nothing marks as missing (it has no \"_FillValue\")";
}

void file_reader::add_part(std::size_t k, std::size_t variable, hdf5::source_file& file, const objects& file_objects,
                           file_metadata& result) {
  const auto& v = settings_.variables[variable];
  const hdf5::source_object& model = first_.objects()[v.object];
  const auto match = file_objects.find(model.store_path);
  if (match == file_objects.end() || match->second->kind != kind_type::dataset) {
    result.notes.push_back({"it has no \"" + model.path + "\": its part reads as the fill value" + fill_of(model)});
    return;
  }
  const hdf5::source_object& o = *match->second;
  const hdf5::source_dataset data(file, o);
  const auto axis = axis_of(concat_, file, o, data);
  const auto refuse = [&](const std::string& reason) {
    throw unjoinable("\"" + model.path + "\" of \"" + settings_.names[0] + "\" and of \"" + settings_.names[k] +
                         "\" cannot be joined: " + reason,
                     {settings_.names[k], model.path});
  };
  if (axis != v.axis || data.dims.size() != v.dims.size()) refuse("its dimensions differ");
  for (std::size_t d = 0; d < v.dims.size(); ++d) {
    if ((concat_.is_new || d != v.axis) && data.dims[d] != v.dims[d])
      refuse("along another dimension they have " + std::to_string(v.dims[d]) + " and " + std::to_string(data.dims[d]) +
             " elements");
  }
  if (hdf5::holds_references(data.type) && !(data.type.kind == hdf5::type_class::text))
    throw unjoinable("\"" + o.path + "\" of \"" + settings_.names[k] +
                         "\" cannot be joined: its values are references or sequences; leave it out with `exclude`",
                     {settings_.names[k], o.path});
  variable_part part;
  part.variable = variable;
  part.form = form_of(data, units_source(model.store_path, data.dataset, file, file_objects));
  part.address = info_address(data.dataset);
  part.count = concat_.is_new ? 1 : data.dims[v.axis];
  part.dimension_length = part.count;
  if (!concat_.is_new && o.overrides.shape.size() > v.axis)
    part.dimension_length = std::max<std::uint64_t>(part.dimension_length, o.overrides.shape[v.axis]);
  part.stored = data.stored_bytes;
  part.nothing_stored = data.nothing_stored();
  if (part.count > 0) part.chunks = places_of(data);
  if (v.dimension == model.store_path && data.dims.size() == 1 && !concat_.allow_overlap && part.form.encoding.kind.size > 0) {
    if (const std::string name = unreadable_packing_attribute(part.form.encoding); !name.empty())
      throw unjoinable("\"" + model.path + "\" of \"" + settings_.names[k] + "\" cannot be joined: its \"" + name +
                           "\" is not a single number that can be read exactly, and the order of its values cannot be checked; "
                           "`allow_overlap` skips the check",
                       {settings_.names[k], model.path});
    part.values = values_of(data);
  }
  result.parts.push_back(std::move(part));
  if (k > 0) compare_attributes(model, file, data.dataset, &data.leaf(), true, result);
}

void file_reader::compare_attributes(const hdf5::source_object& model, hdf5::source_file& file, hid_t object,
                                     const hdf5::type_description* leaf, bool joined, file_metadata& result) {
  std::vector<hdf5::attribute_report> unused;
  auto cached = attributes_.find(model.store_path);
  if (cached == attributes_.end()) {
    const hdf5::handle model_object = first_.open(model);
    std::optional<hdf5::type_description> type;
    if (model.kind == kind_type::dataset) {
      type = hdf5::describe_type(hdf5::handle(H5Dget_type(model_object), "get the datatype"));
    }
    hdf5::file_references references(first_, model_object);
    text::json attributes = hdf5::convert_attributes(model_object, references, type ? &*type : nullptr, {}, memory(), unused);
    cached = attributes_.emplace(model.store_path, std::move(attributes)).first;
  }
  hdf5::file_references references(file, object);
  const text::json file_attributes = hdf5::convert_attributes(object, references, leaf, {}, memory(), unused);
  std::string names;
  for (const std::string& name : differing_attributes(cached->second, file_attributes)) {
    if (!joined || !cf_attributes.contains(name)) names += (names.empty() ? "\"" : ", \"") + text::escape_name(name) + "\"";
  }
  if (names.empty()) return;
  result.notes.push_back({"its attributes " + names + " of \"" + model.path + "\" differ from the first file's, which are kept",
                          joined ? "" : model.store_path, false, true});
}

// What is not joined is the same in all files.
void file_reader::compare_rest(std::size_t k, hdf5::source_file& file, const objects& file_objects, file_metadata& result) {
  const auto differs = [&](const std::string& path, const std::string& store_path, const std::string& reason) {
    if (concat_.different == different::refuse) {
      throw unjoinable("\"" + path + "\" of \"" + settings_.names[0] + "\" and of \"" + settings_.names[k] +
                           "\" is not joined, and " + reason + "; leave it out with `exclude`, or set `different`",
                       {settings_.names[k], path});
    }
    const bool skip = concat_.different == different::skip;
    if (skip) left_out_.insert(store_path);
    result.notes.push_back(
        {"\"" + path + "\": " + reason + "; " + (skip ? "it is left out" : "the first file's is kept"), store_path, skip});
  };
  std::set<std::string> first_paths;
  for (const hdf5::source_object& o : first_.objects()) {
    first_paths.insert(key_of(o));
    if (joined_.contains(key_of(o)) || left_out_.contains(o.store_path)) continue;
    const auto match = file_objects.find(key_of(o));
    if (match == file_objects.end() || match->second->kind != o.kind) {
      differs(o.path, o.store_path, "is not in the other file");
      continue;
    }
    const hdf5::handle object = file.open(*match->second);
    if (o.kind == kind_type::dataset) {
      const hdf5::source_dataset first_dataset(first_, o), file_dataset(file, *match->second);
      if (const std::string reason = difference(first_dataset, file_dataset); !reason.empty())
        differs(o.path, o.store_path, reason);
      compare_attributes(o, file, object, &file_dataset.leaf(), false, result);
    } else if (o.kind == kind_type::group) {
      compare_attributes(o, file, object, nullptr, false, result);
    } else if (o.kind == kind_type::dimension && text::base_name(o.store_path) != concat_.dimension &&
               o.overrides.shape != match->second->overrides.shape) {
      differs(o.path, o.store_path, "the dimension's lengths differ");
    }
  }
  for (const auto& [path, o] : file_objects) {
    if (first_paths.contains(path) || o->kind == kind_type::group || !selection_.matches(o->path)) continue;
    if (concat_.different == different::refuse) {
      throw unjoinable("\"" + o->path + "\" is in \"" + settings_.names[k] + "\", and not in \"" + settings_.names[0] +
                           "\", the first; put a file first that has everything, leave it out with `exclude`, or set `different`",
                       {settings_.names[k], o->path});
    }
    result.notes.push_back({"\"" + o->path + "\" is not in the first file, and is left out"});
  }
}

// What is not joined is the same in the store.
void file_reader::compare_with_store(std::size_t k, hdf5::source_file& file, file_metadata& result) {
  for (const hdf5::source_object& o : file.objects()) {
    if (o.kind != kind_type::dataset || joined_.contains(o.store_path) || !selection_.matches(o.path)) continue;
    const std::string reason = settings_.store->difference(o.store_path, hdf5::source_dataset(file, o));
    if (reason.empty()) continue;
    if (concat_.different == different::refuse) {
      throw unjoinable("\"" + o.path + "\" of \"" + settings_.names[k] + "\" is not joined, and compared with \"" +
                           settings_.store->name() + "\" " + reason + "; leave it out with `exclude`, or set `different`",
                       {settings_.names[k], o.path});
    }
    result.notes.push_back({"\"" + o.path + "\": compared with the store, " + reason + "; the store's is kept"});
  }
}

}  // namespace zarrbits::conversion
