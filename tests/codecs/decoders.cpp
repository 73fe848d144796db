// SPDX-License-Identifier: BSL-1.0
//
// Both decoders of Zarr chunks, that of codecs/ and that of verify/decode/: each against the golden vectors, and both against
// each other, on random chains of codecs and on chunks that are whole, cut off, too long or have flipped bits.
//
// ZARRBITS_CASES=N asks for more random chains, ZARRBITS_SEED=N for others.
#include "codecs/chunk_encoder.hpp"
#include "codecs/codec_chain.hpp"
#include "codecs/vlen_encoder.hpp"
#include "tests/support/golden.hpp"
#include "verify/decode/plain_codec_chain.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace zarrbits;
using json = nlohmann::json;
using bytes = std::vector<std::byte>;

namespace {

struct named_decoder {
  const char* name;
  zarr::zarr_array::decoder_factory make;
};
constexpr named_decoder decoders[] = {{"codecs/", codecs::make_decoder}, {"verify/decode/", verification::make_plain_decoder}};

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What a decoder made of a chunk: elements, or the sentence with which it refused.
struct outcome {
  zarr::element_buffer values;
  std::optional<std::string> refusal;
};

outcome decode(const named_decoder& decoder, const json& codecs, const json& data_type, const zarr::zarr_type& type,
               const std::vector<std::uint64_t>& shape, const bytes& chunk) {
  outcome result;
  try {
    decoder.make({codecs, data_type, type, shape, 1 << 20})->decode(chunk, result.values);
  } catch (const zarr::store_error& e) {
    result.refusal = e.what();
  } catch (const zarr::not_supported& e) {
    result.refusal = e.what();
  } catch (const json::exception& e) {
    result.refusal = e.what();
  }
  return result;
}

class random_chunk {
 public:
  explicit random_chunk(std::uint64_t seed) : random_(seed) { make(); }

  json codecs, data_type;
  zarr::zarr_type type;
  std::vector<std::uint64_t> shape;
  bytes stored;

