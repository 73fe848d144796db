// SPDX-License-Identifier: BSL-1.0
#include "metadata/array_metadata.hpp"
#include "metadata/from_v2.hpp"
#include "metadata/named_configuration.hpp"
#include "metadata/node.hpp"
#include "metadata/parse_error.hpp"
#include "metadata/v2_metadata.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace zarrbits;
using namespace zarrbits::metadata;
using text::json;

namespace {

// An array as zarr-python 3 writes it.
const char* const array_of_others = R"({
  "shape": [10, 7], "data_type": "float32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 7]}},
  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
  "fill_value": NaN, "x-unknown": {"must_understand": false, "a": 1},
  "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"],
  "attributes": {"b": 9007199254740993, "a": 0.1}, "dimension_names": ["y", null],
  "zarr_format": 3, "node_type": "array", "storage_transformers": []})";

json parsed(const std::string& text) { return text::parse_untrusted_json(text); }

// As it is read: numbers without a sign are of another type.
json stored(const json& value) { return parsed(text::python_json_text(value)); }

// What parse_array() says of that array with one member changed.
std::string parse_message(const std::string& path, const json& value) {
  json node = parsed(array_of_others);
  if (value.is_discarded()) node.erase(path.substr(1));
  else node[json::json_pointer(path)] = value;
  try {
    parse_array(nlohmann::json(stored(node)));
    return "";
  } catch (const parse_error& e) {
    return e.what();
  } catch (const unknown_extension& e) {
    return std::string("not supported: ") + e.what();
  }
}

array_metadata small_array() {
  array_metadata m;
  m.shape = {3};
  m.chunk = {2};
  m.data_type = "uint8";
  m.fill_value = 7;
  m.codecs = bytes_codecs(false, false);
  return m;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_array_is_written_byte_for_byte) {
  array_metadata m = small_array();
  m.attributes = {{"z", std::numeric_limits<double>::infinity()}, {"a", -9007199254740993}, {"zarrbits", {{"maxshape", {3}}}}};
  m.dimension_names = {"t"};
  append_crc32c_codec(m.codecs);
  BOOST_TEST(array_text(m, true) == R"({
  "zarr_format": 3,
  "node_type": "array",
  "shape": [
    3
  ],
  "data_type": "uint8",
  "chunk_grid": {
    "name": "regular",
    "configuration": {
      "chunk_shape": [
        2
      ]
    }
  },
  "chunk_key_encoding": {
    "name": "default",
    "configuration": {
      "separator": "/"
    }
  },
  "fill_value": 7,
  "codecs": [
    {
      "name": "bytes"
    },
    {
      "name": "crc32c"
    }
  ],
  "dimension_names": [
    "t"
  ],
  "zarrbits": {
    "must_understand": false,
    "maxshape": [
      3
    ]
  },
  "attributes": {
    "z": Infinity,
    "a": -9007199254740993
  }
}
)");
}

BOOST_AUTO_TEST_CASE(a_group_has_its_notes_where_readers_do_not_show_them) {
  const json attributes = {{"a", 1}, {"zarrbits", {{"order", 2}}}};
  BOOST_TEST(parsed(group_text(attributes)) == json({{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}}));
  BOOST_TEST(parsed(group_text(attributes, true))["attributes"] == json({{"a", 1}, {"_nc_zarrbits", {{"order", 2}}}}));
}

BOOST_AUTO_TEST_CASE(a_grid_of_either_kind_is_read_as_it_is_written) {
  array_metadata m = small_array();
  const nlohmann::json regular = parsed(array_text(m));
  BOOST_TEST(parse_array(regular).grid[0].chunks() == 2U);
  m.chunk_shapes = json::array({json::array({json(1), json::array({1, 2})})});
  const parsed_array a = parse_array(nlohmann::json(parsed(array_text(m))));
  BOOST_TEST(a.grid[0].chunks() == 3U);
  BOOST_TEST(!a.grid[0].is_regular());
  BOOST_TEST((*chunks_along(parsed(array_text(m))) == std::vector<std::uint64_t>{3}));
  BOOST_TEST(is_rectilinear(parsed(array_text(m))));
}

