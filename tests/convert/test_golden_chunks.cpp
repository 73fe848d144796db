// SPDX-License-Identifier: BSL-1.0
//
// Every decoder against chunks that another implementation encoded: tests/golden/chunks.json, which make_chunks.py beside it
// made. LZO, which only PyTables has, is in test_lzo.cpp.
//
#include "codecs/codec_chain.hpp"
#include "hdf5/filter_table.hpp"
#include "hdf5/type_description.hpp"
#include "text/base64.hpp"
#include "verify/decode/plain_codec_chain.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace zarrbits;
using json = nlohmann::json;

namespace {

json golden() {
  std::ifstream file(std::string(std::getenv("ZARRBITS_TEST_DATA")) + "/golden/chunks.json");
  BOOST_REQUIRE(file);
  return json::parse(file);
}

std::vector<std::byte> bytes_of(const json& text) { return *text::decode_base64(text.get<std::string>()); }

// The HDF5 type of numpy's "<i2".
hid_t type_named(const std::string& name) {
  static const std::map<std::string, hid_t> types = {{"|u1", H5T_STD_U8LE},  {"<i2", H5T_STD_I16LE},  {"<u4", H5T_STD_U32LE},
                                                     {"<i8", H5T_STD_I64LE}, {"<f4", H5T_IEEE_F32LE}, {"<f8", H5T_IEEE_F64LE}};
  return types.at(name);
}

bool same(const std::vector<std::byte>& wanted, const std::byte* got, std::size_t size) {
  return wanted.size() == size && std::memcmp(wanted.data(), got, size) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(chunks_of_hdf5_files_give_what_their_writer_reads) {
  std::set<int> seen;
  const json all_chunks = golden();
  for (const json& entry : all_chunks["hdf5"]) {
    hdf5::pipeline filters;
    for (const json& f : entry["filters"]) {
      filters.filters.push_back({f["id"].get<int>(), f["values"].get<std::vector<unsigned>>(), f["name"].get<std::string>()});
      seen.insert(f["id"].get<int>());
    }
    const std::string where =
        filters.text() + " of " + entry["type"].get<std::string>() + " by " + entry["made_by"].get<std::string>();
    const std::vector<std::byte> stored = bytes_of(entry["chunk"]), wanted = bytes_of(entry["values"]);
    const hdf5::type_description type = hdf5::describe_type(type_named(entry["type"].get<std::string>()));
    BOOST_REQUIRE_MESSAGE(filters.can_decode(type), where);
    const compressors::buffer got =
        hdf5::undo(filters, 0, compressors::buffer(stored.begin(), stored.end()), wanted.size(), type);
    BOOST_TEST(same(wanted, got.data(), got.size()), where);
  }
  // every filter that our code decodes, but those of which h5py's wheel makes no chunk
  for (const hdf5::known_filter& f : hdf5::known_filters()) {
    const bool elsewhere =
        f.id == hdf5::lzo_filter || f.id == hdf5::packbits_filter || f.id == hdf5::bytes_filter || f.id == H5Z_FILTER_NBIT;
    if (f.undo || f.undo_typed) BOOST_TEST((elsewhere || seen.contains(f.id)), "no golden chunk of filter " << f.id);
  }
}

BOOST_AUTO_TEST_CASE(chunks_of_zarr_stores_give_what_numcodecs_encoded) {
  std::set<std::string> seen;
  const json all_chunks = golden();
  for (const json& entry : all_chunks["zarr"]) {
    json codecs = entry["codecs"];
    codecs.insert(codecs.begin(), json{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}});
    const json type = entry["type"];
    const std::vector<std::byte> wanted = bytes_of(entry["values"]);
    const zarr::zarr_type t = zarr::parse_type(type);
    for (const auto make_decoder : {codecs::make_decoder, verification::make_plain_decoder}) {
      zarr::element_buffer got;
      make_decoder({codecs, type, t, {wanted.size() / t.size}, 1 << 20})->decode(bytes_of(entry["chunk"]), got);
      BOOST_TEST(same(wanted, got.data.data(), got.data.size()), entry["codecs"].dump() + " of " + type.dump());
    }
    seen.insert(entry["codecs"][0]["name"].get<std::string>());
  }
  const std::set<std::string> all = {
      "gzip", "zstd", "blosc", "numcodecs.zlib", "numcodecs.bz2", "numcodecs.lz4", "numcodecs.shuffle", "numcodecs.fletcher32"};
  BOOST_TEST(seen == all, boost::test_tools::per_element());
}
