// SPDX-License-Identifier: BSL-1.0
//
// The public function combine(): the places of the files, from their coordinates, and the file with virtual datasets.
//
#include <zarrbits/combine.hpp>
#include <zarrbits/source_name.hpp>

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/chunk_form.hpp"
#include "hdf5/created_file.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/foreign_format.hpp"
#include "io/remote_url.hpp"
#include "repack/coordinate_blocks.hpp"
#include "repack/opened_file.hpp"
#include "repack/value_copier.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace zarrbits::repacking {

namespace {

using block_values = coordinate_blocks::values;

constexpr std::uint64_t compared_bytes = 16U << 20;        // of a dataset, at a time
constexpr std::uint64_t max_coordinate_values = 1U << 24;  // of one file along a dimension
constexpr std::uint64_t max_compact_bytes = 64000;         // libhdf5's limit is 64 KiB, with the message's header
constexpr std::size_t max_named_notes = 20;

// What the values of a dataset mean: files whose terms differ have no common array.
constexpr const char* terms_of_values[] = {"units",     "calendar",      "scale_factor", "add_offset", "_FillValue",
                                           "_Unsigned", "missing_value", "valid_min",    "valid_max",  "valid_range"};

[[noreturn]] void refuse(const std::string& file, const std::string& path, const std::string& reason) {
  throw error(errc::not_joinable,
              "\"" + file + "\" cannot be combined with the other files: \"" + text::escape_name(path) + "\" " + reason,
              {file, path});
}

// A dataset of all files that have it.
struct combined_dataset {
  struct file_part {
    std::size_t file = 0;
    std::vector<const block_values*> blocks;  // along the dimensions that the files have parts of
  };
  array::extents dims;                       // those of the first file
  std::vector<std::string> axes;             // paths of their coordinate variables; "": all files have all of the dimension
  std::map<std::string, std::string> terms;  // of its values
  bool is_copied = false;                    // its values are not mapped: it has no dimensions, or they lead to other objects
  std::vector<file_part> parts;
  std::map<array::extents, std::size_t> placed = {};  // which of them counts, by the index of its first value
  array::extents shape = {};                          // of the whole
  bool is_left_out = false;

  bool is_tiled() const {
    return std::any_of(axes.begin(), axes.end(), [](const std::string& axis) { return !axis.empty(); });
  }
};

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

class combiner {
 public:
  explicit combiner(const combine_options& options) : options_(options) {}

  combine_report run() {
    for (std::size_t k = 0; k < options_.sources.size(); ++k) {
      report_progress(k);
      read_file(k);
    }
    require_dimensions();
    for (auto& [path, blocks] : blocks_) blocks.arrange();
    for (auto& [path, d] : datasets_) place(path, d);
    compare_repeated();
    describe();
    write();
    report_progress(options_.sources.size());
    return std::move(report_);
  }

 private:
  void report_progress(std::size_t k) const {
    const std::string name = k < options_.sources.size() ? options_.sources[k] : options_.target;
    if (options_.progress) options_.progress(name, k, options_.sources.size());
  }

  hdf5::source_options source_options() const { return {.lock = options_.lock}; }

  std::shared_ptr<opened_file> open(std::size_t k) const {
    return std::make_shared<opened_file>(options_.sources[k], source_options());
  }

  // Runs `use` for a file; its errors name it.
  template <class Use>
  void with_file(std::size_t k, const Use& use) const {
    const std::string& name = options_.sources[k];
    try {
      use(name);
    } catch (const hdf5::failure& e) {
      if (std::string_view(e.what()).find("errno") != std::string_view::npos) throw;  // of the new file
      throw error(errc::damaged_source, "\"" + name + "\" cannot be combined with the other files: " + e.what(), {name});
    } catch (const io::read_error& e) {
      throw error(errc::io_failed, "\"" + name + "\" cannot be read: " + e.what(), {name});
    }
  }

  bool is_tiled_name(const std::string& name) const {
    return std::find(options_.dimensions.begin(), options_.dimensions.end(), name) != options_.dimensions.end();
  }

