// SPDX-License-Identifier: BSL-1.0
//
// The filters' callbacks without HDF5: buffers as HDF5 hands them over, exactly as long as it says, so that a sanitizer sees one
// byte too far.
#include "tests/filter/chunk_support.hpp"

#include "filter/packbits.hpp"
#include "filter/packbits_plugin.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace chunk_support;
using namespace zarrbits::filter;
using zarrbits::padding;

namespace {

std::mt19937_64 random_bits(20240611);
std::uint64_t below(std::uint64_t n) { return random_bits() % n; }

std::uint64_t low_bits(unsigned n) { return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }

// The packbits text, one bit at a time.
bytes_of model(const std::vector<std::uint64_t>& values, unsigned bits, unsigned first_bit, padding count_byte) {
  bytes_of body((values.size() * bits + 7) / 8);
  std::size_t at = 0;
  for (const auto v : values)
    for (unsigned b = 0; b < bits; ++b, ++at)
      if (v >> (first_bit + b) & 1) body[at / 8] = static_cast<unsigned char>(body[at / 8] | 1u << at % 8);
  const auto count = static_cast<unsigned char>((8 - at % 8) % 8);
  if (count_byte == padding::first_byte) body.insert(body.begin(), count);
  if (count_byte == padding::last_byte) body.push_back(count);
  return body;
}

bytes_of in_memory(const std::vector<std::uint64_t>& values, unsigned size, bool big) {
  bytes_of out;
  for (const auto v : values)
    for (unsigned b = 0; b < size; ++b) out.push_back(static_cast<unsigned char>(v >> 8 * (big ? size - 1 - b : b)));
  return out;
}

struct example {
  packbits_chunk chunk;
  bytes_of decoded, encoded;
};

// A chunk of values that fit in `bits` bits from first_bit on.
example make(unsigned size, unsigned bits, unsigned first_bit, padding count_byte, bool is_signed, bool big, unsigned components,
             std::uint64_t elements) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < elements * components; ++i) {
    std::uint64_t v = random_bits() & low_bits(bits);
    if (is_signed && (v >> (bits - 1) & 1)) v |= ~low_bits(bits);
    values.push_back((v << first_bit) & low_bits(8 * size));
  }
  example x;
  sentence why;
  const packbits_parameters_in user{bits, static_cast<unsigned>(count_byte), first_bit};
  BOOST_REQUIRE_MESSAGE(resolve(user, number(size, is_signed, big, components), elements, x.chunk, why), why.text);
  x.decoded = in_memory(values, size, big);
  x.encoded = model(values, bits, first_bit, count_byte);
  return x;
}

example any_example() {
  const unsigned size = 1u << below(4), bits = 1 + static_cast<unsigned>(below(8 * size));
  const auto first_bit = static_cast<unsigned>(below(8 * size - bits + 1));
  return make(size, bits, first_bit, static_cast<padding>(below(3)), below(2), below(2), 1 + static_cast<unsigned>(below(3)),
              1 + below(3000));
}

std::size_t encode_raw(const library& h5, const packbits_chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                       sentence& why) noexcept {
  return encode(h5, c, true, nbytes, buf_size, buf, why);
}

template <class Filter>
void refuses_untouched(Filter filter, const packbits_chunk& c, const bytes_of& content, std::size_t room) {
  buffer b(content, room);
  void* const at = b.at;
  sentence why;
  BOOST_TEST(filter(plain, c, content.size(), &b.size, &b.at, why) == 0u);
  BOOST_TEST(b.at == at);
  BOOST_TEST(b.size == room);
  BOOST_TEST(b.first(content.size()) == content);
  BOOST_TEST(std::string(why.text).rfind("zarrbits: packbits: ", 0) == 0u);
}

