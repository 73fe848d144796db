// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/array_plan.hpp"

#include "compressors/blosc.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/plan/chunk_grid_choice.hpp"
#include "convert/plan/codec_match.hpp"
#include "hdf5/file_references.hpp"
#include "hdf5/flat_struct.hpp"
#include "hdf5/type_json.hpp"
#include "hdf5/zarrbits_filters.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/named_configuration.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/selection.hpp"
#include "zarr/write/shard.hpp"

#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t max_chunk_bytes = std::uint64_t{2} << 30;  // bytes in memory; a chunk of HDF5 has less than 4 GiB
constexpr unsigned blosc_snappy = 3;                               // many Zarr readers are built without it

bool is_packable(const hdf5::type_description& t) {
  return t.kind == hdf5::type_class::boolean || t.kind == hdf5::type_class::integer || t.kind == hdf5::type_class::enumeration;
}

// A compound may mix byte orders; a Zarr struct may not.
bool uniform_order(const hdf5::type_description& t, bool big) {
  if (t.kind == hdf5::type_class::compound) {
    return std::all_of(t.parts.begin(), t.parts.end(), [&](const hdf5::type_description& m) { return uniform_order(m, big); });
  }
  return t.kind == hdf5::type_class::array || !hdf5::has_byte_order(t) || t.big_endian == big;
}

bool is_only_filter(const hdf5::pipeline& p, H5Z_filter_t id) { return p.filters.size() == 1 && p.filters[0].id == id; }

// A deflate stream, possibly with checksums around it, and shuffles without effect.
bool deflate_and_checksums(const hdf5::pipeline& p) {
  std::size_t deflates = 0;
  for (const hdf5::filter& f : p.filters) {
    if (f.id == H5Z_FILTER_DEFLATE) ++deflates;
    else if (f.id != H5Z_FILTER_FLETCHER32 && !hdf5::is_no_op(f)) return false;
  }
  return deflates == 1;
}

// Buffers that every reader's Blosc can decode.
bool readable_blosc(const hdf5::filter& f) {
  return f.values.size() >= 4 && !(f.values.size() > 6 && f.values[6] == blosc_snappy);
}

}  // namespace

void release(const field_view& view, compressors::buffer& values) {
  if (!hdf5::holds_references(*view.leaf) || values.empty()) return;
  const hsize_t n = values.size() / view.size;
  const hdf5::lock one_thread;
  const hdf5::handle space(H5Screate_simple(1, &n, nullptr));
  H5Dvlen_reclaim(view.memory, space, H5P_DEFAULT, values.data());
}

