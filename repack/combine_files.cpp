// SPDX-License-Identifier: BSL-1.0
//
// The public function combine(): writes the file with virtual datasets, or with aggregation variables.
//
#include <zarrbits/combine.hpp>
#include <zarrbits/convert_options.hpp>
#include <zarrbits/source_name.hpp>

#include "hdf5/created_file.hpp"
#include "hdf5/foreign_format.hpp"
#include "io/remote_url.hpp"
#include "io/source_url_map.hpp"
#include "repack/box_reader.hpp"
#include "repack/cf_aggregation.hpp"
#include "repack/combined_files.hpp"
#include "repack/dimension_lists.hpp"
#include "repack/joined_values.hpp"
#include "repack/value_copier.hpp"
#include "text/format.hpp"
#include "text/percent.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

namespace {

class combiner {
 public:
  explicit combiner(const combine_options& options)
      : options_(options), files_(options), urls_(options.base, options.sources, options.target) {
    if (options.cf_aggregation) aggregation_.emplace(files_, [this](std::size_t k) { return uri_in_target(k); });
  }

  combine_report run() {
    files_.read();
    write();
    files_.report_progress(options_.sources.size());
    return std::move(files_.report());
  }

 private:
  std::string name_in_target(std::size_t k) const {
    namespace fs = std::filesystem;
    if (io::is_remote(options_.sources[k])) return options_.sources[k];
    const fs::path source = fs::absolute(options_.sources[k]).lexically_normal();
    if (!options_.relative_names) return source.string();
    const fs::path relative = source.lexically_relative(fs::absolute(options_.target).lexically_normal().parent_path());
    return relative.empty() ? source.string() : relative.string();
  }

  // With escapes, as a URI has them; without a scheme, the first colon comes after a slash.
  std::string uri_in_target(std::size_t k) const {
    if (const std::string& name = options_.sources[k]; io::is_remote(name)) return name;
    if (urls_.has_base() && !urls_.folder().empty()) {
      const std::string url = urls_.published_url(
          std::string(io::file_url) + std::filesystem::weakly_canonical(std::filesystem::absolute(options_.sources[k])).string());
      return io::is_web(url) ? url : text::escape_url_path(url);
    }
    const std::string name = text::escape_url_path(name_in_target(k));
    if (name.starts_with('/')) return "file://" + name;
    return name.substr(0, name.find('/')).find(':') == name.npos ? name : "./" + name;
  }

  bool is_aggregated(const std::string& path) const { return aggregation_ && aggregation_->is_aggregated(path); }
  // Its values are copied from the one file that gives it to the new one.
  bool is_copied(const combined_dataset& d) const { return d.is_copied || ((aggregation_ || options_.copies) && !d.is_tiled()); }
  bool is_stored(const std::string& path, const combined_dataset& d) const {
    if (options_.copies) return d.is_stored_by_library();
    return d.is_stored() || (aggregation_ && !is_aggregated(path) && !is_copied(d));
  }

  virtual_mapping mapping_of(const std::string& path, const combined_dataset& d) const {
    if (is_aggregated(path)) return {{}, {}, aggregation_->type_of(path)};
    virtual_mapping mapping{d.shape, {}, d.stored_type};
    if (is_stored(path, d)) return mapping;
    for (const auto& [first, i] : d.placed) {
      const array::extents shape = files_.shape_of(d, d.parts[i]);
      if (array::product(shape) > 0)
        mapping.parts.push_back({name_in_target(d.parts[i].file), path, first, shape, d.has_new_dimension});
    }
    return mapping;
  }

