// SPDX-License-Identifier: BSL-1.0
#include "repack/joined_values.hpp"

#include "hdf5/chunk_form.hpp"
#include "hdf5/registered_decoders.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>

namespace zarrbits::repacking {

namespace {

constexpr std::size_t max_open_files = 32;

// libhdf5 writes values of another type than those of the files, and it has no filters but its own.
std::vector<hdf5::filter> filters_of_library(std::vector<hdf5::filter> filters, std::size_t element) {
  std::erase_if(filters, [](const hdf5::filter& f) {
    return f.id != H5Z_FILTER_SHUFFLE && f.id != H5Z_FILTER_DEFLATE && f.id != H5Z_FILTER_FLETCHER32;
  });
  for (hdf5::filter& f : filters) {
    if (f.id == H5Z_FILTER_SHUFFLE) f.values = {static_cast<unsigned>(element)};
  }
  return filters;
}

std::uint64_t bytes_of_all(const combined_files& files) {
  std::uint64_t bytes = 0;
  for (const auto& [path, d] : files.datasets()) {
    if (d.is_tiled()) bytes += d.layout.stored_bytes;
  }
  return bytes;
}

bool has_fill_value(hid_t properties) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  hdf5::check(H5Pfill_value_defined(properties, &status), "get the fill value");
  return status == H5D_FILL_VALUE_USER_DEFINED;
}

// libhdf5 writes all of a dataset without chunks at once.
void require_dense(const combined_dataset& d, const dataset_layout& l) {
  const std::uint64_t bytes = array::saturating_mul(array::product(d.shape), l.element_bytes);
  if (l.chunk.empty() && is_mostly_unwritten(bytes, l.stored_bytes))
    throw hdf5::failure("it is contiguous, and far larger than what the files have of it; leave it out of them");
}

}  // namespace

joined_layout layout_of(const combined_dataset& d) {
  joined_layout joined{d.shape, d.shape, d.layout.chunk, d.layout.filters.filters, d.stored_type};
  for (std::size_t i = 0; i < d.shape.size() && !joined.chunk.empty(); ++i)
    joined.max_dims[i] = std::max(d.layout.max_dims[i], d.shape[i]);
  if (d.is_stored_by_library())
    joined.filters = filters_of_library(
        std::move(joined.filters), d.stored_type >= 0 ? H5Tget_size(d.stored_type) : static_cast<std::size_t>(d.element_bytes));
  return joined;
}

joined_values::joined_values(const combined_files& files, hid_t target, const repack_options& options)
    : files_(files), target_(target), copier_(options, nullptr, bytes_of_all(files)) {}

void joined_values::write(const std::string& path) {
  const auto refuse = [&](errc code, const std::exception& e, const std::string& remedy) {
    throw error(code, "the files cannot be joined: \"" + text::escape_name(path) + "\": " + e.what() + remedy, {path});
  };
  try {
    copy(path);
  } catch (const hdf5::failure& e) {
    if (hdf5::is_of_system(e.what())) throw;  // of the new file
    refuse(errc::damaged_source, e, "");
  } catch (const io::read_error& e) {
    refuse(errc::io_failed, e, "");
  } catch (const compressors::corrupt_chunk& e) {
    refuse(errc::damaged_source, e, "; get that file again, or leave it out");
  }
}

void joined_values::copy(const std::string& path) {
  const combined_dataset& d = files_.datasets().at(path);
  dataset_layout layout = d.layout;
  layout.dims = d.shape;
  require_dense(d, layout);
  dataset_change change;
  change.joined = layout_of(d);
  std::vector<const combined_dataset::file_part*> parts;
  part_list list;
  for (const auto& [first, i] : d.placed) {
    array::box place = files_.place_of(d, d.parts[i]);
    if (place.empty()) continue;
    parts.push_back(&d.parts[i]);
    list.places.push_back(std::move(place));
  }
  hdf5::handle copy(H5Dopen2(target_, path.c_str(), H5P_DEFAULT), "open a dataset");
  hdf5::handle type(H5Dget_type(copy), "get the datatype");
  list.open = [&, type = type.get()](std::size_t i) { return open_part(path, d, *parts[i], type); };
  dataset_pair pair{.path = path,
                    .layout = layout,
                    .change = &change,
                    .parts = std::move(list),
                    .copy = std::move(copy),
                    .type = std::move(type)};
  pair.describe_copy();
  pair.has_several_files = true;
  pair.largest_source_chunk_bytes = d.largest_chunk_bytes;
  if (layout.linked_values) dataset_copier::require_filters(pair);
  copier_.run(pair);
}

std::shared_ptr<const hdf5::source_file> joined_values::open_file(std::size_t k) {
  const auto entry = std::find_if(opened_.begin(), opened_.end(), [&](const auto& e) { return e.first == k; });
  if (entry != opened_.end()) opened_.splice(opened_.begin(), opened_, entry);
  else opened_.emplace_front(k, files_.open_source(k));
  if (opened_.size() > max_open_files) {
    opened_.back().second->require_unchanged();
    opened_.pop_back();
  }
  return opened_.front().second;
}

void joined_values::finish() const {
  for (const auto& [k, file] : opened_) file->require_unchanged();
}

// libhdf5 reads chunks of another byte order, and values of variable length.
std::shared_ptr<const dataset_part> joined_values::open_part(const std::string& path, const combined_dataset& d,
                                                             const combined_dataset::file_part& p, hid_t type) {
  auto part = std::make_shared<dataset_part>();
  files_.with_file(p.file, [&](const std::string& name) {
    part->file = open_file(p.file);
    part->name = name;
    part->dataset = hdf5::handle(H5Dopen2(part->file->file(), path.c_str(), H5P_DEFAULT), "open a dataset");
    part->file->require_values(part->dataset);
    part->place = files_.place_of(d, p);
    part->has_new_dimension = d.has_new_dimension;
    const hdf5::handle properties(H5Dget_create_plist(part->dataset), "get the properties"),
        stored_type(H5Dget_type(part->dataset), "get the datatype");
    const H5D_layout_t layout = H5Pget_layout(properties);
    part->filters = hdf5::read_pipeline(properties);
    // what was never written may read as another text than in the new file
    const bool may_differ = d.layout.linked_values && has_fill_value(properties);
    const bool has_chunks = layout == H5D_CHUNKED && !may_differ && (d.layout.linked_values || H5Tequal(stored_type, type) > 0);
    if (has_chunks) part->chunks.emplace(*part->file, part->dataset);
    else if (layout == H5D_CHUNKED) hdf5::register_decoders(properties);
    part->has_values =
        may_differ || layout == H5D_VIRTUAL || H5Pget_external_count(properties) > 0 || H5Dget_storage_size(part->dataset) > 0;
  });
  return part;
}

}  // namespace zarrbits::repacking
