# SPDX-License-Identifier: BSL-1.0
# ctest -L fast: for every change, under a minute on two cores. ctest -L slow: the rest, mostly tests that kill, attack and compile.
set(zarrbits_slow_tests
  convert_units convert_kills convert_concat_kills convert_targets convert_unfinished convert_s3 convert_attack_s3 convert_short_chunks convert_mutations convert_memory convert_shards convert_bounds convert_command convert_failing_reads
  convert_failing_writes cli_vectors cli_progress cli_names cli_verify cli_verify_stores filter_doctor filter_doctor_suggest package_headers_compile_alone package_installs_and_links package_subproject documents_demo
  documents_programs)

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
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
