// SPDX-License-Identifier: BSL-1.0
//
// The streaming contract: greedy, cut anywhere, sticky errors, idempotent end, nothing allocated, little carried.
//
#include "tests/support/golden.hpp"

#include <zarrbits/zarrbits.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

// not inlined: gcc would warn of a free() that meets an operator new
[[gnu::noinline]] void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using golden::bytes;
std::mt19937 random_cut(11);

struct outcome {
  bytes out;
  std::error_code error;
  zarrbits::failure failure;
};

// Feeds pieces of sizes that `next_in` and `next_out` give, and holds the transform to its contract on the way.
template <class Transform, class In, class Out>
outcome drive(Transform t, std::span<const std::byte> in, In next_in, Out next_out) {
  outcome r;
  std::vector<std::byte> buffer(1 << 12);
  const auto accept = [&](const zarrbits::progress& p, std::size_t given) {
    BOOST_REQUIRE(p.produced <= given);
    r.out.insert(r.out.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(p.produced));
    r.error = p.error;
    r.failure = t.failure();
    return !p.error;
  };
  const auto sticky = [&] {
    const std::byte more{1};
    for (int i = 0; i < 2; ++i) {
      const auto s = t.step({&more, 1}, buffer);
      const auto f = t.finish(buffer);
      BOOST_REQUIRE(s.error == r.error && f.error == r.error);
      BOOST_REQUIRE(s.consumed == 0 && s.produced == 0 && f.produced == 0 && !f.done);
    }
    return r;
  };
  while (!in.empty()) {
    const std::size_t n = std::min<std::size_t>(next_in(), in.size()), m = next_out();
    const auto p = t.step(in.first(n), std::span(buffer).first(m));
    if (!accept(p, m)) return sticky();
    BOOST_REQUIRE_MESSAGE(p.consumed == n || p.produced == m, "not greedy");
    BOOST_REQUIRE(!p.done);
    in = in.subspan(p.consumed);
  }
  for (;;) {
    const std::size_t m = next_out();
    const auto p = t.finish(std::span(buffer).first(m));
    if (!accept(p, m)) return sticky();
    if (p.done) break;
    BOOST_REQUIRE_MESSAGE(p.produced == m, "finish() is not greedy");
  }
  for (int i = 0; i < 2; ++i) {  // done stays done
    const auto p = t.finish(buffer);
    BOOST_REQUIRE(p.done && p.produced == 0 && !p.error);
  }
  const std::byte more{0};
  BOOST_REQUIRE(t.step({&more, 1}, buffer).error == zarrbits::errc::trailing_data);
  return r;
}

auto always(std::size_t n) {
  return [n] { return n; };
}
auto up_to(std::size_t n) {
  return [n] { return random_cut() % (n + 1); };
}

void expect(const outcome& r, const bytes& wanted, bool refused, const std::string& name) {
  BOOST_TEST(bool(r.error) == refused, name + ": " + r.error.message());
  if (!refused)
    BOOST_REQUIRE_MESSAGE(r.out == wanted,
                          name + ": " + golden::to_hex(r.out) + " where " + golden::to_hex(wanted) + " is right");
}