array_plan::array_plan(const hdf5::chunk_source& d, const field_view& v, const convert_options& options, const assumptions& a)
    : data(d), view(v), leaf(*v.leaf), in_store(conversion::in_store(d.object)), assumed(a) {
  time = hdf5::numpy_time(leaf);
  opaque = leaf.kind == hdf5::type_class::opaque && time.is_null();
  characters = leaf.kind == hdf5::type_class::text && !leaf.variable && leaf.size == 1 && data.object.overrides.characters;
  text = (leaf.kind == hdf5::type_class::text && !characters) || leaf.kind == hdf5::type_class::object_reference ||
         leaf.kind == hdf5::type_class::region_reference;
  flat = leaf.kind == hdf5::type_class::compound && !data.object.overrides.text_lengths.empty();
  big_endian = hdf5::stored_big_endian(leaf) && !flat;
  keeps_empty = options.encoding.write_empty_chunks;
  choose_shape();
  if (hdf5::is_int8_boolean(leaf)) choose_boolean(options);
  choose_fill();
  if (options.target.is_v2_copy()) choose_gaps();
  if (text) meta.data_type = assumed.text_is_utf8 ? "string" : "variable_length_bytes";
  else if (!time.is_null()) meta.data_type = time;
  else if (opaque) meta.data_type = "uint8";
  else if (flat) meta.data_type = hdf5::flat_data_type(leaf, data.object.overrides.text_lengths);
  else if (characters) meta.data_type = hdf5::zarr_data_type(leaf, true);
  else if (!assumed.bools_are_0_or_1) meta.data_type = leaf.is_signed ? "int8" : "uint8";
  else meta.data_type = hdf5::zarr_data_type(leaf);
  if (data.grid.chunk_elements() > max_chunk_bytes / std::max<std::size_t>(1, view.size)) {
    throw hdf5::unsupported_dataset(reason_code::too_large,
                                    "its chunks have more than " + text::format_bytes(max_chunk_bytes) + " each");
  }
  checksum = in_store ? ends_with_crc32c(in_store->codecs) : options.encoding.checksum != zarrbits::checksum::none;
  native = data.filters;
  undoable = data.filters.can_decode(data.type);
  // replace one checksum by the other; few readers of Zarr v2 know fletcher32
  const bool drops_checksum = checksum || (options.target.is_v2_copy() && options.effective_profile() != profile::native);
  if (drops_checksum && !native.empty() && native.filters.back().id == H5Z_FILTER_FLETCHER32) native.filters.pop_back();
  choose_strategy(options);
  choose_packbits(options);
  choose_compression(options);
  choose_codecs();
  if (in_store) match_existing_array();
  if (!options.target.is_v2_copy()) return;
  const std::string reason = metadata::v3_only_reason(stored_metadata(), false, metadata::v2_use::copy);
  if (!reason.empty())
    throw hdf5::unsupported_dataset(reason_code::zarr_v3_only, "Zarr v2 cannot have it: " + reason + "; set `zarr_format` to 3");
}

void array_plan::choose_shape() {
  meta.shape = data.grid.shape;
  const auto& arranged = data.object.overrides.shape;
  for (std::size_t d = 0; d < std::min(arranged.size(), meta.shape.size()); ++d)
    meta.shape[d] = std::max<std::uint64_t>(meta.shape[d], arranged[d]);
  meta.chunk = data.grid.chunk;
  meta.shape.insert(meta.shape.end(), view.extra.begin(), view.extra.end());
  meta.chunk.insert(meta.chunk.end(), view.extra.begin(), view.extra.end());
  if (opaque) {
    meta.shape.push_back(leaf.size);
    meta.chunk.push_back(leaf.size);
  }
  trailing = meta.shape.size() - data.grid.rank();
  if (data.grid.is_rectilinear()) meta.chunk_shapes = chunk_shapes_of(data.grid, meta.shape, meta.chunk);
}

// int8 stays what it is where its values are not seen, where the array in the store is int8, and where the array has elements
// that no file has: these read as the fill value, and netCDF's usual one, -127, is not a boolean.
void array_plan::choose_boolean(const convert_options& options) {
  const bool unseen = options.target.references, stored_otherwise = in_store && in_store->data_type != "bool";
  if (unseen || stored_otherwise || is_extended() || data.has_gaps()) assumed.bools_are_0_or_1 = false;
}

