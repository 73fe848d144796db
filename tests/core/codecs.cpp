// SPDX-License-Identifier: BSL-1.0
//
// Codecs and data types as values: names, JSON, sizes, sentences.
//
#include "tests/support/golden.hpp"

#include <zarrbits/zarrbits.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using zarrbits::errc;

std::error_code codec_error_in_shared_library();  // hidden.cpp

namespace {

template <class Make>
std::string refusal(errc wanted, Make make) {
  try {
    make();
  } catch (const zarrbits::error& e) {
    BOOST_TEST(e.code() == wanted, std::string("another code for: ") + e.what());
    return e.what();
  }
  BOOST_ERROR("was not refused");
  return "";
}

struct row {
  const char* name;
  unsigned bits, components, size;
  bool is_signed;
};

// The table of data types, typed in from the specification and not from the code.
// clang-format off
const row rows[] = {
    {"bool", 1, 1, 1, false}, {"int2", 2, 1, 1, true}, {"int4", 4, 1, 1, true}, {"uint2", 2, 1, 1, false}, {"uint4", 4, 1, 1, false},
    {"int8", 8, 1, 1, true}, {"int16", 16, 1, 2, true}, {"int32", 32, 1, 4, true}, {"int64", 64, 1, 8, true},
    {"uint8", 8, 1, 1, false}, {"uint16", 16, 1, 2, false}, {"uint32", 32, 1, 4, false}, {"uint64", 64, 1, 8, false},
    {"float4_e2m1fn", 4, 1, 1, false}, {"float6_e2m3fn", 6, 1, 1, false}, {"float6_e3m2fn", 6, 1, 1, false},
    {"float8_e3m4", 8, 1, 1, false}, {"float8_e4m3", 8, 1, 1, false}, {"float8_e4m3b11fnuz", 8, 1, 1, false}, {"float8_e4m3fnuz", 8, 1, 1, false},
    {"float8_e5m2", 8, 1, 1, false}, {"float8_e5m2fnuz", 8, 1, 1, false}, {"float8_e8m0fnu", 8, 1, 1, false},
    {"bfloat16", 16, 1, 2, false}, {"float16", 16, 1, 2, false}, {"float32", 32, 1, 4, false}, {"float64", 64, 1, 8, false},
    {"complex64", 32, 2, 4, false}, {"complex128", 64, 2, 8, false}, {"complex_float16", 16, 2, 2, false}, {"complex_bfloat16", 16, 2, 2, false},
    {"complex_float4_e2m1fn", 4, 2, 1, false}, {"complex_float8_e5m2", 8, 2, 1, false}, {"complex_float32", 32, 2, 4, false}, {"complex_float64", 64, 2, 8, false},
    {"numpy.datetime64", 64, 1, 8, true}, {"numpy.timedelta64", 64, 1, 8, true},
};
// clang-format on

}  // namespace

BOOST_AUTO_TEST_CASE(data_types_have_the_bits_components_and_sizes_of_the_table) {
  for (const row& r : rows) {
    const zarrbits::data_type t(r.name);
    BOOST_TEST(t.name() == r.name);
    BOOST_TEST(t.component_bits() == r.bits, r.name);
    BOOST_TEST(t.components() == r.components, r.name);
    BOOST_TEST(t.component_size() == r.size, r.name);
    BOOST_TEST(t.element_size() == std::size_t{r.size} * r.components, r.name);
    BOOST_TEST(t.is_signed() == r.is_signed, r.name);
    BOOST_TEST(t.has_byte_order() == (r.size > 1), r.name);
    BOOST_TEST(t.is_bool() == (r.bits == 1), r.name);
  }
  BOOST_TEST(zarrbits::data_type("r24").element_size() == 3u);
  BOOST_TEST(!zarrbits::data_type("r24").has_byte_order());
  BOOST_TEST(zarrbits::data_type(R"({"name":"uint8"})").element_size() == 1u);
}

// Every way to write a name down.
std::vector<std::string> spellings(const std::string& name) {
  const std::string quoted = '"' + name + '"';
  return {name,
          quoted,
          "  " + quoted + "\n",
          R"({"name":)" + quoted + "}",
          R"({"name":)" + quoted + R"(,"configuration":{}})",
          R"({"name":)" + quoted + R"(,"configuration":null})",
          R"({ "configuration" : { } , "name" : )" + quoted + " }",
          R"({"name":)" + quoted + R"(,"must_understand":true})"};
}

