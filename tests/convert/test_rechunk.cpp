// SPDX-License-Identifier: BSL-1.0
//
// Boxes and plans of other chunks, against what is counted one by one.
//
#include "convert/from_zarr/boxes.hpp"
#include "convert/from_zarr/rechunk_plan.hpp"

#include <boost/test/unit_test.hpp>

#include <zarrbits/error.hpp>

#include <cstring>
#include <numeric>
#include <random>
#include <set>

using namespace zarrbits::conversion;

namespace {

std::mt19937 random_numbers(7);

std::uint64_t up_to(std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(1, most)(random_numbers); }

extents random_extents(std::size_t rank, std::uint64_t most) {
  extents e;
  for (std::size_t d = 0; d < rank; ++d) e.push_back(up_to(most));
  return e;
}

// Chunks of shape `to` that boxes of shape `from` touch, summed over the boxes.
std::uint64_t touches(const extents& array, const extents& from, const extents& to) {
  std::uint64_t n = 0;
  const extents grid = grid_of(array, from);
  extents last;
  for (const std::uint64_t g : grid) last.push_back(g - 1);
  each_index(extents(array.size(), 0), last, [&](const extents& at) {
    const index_range range = overlapping_cells(cell_box(at, from, array), to);
    each_index(range.first, range.last, [&](const extents&) { ++n; });
  });
  return n;
}

std::uint64_t bytes_of(const extents& shape, const extents& array, std::uint64_t element) {
  std::uint64_t n = element;
  for (std::size_t d = 0; d < shape.size(); ++d) n *= std::min(shape[d], array[d]);
  return n;
}

bool is_multiple(const extents& shape, const extents& unit) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] % unit[d] != 0) return false;
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_and_indices) {
  const extents grid = {3, 1, 4};
  for (std::uint64_t n = 0; n < 12; ++n) BOOST_TEST(number_of(index_of(n, grid), grid) == n);
  BOOST_TEST(index_of(7, grid) == (extents{1, 0, 3}), boost::test_tools::per_element());
  int calls = 0;
  each_index({}, {}, [&](const extents&) { ++calls; });  // a scalar has one
  BOOST_TEST(calls == 1);
  BOOST_CHECK_THROW((box{{0, 0}, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}.elements()), zarrbits::error);
}

