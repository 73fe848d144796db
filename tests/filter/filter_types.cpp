// SPDX-License-Identifier: BSL-1.0
//
// The table of datatypes in docs/reference/filters.md, row by row, and refused datatypes, through a real libhdf5.
#include "filter/plugins.hpp"
#include "h5_support.hpp"

#include <zarrbits/hdf5.h>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace h5_support;

namespace {

struct fixture {
  hid_t file = -1;
  fixture() {
    BOOST_REQUIRE(H5Zregister(&zarrbits::filter::packbits_class) >= 0);
    BOOST_REQUIRE(H5Zregister(&zarrbits::filter::bytes_class) >= 0);
    file = memory_file();
  }
  ~fixture() { H5Fclose(file); }

  using values = std::vector<unsigned>;

  // Writes `decoded`, and expects `encoded` in the file and `decoded` back.
  void packs(const char* what, hid_t type, const values& cd, const bytes_of& decoded, const bytes_of& encoded,
             const bytes_of* back = nullptr, int filter = ZARRBITS_HDF5_PACKBITS_ID) {
    BOOST_TEST_CONTEXT(what) {
      const hsize_t n = decoded.size() / H5Tget_size(type);
      const dataset d(file, type, n, filter, H5Z_FLAG_OPTIONAL, cd);
      BOOST_REQUIRE_MESSAGE(d.id >= 0, d.error);
      BOOST_TEST(d.write(decoded));
      std::uint32_t mask = 99;
      BOOST_TEST(d.stored(mask) == encoded);
      BOOST_TEST(mask == 0u);
      // read from the file, not from HDF5's cache of chunks
      const dataset other(file, type, n, filter, H5Z_FLAG_OPTIONAL, d.parameters(filter));
      BOOST_REQUIRE_MESSAGE(other.id >= 0, other.error);
      BOOST_TEST(other.parameters(filter) == d.parameters(filter));
      BOOST_REQUIRE(other.store(encoded));
      bytes_of result(decoded.size(), 0xEE);
      BOOST_TEST(other.read(result));
      BOOST_TEST(result == (back ? *back : decoded));
    }
  }

  // Expects that `decoded` is stored as it is.
  void stores_raw(const char* what, hid_t type, const values& cd, const bytes_of& decoded) {
    BOOST_TEST_CONTEXT(what) {
      const dataset d(file, type, decoded.size() / H5Tget_size(type), ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, cd);
      BOOST_REQUIRE_MESSAGE(d.id >= 0, d.error);
      BOOST_TEST(d.write(decoded));
      std::uint32_t mask = 0;
      BOOST_TEST(d.stored(mask) == decoded);
      BOOST_TEST(mask == 0u);
    }
  }

