# SPDX-License-Identifier: BSL-1.0
# Boost's headers, and Boost.Test built from them: its library is installed only for this machine's architecture.
include(${CMAKE_CURRENT_LIST_DIR}/headers.cmake)

zarrbits_host_headers(boost folder)
if(NOT TARGET Boost::headers)
  add_library(Boost::headers INTERFACE IMPORTED)
  target_include_directories(Boost::headers SYSTEM INTERFACE ${folder})
endif()
if(NOT TARGET Boost::unit_test_framework)
  file(WRITE ${folder}/unit_test.cpp "#include <boost/test/included/unit_test.hpp>\n")
  add_library(zarrbits_boost_test STATIC ${folder}/unit_test.cpp)
  target_link_libraries(zarrbits_boost_test PUBLIC Boost::headers)
  add_library(Boost::unit_test_framework ALIAS zarrbits_boost_test)
endif()
set(Boost_FOUND TRUE)
set(Boost_unit_test_framework_FOUND TRUE)
