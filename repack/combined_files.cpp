// SPDX-License-Identifier: BSL-1.0
#include "repack/combined_files.hpp"

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/chunk_form.hpp"
#include "hdf5/dimensions.hpp"
#include "repack/reference_map.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <cstdio>
#include <cstring>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t compared_bytes = 16U << 20;  // of a dataset, at a time
constexpr std::uint64_t max_sparse_bytes = 1U << 30,
                        max_expansion = 1000;              // of the bytes of a dataset that is compared to those that are stored
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
  const hdf5::handle copy(H5Tcopy(type), "copy a datatype");
  std::size_t size = 0;
  hdf5::check(H5Tencode(copy, nullptr, &size), "describe a datatype");
  std::string bytes(size, '\0');
  hdf5::check(H5Tencode(copy, bytes.data(), &size), "describe a datatype");
  return bytes;
}
// The dataset of this name in the object's group, or in one above.
std::string path_in_scope(const opened_file& file, const tree_object& o, const std::string& name) {
  for (std::string group = o.path; !group.empty();) {
    group.resize(group.rfind('/'));
    if (file.tree.find(group + "/" + name)) return group + "/" + name;
  }
  return "/" + name;
}
bool are_equal(const opened_file& a, const opened_file& b, const std::string& path) {
  const tree_object &in_a = *a.tree.find(path), &in_b = *b.tree.find(path);
  const hdf5::handle x = open_object(a.file.file(), in_a), y = open_object(b.file.file(), in_b);
  const hdf5::handle type(H5Dget_type(x), "get the datatype");
  if (reference_map::has_references(type)) return true;  // they lead to objects of their own files
  const array::extents dims = a.contents.datasets.at(in_a.address).dims;
  if (H5Sget_simple_extent_type(hdf5::handle(H5Dget_space(x), "get the dataspace")) == H5S_NULL) return true;
  a.file.require_values(x);
  b.file.require_values(y);
  const std::size_t size = H5Tget_size(type);
  const bool linked = reference_map::has_linked_values(type);
  const auto same = [&](hid_t memory, hid_t space_x, hid_t space_y, std::uint64_t n) {
    std::vector<std::byte> p(static_cast<std::size_t>(n) * size), q(p.size());
    hdf5::check(H5Dread(x, type, memory, space_x, H5P_DEFAULT, p.data()), "read values");
    hdf5::check(H5Dread(y, type, memory, space_y, H5P_DEFAULT, q.data()), "read values");
    const bool equal = reference_map::are_equal(type, p.data(), q.data(), n);
    if (linked) {
      const hsize_t count = n;
      const hdf5::handle all(H5Screate_simple(1, &count, nullptr), "create a dataspace");
      H5Dvlen_reclaim(type, all, H5P_DEFAULT, p.data());
      H5Dvlen_reclaim(type, all, H5P_DEFAULT, q.data());
    }
    return equal;
  };
  if (dims.empty()) return same(H5S_ALL, H5S_ALL, H5S_ALL, 1);
  const std::uint64_t stored =
      a.contents.datasets.at(in_a.address).stored_bytes + b.contents.datasets.at(in_b.address).stored_bytes;
  const std::uint64_t bytes = array::saturating_mul(array::product(dims), size);
  if (bytes == 0 || stored == 0) return true;
  if (bytes > max_sparse_bytes && bytes / max_expansion > stored)
    refuse(b.file.path(), path, "is far larger than what the file has of it, and other files have it, too; leave it out of them");
  const array::chunk_grid pieces{dims, array::chunk_shape_for(dims, size, compared_bytes)};
  for (std::uint64_t i = 0; i < pieces.chunks(); ++i) {
    const array::box piece = pieces.box_of(pieces.chunk_at(i));
    const auto select = [&](hid_t dataset) {
      hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
      hdf5::check(H5Sselect_hyperslab(space, H5S_SELECT_SET, hdf5::to_hsize(piece.first).data(), nullptr,
                                      hdf5::to_hsize(piece.shape).data(), nullptr),
                  "select values");
      return space;
    };
    const hsize_t n = piece.elements();
    const hdf5::handle memory(H5Screate_simple(1, &n, nullptr), "create a dataspace");
    if (!same(memory, select(x), select(y), n)) return false;
  }
  return true;
}
}  // namespace

void combined_files::read() {
  for (std::size_t k = 0; k < options_.sources.size(); ++k) {
    report_progress(k);
    read_file(k);
  }
  require_dimensions();
  for (auto& [path, blocks] : blocks_) blocks.arrange();
  for (auto& [path, d] : datasets_) place(path, d);
  compare_repeated();
  describe();
}

