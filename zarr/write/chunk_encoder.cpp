// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/chunk_encoder.hpp"

#include "compression/blosc.hpp"
#include "compression/bzip2.hpp"
#include "compression/crc32c.hpp"
#include "compression/deflate.hpp"
#include "compression/fletcher32.hpp"
#include "compression/lz4.hpp"
#include "compression/shuffle.hpp"
#include "compression/zstd.hpp"
#include "text/extension.hpp"
#include "zarr/write/node.hpp"

#include <zarrbits/chunk.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::zarr {

namespace {

int number_in(const text::json& configuration, const char* key, int otherwise, int least, int most) {
  const auto found = configuration.find(key);
  if (found == configuration.end() || !found->is_number_integer()) return otherwise;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) return most;
  return static_cast<int>(std::clamp<std::int64_t>(found->get<std::int64_t>(), least, most));
}

std::vector<std::size_t> order_in(const text::json& configuration) {
  std::vector<std::size_t> order;
  const auto found = configuration.find("order");
  if (found == configuration.end() || !found->is_array())
    throw error(errc::unsupported, "chunks with a transpose whose order is not a list cannot be encoded");
  for (const text::json& n : *found) order.push_back(n.is_number_unsigned() ? n.get<std::size_t>() : order.max_size());
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) throw error(errc::unsupported, "chunks with a transpose that is not a permutation cannot be encoded");
  }
  return order;
}

// Calls `put` with the index of each element in the order of the transposed chunk.
template <class Put>
void each_transposed(const std::vector<std::size_t>& order, const std::vector<std::uint64_t>& shape, const Put& put) {
  const std::size_t rank = shape.size();
  std::vector<std::size_t> stride(rank, 1);
  for (std::size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * static_cast<std::size_t>(shape[d]);
  std::vector<std::uint64_t> at(rank, 0);
  std::size_t from = 0, all = 1;
  for (const std::uint64_t extent : shape) all *= static_cast<std::size_t>(extent);
  for (std::size_t i = 0; i < all; ++i) {
    put(from);
    for (std::size_t k = rank; k-- > 0;) {
      const std::size_t d = order[k];
      from += stride[d];
      if (++at[d] < shape[d]) break;
      from -= stride[d] * static_cast<std::size_t>(shape[d]);
      at[d] = 0;
    }
  }
}

}  // namespace

chunk_encoder::chunk_encoder(const text::json& codecs, const text::json& data_type) {
  static const std::pair<const char*, step::kind_type> known[] = {{"gzip", step::gzip},
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
    const std::string name = text::name_in(entry);
    const text::json configuration = text::configuration_in(entry);
    const auto found = std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return name == k.first; });
    if (found != std::end(known)) {
      after_.push_back(step_of(found->second, configuration));
    } else if (name == "transpose") {
      order_ = order_in(configuration);
    } else if (name == "vlen-utf8" || name == "vlen-bytes") {
      in_bytes = true;
    } else if (name == "bytes" || name == "endian" || name == "packbits" || name == "numcodecs.packbits") {
      codec_ = parse_codec(text::json_text(entry),
                           zarrbits::data_type(data_type.is_string() ? data_type.get<std::string>() : text::json_text(data_type)));
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
      const text::json shuffle = configuration.value("shuffle", text::json("shuffle")), inside = configuration.value("cname", text::json("lz4"));
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
  for (const step& s : after_) {
    switch (s.kind) {
      case step::gzip: bytes = compressors::gzip_member(bytes, s.level); break;
      case step::zstd: bytes = compressors::zstd_frame(bytes, s.level); break;
      case step::blosc: bytes = compressors::blosc_buffer(bytes, compressors::blosc_typesize(s.element), s.level, s.order, s.inside); break;
      case step::zlib: bytes = compressors::zlib_stream(bytes, s.level); break;
      case step::bz2: bytes = compressors::bzip2_stream(bytes, s.level); break;
      case step::lz4: bytes = compressors::numcodecs_lz4(bytes); break;
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
    std::byte* to = transposed.data();
    each_transposed(order_, shape, [&](std::size_t from) {
      std::memcpy(to, values.data() + from * element_, element_);
      to += element_;
    });
    values = transposed;
  }
  compressors::buffer bytes(static_cast<std::size_t>(codec_->encoded_size(element_ == 0 ? 0 : values.size() / element_)));
  const chunk_result made = encode_chunk(*codec_, values, bytes);
  if (!made) throw data_error(made.failure, codec_->explain(made.failure));
  return compressed(std::move(bytes));
}

compressors::buffer chunk_encoder::encode(std::span<const std::string> values, const std::vector<std::uint64_t>& shape) const {
  if (codec_) throw std::logic_error("strings are encoded as numbers");
  text_chunk chunk;
  if (order_.empty()) {
    for (const std::string& s : values) chunk.add(s);
  } else {
    each_transposed(order_, shape, [&](std::size_t from) { chunk.add(values[from]); });
  }
  return compressed(chunk.take());
}

}  // namespace zarrbits::zarr