template <class Transform>
void at_all_kinds_of_cuts(const Transform& t, const bytes& in, const bytes& wanted, bool refused, const std::string& name) {
  const outcome whole = drive(t, in, always(in.size() + 1), always(4096));
  expect(whole, wanted, refused, name);
  for (const auto& r :
       {drive(t, in, always(1), always(1)), drive(t, in, up_to(9), up_to(5)), drive(t, in, up_to(100), up_to(100)),
        drive(t, in, always(3), always(4096)), drive(t, in, always(4096), always(3))}) {
    expect(r, wanted, refused, name);
    BOOST_TEST(r.error == whole.error, name);
    BOOST_TEST(r.failure.element == whole.failure.element, name);
    BOOST_TEST(r.failure.value == whole.failure.value, name);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_vector_streams_at_any_cut_to_the_same_bytes_or_the_same_error) {
  std::size_t n = 0;
  for (const golden::vector& v : golden::vectors()) {
    if (v.stage == "configure") continue;
    const zarrbits::codec c = v.make();
    const bool refused = !v.error.empty();
    if (v.encodes())
      at_all_kinds_of_cuts(zarrbits::encoder(c, v.elements), *v.decoded, v.encoded.value_or(bytes{}), refused, v.name());
    if (v.encodes() && !c.needs_element_count())
      at_all_kinds_of_cuts(zarrbits::encoder(c), *v.decoded, v.encoded.value_or(bytes{}), refused, v.name());
    if (v.decodes())
      at_all_kinds_of_cuts(zarrbits::decoder(c, v.elements), *v.encoded, v.decoded.value_or(bytes{}), refused, v.name());
    ++n;
  }
  BOOST_TEST(n >= 4000u);
}

BOOST_AUTO_TEST_CASE(a_count_byte_makes_the_element_count_unnecessary_for_decoding) {
  for (const golden::vector& v : golden::vectors()) {
    if (!v.error.empty() || !v.decodes()) continue;
    const zarrbits::codec c = v.make();
    const auto r = drive(zarrbits::decoder(c), *v.encoded, up_to(9), up_to(5));
    BOOST_REQUIRE_MESSAGE(!r.error, v.name() + ": " + r.error.message());
    const bool counted = v.codec.find("_byte") != std::string::npos || c.name() != "packbits";
    if (counted) {
      BOOST_REQUIRE_MESSAGE(r.out == *v.decoded, v.name());
    } else {  // up to 7 elements more, made of padding
      BOOST_REQUIRE(r.out.size() >= v.decoded->size() && r.out.size() <= v.decoded->size() + 7 * c.element_size());
      BOOST_REQUIRE_MESSAGE(std::equal(v.decoded->begin(), v.decoded->end(), r.out.begin()), v.name());
      // a vector of decoding alone may have padding bits that are not 0
      for (std::size_t i = v.decoded->size(); i < r.out.size() && v.stage != "decode"; ++i)
        BOOST_REQUIRE(r.out[i] == std::byte{0});
    }
  }
}

BOOST_AUTO_TEST_CASE(small_streams_give_the_same_at_every_pair_of_cuts) {
  for (const char* codec : {R"({"name":"packbits","configuration":{"last_bit":11}})",
                            R"({"name":"packbits","configuration":{"last_bit":4,"padding_encoding":"first_byte"}})",
                            R"({"name":"packbits","configuration":{"last_bit":12,"padding_encoding":"last_byte"}})",
                            R"({"name":"bytes","configuration":{"endian":"big"}})"}) {
    const zarrbits::codec c = zarrbits::parse_codec(codec, "uint16");
    bytes in(2 * 11);
    for (std::size_t i = 0; i < 11; ++i) {
      const auto value = static_cast<std::uint16_t>(i * 3 % 32);
      std::memcpy(in.data() + 2 * i, &value, 2);
    }
    bytes wanted(c.encoded_size(11));
    BOOST_REQUIRE(zarrbits::encode_chunk(c, in, wanted));
    for (std::size_t a = 0; a <= in.size(); ++a)
      for (std::size_t b = a; b <= in.size(); ++b)
        for (const std::size_t room : {1u, 2u, 3u, 5u, 64u}) {
          std::size_t turn = 0;
          const auto cuts = [&] { return turn++ == 0 ? a : turn == 2 ? b - a : in.size(); };
          expect(drive(zarrbits::encoder(c, 11), in, cuts, always(room)), wanted, false, c.json());
        }
    for (std::size_t a = 0; a <= wanted.size(); ++a)
      for (std::size_t b = a; b <= wanted.size(); ++b)
        for (const std::size_t room : {1u, 2u, 3u, 5u, 64u})
          for (const bool counted : {true, false}) {
            if (!counted && std::string(codec).find("padding") == std::string::npos && c.name() == "packbits") continue;
            std::size_t turn = 0;
            const auto cuts = [&] { return turn++ == 0 ? a : turn == 2 ? b - a : in.size(); };
            const zarrbits::decoder d = counted ? zarrbits::decoder(c, 11) : zarrbits::decoder(c);
            expect(drive(d, wanted, cuts, always(room)), in, false, c.json());
          }
  }
}

BOOST_AUTO_TEST_CASE(long_streams_at_random_cuts_equal_one_shot) {
  for (const char* name : {"bool", "int4", "uint16", "int32", "float64", "complex64", "complex_float6_e2m3fn"})
    for (const auto pad : {zarrbits::padding::none, zarrbits::padding::first_byte, zarrbits::padding::last_byte}) {
      const zarrbits::data_type type(name);
      const unsigned last = type.component_bits() - (type.component_bits() > 8 ? 3 : 1);
      const zarrbits::codec c = zarrbits::packbits(type, {.padding_encoding = pad, .last_bit = last});
      const std::uint64_t elements = 20000 + random_cut() % 100;
      bytes encoded(c.encoded_size(elements)), decoded(c.decoded_size(elements)), again(encoded.size());
      for (auto& b : encoded) b = static_cast<std::byte>(random_cut());
      // whatever bits these are, they decode; only the count byte and the padding have to be right
      const unsigned padding_bits = static_cast<unsigned>((8 - elements * c.element_bits() % 8) % 8);
      if (pad == zarrbits::padding::first_byte) encoded.front() = static_cast<std::byte>(padding_bits);
      if (pad == zarrbits::padding::last_byte) encoded.back() = static_cast<std::byte>(padding_bits);
      auto& last_byte = encoded[encoded.size() - 1 - (pad == zarrbits::padding::last_byte)];
      last_byte &= static_cast<std::byte>(0xff >> padding_bits);
      BOOST_REQUIRE(zarrbits::decode_chunk(c, encoded, decoded));
      BOOST_REQUIRE(zarrbits::encode_chunk(c, decoded, again));
      BOOST_REQUIRE(again == encoded);
      for (const std::size_t most : {17u, 300u, 4000u}) {
        expect(drive(zarrbits::encoder(c, elements), decoded, up_to(most), up_to(most)), encoded, false, c.json());
        expect(drive(zarrbits::decoder(c, elements), encoded, up_to(most), up_to(most)), decoded, false, c.json());
        if (pad != zarrbits::padding::none)
          expect(drive(zarrbits::decoder(c), encoded, up_to(most), up_to(most)), decoded, false, c.json());
      }
    }
}

BOOST_AUTO_TEST_CASE(a_wrong_count_is_found_on_both_sides) {
  using zarrbits::errc;
  const zarrbits::codec c = zarrbits::packbits("uint8", {.last_bit = 2});
  const bytes five(5);
  BOOST_TEST(drive(zarrbits::encoder(c, 6), five, always(2), always(9)).error == errc::element_count_mismatch);
  BOOST_TEST(drive(zarrbits::encoder(c, 4), five, always(2), always(9)).error == errc::element_count_mismatch);
  BOOST_TEST(drive(zarrbits::encoder(c, 4), five, always(5), always(9)).error == errc::element_count_mismatch);
  const bytes two(2);  // five elements of 3 bits
  BOOST_TEST(!drive(zarrbits::decoder(c, 5), two, always(2), always(9)).error);
  BOOST_TEST(drive(zarrbits::decoder(c, 6), two, always(2), always(9)).error == errc::truncated);
  BOOST_TEST(drive(zarrbits::decoder(c, 2), two, always(2), always(9)).error == errc::trailing_data);
  BOOST_CHECK_THROW(zarrbits::encoder(zarrbits::packbits("bool", {.padding_encoding = zarrbits::padding::first_byte})),
                    zarrbits::error);
}

BOOST_AUTO_TEST_CASE(input_that_ends_inside_an_element_is_truncated) {
  using zarrbits::errc;
  const zarrbits::codec swap = zarrbits::bytes("complex64", {.endian = zarrbits::endian::big});
  for (const std::size_t n : {1u, 4u, 7u, 9u, 12u}) {
    BOOST_TEST(drive(zarrbits::encoder(swap), bytes(n), up_to(3), always(64)).error == errc::truncated);
    BOOST_TEST(drive(zarrbits::decoder(swap), bytes(n), up_to(3), always(64)).error == errc::truncated);
  }
  // 12 bits an element: one byte is not an element, and too much for padding
  const zarrbits::codec twelve = zarrbits::packbits("uint16", {.last_bit = 11});
  BOOST_TEST(drive(zarrbits::decoder(twelve), bytes(1), always(1), always(64)).error == errc::truncated);
  BOOST_TEST(drive(zarrbits::decoder(twelve), bytes(4), always(1), always(64)).error == errc::truncated);
  BOOST_TEST(!drive(zarrbits::decoder(twelve), bytes(3), always(1), always(64)).error);
}

BOOST_AUTO_TEST_CASE(a_count_byte_that_cannot_be_is_refused_without_a_count_too) {
  for (const unsigned count : {1u, 6u, 8u, 9u, 15u, 16u, 255u})
    for (const auto pad : {zarrbits::padding::first_byte, zarrbits::padding::last_byte})
      for (const char* type : {"bool", "uint16"}) {
        const zarrbits::codec c = zarrbits::packbits(type, {.padding_encoding = pad, .last_bit = type[0] == 'b' ? 0u : 11u});
        bytes in{std::byte{0}, std::byte{0}, std::byte{0}};
        in.insert(pad == zarrbits::padding::first_byte ? in.begin() : in.end(), static_cast<std::byte>(count));
        const bool possible = type[0] == 'b' && count < 8;
        for (const std::size_t most : {1u, 4u, 64u}) {
          const auto r = drive(zarrbits::decoder(c), in, always(most), always(most));
          BOOST_TEST((r.error == zarrbits::errc::invalid_padding_count) == !possible, count);
          if (possible) BOOST_TEST(r.out.size() == 24 - count);
        }
      }
}

BOOST_AUTO_TEST_CASE(failure_tells_the_element_and_its_value) {
  const zarrbits::codec c = zarrbits::packbits("int16", {.last_bit = 11});
  std::vector<std::int16_t> v(1000, -5);
  v[777] = 2048;
  const auto data = std::as_bytes(std::span(v));
  const bytes in(data.begin(), data.end());
  for (const std::size_t most : {1u, 7u, 4096u}) {
    const auto r = drive(zarrbits::encoder(c), in, up_to(most), always(4000));
    BOOST_TEST(r.error == zarrbits::errc::value_does_not_fit);
    BOOST_TEST(r.failure.element == 777u);
    BOOST_TEST(r.failure.value == 2048u);
    const std::string sentence = c.explain(r.failure);
    BOOST_TEST(sentence.find("element 777") != std::string::npos, sentence);
    BOOST_TEST(sentence.find("0x800") != std::string::npos, sentence);
  }
}

BOOST_AUTO_TEST_CASE(strict_padding_refuses_what_is_ignored_otherwise) {
  const bytes set{std::byte{0xff}, std::byte{0xff}};  // 9 bools and 7 bits of padding that are not 0
  for (const bool strict : {false, true}) {
    const zarrbits::codec c = zarrbits::packbits("bool", {.strict_padding = strict});
    BOOST_TEST(bool(drive(zarrbits::decoder(c, 9), set, always(1), always(3)).error) == strict);
    bytes out(9);
    BOOST_TEST(!zarrbits::decode_chunk(c, set, out) == strict);
    for (const auto pad : {zarrbits::padding::first_byte, zarrbits::padding::last_byte}) {
      const zarrbits::codec counted = zarrbits::packbits("bool", {.padding_encoding = pad, .strict_padding = strict});
      bytes in = set;
      in.insert(pad == zarrbits::padding::first_byte ? in.begin() : in.end(), std::byte{7});
      BOOST_TEST(bool(drive(zarrbits::decoder(counted), in, always(1), always(3)).error) == strict);
      BOOST_TEST(bool(drive(zarrbits::decoder(counted, 9), in, always(1), always(3)).error) == strict);
    }
  }
}

BOOST_AUTO_TEST_CASE(reset_begins_another_chunk_after_an_end_and_after_an_error) {
  const zarrbits::codec c = zarrbits::packbits("bool", {.padding_encoding = zarrbits::padding::last_byte});
  zarrbits::encoder e(c);
  const bytes good{std::byte{1}, std::byte{0}, std::byte{1}}, bad{std::byte{1}, std::byte{2}};
  bytes out(8);
  BOOST_TEST(bool(e.step(bad, out).error));
  for (int i = 0; i < 3; ++i) {
    e.reset();
    const auto p = e.step(good, out);
    const auto f = e.finish(std::span(out).subspan(p.produced));
    BOOST_TEST(f.done);
    BOOST_TEST(p.produced + f.produced == 2u);
    BOOST_TEST(golden::to_hex(out).substr(0, 4) == "0505");
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_after_construction) {
  const zarrbits::codec c = zarrbits::packbits("int32", {.padding_encoding = zarrbits::padding::last_byte, .last_bit = 18});
  bytes in(4 * 1001), out(4 * 1001), back(4 * 1001);
  zarrbits::encoder e(c);
  zarrbits::decoder d(c);
  const std::size_t before = allocations;
  const auto a = e.step(in, out);
  const auto b = e.finish(std::span(out).subspan(a.produced));
  const auto encoded = std::span(out).first(a.produced + b.produced);
  (void)d.step(encoded.first(77), back);
  d.reset();
  const auto x = d.step(encoded, back);
  const auto y = d.finish(std::span(back).subspan(x.produced));
  const auto f = d.failure();
  const auto r = zarrbits::encode_chunk(c, in, out);
  BOOST_TEST(allocations == before);
  BOOST_TEST((b.done && y.done && !f && r));
  BOOST_TEST(before > 0u);  // the counter counts
}

static_assert(noexcept(std::declval<zarrbits::encoder&>().step({},
                                                               {})) && noexcept(std::declval<zarrbits::decoder&>().finish({})));
static_assert(sizeof(zarrbits::detail::carry) <= 64);
