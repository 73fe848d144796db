// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/chunk_encoder.hpp"

#include "array/extents.hpp"
#include "compressors/blosc.hpp"
#include "compressors/bzip2.hpp"
#include "compressors/crc32c.hpp"
#include "compressors/deflate.hpp"
#include "compressors/fletcher32.hpp"
#include "compressors/lz4.hpp"
#include "compressors/shuffle.hpp"
#include "compressors/zstd.hpp"
#include "metadata/named_configuration.hpp"
#include "zarr/write/vlen_encoder.hpp"

#include <zarrbits/chunk.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::zarr {

namespace {

int number_in(const text::json& configuration, const char* key, int otherwise, int min_value, int max_value) {
  const auto entry = configuration.find(key);
  if (entry == configuration.end() || !entry->is_number_integer()) return otherwise;
  if (entry->is_number_unsigned() && entry->get<std::uint64_t>() > static_cast<std::uint64_t>(max_value)) return max_value;
  return static_cast<int>(std::clamp<std::int64_t>(entry->get<std::int64_t>(), min_value, max_value));
}

std::vector<std::size_t> order_in(const text::json& configuration) {
  std::vector<std::size_t> order;
  const auto list = configuration.find("order");
  if (list == configuration.end() || !list->is_array())
    throw error(errc::unsupported, "chunks with a transpose whose order is not a list cannot be encoded");
  for (const text::json& n : *list) order.push_back(n.is_number_unsigned() ? n.get<std::size_t>() : order.max_size());
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) throw error(errc::unsupported, "chunks with a transpose that is not a permutation cannot be encoded");
  }
  return order;
}

