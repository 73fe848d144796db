// SPDX-License-Identifier: BSL-1.0
#include "repack/combined_files.hpp"

#include "convert/concat/compare_files.hpp"
#include "convert/concat/inherited_units.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/chunk_form.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/external_files.hpp"
#include "repack/equal_values.hpp"
#include "repack/reference_map.hpp"
#include "text/cf_calendar.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t max_coordinate_values = 1U << 24;  // of one file along a dimension
constexpr std::size_t max_named_notes = 20;

// What the values of a dataset mean: files whose terms differ have no common array.
constexpr const char* terms_of_values[] = {"units",     "calendar",      "scale_factor", "add_offset", "_FillValue",
                                           "_Unsigned", "missing_value", "valid_min",    "valid_max",  "valid_range"};

[[noreturn]] void refuse(const std::string& file, const std::string& path, const std::string& reason) {
  throw error(errc::not_joinable,
              "\"" + file + "\" cannot be combined with the other files: \"" + text::escape_name(path) + "\" " + reason,
              {file, path});
}
// The text of an attribute, or its numbers.
std::string text_of_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const hdf5::handle attribute(H5Aopen(object, name, H5P_DEFAULT), "open an attribute");
  const hdf5::handle type(H5Aget_type(attribute), "get the datatype of an attribute");
  const H5T_class_t kind = H5Tget_class(type);
  std::string result;
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    const hdf5::handle space(H5Aget_space(attribute), "get the dataspace of an attribute");
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (count <= 0 || count > 1024) return std::to_string(count) + " numbers";
    std::vector<long double> numbers(static_cast<std::size_t>(count));
    hdf5::check(H5Aread(attribute, H5T_NATIVE_LDOUBLE, numbers.data()), "read an attribute");
    for (const long double n : numbers) {
      char number[64];
      std::snprintf(number, sizeof number, "%.21Lg", n);
      result += (result.empty() ? "" : ", ") + std::string(number);
    }
    return result;
  }
  for (const std::string& s : hdf5::text_attribute(object, name)) result += (result.empty() ? "" : ", ") + s;
  return "\"" + result + "\"";
}

std::string encoded_type(hid_t type) {
  const hdf5::handle copy = conversion::in_native_order(type);
  std::size_t size = 0;
  hdf5::check(H5Tencode(copy, nullptr, &size), "describe a datatype");
  std::string bytes(size, '\0');
  hdf5::check(H5Tencode(copy, bytes.data(), &size), "describe a datatype");
  return bytes;
}
// As in a store, where inherited_units are found.
std::string store_path_of(const std::string& path) {
  std::string result;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    result += "/" + text::node_name(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}
// The datasets that lend others their units of time, by the paths of these.
std::map<std::string, const tree_object*> lenders_of_units(const opened_file& file) {
  std::map<std::string, const tree_object*> objects;  // by their paths in a store
  std::set<std::string> paths;
  for (const tree_object& o : file.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    const std::string path = store_path_of(o.path);
    if (paths.insert(path).second) objects[path] = &o;
  }
  std::string opened_path;
  hdf5::handle opened;
  const conversion::inherited_units lenders =
      conversion::find_inherited_units(paths, [&](const std::string& path, const char* name) -> std::string {
        if (opened_path != path) opened = open_object(file.file.file(), *objects.at(path));
        opened_path = path;
        if (H5Aexists(opened, name) <= 0) return "";
        const std::vector<std::string> texts = hdf5::text_attribute(opened, name);
        return texts.size() == 1 ? texts[0] : "";
      });
  std::map<std::string, const tree_object*> result;
  for (const tree_object& o : file.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    if (const auto entry = lenders.find(store_path_of(o.path)); entry != lenders.end())
      result[o.path] = objects.at(entry->second);
  }
  return result;
}
}  // namespace

void combined_dataset::add_layout(const combined_dataset& in_file) {
  const std::uint64_t chunks = layout.chunks + in_file.layout.chunks, bytes = layout.stored_bytes + in_file.layout.stored_bytes;
  if (layout.chunk.empty() && !in_file.layout.chunk.empty()) layout = in_file.layout;
  layout.chunks = chunks;
  layout.stored_bytes = bytes;
  largest_chunk_bytes = std::max(largest_chunk_bytes, in_file.largest_chunk_bytes);
}