  void read_file(std::size_t k) {
    with_file(k, [&](const std::string& name) {
      const opened_file file(name, source_options());
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

  // The names of the dimensions, as paths of their scales; "" for those that are not among the options'.
  std::vector<std::string> axes_of(const opened_file& file, const tree_object& o, hid_t dataset, std::size_t rank) const {
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

  // The dataset of this name in the object's group, or in one above.
  static std::string path_in_scope(const opened_file& file, const tree_object& o, const std::string& name) {
    for (std::string group = o.path; !group.empty();) {
      group.resize(group.rfind('/'));
      if (file.tree.find(group + "/" + name)) return group + "/" + name;
    }
    return "/" + name;
  }

  const block_values* block_of(std::size_t k, const opened_file& file, const std::string& path) {
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

  void read_dataset(std::size_t k, const opened_file& file, const tree_object& o) {
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
      refuse(name, o.path,
             "has another " + term +
                 (is_text ? " than in \"" + options_.sources[d.parts[0].file] + "\" (" + value + " and " + d.terms[term] + ")"
                          : "") +
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

  void require_dimensions() const {
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

  void place(const std::string& path, combined_dataset& d) {
    d.shape = d.dims;
    for (std::size_t i = 0; i < d.axes.size(); ++i) {
      if (!d.axes[i].empty()) d.shape[i] = blocks_.at(d.axes[i]).length();
    }
    for (std::size_t i = 0; i < d.parts.size(); ++i) {
      const array::extents first = first_of(d, d.parts[i]);
      if (std::any_of(d.parts[i].blocks.begin(), d.parts[i].blocks.end(), [](const block_values* b) { return b->empty(); }))
        continue;
      const auto [entry, is_new] = d.placed.try_emplace(first, i);
      const bool is_coordinate = d.axes.size() == 1 && d.axes[0] == path;  // its blocks are equal
      if (!is_new && !is_coordinate) repeated_[d.parts[i].file].push_back({path, entry->second});
    }
  }

  array::extents first_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
    array::extents first(d.dims.size(), 0);
    for (std::size_t i = 0, b = 0; i < d.axes.size(); ++i) {
      if (!d.axes[i].empty()) first[i] = p.blocks[b]->empty() ? 0 : blocks_.at(d.axes[i]).first(*p.blocks[b]);
      if (!d.axes[i].empty()) ++b;
    }
    return first;
  }

  array::extents shape_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
    array::extents shape = d.dims;
    for (std::size_t i = 0, b = 0; i < d.axes.size(); ++i) {
      if (!d.axes[i].empty()) shape[i] = p.blocks[b++]->size();
    }
    return shape;
  }

  // Several files have values for one place.
  void compare_repeated() {
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

  static bool are_equal(const opened_file& a, const opened_file& b, const std::string& path) {
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
    if (array::product(dims) == 0) return true;
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

  void add_note(std::string sentence) {
    if (report_.notes.size() < max_named_notes) report_.notes.push_back(std::move(sentence));
  }

  void describe() {
    for (combined_file& f : report_.files) {
      for (combined_range& r : f.place) r.first = 0;
    }
    for (const std::string& path : order_) {
      const combined_dataset& d = datasets_.at(path);
      for (const combined_dataset::file_part& p : d.parts) {
        const array::extents first = first_of(d, p);
        for (std::size_t i = 0; i < d.axes.size(); ++i) {
          for (combined_range& r : report_.files[p.file].place) {
            if (r.dimension == d.axes[i]) r.first = first[i];
          }
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

  std::string name_in_target(std::size_t k) const {
    namespace fs = std::filesystem;
    const fs::path source = fs::absolute(options_.sources[k]).lexically_normal();
    if (!options_.relative_names) return source.string();
    const fs::path relative = source.lexically_relative(fs::absolute(options_.target).lexically_normal().parent_path());
    return relative.empty() ? source.string() : relative.string();
  }

  virtual_mapping mapping_of(const std::string& path, const combined_dataset& d) const {
    virtual_mapping mapping{d.shape, {}};
    for (const auto& [first, i] : d.placed) {
      const array::extents shape = shape_of(d, d.parts[i]);
      if (array::product(shape) > 0) mapping.parts.push_back({name_in_target(d.parts[i].file), path, first, shape});
    }
    return mapping;
  }

  // A file gives the new one its objects, but those that one before it has given.
  void copy_objects(std::size_t k, hdf5::created_file& target, const opened_file& source, file_copier& copies,
                    const dataset_changes& changes) {
    with_file(k, [&](const std::string&) {
      for (const tree_object& o : source.tree.objects) {
        if (const auto entry = addresses_.find(o.path); entry != addresses_.end()) copies.set_address(o.address, entry->second);
      }
      copies.run(target);
      repack_options values_options;
      values_options.source = options_.sources[k];
      value_copier(source.view(), copies, changes, values_options).run();
      for (const tree_object& o : source.tree.objects) addresses_.emplace(o.path, copies.address_of_copy(o));
    });
  }

  // The datasets that this file gives get their mapping; others are not written again.
  dataset_changes changes_for(std::size_t k, const opened_file& source) const {
    dataset_changes changes;
    for (const tree_object& o : source.tree.objects) {
      if (o.kind != H5I_DATASET) continue;
      const combined_dataset& d = datasets_.at(o.path);
      if (!d.is_copied || d.parts[0].file != k) changes[o.address].mapping = mapping_of(o.path, d);
      else
        changes[o.address].is_compact =
            d.dims.empty() && source.contents.datasets.at(o.address).element_bytes <= max_compact_bytes;
    }
    return changes;
  }

  void write() {
    zarr::store_writer_options how;
    how.target =
        options_.overwrite ? zarr::store_writer_options::if_exists::replace : zarr::store_writer_options::if_exists::refuse;
    how.sync = options_.sync;
    how.source = options_.sources[0];
    zarr::atomic_file target(options_.target, zarr::unfinished_name(options_.target), how, {"an HDF5 file", hdf5::is_hdf5_file});
    std::set<std::size_t> givers;
    for (const auto& [path, d] : datasets_) givers.insert(d.parts[0].file);
    givers.insert(0);
    std::optional<hdf5::created_file> file;
    for (const std::size_t k : givers) {
      const std::shared_ptr<opened_file> source = open(k);
      require_same(k, *source);
      const dataset_changes changes = changes_for(k, *source);
      file_copier copies(source->view(), changes);
      if (!file) {
        const hdf5::handle access(H5Pcreate(H5P_FILE_ACCESS), "create properties");
        hdf5::check(H5Pset_libver_bounds(access, lowest_format(source->view(), changes), H5F_LIBVER_LATEST),
                    "choose the format of the file");
#if H5_VERSION_GE(1, 10, 7)
        hdf5::check(H5Pset_file_locking(access, false, true), "leave the lock to its owner");  // ours, of the unfinished file
#endif
        file.emplace(target.temporary(), copies.creation_properties(0), access);
      }
      copy_objects(k, *file, *source, copies, changes);
    }
    for (const std::string& path : order_) {
      if (datasets_.at(path).is_left_out) hdf5::check(H5Ldelete(*file, path.c_str(), H5P_DEFAULT), "leave out a dataset");
    }
    file->finish();
    report_.bytes = std::filesystem::file_size(target.temporary());
    target.finish();
  }

  void require_same(std::size_t k, const opened_file& file) const {
    if (file.file.state() != states_[k])
      throw error(errc::changed, "\"" + options_.sources[k] + "\" was changed while it was read; combine the files again",
                  {options_.sources[k]});
  }

  const combine_options& options_;
  combine_report report_;
  std::vector<io::file_state> states_;
  std::map<std::string, coordinate_blocks> blocks_;                                   // by the path of the coordinate variable
  std::map<std::string, const block_values*> coordinates_;                            // of the file that is read, by path
  std::map<std::string, combined_dataset> datasets_;                                  // by path
  std::vector<std::string> order_;                                                    // their paths, as they were first read
  std::map<std::size_t, std::vector<std::pair<std::string, std::size_t>>> repeated_;  // by file: path, and the part before it
  std::map<std::string, haddr_t> addresses_;                                          // of objects in the new file, by path
};

}  // namespace

}  // namespace zarrbits::repacking

namespace zarrbits {

combine_report combine(const combine_options& options) {
  if (options.sources.empty()) throw error(errc::invalid_option, "there are no files to combine");
  if (options.dimensions.empty()) throw error(errc::invalid_option, "there is no dimension to combine the files along; name one");
  if (options.target.empty() || options.target.find("://") != std::string::npos)
    throw error(errc::invalid_option, "a file is written to a local disk, not to \"" + options.target + "\"");
  for (const std::string& name : options.sources) {
    const source_name parts = split_source(name);
    if (io::is_remote(name) || !parts.object.empty())
      throw error(errc::invalid_option,
                  "\"" + io::redact_url(name) +
                      "\" cannot be combined along several dimensions: only whole local files can; join along one with `concat`",
                  {io::redact_url(name)});
  }
  const hdf5::silence quiet;
  return zarr::as_public_errors(options.target, options.sources[0], errc::damaged_source, [&] {
    try {
      return repacking::combiner(options).run();
    } catch (const hdf5::failure& e) {
      throw error(errc::io_failed,
                  "cannot write \"" + options.target + "\": " + e.what() + "; check the space and the permissions there",
                  {options.target});
    }
  });
}

}  // namespace zarrbits
