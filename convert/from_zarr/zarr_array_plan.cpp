// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/zarr_array_plan.hpp"

#include "codecs/registry.hpp"
#include "convert/plan/chunk_grid_choice.hpp"
#include "convert/plan/dimension_chunks.hpp"
#include "convert/plan/filter_compression.hpp"
#include "metadata/array_metadata.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/format.hpp"
#include "text/selection.hpp"

#include <zarrbits/codec.hpp>
#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <utility>

namespace zarrbits::conversion {

namespace {

using metadata::codec_id;
using metadata::codec_id_in;
using zarr::zarr_kind;
using zarr::zarr_type;

std::size_t typesize_of(const zarr_type& type) {
  if (type.kind == zarr_kind::complex) return type.size / 2;
  const bool number = type.kind == zarr_kind::boolean || type.kind == zarr_kind::signed_integer ||
                      type.kind == zarr_kind::unsigned_integer || type.kind == zarr_kind::floating;
  return number ? type.size : 1;
}

bool is_packable(const zarr_type& type) {
  return type.kind == zarr_kind::boolean || type.kind == zarr_kind::signed_integer || type.kind == zarr_kind::unsigned_integer;
}

text::json bytes_codec(const zarr_type& type) { return metadata::bytes_codecs(type.size > 1, false).front(); }

struct bits_request {
  unsigned first = 0, last = 0;
  bool if_they_fit = false;
};

std::optional<bits_request> bits_for(const zarr_type& type, const std::string& path, const convert_options& options,
                                     bool bits_suffice) {
  std::optional<bits_request> request;
  const unsigned width = type.kind == zarr_kind::boolean ? 1 : type.bits;
  for (const auto& of : options.encoding.bits_of) {
    text::selection one({of.pattern}, {});
    if (one.matches(path)) request = bits_request{of.first_bit, of.last_bit, false};
  }
  if (request) {
    request->last = std::min(request->last, width - 1);
    if (request->first > request->last) return {};
    return request;
  }
  if (type.kind == zarr_kind::boolean || !options.encoding.bits) return bits_request{0, width - 1, false};
  if (*options.encoding.bits >= width || !bits_suffice) return {};
  return bits_request{0, *options.encoding.bits - 1, true};
}

// The codec from array to bytes, as the options want it; and what comes before it.
text::json front_codecs(const text::json& codecs, const source_array& array, const text::json& document, const std::string& path,
                        const convert_options& options, bool bits_suffice, bool& packs_if_it_fits) {
  text::json front = text::json::array();
  for (const text::json& codec : codecs) {
    const codec_id id = codec_id_in(codec);
    if (codecs::is_bytes_to_bytes(id)) break;
    const bool packed = id == codec_id::packbits || id == codec_id::numcodecs_packbits;
    if (packed && options.encoding.codec == array_codec::bytes) {
      front.push_back(bytes_codec(array.type()));
    } else if (id == codec_id::bytes && options.encoding.codec == array_codec::packbits && is_packable(array.type())) {
      const auto bits = bits_for(array.type(), path, options, bits_suffice);
      if (!bits) {
        front.push_back(codec);
        continue;
      }
      packs_if_it_fits = bits->if_they_fit;
      const text::json type = metadata::data_type_of(document);
      packbits_parameters parameters;
      parameters.first_bit = bits->first;
      parameters.last_bit = bits->last;
      front.push_back(text::parse_json(
          packbits(zarrbits::data_type(type.is_string() ? type.get<std::string>() : text::json_text(type)), parameters).json()));
    } else {
      front.push_back(codec);
    }
  }
  return front;
}

// The codecs from bytes to bytes.
text::json last_codecs(const text::json& codecs, const source_array& array, const convert_options& options) {
  text::json last = text::json::array();
  bool of_numcodecs = false, checksum = false, compresses = false;
  for (const text::json& codec : codecs) {
    const codec_id id = codec_id_in(codec);
    if (!codecs::is_bytes_to_bytes(id)) continue;
    if (options.target.is_v2_copy() && id == codec_id::crc32c) continue;  // few readers of Zarr v2 know it
    of_numcodecs = of_numcodecs || metadata::name_of(codec).starts_with(metadata::numcodecs_prefix);
    checksum = id == codec_id::crc32c;
    compresses = compresses || (id != codec_id::crc32c && id != codec_id::shuffle && id != codec_id::fletcher32);
    last.push_back(codec);
  }
  const bool is_reencoded = options.encoding.compress ||
                            (options.encoding.profile == profile::recode && !options.encoding.sets_chunks()) ||
                            (options.encoding.profile == profile::portable && of_numcodecs);
  if (is_reencoded) {
    const std::size_t typesize = typesize_of(array.type());
    const compression selected =
        options.encoding.compress ? with_level(*options.encoding.compress) : default_compression({}, typesize);
    last = text::json::array();
    if (options.encoding.compress || compresses || options.encoding.profile == profile::recode)
      append_codec(last, selected, typesize);
    if (checksum) metadata::append_crc32c_codec(last);
  }
  if (options.encoding.checksum == checksum::crc32c && !checksum) metadata::append_crc32c_codec(last);
  return last;
}

// The codecs of re-encoded chunks. Filters of numcodecs from array to array are not written: without them the values
// are the same ones. numcodecs' shuffle takes whole elements only, so it goes where chunks may have a part of one.
text::json writable_codecs(const text::json& codecs, const source_array& array, const text::json& data_type,
                           const array::extents* chunk) {
  text::json result = text::json::array();
  const zarr_type& type = array.type();
  std::uint64_t size = 0;  // of what the next codec gets, or a divisor of it if chunks differ; 0: not known
  bool filtered = false;
  for (text::json codec : codecs) {
    const codec_id id = codec_id_in(codec);
    if (metadata::is_array_filter(id)) {
      filtered = true;
      continue;
    }
    switch (id) {
      case codec_id::shuffle: {
        const text::json element = metadata::configuration_of(codec).value("elementsize", text::json(4));
        if (size == 0 || !element.is_number_unsigned() || element == 0 || size % element.get<std::uint64_t>() != 0) continue;
        break;
      }
      case codec_id::bytes:
        if (filtered) codec = type.variable() ? metadata::text_codecs(true).front() : bytes_codec(type);
        if (!type.variable()) size = type.size;
        if (chunk) size = array::saturating_mul(size, array::product(*chunk));
        break;
      case codec_id::packbits:
      case codec_id::numcodecs_packbits:
        if (chunk)
          size = parse_codec(text::json_text(codec), zarrbits::data_type(data_type.is_string() ? data_type.get<std::string>()
                                                                                               : text::json_text(data_type)))
                     .encoded_size(array::product(*chunk));
        break;
      case codec_id::numcodecs_crc32c: codec = metadata::codec_json(codec_id::crc32c); [[fallthrough]];
      case codec_id::fletcher32:
      case codec_id::crc32c:
        if (size > 0 && chunk) size += 4;
        else size = 0;
        break;
      case codec_id::transpose: break;
      default: size = 0;
    }
    result.push_back(std::move(codec));
  }
  return result;
}

// Filters that numcodecs has in Zarr v2, and zarr-python not in v3: there, values stay as long when they are quantized.
bool is_only_in_v2(const text::json& codecs) {
  return std::any_of(codecs.begin(), codecs.end(), [](const text::json& c) {
    const text::json configuration = metadata::configuration_of(c);
    return codec_id_in(c) == codec_id::categorize ||
           (codec_id_in(c) == codec_id::quantize &&
            configuration.value("astype", text::json()) != configuration.value("dtype", text::json()));
  });
}

// Not set: the array keeps its chunks.
std::optional<array::extents> requested_chunk(const source_array& array, const text::json& document, const std::string& path,
                                              const convert_options& options) {
  const array::extents& shape = array.shape();
  if (shape.empty()) return {};
  // stores that end within chunks, or have chunks of different lengths
  const bool has_several_lengths = array.is_joined() && !array.is_regular() && options.encoding.grid != grid_type::rectilinear;
  array::extents chunk = has_several_lengths ? array.usual_chunk() : array.chunk_shape();
  bool is_requested = options.encoding.chunk.size() == shape.size();
  for (std::size_t d = 0; is_requested && d < shape.size(); ++d)
    chunk[d] = std::min(options.encoding.chunk[d], std::max<std::uint64_t>(shape[d], 1));
  if (use_dimension_chunks(options.encoding.chunk_along, path, metadata::dimension_names_in(document), shape, chunk))
    is_requested = true;
  if (has_several_lengths) return chunk;
  if (!is_requested || (array.is_regular() && chunk == array.chunk_shape())) return {};
  return chunk;
}

// Chunks in a shard along each dimension.
array::extents chunks_in_shard(const source_array& array, const array::extents& chunk, const convert_options& options) {
  const array::extents current = options.target.references ? array.chunks_per_shard() : array.usual_per_shard(),
                       usual_chunk = array.usual_chunk();
  const std::optional<shard_size>& requested = options.encoding.shard;
  if (requested && (requested->shape.empty() || requested->shape.size() == array.shape().size()))
    return chunks_per_shard(*requested, {array.shape(), chunk}, std::max<std::uint64_t>(element_bytes(array.type()), 1));
  array::extents n;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::uint64_t length = current[d] * usual_chunk[d];
    n.push_back(array::product(current) == 1 ? 1 : length / chunk[d] + (length % chunk[d] != 0));
  }
  return n;
}

// Lengths that no arithmetic here can make overflow, and shards whose index can be held. The store is untrusted.
void require_sane(const zarr_array_plan& change) {
  constexpr std::uint64_t longest = std::uint64_t{1} << 62, max_per_shard = std::uint64_t{1} << 26;
  std::uint64_t in_shard = 1;
  for (std::size_t d = 0; d < change.chunk.size(); ++d) {
    in_shard = array::saturating_mul(in_shard, change.per_shard[d]);
    if (array::saturating_mul(change.chunk[d], change.per_shard[d]) > longest)
      throw zarr::not_supported(reason_code::too_large, "chunks or shards of more than 2^62 elements along a dimension");
    if (change.strategy == zarr_strategy::rechunk && change.shape[d] > longest)
      throw zarr::not_supported(reason_code::too_large, "other chunks of an array of more than 2^62 elements along a dimension");
  }
  if (in_shard > max_per_shard && change.strategy != zarr_strategy::copy)
    throw zarr::not_supported(reason_code::too_large, "shards of more than 2^26 chunks");
}

}  // namespace