BOOST_AUTO_TEST_CASE(members_keep_their_order_when_some_change) {
  json node = parsed(array_of_others);
  std::vector<std::string> before, after;
  for (const auto& item : node.items()) before.push_back(item.key());
  set_extent(node, 0, 12);
  set_dimension_name(node, 1, "x");
  set_key_encoding(node, dotted_keys);
  set_codecs(node, text_codecs(true));
  for (const auto& item : node.items()) after.push_back(item.key());
  BOOST_TEST(before == after);
  BOOST_TEST(shape_of(node) == json({12, 7}));
  BOOST_TEST(dimension_names_of(node) == json({"y", "x"}));
  BOOST_TEST(node_text(node).find("\"fill_value\": NaN,") != std::string::npos);
  BOOST_TEST(node_text(node).find("9007199254740993") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_array_of_others_is_parsed) {
  const parsed_array a = parse_array(nlohmann::json(parsed(array_of_others)));
  BOOST_TEST((a.shape == std::vector<std::uint64_t>{10, 7}));
  BOOST_TEST(a.grid[0].chunks() == 3U);
  BOOST_TEST((a.keys == chunk_key_encoding()));
  BOOST_TEST(a.codecs.size() == 2U);
  BOOST_TEST(is_big_endian(codecs_of(parsed(array_of_others))));
  BOOST_TEST((dimension_names_in(parsed(array_of_others)) == std::vector<std::string>{"y", ""}));
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_an_array_is_named) {
  const json absent(json::value_t::discarded);
  for (const char* key : {"shape", "chunk_grid", "chunk_key_encoding", "data_type", "fill_value", "codecs"})
    BOOST_TEST(parse_message(std::string("/") + key, absent) == std::string("zarr.json has no \"") + key + "\"");
  BOOST_TEST(parse_message("/zarr_format", 2) == "zarr.json does not describe a Zarr v3 array");
  BOOST_TEST(parse_message("/node_type", "group") == "zarr.json does not describe a Zarr v3 array");
  BOOST_TEST(parse_message("/y", 1) == "zarr.json has the unknown key \"y\"");
  BOOST_TEST(parse_message("/x-unknown/must_understand", true) == "zarr.json has the unknown key \"x-unknown\"");
  BOOST_TEST(parse_message("/consolidated_metadata", nullptr) == "zarr.json has the unknown key \"consolidated_metadata\"");
  BOOST_TEST(parse_message("/storage_transformers/0", "t") == "not supported: storage transformers");
  BOOST_TEST(parse_message("/shape", 5) == "\"shape\" is not a list");
  BOOST_TEST(parse_message("/shape/0", -5) == "\"shape\" holds -5, which is not an extent");
  BOOST_TEST(parse_message("/shape", {10}) == "\"chunk_shape\" and \"shape\" differ in their number of dimensions");
  BOOST_TEST(parse_message("/chunk_grid/name", "spiral") == "not supported: the chunk grid spiral");
  BOOST_TEST(parse_message("/chunk_grid", 5) == "5 has no name");
  BOOST_TEST(parse_message("/chunk_grid/configuration/chunk_shape/0", 0) == "\"chunk_shape\" holds 0");
  BOOST_TEST(parse_message("/chunk_key_encoding/name", "v4") == "not supported: the chunk key encoding v4");
  BOOST_TEST(parse_message("/chunk_key_encoding/configuration/separator", "-") ==
             "the separator of the chunk keys is neither \".\" nor \"/\"");
}

BOOST_AUTO_TEST_CASE(keys_of_chunks_are_read_as_they_are_written) {
  using index = std::vector<std::uint64_t>;
  BOOST_TEST(chunk_key_encoding().key(index{}) == "c");
  BOOST_TEST(dotted_keys.key(index{}) == "0");
  for (const bool v2 : {false, true}) {
    for (const char separator : {'/', '.'}) {
      const chunk_key_encoding keys{v2, separator};
      for (const index& i : {index{}, index{4}, index{1, 20, 300}}) {
        const auto read = keys.index(keys.key(i), i.size());
        BOOST_REQUIRE(read.has_value());
        BOOST_TEST(*read == i);
        if (!i.empty()) BOOST_TEST(!keys.index(keys.key(i), i.size() + 1).has_value());
        BOOST_TEST(!keys.index(keys.key(i) + "x", i.size()).has_value());
      }
      BOOST_TEST((parse_key_encoding(nlohmann::json(to_json(keys))) == keys));
      json node = parsed(array_of_others);
      set_key_encoding(node, keys);
      BOOST_TEST((key_encoding_of(node) == keys));
    }
  }
}

BOOST_AUTO_TEST_CASE(consolidated_arrays_get_the_same_keys) {
  json root = group_json(json::object());
  set_consolidated(root, {{"a", parsed(array_of_others)}, {"g", group_json(json::object())}});
  set_all_key_encodings(root, dotted_keys);
  BOOST_TEST((key_encoding_of(consolidated_nodes_of(root)["a"]) == dotted_keys));
  BOOST_TEST(!consolidated_nodes_of(root)["g"].contains("chunk_key_encoding"));
  BOOST_TEST(unknown_members(nlohmann::json(root)).empty());
  BOOST_TEST(remove_consolidated(root));
  BOOST_TEST(root == group_json(json::object()));
}

BOOST_AUTO_TEST_CASE(shards_are_parsed_as_they_are_written) {
  const json codecs = sharding_codecs(stored({2, 3}), bytes_codecs(true, false));
  const sharding s = parse_sharding(configuration_of(codecs[0]));
  BOOST_TEST((s.chunk_shape == std::vector<std::uint64_t>{2, 3}));
  BOOST_TEST(s.index_at_end);
  BOOST_TEST(inner_codecs(codecs) == bytes_codecs(true, false));
  BOOST_TEST(is_extensible_sharding(codecs));
  json other = codecs;
  other[0]["configuration"]["index_location"] = "start";
  BOOST_TEST(!is_extensible_sharding(other));
  BOOST_TEST(!parse_sharding(configuration_of(other[0])).index_at_end);
  other[0]["configuration"]["index_location"] = "middle";
  BOOST_CHECK_THROW(parse_sharding(configuration_of(other[0])), parse_error);
  other[0]["configuration"]["codecs"] = codecs;
  BOOST_CHECK_THROW(parse_sharding(configuration_of(other[0])), unknown_extension);
  other[0].erase("configuration");
  BOOST_CHECK_THROW(parse_sharding(configuration_of(other[0])), parse_error);
  BOOST_TEST(inner_codecs(other) == other);  // nothing is in it
}

BOOST_AUTO_TEST_CASE(structs_have_fields_in_both_forms) {
  const json type = struct_type({{"a", "int16"}, {"b", sized_type("raw_bytes", 3)}});
  BOOST_TEST(struct_fields(type).size() == 2U);
  BOOST_TEST(struct_fields(type)[1].name == "b");
  BOOST_TEST(length_bytes(struct_fields(type)[1].data_type) == 3);
  const json older = {{"name", "structured"}, {"configuration", {{"fields", json::array({json::array({"a", "int16"}), 5})}}}};
  BOOST_TEST(struct_fields(older)[0].data_type == "int16");
  BOOST_TEST(struct_fields(older)[1].name.is_null());
  BOOST_TEST(struct_fields(json("int16")).empty());
}

BOOST_AUTO_TEST_CASE(an_array_of_zarr_v2_comes_back_from_v3) {
  const json zarray = {{"zarr_format", 2},
                       {"shape", {10}},
                       {"chunks", {5}},
                       {"dtype", ">i2"},
                       {"compressor", {{"id", "zlib"}, {"level", 3}}},
                       {"fill_value", nullptr},
                       {"order", "C"},
                       {"filters", nullptr},
                       {"dimension_separator", "."}};
  std::vector<detail::attribute_remark> remarks;
  const json node = v3_array_of(zarray, {{"a", 1}}, remarks);
  BOOST_TEST(remarks.empty());
  BOOST_TEST((parse_array(nlohmann::json(stored(node))).keys == dotted_keys));
  const v2_array back = to_v2_array(node, false);
  BOOST_TEST(back.zarray == zarray);
  BOOST_TEST(back.zattrs == json({{"a", 1}}));
}

BOOST_AUTO_TEST_CASE(filters_and_the_order_of_zarr_v2_come_back_from_v3) {
  const json zarray = {
      {"zarr_format", 2},
      {"shape", {10, 4}},
      {"chunks", {5, 2}},
      {"dtype", ">i4"},
      {"compressor", {{"id", "zstd"}, {"level", 3}}},
      {"fill_value", 7},
      {"order", "F"},
      {"filters", {{{"id", "delta"}, {"dtype", ">i4"}, {"astype", "<i2"}}, {{"id", "shuffle"}, {"elementsize", 2}}}},
      {"dimension_separator", "."}};
  std::vector<detail::attribute_remark> remarks;
  BOOST_TEST(to_v2_copy(v3_array_of(zarray, nullptr, remarks), true).zarray == zarray);
}

BOOST_AUTO_TEST_CASE(a_gap_in_zarr_v2_reads_as_what_the_metadata_say) {
  json node = parsed(R"({"zarr_format": 3, "node_type": "array", "shape": [10], "data_type": "int16", "fill_value": 0,
                         "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5]}},
                         "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {}})");
  BOOST_TEST(to_v2_copy(node, true).zarray["fill_value"] == 0);  // xarray opens no array without names
  node["dimension_names"] = {"x"};
  BOOST_TEST(to_v2_copy(node, false).zarray["fill_value"].is_null());
  BOOST_TEST(!allows_gaps_in_v2(node));
  BOOST_CHECK_THROW(to_v2_copy(node, true), not_representable_in_v2);
  node["attributes"]["_FillValue"] = 0;
  BOOST_TEST(allows_gaps_in_v2(node));
  const v2_array array = to_v2_copy(node, true);
  BOOST_TEST(array.zarray["fill_value"] == 0);
  BOOST_TEST(!array.zattrs.contains("_FillValue"));
}

BOOST_AUTO_TEST_CASE(keys_of_chunks_in_zarr_v2) {
  for (const auto& [v3, v2] : std::initializer_list<std::pair<const char*, const char*>>{
           {"c/0/1", "0.1"}, {"a/c/12", "a/12"}, {"c/c/3/4", "c/3.4"}, {"c/0/c/1", "c/0/1"}, {"a/0/c/1/2", "a/0/1.2"}}) {
    BOOST_TEST(to_v2_key(v3) == v2);
    BOOST_TEST(from_v2_key(v2) == v3);
  }
  BOOST_TEST(to_v2_key("a/c") == "a/0");
  BOOST_TEST(to_v2_key("c") == "0");
  BOOST_TEST(to_v2_key("a/b") == "a/b");
  BOOST_TEST(from_v2_key("a/.zarray") == "a/.zarray");
}

BOOST_AUTO_TEST_CASE(nothing_is_no_node) {
  for (const char* text :
       {"null", "5", "\"array\"", "[]", "{}", "[{}]", "{\"node_type\": 5}", "{\"attributes\": 5}", "not JSON"}) {
    const json node = parsed(text);
    BOOST_TEST(!is_zarr_node(text));
    BOOST_TEST((kind_of(node) == node_kind::none));
    BOOST_TEST(rank_of(node) == 0U);
    BOOST_TEST(extent_of(node, 0) == 0U);
    BOOST_TEST(!chunks_along(node).has_value());
    BOOST_TEST(longest_chunk(node).empty());
    BOOST_TEST(dimension_names_in(node).empty());
    BOOST_TEST(attributes_or_empty(node) == json::object());
    BOOST_TEST(read_codecs(codecs_of(node)).empty());
    BOOST_CHECK_THROW(require_kind(node), parse_error);
    BOOST_CHECK_THROW(parse_array(nlohmann::json(node)), parse_error);
  }
}
