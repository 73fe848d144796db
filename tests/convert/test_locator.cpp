// SPDX-License-Identifier: BSL-1.0
//
// What chunk_locator finds, beside what H5Dread_chunk reads: every index, with filters, masks and a user block.
//
#include "array/chunk_grid.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/chunk_locator.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/source_file.hpp"
#include "tests/convert/support.hpp"
#include "text/format.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>

using namespace support;
using zarrbits::hdf5::chunk_locator;

namespace {

std::shared_ptr<zarrbits::hdf5::external_file_policy> gate_of(const std::string& path) {
  return std::make_shared<zarrbits::hdf5::external_file_policy>(path, false, std::vector<std::string>{});
}

handle opened(const std::string& path, bool with_driver = true) {
  const handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
  if (with_driver) chunk_locator::set_driver(access, gate_of(path));
  return handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), "open");
}

// Number of chunks that were found where H5Dread_chunk reads them; checks each.
std::size_t found_chunks(const std::string& path, const std::string& name) {
  const std::string bytes = read_file(path);
  const handle file = opened(path), plain = opened(path, false);
  const chunk_locator locator(file);
  const handle d(H5Dopen2(file, name.c_str(), H5P_DEFAULT), "open"), other(H5Dopen2(plain, name.c_str(), H5P_DEFAULT), "open");
  const handle space(H5Dget_space(d), "space"), dcpl(H5Dget_create_plist(d), "properties");
  zarrbits::array::chunk_grid grid;
  grid.shape = zarrbits::hdf5::extent(space);
  grid.chunk = zarrbits::hdf5::chunk_extent(dcpl);
  std::size_t found = 0;
  for_each_stored_chunk(d, grid, [&](const zarrbits::array::extents& index, std::uint64_t size) {
    const zarrbits::array::extents start = grid.start(index);
    const dims first = zarrbits::hdf5::to_hsize(start);
    std::string stored(size, '\0');
    unsigned mask = 0, found_mask = 77;
    check(H5Dread_chunk(other, H5P_DEFAULT, first.data(), &mask, stored.data()), "read a chunk");
    const auto place = locator.find(d, start, found_mask);
    BOOST_REQUIRE(place.has_value());
    BOOST_CHECK_EQUAL(place->size, size);
    BOOST_CHECK(bytes.substr(place->offset, size) == stored);
    BOOST_CHECK_EQUAL(found_mask, mask);
    // and then libhdf5 reads as ever
    std::string again(size, '\0');
    check(H5Dread_chunk(d, H5P_DEFAULT, first.data(), &mask, again.data()), "read a chunk");
    BOOST_CHECK(again == stored);
    ++found;
  });
  return found;
}

std::vector<std::int32_t> counted(std::size_t n) {
  std::vector<std::int32_t> v(n);
  std::iota(v.begin(), v.end(), 1);
  return v;
}

}  // namespace