void combined_files::read() {
  number_steps();
  for (std::size_t k = 0; k < options_.sources.size(); ++k) {
    report_progress(k);
    read_file(k);
  }
  require_dimensions();
  for (auto& [path, d] : datasets_) reconcile_times(path, d);
  for (auto& [path, blocks] : blocks_) blocks.arrange();
  for (auto& [path, d] : datasets_) place(path, d);
  compare_repeated();
  describe();
}

// Where the files are along the new dimension.
void combined_files::number_steps() {
  if (options_.new_dimension.empty()) return;
  std::map<std::string, std::uint64_t> folders;
  for (std::size_t k = 0; k < options_.sources.size(); ++k) {
    const std::string folder = std::filesystem::path(options_.sources[k]).lexically_normal().parent_path().string();
    steps_.push_back(!options_.places.empty()      ? options_.places[k][0]
                     : options_.dimensions.empty() ? k
                                                   : folders.try_emplace(folder, folders.size()).first->second);
  }
}

void combined_files::report_progress(std::size_t k) const {
  const std::string name = k < options_.sources.size() ? options_.sources[k] : options_.target;
  if (options_.progress) options_.progress(name, k, options_.sources.size());
}

std::shared_ptr<opened_file> combined_files::open(std::size_t k) const {
  return std::make_shared<opened_file>(options_.sources[k], source_options());
}

std::shared_ptr<const hdf5::source_file> combined_files::open_source(std::size_t k) const {
  auto file = std::make_shared<hdf5::source_file>(options_.sources[k], source_options());
  require_same(k, *file);
  return file;
}

hdf5::source_options combined_files::source_options() const {
  return {.remote = options_.remote, .lock = options_.lock, .netcdf3 = options_.netcdf3};
}

bool combined_files::is_tiled_name(const std::string& name) const {
  return std::find(options_.dimensions.begin(), options_.dimensions.end(), name) != options_.dimensions.end();
}

// The names of the dimensions, as paths of their scales; "" for those that are not among the options'.
std::vector<std::string> combined_files::axes_of(const opened_file& file, const tree_object& o, hid_t dataset,
                                                 std::size_t rank) const {
  std::vector<std::string> axes(rank);
  if (hdf5::is_dimension_scale(dataset)) {
    if (rank == 1 && is_tiled_name(text::base_name(o.path))) axes[0] = o.path;
    return axes;
  }
  const auto scales = hdf5::dimension_scales(dataset, rank);
  const std::vector<std::string> labels = scales.empty() && H5Aexists(dataset, "DIMENSION_LABELS") > 0
                                              ? hdf5::text_attribute(dataset, "DIMENSION_LABELS")
                                              : std::vector<std::string>();
  for (std::size_t d = 0; d < rank; ++d) {
    if (d < scales.size()) {
      for (const hobj_ref_t& reference : scales[d]) {
        const hdf5::handle scale(H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, &reference), "follow a reference");
        H5O_info_t info;
        std::memset(&info, 0, sizeof info);
        hdf5::check(H5Oget_info2(scale, &info, H5O_INFO_BASIC), "get information about a dimension");
        const auto object = file.tree.index.find(info.addr);
        if (object == file.tree.index.end()) continue;
        const std::string& path = file.tree.objects[object->second].path;
        if (axes[d].empty() && is_tiled_name(text::base_name(path))) axes[d] = path;
      }
    }
    if (axes[d].empty() && d < labels.size() && is_tiled_name(labels[d])) axes[d] = path_in_scope(file.tree, o.path, labels[d]);
  }
  // without scales and labels, a one-dimensional dataset is its own dimension
  if (rank == 1 && scales.empty() && labels.empty() && is_tiled_name(text::base_name(o.path))) axes[0] = o.path;
  return axes;
}

// Units and calendar, if the values are times.
std::optional<conversion::cf_encoding> combined_files::opened_part::times_of(const std::string& path, hid_t dataset) const {
  hdf5::handle lender;
  if (const auto entry = lenders.find(path); entry != lenders.end()) lender = open_object(file.file.file(), *entry->second);
  conversion::cf_encoding encoding = conversion::read_cf_encoding(dataset, lender);
  return text::is_time_units(encoding.units) ? std::optional(std::move(encoding)) : std::nullopt;
}

