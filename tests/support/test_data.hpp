// SPDX-License-Identifier: BSL-1.0
// Where the files of the tests are. ctest says it by an environment variable (tests/CMakeLists.txt): a path among the compiler's
// options would make each checkout compile every test again.
#ifndef ZARRBITS_TESTS_SUPPORT_TEST_DATA_HPP
#define ZARRBITS_TESTS_SUPPORT_TEST_DATA_HPP

#include <cstdlib>
#include <stdexcept>
#include <string>

// The path of `name` in tests/golden.
inline std::string golden_file(const std::string& name) {
  const char* folder = std::getenv("ZARRBITS_TEST_DATA");
  if (folder == nullptr)
    throw std::runtime_error("ZARRBITS_TEST_DATA is not set; set it to the folder tests/ of the sources, as ctest does");
  return std::string(folder) + "/golden/" + name;
}

#endif