void array_plan::choose_fill() {
  fill.assign(view.size, std::byte{0});
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  H5Pfill_value_defined(data.dcpl, &status);
  if (status == H5D_FILL_VALUE_USER_DEFINED && H5Pget_fill_value(data.dcpl, view.memory, fill.data()) < 0) {
    std::fill(fill.begin(), fill.end(), std::byte{0});
    loss = {reason_code::unreadable, "the fill value cannot be read: " + hdf5::last_error()};
  }
  H5Eclear2(H5E_DEFAULT);
  const std::size_t n = static_cast<std::size_t>(view.per_element());
  for (std::size_t i = 1; i < n; ++i) {
    if (std::memcmp(fill.data(), fill.data() + i * leaf.size, leaf.size) != 0) materialize = true;
  }
  if (opaque) {
    materialize = std::any_of(fill.begin(), fill.end(), [&](std::byte b) { return b != fill[0]; });
    meta.fill_value = std::to_integer<int>(fill[0]);
  } else if (text) {
    std::string value;
    if (leaf.kind == hdf5::type_class::text) {
      value = hdf5::text_of(leaf, fill.data());
    } else {
      const bool object = leaf.kind == hdf5::type_class::object_reference;
      hdf5::file_references references(data.file, data.dataset);
      const text::json target = object ? references.object(fill.data()) : references.region(fill.data());
      if (target.is_null()) loss = {reason_code::dangling_reference, "the fill value is a reference that points nowhere"};
      else value = target.is_string() ? target.get<std::string>() : text::strict_json_text(target);
    }
    if (!text::is_utf8(value)) assumed.text_is_utf8 = false;
    meta.fill_value = assumed.text_is_utf8 ? text::json(value) : text::json(text::base64(value));
  } else if (!time.is_null()) {
    std::int64_t ticks = 0;
    for (std::size_t i = 8; i-- > 0;)
      ticks = static_cast<std::int64_t>(static_cast<std::uint64_t>(ticks) << 8 | std::to_integer<std::uint64_t>(fill[i]));
    meta.fill_value = ticks;
  } else if (flat) {
    meta.fill_value = hdf5::flat_fill(leaf, fill.data());
  } else {
    const auto number = std::to_integer<std::uint8_t>(fill[0]);
    if (leaf.kind == hdf5::type_class::boolean && number > 1) {
      if (hdf5::is_int8_boolean(leaf) && assumed.bools_are_0_or_1) {
        // every value is looked at: an element that was never written is not a boolean, and elements beyond the edge do not
        // count
        materialize = true;
        std::fill(fill.begin(), fill.end(), std::byte{0});
      } else {
        assumed.bools_are_0_or_1 = false;
      }
    }
    if (assumed.bools_are_0_or_1) meta.fill_value = hdf5::fill_json(leaf, fill.data());
    else meta.fill_value = leaf.is_signed ? text::json(static_cast<std::int8_t>(number)) : text::json(number);
  }
  if (hdf5::holds_references(leaf)) {  // HDF5 allocates strings; chunks that were never written are not read through it
    release(view, fill);
    std::fill(fill.begin(), fill.end(), std::byte{0});
  }
}

namespace {

// Whether the attribute _FillValue is these bytes: xarray takes it, and nothing else, for the fill value of Zarr v2.
bool is_missing_value(hid_t dataset, const field_view& view, const compressors::buffer& fill) {
  if (!view.is_complete || view.per_element() != 1 || H5Aexists(dataset, "_FillValue") <= 0) return false;
  const hdf5::handle attribute(H5Aopen(dataset, "_FillValue", H5P_DEFAULT)), space(H5Aget_space(attribute)),
      type(H5Aget_type(attribute));
  if (!attribute || H5Sget_simple_extent_npoints(space) != 1 || H5Tis_variable_str(type) > 0 ||
      H5Tget_class(type) != H5Tget_class(view.memory))
    return false;
  compressors::buffer value(std::max(view.size, H5Tget_size(type)), std::byte{0});
  return H5Aread(attribute, view.memory, value.data()) >= 0 && std::memcmp(value.data(), fill.data(), view.size) == 0;
}

}  // namespace

void array_plan::choose_gaps() {
  const std::uint64_t chunks = data.grid.chunks(), stored = data.max_stored_chunks();
  const bool numbers = !hdf5::holds_references(leaf) && leaf.kind != hdf5::type_class::compound;
  writes_gaps = !numbers || !is_missing_value(data.dataset, view, fill);
  H5Eclear2(H5E_DEFAULT);
  if (writes_gaps) require_plausible_gaps(chunks - std::min(chunks, stored));
}