BOOST_AUTO_TEST_CASE(a_data_type_is_the_same_however_it_is_spelled_and_no_other_is) {
  // each is one data type, in all its spellings
  std::vector<std::vector<std::string>> types;
  for (const row& r : rows)
    if (std::string(r.name) != "complex_float32" && std::string(r.name) != "complex_float64") types.push_back(spellings(r.name));
  for (std::vector<std::string>& same : types)
    for (const auto& [name, alias] : {std::pair{"complex64", "complex_float32"}, std::pair{"complex128", "complex_float64"}})
      if (same.front() == name)
        for (const std::string& s : spellings(alias)) same.push_back(s);
  for (const char* name : {"r8", "r24", "r16"}) types.push_back(spellings(name));
  types.back().push_back("r016");
  for (const char* name : {"raw_bytes", "null_terminated_bytes", "fixed_length_utf32"})
    for (const char* length : {"4", "8"}) {
      const std::string n = std::string(R"("name":")") + name + '"',
                        c = std::string(R"("configuration":{"length_bytes":)") + length + "}";
      types.push_back(
          {"{" + n + "," + c + "}", "{" + c + "," + n + "}", " { " + c + " ,\t" + n + R"(, "must_understand" : true})"});
    }
  for (const char* name : {"numpy.datetime64", "numpy.timedelta64"})
    for (const char* unit : {"us", "ns"})
      for (const char* scale : {"1", "10"}) {
        const std::string n = std::string(R"("name":")") + name + '"', u = std::string(R"("unit":")") + unit + '"',
                          s = std::string(R"("scale_factor":)") + scale;
        types.push_back(
            {"{" + n + R"(,"configuration":{)" + u + "," + s + "}}", R"({"configuration":{)" + s + "," + u + "}," + n + "}"});
        if (std::string(unit) == "us")
          for (const char* micro : {"\u03bcs", "\\u03bcs"})
            types.back().push_back("{" + n + R"(,"configuration":{"unit":")" + micro + R"(",)" + s + "}}");
      }
  const auto structure = [](const std::string& fields) {
    return R"({"name":"struct","configuration":{"fields":[)" + fields + "]}}";
  };
  // the older name, with pairs
  const auto older = [](const std::string& fields) {
    return R"({"name":"structured","configuration":{"fields":[)" + fields + "]}}";
  };
  const std::string a = R"({"name":"a","data_type":"int8"})", b = R"({"name":"b","data_type":"complex64"})";
  types.push_back(
      {structure(a + "," + b),
       structure(R"({"data_type":{"name":"int8"},"name":"a"},{"name":"b","data_type":"complex_float32"})"),
       structure(R"({"name":"a","data_type":{"name":"int8","configuration":{}}}, {"name":"b","data_type":{"name":"complex64"}})"),
       older(R"(["a","int8"],["b","complex64"])")});
  types.push_back({structure(b + "," + a)});
  types.push_back({structure(a + R"(,{"name":"c","data_type":"complex64"})")});
  types.push_back({structure(a + R"(,{"name":"b","data_type":"float64"})")});
  types.push_back({structure(R"({"name":"s","data_type":)" + structure(a) + "}"),
                   structure(R"({"name":"s","data_type":)" + structure(R"({"name":"a","data_type":{"name":"int8"}})") + "}"),
                   older(R"(["s",)" + older(R"(["a","int8"])") + "]"), older(R"(["s",)" + structure(a) + "]")});
  types.push_back({structure(a)});

  struct spelled {
    zarrbits::data_type made;
    std::string text;
    std::size_t type;
  };
  std::vector<spelled> all;
  for (std::size_t i = 0; i < types.size(); ++i)
    for (const std::string& text : types[i]) all.push_back({text, text, i});
  BOOST_TEST(all.size() > 300u);
  for (const spelled& x : all)
    for (const spelled& y : all)
      if ((x.made == y.made) != (x.type == y.type)) BOOST_ERROR(x.text + " and " + y.text);
}

