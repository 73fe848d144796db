// SPDX-License-Identifier: BSL-1.0
//
// Elements of C++ types in and out: encode(), decode(), and the chunk functions for ranges of a type.
//
#include "tests/support/golden.hpp"

#include <zarrbits/zarrbits.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <complex>
#include <span>
#include <type_traits>
#include <vector>

using zarrbits::errc;

namespace {

const std::vector<std::uint16_t> pixels = {0xABC, 0x123, 0xFFF};
const char* const packed_pixels = "bc3a12ff0f";  // by hand: from the least significant end, then four bits of padding

zarrbits::codec camera() { return zarrbits::packbits("uint16", {.last_bit = 11}); }

// What a data_error says; the test fails where none comes.
template <class Make>
zarrbits::failure refusal(const Make& make, const char* words) {
  try {
    make();
  } catch (const zarrbits::data_error& e) {
    BOOST_TEST(std::string(e.what()).find(words) != std::string::npos, std::string(e.what()) + " -- does not say " + words);
    BOOST_TEST((e.code() == e.failure().code));
    return e.failure();
  }
  BOOST_ERROR("was not refused");
  return {};
}

struct pair_of_numbers {
  std::uint8_t a, b, c;
};

}  // namespace

BOOST_AUTO_TEST_CASE(elements_of_a_type_become_the_bytes_of_the_chunk_and_come_back) {
  const std::vector<std::byte> encoded = zarrbits::encode(camera(), pixels);
  BOOST_TEST(golden::to_hex(encoded) == packed_pixels);
  BOOST_TEST(zarrbits::decode<std::uint16_t>(camera(), encoded, pixels.size()) == pixels);
  BOOST_TEST(zarrbits::decode<std::uint16_t>(camera(), encoded) == pixels);
  BOOST_TEST((zarrbits::encode(camera(), std::as_bytes(std::span(pixels))) == encoded));
  const std::vector<std::byte> memory = zarrbits::decode<std::byte>(camera(), encoded, 3);
  BOOST_TEST(memory.size() == 6u);
  BOOST_TEST((zarrbits::encode(camera(), memory) == encoded));
}

BOOST_AUTO_TEST_CASE(chunk_functions_take_vectors_arrays_and_spans_of_elements) {
  golden::bytes encoded(5);
  const std::array<std::uint16_t, 3> array = {0xABC, 0x123, 0xFFF};
  for (int way = 0; way < 3; ++way) {
    encoded.assign(5, std::byte{});
    const zarrbits::chunk_result r = way == 0 ? zarrbits::encode_chunk(camera(), pixels, encoded)
                                     : way == 1
                                         ? zarrbits::encode_chunk(camera(), array, encoded)
                                         : zarrbits::encode_chunk(camera(), std::span<const std::uint16_t>(array), encoded);
    BOOST_TEST(r.size == 5u);
    BOOST_TEST(golden::to_hex(encoded) == packed_pixels);
  }
  std::array<std::uint16_t, 3> back{};
  BOOST_TEST(bool(zarrbits::decode_chunk(camera(), encoded, back)));
  BOOST_TEST((back == array));
  back = {};
  BOOST_TEST(bool(zarrbits::decode_chunk(camera(), encoded, std::span(back))));
  BOOST_TEST((back == array));
  std::vector<std::uint16_t> last(2);
  BOOST_TEST(bool(zarrbits::decode_range(camera(), 3, encoded, {.first = 1, .count = 2}, last)));
  BOOST_TEST((last == std::vector<std::uint16_t>{0x123, 0xFFF}));
  last = {};
  last.resize(2);
  const zarrbits::byte_range bytes = camera().encoded_range(3, {.first = 1, .count = 2});
  BOOST_TEST(bool(zarrbits::decode_range_bytes(camera(), 3, std::span(encoded).subspan(bytes.offset, bytes.size), {1, 2}, last)));
  BOOST_TEST((last == std::vector<std::uint16_t>{0x123, 0xFFF}));
}

