// SPDX-License-Identifier: BSL-1.0
//
// Plans of other chunks, against what is counted one by one.
//
#include "array/chunk_grid.hpp"
#include "array/rechunk_plan.hpp"

#include <boost/test/unit_test.hpp>

#include <numeric>
#include <random>

using namespace zarrbits::array;

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
  const chunk_grid grid{array, from}, others{array, to};
  for_each_index({extents(array.size(), 0), grid.counts()}, [&](const extents& index) {
    for_each_index(others.chunks_over(grid.box_of(index)), [&](const extents&) { ++n; });
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
    const std::uint64_t chunks = chunk_grid{r.array, r.source_chunk}.chunks();
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