BOOST_AUTO_TEST_CASE(data_types_that_do_not_exist_are_refused_with_a_sentence) {
  std::string deep = R"("int8")";
  for (int i = 0; i < 5000; ++i) deep = R"({"name":"struct","configuration":{"fields":[{"name":"a","data_type":)" + deep + "}]}}";
  for (const std::string& t : {std::string(""),
                               std::string("uint12"),
                               std::string("r0"),
                               std::string("r7"),
                               std::string("r99999999999999999999"),
                               std::string("string"),
                               std::string("struct"),
                               std::string("{"),
                               std::string("[]"),
                               std::string("{}"),
                               std::string(R"({"name":3})"),
                               std::string(R"({"name":"int8","extra":1})"),
                               std::string(R"({"name":"struct","configuration":{"fields":[]}})"),
                               std::string("structured"),
                               std::string(R"({"name":"struct","configuration":{"fields":[["a","int8"]]}})"),
                               std::string(R"({"name":"structured","configuration":{"fields":[["a"]]}})"),
                               std::string(R"({"name":"structured","configuration":{"fields":[["a","int8",2]]}})"),
                               std::string(R"({"name":"structured","configuration":{"fields":[[1,"int8"]]}})"),
                               std::string(R"({"name":"structured","configuration":{"fields":[["a","int8"],["a","int8"]]}})"),
                               std::string(R"({"name":"structured","configuration":{"fields":[["a","string"]]}})"),
                               std::string(R"({"name":"fixed_length_utf32","configuration":{"length_bytes":3}})"),
                               std::string(R"({"name":"raw_bytes","configuration":{"length_bytes":-1}})"),
                               std::string(R"({"name":"raw_bytes","configuration":{"length_bytes":1e30}})"),
                               std::string("\xff\xfe"),
                               deep}) {
    const std::string what = refusal(errc::invalid_data_type, [&] { zarrbits::data_type made(t); });
    BOOST_TEST(what.size() > 20u, t);
    BOOST_TEST(what.size() < 400u, what);
  }
}

BOOST_AUTO_TEST_CASE(json_that_nests_too_deep_or_says_a_thing_twice_is_refused_with_a_sentence) {
  const auto says = [](const std::string& what, const char* words) {
    BOOST_TEST(what.find(words) != std::string::npos, what + " -- does not say " + words);
  };
  const auto codec = [](errc code, const std::string& json) {
    return refusal(code, [&] { (void)zarrbits::parse_codec(json, "uint16"); });
  };
  const auto type = [](const std::string& json) {
    return refusal(errc::invalid_data_type, [&] { zarrbits::data_type made(json); });
  };
  for (const std::size_t depth : {129u, 50'000u, 1'000'000u}) {
    const std::string lists = std::string(depth, '[') + std::string(depth, ']');
    std::string objects;
    for (std::size_t i = 0; i < depth; ++i) objects += R"({"a":)";
    for (const std::string& deep : {lists, objects + "1" + std::string(depth, '}')}) {
      says(codec(errc::invalid_codec, R"({"name":"packbits","configuration":{"last_bit":)" + deep + "}}"),
           "nested lists and objects");
      says(codec(errc::invalid_codec, deep), "nested lists and objects");
      says(type(R"({"name":"raw_bytes","configuration":{"length_bytes":)" + deep + "}}"), "nested lists and objects");
      says(type(deep), "nested lists and objects");
    }
  }
  // brackets in a text are not nesting
  BOOST_TEST(zarrbits::data_type(R"({"name":"struct","configuration":{"fields":[{"name":")" + std::string(200, '[') +
                                 R"(","data_type":"int8"}]}})")
                 .element_size() == 1u);

  says(codec(errc::invalid_codec, R"({"name":"packbits","configuration":{"last_bit":11,"last_bit":3}})"),
       "\"last_bit\" is given twice");
  says(codec(errc::invalid_codec, R"({"name":"packbits","name":"bytes"})"), "\"name\" is given twice");
  says(type(R"({"name":"raw_bytes","configuration":{"length_bytes":4,"length_bytes":8}})"), "\"length_bytes\" is given twice");
  says(type(R"({"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"},{"name":"a","data_type":"int16"}]}})"),
       "two fields have the name \"a\"");

  const auto time = [](const char* configuration) {
    return std::string(R"({"name":"numpy.datetime64","configuration":)") + configuration + "}";
  };
  for (const char* right : {R"({"unit":"ns","scale_factor":1})", R"({"unit":"generic","scale_factor":2147483647})",
                            R"({"scale_factor":10,"unit":"\u03bcs"})"})
    BOOST_TEST(zarrbits::data_type(time(right)).element_size() == 8u);
  says(type(time(R"({"unit":"parsec","scale_factor":1})")), "\"unit\"");
  says(type(time(R"({"scale_factor":1})")), "\"unit\"");
  for (const char* scale : {"-1", "0", "2147483648", "1.5", "\"1\""})
    says(type(time((R"({"unit":"s","scale_factor":)" + std::string(scale) + "}").c_str())), "\"scale_factor\"");
  says(type(time(R"({"unit":"s","scale_factor":1,"zone":"UTC"})")), "\"zone\"");

  says(type("r34359738360"), "too large");
  says(type("r12"), "multiple of 8");
}