BOOST_AUTO_TEST_CASE(any_type_of_the_right_size_is_an_element) {
  const bool bools[] = {true, false, true};
  BOOST_TEST(golden::to_hex(zarrbits::encode(zarrbits::packbits("bool"), bools)) == "05");
  BOOST_TEST((zarrbits::decode<std::uint8_t>(zarrbits::packbits("bool"), golden::from_hex("05"), 3) ==
              std::vector<std::uint8_t>{1, 0, 1}));
  const std::vector<std::complex<float>> numbers = {{1, 2}, {3, 4}};
  const auto complex = zarrbits::bytes("complex64", {.endian = zarrbits::endian::big});
  BOOST_TEST(golden::to_hex(zarrbits::encode(complex, numbers)) == "3f800000400000004040000040800000");
  BOOST_TEST((zarrbits::decode<std::complex<float>>(complex, zarrbits::encode(complex, numbers)) == numbers));
  const std::vector<pair_of_numbers> raw = {{1, 2, 3}, {4, 5, 6}};
  BOOST_TEST(golden::to_hex(zarrbits::encode(zarrbits::bytes("r24"), raw)) == "010203040506");
  static_assert(!zarrbits::elements_in_memory<std::vector<bool>> && !zarrbits::elements_in_memory<std::vector<std::string>>);
  static_assert(!zarrbits::writable_elements<const std::vector<int>&> && !zarrbits::writable_elements<std::span<const int>>);
}

BOOST_AUTO_TEST_CASE(types_of_another_size_are_refused_with_both_sizes) {
  const std::vector<std::uint32_t> wide = {1, 2, 3, 4};
  golden::bytes encoded(100);
  const zarrbits::chunk_result r = zarrbits::encode_chunk(camera(), wide, encoded);
  BOOST_TEST((r.failure.code == errc::element_size_mismatch));
  BOOST_TEST(camera().explain(r.failure).find("have 4 bytes each, but those of uint16 have 2") != std::string::npos);
  std::vector<std::uint32_t> out(4);
  const auto code = [](const zarrbits::chunk_result& result) { return result.failure.code; };
  BOOST_TEST((code(zarrbits::decode_chunk(camera(), encoded, out)) == errc::element_size_mismatch));
  BOOST_TEST((code(zarrbits::decode_range(camera(), 4, encoded, {0, 4}, out)) == errc::element_size_mismatch));
  BOOST_TEST((code(zarrbits::decode_range_bytes(camera(), 4, encoded, {0, 4}, out)) == errc::element_size_mismatch));
  refusal([&] { return zarrbits::encode(camera(), wide); }, "have 4 bytes each");
  refusal([&] { return zarrbits::decode<std::uint32_t>(camera(), golden::from_hex(packed_pixels)); }, "have 4 bytes each");
  refusal([&] { return zarrbits::decode<std::uint8_t>(camera(), golden::from_hex(packed_pixels)); }, "have 1 bytes each");
}

BOOST_AUTO_TEST_CASE(wrong_data_is_a_data_error_with_the_element_and_its_value) {
  const std::vector<std::uint16_t> too_large = {1, 2, 0x1000};
  const zarrbits::failure f = refusal([&] { return zarrbits::encode(camera(), too_large); }, "element 2 of uint16 is 0x1000");
  BOOST_TEST((f.code == errc::value_does_not_fit));
  BOOST_TEST(f.element == 2u);
  BOOST_TEST(f.value == 0x1000u);
  refusal([&] { return zarrbits::encode(camera(), golden::bytes(3)); }, "ends too early");
  const golden::bytes encoded = golden::from_hex(packed_pixels);
  BOOST_TEST(
      (refusal([&] { return zarrbits::decode<std::uint16_t>(camera(), encoded, 4); }, "too early").code == errc::truncated));
  BOOST_TEST((refusal([&] { return zarrbits::decode<std::uint16_t>(camera(), encoded, 2); }, "after the last").code ==
              errc::trailing_data));
  // more elements than fit in any memory: the length is checked first
  BOOST_TEST(
      (refusal([&] { return zarrbits::decode<std::uint16_t>(camera(), encoded, std::uint64_t{1} << 60); }, "too early").code ==
       errc::truncated));
  BOOST_CHECK_THROW((void)zarrbits::decode<std::uint16_t>(camera(), encoded, ~std::uint64_t{0}), zarrbits::error);
  BOOST_TEST((refusal([&] { return zarrbits::decode<std::uint8_t>(zarrbits::bytes("bool"), golden::from_hex("0102")); },
                      "a bool is 0 or 1")
                  .code == errc::invalid_bool));
}

