# SPDX-License-Identifier: BSL-1.0
# Options for our own targets only; they do not reach a project that uses zarrbits.

function(zarrbits_target_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion>
    # gcc 12 warns of assigning a literal to a std::string, inside the standard library (its bug 105651)
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    # names of the files that are compiled as one are not shadows; the preset clang compiles each by itself
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-shadow>
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>)
  if(ZARRBITS_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(ZARRBITS_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
    # a program that may be placed anywhere applies a million relocations each time it starts, and the tests start it thousands of times
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_link_options(${target} PRIVATE -no-pie)
    endif()
  endif()
endfunction()