BOOST_AUTO_TEST_CASE(errors_of_a_shared_library_with_hidden_symbols_are_the_same_errors) {
  const std::error_code theirs = codec_error_in_shared_library();
  BOOST_TEST((theirs == errc::invalid_codec));
  BOOST_TEST((errc::invalid_codec == theirs));
  BOOST_TEST((theirs != errc::invalid_data_type));
  BOOST_TEST(&theirs.category() != &zarrbits::error_category());  // or this shows nothing
  BOOST_TEST((std::make_error_code(std::errc::argument_out_of_domain) != errc::invalid_codec));
  BOOST_TEST((std::error_code(static_cast<int>(errc::invalid_codec), std::generic_category()) != errc::invalid_codec));
}

BOOST_AUTO_TEST_CASE(codecs_are_written_as_objects_without_defaults) {
  BOOST_TEST(zarrbits::bytes("uint8").json() == R"({"name":"bytes"})");
  BOOST_TEST(zarrbits::bytes("uint16").json() == R"({"name":"bytes","configuration":{"endian":"little"}})");
  BOOST_TEST(zarrbits::packbits("bool").json() == R"({"name":"packbits"})");
  BOOST_TEST(zarrbits::packbits("uint16", {.last_bit = 11}).json() == R"({"name":"packbits","configuration":{"last_bit":11}})");
  const auto c =
      zarrbits::packbits("uint16", {.padding_encoding = zarrbits::padding::first_byte, .first_bit = 2, .last_bit = 15});
  BOOST_TEST(c.json() == R"({"name":"packbits","configuration":{"padding_encoding":"first_byte","first_bit":2}})");
  BOOST_TEST(c.json(zarrbits::spelling::older) ==
             R"({"name":"packbits","configuration":{"padding_encoding":"start_byte","first_bit":2}})");
  BOOST_TEST(zarrbits::numcodecs_packbits().json() == R"({"name":"numcodecs.packbits","configuration":{}})");
}

BOOST_AUTO_TEST_CASE(bare_names_aliases_and_both_spellings_are_read) {
  BOOST_TEST(zarrbits::parse_codec("packbits", "bool").json() == R"({"name":"packbits"})");
  BOOST_TEST(zarrbits::parse_codec("\"packbits\"", "bool").json() == R"({"name":"packbits"})");
  BOOST_TEST(zarrbits::parse_codec("endian", "uint8").name() == "bytes");
  BOOST_TEST(zarrbits::parse_codec(R"({"name":"endian","configuration":{"endian":"big"}})", "uint16").json() ==
             R"({"name":"bytes","configuration":{"endian":"big"}})");
  BOOST_TEST(zarrbits::parse_codec(
                 R"({"name":"packbits","configuration":{"padding_encoding":"end_byte","start_bit":1,"end_bit":3,"first_bit":1}})",
                 "uint8")
                 .json() == R"({"name":"packbits","configuration":{"padding_encoding":"last_byte","first_bit":1,"last_bit":3}})");
  BOOST_TEST(zarrbits::parse_codec("bytes", "uint16", {.assume_little_endian = true}).json() ==
             R"({"name":"bytes","configuration":{"endian":"little"}})");
}