// The values of a coordinate variable, times in units of the first file that has it.
coordinate_blocks::values combined_files::coordinates_of(const opened_part& part, const std::string& path) {
  const tree_object& o = *part.file.tree.find(path);
  const hdf5::handle dataset = open_object(part.file.file.file(), o);
  coordinate_blocks::values values(static_cast<std::size_t>(part.file.contents.datasets.at(o.address).dims[0]));
  if (values.empty()) return values;
  hdf5::check_read(H5Dread(dataset, H5T_NATIVE_LDOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), dataset,
                   "read the coordinates");
  const auto times = part.times_of(path, dataset);
  if (!times) return values;
  const conversion::cf_encoding& first = first_times_.try_emplace(path, *times).first->second;
  if (times->units == first.units && times->calendar == first.calendar) return values;
  const auto epoch = text::parse_epoch(times->units, times->calendar), target = text::parse_epoch(first.units, first.calendar);
  if (!epoch || !target) return values;  // reconcile_times() refuses them
  for (long double& v : values)
    v = std::round(v * static_cast<long double>(epoch->unit) + static_cast<long double>(epoch->start - target->start)) /
        static_cast<long double>(target->unit);
  return values;
}

const block* combined_files::block_of(opened_part& part, const std::string& path, std::uint64_t length) {
  const auto [entry, is_new] = part.coordinates.try_emplace(path, nullptr);
  if (!is_new) return entry->second;
  entry->second = add_block(part, path, length);
  blocks_of_file_[part.number].emplace_back(path, entry->second);
  return entry->second;
}

const block* combined_files::add_block(opened_part& part, const std::string& path, std::uint64_t length) {
  const std::string& name = options_.sources[part.number];
  coordinate_blocks& blocks = blocks_.try_emplace(path, path).first->second;
  if (path == new_dimension_path()) return blocks.add(steps_[part.number], 1, {}, name);
  const tree_object* const o = part.file.tree.find(path);
  const bool is_dataset = o && o->kind == H5I_DATASET;
  const hdf5::handle dataset = is_dataset ? open_object(part.file.file.file(), *o) : hdf5::handle();
  const array::extents dims = is_dataset ? part.file.contents.datasets.at(o->address).dims : array::extents();
  const H5T_class_t kind = is_dataset ? H5Tget_class(hdf5::handle(H5Dget_type(dataset), "get the datatype")) : H5T_NO_CLASS;
  const bool has_values = is_dataset && !hdf5::is_dimension_without_variable(dataset);
  const bool has_numbers = dims.size() == 1 && (kind == H5T_INTEGER || kind == H5T_FLOAT);
  if (!options_.places.empty()) {
    const auto d = std::find(options_.dimensions.begin(), options_.dimensions.end(), text::base_name(path));
    const std::size_t column =
        static_cast<std::size_t>(d - options_.dimensions.begin()) + (options_.new_dimension.empty() ? 0 : 1);
    const bool is_compared = has_values && has_numbers && dims[0] <= max_coordinate_values;
    return blocks.add(options_.places[part.number][column], length,
                      is_compared ? coordinates_of(part, path) : coordinate_blocks::values(), name);
  }
  const std::string remedy =
      "; the files need a coordinate variable for each dimension that they are combined along, or a list of `places`";
  if (!is_dataset) refuse(name, path, "is not there" + remedy);
  if (!has_values) refuse(name, path, "has no values" + remedy);
  if (!has_numbers) refuse(name, path, "is not a list of numbers" + remedy);
  if (dims[0] > max_coordinate_values)
    refuse(
        name, path,
        "has more than " + std::to_string(max_coordinate_values) + " values; join the files along one dimension with `concat`");
  return blocks.add(coordinates_of(part, path), name);
}

void combined_files::read_file(std::size_t k) {
  with_file(k, [&](const std::string& name) {
    const opened_file file(name, source_options());
    const io::file_state& state = states_.emplace_back(file.file.state());
    combined_file& f = report_.files.emplace_back();
    f.file = name;
    f.bytes = state.size;
    f.version = std::to_string(state.size) + " " + std::to_string(state.seconds) + "." + std::to_string(state.nanoseconds) +
                (state.etag.empty() ? "" : " " + state.etag);
    blocks_of_file_.emplace_back();
    if (const std::string path = new_dimension_path(); !path.empty() && file.tree.find(path))
      refuse(name, path, "has the name of the new dimension; choose another name");
    opened_part part{k, file, lenders_of_units(file)};
    for (const tree_object& o : file.tree.objects) {
      if (o.kind == H5I_DATASET) read_dataset(part, o);
    }
  });
}

