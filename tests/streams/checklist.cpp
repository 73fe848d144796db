// SPDX-License-Identifier: BSL-1.0
//
// The fifteen things that a Boost.Iostreams filter gets wrong most easily, one test each. The twelfth
// and the thirteenth are in pipelines.cpp.
//
#include "tests/streams/support.hpp"

#include <boost/ref.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <sstream>

using namespace test;
using zarrbits::errc;
using zarrbits::padding;

namespace {

// One value too many bits wide, as the last one: it reaches the filter only when the stream is closed.
std::string last_does_not_fit(std::size_t n = 100) {
  std::string v = values(n);
  v.back() = '\x10';
  return v;
}

// Drives filter() itself with pieces of the given sizes.
template <class Adapter>
std::string driven(Adapter& a, const std::string& in, std::size_t in_piece, std::size_t out_piece) {
  std::string out;
  std::vector<char> room(out_piece);
  const auto call = [&](const char*& i1, const char* i2, bool flush) {
    char* o1 = room.data();
    const bool again = a.filter(i1, i2, o1, room.data() + out_piece, flush);
    out.append(room.data(), o1);
    BOOST_REQUIRE_MESSAGE(i1 == i2 || o1 == room.data() + out_piece,
                          "greedy with pieces of " << in_piece << " and " << out_piece);
    return again;
  };
  for (std::size_t at = 0; at < in.size(); at += in_piece) {
    const std::string piece = in.substr(at, in_piece);  // its own allocation, so that ASan sees a byte too far
    const char* i1 = piece.data();
    do BOOST_REQUIRE(call(i1, piece.data() + piece.size(), false));
    while (i1 != piece.data() + piece.size());
  }
  const char* none = nullptr;
  while (call(none, nullptr, true)) {
  }
  a.close();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(point_1_input_is_used_up_or_output_is_full_at_every_split) {
  for (const padding p : {padding::none, padding::first_byte, padding::last_byte}) {
    const std::string v = values(29), bits = packed(v);
    const std::string count(1, '\4');  // 29 * 12 = 348 bits, 4 short of 44 bytes
    const std::string b = p == padding::first_byte ? count + bits : p == padding::last_byte ? bits + count : bits;
    zi::encoder e(camera(p), 29);
    zi::decoder d(camera(p), 29);
    for (std::size_t i = 1; i <= 19; ++i)
      for (std::size_t o = 1; o <= 19; ++o) {
        BOOST_REQUIRE(driven(e.filter(), v, i, o) == b);
        BOOST_REQUIRE(driven(d.filter(), b, i, o) == v);
      }
  }
  const auto wide = zarrbits::bytes("complex128", {.endian = zarrbits::endian::big});
  const std::string v = values(8 * 5, 16);
  zi::encoder e(wide);
  zi::decoder d(wide);
  const std::string b = driven(e.filter(), v, v.size(), v.size());
  for (std::size_t c = 0; c < v.size(); c += 8)
    for (std::size_t i = 0; i < 8; ++i) BOOST_REQUIRE(b[c + i] == v[c + 7 - i]);
  for (std::size_t i = 1; i <= 40; ++i)
    for (std::size_t o = 1; o <= 40; ++o) {
      BOOST_REQUIRE(driven(e.filter(), v, i, o) == b);
      BOOST_REQUIRE(driven(d.filter(), b, i, o) == v);
    }
}

BOOST_AUTO_TEST_CASE(point_2_an_error_is_sticky) {
  zi::encoder e(camera());
  const std::string bad = last_does_not_fit(1), good = values(1);
  std::array<char, 16> room;
  const auto step = [&](const std::string& in, bool flush) {
    const char* i = in.data();
    char* o = room.data();
    e.filter().filter(i, in.data() + in.size(), o, room.data() + room.size(), flush);
  };
  CHECK_CODEC_ERROR(step(bad, false), errc::value_does_not_fit);
  CHECK_CODEC_ERROR(step(good, false), errc::value_does_not_fit);
  CHECK_CODEC_ERROR(step("", true), errc::value_does_not_fit);
  CHECK_CODEC_ERROR(e.filter().close(), errc::value_does_not_fit);
  step(good, true);  // and gone after close()

  // the trap: Boost ignores the first throw of a filter that has buffered bytes
  std::string out;
  io::filtering_ostream flushed;
  flushed.push(zi::encoder(camera()));
  flushed.push(string_sink(out));
  const std::string v = last_does_not_fit();
  flushed.write(v.data(), static_cast<std::streamsize>(v.size()));
  flushed.flush();
  CHECK_CODEC_ERROR(flushed.reset(), errc::value_does_not_fit);

  io::filtering_ostream unflushed;
  unflushed.push(zi::encoder(camera()));
  unflushed.push(string_sink(out));
  unflushed.write(v.data(), static_cast<std::streamsize>(v.size()));
  BOOST_CHECK(unflushed.good());  // nothing has reached the filter yet
  CHECK_CODEC_ERROR(unflushed.reset(), errc::value_does_not_fit);

  io::filtering_ostream target;
  target.push(zi::encoder(camera()));
  target.push(string_sink(out));
  CHECK_CODEC_ERROR(io::copy(io::array_source(v.data(), v.size()), target), errc::value_does_not_fit);
  CHECK_CODEC_ERROR(copied_out(zi::encoder(camera()), v), errc::value_does_not_fit);
  CHECK_CODEC_ERROR(copied_in(zi::encoder(camera()), v), errc::value_does_not_fit);
}

BOOST_AUTO_TEST_CASE(point_3_done_is_sticky) {
  const std::string v = values(3), b = packed(v) + '\4';
  zi::encoder e(camera(padding::last_byte));
  std::string out(100, '?');
  const char* i = v.data();
  char* o = out.data();
  while (e.filter().filter(i, v.data() + v.size(), o, out.data() + out.size(), true)) {
  }
  for (int again = 0; again < 3; ++again) {
    BOOST_CHECK(!e.filter().filter(i, i, o, out.data() + out.size(), true));
    BOOST_CHECK(o == out.data() + b.size());
  }
  BOOST_CHECK(out.substr(0, b.size()) == b);

  io::filtering_istream in;
  in.push(zi::encoder(camera(padding::last_byte)));
  in.push(io::array_source(v.data(), v.size()));
  std::string all(b.size(), '\0');
  in.read(all.data(), static_cast<std::streamsize>(all.size()));
  BOOST_CHECK(all == b);
  for (int again = 0; again < 3; ++again) {
    in.clear();
    BOOST_CHECK_EQUAL(in.get(), std::char_traits<char>::eof());
    BOOST_CHECK(!in.bad());
  }
}

BOOST_AUTO_TEST_CASE(point_4_there_is_no_natural_end_and_trailing_bytes_are_an_error) {
  std::mt19937 random(4);
  const std::string v = values(10), b = packed(v);
  for (const std::string& more : {std::string("\0", 1), std::string("TRAILING"), std::string(100000, 'x')}) {
    CHECK_CODEC_ERROR(read(zi::decoder(camera(), 10), b + more, random), errc::trailing_data);
    CHECK_CODEC_ERROR(written(zi::decoder(camera(), 10), b + more, random), errc::trailing_data);
    CHECK_CODEC_ERROR(copied_in(zi::decoder(camera(), 10), b + more), errc::trailing_data);
    CHECK_CODEC_ERROR(copied_out(zi::decoder(camera(), 10), b + more), errc::trailing_data);
  }
  CHECK_CODEC_ERROR(written(zi::encoder(camera(), 9), v, random), errc::element_count_mismatch);
  CHECK_CODEC_ERROR(written(zi::encoder(camera(), 11), v, random), errc::element_count_mismatch);
}

BOOST_AUTO_TEST_CASE(point_5_a_truncated_element_throws_on_the_read_at_the_end_and_on_reset) {
  std::mt19937 random(5);
  const std::string v = values(10), b = packed(v);
  const std::string cut = b.substr(0, b.size() - 1);
  for (std::size_t buffer : {1u, 7u, 8192u}) {
    const zi::decoder d(camera(), 10, static_cast<std::streamsize>(buffer));
    CHECK_CODEC_ERROR(read(d, cut, random), errc::truncated);
    CHECK_CODEC_ERROR(written(d, cut, random), errc::truncated);

    io::filtering_istream quiet;  // no exceptions: the stream goes bad, and reset() says why
    quiet.push(d);
    quiet.push(io::array_source(cut.data(), cut.size()));
    std::string all(v.size(), '\0');
    quiet.read(all.data(), static_cast<std::streamsize>(all.size()));
    BOOST_CHECK(quiet.bad());
    CHECK_CODEC_ERROR(quiet.reset(), errc::truncated);
    CHECK_CODEC_ERROR(written(zi::encoder(camera(), {}, static_cast<std::streamsize>(buffer)), v + "x", random), errc::truncated);
    CHECK_CODEC_ERROR(copied_in(zi::encoder(camera(), {}, static_cast<std::streamsize>(buffer)), v + "x"), errc::truncated);
  }
}

BOOST_AUTO_TEST_CASE(point_6_an_empty_stream_is_an_empty_chunk) {
  std::mt19937 random(6);
  const std::string zero(1, '\0');
  BOOST_CHECK(written(zi::encoder(camera()), "", random) == "");
  BOOST_CHECK(written(zi::encoder(camera(padding::last_byte)), "", random) == zero);
  BOOST_CHECK(written(zi::encoder(camera(padding::first_byte), 0), "", random) == zero);
  BOOST_CHECK(read(zi::encoder(camera(padding::last_byte)), "", random) == zero);
  BOOST_CHECK(read(zi::decoder(camera()), "", random) == "");
  BOOST_CHECK(read(zi::decoder(camera(), 0), "", random) == "");
  BOOST_CHECK(read(zi::decoder(camera(padding::last_byte)), zero, random) == "");
  BOOST_CHECK(written(zi::decoder(camera(padding::first_byte)), zero, random) == "");
  CHECK_CODEC_ERROR(read(zi::decoder(camera(padding::last_byte)), "", random), errc::truncated);
  CHECK_CODEC_ERROR(written(zi::decoder(camera(padding::first_byte)), "", random), errc::truncated);
  CHECK_CODEC_ERROR(read(zi::decoder(camera(), 1), "", random), errc::truncated);
}

BOOST_AUTO_TEST_CASE(point_7_a_filter_is_used_again_after_pop) {
  const std::string v = values(101), b = packed(v);
  std::string first, second;
  io::filtering_ostream out;
  out.push(zi::encoder(camera()));
  out.push(string_sink(first));
  out.write(v.data(), static_cast<std::streamsize>(v.size()));
  out.pop();
  out.push(string_sink(second));
  out.write(v.data(), static_cast<std::streamsize>(v.size()));
  out.reset();
  BOOST_CHECK(first == b);
  BOOST_CHECK(second == b);

  // after an error too
  const zi::encoder e(camera());
  CHECK_CODEC_ERROR(copied_out(e, last_does_not_fit()), errc::value_does_not_fit);
  BOOST_CHECK(copied_out(e, v) == b);
  const zi::decoder d(camera(), 101);
  CHECK_CODEC_ERROR(copied_in(d, b + "x"), errc::trailing_data);
  BOOST_CHECK(copied_in(d, b) == v);
}

BOOST_AUTO_TEST_CASE(point_8_a_chunk_is_ended_once) {
  const std::string v = values(3), b = packed(v) + '\4';
  std::string out;
  counts c;
  {
    io::filtering_ostream stream;
    stream.push(zi::encoder(camera(padding::last_byte)));
    stream.push(counting_sink(out, c));
    stream.write(v.data(), static_cast<std::streamsize>(v.size()));
    stream.reset();
    stream.reset();
  }
  BOOST_CHECK(out == b);
  BOOST_CHECK_EQUAL(c.closes, 1u);
}

BOOST_AUTO_TEST_CASE(point_9_destructors_do_not_throw) {
  std::string out;
  const std::string v = last_does_not_fit(), b = packed(values(10)) + "x";
  for (const bool touched : {false, true}) {
    io::filtering_ostream stream;
    stream.push(zi::encoder(camera()));
    stream.push(string_sink(out));
    stream.write(v.data(), static_cast<std::streamsize>(v.size()));
    if (touched) stream.flush();
  }
  {
    io::filtering_istream stream;
    stream.push(zi::decoder(camera(), 10));
    stream.push(io::array_source(b.data(), b.size()));
    stream.ignore(1000);
    BOOST_CHECK(stream.bad());
  }
  BOOST_CHECK(out.empty() || out.size() == 150);
}

BOOST_AUTO_TEST_CASE(point_10_every_error_is_ours) {
  std::mt19937 random(10);
  static_assert(std::is_base_of_v<std::ios_base::failure, zi::codec_error>);
  static_assert(std::is_nothrow_copy_constructible_v<zi::codec_error>);
  const auto boolean = zarrbits::packbits("bool");
  const auto strict = zarrbits::packbits("bool", {.strict_padding = true});
  CHECK_CODEC_ERROR(zi::encoder(camera(padding::first_byte)), errc::element_count_required);
  CHECK_CODEC_ERROR(zi::encoder(camera(), {}, 0), errc::invalid_configuration);
  CHECK_CODEC_ERROR(zi::encoder(camera(), {}, -1), errc::invalid_configuration);
  CHECK_CODEC_ERROR(zi::decoder(camera(), {}, 0), errc::invalid_configuration);
  CHECK_CODEC_ERROR(zi::decoder(camera(), {}, std::numeric_limits<std::streamsize>::max()), errc::invalid_configuration);
  CHECK_CODEC_ERROR(zi::seekable_decoder(camera(), {}, 0), errc::invalid_configuration);
  CHECK_CODEC_ERROR(zi::seekable_decoder(camera(), ~std::uint64_t{0}), errc::size_overflow);
  CHECK_CODEC_ERROR(zi::seekable_decoder(camera(), std::uint64_t{1} << 62), errc::size_overflow);
  CHECK_CODEC_ERROR(written(zi::encoder(boolean), "\2", random), errc::invalid_bool);
  CHECK_CODEC_ERROR(read(zi::decoder(zarrbits::bytes("bool")), "\2", random), errc::invalid_bool);
  CHECK_CODEC_ERROR(read(zi::decoder(strict, 1), "\3", random), errc::nonzero_padding);
  CHECK_CODEC_ERROR(read(zi::decoder(camera(padding::first_byte), 1), std::string("\7ab", 3), random),
                    errc::invalid_padding_count);
  CHECK_CODEC_ERROR(read(zi::decoder(camera(padding::last_byte)), std::string("ab\7", 3), random), errc::invalid_padding_count);

  // caught as Boost and the standard library expect it, with code, element and value
  const std::string v = values(6) + std::string("\0\x10", 2);
  try {
    copied_out(zi::encoder(camera()), v);
    BOOST_ERROR("a value that does not fit is refused");
  } catch (const std::ios_base::failure& e) {
    BOOST_CHECK(e.code() == errc::value_does_not_fit);
    BOOST_CHECK(e.code().category() == zarrbits::error_category());
    const auto* ours = dynamic_cast<const zi::codec_error*>(&e);
    BOOST_REQUIRE(ours != nullptr);
    BOOST_CHECK_EQUAL(ours->failure().element, 6u);
    BOOST_CHECK_EQUAL(ours->failure().value, 0x1000u);
    BOOST_CHECK_EQUAL(ours->what(), camera().explain(ours->failure()));
    BOOST_TEST_MESSAGE("what() is: " << e.what());
  }
}

BOOST_AUTO_TEST_CASE(point_11_copies_share_their_state) {
  const std::string v = values(101), b = packed(v);
  const zi::encoder e(camera());
  std::mt19937 random(11);
  BOOST_CHECK_EQUAL(e.total_in(), 0u);
  written(e, v, random);
  BOOST_CHECK_EQUAL(e.total_in(), v.size());
  BOOST_CHECK_EQUAL(e.total_out(), b.size());
  BOOST_CHECK_EQUAL(e.elements(), 101u);
  written(e, v.substr(0, 2), random);  // the next chunk counts from 0
  BOOST_CHECK_EQUAL(e.total_in(), 2u);
  BOOST_CHECK_EQUAL(e.total_out(), 2u);
  BOOST_CHECK_EQUAL(e.elements(), 1u);

  const zi::decoder d(camera(), 101);
  read(d, b, random);
  BOOST_CHECK_EQUAL(d.total_in(), b.size());
  BOOST_CHECK_EQUAL(d.total_out(), v.size());
  BOOST_CHECK_EQUAL(d.elements(), 101u);

  std::string bytes;
  io::filtering_ostream out;
  out.push(zi::encoder(camera()));
  out.push(string_sink(bytes));
  out.write(v.data(), static_cast<std::streamsize>(v.size()));
  out.strict_sync();
  BOOST_REQUIRE(out.component<zi::encoder>(0) != nullptr);
  BOOST_CHECK_EQUAL(out.component<zi::encoder>(0)->total_in(), v.size());
}

BOOST_AUTO_TEST_CASE(point_14_bytes_from_0x80_and_zeros_pass) {
  const std::string v("\xff\xff\0\0\x80\xff\xff\0", 8);
  const auto c = zarrbits::packbits("uint16");
  std::string out;
  io::filtering_ostream stream;
  stream.push(zi::encoder(c));
  stream.push(string_sink(out));
  for (const char x : v) stream.put(x);
  stream.reset();
  BOOST_CHECK(out == v);
  io::filtering_istream in;
  in.push(zi::decoder(c));
  in.push(io::array_source(out.data(), out.size()));
  for (const char x : v) BOOST_CHECK_EQUAL(in.get(), static_cast<unsigned char>(x));
  BOOST_CHECK_EQUAL(in.get(), std::char_traits<char>::eof());
  BOOST_CHECK(in.eof() && !in.bad());
}

BOOST_AUTO_TEST_CASE(point_15_pointers_need_no_alignment) {
  const std::string v = values(4000), b = packed(v);
  zi::encoder e(camera());
  zi::decoder d(camera());
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t o = 0; o < 9; ++o) {
      const auto run = [&](auto& adapter, const std::string& in) {
        std::vector<char> source(in.size() + i), room(in.size() * 2 + o);
        std::memcpy(source.data() + i, in.data(), in.size());
        const char* i1 = source.data() + i;
        char* o1 = room.data() + o;
        while (adapter.filter(i1, source.data() + source.size(), o1, room.data() + room.size(), true)) {
        }
        adapter.close();
        return std::string(room.data() + o, o1);
      };
      BOOST_REQUIRE(run(e.filter(), v) == b);
      BOOST_REQUIRE(run(d.filter(), b) == v);
    }
}
