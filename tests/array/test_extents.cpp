// SPDX-License-Identifier: BSL-1.0
#include "random_extents.hpp"

using namespace zarrbits::array;

BOOST_AUTO_TEST_CASE(products_saturate) {
  constexpr std::uint64_t big = std::uint64_t{1} << 40;
  BOOST_TEST(product({}) == 1);
  BOOST_TEST(product(extents{3, 4, 5}) == 60);
  BOOST_TEST(product(extents{big, big, 2}) == UINT64_MAX);
  BOOST_TEST(product(extents{big, big, 0}) == 0);
  BOOST_TEST(product(extents{0, big, big}) == 0);
  BOOST_TEST(product(extents{std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1}) == UINT64_MAX - (std::uint64_t{1} << 32) + 1);
  BOOST_TEST(saturating_mul(UINT64_MAX, 1) == UINT64_MAX);
  BOOST_TEST(saturating_mul(big, big) == UINT64_MAX);
}

BOOST_AUTO_TEST_CASE(indexes_come_in_C_order) {
  for (int round = 0; round < 100; ++round) {
    const extents shape = random_extents(up_to(4), 5), strides = strides_of(shape);
    extents index(shape.size(), 0);
    std::uint64_t number = 0;
    do {
      std::uint64_t position = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        BOOST_REQUIRE(index[d] < shape[d]);
        position += index[d] * strides[d];
      }
      BOOST_REQUIRE(position == number);
      BOOST_REQUIRE(ravel(index, shape) == number);
      BOOST_TEST(unravel(number, shape) == index, boost::test_tools::per_element());
      ++number;
    } while (next_index(index, shape));
    BOOST_TEST(number == product(shape));
    BOOST_TEST(index == extents(shape.size(), 0), boost::test_tools::per_element());  // the first one again
  }
}

BOOST_AUTO_TEST_CASE(an_array_without_dimensions_has_one_element) {
  extents index;
  BOOST_TEST(!next_index(index, {}));
  BOOST_TEST(ravel({}, {}) == 0);
  BOOST_TEST(unravel(0, {}).empty());
}

BOOST_AUTO_TEST_CASE(extents_as_text) {
  BOOST_TEST(joined_text({}) == "");
  BOOST_TEST(joined_text({7}) == "7");
  BOOST_TEST(joined_text({100, 200}) == "100x200");
  BOOST_TEST(joined_text({1, 2, 3}, '/') == "1/2/3");
}
