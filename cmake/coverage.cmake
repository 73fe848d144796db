# SPDX-License-Identifier: BSL-1.0
# Counts of the lines that ran, by gcc's --coverage, for scripts/ci/coverage. Threads count at the same time, so the counts are atomic.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  message(FATAL_ERROR "ZARRBITS_COVERAGE needs gcc, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()
add_compile_options(--coverage -fprofile-abs-path -fprofile-update=atomic)
add_link_options(--coverage)

# What ends without exit() writes its counts, too.
function(zarrbits_count_at_every_end)
  foreach(target zarrbits_command test_filter_life_cycle)
    if(TARGET ${target})
      target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/coverage.c)
      set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/coverage.c TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS -fno-profile-arcs)
      target_link_options(${target} PRIVATE LINKER:--wrap=_exit,--wrap=raise)
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL zarrbits_count_at_every_end)
