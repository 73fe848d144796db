// SPDX-License-Identifier: BSL-1.0
//
// The filters' callbacks without HDF5: buffers as HDF5 hands them over, exactly as long as it says, so that a sanitizer sees one
// byte too far.
#include "tests/filter/chunk_examples.hpp"

#include "filter/packbits.hpp"
#include "filter/plugins.hpp"

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

template <class Filter>
void refuses_untouched(Filter filter, const packbits_chunk& c, const bytes_of& content, std::size_t room,
                       std::size_t result = 0) {
  buffer b(content, room);
  void* const at = b.at;
  sentence why;
  BOOST_TEST(filter(plain, c, content.size(), &b.size, &b.at, why) == result);
  BOOST_TEST(b.at == at);
  BOOST_TEST(b.size == room);
  BOOST_TEST(b.first(content.size()) == content);
  BOOST_TEST(std::string(why.text).rfind("zarrbits: packbits: ", 0) == 0u);
}

// A chunk with a value that does not fit: success, and the bytes as they came, unless their length would be a packed chunk's, or
// the policy wants an error.
void stays_unpacked(packbits_chunk c, const bytes_of& content) {
  for (const range_policy policy : {range_policy::raw, range_policy::report, range_policy::error}) {
    c.policy = policy;
    const bool told_apart = c.encoded_size != c.decoded_size, raw = told_apart && policy != range_policy::error;
    refuses_untouched(encode, c, content, content.size(), raw ? content.size() : 0);
    if (!told_apart) continue;
    buffer b(content, content.size());
    sentence why;
    BOOST_TEST(decode(plain, c, content.size(), &b.size, &b.at, why) == content.size());
    BOOST_TEST(b.first(content.size()) == content);
  }
}

void round_trip(const example& x) {
  sentence why;
  buffer e(x.decoded, x.decoded.size());
  const std::size_t n = encode(plain, x.chunk, x.decoded.size(), &e.size, &e.at, why);
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
    const auto& format = x.chunk.format;
    if (format.bits == 8 * format.size) continue;
    // flip one bit that is not kept; the sign bits above are only wrong together with the others, so one is enough
    unsigned bit = 0;
    do bit = static_cast<unsigned>(below(8 * format.size));
    while (bit >= format.first_bit && bit < unsigned{format.first_bit} + format.bits);
    const std::size_t component = below(x.chunk.count());
    const bool big = format.size > 1 && format.swap_memory;
    unsigned char& byte = x.decoded[component * format.size + (big ? format.size - 1 - bit / 8 : bit / 8)];
    byte = static_cast<unsigned char>(byte ^ 1u << bit % 8);
    stays_unpacked(x.chunk, x.decoded);

    buffer e(x.decoded, x.decoded.size());
    sentence why;
    encode(plain, x.chunk, x.decoded.size(), &e.size, &e.at, why);
    const std::string element = "element " + std::to_string(component / x.chunk.components) + " ";
    BOOST_TEST(std::string(why.text).find(element) != std::string::npos, why.text);

    packbits_chunk cut = x.chunk;
    cut.format.truncate = true;
    BOOST_TEST(encode(plain, cut, x.decoded.size(), &e.size, &e.at, why) == x.encoded.size());
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
        stays_unpacked(x.chunk, x.decoded);
      }
  // booleans
  element boolean = number(1);
  boolean.type_class = kind::boolean;
  packbits_chunk c;
  sentence why;
  BOOST_REQUIRE(resolve({}, boolean, elements, c, why));
  bytes_of values(elements);
  for (auto& v : values) v = static_cast<unsigned char>(below(2));
  values[elements - 3] = 2;
  stays_unpacked(c, values);
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
  stays_unpacked(c, two_forms);
}