  // A file gives the new one its objects, but those that one before it has given.
  void copy_objects(std::size_t k, hdf5::created_file& target, const opened_file& source, file_copier& copies,
                    const dataset_changes& changes) {
    files_.with_file(k, [&](const std::string&) {
      for (const tree_object& o : source.tree.objects) {
        if (const auto entry = addresses_.find(o.path); entry != addresses_.end()) copies.set_address(o.address, entry->second);
      }
      copies.run(target);
      repack_options values_options;
      values_options.source = options_.sources[k];
      values_options.memory = options_.memory;
      values_options.threads = options_.threads;
      value_copier(source.view(), copies, changes, values_options).run();
      for (const tree_object& o : source.tree.objects) addresses_.emplace(o.path, copies.address_of_copy(o));
    });
  }
  // The datasets that this file gives get their mapping; others are not written again.
  dataset_changes changes_for(std::size_t k, const opened_file& source) {
    dataset_changes changes;
    for (const tree_object& o : source.tree.objects) {
      if (o.kind != H5I_DATASET) continue;
      const combined_dataset& d = files_.datasets().at(o.path);
      if (is_aggregated(o.path) || !is_copied(d) || d.parts[0].file != k) {
        if (options_.copies) changes[o.address].joined = layout_of(d);
        else changes[o.address].mapping = mapping_of(o.path, d);
      }
      if (!dimensions_) continue;
      if (is_aggregated(o.path)) {
        changes[o.address].omitted_attributes = aggregation_->omitted_attributes(o.path);
        continue;
      }
      changes[o.address].omitted_attributes = dimension_lists::attributes(d.has_new_dimension);
      if (d.parts[0].file == k && !d.is_left_out) dimensions_->add(source, o, d.has_new_dimension ? options_.new_dimension : "");
    }
    return changes;
  }

  // Values that the new file has itself.
  void write_stored(hid_t target) {
    std::map<std::size_t, std::vector<std::pair<std::string, const combined_dataset::file_part*>>> parts;  // by file
    for (const auto& [path, d] : files_.datasets()) {
      if (!is_stored(path, d) || d.is_dimension_without_values || d.is_left_out) continue;
      for (const auto& [first, i] : d.placed) parts[d.parts[i].file].emplace_back(path, &d.parts[i]);
    }
    for (const auto& [k, list] : parts) {
      const std::shared_ptr<opened_file> source = files_.open(k);
      files_.require_same(k, source->file);
      for (const auto& [path, part] : list) {
        std::optional<combined_files::loaded_values> values;
        files_.with_file(k, [&, &path = path, &part = part](const std::string&) { values = files_.load(*source, path, *part); });
        const hdf5::handle dataset(H5Dopen2(target, path.c_str(), H5P_DEFAULT), "open a dataset");
        const array::box place = files_.place_of(files_.datasets().at(path), *part);
        const hdf5::handle memory = space_of({array::product(place.shape)});
        hdf5::check(H5Dwrite(dataset, values->type, memory, selected_space(dataset, place), H5P_DEFAULT, values->bytes.data()),
                    "write values");
        H5Dvlen_reclaim(values->type, memory, H5P_DEFAULT, values->bytes.data());
      }
    }
  }

  // Values that are copied from several files.
  void write_joined(hid_t target) {
    repack_options values_options;
    values_options.memory = options_.memory;
    values_options.threads = options_.threads;
    values_options.progress = options_.copied;
    joined_values values(files_, target, values_options);
    for (const std::string& path : files_.order()) {
      const combined_dataset& d = files_.datasets().at(path);
      if (!d.is_left_out && !is_copied(d) && !is_stored(path, d)) values.write(path);
    }
    values.finish();
    files_.report().copied_chunks = values.copier().copied_chunks();
    files_.report().encoded_chunks = values.copier().encoded_chunks();
  }

  void write() {
    zarr::store_writer_options how;
    how.target =
        options_.overwrite ? zarr::store_writer_options::if_exists::replace : zarr::store_writer_options::if_exists::refuse;
    how.sync = options_.fsync;
    how.source = options_.sources[0];
    zarr::atomic_file target(options_.target, zarr::unfinished_name(options_.target), how, {"an HDF5 file", hdf5::is_hdf5_file});
    if (!options_.new_dimension.empty() || aggregation_) dimensions_.emplace();
    if (!options_.new_dimension.empty())
      dimensions_->add_dimension(options_.new_dimension, files_.length_of(files_.new_dimension_path()));
    std::set<std::size_t> givers;
    for (const auto& [path, d] : files_.datasets()) givers.insert(d.parts[0].file);
    givers.insert(0);
    std::optional<hdf5::created_file> file;
    for (const std::size_t k : givers) {
      const std::shared_ptr<opened_file> source = files_.open(k);
      files_.require_same(k, source->file);
      if (aggregation_) files_.with_file(k, [&](const std::string&) { aggregation_->plan(*source, k); });
      const dataset_changes changes = changes_for(k, *source);
      file_copier copies(source->view(), changes);
      if (!file) {
        const hdf5::handle access(H5Pcreate(H5P_FILE_ACCESS), "create properties");
        hdf5::check(H5Pset_libver_bounds(access, lowest_format(source->view(), changes), H5F_LIBVER_LATEST),
                    "choose the format of the file");
        file.emplace(target.temporary(), copies.creation_properties(0), access);
      }
      copy_objects(k, *file, *source, copies, changes);
    }
    for (const std::string& path : files_.order()) {
      if (files_.datasets().at(path).is_left_out) hdf5::check(H5Ldelete(*file, path.c_str(), H5P_DEFAULT), "leave out a dataset");
    }
    if (aggregation_) aggregation_->create(*file, *dimensions_);
    if (dimensions_) dimensions_->write(*file);
    write_stored(*file);
    if (options_.copies) write_joined(*file);
    file->finish();
    files_.report().bytes = std::filesystem::file_size(target.temporary());
    target.finish();
  }