combined_dataset combined_files::describe_dataset(const opened_part& part, const tree_object& o, hid_t dataset) const {
  const hdf5::handle type = conversion::in_native_order(hdf5::handle(H5Dget_type(dataset), "get the datatype")),
                     properties(H5Dget_create_plist(dataset), "get the properties"),
                     space(H5Dget_space(dataset), "get the dataspace");
  const dataset_layout& l = part.file.contents.datasets.at(o.address);
  if (hdf5::is_aggregation_variable(dataset)) part.file.file.require_values(dataset);
  combined_dataset d;
  d.dims = l.dims;
  d.element_bytes = l.element_bytes;
  d.layout = l;
  d.largest_chunk_bytes = l.chunk.empty() ? 0 : array::saturating_mul(array::product(l.chunk), l.element_bytes);
  d.axes = axes_of(part.file, o, dataset, l.dims.size());
  d.is_dimension_without_values = d.is_tiled() && hdf5::is_dimension_without_variable(dataset);
  d.terms["datatype"] = encoded_type(type);
  d.terms["fill value"] = hdf5::fill_bytes(properties, type);
  for (const char* term : terms_of_values) d.terms[term] = text_of_attribute(dataset, term);
  if (auto times = part.times_of(o.path, dataset)) {
    d.terms["units"] = "\"" + times->units + "\"";
    d.time_units[times->units + "\n" + times->calendar] = 0;
    d.time_encodings.push_back(std::move(*times));
  }
  d.has_new_dimension = !options_.new_dimension.empty() && !hdf5::is_dimension_scale(dataset) && !d.is_coordinate(o.path) &&
                        H5Sget_simple_extent_type(space) != H5S_NULL;
  if (d.has_new_dimension) {
    d.dims.insert(d.dims.begin(), 1);
    d.axes.insert(d.axes.begin(), new_dimension_path());
    d.layout.max_dims.insert(d.layout.max_dims.begin(), 1);
    if (!l.chunk.empty()) d.layout.chunk.insert(d.layout.chunk.begin(), 1);
  }
  d.is_copied = d.dims.empty() || (l.linked_values && !d.is_tiled());
  if (d.is_tiled() && reference_map::has_references(type))
    refuse(options_.sources[part.number], o.path, "has references, which lead to objects of one file");
  return d;
}

void combined_files::require_same_terms(std::size_t k, const std::string& path, const combined_dataset& d,
                                        const combined_dataset& other) const {
  const std::string& name = options_.sources[k];
  if (d.dims.size() != other.dims.size() || d.has_new_dimension != other.has_new_dimension)
    refuse(name, path, "has another number of dimensions");
  if (d.axes != other.axes) refuse(name, path, "has other dimensions");
  const bool are_times = !d.time_encodings.empty() && !other.time_encodings.empty() && d.is_tiled();
  for (const auto& [term, value] : other.terms) {
    const std::string& first = d.terms.at(term);
    if (first == value || (are_times && (term == "units" || term == "calendar"))) continue;
    const bool is_text = term != "datatype" && term != "fill value";
    refuse(name, path,
           "has another " + term +
               (is_text ? " than in \"" + options_.sources[d.parts[0].file] + "\" (" + value + " and " + first + ")" : "") +
               "; convert it first, or leave the file out");
  }
  for (std::size_t i = 0; i < d.axes.size(); ++i) {
    if (d.axes[i].empty() && d.dims[i] != other.dims[i])
      refuse(name, path,
             "has another length along dimension " + std::to_string(i) + ": " + std::to_string(other.dims[i]) + " instead of " +
                 std::to_string(d.dims[i]) + "; name the dimension, if the files have parts of it");
  }
}