std::uint64_t element_bytes(const zarr_type& type) {
  constexpr std::uint64_t of_a_string = 64;
  return type.variable() ? of_a_string : type.size;
}

array::extents zarr_array_plan::object_shape() const {
  array::extents object;
  for (std::size_t d = 0; d < chunk.size(); ++d) object.push_back(chunk[d] * per_shard[d]);
  return object;
}

std::string zarr_array_plan::description() const {
  switch (strategy) {
    case zarr_strategy::copy: return "copied";
    case zarr_strategy::reshard: return shards ? "chunks are copied into shards" : "chunks are copied out of shards";
    case zarr_strategy::recode: return "chunks are decoded and encoded again";
    case zarr_strategy::rechunk: break;
  }
  if (chunk_by_chunk) return "decoded for each chunk of shards that do not fit in the memory";
  if (!plan.two_passes())
    return text::pluralize(plan.reads, "chunk") + " decoded for regions of " + array::joined_text(plan.region) + ", in one pass";
  return text::pluralize(plan.reads, "chunk") + " decoded once, " + array::joined_text(plan.staged) +
         " at a time, into a scratch file of " + text::pluralize(plan.tiles, "piece") + "; then regions of " +
         array::joined_text(plan.region);
}

zarr_array_plan plan_zarr_array(const source_array& array, const text::json& document, const std::string& path,
                                const convert_options& options, bool bits_suffice) {
  zarr_array_plan change;
  change.shape = array.shape();
  change.regular = array.is_regular();
  const std::optional<array::extents> requested = requested_chunk(array, document, path, options);
  change.chunk = requested.value_or(array.chunk_shape());
  change.document = document;
  const text::json source_codecs = metadata::inner_codecs(metadata::codecs_of(document));
  change.codecs = front_codecs(source_codecs, array, document, path, options, bits_suffice, change.packs_if_it_fits);
  for (text::json& codec : last_codecs(source_codecs, array, options)) change.codecs.push_back(std::move(codec));

  const bool same_grid = !requested;
  if (!change.regular && same_grid && options.encoding.makes_shards())
    throw error(errc::unsupported, "the chunks of \"" + path +
                                       "\" differ in length (a rectilinear grid), and all chunks of a shard have one shape; "
                                       "set `chunk`, or remove `shard`");
  change.per_shard =
      !change.regular && same_grid ? array::extents(change.shape.size(), 1) : chunks_in_shard(array, change.chunk, options);
  change.shards = array::product(change.per_shard) > 1;

  if (!same_grid || change.codecs != source_codecs || (is_only_in_v2(source_codecs) && !options.target.is_v2_copy()))
    change.codecs = writable_codecs(change.codecs, array, metadata::data_type_of(document),
                                    change.regular || !same_grid ? &change.chunk : nullptr);
  change.keeps_stored_chunks = change.codecs == source_codecs;
  const bool same_codecs = change.keeps_stored_chunks && array.has_stored_chunks();
  const bool same_objects = change.per_shard == array.chunks_per_shard() && !array.divides_shards();
  change.strategy = !same_grid      ? zarr_strategy::rechunk
                    : !same_codecs  ? zarr_strategy::recode
                    : !same_objects ? zarr_strategy::reshard
                                    : zarr_strategy::copy;
  require_sane(change);
  if (change.strategy == zarr_strategy::recode || change.strategy == zarr_strategy::rechunk) array.require_decodable();
  if (!(same_grid && same_codecs && same_objects)) {
    metadata::set_codecs(change.document, change.shards ? metadata::sharding_codecs(change.chunk, change.codecs) : change.codecs);
    if (change.regular || !same_grid) metadata::set_chunk_grid(change.document, metadata::regular_grid(change.object_shape()));
  }
  metadata::set_key_encoding(change.document, {});
  change.writes_gaps = options.target.is_v2_copy() && !metadata::allows_gaps_in_v2(change.document);

  if (change.strategy == zarr_strategy::recode || change.strategy == zarr_strategy::rechunk)
    change.encoder.emplace(change.codecs, metadata::data_type_of(document));
  if (change.strategy != zarr_strategy::rechunk) return change;

  array::rechunk_request request;
  request.array = change.shape;
  const array::extents object = change.object_shape();
  for (std::size_t d = 0; d < object.size(); ++d) {
    const std::uint64_t extent = std::max<std::uint64_t>(change.shape[d], 1);
    request.source_chunk.push_back(std::min(array.chunk_shape()[d], extent));
    request.target_object.push_back(object[d]);
  }
  request.element = element_bytes(array.type());
  std::uint64_t object_bytes = request.element;
  for (std::size_t d = 0; d < object.size(); ++d)
    object_bytes = array::saturating_mul(object_bytes, std::min(object[d], change.shape[d]));
  // units are regions: all processes choose the same ones, whatever their processors
  constexpr unsigned at_once = 2;
  change.chunk_by_chunk = change.shards && object_bytes > options.execution.memory / 2;
  request.may_use_scratch = !array.type().variable() && !change.chunk_by_chunk;
  change.plan = array::plan_rechunk(request, options.execution.memory / 2 / at_once);
  return change;
}

}  // namespace zarrbits::conversion
