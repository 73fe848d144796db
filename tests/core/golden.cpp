// SPDX-License-Identifier: BSL-1.0
//
// All golden vectors through the chunk functions, on every table of kernels.
//
#include "tests/support/golden.hpp"
#include "core/codec_state.hpp"
#include "core/kernels/kernels.hpp"
#include "tests/support/guarded_buffer.hpp"
#include "tests/support/kernel_tables.hpp"

#include <zarrbits/zarrbits.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>

namespace {

// A sentence: it names the codec or the data type, says something, and stays on one line.
void check_sentence(const std::string& s) {
  BOOST_TEST(s.size() > 30u, s);
  BOOST_TEST(s.find('\n') == std::string::npos, s);
  BOOST_TEST((s.find(":") != std::string::npos || s.find("does not exist") != std::string::npos), s);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_vector_encodes_and_decodes_as_a_chunk) {
  std::size_t encoded = 0, decoded = 0;
  for (const golden::vector& v : golden::vectors()) {
    if (!v.error.empty()) continue;
    for (const auto* table : tables_to_test()) {
      const zarrbits::codec c = zarrbits::detail::with_kernels(v.make(), *table);
      if (v.encodes()) {
        golden::bytes out(c.encoded_size(v.elements), std::byte{0xa5});
        const auto r = zarrbits::encode_chunk(c, *v.decoded, out);
        BOOST_REQUIRE_MESSAGE(r, v.name() + ": " + c.explain(r.failure));
        BOOST_TEST(r.size == out.size());
        BOOST_TEST(golden::to_hex(out) == golden::to_hex(*v.encoded), v.name());
        ++encoded;
      }
      if (v.decodes()) {
        golden::bytes out(c.decoded_size(v.elements), std::byte{0xa5});
        const auto r = zarrbits::decode_chunk(c, *v.encoded, out);
        BOOST_REQUIRE_MESSAGE(r, v.name() + ": " + c.explain(r.failure));
        BOOST_TEST(golden::to_hex(out) == golden::to_hex(*v.decoded), v.name());
        ++decoded;
      }
    }
  }
  BOOST_TEST(encoded >= 4000u);
  BOOST_TEST(decoded >= 4000u);
}

BOOST_AUTO_TEST_CASE(structs_by_their_older_name_have_the_same_bytes) {
  std::size_t tried = 0;
  for (const golden::vector& v : golden::vectors()) {
    if (!v.error.empty() || v.data_type.find(R"("struct")") == std::string::npos) continue;
    nlohmann::json older = nlohmann::json::parse(v.data_type);
    older["name"] = "structured";
    for (nlohmann::json& field : older["configuration"]["fields"]) field = {field["name"], field["data_type"]};
    const zarrbits::codec c = zarrbits::parse_codec(v.codec, zarrbits::data_type(older.dump()), v.policy);
    golden::bytes out(c.encoded_size(v.elements));
    BOOST_REQUIRE(zarrbits::encode_chunk(c, *v.decoded, out));
    BOOST_TEST(golden::to_hex(out) == golden::to_hex(*v.encoded), v.name());
    ++tried;
  }
  BOOST_TEST(tried >= 2u);
}

BOOST_AUTO_TEST_CASE(every_wrong_vector_is_refused_at_its_stage_with_a_sentence) {
  std::size_t refused = 0;
  for (const golden::vector& v : golden::vectors()) {
    if (v.error.empty()) continue;
    ++refused;
    if (v.stage == "configure") {
      try {
        v.make();
        BOOST_ERROR(v.name() + " was not refused: " + v.error);
      } catch (const zarrbits::error& e) {
        check_sentence(e.what());
        BOOST_TEST(bool(e.code()));
      }
      continue;
    }
    const zarrbits::codec c = v.make();
    zarrbits::chunk_result r;
    if (v.stage == "encode") {
      golden::bytes out(c.encoded_size(v.decoded->size() / c.element_size()));
      r = zarrbits::encode_chunk(c, *v.decoded, out);
    } else {
      golden::bytes out(c.decoded_size(v.elements));
      r = zarrbits::decode_chunk(c, *v.encoded, out);
    }
    BOOST_TEST(!r, v.name() + " was not refused: " + v.error);
    check_sentence(c.explain(r.failure));
  }
  BOOST_TEST(refused >= 40u);
}

BOOST_AUTO_TEST_CASE(any_range_of_elements_decodes_to_the_same_values_and_touches_only_its_bytes) {
  std::mt19937 random(7);
  guarded_buffer guarded(1 << 16);
  for (const golden::vector& v : golden::vectors()) {
    if (!v.error.empty() || !v.decodes() || v.elements == 0 || v.encoded->size() > (1 << 16)) continue;
    const zarrbits::codec c = v.make();
    golden::bytes all(c.decoded_size(v.elements));
    BOOST_REQUIRE(zarrbits::decode_chunk(c, *v.encoded, all));
    for (int turn = 0; turn < 6; ++turn) {
      const std::uint64_t first = random() % v.elements, count = 1 + random() % (v.elements - first);
      const auto range = c.encoded_range(v.elements, {first, count});
      // only the range is readable: the byte before it, or behind it, is not
      const auto bytes = turn % 2 ? guarded.front(range.size) : guarded.back(range.size);
      std::copy_n(v.encoded->begin() + static_cast<std::ptrdiff_t>(range.offset), range.size, bytes.begin());
      const std::span<const std::byte> whole(bytes.data() - range.offset, v.encoded->size());
      golden::bytes out(c.decoded_size(count), std::byte{0x5a});
      const auto r = zarrbits::decode_range(c, v.elements, whole, {first, count}, out);
      BOOST_REQUIRE_MESSAGE(r, v.name() + ": " + c.explain(r.failure));
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(first * c.element_size());
      BOOST_TEST(std::equal(out.begin(), out.end(), from),
                 v.name() + " elements " + std::to_string(first) + " + " + std::to_string(count));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_json_of_a_codec_makes_the_same_codec_in_either_spelling) {
  for (const golden::vector& v : golden::vectors()) {
    if (v.stage == "configure") continue;
    const zarrbits::codec c = v.make();
    for (const auto s : {zarrbits::spelling::published, zarrbits::spelling::older}) {
      const auto j = nlohmann::json::parse(c.json(s));
      BOOST_TEST(j.is_object());
      const zarrbits::codec again = zarrbits::parse_codec(c.json(s), c.type(), v.policy);
      BOOST_TEST(again.json() == c.json(), v.name());
      BOOST_TEST(again.encoded_size(100) == c.encoded_size(100), v.name());
    }
  }
}
