// SPDX-License-Identifier: BSL-1.0
//
// Every golden vector that an HDF5 datatype can express, through a real libhdf5: what lies in the file is the Zarr chunk. The
// filters are registered instead of loaded, so that this runs under sanitizers.
#include "filter/plugins.hpp"
#include "h5_support.hpp"
#include "tests/support/test_data.hpp"

#include <zarrbits/hdf5.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string>

using json = nlohmann::json;
using namespace h5_support;

namespace {

bytes_of from_hex(const std::string& hex) {
  bytes_of out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

// The HDF5 datatype of a Zarr data type.
struct h5_type {
  hid_t id = -1;
  unsigned bits = 0;  // of the data type
  unsigned size = 0;  // bytes of a component
  bool reduced() const { return bits < 8 * size; }
};

hid_t small_float(unsigned bits, unsigned exponent, unsigned mantissa) {
  const hid_t t = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(t, bits - 1, mantissa, exponent, 0, mantissa);
  H5Tset_precision(t, bits);
  H5Tset_size(t, (bits + 7) / 8);
  H5Tset_ebias(t, (std::size_t{1} << (exponent - 1)) - 1);
  return t;
}

h5_type component_of(const std::string& name) {
  static const std::map<std::string, hid_t> whole = {{"int8", H5T_STD_I8LE},
                                                     {"int16", H5T_STD_I16LE},
                                                     {"int32", H5T_STD_I32LE},
                                                     {"int64", H5T_STD_I64LE},
                                                     {"uint8", H5T_STD_U8LE},
                                                     {"uint16", H5T_STD_U16LE},
                                                     {"uint32", H5T_STD_U32LE},
                                                     {"uint64", H5T_STD_U64LE},
                                                     {"float32", H5T_IEEE_F32LE},
                                                     {"float64", H5T_IEEE_F64LE},
                                                     {"numpy.datetime64", H5T_STD_I64LE},
                                                     {"numpy.timedelta64", H5T_STD_I64LE}};
  if (const auto found = whole.find(name); found != whole.end()) {
    const hid_t t = H5Tcopy(found->second);
    return {t, static_cast<unsigned>(8 * H5Tget_size(t)), static_cast<unsigned>(H5Tget_size(t))};
  }
  if (name == "bool") {
    const hid_t t = H5Tenum_create(H5T_STD_I8LE);
    const signed char no = 0, yes = 1;
    H5Tenum_insert(t, "FALSE", &no);
    H5Tenum_insert(t, "TRUE", &yes);
    return {t, 1, 1};
  }
  for (const unsigned bits : {2u, 4u})
    for (const bool is_signed : {false, true})
      if (name == (is_signed ? "int" : "uint") + std::to_string(bits)) {
        const hid_t t = H5Tcopy(is_signed ? H5T_STD_I8LE : H5T_STD_U8LE);
        H5Tset_precision(t, bits);
        return {t, bits, 1};
      }
  // exponents and mantissas; float8 types without sign or with unusual biases are 8 bits all the same
  if (name == "float4_e2m1fn") return {small_float(4, 2, 1), 4, 1};
  if (name == "float6_e2m3fn") return {small_float(6, 2, 3), 6, 1};
  if (name == "float6_e3m2fn") return {small_float(6, 3, 2), 6, 1};
  if (name.rfind("float8_", 0) == 0) return {small_float(8, 4, 3), 8, 1};
  if (name == "float16") return {small_float(16, 5, 10), 16, 2};
  if (name == "bfloat16") return {small_float(16, 8, 7), 16, 2};
  return {};
}

std::optional<h5_type> type_of(const json& data_type, bool big_endian) {
  if (!data_type.is_string()) return {};
  std::string name = data_type;
  if (name == "complex64") name = "complex_float32";
  if (name == "complex128") name = "complex_float64";
  const bool is_complex = name.rfind("complex_", 0) == 0;
  h5_type t = component_of(is_complex ? name.substr(8) : name);
  if (t.id < 0) return {};
  if (big_endian && t.size > 1) H5Tset_order(t.id, H5T_ORDER_BE);
  if (is_complex) {
    const hid_t pair = H5Tcreate(H5T_COMPOUND, 2 * t.size);
    H5Tinsert(pair, "r", 0, t.id);
    H5Tinsert(pair, "i", t.size, t.id);
    H5Tclose(t.id);
    t.id = pair;
  }
  return t;
}

void reverse_components(bytes_of& b, unsigned size) {
  for (std::size_t i = 0; i + size <= b.size(); i += size)
    std::reverse(b.begin() + static_cast<std::ptrdiff_t>(i), b.begin() + static_cast<std::ptrdiff_t>(i + size));
}

unsigned option(const json& configuration, const char* key, const char* older, unsigned otherwise) {
  for (const char* k : {key, older})
    if (configuration.contains(k) && !configuration[k].is_null()) return configuration[k];
  return otherwise;
}

// The filter's parameters for a configuration, or nothing where HDF5's datatype says it all and the configuration says something
// else.
std::optional<std::vector<unsigned>> parameters(const json& vector, const h5_type& t) {
  const json& c = vector["configuration"];
  if (vector["codec"] == "bytes") {
    if (!c.contains("endian")) return std::vector<unsigned>{};
    return std::vector<unsigned>{c["endian"] == "big"};
  }
  const unsigned first = option(c, "first_bit", "start_bit", 0), last = option(c, "last_bit", "end_bit", t.bits - 1);
  unsigned options = 0;
  if (c.contains("padding_encoding") && c["padding_encoding"].is_string()) {
    const std::string p = c["padding_encoding"];
    options = p == "first_byte" || p == "start_byte" ? 1 : p == "last_byte" || p == "end_byte" ? 2 : 0;
  }
  if (vector.value("truncate", false)) options |= ZARRBITS_HDF5_RANGE_TRUNCATE;
  if ((t.reduced() && (first != 0 || last != t.bits - 1))) return {};
  return std::vector<unsigned>{last - first + 1, options, first};
}

struct fixture {
  hid_t file = -1;
  json vectors;
  fixture() {
    BOOST_REQUIRE(H5Zregister(&zarrbits::filter::packbits_class) >= 0);
    BOOST_REQUIRE(H5Zregister(&zarrbits::filter::bytes_class) >= 0);
    file = memory_file();
    std::ifstream(golden_file("codecs.json")) >> vectors;
  }
  ~fixture() { H5Fclose(file); }
};

struct counts {
  unsigned encoded = 0, decoded = 0, refused = 0, left_out = 0;
};

void check_vector(hid_t file, const json& v, bool big_endian, counts& n) {
  const std::string stage = v.value("stage", "");
  const bool wrong = v.contains("error");
  const int filter = v["codec"] == "bytes" ? ZARRBITS_HDF5_BYTES_ID : ZARRBITS_HDF5_PACKBITS_ID;
  const auto type = v["codec"] == "bytes" || v["codec"] == "packbits" ? type_of(v["data_type"], big_endian) : std::nullopt;
  // a chunk has elements; the filter takes no nonzero for true; the bytes filter leaves bytes as they are
  if (!type || stage == "configure" || v["elements"] == 0 || v.value("nonzero_is_true", false) ||
      (filter == ZARRBITS_HDF5_BYTES_ID && type->reduced())) {
    ++n.left_out;
    if (type) H5Tclose(type->id);
    return;
  }
  const auto cd = parameters(v, *type);
  if (!cd) {
    ++n.left_out;
    H5Tclose(type->id);
    return;
  }
  BOOST_TEST_CONTEXT(v.dump().substr(0, 300) << (big_endian ? " big endian" : "")) {
    bytes_of decoded = from_hex(v.value("decoded", "")), encoded = from_hex(v.value("encoded", ""));
    // packed as large as unpacked: length does not tell, and what does not fit has to be an error
    const std::size_t whole = v["elements"].get<std::size_t>() * H5Tget_size(type->id);
    const bool as_large = dataset(file, type->id, v["elements"], filter, H5Z_FLAG_OPTIONAL, *cd).error.find("as many unpacked") !=
                          std::string::npos;
    if (as_large) BOOST_TEST((encoded.empty() || wrong || encoded.size() == whole));
    if (as_large && wrong && stage != "decode") {
      ++n.refused;
      H5Tclose(type->id);
      return;
    }
    std::vector<unsigned> with = *cd;
    if (as_large) {
      with.resize(std::max<std::size_t>(with.size(), 2));
      with[1] |= ZARRBITS_HDF5_RANGE_ERROR;
    }
    const dataset d(file, type->id, v["elements"], filter, H5Z_FLAG_OPTIONAL, with);
    BOOST_REQUIRE_MESSAGE(d.id >= 0, d.error);
    if (big_endian) reverse_components(decoded, type->size);
    std::uint32_t mask = 0;
    if (!decoded.empty() && stage != "decode") {
      BOOST_TEST(d.write(decoded));
      const bytes_of stored = d.stored(mask);
      // what the codec refuses stays as it is
      BOOST_TEST(mask == 0u);
      BOOST_TEST(stored == (wrong ? decoded : encoded));
      ++n.encoded;
      n.refused += wrong;
    }
    if (!encoded.empty() && stage != "encode") {
      const dataset other(file, type->id, v["elements"], filter, H5Z_FLAG_OPTIONAL, with);
      BOOST_REQUIRE(other.store(encoded));
      bytes_of back(whole, 0xEE);
      const bool read = other.read(back);
      BOOST_TEST(read == !wrong);
      if (wrong) {
        BOOST_TEST(our_sentence().find("damaged") != std::string::npos, our_sentence());
        ++n.refused;
      } else {
        // HDF5's pad bits are zeros, where Zarr's containers repeat the sign
        if (type->reduced())
          for (auto& b : decoded) b = static_cast<unsigned char>(b & ((1u << type->bits) - 1));
        BOOST_TEST(back == decoded);
      }
      ++n.decoded;
    }
  }
  H5Tclose(type->id);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_chunk_in_a_file_is_the_golden_zarr_chunk, fixture) {
  counts n;
  for (const json& v : vectors)
    for (const bool big_endian : {false, true}) check_vector(file, v, big_endian, n);
  BOOST_TEST_MESSAGE("golden vectors in HDF5, both byte orders: " << n.encoded << " encoded, " << n.decoded << " decoded, "
                                                                  << n.refused << " refused as they should, " << n.left_out
                                                                  << " not expressible");
  BOOST_TEST(n.encoded >= 5400u);
  BOOST_TEST(n.decoded >= 5400u);
  BOOST_TEST(n.refused >= 30u);
}
