# SPDX-License-Identifier: BSL-1.0
# What each part needs, in one place: if something is missing, zarrbits_find(PART REQUIRED) stops, and zarrbits_find(PART QUIET) sets
# zarrbits_missing to its name. These are macros, because find_package() has to set variables of the caller.

macro(zarrbits_need_package how name version)
  find_package(${name} ${version} ${how} ${ARGN})
  if(NOT ${name}_FOUND)
    list(APPEND zarrbits_missing ${name})
  endif()
endmacro()

macro(zarrbits_need_library how name header library)
  set(zarrbits_or_stop)
  if("${how}" STREQUAL REQUIRED)
    set(zarrbits_or_stop REQUIRED)
  endif()
  find_path(ZARRBITS_${name}_INCLUDE_DIR NAMES ${header} ${zarrbits_or_stop})
  find_library(ZARRBITS_${name}_LIBRARY ${library} ${zarrbits_or_stop})
  if(NOT ZARRBITS_${name}_INCLUDE_DIR OR NOT ZARRBITS_${name}_LIBRARY)
    list(APPEND zarrbits_missing ${library})
  endif()
endmacro()

macro(zarrbits_find part how)
  set(zarrbits_missing)
  if("${part}" STREQUAL core)
    zarrbits_need_package(${how} nlohmann_json 3.10)
  elseif("${part}" STREQUAL streams)
    # The filters need Boost's headers alone; Boost's compiled iostreams library is only for its zlib, zstd, ... filters.
    zarrbits_need_package(${how} Boost 1.74)
  elseif("${part}" STREQUAL convert)
    zarrbits_need_package(${how} Boost 1.74)  # headers
    if(NOT ZARRBITS_HDF5 STREQUAL bundled)
      zarrbits_need_package(${how} HDF5 1.10.5 COMPONENTS C)
    endif()
    zarrbits_need_package(${how} Threads "")
    zarrbits_need_package(${how} ZLIB "")
    zarrbits_need_package(${how} nlohmann_json 3.10)
    zarrbits_need_library(${how} DEFLATE libdeflate.h deflate)
    zarrbits_need_library(${how} ZSTD zstd.h zstd)
    # decoders of HDF5's registered filters
    zarrbits_need_library(${how} BLOSC blosc.h blosc)
    zarrbits_need_library(${how} LZ4 lz4.h lz4)
    zarrbits_need_library(${how} BZ2 bzlib.h bz2)
    zarrbits_need_library(${how} LZF "liblzf/lzf.h;lzf.h" lzf)  # Debian has it in a folder, others do not
  elseif("${part}" STREQUAL command)
    zarrbits_need_package(${how} nlohmann_json 3.10)
    zarrbits_need_package(${how} CLI11 "")
  endif()
endmacro()