BOOST_AUTO_TEST_CASE(a_wrong_member_of_a_struct_is_told_by_its_element_and_its_own_value) {
  const zarrbits::data_type type(
      R"({"name":"struct","configuration":{"fields":[{"name":"n","data_type":"int16"},{"name":"yes","data_type":"bool"}]}})");
  const zarrbits::codec c = zarrbits::bytes(type);
  // the same numbers on machines of either endian
  const golden::bytes right = golden::from_hex(
                          "010101"
                          "020200"
                          "030301"),
                      wrong = golden::from_hex(
                          "010101"
                          "020200"
                          "030307");
  golden::bytes out(9);
  BOOST_TEST(zarrbits::encode_chunk(c, right, out).size == 9u);
  BOOST_TEST(out == right);
  const zarrbits::failure way_in = zarrbits::encode_chunk(c, wrong, out).failure;
  const zarrbits::failure way_out = zarrbits::decode_chunk(c, wrong, out).failure;
  for (const zarrbits::failure& f : {way_in, way_out}) {
    BOOST_TEST((f.code == errc::invalid_bool));
    BOOST_TEST(f.element == 2u);
    BOOST_TEST(f.value == 7u);
  }
}

BOOST_AUTO_TEST_CASE(ranges_that_no_memory_holds_are_refused_before_anything_is_read) {
  const zarrbits::codec c = zarrbits::bytes("uint16");
  const std::uint64_t most = ~std::uint64_t{0};
  golden::bytes out(4);
  BOOST_TEST((zarrbits::decode_range(c, most, golden::bytes(4), {0, 1}, out).failure.code == errc::size_overflow));
  BOOST_TEST((zarrbits::decode_range_bytes(c, most, golden::bytes(2), {0, 1}, out).failure.code == errc::size_overflow));
  BOOST_TEST((zarrbits::decode_range_bytes(c, 2, golden::bytes(2), {1, 2}, out).failure.code == errc::invalid_range));
  BOOST_TEST((zarrbits::decode_range_bytes(c, 2, golden::bytes(1), {1, 1}, out).failure.code == errc::truncated));
  BOOST_TEST((zarrbits::decode_range_bytes(c, 2, golden::bytes(3), {1, 1}, out).failure.code == errc::trailing_data));
}

BOOST_AUTO_TEST_CASE(parameters_of_any_other_json_type_or_outside_of_an_enumeration_are_refused) {
  const auto code_of = [](const auto& make) {
    try {
      make();
    } catch (const zarrbits::error& e) {
      return static_cast<errc>(e.code().value());
    }
    return errc{};
  };
  for (const char* bit : {"-1", "1.5", "true", "[11]", "\"11\""}) {
    const std::string json = R"({"name":"packbits","configuration":{"last_bit":)" + std::string(bit) + "}}";
    BOOST_TEST((code_of([&] { (void)zarrbits::parse_codec(json, "uint16"); }) == errc::invalid_configuration), json);
  }
  BOOST_TEST((code_of([] { (void)zarrbits::packbits("bool", {.padding_encoding = static_cast<zarrbits::padding>(7)}); }) ==
              errc::invalid_configuration));
}

BOOST_AUTO_TEST_CASE(without_a_number_of_elements_the_count_byte_or_the_length_tells_it) {
  for (const auto where : {zarrbits::padding::none, zarrbits::padding::first_byte, zarrbits::padding::last_byte})
    for (const unsigned bits : {1u, 3u, 7u, 12u, 16u})
      for (std::size_t n = 0; n < 40; ++n) {
        const auto c = zarrbits::packbits("uint16", {.padding_encoding = where, .last_bit = bits - 1});
        const std::vector<std::uint16_t> elements(n, 1);
        const auto back = zarrbits::decode<std::uint16_t>(c, zarrbits::encode(c, elements));
        const std::size_t all =
            where == zarrbits::padding::none ? (n * bits + 7) / 8 * 8 / bits : n;  // padding counts as elements
        BOOST_TEST(back.size() == all, bits << " bits, " << n << " elements");
        for (std::size_t i = 0; i < back.size(); ++i) BOOST_REQUIRE(back[i] == (i < n));
      }
  const auto counted = zarrbits::packbits("bool", {.padding_encoding = zarrbits::padding::first_byte});
  const auto decoded = [&](const char* hex) {
    return [&counted, hex] { return zarrbits::decode<std::uint8_t>(counted, golden::from_hex(hex)); };
  };
  BOOST_TEST((refusal(decoded(""), "too early").code == errc::truncated));
  BOOST_TEST((refusal(decoded("0801"), "count byte says 8").code == errc::invalid_padding_count));
  BOOST_TEST((refusal(decoded("03"), "count byte says 3").code == errc::invalid_padding_count));
  const auto twenty = zarrbits::packbits("uint32", {.last_bit = 19});
  BOOST_TEST(
      (refusal([&] { return zarrbits::decode<std::uint32_t>(twenty, golden::bytes(4)); }, "too early").code == errc::truncated));
}