void combined_files::report_progress(std::size_t k) const {
  const std::string name = k < options_.sources.size() ? options_.sources[k] : options_.target;
  if (options_.progress) options_.progress(name, k, options_.sources.size());
}

std::shared_ptr<opened_file> combined_files::open(std::size_t k) const {
  return std::make_shared<opened_file>(options_.sources[k], hdf5::source_options{.lock = options_.lock});
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
    if (axes[d].empty() && d < labels.size() && is_tiled_name(labels[d])) axes[d] = path_in_scope(file, o, labels[d]);
  }
  // without scales and labels, a one-dimensional dataset is its own dimension
  if (rank == 1 && scales.empty() && labels.empty() && is_tiled_name(text::base_name(o.path))) axes[0] = o.path;
  return axes;
}

const block_values* combined_files::block_of(std::size_t k, const opened_file& file, const std::string& path) {
  const auto [entry, is_new] = coordinates_.try_emplace(path, nullptr);
  if (!is_new) return entry->second;
  const std::string& name = options_.sources[k];
  const tree_object* const o = file.tree.find(path);
  const std::string remedy = "; the files need a coordinate variable for each dimension that they are combined along";
  if (!o || o->kind != H5I_DATASET) refuse(name, path, "is not there" + remedy);
  const hdf5::handle dataset = open_object(file.file.file(), *o);
  const dataset_layout& l = file.contents.datasets.at(o->address);
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype");
  const H5T_class_t kind = H5Tget_class(type);
  if (hdf5::is_dimension_without_variable(dataset)) refuse(name, path, "has no values" + remedy);
  if (l.dims.size() != 1 || (kind != H5T_INTEGER && kind != H5T_FLOAT)) refuse(name, path, "is not a list of numbers" + remedy);
  if (l.dims[0] > max_coordinate_values)
    refuse(
        name, path,
        "has more than " + std::to_string(max_coordinate_values) + " values; join the files along one dimension with `concat`");
  block_values values(static_cast<std::size_t>(l.dims[0]));
  if (!values.empty())
    hdf5::check(H5Dread(dataset, H5T_NATIVE_LDOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read the coordinates");
  coordinate_blocks& blocks = blocks_.try_emplace(path, path).first->second;
  const block_values* const block = blocks.add(std::move(values), name);
  report_.files[k].place.push_back({path, 0, l.dims[0]});
  return entry->second = block;
}

void combined_files::read_file(std::size_t k) {
  with_file(k, [&](const std::string& name) {
    const opened_file file(name, hdf5::source_options{.lock = options_.lock});
    coordinates_.clear();
    combined_file& f = report_.files.emplace_back();
    f.file = name;
    f.bytes = file.file.state().size;
    states_.push_back(file.file.state());
    for (const tree_object& o : file.tree.objects) {
      if (o.kind == H5I_DATASET) read_dataset(k, file, o);
    }
  });
}

void combined_files::read_dataset(std::size_t k, const opened_file& file, const tree_object& o) {
  const std::string& name = options_.sources[k];
  const hdf5::handle dataset = open_object(file.file.file(), o);
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype"),
      properties(H5Dget_create_plist(dataset), "get the properties");
  const dataset_layout& l = file.contents.datasets.at(o.address);
  combined_dataset found;
  found.dims = l.dims;
  found.axes = axes_of(file, o, dataset, l.dims.size());
  found.terms["datatype"] = encoded_type(type);
  found.terms["fill value"] = hdf5::fill_bytes(properties, type);
  for (const char* term : terms_of_values) found.terms[term] = text_of_attribute(dataset, term);
  found.is_copied = l.dims.empty() || (l.linked_values && !found.is_tiled());
  if (found.is_tiled() && reference_map::has_references(type))
    refuse(name, o.path, "has references, which lead to objects of one file");
  auto [entry, is_new] = datasets_.try_emplace(o.path, found);
  combined_dataset& d = entry->second;
  if (is_new) order_.push_back(o.path);
  if (d.dims.size() != found.dims.size()) refuse(name, o.path, "has another number of dimensions");
  if (d.axes != found.axes) refuse(name, o.path, "has other dimensions");
  for (const auto& [term, value] : found.terms) {
    if (d.terms[term] == value) continue;
    const bool is_text = term != "datatype" && term != "fill value";
    refuse(
        name, o.path,
        "has another " + term +
            (is_text ? " than in \"" + options_.sources[d.parts[0].file] + "\" (" + value + " and " + d.terms[term] + ")" : "") +
            "; convert it first, or leave the file out");
  }
  combined_dataset::file_part part{k, {}};
  for (std::size_t i = 0; i < found.axes.size(); ++i) {
    if (!found.axes[i].empty()) {
      part.blocks.push_back(block_of(k, file, found.axes[i]));
      if (part.blocks.back()->size() != l.dims[i])
        refuse(name, o.path,
               "has " + std::to_string(l.dims[i]) + " elements along \"" + text::escape_name(found.axes[i]) + "\", which has " +
                   std::to_string(part.blocks.back()->size()));
    } else if (d.dims[i] != found.dims[i]) {
      refuse(name, o.path,
             "has another length along dimension " + std::to_string(i) + ": " + std::to_string(found.dims[i]) + " instead of " +
                 std::to_string(d.dims[i]) + "; name the dimension, if the files have parts of it");
    }
  }
  d.parts.push_back(std::move(part));
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
    if (std::any_of(d.parts[i].blocks.begin(), d.parts[i].blocks.end(), [](const block_values* b) { return b->empty(); }))
      continue;
    const auto [entry, is_new] = d.placed.try_emplace(first, i);
    if (!is_new && !d.is_coordinate(path)) repeated_[d.parts[i].file].push_back({path, entry->second});
  }
}

array::extents combined_files::first_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
  array::extents first(d.dims.size(), 0);
  for (std::size_t i = 0, b = 0; i < d.axes.size(); ++i) {
    if (!d.axes[i].empty()) first[i] = p.blocks[b]->empty() ? 0 : blocks_.at(d.axes[i]).first(*p.blocks[b]);
    if (!d.axes[i].empty()) ++b;
  }
  return first;
}

