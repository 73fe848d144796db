# SPDX-License-Identifier: BSL-1.0
# What the components below the jobs, and the jobs, are built with: libhdf5, S3, and zarrbits_component().
zarrbits_find(convert REQUIRED)

# Stores in S3 need a libcurl that signs requests, a hash of what they send, and a parser of the answers.
find_package(CURL 7.87 QUIET)
find_package(OpenSSL 1.1.1 QUIET COMPONENTS Crypto)
zarrbits_need_library(QUIET PUGIXML pugixml.hpp pugixml)
# a static libcurl, as the wheel's (scripts/static-libraries), does not say what it is to be linked with
if(CURL_LIBRARIES MATCHES "\\.a$")
  zarrbits_need_library(QUIET NGHTTP2 nghttp2/nghttp2.h nghttp2)
  list(APPEND CURL_LIBRARIES ${ZARRBITS_NGHTTP2_LIBRARY} ${OPENSSL_SSL_LIBRARY})
endif()
set(zarrbits_s3_found OFF)
if(CURL_FOUND AND OPENSSL_FOUND AND ZARRBITS_PUGIXML_INCLUDE_DIR AND ZARRBITS_PUGIXML_LIBRARY)
  set(zarrbits_s3_found ON)
endif()
option(ZARRBITS_S3 "Stores, and HDF5 files, in S3 (s3://bucket/prefix); needs libcurl, OpenSSL and pugixml" ${zarrbits_s3_found})
if(ZARRBITS_S3 AND NOT zarrbits_s3_found)
  message(FATAL_ERROR "ZARRBITS_S3 needs libcurl 7.87 or newer, OpenSSL and pugixml, with their headers (Debian: libcurl4-openssl-dev, libssl-dev, libpugixml-dev); "
    "install them or set ZARRBITS_S3=OFF")
endif()

if(ZARRBITS_HDF5 STREQUAL bundled)
  include(${PROJECT_SOURCE_DIR}/cmake/bundled_hdf5.cmake)
endif()
# FindHDF5 lists every library that libhdf5 itself was linked with; we need the C library alone.
if(NOT TARGET zarrbits_hdf5)
  set(zarrbits_hdf5_library "")
  foreach(library IN LISTS HDF5_C_LIBRARIES HDF5_LIBRARIES)
    if(NOT zarrbits_hdf5_library AND library MATCHES "libhdf5[^/]*\\.(so|a|dylib)")
      set(zarrbits_hdf5_library ${library})
    endif()
  endforeach()
  if(NOT zarrbits_hdf5_library)
    set(zarrbits_hdf5_library ${HDF5_C_LIBRARIES})
  endif()
  add_library(zarrbits_hdf5 INTERFACE)
  target_link_libraries(zarrbits_hdf5 INTERFACE ${zarrbits_hdf5_library})
  target_include_directories(zarrbits_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
  # newer libraries: the 1.10 forms of the functions that changed since
  target_compile_definitions(zarrbits_hdf5 INTERFACE H5_USE_110_API)
endif()
# hdf5/filters.hpp has them
target_compile_definitions(zarrbits_hdf5 INTERFACE ZARRBITS_CONVERT_PACKBITS_ID=${ZARRBITS_PACKBITS_FILTER_ID} ZARRBITS_CONVERT_BYTES_ID=${ZARRBITS_BYTES_FILTER_ID})

# zarrbits_component(NAME SOURCE... [LIBRARIES LIBRARY...] [INCLUDES FOLDER...]): a folder of sources that becomes a part of zarrbits::convert.
# LIBRARIES and INCLUDES are those whose headers it includes; what is linked stands in convert/CMakeLists.txt.
function(zarrbits_component name)
  cmake_parse_arguments(component "" "" "LIBRARIES;INCLUDES" ${ARGN})
  add_library(zarrbits_${name} OBJECT ${component_UNPARSED_ARGUMENTS})
  target_compile_features(zarrbits_${name} PRIVATE cxx_std_20)
  target_include_directories(zarrbits_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(zarrbits_${name} SYSTEM PRIVATE ${component_INCLUDES})
  target_link_libraries(zarrbits_${name} PRIVATE zarrbits::core ${component_LIBRARIES})
  if(ZARRBITS_S3)
    target_compile_definitions(zarrbits_${name} PRIVATE ZARRBITS_WITH_S3)
  endif()
  zarrbits_target_options(zarrbits_${name})
  target_sources(zarrbits_convert PRIVATE $<TARGET_OBJECTS:zarrbits_${name}>)
endfunction()