void combined_files::read_dataset(opened_part& part, const tree_object& o) {
  combined_dataset in_file = describe_dataset(part, o, open_object(part.file.file.file(), o));
  const auto [entry, is_new] = datasets_.try_emplace(o.path, in_file);
  combined_dataset& d = entry->second;
  if (is_new) order_.push_back(o.path);
  else {
    require_same_terms(part.number, o.path, d, in_file);
    d.add_layout(in_file);
  }
  combined_dataset::file_part& p = d.parts.emplace_back();
  p.file = part.number;
  if (!in_file.time_encodings.empty()) {
    const auto [units, is_first] = d.time_units.try_emplace(in_file.time_units.begin()->first, d.time_encodings.size());
    if (is_first) d.time_encodings.push_back(std::move(in_file.time_encodings[0]));
    p.encoding = units->second;
  }
  for (std::size_t i = 0; i < in_file.axes.size(); ++i) {
    const std::string& axis = in_file.axes[i];
    if (axis.empty()) continue;
    p.blocks.push_back(block_of(part, axis, in_file.dims[i]));
    if (p.blocks.back()->length != in_file.dims[i])
      refuse(options_.sources[part.number], o.path,
             "has " + std::to_string(in_file.dims[i]) + " elements along \"" + text::escape_name(axis) + "\", which has " +
                 std::to_string(p.blocks.back()->length));
  }
}

// What several files have in units of their own, the new file has in those of the first.
void combined_files::reconcile_times(const std::string& path, combined_dataset& d) const {
  if (d.time_encodings.size() < 2) return;
  std::vector<std::string> names(d.time_encodings.size());
  for (auto p = d.parts.rbegin(); p != d.parts.rend(); ++p) names[p->encoding] = options_.sources[p->file];
  d.stored_times = conversion::reconcile(d.time_encodings, names, text::escape_name(path), false);
  const conversion::cf_encoding &first = d.time_encodings[0], &stored = d.stored_times->encoding;
  if (stored.kind == first.kind) return;
  if (first.fill || first.missing)
    refuse(names[1], path, "has other units of time than in \"" + names[0] + "\", and missing values; convert it first");
  d.stored_type = H5T_IEEE_F64LE;
}

combined_files::loaded_values combined_files::load(const opened_file& file, const std::string& path,
                                                   const combined_dataset::file_part& p) const {
  const combined_dataset& d = datasets_.at(path);
  const hdf5::handle dataset = open_object(file.file.file(), *file.tree.find(path));
  file.file.require_values(dataset);
  const auto change = d.stored_times ? conversion::change_of(d.time_encodings[p.encoding], *d.stored_times) : nullptr;
  const auto copy_of = [](hid_t type) { return hdf5::handle(H5Tcopy(type), "copy a datatype"); };
  loaded_values result{change ? copy_of(change->source_type())
                              : conversion::in_native_order(hdf5::handle(H5Dget_type(dataset), "get the datatype")),
                       {}};
  const hsize_t n = array::product(shape_of(d, p));
  result.bytes.resize(static_cast<std::size_t>(n) * H5Tget_size(result.type));
  if (n == 0) return result;
  const hdf5::handle memory(H5Screate_simple(1, &n, nullptr), "create a dataspace");
  hdf5::check_read(H5Dread(dataset, result.type, memory, H5S_ALL, H5P_DEFAULT, result.bytes.data()), dataset, "read values");
  if (!change) return result;
  try {
    std::vector<std::byte> converted(result.bytes.size());
    change->apply(result.bytes.data(), converted.data(), static_cast<std::size_t>(n));
    return {copy_of(change->target_type()), std::move(converted)};
  } catch (const conversion::unrepresentable_value& e) {
    refuse(options_.sources[p.file], path, std::string("has another epoch than in the first file: ") + e.what());
  }
}

void combined_files::require_dimensions() const {
  for (const std::string& name : options_.dimensions) {
    const bool is_known =
        std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& b) { return text::base_name(b.first) == name; });
    if (!is_known)
      throw error(errc::no_match,
                  "no dataset of \"" + options_.sources[0] + "\" or the other files has a dimension \"" + name +
                      "\"; \"zarrbits inspect\" lists the datasets with their dimensions",
                  {options_.sources[0]});
  }
}