void array_plan::require_plausible_gaps(std::uint64_t chunks) const {
  constexpr std::uint64_t max_ratio = 1000;
  const std::uint64_t plain = array::saturating_mul(chunks, std::max<std::uint64_t>(1, chunk_bytes()));
  if (plain <= data.file.largest_expansion() || plain / max_ratio <= std::max(data.stored_bytes, data.bytes->state().size))
    return;
  throw hdf5::unsupported_dataset(
      reason_code::too_large,
      "Zarr v2 cannot have its fill value, and chunks that were never written would become " + text::format_bytes(plain) +
          ", more than 1,000 times as much as the file, and more than `memory` allows; set `zarr_format` to " +
          "3, or `allow_expansion` if the file can be trusted");
}

void array_plan::choose_strategy(const convert_options& options) {
  const hdf5::pipeline& p = data.filters;
  if (hdf5::is_int8_boolean(leaf) && assumed.bools_are_0_or_1 && materialize) return;  // read
  const bool bytes_are_bytes = view.is_complete && !text && !flat && data.type.as_stored && uniform_order(leaf, big_endian);
  as_stored = bytes_are_bytes;
  if (!data.can_reuse_chunks()) {
    if (bytes_are_bytes && data.layout == H5D_CONTIGUOUS) strategy = strategy_type::copy;
    return;
  }
  const bool recode = options.effective_profile() == profile::recode;
  // more readers of Zarr v2 know zlib than gzip
  const bool wants_zlib = options.target.is_v2_copy() && !recode && is_only_filter(native, H5Z_FILTER_DEFLATE);
  const bool wants_native =
      in_store ? has_native_codecs(in_store->codecs) : wants_zlib || options.effective_profile() == profile::native;
  if (bytes_are_bytes && p.empty()) {
    strategy = strategy_type::copy;
  } else if (bytes_are_bytes && is_only_filter(p, hdf5::bytes_filter) && p.can_decode(data.type)) {
    strategy = strategy_type::copy;
    if (hdf5::was_resolved(p.filters[0])) big_endian = p.filters[0].values[0] == 1;
  } else if (bytes_are_bytes && !recode && is_only_filter(p, hdf5::zstd_filter)) {
    strategy = strategy_type::copy_zstd;
  } else if (bytes_are_bytes && !recode && is_only_filter(p, hdf5::blosc_filter) && readable_blosc(p.filters[0])) {
    strategy = strategy_type::copy_blosc;
  } else if (bytes_are_bytes && wants_native && can_be_native() && p.can_decode(data.type)) {
    strategy = strategy_type::copy_native;
  } else if (bytes_are_bytes && !recode && (p.checks_only() || deflate_and_checksums(p))) {
    strategy = strategy_type::rewrap;
  } else if (view.is_complete && !hdf5::holds_references(data.type) && p.can_decode(data.type)) {
    strategy = strategy_type::decode;
  }
}

// For chunks of every length.
bool array_plan::can_be_native() const {
  if (!data.grid.is_rectilinear()) return native_codecs(native, chunk_bytes()).has_value();
  const array::chunk_grid& grid = data.grid;
  for (std::size_t d = 0; d < grid.runs.size(); ++d) {
    for (const array::chunk_run& run : grid.runs[d]) {
      if (!native_codecs(native, chunk_bytes() / grid.chunk[d] * run.length)) return false;
    }
  }
  return true;
}