void round_trip(const example& x) {
  sentence why;
  buffer e(x.decoded, x.decoded.size());
  const std::size_t n = encode(plain, x.chunk, true, x.decoded.size(), &e.size, &e.at, why);
  BOOST_REQUIRE_MESSAGE(n == x.encoded.size(), why.text);
  // a filter after ours may take all of the buffer for its result, as lzf does: that must not be more than there was
  BOOST_REQUIRE(e.size == n);
  BOOST_REQUIRE(e.first(n) == x.encoded);
  // a buffer as long as its contents, as HDF5 before 2.2 gives, and one that has room for the result, or just not
  for (const std::size_t room : {x.encoded.size(), x.decoded.size() - 1, x.decoded.size(), x.decoded.size() + 7}) {
    if (room < x.encoded.size()) continue;
    buffer d(x.encoded, room);
    const std::size_t m = decode(plain, x.chunk, x.encoded.size(), &d.size, &d.at, why);
    BOOST_REQUIRE_MESSAGE(m == x.decoded.size(), why.text);
    BOOST_REQUIRE(d.size >= m);
    BOOST_REQUIRE(d.first(m) == x.decoded);
  }
  // lz4's filter leaves the size of a buffer that it has replaced by a smaller one
  buffer lied(x.encoded, x.encoded.size());
  lied.size = std::max(x.encoded.size(), x.decoded.size()) + 16;
  BOOST_REQUIRE_MESSAGE(decode(plain, x.chunk, x.encoded.size(), &lied.size, &lied.at, why) == x.decoded.size(), why.text);
  BOOST_REQUIRE(lied.first(x.decoded.size()) == x.decoded);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_width_in_every_component_is_the_packbits_text) {
  for (const unsigned size : {1u, 2u, 4u, 8u})
    for (unsigned bits = 1; bits <= 8 * size; ++bits)
      for (const padding p : {padding::none, padding::first_byte, padding::last_byte})
        for (const bool big : {false, true}) {
          const bool is_signed = below(2);
          round_trip(make(size, bits, static_cast<unsigned>(below(8 * size - bits + 1)), p, is_signed, big, 1, 1 + below(300)));
        }
}

BOOST_AUTO_TEST_CASE(chunks_of_many_shapes_come_back) {
  for (int i = 0; i < 300; ++i) round_trip(any_example());
  for (std::uint64_t elements = 1; elements < 40; ++elements)
    round_trip(make(2, 12, 2, padding::first_byte, true, true, 2, elements));
}

BOOST_AUTO_TEST_CASE(a_value_that_does_not_fit_leaves_the_buffer_as_it_was) {
  for (int i = 0; i < 300; ++i) {
    example x = any_example();
    const auto& how = x.chunk.how;
    if (how.bits == 8 * how.size) continue;
    // flip one bit that is not kept; the sign bits above are only wrong together with the others, so one is enough
    unsigned bit = 0;
    do bit = static_cast<unsigned>(below(8 * how.size));
    while (bit >= how.first_bit && bit < unsigned{how.first_bit} + how.bits);
    const std::size_t component = below(x.chunk.count());
    const bool big = how.size > 1 && how.swap_memory;
    unsigned char& byte = x.decoded[component * how.size + (big ? how.size - 1 - bit / 8 : bit / 8)];
    byte = static_cast<unsigned char>(byte ^ 1u << bit % 8);
    refuses_untouched(encode_raw, x.chunk, x.decoded, x.decoded.size());

    buffer e(x.decoded, x.decoded.size());
    sentence why;
    encode(plain, x.chunk, true, x.decoded.size(), &e.size, &e.at, why);
    const std::string element = "element " + std::to_string(component / x.chunk.components) + " ";
    BOOST_TEST(std::string(why.text).find(element) != std::string::npos, why.text);

    packbits_chunk cut = x.chunk;
    cut.how.truncate = true;
    BOOST_TEST(encode(plain, cut, true, x.decoded.size(), &e.size, &e.at, why) == x.encoded.size());
    BOOST_TEST(e.first(x.encoded.size()) == x.encoded);
  }
}

BOOST_AUTO_TEST_CASE(a_late_refusal_in_a_long_chunk_leaves_the_buffer_as_it_was) {
  constexpr std::uint64_t elements = 50000;
  for (const unsigned size : {1u, 2u, 4u, 8u})
    for (const bool is_signed : {false, true})
      for (const padding p : {padding::none, padding::first_byte}) {
        example x = make(size, 8 * size - 3, 1, p, is_signed, size == 4, 1, elements);
        x.decoded[(elements - 5) * size + (size == 4 ? size - 1 : 0)] |= 1;  // the lowest bit is not kept
        refuses_untouched(encode_raw, x.chunk, x.decoded, x.decoded.size());
      }
  // booleans
  element boolean = number(1);
  boolean.what = kind::boolean;
  packbits_chunk c;
  sentence why;
  BOOST_REQUIRE(resolve({}, boolean, elements, c, why));
  bytes_of values(elements);
  for (auto& v : values) v = static_cast<unsigned char>(below(2));
  values[elements - 3] = 2;
  refuses_untouched(encode_raw, c, values, values.size());
  // 12 bits with a sign in 16: -1 is 0x0fff or 0xffff
  element narrow = number(2, true);
  narrow.precision = 12;
  BOOST_REQUIRE(resolve({}, narrow, elements, c, why));
  bytes_of two_forms;
  for (std::uint64_t i = 0; i < elements; ++i) {
    two_forms.push_back(0xff);
    two_forms.push_back(i % 2 ? 0x0f : 0xff);
  }
  two_forms[2 * (elements - 1) + 1] = 0x1f;
  refuses_untouched(encode_raw, c, two_forms, two_forms.size());
}