BOOST_AUTO_TEST_CASE(wrong_lengths_and_count_bytes_are_refused) {
  for (int i = 0; i < 40; ++i) {
    const example x = any_example();
    for (int k = 0; k < 20; ++k) {
      const std::size_t length = k == 0   ? 0
                                 : k == 1 ? x.encoded.size() - 1
                                 : k == 2 ? x.encoded.size() + 1
                                          : below(2 * x.encoded.size() + 2);
      if (length == x.encoded.size() || (length == x.decoded.size() && x.chunk.may_be_raw())) continue;
      bytes_of wrong = x.encoded;
      wrong.resize(length);
      refuses_untouched(decode, x.chunk, wrong, length);
      refuses_untouched(decode, x.chunk, wrong, length + x.decoded.size());
    }
    for (const std::size_t length : {x.decoded.size() - 1, x.decoded.size() + 1})
      refuses_untouched(encode, x.chunk, bytes_of(length), length);
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

// fletcher32 before packbits: its checksum follows the values, and the packed chunk.
BOOST_AUTO_TEST_CASE(a_checksum_after_the_values_follows_the_chunk) {
  const bytes_of checksum = {0xDE, 0xAD, 0xBE, 0xEF};
  const auto with = [&](bytes_of b) {
    b.insert(b.end(), checksum.begin(), checksum.end());
    return b;
  };
  for (int i = 0; i < 300; ++i) {
    example x = any_example();
    x.chunk.checksum_before = true;
    x.decoded = with(x.decoded);
    x.encoded = with(x.encoded);
    round_trip(x);
    if (!x.chunk.may_be_raw() || x.chunk.format.first_bit == 0) continue;
    const bool big = x.chunk.format.size > 1 && x.chunk.format.swap_memory;
    unsigned char& low = x.decoded[big ? x.chunk.format.size - 1u : 0u];
    low = static_cast<unsigned char>(low ^ 1);
    stays_unpacked(x.chunk, x.decoded);
    for (const std::size_t length : {x.decoded.size() - 4, x.encoded.size() - 4})
      if (length != x.encoded.size() && length != x.decoded.size()) refuses_untouched(decode, x.chunk, bytes_of(length), length);
  }
}

// Before a filter that leaves out what it cannot make smaller: such a chunk must not get the size of one that was made smaller.
BOOST_AUTO_TEST_CASE(chunks_of_one_size_are_filled_up) {
  for (int i = 0; i < 300; ++i) {
    example x = any_example();
    x.chunk.checksum_before = below(2) != 0;
    if (!x.chunk.may_be_raw()) continue;
    x.chunk.one_size = true;
    bytes_of misfit = x.decoded;
    const auto& format = x.chunk.format;
    unsigned bit = 0;
    do bit = static_cast<unsigned>(below(8 * format.size));
    while (bit >= format.first_bit && bit < unsigned{format.first_bit} + format.bits);
    unsigned char& byte = misfit[format.size > 1 && format.swap_memory ? format.size - 1 - bit / 8 : bit / 8];
    byte = static_cast<unsigned char>(byte ^ 1u << bit % 8);
    if (x.chunk.checksum_before)
      for (bytes_of* b : {&x.decoded, &x.encoded, &misfit}) b->insert(b->end(), {1, 2, 3, 4});
    const auto filled = [&](bytes_of b, bool raw) {
      b.resize(x.chunk.filled_size());
      b.back() = raw;
      return b;
    };
    sentence why;
    for (const bool raw : {false, true}) {
      const bytes_of &values = raw ? misfit : x.decoded, wanted = filled(raw ? misfit : x.encoded, raw);
      for (const std::size_t room : {values.size(), wanted.size() + 5}) {
        buffer b(values, room);
        why = {};
        BOOST_TEST(encode(plain, x.chunk, values.size(), &b.size, &b.at, why) == wanted.size());
        BOOST_TEST(b.first(wanted.size()) == wanted);
        BOOST_TEST((why.text[0] != '\0') == raw);
        BOOST_TEST(decode(plain, x.chunk, wanted.size(), &b.size, &b.at, why) == values.size());
        BOOST_TEST(b.first(values.size()) == values);
      }
      bytes_of wrong = wanted;
      wrong[wrong.size() - 1 - below(2)] = 2;
      refuses_untouched(decode, x.chunk, wrong, wrong.size());
      library poor{};
      poor.call.resize_memory = [](void*, std::size_t) -> void* { return nullptr; };
      buffer b(values, values.size());
      BOOST_TEST(encode(poor, x.chunk, values.size(), &b.size, &b.at, why) == 0u);
      BOOST_TEST(b.first(values.size()) == values);
    }
  }
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
