// SPDX-License-Identifier: BSL-1.0
//
// Every golden vector through the Boost filters, in both directions, with writes and reads of random sizes.
//
#include "tests/streams/support.hpp"
#include "tests/support/test_data.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <fstream>

using namespace test;
using nlohmann::json;

namespace {

std::string unhex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

const json& vectors() {
  static const json all = json::parse(std::ifstream(golden_file("codecs.json")));
  return all;
}

zarrbits::codec codec_of(const json& v) {
  const json c = v.contains("codec_json") ? v["codec_json"] : json{{"name", v["codec"]}, {"configuration", v["configuration"]}};
  const json& t = v["data_type"];
  return zarrbits::parse_codec(c.dump(), t.is_string() ? t.get<std::string>() : t.dump(),
                               {.truncate = v.value("truncate", false), .nonzero_is_true = v.value("nonzero_is_true", false)});
}

std::string describe(const json& v, std::size_t index) {
  return "vector " + std::to_string(index) + ": " + v["codec"].get<std::string>() + " " + v["configuration"].dump() + " " +
         v["data_type"].dump() + " " + v.value("error", "");
}

// Buffers that cut elements, and those that people use.
std::streamsize some_buffer(std::mt19937& random) {
  static const std::array<std::streamsize, 8> sizes = {1, 2, 3, 7, 64, 1000, 8192, 65536};
  return sizes[random() % sizes.size()];
}

// Short pieces for short chunks; long chunks would take too long byte by byte.
std::size_t most(const std::string& data, std::mt19937& random) {
  return data.size() < 5000 ? 1 + random() % 40 : 1 + random() % 20000;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_vector_encodes_and_decodes_through_the_filters) {
  std::mt19937 random(2024);
  std::size_t encoded_count = 0, decoded_count = 0, index = 0;
  for (const json& v : vectors()) {
    const std::string what = describe(v, index++);
    if (v.contains("error")) continue;
    const auto codec = codec_of(v);
    const auto elements = v["elements"].get<std::uint64_t>();
    const std::string decoded = unhex(v["decoded"]), encoded = unhex(v["encoded"]);
    std::optional<std::uint64_t> known = elements;
    if (!codec.needs_element_count() && random() % 2) known.reset();

    // "stage" where one direction alone is meant: a form of the values that the other does not give back
    const std::string stage = v.value("stage", "encode decode");
    if (stage != "decode") {
      const zi::encoder e(codec, known, some_buffer(random));
      BOOST_CHECK_MESSAGE(written(e, decoded, random, most(decoded, random)) == encoded, "written: " << what);
      BOOST_CHECK_MESSAGE(read(e, decoded, random, most(decoded, random)) == encoded, "read through the encoder: " << what);
      BOOST_CHECK_MESSAGE(copied_out(e, decoded) == encoded, "copied: " << what);
      BOOST_CHECK_MESSAGE(copied_into_memory(e, decoded, encoded.size()) == encoded, "copied into memory: " << what);
      ++encoded_count;
    }
    if (stage == "encode") continue;

    const zi::decoder d(codec, elements, some_buffer(random));
    BOOST_CHECK_MESSAGE(read(d, encoded, random, most(decoded, random)) == decoded, "read: " << what);
    BOOST_CHECK_MESSAGE(written(d, encoded, random, most(encoded, random)) == decoded, "written through the decoder: " << what);
    BOOST_CHECK_MESSAGE(copied_in(d, encoded) == decoded, "copied: " << what);
    BOOST_CHECK_MESSAGE(copied_into_memory(d, encoded, decoded.size()) == decoded, "copied into memory: " << what);
    // without the number of elements: a count byte tells it, and else whole elements of padding may follow
    const std::string open = read(zi::decoder(codec, {}, some_buffer(random)), encoded, random, most(decoded, random));
    const bool exact = codec.encoded_size(0) == 1 || codec.element_bits() % 8 == 0;
    const std::size_t extra = (open.size() - decoded.size()) / codec.element_size();
    BOOST_CHECK_MESSAGE(open.size() >= decoded.size() && open.compare(0, decoded.size(), decoded) == 0,
                        "count not given: " << what);
    BOOST_CHECK_MESSAGE(exact ? extra == 0 : extra * codec.element_bits() < 8, "count not given, number of elements: " << what);
    ++decoded_count;
  }
  BOOST_TEST_MESSAGE(encoded_count << " vectors encoded, " << decoded_count << " decoded");
  BOOST_CHECK_GT(encoded_count, 4000u);
  BOOST_CHECK_GT(decoded_count, 3900u);
}

BOOST_AUTO_TEST_CASE(every_vector_reads_at_random_positions) {
  std::mt19937 random(7);
  std::size_t index = 0, count = 0;
  for (const json& v : vectors()) {
    const std::string what = describe(v, index++);
    if (v.contains("error") || v.value("stage", "") == "encode") continue;
    const auto codec = codec_of(v);
    const std::string decoded = unhex(v["decoded"]), encoded = unhex(v["encoded"]);
    counts device;
    io::filtering_stream<io::input_seekable> in;
    in.push(zi::seekable_decoder(codec, v["elements"].get<std::uint64_t>(), some_buffer(random)));
    in.push(counting_source(encoded, device), 16);
    in.exceptions(std::ios::badbit);
    for (int i = 0; i < 6; ++i) {
      const std::size_t at = random() % (decoded.size() + 1), n = random() % 30;
      in.clear();
      in.seekg(static_cast<std::streamoff>(at));
      std::string got(n, '\0');
      in.read(got.data(), static_cast<std::streamsize>(n));
      got.resize(static_cast<std::size_t>(in.gcount()));
      BOOST_CHECK_MESSAGE(got == decoded.substr(at, n), what << " at byte " << at << ", " << n << " bytes");
    }
    ++count;
  }
  BOOST_CHECK_GT(count, 3900u);
}

BOOST_AUTO_TEST_CASE(every_error_vector_fails_at_its_stage_with_a_sentence) {
  std::mt19937 random(3);
  std::size_t configure = 0, encode = 0, decode = 0, index = 0;
  for (const json& v : vectors()) {
    const std::string what = describe(v, index++);
    if (!v.contains("error")) continue;
    const std::string stage = v["stage"];
    if (stage == "configure") {
      ++configure;
      try {
        codec_of(v);
        BOOST_ERROR("is refused: " << what);
      } catch (const zarrbits::error& e) {
        BOOST_CHECK_MESSAGE(std::strlen(e.what()) > 20, what << " says only: " << e.what());
      }
      continue;
    }
    const auto codec = codec_of(v);
    const auto elements = v["elements"].get<std::uint64_t>();
    for (const std::streamsize buffer : {1, 8192}) {
      std::vector<std::optional<zi::codec_error>> errors;
      if (stage == "encode") {
        const std::string decoded = unhex(v["decoded"]);
        const zi::encoder e(codec, elements, buffer);
        errors.push_back(thrown([&] { written(e, decoded, random); }));
        errors.push_back(thrown([&] { read(e, decoded, random); }));
        errors.push_back(thrown([&] { copied_out(e, decoded); }));
        ++encode;
      } else {
        const std::string encoded = unhex(v["encoded"]);
        const zi::decoder d(codec, elements, buffer);
        errors.push_back(thrown([&] { written(d, encoded, random); }));
        errors.push_back(thrown([&] { read(d, encoded, random); }));
        errors.push_back(thrown([&] { copied_in(d, encoded); }));
        ++decode;
      }
      for (const auto& e : errors) {
        BOOST_CHECK_MESSAGE(e, "throws codec_error: " << what);
        if (!e) continue;
        BOOST_CHECK_MESSAGE(e->code().category() == zarrbits::error_category(), what);
        BOOST_CHECK_MESSAGE(std::string(e->what()).find(codec.name()) != std::string::npos, what << " says: " << e->what());
      }
      if (buffer == 1 && errors[0]) BOOST_TEST_MESSAGE(what << ": " << errors[0]->what());
    }
  }
  BOOST_CHECK_EQUAL(configure, 23u);
  BOOST_CHECK_GT(encode, 0u);
  BOOST_CHECK_GT(decode, 0u);
}