array::extents combined_files::shape_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
  array::extents shape = d.dims;
  for (std::size_t i = 0, b = 0; i < d.axes.size(); ++i) {
    if (!d.axes[i].empty()) shape[i] = p.blocks[b++]->size();
  }
  return shape;
}

// Several files have values for one place.
void combined_files::compare_repeated() {
  std::size_t other = SIZE_MAX;
  std::shared_ptr<opened_file> other_file;
  for (const auto& [k, list] : repeated_) {
    with_file(k, [&, k = k, &list = list](const std::string& name) {
      const std::shared_ptr<opened_file> file = open(k);
      for (const auto& [path, i] : list) {
        combined_dataset& d = datasets_.at(path);
        if (d.is_left_out) continue;
        const std::size_t first = d.parts[i].file;
        if (other != first) other_file = open(other = first);
        if (are_equal(*file, *other_file, path)) continue;
        const std::string reason = "differs from that of \"" + options_.sources[first] + "\", and both are for the same place";
        if (options_.different == combine_options::different_type::refuse)
          refuse(name, path, reason + "; see `different`, or leave it out of the files");
        add_note("\"" + text::escape_name(path) + "\" of \"" + name + "\" " + reason +
                 (options_.different == combine_options::different_type::first ? "; that one is used" : "; it is left out"));
        d.is_left_out = options_.different == combine_options::different_type::skip;
      }
    });
  }
}

void combined_files::describe() {
  for (const std::string& path : order_) {
    const combined_dataset& d = datasets_.at(path);
    for (const combined_dataset::file_part& p : d.parts) {
      if (!d.is_coordinate(path)) break;
      for (combined_range& r : report_.files[p.file].place) {
        if (r.dimension == path) r.first = first_of(d, p)[0];
      }
    }
    std::uint64_t places = 1;
    for (const std::string& axis : d.axes) {
      if (!axis.empty()) places = array::saturating_mul(places, blocks_.at(axis).count());
    }
    if (const std::uint64_t missing = places - std::min<std::uint64_t>(places, d.placed.size()); d.is_tiled() && missing > 0)
      add_note(std::to_string(missing) + " of the " + text::pluralize(places, "part") + " of \"" + text::escape_name(path) +
               "\" " + (missing == 1 ? "is" : "are") + " in no file, and read" + (missing == 1 ? "s" : "") +
               " as the fill value");
  }
}

void combined_files::require_same(std::size_t k, const opened_file& file) const {
  if (file.file.state() != states_[k])
    throw error(errc::changed, "\"" + options_.sources[k] + "\" was changed while it was read; combine the files again",
                {options_.sources[k]});
}

void combined_files::add_note(std::string sentence) {
  if (report_.notes.size() < max_named_notes) report_.notes.push_back(std::move(sentence));
}

}  // namespace zarrbits::repacking