BOOST_AUTO_TEST_CASE(the_spelling_of_the_registrys_schema_is_read) {
  // zarr-extensions, codecs/packbits/schema.json: these keys and values, and null; "name" alone is required
  const auto read = [](const std::string& configuration) {
    return zarrbits::parse_codec(R"({"name":"packbits","configuration":)" + configuration + "}", "uint16").json();
  };
  BOOST_TEST(read(R"({"padding_encoding":"start_byte","start_bit":2,"end_bit":9})") ==
             R"({"name":"packbits","configuration":{"padding_encoding":"first_byte","first_bit":2,"last_bit":9}})");
  BOOST_TEST(read(R"({"padding_encoding":"end_byte","start_bit":0,"end_bit":null})") ==
             R"({"name":"packbits","configuration":{"padding_encoding":"last_byte"}})");
  BOOST_TEST(read(R"({"padding_encoding":"none","start_bit":null,"end_bit":11})") ==
             R"({"name":"packbits","configuration":{"last_bit":11}})");
  BOOST_TEST(read("{}") == R"({"name":"packbits"})");
  BOOST_TEST(zarrbits::parse_codec(R"({"name":"packbits"})", "uint16").json() == R"({"name":"packbits"})");
}

BOOST_AUTO_TEST_CASE(a_struct_by_its_older_name_is_little_endian_where_its_codec_does_not_say) {
  const std::string fields = R"({"name":"structured","configuration":{"fields":[["a","int16"],["b","uint8"]]}})";
  BOOST_TEST(zarrbits::data_type(fields).name() == "structured");
  BOOST_TEST(zarrbits::parse_codec(R"({"name":"bytes"})", fields).json() ==
             R"({"name":"bytes","configuration":{"endian":"little"}})");
  BOOST_TEST(zarrbits::parse_codec(R"({"name":"bytes","configuration":{"endian":"big"}})", fields).json() ==
             R"({"name":"bytes","configuration":{"endian":"big"}})");
  const std::string present = R"({"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"}]}})";
  BOOST_TEST(refusal(errc::invalid_configuration, [&] {
               (void)zarrbits::parse_codec(R"({"name":"bytes"})", present);
             }).find("endian") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(wrong_configurations_name_key_value_type_and_what_is_right) {
  const auto says = [](const std::string& what, std::initializer_list<const char*> words) {
    for (const char* w : words) BOOST_TEST(what.find(w) != std::string::npos, what + " -- does not say " + w);
  };
  says(refusal(errc::invalid_configuration, [] { (void)zarrbits::packbits("uint16", {.last_bit = 16}); }),
       {"last_bit", "16", "uint16", "0 to 15"});
  says(refusal(errc::invalid_configuration, [] { (void)zarrbits::packbits("uint8", {.first_bit = 4, .last_bit = 3}); }),
       {"last_bit", "first_bit", "3", "4"});
  says(refusal(errc::unsupported_data_type, [] { (void)zarrbits::packbits("r16"); }), {"r16", "bytes"});
  says(refusal(errc::unsupported_data_type, [] { (void)zarrbits::numcodecs_packbits("uint8"); }), {"uint8", "bool"});
  says(refusal(errc::invalid_configuration, [] { (void)zarrbits::bytes("int32", {.endian = {}}); }),
       {"endian", "int32", "little"});
  says(refusal(errc::invalid_codec, [] { (void)zarrbits::parse_codec("gzip", "uint8"); }), {"gzip", "packbits"});
  says(refusal(errc::invalid_codec, [] { (void)zarrbits::parse_codec(R"({"name":"bytes","must_understand":false})", "uint8"); }),
       {"must_understand"});
  refusal(errc::invalid_codec, [] { (void)zarrbits::parse_codec("", "uint8"); });
  refusal(errc::invalid_codec, [] { (void)zarrbits::parse_codec("{", "uint8"); });
  refusal(errc::invalid_codec, [] { (void)zarrbits::parse_codec("[]", "uint8"); });
  refusal(errc::invalid_codec, [] { (void)zarrbits::parse_codec("\xff", "uint8"); });
  refusal(errc::invalid_configuration, [] { (void)zarrbits::parse_codec(R"({"name":"bytes","configuration":[]})", "uint8"); });
  refusal(errc::invalid_configuration,
          [] { (void)zarrbits::parse_codec(R"({"name":"numcodecs.packbits","configuration":{"a":1}})", "bool"); });
  refusal(errc::invalid_configuration,
          [] { (void)zarrbits::parse_codec(R"({"name":"packbits","configuration":{"last_bit":11.0}})", "uint16"); });
}

BOOST_AUTO_TEST_CASE(sizes_are_exact_and_never_overflow) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto twelve = zarrbits::packbits("uint16", {.last_bit = 11});
  BOOST_TEST(twelve.encoded_size(0) == 0u);
  BOOST_TEST(twelve.encoded_size(1) == 2u);
  BOOST_TEST(twelve.encoded_size(3) == 5u);
  BOOST_TEST(twelve.element_bits() == 12u);
  const auto counted = zarrbits::packbits("bool", {.padding_encoding = zarrbits::padding::last_byte});
  BOOST_TEST(counted.encoded_size(0) == 1u);
  BOOST_TEST(counted.encoded_size(9) == 3u);
  BOOST_TEST(zarrbits::packbits("bool").encoded_size(most) == most / 8 + 1);
  BOOST_TEST(counted.encoded_size(most) == most / 8 + 2);
  for (const char* t : {"uint16", "complex128"}) {
    const auto c = zarrbits::bytes(t);
    refusal(errc::size_overflow, [&] { c.encoded_size(most); });
    refusal(errc::size_overflow, [&] { c.decoded_size(most / 2 + 1); });
  }
  refusal(errc::size_overflow, [&] { (void)zarrbits::packbits("uint64", {.last_bit = 62}).encoded_size(most / 4); });
  BOOST_TEST(twelve.encoded_range(100, {3, 2}).offset == 4u);
  BOOST_TEST(twelve.encoded_range(100, {3, 2}).size == 4u);
  BOOST_TEST(twelve.encoded_range(100, {100, 0}).size == 0u);
  refusal(errc::invalid_range, [&] { twelve.encoded_range(100, {99, 2}); });
  refusal(errc::invalid_range, [&] { twelve.encoded_range(100, {most, 2}); });
  refusal(errc::invalid_range, [&] { twelve.encoded_range(100, {2, most}); });
}

BOOST_AUTO_TEST_CASE(buffers_of_the_wrong_size_are_refused) {
  const auto c = zarrbits::packbits("uint16", {.last_bit = 11});
  golden::bytes in(10), small(7), right(8), large(20), odd(9);
  BOOST_TEST(zarrbits::encode_chunk(c, in, small).failure.code == errc::buffer_too_small);
  BOOST_TEST(zarrbits::encode_chunk(c, in, large).size == 8u);
  BOOST_TEST(zarrbits::encode_chunk(c, odd, large).failure.code == errc::truncated);
  BOOST_TEST(zarrbits::decode_chunk(c, right, odd).failure.code == errc::partial_element);
  BOOST_TEST(c.explain(zarrbits::decode_chunk(c, right, std::span(odd).first(3)).failure)
                 .find("has 3 bytes, which is not a whole number of uint16 elements of 2 bytes") != std::string::npos);
  BOOST_TEST(c.explain(zarrbits::encode_chunk(c, in, small).failure).find("has to hold 8 bytes") != std::string::npos);
  BOOST_TEST(zarrbits::decode_chunk(c, small, in).failure.code == errc::truncated);
  BOOST_TEST(zarrbits::decode_chunk(c, large, in).failure.code == errc::trailing_data);
  BOOST_TEST(zarrbits::decode_range(c, 5, right, {4, 2}, in).failure.code == errc::invalid_range);
  BOOST_TEST(zarrbits::decode_range(c, 5, right, {0, 5}, small).failure.code == errc::buffer_too_small);
}

BOOST_AUTO_TEST_CASE(byte_order_is_reversed_in_place) {
  const auto c = zarrbits::bytes("uint32", {.endian = zarrbits::endian::big});
  golden::bytes data = golden::from_hex("0102030405060708");
  BOOST_TEST(bool(zarrbits::encode_chunk(c, data, data)));
  BOOST_TEST(golden::to_hex(data) == (std::endian::native == std::endian::little ? "0403020108070605" : "0102030405060708"));
  BOOST_TEST(bool(zarrbits::decode_chunk(c, data, data)));
  BOOST_TEST(golden::to_hex(data) == "0102030405060708");
}

BOOST_AUTO_TEST_CASE(one_codec_serves_many_threads_at_once) {
  const auto c = zarrbits::packbits("uint16", {.last_bit = 11});
  constexpr std::size_t threads = 4, elements = 5000;
  std::array<bool, threads> right{};  // one for each thread: Boost.Test's macros are for one thread alone
  std::array<std::thread, threads> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running[t] = std::thread([&, t] {
      golden::bytes values(2 * elements), back(values.size());
      for (std::size_t i = 0; i < elements; ++i) {
        const auto value = static_cast<std::uint16_t>(i * (t + 1) % 4096);
        std::memcpy(values.data() + 2 * i, &value, 2);
      }
      golden::bytes encoded(c.encoded_size(elements));
      bool good = true;
      for (int round = 0; round < 50 && good; ++round) {
        const zarrbits::codec mine = c;  // NOLINT: each thread has a copy, made and destroyed beside the others
        good = mine.json() == c.json() && zarrbits::encode_chunk(mine, values, encoded) &&
               zarrbits::decode_chunk(mine, encoded, back) && back == values;
      }
      right[t] = good;
    });
  }
  for (auto& t : running) t.join();
  for (std::size_t t = 0; t < threads; ++t) BOOST_TEST(right[t], "thread " << t);
}

