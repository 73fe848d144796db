// SPDX-License-Identifier: BSL-1.0
#include "array/box.hpp"

#include "array/chunk_grid.hpp"
#include "random_extents.hpp"

#include <zarrbits/error.hpp>

#include <cstring>
#include <set>

using namespace zarrbits::array;

BOOST_AUTO_TEST_CASE(every_index_of_a_box_is_visited_in_C_order) {
  for (int round = 0; round < 100; ++round) {
    const std::size_t rank = up_to(4);
    const box b = {random_extents(rank, 5), random_extents(rank, 5)};
    std::uint64_t number = 0;
    for_each_index(b, [&](const extents& index) {
      extents expected = unravel(number++, b.shape);
      for (std::size_t d = 0; d < rank; ++d) expected[d] += b.first[d];
      BOOST_TEST(index == expected, boost::test_tools::per_element());
    });
    BOOST_TEST(number == b.elements());
  }
  int calls = 0;
  for_each_index({}, [&](const extents&) { ++calls; });  // a scalar has one
  BOOST_TEST(calls == 1);
  for_each_index({{2, 3}, {4, 0}}, [&](const extents&) { ++calls; });
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(too_many_elements_are_an_error) {
  BOOST_CHECK_THROW((box{{0, 0}, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}.elements()), zarrbits::error);
  BOOST_TEST((box{{0, 0, 0}, {std::uint64_t{1} << 40, std::uint64_t{1} << 40, 0}}.elements()) == 0);
}

BOOST_AUTO_TEST_CASE(long_runs_are_one) {
  int runs = 0;
  const auto count_runs = [&](std::uint64_t, std::uint64_t, std::uint64_t) { ++runs; };
  const box whole = {{0, 0, 0}, {4, 5, 6}};
  for_each_run(whole, whole, whole, count_runs);
  BOOST_TEST(runs == 1);
  for_each_run(whole, whole, {{1, 0, 0}, {2, 5, 6}}, count_runs);  // planes
  BOOST_TEST(runs == 2);
  for_each_run(whole, whole, {{1, 0, 0}, {2, 5, 5}}, count_runs);
  BOOST_TEST(runs == 12);
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
    std::vector<std::uint64_t> pairs;  // where each shared element is in both
    for (std::uint64_t f = 0; f < a.elements(); ++f) {
      std::uint64_t t = 0;
      bool is_shared = true;
      const extents offset = unravel(f, a.shape);
      for (std::size_t d = 0; d < rank; ++d) {
        const std::uint64_t position = a.first[d] + offset[d];
        is_shared = is_shared && position >= b.first[d] && position < b.first[d] + b.shape[d];
        t = t * b.shape[d] + position - b.first[d];
      }
      if (!is_shared) continue;
      std::memcpy(expected.data() + t * size, from.data() + f * size, size);
      words_expected[t] = words_from[f];
      pairs.insert(pairs.end(), {f, t});
    }
    BOOST_TEST(shared.elements() == pairs.size() / 2);
    copy_elements(from, a, to, b, shared, size);
    copy_elements(words_from, a, words_to, b, shared);
    BOOST_TEST((to == expected));
    BOOST_TEST(words_to == words_expected, boost::test_tools::per_element());
    std::vector<std::uint64_t> in_runs;
    for_each_run(a, b, shared, [&](std::uint64_t f, std::uint64_t t, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) in_runs.insert(in_runs.end(), {f + i, t + i});
    });
    BOOST_TEST(in_runs == pairs, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(every_element_of_tiles_has_a_place_of_its_own) {
  for (int round = 0; round < 200; ++round) {
    const std::size_t rank = up_to(3);
    const extents array = random_extents(rank, 9), regions = random_extents(rank, 9), gathered = random_extents(rank, 9);
    const box whole = {extents(rank, 0), array};
    std::set<std::uint64_t> places;
    const chunk_grid outer{array, regions}, inner{array, gathered};
    for_each_index({extents(rank, 0), outer.counts()}, [&](const extents& index) {
      const box region = outer.box_of(index);
      for_each_index(inner.chunks_over(region), [&](const extents& other) {
        const box tile = intersect(region, inner.box_of(other));
        const std::uint64_t first = elements_before(region, whole) + elements_before(tile, region);
        for (std::uint64_t i = 0; i < tile.elements(); ++i) BOOST_TEST(places.insert(first + i).second);
      });
    });
    BOOST_TEST(places.size() == whole.elements());
    BOOST_TEST(*places.rbegin() == whole.elements() - 1);
  }
}

BOOST_AUTO_TEST_CASE(values_are_filled_with_an_element) {
  for (const std::size_t n : {0U, 1U, 2U, 7U, 100U}) {
    const std::vector<std::byte> one = {std::byte{1}, std::byte{2}, std::byte{3}};
    std::vector<std::byte> values(3 * n), expected;
    for (std::size_t i = 0; i < n; ++i) expected.insert(expected.end(), one.begin(), one.end());
    fill_elements(values, one);
    BOOST_TEST((values == expected));
  }
}
