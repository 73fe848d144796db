// SPDX-License-Identifier: BSL-1.0
#include "array/chunk_grid.hpp"

#include "random_extents.hpp"

#include <algorithm>

using namespace zarrbits::array;

namespace {

// A grid of random chunks; every other one is rectilinear. `edges`: along each dimension, where each chunk begins, and where the
// last one ends.
chunk_grid random_grid(std::vector<extents>& edges) {
  const std::size_t rank = up_to(3);
  chunk_grid grid{random_extents(rank, 12), random_extents(rank, 5)};
  edges.assign(rank, {0});
  for (std::size_t d = 0; d < rank; ++d) {
    while (edges[d].back() < grid.shape[d]) edges[d].push_back(edges[d].back() + grid.chunk[d]);
  }
  if (up_to(2) == 1) return grid;
  for (std::size_t d = up_to(rank) - 1; d < rank; d += up_to(2)) {
    edges[d] = {0};
    for (std::uint64_t i = up_to(4); i > 0; --i) {
      const std::uint64_t length = up_to(4), count = up_to(3);
      grid.add_chunks(d, length, count);
      for (std::uint64_t k = 0; k < count; ++k) edges[d].push_back(edges[d].back() + length);
    }
    grid.shape[d] = edges[d].back();
  }
  return grid;
}

}  // namespace

BOOST_AUTO_TEST_CASE(chunks_are_where_their_edges_are) {
  for (int round = 0; round < 300; ++round) {
    std::vector<extents> edges;
    const chunk_grid grid = random_grid(edges);
    std::uint64_t chunks = 1;
    for (std::size_t d = 0; d < grid.rank(); ++d) {
      BOOST_REQUIRE(grid.chunks_along(d) == edges[d].size() - 1);
      chunks *= edges[d].size() - 1;
      for (std::uint64_t number = 0; number < grid.chunks_along(d); ++number) {
        BOOST_TEST(grid.start(d, number) == edges[d][number]);
        BOOST_TEST(grid.length(d, number) == edges[d][number + 1] - edges[d][number]);
      }
      for (std::uint64_t element = 0; element < grid.shape[d]; ++element) {
        const auto next = std::upper_bound(edges[d].begin(), edges[d].end(), element);
        BOOST_TEST(grid.chunk_of(d, element) == static_cast<std::uint64_t>(next - edges[d].begin()) - 1);
      }
    }
    BOOST_TEST(grid.chunks() == chunks);
    std::uint64_t number = 0, elements = 0;
    extents index(grid.rank(), 0);
    do {
      BOOST_TEST(grid.chunk_at(number++) == index, boost::test_tools::per_element());
      const box inside = grid.box_of(index), whole = {grid.start(index), grid.extent(index)};
      BOOST_TEST((inside == intersect(whole, {extents(grid.rank(), 0), grid.shape})));
      BOOST_TEST(grid.is_partial(index) == (inside != whole));
      elements += inside.elements();
      for_each_index(inside, [&](const extents& element) {
        BOOST_TEST((grid.chunk_of(element) == index));
        extents offset = element;
        for (std::size_t d = 0; d < grid.rank(); ++d) offset[d] -= whole.first[d];
        BOOST_TEST(grid.offset_in_chunk(element) == ravel(offset, whole.shape));
      });
    } while (grid.next(index));
    BOOST_TEST(number == chunks);
    BOOST_TEST(elements == product(grid.shape));
  }
}

BOOST_AUTO_TEST_CASE(chunks_over_a_box_are_those_that_share_elements) {
  for (int round = 0; round < 300; ++round) {
    std::vector<extents> edges;
    const chunk_grid grid = random_grid(edges);
    box b;
    for (const std::uint64_t extent : grid.shape) {
      b.first.push_back(up_to(extent) - 1);
      b.shape.push_back(up_to(extent - b.first.back()));
    }
    std::vector<extents> expected, visited;
    for_each_index({extents(grid.rank(), 0), grid.counts()}, [&](const extents& index) {
      if (!intersect(grid.box_of(index), b).empty()) expected.push_back(index);
    });
    for_each_index(grid.chunks_over(b), [&](const extents& index) { visited.push_back(index); });
    BOOST_TEST((visited == expected));
  }
}

BOOST_AUTO_TEST_CASE(chunks_come_shard_by_shard) {
  for (int round = 0; round < 300; ++round) {
    std::vector<extents> edges;
    const chunk_grid grid = random_grid(edges), shards = shards_of(grid, random_extents(grid.rank(), 4));
    const std::uint64_t first = up_to(shards.chunks()) - 1, count = up_to(shards.chunks() - first);
    std::vector<extents> expected, visited, matching;
    const auto matches = [](const extents& index) { return (index[0] + index.back()) % 3 == 0; };
    for (std::uint64_t shard = first; shard < first + count; ++shard)
      for_each_index(shards.box_of(shards.chunk_at(shard)), [&](const extents& index) { expected.push_back(index); });
    for_each_chunk(shards, first, count, [&](const extents& index) {
      visited.push_back(index);
      return true;
    });
    BOOST_TEST((visited == expected));
    BOOST_TEST(chunks_in(shards, first, count) == expected.size());
    const box_test has_match = [&](const extents& corner, const extents& size) {
      bool result = false;
      for_each_index({corner, size}, [&](const extents& index) { result = result || matches(index); });
      return result;
    };
    for_each_matching_chunk(shards, first, count, has_match, [&](const extents& index) {
      matching.push_back(index);
      return true;
    });
    std::erase_if(expected, [&](const extents& index) { return !matches(index); });
    BOOST_TEST((matching == expected));
  }
}

BOOST_AUTO_TEST_CASE(visits_end_when_the_visitor_returns_false) {
  const chunk_grid shards = shards_of({{6, 6}, {1, 1}}, {2, 2});
  int visits = 0;
  for_each_chunk(shards, 0, shards.chunks(), [&](const extents&) { return ++visits < 6; });
  BOOST_TEST(visits == 6);
}

BOOST_AUTO_TEST_CASE(chunk_shapes_are_contiguous_and_small_enough) {
  for (int round = 0; round < 300; ++round) {
    const extents shape = random_extents(up_to(4), 40);
    const std::uint64_t element = up_to(16), target = up_to(5000);
    const extents chunk = chunk_shape_for(shape, element, target);
    BOOST_TEST((product(chunk) * element <= target || product(chunk) == 1));
    bool is_whole = true;  // from the last dimension
    for (std::size_t d = shape.size(); d-- > 0;) {
      BOOST_TEST((chunk[d] >= 1 && chunk[d] <= shape[d]));
      BOOST_TEST((is_whole || chunk[d] == 1));
      is_whole = is_whole && chunk[d] == shape[d];
    }
  }
}