BOOST_AUTO_TEST_CASE(copies_of_a_codec_share_its_state_and_what_was_moved_from_is_what_it_was) {
  auto a = zarrbits::packbits("uint16", {.last_bit = 11});
  const auto b = a;  // NOLINT: the copy is what is tested
  BOOST_TEST(&a.name() == &b.name());
  const auto moved = std::move(a);
  BOOST_TEST(&a.name() == &moved.name());  // NOLINT: after the move
  BOOST_TEST(a.encoded_size(1000) == 1500u);
  auto other = zarrbits::packbits("bool");
  other = std::move(a);
  BOOST_TEST(a.json() == other.json());  // NOLINT
  zarrbits::data_type type = "float32";
  const zarrbits::data_type taken = std::move(type);
  BOOST_TEST((type == taken));  // NOLINT
  BOOST_TEST(type.name() == "float32");
  zarrbits::encoder e(b);
  const zarrbits::encoder f = std::move(e);
  BOOST_TEST(e.codec().name() == f.codec().name());  // NOLINT
  static_assert(std::is_nothrow_copy_constructible_v<zarrbits::codec> && std::is_nothrow_move_constructible_v<zarrbits::codec>);
  static_assert(std::is_nothrow_move_assignable_v<zarrbits::codec> && std::is_nothrow_move_assignable_v<zarrbits::data_type>);
}

