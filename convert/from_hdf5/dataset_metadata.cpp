// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/dataset_metadata.hpp"

#include "hdf5/type_json.hpp"
#include "metadata/array_metadata.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <utility>

namespace zarrbits::conversion {

namespace {

std::string rounding(const hdf5::type_description& leaf) {
  return "a " + leaf.stored + " does not fit in Zarr's floats; values are rounded to float64";
}

// The group that holds a node: "/a" of "/a/b".
std::string group_of(const std::string& store_path) { return store_path.substr(0, store_path.rfind('/')); }

// Readers no longer see this attribute; the notes have it.
void move_to_notes(text::json& attributes, const std::string& name) {
  const auto attribute = attributes.find(name);
  if (attribute == attributes.end()) return;
  text::json value = std::move(*attribute);
  attributes.erase(attribute);
  attributes[text::annotation_key]["attribute_values"][name] = std::move(value);
}

// Throws if a copy of Zarr v2 cannot have the array. `gaps`: some of its chunks are missing.
void require_v2(const convert_options& options, const metadata::array_metadata& meta, bool gaps) {
  if (!options.target.is_v2_copy()) return;
  const std::string reason = metadata::v3_only_reason(meta, gaps, metadata::v2_use::copy);
  if (!reason.empty())
    throw hdf5::unsupported_dataset(reason_code::zarr_v3_only, "Zarr v2 cannot have it: " + reason + "; set `zarr_format` to 3");
}

// Whether the array goes on where the dataset has no chunk.
bool has_chunks_beyond(const hdf5::chunk_source& data, const metadata::array_metadata& meta) {
  const array::extents counts = data.grid.counts();
  for (std::size_t d = 0; d < counts.size(); ++d) {
    if ((meta.shape[d] + meta.chunk[d] - 1) / meta.chunk[d] > counts[d]) return true;
  }
  return false;
}

// References have the metadata of Zarr v2, too. What is appended to says so itself: here it has no attributes.
void note_only_v3(const convert_options& options, const metadata::array_metadata& meta, const chunk_counts& counts,
                  converted_object& entry) {
  if (!options.target.references || options.target.zarr_format == zarr_format::v3 ||
      (options.source.concat && options.source.concat->append))
    return;
  const std::string reason = metadata::v3_only_reason(meta, counts.absent + counts.lost > 0);
  if (reason.empty()) return;
  if (options.target.zarr_format == zarr_format::v2)
    throw hdf5::unsupported_dataset(reason_code::zarr_v3_only,
                                    "Zarr v2 cannot have it: " + reason + "; set `zarr_format` to both or 3");
  text::add_reason(entry, reason_code::zarr_v3_only, "only for readers of Zarr v3: " + reason);
}

void write_null(const dataset_plan& dataset, zarr::node_writer& out, hdf5::dimension_namer& dimensions, text::json attributes) {
  metadata::array_metadata m = null_metadata(dataset);
  if (dataset.options.encoding.checksum != checksum::none) metadata::append_crc32c_codec(m.codecs);
  m.attributes = std::move(attributes);
  m.dimension_names = dimensions.phony(group_of(dataset.data.object.store_path), m.shape);
  require_v2(dataset.options, m, false);
  out.array(dataset.data.object.store_path, m);
}

void write_array(const dataset_plan& dataset, std::size_t number, zarr::node_writer& out, hdf5::dimension_namer& dimensions,
                 text::json attributes, const array_result& result, converted_object& entry) {
  const hdf5::chunk_source& data = dataset.data;
  const dataset_part& part = dataset.parts()[number];
  const array_plan& plan = *dataset.array(number, result.assumed);
  metadata::array_metadata meta = plan.stored_metadata();
  meta.attributes = std::move(attributes);
  if (!meta.shape.empty()) {
    meta.dimension_names = part.view.is_complete ? dimensions.names(data.object, data.dataset, meta.shape, data.dims.size())
                                                 : dimensions.phony(group_of(part.store_path), meta.shape);
  }
  const auto lossy = [&](reason_code code, const std::string& reason) {
    entry.lossy = true;
    text::set_reason(entry, code, reason);
  };
  if (!plan.loss.empty()) lossy(plan.loss.code, plan.loss.sentence);
  if (const auto missing = data.dependencies->missing; missing > 0) {
    lossy(reason_code::missing_file,
          text::pluralize(missing, "source") + " of the virtual dataset cannot be found; their part reads as the fill value");
  }
  if (const auto refused = data.dependencies->refused; refused > 0) {
    lossy(reason_code::refused_file,
          text::pluralize(refused, "source") +
              " of the virtual dataset must not be read, so that their part reads as the fill value: " +
              data.dependencies->refusal_reason);
  }
  if (result.rounded) lossy(reason_code::rounded, rounding(plan.leaf));
  if (result.dangling) lossy(reason_code::dangling_reference, "a reference that points nowhere");
  if (!result.lost_chunks.empty()) {
    lossy(reason_code::lost_chunks,
          text::pluralize(result.counts.lost, "chunk") + " cannot be read: " + result.lost_chunks.begin()->second);
    for (const auto& lost_chunk : result.lost_chunks) entry.lost_chunks.push_back(lost_chunk.first);
  }
  H5D_fill_time_t fill_time = H5D_FILL_TIME_IFSET;
  if (H5Pget_fill_time(data.dcpl, &fill_time) >= 0 && fill_time == H5D_FILL_TIME_NEVER && result.counts.absent > 0 &&
      entry.reason.empty()) {
    text::set_reason(
        entry, reason_code::changed_form,
        "HDF5 leaves elements that were never written undefined (fill time \"never\"); in the store they read as the fill value");
  }
  if (!result.unpacked.empty() && entry.reason.empty()) text::set_reason(entry, reason_code::changed_form, result.unpacked);
  if (hdf5::is_int8_boolean(plan.leaf)) {
    // the data type says it, as xarray writes it to Zarr
    if (plan.assumed.bools_are_0_or_1) move_to_notes(meta.attributes, "dtype");
  } else if (!plan.assumed.bools_are_0_or_1) {
    text::set_reason(entry, reason_code::changed_form, "booleans other than 0 and 1: stored as integers");
    if (!plan.leaf.names.empty()) meta.attributes[text::annotation_key]["enum"] = hdf5::enumeration_members(plan.leaf);
  }
  note_only_v3(dataset.options, meta, result.counts, entry);
  require_v2(dataset.options, meta,
             result.counts.absent + result.counts.lost > 0 || (has_chunks_beyond(data, meta) && !plan.writes_beyond()));
  entry.store_bytes += result.store_bytes;
  if (part.view.is_complete) {
    const bool references =
        plan.leaf.kind == hdf5::type_class::object_reference || plan.leaf.kind == hdf5::type_class::region_reference;
    entry.chunks = result.counts;
    entry.outcome = references ? outcome::mapped : result.worst;
  } else {
    entry.chunks.recoded += result.counts.recoded;
    entry.chunks.lost += result.counts.lost;
  }
  out.array(part.store_path, meta);
}

}  // namespace

metadata::array_metadata null_metadata(const dataset_plan& dataset) {
  const hdf5::type_description& leaf = dataset.data.leaf();
  metadata::array_metadata m;
  m.shape = {0};
  m.chunk = {1};
  const text::json type = hdf5::zarr_data_type(leaf);
  const bool fixed = !type.is_null();
  m.data_type = fixed ? type : text::json("uint8");
  const compressors::buffer zeros(leaf.size, std::byte{0});
  m.fill_value = fixed ? hdf5::fill_json(leaf, zeros.data()) : text::json(0);
  m.codecs = metadata::bytes_codecs(fixed && hdf5::has_byte_order(leaf), false);
  return m;
}

void write_dataset_metadata(const dataset_plan& dataset, zarr::node_writer& out, hdf5::dimension_namer& dimensions,
                            text::json attributes, const work_unit_result& result, converted_object& entry) {
  const hdf5::chunk_source& data = dataset.data;
  const std::vector<dataset_part>& parts = dataset.parts();
  using kind = dataset_part::kind_type;
  entry.outcome = outcome::mapped;
  if (data.null) return write_null(dataset, out, dimensions, std::move(attributes));
  bool sequences = false;
  std::size_t next_array = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const dataset_part& part = parts[i];
    text::json part_attributes = part.attributes;
    if (i + 1 == parts.size()) {  // notes of the dataset, and of the part about its members
      part_attributes = std::move(attributes);
      if (part.attributes.contains(text::annotation_key))
        part_attributes[text::annotation_key].update(part.attributes[text::annotation_key]);
    }
    const array_result part_result = i < result.arrays.size() ? result.arrays[i] : array_result{};
    if (part.kind == kind::array) {
      write_array(dataset, i, out, dimensions, std::move(part_attributes), part_result, entry);
      continue;
    }
    if (part.kind == kind::sequences) {
      sequences = true;
      // inner nodes come first, in the order of creation, up to the group of the sequences itself
      for (; next_array < result.derived_arrays.size(); ++next_array) {
        const derived_array& m = result.derived_arrays[next_array];
        if (m.store_path != part.store_path && !m.store_path.starts_with(text::join_path(part.store_path, ""))) {
          throw zarrbits::error(errc::damaged_store,
                                "the journal of the unfinished store names \"" +
                                    text::escape_invalid_utf8(m.store_path.substr(0, 200)) + "\" in place of dataset \"" +
                                    data.object.path + "\"; start over with `overwrite`",
                                {"", data.object.path});
        }
        if (m.store_path == part.store_path) {
          ++next_array;
          break;
        }
        if (!m.meta) {
          out.group(m.store_path, text::json::object());
          continue;
        }
        metadata::array_metadata meta = *m.meta;
        meta.dimension_names = dimensions.phony(group_of(m.store_path), meta.shape);
        require_v2(dataset.options, meta, false);
        out.array(m.store_path, meta);
      }
      text::json& notes = part_attributes[text::annotation_key];
      if (!notes.is_object()) notes = text::json::object();
      text::json shape = data.dims;
      for (const std::uint64_t e : part.view.extra) shape.push_back(e);
      notes["shape"] = std::move(shape);  // shape of the array of sequences
      entry.store_bytes += part_result.store_bytes;
      if (part_result.dangling) {
        entry.lossy = true;
        text::set_reason(entry, reason_code::dangling_reference, "a reference that points nowhere");
      }
    }
    out.group(part.store_path, part_attributes);
  }
  if (sequences) entry.chunks = {};  // the source's chunks have no counterpart
}

}  // namespace zarrbits::conversion
