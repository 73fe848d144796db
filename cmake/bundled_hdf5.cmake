# SPDX-License-Identifier: BSL-1.0
# ZARRBITS_HDF5=bundled: libhdf5 2.2.0, built here from source and linked statically into the command. It knows the datatypes that files of
# today's h5py have; Debian's 1.10 does not. Only the command gets it: a program that links zarrbits::convert, or loads a plugin, has a libhdf5
# of its own.
set(ZARRBITS_BUNDLED_DIR ${PROJECT_SOURCE_DIR}/build/static CACHE PATH "Where the bundled libhdf5 is built; all builds of one compiler share it")

set(ENV{CC} "${CMAKE_C_COMPILER}")
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/static-libraries ${ZARRBITS_BUNDLED_DIR} hdf5 RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "ZARRBITS_HDF5=bundled: libhdf5 cannot be built; it needs cargo, which fetches the source")
endif()

add_library(zarrbits_hdf5 INTERFACE)
target_include_directories(zarrbits_hdf5 SYSTEM INTERFACE ${ZARRBITS_BUNDLED_DIR}/include)
target_compile_definitions(zarrbits_hdf5 INTERFACE H5_USE_110_API)
target_link_libraries(zarrbits_hdf5 INTERFACE ${ZARRBITS_BUNDLED_DIR}/lib/libhdf5.a ZLIB::ZLIB ${CMAKE_DL_LIBS} m)