void combined_files::place(const std::string& path, combined_dataset& d) {
  d.shape = d.dims;
  for (std::size_t i = 0; i < d.axes.size(); ++i) {
    if (!d.axes[i].empty()) d.shape[i] = blocks_.at(d.axes[i]).length();
  }
  for (std::size_t i = 0; i < d.parts.size(); ++i) {
    const array::extents first = first_of(d, d.parts[i]);
    const std::vector<const block*>& blocks = d.parts[i].blocks;
    if (std::any_of(blocks.begin(), blocks.end(), [](const block* b) { return b->length == 0; })) continue;
    const auto [entry, is_new] = d.placed.try_emplace(first, i);
    const bool is_compared_already = d.is_coordinate(path) && (options_.places.empty() || !blocks[0]->coordinates.empty());
    if (!is_new && !is_compared_already && !d.is_dimension_without_values)
      repeated_[d.parts[i].file].push_back({path, entry->second, i});
  }
  const std::uint64_t stored = array::saturating_mul(array::product(d.shape), std::max<std::uint64_t>(d.element_bytes, 8));
  if (d.is_stored() && !d.is_dimension_without_values && stored > max_stored_bytes)
    refuse(options_.sources[d.parts[0].file], path,
           d.stored_times ? "is large, and its units of time differ between the files; convert it first"
                          : "is too large to be stored once for each step of the new dimension; leave it out of the files");
}

array::extents combined_files::first_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
  array::extents first(d.dims.size(), 0);
  for (std::size_t i = 0, b = 0; i < d.axes.size(); ++i) {
    if (!d.axes[i].empty()) first[i] = p.blocks[b++]->first;
  }
  return first;
}

array::extents combined_files::shape_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
  array::extents shape = d.dims;
  for (std::size_t i = 0, b = 0; i < d.axes.size(); ++i) {
    if (!d.axes[i].empty()) shape[i] = p.blocks[b++]->length;
  }
  return shape;
}

// Several files have values for one place.
void combined_files::compare_repeated() {
  const std::string remedy =
      options_.new_dimension.empty() || options_.dimensions.empty() || !options_.places.empty()
          ? ""
          : "; files in one folder are one step of \"" + options_.new_dimension + "\", a list of `places` says otherwise";
  std::size_t other = SIZE_MAX;
  std::shared_ptr<opened_file> other_file;
  for (const auto& [k, list] : repeated_) {
    with_file(k, [&, k = k, &list = list](const std::string& name) {
      const std::shared_ptr<opened_file> file = open(k);
      for (const repeated_part& r : list) {
        const std::string& path = r.path;
        combined_dataset& d = datasets_.at(path);
        if (d.is_left_out) continue;
        const std::size_t first = d.parts[r.first].file;
        if (other != first) other_file = open(other = first);
        if (d.parts[r.first].encoding == d.parts[r.part].encoding
                ? have_equal_values(*file, *other_file, path)
                : load(*file, path, d.parts[r.part]).bytes == load(*other_file, path, d.parts[r.first]).bytes)
          continue;
        const std::string reason = "differs from that of \"" + options_.sources[first] + "\", and both are for the same place";
        if (options_.different == combine_options::different_type::refuse)
          refuse(name, path, reason + "; see `different`, or leave it out of the files" + remedy);
        add_note("\"" + text::escape_name(path) + "\" of \"" + name + "\" " + reason +
                 (options_.different == combine_options::different_type::first ? "; that one is used" : "; it is left out"));
        d.is_left_out = options_.different == combine_options::different_type::skip;
      }
    });
  }
}

void combined_files::describe() {
  for (std::size_t k = 0; k < report_.files.size(); ++k) {
    for (const auto& [path, b] : blocks_of_file_[k]) report_.files[k].place.push_back({path, b->first, b->length});
  }
  for (const std::string& path : order_) {
    const combined_dataset& d = datasets_.at(path);
    std::uint64_t places = 1;
    for (const std::string& axis : d.axes) {
      if (!axis.empty()) places = array::saturating_mul(places, blocks_.at(axis).count());
    }
    if (const std::uint64_t missing = places - std::min<std::uint64_t>(places, d.placed.size());
        d.is_tiled() && !d.is_dimension_without_values && missing > 0)
      add_note(std::to_string(missing) + " of the " + text::pluralize(places, "part") + " of \"" + text::escape_name(path) +
               "\" " + (missing == 1 ? "is" : "are") + " in no file, and read" + (missing == 1 ? "s" : "") +
               " as the fill value");
  }
}

void combined_files::require_same(std::size_t k, const hdf5::source_file& file) const {
  if (file.state() != states_[k])
    throw error(errc::changed, "\"" + options_.sources[k] + "\" was changed while it was read; combine the files again",
                {options_.sources[k]});
}

void combined_files::add_note(std::string sentence) {
  if (report_.notes.size() < max_named_notes) report_.notes.push_back(std::move(sentence));
}

}  // namespace zarrbits::repacking