// Calls `put` with the index of each element in the order of the transposed chunk.
template <class Put>
void for_each_transposed(const std::vector<std::size_t>& order, const std::vector<std::uint64_t>& shape, const Put& put) {
  const std::size_t rank = shape.size();
  const array::extents stride = array::strides_of(shape);
  std::vector<std::uint64_t> index(rank, 0);
  const std::uint64_t count = array::product(shape);
  std::uint64_t source = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    put(static_cast<std::size_t>(source));
    for (std::size_t k = rank; k-- > 0;) {
      const std::size_t d = order[k];
      source += stride[d];
      if (++index[d] < shape[d]) break;
      source -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

chunk_encoder::chunk_encoder(const text::json& codecs, const text::json& data_type) {
  static const std::pair<const char*, step::kind_type> step_kinds[] = {{"gzip", step::gzip},
                                                                       {"zstd", step::zstd},
                                                                       {"blosc", step::blosc},
                                                                       {"crc32c", step::crc32c},
                                                                       {"numcodecs.zlib", step::zlib},
                                                                       {"numcodecs.bz2", step::bz2},
                                                                       {"numcodecs.lz4", step::lz4},
                                                                       {"numcodecs.shuffle", step::shuffle},
                                                                       {"numcodecs.fletcher32", step::fletcher32}};
  bool in_bytes = false;
  for (const text::json& entry : codecs) {
    const std::string name = metadata::name_of(entry);
    const text::json configuration = metadata::configuration_of(entry);
    const auto known_step =
        std::find_if(std::begin(step_kinds), std::end(step_kinds), [&](const auto& k) { return name == k.first; });
    if (known_step != std::end(step_kinds)) {
      steps_.push_back(step_of(known_step->second, configuration));
    } else if (name == "transpose") {
      order_ = order_in(configuration);
    } else if (name == "vlen-utf8" || name == "vlen-bytes") {
      in_bytes = true;
    } else if (name == "bytes" || name == "endian" || name == "packbits" || name == "numcodecs.packbits") {
      codec_ = parse_codec(text::json_text(entry), zarrbits::data_type(data_type.is_string() ? data_type.get<std::string>()
                                                                                             : text::json_text(data_type)));
      element_ = codec_->element_size();
      in_bytes = true;
    } else {
      throw error(errc::unsupported, "chunks with the codec " + (name.empty() ? "without a name" : name) + " cannot be encoded");
    }
  }
  if (!in_bytes) throw error(errc::unsupported, "chunks without a codec from array to bytes cannot be encoded");
}

chunk_encoder::step chunk_encoder::step_of(step::kind_type kind, const text::json& configuration) const {
  step s{kind};
  switch (kind) {
    case step::gzip: s.level = number_in(configuration, "level", 5, 0, 9); break;
    case step::zlib: s.level = number_in(configuration, "level", 1, 0, 9); break;
    case step::bz2: s.level = number_in(configuration, "level", 1, 1, 9); break;
    case step::zstd: s.level = number_in(configuration, "level", 0, -100, 22); break;
    case step::shuffle: s.element = static_cast<std::size_t>(number_in(configuration, "elementsize", 4, 1, 1 << 30)); break;
    case step::blosc: {
      s.level = number_in(configuration, "clevel", 5, 0, 9);
      s.element = static_cast<std::size_t>(number_in(configuration, "typesize", static_cast<int>(element_), 1, 1 << 30));
      const text::json shuffle = configuration.value("shuffle", text::json("shuffle")),
                       inside = configuration.value("cname", text::json("lz4"));
      s.order = shuffle == "noshuffle" ? 0 : shuffle == "bitshuffle" ? 2 : 1;
      s.inside = inside.is_string() ? inside.get<std::string>() : "";
      static const char* const usable[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
      if (std::find(std::begin(usable), std::end(usable), s.inside) == std::end(usable))
        throw error(errc::unsupported, "chunks with blosc and the compressor \"" + s.inside + "\" cannot be encoded");
      break;
    }
    case step::lz4:
    case step::fletcher32:
    case step::crc32c: break;
  }
  return s;
}

compressors::buffer chunk_encoder::compressed(compressors::buffer bytes) const {
  for (const step& s : steps_) {
    switch (s.kind) {
      case step::gzip: bytes = compressors::gzip_member(bytes, s.level); break;
      case step::zstd: bytes = compressors::zstd_frame(bytes, s.level); break;
      case step::blosc:
        bytes = compressors::blosc_buffer(bytes, compressors::blosc_typesize(s.element), s.level, s.order, s.inside);
        break;
      case step::zlib: bytes = compressors::zlib_stream(bytes, s.level); break;
      case step::bz2: bytes = compressors::bzip2_stream(bytes, s.level); break;
      case step::lz4: bytes = compressors::lz4_numcodecs_frame(bytes); break;
      case step::shuffle: bytes = compressors::shuffled(std::move(bytes), s.element); break;
      case step::fletcher32: compressors::append_fletcher32(bytes); break;
      case step::crc32c: compressors::append_crc32c(bytes); break;
    }
  }
  return bytes;
}

compressors::buffer chunk_encoder::encode(std::span<const std::byte> values, const std::vector<std::uint64_t>& shape) const {
  if (!codec_) throw std::logic_error("numbers are encoded as strings");
  compressors::buffer transposed;
  if (!order_.empty()) {
    transposed.resize(values.size());
    std::byte* target = transposed.data();
    for_each_transposed(order_, shape, [&](std::size_t source) {
      std::memcpy(target, values.data() + source * element_, element_);
      target += element_;
    });
    values = transposed;
  }
  compressors::buffer bytes(static_cast<std::size_t>(codec_->encoded_size(element_ == 0 ? 0 : values.size() / element_)));
  const chunk_result result = encode_chunk(*codec_, values, bytes);
  if (!result) throw data_error(result.failure, codec_->explain(result.failure));
  return compressed(std::move(bytes));
}

compressors::buffer chunk_encoder::encode(std::span<const std::string> values, const std::vector<std::uint64_t>& shape) const {
  if (codec_) throw std::logic_error("strings are encoded as numbers");
  vlen_encoder chunk;
  if (order_.empty()) {
    for (const std::string& s : values) chunk.add(s);
  } else {
    for_each_transposed(order_, shape, [&](std::size_t source) { chunk.add(values[source]); });
  }
  return compressed(chunk.take());
}

}  // namespace zarrbits::zarr
