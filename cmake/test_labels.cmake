# SPDX-License-Identifier: BSL-1.0
# Labels of the tests, for ctest -L:
#
#   fast     for every change: what takes a few seconds
#   slow     the rest
#   unit     the programs in C++
#   memory   what sanitizers are for: those programs, the replayed fuzzers, and tests that read many kinds of files

# zarrbits_label(NAME [SLOW] [MEMORY] [LONG]): where a test is declared. LONG is begun first: at the end it would run alone.
function(zarrbits_label name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW;MEMORY;LONG" "" "")
  foreach(label slow memory)
    string(TOUPPER ${label} word)
    if(arg_${word})
      set_property(TEST ${name} APPEND PROPERTY LABELS ${label})
    endif()
  endforeach()
  if(arg_LONG)
    set_property(TEST ${name} PROPERTY COST 100)
  endif()
endfunction()

# Call it first in each folder with tests: it does its work at the end of that folder, and adds the labels that need no word.
# A test that ends with 77 is skipped, and not passed. The limit of time is a guard against hangs, and never a measure.
macro(zarrbits_label_tests)
  cmake_language(DEFER CALL zarrbits_label_tests_of_this_folder)
endmacro()
function(zarrbits_label_tests_of_this_folder)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    get_property(labels TEST ${test} PROPERTY LABELS)
    if(NOT "slow" IN_LIST labels)
      set_property(TEST ${test} APPEND PROPERTY LABELS fast)
    endif()
    if(TARGET test_${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS unit)
    endif()
    if(TARGET test_${test} OR test MATCHES "^fuzz_")
      set_property(TEST ${test} APPEND PROPERTY LABELS memory)
    endif()
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800)
  endforeach()
endfunction()