BOOST_AUTO_TEST_CASE(elements_are_copied_as_one_by_one) {
  for (int round = 0; round < 500; ++round) {
    const std::size_t rank = up_to(4);
    box a, b;
    for (std::size_t d = 0; d < rank; ++d) {
      a.first.push_back(up_to(5));
      a.shape.push_back(up_to(6));
      b.first.push_back(up_to(5));
      b.shape.push_back(up_to(6));
    }
    const box shared = intersect(a, b);
    const std::size_t size = std::vector<std::size_t>{1, 2, 3, 4, 8, 12}[up_to(6) - 1];
    std::vector<std::byte> from(a.elements() * size), to(b.elements() * size, std::byte{0xEE}), expected = to;
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(random_numbers());
    std::vector<std::string> words_from(a.elements()), words_to(b.elements(), "-"), words_expected = words_to;
    for (std::size_t i = 0; i < words_from.size(); ++i) words_from[i] = std::to_string(i);
    if (!shared.empty()) {
      extents last;
      for (std::size_t d = 0; d < rank; ++d) last.push_back(shared.first[d] + shared.shape[d] - 1);
      each_index(shared.first, last, [&](const extents& at) {
        std::uint64_t f = 0, t = 0;
        for (std::size_t d = 0; d < rank; ++d) {
          f = f * a.shape[d] + at[d] - a.first[d];
          t = t * b.shape[d] + at[d] - b.first[d];
        }
        std::memcpy(expected.data() + t * size, from.data() + f * size, size);
        words_expected[t] = words_from[f];
      });
    }
    copy_elements(from, a, to, b, shared, size);
    copy_elements(words_from, a, words_to, b, shared);
    BOOST_TEST((to == expected));
    BOOST_TEST(words_to == words_expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(every_element_of_tiles_has_a_place_of_its_own) {
  for (int round = 0; round < 200; ++round) {
    const std::size_t rank = up_to(3);
    const extents array = random_extents(rank, 9), regions = random_extents(rank, 9), gathered = random_extents(rank, 9);
    const box whole = {extents(rank, 0), array};
    std::set<std::uint64_t> places;
    extents last;
    for (const std::uint64_t g : grid_of(array, regions)) last.push_back(g - 1);
    each_index(extents(rank, 0), last, [&](const extents& at) {
      const box region = cell_box(at, regions, array);
      const index_range range = overlapping_cells(region, gathered);
      each_index(range.first, range.last, [&](const extents& other) {
        const box tile = intersect(region, cell_box(other, gathered, array));
        const std::uint64_t first = elements_before(region, whole) + elements_before(tile, region);
        for (std::uint64_t i = 0; i < tile.elements(); ++i) BOOST_TEST(places.insert(first + i).second);
      });
    });
    BOOST_TEST(places.size() == whole.elements());
    BOOST_TEST(*places.rbegin() == whole.elements() - 1);
  }
}

BOOST_AUTO_TEST_CASE(plans_count_right_and_stay_within_the_memory) {
  int twice = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t rank = up_to(3);
    rechunk_request r;
    r.array = random_extents(rank, 60);
    for (std::size_t d = 0; d < rank; ++d) {
      r.source_chunk.push_back(up_to(r.array[d]));
      r.target_object.push_back(up_to(r.array[d]));
    }
    r.element = up_to(8);
    const std::uint64_t memory = up_to(4000);
    const rechunk_plan p = plan_rechunk(r, memory);
    std::uint64_t chunks = 1;
    for (const std::uint64_t g : grid_of(r.array, r.source_chunk)) chunks *= g;
    BOOST_TEST(is_multiple(p.region, r.target_object));
    BOOST_TEST(bytes_of(p.region, r.array, r.element) <= std::max(memory, bytes_of(r.target_object, r.array, r.element)));
    if (p.two_passes()) {
      ++twice;
      BOOST_TEST(is_multiple(p.staged, r.source_chunk));
      BOOST_TEST(bytes_of(p.staged, r.array, r.element) <= std::max(memory, bytes_of(r.source_chunk, r.array, r.element)));
      BOOST_TEST(p.reads == chunks);
      BOOST_TEST(p.tiles == touches(r.array, p.staged, p.region));
    } else {
      BOOST_TEST(p.reads == touches(r.array, p.region, r.source_chunk));
      BOOST_TEST(static_cast<double>(p.reads) <= 2.5 * static_cast<double>(chunks));
    }
    r.may_use_scratch = false;
    const rechunk_plan one = plan_rechunk(r, memory);
    BOOST_TEST(!one.two_passes());
    BOOST_TEST(one.reads == touches(r.array, one.region, r.source_chunk));
  }
  BOOST_TEST(twice > 20);
}

BOOST_AUTO_TEST_CASE(all_of_an_array_that_fits_is_read_once) {
  const rechunk_plan p = plan_rechunk(
      {.array = {365, 180, 360}, .source_chunk = {1, 180, 360}, .target_object = {365, 10, 10}, .element = 4}, 1 << 30);
  BOOST_TEST(!p.two_passes());
  BOOST_TEST(p.reads == 365U);
}

BOOST_AUTO_TEST_CASE(absurd_lengths_do_not_overflow) {
  const std::uint64_t huge = ~std::uint64_t{0};
  const rechunk_plan p =
      plan_rechunk({.array = {huge, huge}, .source_chunk = {huge - 1, 1}, .target_object = {1, huge - 2}, .element = 8}, 1 << 20);
  BOOST_TEST(p.region.size() == 2U);
}