BOOST_AUTO_TEST_CASE(chunks_are_found_in_every_index) {
  for (const bool latest : {false, true}) {
    for (const hsize_t user_block : {hsize_t{0}, hsize_t{512}}) {
      const handle creation(H5Pcreate(H5P_FILE_CREATE), "make properties"), access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
      H5Pset_userblock(creation, user_block);
      if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
      conversion c(creation, access);
      const auto values = counted(30 * 40);
      const handle early = chunked({7, 9});
      H5Pset_alloc_time(early, H5D_ALLOC_TIME_EARLY);  // latest: no index at all
      c.dataset("implicit", H5T_NATIVE_INT32, {30, 40}, values, early);
      c.dataset("fixed", H5T_NATIVE_INT32, {30, 40}, values, chunked({7, 9}));
      c.dataset("extensible", H5T_NATIVE_INT32, {30, 40}, values, chunked({7, 9}), {H5S_UNLIMITED, 40});
      c.dataset("extensible_second", H5T_NATIVE_INT32, {30, 40}, values, chunked({7, 9}), {30, H5S_UNLIMITED});
      c.dataset("tree", H5T_NATIVE_INT32, {30, 40}, values, chunked({7, 9}), {H5S_UNLIMITED, H5S_UNLIMITED});
      c.dataset("single", H5T_NATIVE_INT32, {30, 40}, values, chunked({30, 40}));
      const handle filtered = chunked({7, 9});
      H5Pset_deflate(filtered, 1);
      handle d = c.dataset("filtered", H5T_NATIVE_INT32, {30, 40}, values, filtered);
      const std::string raw(7 * 9 * 4, 'x');
      const hsize_t first[2] = {7, 9};
      check(H5Dwrite_chunk(d, H5P_DEFAULT, 1, first, raw.size(), raw.data()), "write a chunk without its filter");
      // sparse: one chunk of many
      handle sparse = c.dataset("sparse", H5T_NATIVE_INT32, {30, 40}, chunked({7, 9}));
      check(H5Dwrite_chunk(sparse, H5P_DEFAULT, 0, first, raw.size(), raw.data()), "write a chunk");
      c.close();
      d = handle();
      sparse = handle();
      for (const char* name : {"implicit", "fixed", "extensible", "extensible_second", "tree", "filtered"}) {
        BOOST_TEST_CONTEXT(name << (latest ? ", latest format" : "") << ", user block " << user_block)
        BOOST_CHECK_EQUAL(found_chunks(c.source(), name), 25u);
      }
      BOOST_CHECK_EQUAL(found_chunks(c.source(), "single"), 1u);
      BOOST_CHECK_EQUAL(found_chunks(c.source(), "sparse"), 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_found_without_the_driver_or_without_a_chunk) {
  conversion c;
  c.dataset("d", H5T_NATIVE_INT32, {10}, chunked({5}));
  c.close();
  unsigned mask = 0;
  const zarrbits::array::extents first = {0};
  {
    const handle file = opened(c.source(), false);
    const handle d(H5Dopen2(file, "d", H5P_DEFAULT), "open");
    BOOST_CHECK(!chunk_locator(file).find(d, first, mask));
  }
  {
    const handle file = opened(c.source());
    const handle d(H5Dopen2(file, "d", H5P_DEFAULT), "open");
    BOOST_CHECK(!chunk_locator(file).find(d, first, mask));  // never written
    BOOST_CHECK(!chunk_locator().find(d, first, mask));
  }
}

BOOST_AUTO_TEST_CASE(the_driver_does_not_open_files_for_writing) {
  conversion c;
  c.close();
  const handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
  chunk_locator::set_driver(access, gate_of(c.source()));
  const zarrbits::hdf5::silence quiet;
  BOOST_CHECK_LT(H5Fopen(c.source().c_str(), H5F_ACC_RDWR, access), 0);
  BOOST_CHECK_LT(H5Fcreate((c.source() + "2").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access), 0);
  BOOST_CHECK(!std::filesystem::exists(c.source() + "2"));
}

BOOST_AUTO_TEST_CASE(why_a_file_cannot_be_opened_is_told_as_without_the_driver) {
  conversion c;
  c.dataset("d", H5T_NATIVE_INT32, {1000}, counted(1000), chunked({100}));
  c.close();
  std::filesystem::resize_file(c.source(), 3000);
  const auto reason = [&](bool with_driver) {
    const handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
    if (with_driver) chunk_locator::set_driver(access, gate_of(c.source()));
    const zarrbits::hdf5::silence quiet;
    BOOST_CHECK_LT(H5Fopen(c.source().c_str(), H5F_ACC_RDONLY, access), 0);
    return zarrbits::hdf5::last_error();
  };
  BOOST_CHECK_EQUAL(reason(true), reason(false));
  BOOST_CHECK(reason(true).find("truncated") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_chunk_that_was_never_written_is_none_after_it_was_read) {
  // libhdf5 keeps the fill values that it made in its chunk cache, with neither an address nor a size
  for (const bool deflated : {false, true}) {
    conversion c;
    const handle p(H5Pcreate(H5P_DATASET_CREATE), "make properties");
    const dims chunk = {10, 10};
    check(H5Pset_chunk(p, 2, chunk.data()), "set chunks");
    if (deflated) check(H5Pset_deflate(p, 4), "set a filter");
    {
      const handle d = c.dataset("x", H5T_STD_I32LE, {40, 10}, p);
      const handle all(H5Dget_space(d), "space"), one(H5Screate_simple(2, chunk.data(), nullptr), "space");
      const dims start = {10, 0};
      check(H5Sselect_hyperslab(all, H5S_SELECT_SET, start.data(), nullptr, chunk.data(), nullptr), "select");
      check(H5Dwrite(d, H5T_STD_I32LE, one, all, H5P_DEFAULT, std::vector<std::int32_t>(100, 5).data()), "write");
    }
    c.close();
    zarrbits::hdf5::source_file file(c.source());
    file.walk(true);
    const auto object = std::find_if(file.objects().begin(), file.objects().end(), [](const auto& o) { return o.path == "/x"; });
    BOOST_REQUIRE((object != file.objects().end()));
    const zarrbits::hdf5::source_dataset d(file, *object);
    const auto sizes = [&] {
      std::vector<hsize_t> result;
      for (const hsize_t row : {0U, 10U, 20U, 30U}) result.push_back(d.stored_size({row, 0}));
      return result;
    };
    const std::vector<hsize_t> before = sizes();
    BOOST_TEST((before[0] == 0 && before[1] > 0 && before[2] == 0 && before[3] == 0));
    std::vector<std::int32_t> values(400);
    check(H5Dread(d.dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read");
    BOOST_TEST((sizes() == before));
  }
}
