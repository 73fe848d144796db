# SPDX-License-Identifier: BSL-1.0
# libzarrbits_reader.so: HDF5 files read in several threads behind a C ABI (zarrbits/hdf5_file.h), for Python (python/zarrbits/hdf5_library.py). What it is linked
# with does not show; with the bundled libhdf5 (a wheel) it has its own, whatever else is in the process.
add_library(zarrbits_reader_library MODULE ${CMAKE_CURRENT_LIST_DIR}/hdf5_file_c.cpp)
set_target_properties(zarrbits_reader_library PROPERTIES OUTPUT_NAME zarrbits_reader PREFIX lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/library
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/reader.map)
target_link_libraries(zarrbits_reader_library PRIVATE zarrbits::convert)
if(NOT APPLE)
  target_link_options(zarrbits_reader_library PRIVATE LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/reader.map LINKER:--gc-sections LINKER:-Bsymbolic)
endif()
zarrbits_target_options(zarrbits_reader_library)