BOOST_AUTO_TEST_CASE(wrong_lengths_and_count_bytes_are_refused) {
  for (int i = 0; i < 40; ++i) {
    const example x = any_example();
    for (int k = 0; k < 20; ++k) {
      const std::size_t length = k == 0   ? 0
                                 : k == 1 ? x.encoded.size() - 1
                                 : k == 2 ? x.encoded.size() + 1
                                          : below(2 * x.encoded.size() + 2);
      if (length == x.encoded.size() || x.chunk.is_raw(length)) continue;
      bytes_of wrong = x.encoded;
      wrong.resize(length);
      refuses_untouched(decode, x.chunk, wrong, length);
      refuses_untouched(decode, x.chunk, wrong, length + x.decoded.size());
    }
    for (const std::size_t length : {x.decoded.size() - 1, x.decoded.size() + 1})
      refuses_untouched(encode_raw, x.chunk, bytes_of(length), length);
    if (x.chunk.count_byte == padding::none) continue;
    bytes_of wrong = x.encoded;
    unsigned char& count = x.chunk.count_byte == padding::first_byte ? wrong.front() : wrong.back();
    count = static_cast<unsigned char>(count + 1 + below(255));
    refuses_untouched(decode, x.chunk, wrong, wrong.size());
  }
}

BOOST_AUTO_TEST_CASE(without_memory_nothing_changes) {
  library poor{};
  poor.call.allocate_memory = [](std::size_t, int) -> void* { return nullptr; };
  poor.call.free_memory = [](void*) -> herr { std::abort(); };
  const example x = make(2, 12, 0, padding::none, false, false, 1, 1000);
  buffer b(x.encoded, x.encoded.size());
  sentence why;
  BOOST_TEST(decode(poor, x.chunk, x.encoded.size(), &b.size, &b.at, why) == 0u);
  BOOST_TEST(b.first(x.encoded.size()) == x.encoded);
  BOOST_TEST(std::string(why.text).find("memory") != std::string::npos);
  // with room in the buffer none is needed
  buffer room(x.encoded, x.decoded.size());
  BOOST_TEST(decode(poor, x.chunk, x.encoded.size(), &room.size, &room.at, why) == x.decoded.size());
  BOOST_TEST(room.first(x.decoded.size()) == x.decoded);
}

BOOST_AUTO_TEST_CASE(parameters_survive_the_file) {
  for (int i = 0; i < 500; ++i) {
    const example x = any_example();
    unsigned cd[packbits_stored], again[packbits_stored];
    store(x.chunk, cd);
    packbits_chunk back;
    sentence why;
    BOOST_REQUIRE_MESSAGE(load(packbits_stored, cd, back, why), why.text);
    store(back, again);
    BOOST_TEST(std::equal(cd, cd + packbits_stored, again));
    BOOST_TEST(back.decoded_size == x.chunk.decoded_size);
    packbits_parameters_in user;
    BOOST_TEST(read_parameters(packbits_stored, cd, user, why));
    BOOST_TEST(user.bits == x.chunk.how.bits);
    BOOST_TEST(user.first_bit == x.chunk.how.first_bit);
  }
}

