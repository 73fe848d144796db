# SPDX-License-Identifier: BSL-1.0
# Labels of the tests, for ctest -L:
#
#   fast     for every change, about a minute on two cores
#   slow     the rest, mostly tests that kill, attack and compile
#   unit     the programs in C++
#   memory   what sanitizers are for: those programs, the replayed fuzzers, and tests that read many kinds of files
set(zarrbits_slow_tests
  convert_corpus cli_verify_stores cli_verify cli_progress convert_targets convert_command convert_mutations convert_failing_reads convert_shards convert_units
  convert_unfinished convert_s3 convert_memory convert_bounds cli_names convert_failing_writes convert_failing_appends cli_vectors convert_kills convert_concat_kills
  convert_attack_s3
  convert_short_chunks streams_full_device filter_doctor filter_doctor_suggest package_headers_compile_alone package_installs_and_links
  package_subproject documents_demo documents_programs)
set(zarrbits_memory_tests
  convert_strings convert_types convert_attributes convert_conventions convert_virtual convert_other_files convert_short_chunks convert_links convert_bounds
  convert_concat cli_inspect cli_names cli_files cli_command)
# begun last, they would run alone
set(zarrbits_long_tests
  convert_corpus cli_verify_stores cli_verify cli_progress cli_verify_sources convert_units convert_targets cli_verify_metadata convert_command convert_mutations)

# Call it first in each folder with tests: it does its work at the end of that folder. A test that ends with 77 is skipped, and not passed.
macro(zarrbits_label_tests)
  cmake_language(DEFER CALL zarrbits_label_tests_of_this_folder)
endmacro()
function(zarrbits_label_tests_of_this_folder)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    if(test IN_LIST zarrbits_slow_tests)
      set_property(TEST ${test} APPEND PROPERTY LABELS slow)
    else()
      set_property(TEST ${test} APPEND PROPERTY LABELS fast)
    endif()
    if(TARGET test_${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS unit)
    endif()
    if(TARGET test_${test} OR test MATCHES "^fuzz_" OR test IN_LIST zarrbits_memory_tests)
      set_property(TEST ${test} APPEND PROPERTY LABELS memory)
    endif()
    if(test IN_LIST zarrbits_long_tests)
      set_property(TEST ${test} PROPERTY COST 100)
    endif()
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