  std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_); }

  // Changes the chunk: cuts it off, extends it, flips a bit, replaces a run of bytes.
  bytes mutated() {
    bytes out = stored;
    switch (below(4)) {
      case 0: out.resize(below(out.size() + 1)); break;
      case 1: out.resize(out.size() + 1 + below(9), std::byte{static_cast<unsigned char>(below(256))}); break;
      case 2:
        if (!out.empty()) out[below(out.size())] ^= std::byte{static_cast<unsigned char>(1U << below(8))};
        break;
      default:
        for (std::size_t i = out.empty() ? 0 : below(out.size()), n = below(8); n > 0 && i < out.size(); --n, ++i)
          out[i] = std::byte{static_cast<unsigned char>(below(256))};
    }
    return out;
  }

 private:
  const char* pick(std::initializer_list<const char*> names) { return *(names.begin() + below(names.size())); }

  void add_filters(std::string& number) {
    while (below(3) == 0) {
      const std::string next = pick({"int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"});
      const std::string filter = pick({"delta", "fixedscaleoffset", "quantize", "astype", "bitround"});
      json configuration = {{"dtype", number}, {"astype", next}};
      if (filter == "fixedscaleoffset") configuration.update({{"scale", static_cast<double>(below(100)) / 8}, {"offset", 1.5}});
      if (filter == "astype") configuration = {{"decode_dtype", number}, {"encode_dtype", next}};
      if (filter == "bitround") configuration = {{"keepbits", 5}};
      codecs.push_back({{"name", "numcodecs." + filter}, {"configuration", configuration}});
      if (filter != "bitround") number = next;
    }
  }

  void make() {
    codecs = json::array();
    for (std::uint64_t rank = below(4); shape.size() < rank;) shape.push_back(1 + below(below(8) == 0 ? 40 : 9));
    const std::size_t elements = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
    const bool is_text = below(8) == 0;
    const std::string name = is_text ? "string"
                                     : pick({"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                                             "float32", "float64", "complex64", "uint4"});
    data_type = name;
    type = zarr::parse_type(data_type);
    if (shape.size() > 1 && below(3) == 0) {
      std::vector<std::size_t> order(shape.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::shuffle(order.begin(), order.end(), random_);
      codecs.push_back({{"name", "transpose"}, {"configuration", {{"order", order}}}});
    }
    std::string number = name;
    const bool is_label = is_text && below(2) == 0;
    if (is_label) {
      codecs.push_back({{"name", "numcodecs.categorize"}, {"configuration", {{"labels", {"a", "bb", ""}}, {"astype", "uint8"}}}});
      number = "uint8";
    } else if (!is_text && name != "complex64" && name != "uint4") {
      add_filters(number);
    }
    // chunk_encoder encodes no filters: the bytes are encoded as they are, which is random input for their decoders
    json encoded = json::array();
    compressors::buffer content;
    if (is_text && !is_label) {
      encoded.push_back({{"name", "vlen-utf8"}});
    } else if (number == "bool" && below(2) == 0) {
      encoded.push_back({{"name", "numcodecs.packbits"}});
    } else if (number != "float32" && number != "float64" && number != "complex64" && below(3) == 0) {
      encoded.push_back(
          {{"name", "packbits"}, {"configuration", {{"padding_encoding", pick({"none", "first_byte", "last_byte"})}}}});
    } else {
      encoded.push_back({{"name", "bytes"}, {"configuration", {{"endian", pick({"little", "big"})}}}});
    }
    for (std::uint64_t n = below(4); n > 0; --n) add_bytes_codec(encoded);
    json writable = encoded;
    for (json& codec : writable) {
      if (codec["name"] == "numcodecs.crc32c") codec = {{"name", "crc32c"}};
    }
    const codecs::chunk_encoder encoder(text::json::parse(writable.dump()), text::json(is_text && !is_label ? name : number));
    if (is_text && !is_label) {
      std::vector<std::string> texts(elements);
      for (std::string& s : texts) s.assign(below(20), static_cast<char>('a' + below(26)));
      content = encoder.encode(std::span<const std::string>(texts), shape);
    } else {
      const std::size_t size = zarrbits::data_type(number).element_size();
      bytes values(elements * size);
      const std::uint64_t range = below(2) == 0 ? 4 : 256;
      for (std::byte& b : values)
        b = std::byte{static_cast<unsigned char>(below(number == "bool" ? 2 : number == "uint4" ? 16 : range))};
      content = encoder.encode(std::span<const std::byte>(values), shape);
    }
    stored.assign(content.begin(), content.end());
    for (json& codec : encoded) codecs.push_back(std::move(codec));
  }

  void add_bytes_codec(json& list) {
    const std::string name = pick({"gzip", "zstd", "blosc", "crc32c", "numcodecs.zlib", "numcodecs.bz2", "numcodecs.lz4",
                                   "numcodecs.shuffle", "numcodecs.fletcher32", "numcodecs.crc32c"});
    json configuration = json::object();
    if (name == "numcodecs.shuffle") configuration = {{"elementsize", 1 + below(9)}};
    if (name == "blosc")
      configuration = {{"cname", pick({"lz4", "zstd", "zlib", "blosclz"})},
                       {"clevel", 5},
                       {"typesize", 1 + below(8)},
                       {"shuffle", pick({"noshuffle", "shuffle", "bitshuffle"})}};
    list.push_back({{"name", name}, {"configuration", configuration}});
  }

  std::mt19937_64 random_;
};

// Describes the first difference; empty if there is none.
std::string difference(const outcome& production, const outcome& plain) {
  if (production.refusal.has_value() != plain.refusal.has_value())
    return production.refusal ? "only codecs/ refuses it: " + *production.refusal
                              : "only verify/decode/ refuses it: " + *plain.refusal;
  const auto sentence = [](const std::string& refusal) {
    const std::string zstd = "a chunk is not a zstd frame";  // zstd's reason depends on the size of the buffer
    return refusal.starts_with(zstd) ? zstd : refusal;
  };
  if (production.refusal)
    return sentence(*production.refusal) == sentence(*plain.refusal) ? "" : *production.refusal + " | " + *plain.refusal;
  if (production.values.strings != plain.values.strings) return "the texts differ";
  return production.values.data == plain.values.data ? "" : "the elements differ";
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_decoders_pass_the_golden_vectors) {
  std::map<std::string, std::size_t> decoded, refused;
  for (const golden::vector& v : golden::vectors()) {
    if (!v.decodes() || v.policy.truncate || v.policy.nonzero_is_true) continue;
    const json type = v.data_type.starts_with('{') ? json::parse(v.data_type) : json(v.data_type);
    const json list = json::array({json::parse(v.codec)});
    zarr::zarr_type parsed;
    try {
      parsed = zarr::parse_type(type);
    } catch (const std::exception&) {
      continue;  // a type that is refused before its codecs
    }
    for (const named_decoder& decoder : decoders) {
      const outcome result = decode(decoder, list, type, parsed, {v.elements}, *v.encoded);
      if (v.error.empty()) {
        BOOST_TEST(!result.refusal, decoder.name << ", " << v.name() << ": " << result.refusal.value_or(""));
        if (v.decoded) BOOST_TEST((result.values.data == *v.decoded), decoder.name << ", " << v.name());
        ++decoded[decoder.name];
      } else {
        BOOST_TEST(result.refusal.has_value(), decoder.name << " takes " << v.name() << ": " << v.error);
        ++refused[decoder.name];
      }
    }
  }
  for (const named_decoder& decoder : decoders) {
    BOOST_TEST(decoded[decoder.name] > 3000U);
    BOOST_TEST(refused[decoder.name] > 5U);
  }
}

BOOST_AUTO_TEST_CASE(random_chunks_decode_alike_or_are_refused_alike) {
  const std::uint64_t seed = number_in_environment("ZARRBITS_SEED", 1), cases = number_in_environment("ZARRBITS_CASES", 1500);
  std::map<std::string, std::size_t> used;
  std::size_t sound = 0, refused = 0, decoded = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    random_chunk chunk(seed * 1'000'003 + i);
    for (const json& codec : chunk.codecs) ++used[codec["name"].get<std::string>()];
    for (unsigned k = 0; k < 9; ++k) {
      const bytes stored = k == 0 ? chunk.stored : chunk.mutated();
      const outcome production = decode(decoders[0], chunk.codecs, chunk.data_type, chunk.type, chunk.shape, stored);
      const outcome plain = decode(decoders[1], chunk.codecs, chunk.data_type, chunk.type, chunk.shape, stored);
      const std::string reason = difference(production, plain);
      BOOST_TEST(reason.empty(), reason << "; case " << i << ", seed " << seed << ": " << chunk.data_type << " "
                                        << json(chunk.shape) << " " << chunk.codecs);
      if (k == 0) sound += !plain.refusal;
      else ++(plain.refusal ? refused : decoded);
    }
  }
  BOOST_TEST_MESSAGE(sound << " of " << cases << " chunks, and " << decoded << " mutations decoded, " << refused << " refused");
  BOOST_TEST(2 * sound > cases);
  BOOST_TEST(refused > cases);
  BOOST_TEST(decoded > cases / 10);
  for (const codecs::known_codec& codec : codecs::known_codecs()) {
    const std::set<std::string_view> elsewhere = {"vlen-bytes", "sharding_indexed"};
    if (cases >= 1000 && !elsewhere.contains(codec.name()))
      BOOST_TEST(used[std::string(codec.name())] > 0U, "no random chain has " << codec.name());
  }
}