void array_plan::choose_compression(const convert_options& options) {
  const bool is_virtual = data.layout == H5D_VIRTUAL;
  const hdf5::pipeline& p = is_virtual ? data.source_filters : data.filters;
  const std::size_t number = leaf.kind == hdf5::type_class::complex ? leaf.size / 2 : leaf.size;
  typesize = packed || text || opaque || flat ? 1 : number;
  if (strategy == strategy_type::packed) return;
  if (options.effective_profile() == profile::recode && options.encoding.compress) {
    target_compression = with_level(*options.encoding.compress);
    if (strategy == strategy_type::copy && target_compression.kind != compressor::none)
      strategy = data.can_reuse_chunks() && p.can_decode(data.type) ? strategy_type::decode : strategy_type::read;
    if (typesize == 1 && target_compression.shuffle == blosc_shuffle::bytes) target_compression.shuffle = blosc_shuffle::none;
  } else if (strategy == strategy_type::copy_zstd || strategy == strategy_type::copy_blosc) {
    target_compression = compression_of(p.filters[0]);
  } else if ((data.layout == H5D_CHUNKED || is_virtual) && p.compresses() && strategy != strategy_type::copy) {
    const bool decoded = strategy == strategy_type::decode || strategy == strategy_type::read;
    if (decoded && !packed && !text && !opaque && !flat) {
      target_compression = default_compression(p, typesize);
      if (can_keep_stream(p)) keeps_stream = true;
      else fallback = fallback_compression(target_compression);
    } else {
      target_compression = {compressor::gzip, p.gzip_level()};
    }
  }
  const std::uint64_t bytes = data.grid.chunk_elements() * view.size;
  if (!text && !fits(target_compression, bytes)) {
    target_compression = {compressor::zstd, 3};
    fallback.reset();
    keeps_stream = false;
  }
}

// Blosc with zlib has the bytes of shuffle and deflate, and its buffers say themselves how they are compressed.
bool array_plan::can_keep_stream(const hdf5::pipeline& p) const {
  std::vector<const hdf5::filter*> filters;
  for (const hdf5::filter& f : p.filters)
    if (!hdf5::is_no_op(f)) filters.push_back(&f);
  if (filters.size() == 3 && filters[2]->id == H5Z_FILTER_FLETCHER32) filters.pop_back();
  return strategy == strategy_type::decode && as_stored && filters.size() == 2 && filters[0]->id == H5Z_FILTER_SHUFFLE &&
         filters[1]->id == H5Z_FILTER_DEFLATE && filters[0]->values.size() == 1 &&
         compressors::fits_one_block(static_cast<std::size_t>(chunk_bytes()), filters[0]->values[0]);
}

namespace {

// The bits to keep of the integers of a dataset, and whether they were asked for by its name.
struct requested_bits {
  unsigned first = 0, last = 0;
  bool by_name = false;
};

// Chunks that the filter packed are chunks of the codec for `type` if both make the same of the bits above the kept ones.
bool is_codec_of(const hdf5::packbits_layout& layout, const data_type& type) {
  return !layout.msb_first &&
         (layout.is_signed == type.name().starts_with("int") || layout.first_bit + layout.bits == type.component_bits());
}

std::optional<requested_bits> bits_for(const std::string& path, const convert_options& options) {
  for (std::size_t i = options.encoding.bits_of.size(); i-- > 0;) {
    const auto& of = options.encoding.bits_of[i];
    if (text::selection({of.pattern}, {}).matches(path)) return requested_bits{of.first_bit, of.last_bit, true};
  }
  if (!options.encoding.bits) return {};
  return requested_bits{0, *options.encoding.bits - 1, false};
}

}  // namespace