BOOST_AUTO_TEST_CASE(the_numbers_of_errors_stay_what_they_are) {
  const std::pair<errc, int> numbers[] = {
      {errc::invalid_data_type, 1},       {errc::invalid_codec, 2},          {errc::invalid_configuration, 3},
      {errc::unsupported_data_type, 4},   {errc::element_count_required, 5}, {errc::size_overflow, 6},
      {errc::value_does_not_fit, 7},      {errc::invalid_bool, 8},           {errc::truncated, 9},
      {errc::trailing_data, 10},          {errc::invalid_padding_count, 11}, {errc::nonzero_padding, 12},
      {errc::element_count_mismatch, 13}, {errc::buffer_too_small, 14},      {errc::invalid_range, 15},
      {errc::partial_element, 16},        {errc::element_size_mismatch, 17}};
  for (const auto& [code, number] : numbers) {
    BOOST_TEST(static_cast<int>(code) == number);
    BOOST_TEST(zarrbits::error_category().message(number) != "unknown error", number);
  }
  BOOST_TEST(zarrbits::error_category().message(18) == "unknown error");
}

BOOST_AUTO_TEST_CASE(the_version_is_that_of_the_headers) {
  BOOST_TEST(zarrbits::version() == std::string(ZARRBITS_VERSION_STRING));
}
