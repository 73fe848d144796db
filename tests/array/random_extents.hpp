// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_TESTS_ARRAY_RANDOM_EXTENTS_HPP
#define ZARRBITS_TESTS_ARRAY_RANDOM_EXTENTS_HPP

#include "array/extents.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

inline std::mt19937 random_numbers(7);

inline std::uint64_t up_to(std::uint64_t limit) { return std::uniform_int_distribution<std::uint64_t>(1, limit)(random_numbers); }

inline zarrbits::array::extents random_extents(std::size_t rank, std::uint64_t limit) {
  zarrbits::array::extents e;
  for (std::size_t d = 0; d < rank; ++d) e.push_back(up_to(limit));
  return e;
}

#endif