  void refuses(const char* sentence, hid_t type, const values& cd, int filter = ZARRBITS_HDF5_PACKBITS_ID) {
    BOOST_TEST_CONTEXT(sentence) {
      for (const unsigned flags : {unsigned{H5Z_FLAG_OPTIONAL}, unsigned{H5Z_FLAG_MANDATORY}}) {
        const dataset d(file, type, 10, filter, flags, cd);
        BOOST_TEST(d.id < 0);
        BOOST_TEST(d.error.rfind("zarrbits: ", 0) == 0u);
        BOOST_TEST(d.error.find(sentence) != std::string::npos, d.error);
      }
    }
  }
};

hid_t enum_of(hid_t base, const std::vector<int>& members) {
  const hid_t t = H5Tenum_create(base);
  for (std::size_t i = 0; i < members.size(); ++i) {
    unsigned char value[8] = {};
    const auto v = static_cast<std::uint64_t>(static_cast<std::int64_t>(members[i]));
    const std::size_t size = H5Tget_size(base);
    const bool big = H5Tget_order(base) == H5T_ORDER_BE;
    for (std::size_t b = 0; b < size; ++b) value[b] = static_cast<unsigned char>(v >> 8 * (big ? size - 1 - b : b));
    std::string name = "M";
    name += std::to_string(i);
    H5Tenum_insert(t, name.c_str(), value);
  }
  return t;
}

hid_t reduced(hid_t base, std::size_t precision, std::size_t offset = 0, H5T_pad_t below = H5T_PAD_ZERO,
              H5T_pad_t above = H5T_PAD_ZERO) {
  const hid_t t = H5Tcopy(base);
  H5Tset_precision(t, precision);
  H5Tset_offset(t, offset);
  H5Tset_pad(t, below, above);
  return t;
}

hid_t pair_of(hid_t part, const char* first, const char* second, std::size_t gap = 0) {
  const std::size_t size = H5Tget_size(part);
  const hid_t t = H5Tcreate(H5T_COMPOUND, 2 * size + gap);
  H5Tinsert(t, first, 0, part);
  H5Tinsert(t, second, size + gap, part);
  return t;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(booleans_are_enumerations_of_0_and_1, fixture) {
  const bytes_of v = {1, 0, 1, 1, 0, 0, 0, 0, 1, 1};
  packs("h5py", enum_of(H5T_STD_I8LE, {0, 1}), {}, v, {0x0D, 0x03});
  packs("any names, any order", enum_of(H5T_STD_U8LE, {1, 0}), {1}, v, {0x0D, 0x03});
  packs("four bytes", enum_of(H5T_STD_I32LE, {0, 1}), {}, {1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {0x05});
  packs("most significant bit first", enum_of(H5T_STD_I8LE, {0, 1}), {1, ZARRBITS_HDF5_MSB_FIRST | 1}, v, {6, 0xB0, 0xC0});
  stores_raw("neither 0 nor 1", enum_of(H5T_STD_I8LE, {0, 1}), {}, {1, 2, 0});
  stores_raw("never truncated", enum_of(H5T_STD_I8LE, {0, 1}), {0, ZARRBITS_HDF5_RANGE_TRUNCATE}, {1, 2, 0});
}

BOOST_FIXTURE_TEST_CASE(enumerations_take_the_fewest_bits_that_hold_their_members, fixture) {
  packs("0..5", enum_of(H5T_STD_U8LE, {0, 1, 2, 3, 4, 5}), {}, {5, 4, 3}, {0xE5, 0x00});
  packs("base signed, members not", enum_of(H5T_STD_I8LE, {0, 5}), {}, {5, 0, 5}, {0x45, 0x01});
  packs("negative members", enum_of(H5T_STD_I16LE, {-2, 1}), {}, {0xFE, 0xFF, 1, 0}, {0x06});
  packs("-4 takes 3 bits", enum_of(H5T_STD_I8LE, {-4, 3}), {}, {0xFC, 3}, {0x1C});
  packs("big endian", enum_of(H5T_STD_U16BE, {0, 0x0300}), {}, {3, 0, 0, 0}, {0x00, 0x03, 0x00});
  packs("0 alone", enum_of(H5T_STD_U8LE, {0}), {}, {0, 0}, {0});
  packs("bits given", enum_of(H5T_STD_U8LE, {0, 1, 2}), {4}, {9, 2}, {0x29});
  stores_raw("a value beyond the members' bits", enum_of(H5T_STD_U8LE, {0, 1, 2, 3}), {}, {1, 4});
}

BOOST_FIXTURE_TEST_CASE(bitfields_and_integers_of_reduced_precision_say_it_themselves, fixture) {
  packs("bitfield of 3 bits", reduced(H5T_STD_B8LE, 3), {}, {5, 4, 3}, {0xE5, 0x00});
  packs("bitfield of 8 with bits given", H5T_STD_B8LE, {4}, {9, 2}, {0x29});
  packs("u4", reduced(H5T_STD_U8LE, 4), {}, {9, 2}, {0x29});
  const bytes_of zeros_above = {0xFF, 0x0F, 0x00, 0x08}, packed = {0xFF, 0x0F, 0x80};
  packs("i12 as HDF5 holds -1", reduced(H5T_STD_I16LE, 12), {}, zeros_above, packed);
  packs("i12 as Zarr holds -1", reduced(H5T_STD_I16LE, 12), {12}, {0xFF, 0xFF, 0x00, 0xF8}, packed, &zeros_above);
  packs("i12 big endian", reduced(H5T_STD_I16BE, 12), {}, {0x0F, 0xFF, 0x08, 0x00}, packed);
  packs("u12 at bit 2", reduced(H5T_STD_U16LE, 12, 2), {}, {0xFC, 0x3F, 0x00, 0x20}, packed);
  packs("its own values repeated", reduced(H5T_STD_U16LE, 12, 2), {12, 0, 2, 0}, {0xFC, 0x3F, 0x00, 0x20}, packed);
  packs("enumeration over 4 bits", enum_of(reduced(H5T_STD_U8LE, 4), {0, 9}), {}, {9, 2}, {0x29});
  stores_raw("set bits above", reduced(H5T_STD_U16LE, 12), {}, {0xFF, 0x1F, 1, 0, 2, 0, 3, 0});
  stores_raw("set bits below", reduced(H5T_STD_U16LE, 12, 2), {}, {0xFD, 0x3F, 4, 0, 8, 0, 12, 0});
  stores_raw("reported and stored", H5T_STD_U16LE, {12, ZARRBITS_HDF5_RANGE_REPORT}, {0, 0x10, 1, 0, 2, 0, 3, 0});
}

BOOST_FIXTURE_TEST_CASE(integers_floats_complex_numbers_and_arrays_take_bits, fixture) {
  packs("12 of 16", H5T_STD_U16LE, {12}, {0xBC, 0x0A, 0x23, 0x01}, {0xBC, 0x3A, 0x12});
  packs("12 of 16 big endian", H5T_STD_U16BE, {12}, {0x0A, 0xBC, 0x01, 0x23}, {0xBC, 0x3A, 0x12});
  packs("signed", H5T_STD_I16LE, {12}, {0xFF, 0xFF, 0x00, 0xF8}, {0xFF, 0x0F, 0x80});
  packs("from bit 4", H5T_STD_U16LE, {8, 0, 4}, {0xC0, 0x0A, 0x30, 0x02}, {0xAC, 0x23});
  packs("all bits", H5T_STD_U16LE, {16}, {1, 2, 3, 4}, {1, 2, 3, 4});
  packs("all bits and a count byte", H5T_STD_U16LE, {16, 1}, {1, 2, 3, 4}, {0, 1, 2, 3, 4});
  packs("last byte", H5T_STD_U16LE, {12, 2}, {0xBC, 0x0A}, {0xBC, 0x0A, 4});
  const bytes_of cut = {0xBC, 0x0A};
  packs("truncated", H5T_STD_U16LE, {12, 4}, {0xBC, 0x7A}, {0xBC, 0x0A}, &cut);
  packs("upper half of a float", H5T_IEEE_F32LE, {16, 0, 16}, {0, 0, 0x80, 0x3F}, {0x80, 0x3F});
  packs("complex float", pair_of(H5T_IEEE_F32BE, "r", "i"), {16, 0, 16}, {0x3F, 0x80, 0, 0, 0x40, 0, 0, 0},
        {0x80, 0x3F, 0x00, 0x40});
  packs("complex of 4-bit integers", pair_of(reduced(H5T_STD_I8LE, 4), "real", "imag"), {}, {0x0F, 0x07}, {0x7F});
  const hsize_t three = 3, two = 2;
  packs("array", H5Tarray_create2(H5T_STD_U16LE, 1, &two), {12}, {0xBC, 0x0A, 0x23, 0x01}, {0xBC, 0x3A, 0x12});
  packs("array of arrays of booleans", H5Tarray_create2(H5Tarray_create2(enum_of(H5T_STD_I8LE, {0, 1}), 1, &three), 1, &two), {},
        {1, 0, 1, 1, 0, 0}, {0x0D});
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_packed_is_refused_when_the_dataset_is_created, fixture) {
  const hid_t text = H5Tcopy(H5T_C_S1), three = H5Tcopy(H5T_STD_I32LE), vax = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_size(text, 5);
  H5Tset_precision(three, 24);
  H5Tset_size(three, 3);
  H5Tset_order(vax, H5T_ORDER_VAX);
  refuses("class string", text, {});
  refuses("class reference", H5T_STD_REF_OBJ, {});
  refuses("class time", H5T_UNIX_D32LE, {});
  refuses("opaque", H5Tcreate(H5T_OPAQUE, 4), {8});
  refuses("components of 3 bytes", three, {12});
  refuses("components of 16 bytes", H5T_NATIVE_LDOUBLE, {12});
  refuses("byte order", vax, {12});
  refuses("compound", pair_of(H5T_STD_U16LE, "x", "y"), {12});
  refuses("compound", pair_of(H5T_STD_U16LE, "i", "r"), {12});
  refuses("compound", pair_of(H5T_STD_U16LE, "r", "i", 2), {12});
  refuses("compound", pair_of(text, "r", "i"), {12});
  refuses("H5T_PAD_ZERO", reduced(H5T_STD_U16LE, 12, 0, H5T_PAD_ZERO, H5T_PAD_ONE), {});
  refuses("H5T_PAD_ZERO", reduced(H5T_STD_U16LE, 12, 2, H5T_PAD_BACKGROUND, H5T_PAD_ZERO), {});
}

BOOST_FIXTURE_TEST_CASE(wrong_parameters_are_refused_when_the_dataset_is_created, fixture) {
  const hid_t u2 = H5T_STD_U16LE, boolean = enum_of(H5T_STD_I8LE, {0, 1}), i12 = reduced(H5T_STD_I16LE, 12, 2);
  refuses("nothing to pack", u2, {});
  refuses("nothing to pack", H5T_IEEE_F32LE, {0, 1});
  refuses("nothing to pack", H5T_STD_B8LE, {});
  refuses("17 bits", u2, {17});
  refuses("12 bits from bit 5", u2, {12, 0, 5});
  refuses("4294967295 bits", u2, {~0u});
  refuses("from bit 4294967295", u2, {1, 0, ~0u});
  refuses("bits 0 to 4", u2, {12, 32});
  refuses("bits 0 to 4", u2, {12, 1u << 31});
  refuses("padding", u2, {12, 3});
  refuses("fourth value", u2, {12, 0, 0, 1});
  refuses("0 to 4 values", u2, {12, 0, 0, 0, 0});
  refuses("most significant", u2, {12, 16});
  refuses("most significant", H5T_STD_U8LE, {1, 16});
  refuses("a boolean has 1", boolean, {2});
  refuses("a boolean has 1", boolean, {1, 0, 1});
  refuses("most significant", boolean, {2, 16});
  refuses("has 12 from bit 2", i12, {11});
  refuses("has 12 from bit 2", i12, {12, 0, 1});
  refuses("must be 0", u2, {2}, ZARRBITS_HDF5_BYTES_ID);
  refuses("one value", u2, {0, 0}, ZARRBITS_HDF5_BYTES_ID);
}

BOOST_FIXTURE_TEST_CASE(bytes_takes_every_number_and_opaque, fixture) {
  const int id = ZARRBITS_HDF5_BYTES_ID;
  const bytes_of b = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const hid_t three = H5Tcopy(H5T_STD_I32LE);
  H5Tset_precision(three, 24);
  H5Tset_size(three, 3);
  packs("without a value: little", H5T_STD_U16LE, {}, b, b, nullptr, id);
  packs("big as big", H5T_STD_I32BE, {1}, b, b, nullptr, id);
  packs("big as little", H5T_STD_I32BE, {0}, b, {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9}, nullptr, id);
  packs("float as big", H5T_IEEE_F32LE, {1}, b, {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9}, nullptr, id);
  packs("enumeration", enum_of(H5T_STD_U16LE, {0, 7}), {1}, b, {2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11}, nullptr, id);
  packs("bitfield", H5T_STD_B16LE, {1}, b, {2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11}, nullptr, id);
  packs("complex: part by part", pair_of(H5T_STD_I16LE, "r", "i"), {1}, b, {2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11}, nullptr, id);
  packs("three bytes", three, {1}, b, {3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}, nullptr, id);
  packs("one byte", H5T_STD_U8LE, {1}, b, b, nullptr, id);
  packs("opaque", H5Tcreate(H5T_OPAQUE, 4), {1}, b, b, nullptr, id);
  bytes_of sixteen(32), reversed(32);
  for (unsigned i = 0; i < 32; ++i)
    sixteen[i] = static_cast<unsigned char>(i), reversed[i] = static_cast<unsigned char>(i / 16 * 16 + 15 - i % 16);
  packs("long double", H5T_NATIVE_LDOUBLE, {1}, sixteen, reversed, nullptr, id);
  const hid_t text = H5Tcopy(H5T_C_S1);
  refuses("class string", text, {}, id);
  refuses("compound", pair_of(H5T_STD_U16LE, "x", "y"), {}, id);
}

BOOST_FIXTURE_TEST_CASE(filters_after_ours_are_welcome_and_before_it_only_fletcher32, fixture) {
  const hsize_t n = 8;
  const hid_t space = H5Screate_simple(1, &n, nullptr);
  std::string why;
  const auto create = [&](const std::vector<int>& pipeline) {
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 1, &n);
    const unsigned cd[] = {12};
    for (const int f : pipeline) {
      if (f == H5Z_FILTER_SHUFFLE) H5Pset_shuffle(dcpl);
      if (f == H5Z_FILTER_DEFLATE) H5Pset_deflate(dcpl, 1);
      if (f == H5Z_FILTER_FLETCHER32) H5Pset_fletcher32(dcpl);
      if (f == ZARRBITS_HDF5_PACKBITS_ID) H5Pset_filter(dcpl, f, H5Z_FLAG_OPTIONAL, 1, cd);
      if (f == ZARRBITS_HDF5_BYTES_ID) H5Pset_zarrbits_bytes(dcpl, 1);
    }
    const hid_t d = H5Dcreate_anon(file, H5T_STD_U16LE, space, dcpl, H5P_DEFAULT);
    why = our_sentence();
    H5Pclose(dcpl);
    return d;
  };
  for (const auto& good : {std::vector<int>{ZARRBITS_HDF5_PACKBITS_ID, H5Z_FILTER_FLETCHER32},
                           {ZARRBITS_HDF5_PACKBITS_ID, H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32},
                           {H5Z_FILTER_FLETCHER32, ZARRBITS_HDF5_PACKBITS_ID},
                           {H5Z_FILTER_FLETCHER32, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FILTER_DEFLATE},
                           {H5Z_FILTER_FLETCHER32, ZARRBITS_HDF5_BYTES_ID},
                           {ZARRBITS_HDF5_BYTES_ID, H5Z_FILTER_DEFLATE}}) {
    const hid_t d = create(good);
    BOOST_REQUIRE(d >= 0);
    const std::uint16_t written[] = {1, 2, 3, 4, 5, 6, 7, 0xFFF};
    std::uint16_t back[8] = {};
    BOOST_TEST(H5Dwrite(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, written) >= 0);
    BOOST_TEST(H5Dflush(d) >= 0);
    BOOST_TEST(H5Dread(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
    BOOST_TEST(std::equal(written, written + 8, back));
    H5Dclose(d);
  }
  for (const auto& bad : {std::vector<int>{H5Z_FILTER_SHUFFLE, ZARRBITS_HDF5_PACKBITS_ID},
                          {H5Z_FILTER_DEFLATE, ZARRBITS_HDF5_PACKBITS_ID},
                          {H5Z_FILTER_FLETCHER32, H5Z_FILTER_FLETCHER32, ZARRBITS_HDF5_PACKBITS_ID},
                          {ZARRBITS_HDF5_PACKBITS_ID, ZARRBITS_HDF5_BYTES_ID},
                          {ZARRBITS_HDF5_PACKBITS_ID, ZARRBITS_HDF5_PACKBITS_ID}}) {
    BOOST_TEST(create(bad) < 0);
    BOOST_TEST((why.find("comes before") != std::string::npos || why.find("twice") != std::string::npos), why);
  }
  H5Sclose(space);
}

BOOST_FIXTURE_TEST_CASE(groups_are_refused, fixture) {
  const hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE);
  BOOST_REQUIRE(H5Pset_filter(gcpl, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, 0, nullptr) >= 0);
  H5Pset_link_phase_change(gcpl, 0, 0);
  const hid_t g = H5Gcreate_anon(file, gcpl, H5P_DEFAULT);
  if (g >= 0) {  // the heap, and with it the filter, comes with the first link
    BOOST_TEST(H5Lcreate_soft("/x", g, "x", H5P_DEFAULT, H5P_DEFAULT) < 0);
  }
  BOOST_TEST(our_sentence().find("not the heaps of groups") != std::string::npos, our_sentence());
  if (g >= 0) H5Gclose(g);
  H5Pclose(gcpl);
}