void array_plan::choose_packbits(const convert_options& options) {
  if (in_store) {
    if (metadata::codec_id_in(in_store->codecs[0]) != metadata::codec_id::packbits) return;
    const data_type type(meta.data_type.is_string() ? meta.data_type.get<std::string>() : text::strict_json_text(meta.data_type));
    packed = parse_codec(text::strict_json_text(in_store->codecs[0]), type);
    strategy = strategy_type::read;
    const auto layout = is_only_filter(data.filters, hdf5::packbits_filter) && view.is_complete && data.can_reuse_chunks() &&
                                in_store->codecs.size() == 1
                            ? hdf5::packbits_of(data.filters.filters[0], leaf)
                            : std::nullopt;
    if (!layout || !is_codec_of(*layout, type)) return;
    const codec expected = packbits(type, {.padding_encoding = static_cast<padding>(layout->padding),
                                           .first_bit = layout->first_bit,
                                           .last_bit = layout->first_bit + layout->bits - 1});
    if (expected.json() == packed->json()) strategy = strategy_type::packed;
    return;
  }
  if (options.encoding.codec == array_codec::bytes || text || opaque || !assumed.bools_are_0_or_1 || !assumed.raw_packing_fits)
    return;
  const std::optional<requested_bits> requested = bits_for(data.object.path, options);
  const hdf5::pipeline& p = data.filters;
  const data_type type(meta.data_type.is_string() ? meta.data_type.get<std::string>() : text::strict_json_text(meta.data_type));
  // chunks of our own filter are chunks of the codec already
  if (is_only_filter(p, hdf5::packbits_filter) && view.is_complete) {
    const auto layout = hdf5::packbits_of(p.filters[0], leaf);
    const bool asked_otherwise =
        requested && leaf.kind != hdf5::type_class::boolean && layout &&
        (requested->first != layout->first_bit || requested->last + 1 != layout->first_bit + layout->bits);
    if (layout && is_codec_of(*layout, type) && !asked_otherwise) {
      packed = packbits(type, {.padding_encoding = static_cast<padding>(layout->padding),
                               .first_bit = layout->first_bit,
                               .last_bit = layout->first_bit + layout->bits - 1});
      packed_in_source = true;
      strategy = data.can_reuse_chunks() ? strategy_type::packed : strategy_type::read;
      return;
    }
  }
  if (options.encoding.codec != array_codec::packbits || !is_packable(leaf)) return;
  const unsigned width = type.component_bits();
  unsigned first = 0, last = width - 1;
  if (leaf.kind != hdf5::type_class::boolean) {
    if (requested) {
      last = std::min(requested->last, last);
      first = std::min(requested->first, last);
      packed_if_it_fits = !requested->by_name && last < width - 1;
      if (packed_if_it_fits && !assumed.bits_suffice) return;
    } else if (leaf.precision) {
      last = leaf.precision - 1;
    } else {
      return;  // every bit is kept: this is the same as `bytes`
    }
    if (first == 0 && last == width - 1 && !(requested && requested->by_name)) return;
  }
  packed = packbits(type, {.first_bit = first, .last_bit = last});
  strategy = strategy_type::read;
}

void array_plan::choose_codecs() {
  if (packed) meta.codecs = text::json::array({text::parse_json(packed->json())});
  else if (text) meta.codecs = metadata::text_codecs(assumed.text_is_utf8);
  else meta.codecs = metadata::bytes_codecs(flat || !time.is_null() || (!opaque && hdf5::has_byte_order(leaf)), big_endian);
  if (strategy == strategy_type::copy_native) {
    const std::optional<text::json> codecs = native_codecs(native, chunk_bytes());
    for (const text::json& codec : *codecs) meta.codecs.push_back(codec);
  } else {
    append_codec(meta.codecs, target_compression,
                 strategy == strategy_type::copy_blosc ? data.filters.filters[0].values[2] : typesize);
  }
  if (checksum) metadata::append_crc32c_codec(meta.codecs);
}

void array_plan::match_existing_array() {
  const append::existing_array& existing = *in_store;
  const auto refuse = [](const std::string& property, const text::json& stored, const text::json& planned) {
    throw hdf5::unsupported_dataset(reason_code::not_joinable,
                                    "in the store its " + property + " is " + text::strict_json_text(stored) +
                                        ", and of these files it would be " + text::strict_json_text(planned));
  };
  std::vector<std::uint64_t> shape = meta.shape;
  const std::size_t axis = data.growing_axis().value();
  shape[axis] = existing.shape[axis];
  if (shape != existing.shape) refuse("shape", text::json(existing.shape), text::json(shape));
  std::vector<std::uint64_t> chunk = meta.chunk;
  if (data.grid.is_rectilinear()) chunk[axis] = existing.chunk[axis];
  if (chunk != existing.chunk) refuse("chunk shape", text::json(existing.chunk), text::json(chunk));
  if (meta.data_type != existing.data_type && characters && existing.data_type == "string")
    throw hdf5::unsupported_dataset(
        reason_code::not_joinable,
        "the store was made with another convention, such as none, and these files are netCDF: its characters "
        "are strings in the store; make it again from all files, with `concat` and `convention`");
  if (meta.data_type != existing.data_type) refuse("data type", existing.data_type, meta.data_type);
  if (meta.fill_value != existing.fill_value) materialize = true;  // gaps that no file fills are written
  meta.fill_value = existing.fill_value;
  if (packed) meta.codecs[0] = existing.codecs[0];  // the codec that the chunks were made with
  if (!decode_alike(meta.codecs, existing.codecs)) {
    const auto chain = compression_in(existing.codecs);
    if (!chain || !decode_alike(text::json::array({meta.codecs[0]}), text::json::array({existing.codecs[0]})))
      refuse("list of codecs", existing.codecs, meta.codecs);
    target_compression = chain->first;
    typesize = chain->second;
    fallback.reset();
    keeps_stream = false;
    if (strategy != strategy_type::copy || target_compression.kind != compressor::none) {
      const bool undone = data.can_reuse_chunks() && view.is_complete && !packed && !hdf5::holds_references(data.type);
      strategy = undone && data.filters.can_decode(data.type) ? strategy_type::decode : strategy_type::read;
    }
  }
  meta.codecs = existing.codecs;
}