BOOST_AUTO_TEST_CASE(hostile_parameters_never_give_a_result_of_another_size) {
  std::size_t accepted = 0, refused = 0;
  for (int i = 0; i < 60000; ++i) {
    const example x = below(16) ? make(1u << below(4), 1 + static_cast<unsigned>(below(8)), 0, static_cast<padding>(below(3)),
                                       below(2), below(2), 1, 1 + below(64))
                                : any_example();
    unsigned cd[20];
    store(x.chunk, cd);
    std::size_t n = packbits_stored;
    for (std::uint64_t k = 1 + below(3); k-- > 0;) {
      unsigned& v = cd[below(packbits_stored)];
      switch (below(6)) {
        case 0: v = static_cast<unsigned>(random_bits()); break;
        case 1: v ^= 1u << below(32); break;
        case 2: v = static_cast<unsigned>(below(70)); break;
        case 3: v = 0; break;
        case 4: v = ~0u; break;
        default: n = below(14); break;
      }
    }
    bytes_of content = x.encoded;
    if (below(4) == 0) content.resize(below(2 * content.size() + 1));
    buffer b(content, content.size() + (below(2) ? below(4096) : 0));
    const std::size_t room = b.size;
    void* const at = b.at;
    packbits_chunk c;
    sentence why;
    std::size_t result = 0;
    // only the given values may be read
    const bytes_of tight(reinterpret_cast<unsigned char*>(cd), reinterpret_cast<unsigned char*>(cd) + n * sizeof *cd);
    std::vector<unsigned> values(n);
    if (n != 0) std::memcpy(values.data(), tight.data(), tight.size());
    const bool encoding = below(2);
    if (load(n, values.data(), c, why))
      result = encoding ? encode(plain, c, true, content.size(), &b.size, &b.at, why)
                        : decode(plain, c, content.size(), &b.size, &b.at, why);
    if (result == 0) {
      ++refused;
      BOOST_REQUIRE(b.at == at && b.size == room && b.first(content.size()) == content && why.text[0] != '\0');
    } else {
      ++accepted;
      BOOST_REQUIRE(result == (encoding ? c.encoded_size : c.decoded_size) && b.size >= result);
    }
  }
  BOOST_TEST_MESSAGE("hostile parameters: " << refused << " refused, " << accepted << " accepted");
  BOOST_TEST(refused > 40000u);
  BOOST_TEST(accepted > 100u);
}

BOOST_AUTO_TEST_CASE(impossible_chunks_are_refused_before_anything_is_allocated) {
  const example x = make(8, 1, 0, padding::none, false, false, 1, 64);
  unsigned cd[packbits_stored];
  for (const std::uint64_t elements : {std::uint64_t{0}, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    packbits_chunk c = x.chunk;
    c.elements = elements;
    store(c, cd);
    sentence why;
    BOOST_TEST(!load(packbits_stored, cd, c, why));
  }
}

BOOST_AUTO_TEST_CASE(wrong_user_parameters_are_refused) {
  sentence why;
  packbits_parameters_in user;
  for (const unsigned options : {3u, 12u, 15u, 32u, 1u << 20, ~0u}) {
    const unsigned cd[] = {12, options};
    BOOST_TEST(!read_parameters(2, cd, user, why), options);
  }
  const unsigned fourth[] = {12, 0, 0, 1}, five[] = {12, 0, 0, 0, 0}, newer[12] = {12, 0, 0, 0, 0x5A504202};
  BOOST_TEST(!read_parameters(4, fourth, user, why));
  BOOST_TEST(!read_parameters(5, five, user, why));
  BOOST_TEST(!read_parameters(12, newer, user, why));
  BOOST_TEST(std::string(why.text).find("another version") != std::string::npos);
  packbits_chunk c;
  for (const packbits_parameters_in& p :
       {packbits_parameters_in{0, 0, 0}, {17, 0, 0}, {12, 0, 5}, {~0u, 0, 1}, {1, 0, ~0u}, {12, 16, 0}, {1, 16, 0}})
    BOOST_TEST(!resolve(p, number(2), 10, c, why), p.bits << ' ' << p.options << ' ' << p.first_bit);
  BOOST_TEST(resolve({16, 0, 0}, number(2), 10, c, why));
  for (const unsigned size : {3u, 16u, 0u}) BOOST_TEST(!resolve({1, 0, 0}, number(size), 10, c, why));
}

BOOST_AUTO_TEST_CASE(the_callback_gives_the_same_from_many_threads) {
  const example x = make(2, 12, 0, padding::last_byte, false, true, 1, 20000);
  unsigned cd[packbits_stored];
  store(x.chunk, cd);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        buffer b(x.decoded, x.decoded.size());
        const std::size_t n = packbits_class.filter(0, packbits_stored, cd, x.decoded.size(), &b.size, &b.at);
        if (b.first(n) != x.encoded) ++wrong;
        if (packbits_class.filter(flag_reverse, packbits_stored, cd, n, &b.size, &b.at) != x.decoded.size() ||
            b.first(x.decoded.size()) != x.decoded)
          ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  BOOST_TEST(wrong == 0);
}