  const combine_options& options_;
  combined_files files_;
  io::source_url_map urls_;
  std::optional<cf_aggregation> aggregation_;
  std::optional<dimension_lists> dimensions_;  // if the new file has others than its sources
  std::map<std::string, haddr_t> addresses_;   // of objects in the new file, by path
};

}  // namespace

}  // namespace zarrbits::repacking

namespace zarrbits {

namespace {

void require_dimensions(const combine_options& options) {
  if (options.dimensions.empty() && options.new_dimension.empty())
    throw error(errc::invalid_option, "there is no dimension to combine the files along; name one");
  if (options.new_dimension.find_first_of("/:") != std::string::npos)
    throw error(errc::invalid_option, "the name of a new dimension has no \"/\" and no \":\", unlike \"" + options.new_dimension +
                                          "\"; choose another name");
  std::set<std::string> names(options.dimensions.begin(), options.dimensions.end());
  if (names.size() < options.dimensions.size() || names.contains(options.new_dimension))
    throw error(errc::invalid_option, "the dimensions to combine the files along have a name twice; name each once");
  const std::size_t columns = options.dimensions.size() + (options.new_dimension.empty() ? 0 : 1);
  const bool is_whole = options.places.size() == options.sources.size() &&
                        std::all_of(options.places.begin(), options.places.end(),
                                    [&](const std::vector<std::uint64_t>& place) { return place.size() == columns; });
  if (!options.places.empty() && !is_whole)
    throw error(errc::invalid_option, "`places` has not one place for each file and dimension; list all of them");
}

}  // namespace

combine_report combine(const combine_options& options) {
  if (options.sources.empty()) throw error(errc::invalid_option, "there are no files to combine");
  require_dimensions(options);
  if (options.target.empty() || options.target.find("://") != std::string::npos)
    throw error(errc::invalid_option, "a file is written to a local disk, not to \"" + options.target + "\"");
  if (options.copies && (options.cf_aggregation || options.base))
    throw error(errc::invalid_option, "`copies` is for a file that has all values itself; remove `cf_aggregation` and `base`");
  if (options.memory < min_memory)
    throw error(errc::invalid_option, "`memory` is " + text::format_bytes(options.memory) +
                                          ", too little to copy values; use at least " + text::format_bytes(min_memory));
  if (options.base && options.base->url != "." && !options.cf_aggregation)
    throw error(errc::invalid_option,
                "a virtual dataset names local files, and `base` names URLs; remove it, or set `cf_aggregation`");
  for (const std::string& name : options.sources) {
    const source_name parts = split_source(name);
    if (!parts.object.empty())
      throw error(errc::invalid_option,
                  "\"" + io::redact_url(name) +
                      "\" cannot be combined along several dimensions: only whole files can; join along one with `concat`",
                  {io::redact_url(name)});
    if (io::is_remote(name) && !options.servers && !options.cf_aggregation && !options.copies)
      throw error(errc::invalid_option,
                  "a virtual dataset names local files, unlike \"" + io::redact_url(name) +
                      "\"; write references to OUT.json, or set `cf_aggregation`",
                  {io::redact_url(name)});
  }
  const hdf5::silence quiet;
  return zarr::as_public_errors(options.target, options.sources[0], errc::damaged_source, [&] {
    try {
      combine_options effective = options;
      // readers open the parts by themselves, or not at all
      effective.netcdf3 = options.netcdf3 || options.cf_aggregation || options.copies;
      return repacking::combiner(effective).run();
    } catch (const hdf5::failure& e) {
      throw error(errc::io_failed,
                  "cannot write \"" + options.target + "\": " + e.what() + "; check the space and the permissions there",
                  {options.target});
    }
  });
}

}  // namespace zarrbits