array_plan::origin array_plan::chunk_origin() const {
  if (data.can_reuse_chunks() && !materialize) return origin::chunks;
  return strategy == strategy_type::copy && !packed ? origin::range : origin::values;
}

array_plan::step array_plan::step_for(const array::extents& coordinates, std::uint64_t stored, unsigned mask) const {
  const std::vector<hdf5::filter>& filters = data.filters.filters;
  const step undone = undoable ? step::decode : step::read;
  const bool filtered = hdf5::applied(mask, 0);
  switch (strategy) {
    case strategy_type::copy:
      if (!filters.empty() && !filtered) return undone;
      return stored == chunk_bytes(coordinates) && leaf.kind != hdf5::type_class::boolean ? step::take : step::check;
    case strategy_type::copy_zstd: return filtered ? step::check : undone;
    case strategy_type::copy_blosc: return filtered ? step::check : step::encode;
    case strategy_type::copy_native:
      if (mask != 0) return undone;
      return filters.back().id == H5Z_FILTER_FLETCHER32 || filters.back().id == hdf5::lz4_filter ? step::native : step::take;
    case strategy_type::rewrap: return step::rewrap;
    case strategy_type::packed:
      if (filtered && stored == packed->encoded_size(data.grid.chunk_elements(coordinates) * view.per_element()))
        return step::take;
      return !filtered || stored == chunk_bytes(coordinates) ? undone : step::check;  // unpacked values: see undo()
    case strategy_type::decode:
    case strategy_type::read: break;
  }
  return undone;
}

bool array_plan::is_read(const array::extents& coordinates, bool of_several) const {
  // elements beyond the source's edge are inside of a larger array, and must be the fill value
  return strategy == strategy_type::read || of_several || (is_extended() && data.grid.is_partial(coordinates));
}

outcome array_plan::outcome_if_read() const {
  if (strategy != strategy_type::copy || packed || data.is_composite()) return outcome::recoded;
  return checksum ? outcome::rewrapped : outcome::raw;
}

std::uint64_t array_plan::chunk_bytes() const { return data.grid.chunk_elements() * data.element_size; }

std::uint64_t array_plan::chunk_bytes(const array::extents& coordinates) const {
  return data.grid.chunk_elements(coordinates) * data.element_size;
}

std::size_t array_plan::element_size() const {
  return flat ? data_type(text::strict_json_text(meta.data_type)).element_size() : view.size;
}

metadata::array_metadata array_plan::stored_metadata() const {
  metadata::array_metadata m = meta;
  if (!data.sharded()) return m;
  m.codecs = metadata::sharding_codecs(meta.chunk, meta.codecs);
  for (std::size_t d = 0; d < data.grid.rank(); ++d) m.chunk[d] *= data.shards.chunk[d];
  return m;
}

}  // namespace zarrbits::conversion
