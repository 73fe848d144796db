# SPDX-License-Identifier: BSL-1.0
# zarrbits_host_headers(NAME VAR): a folder with nothing in it but this machine's /usr/include/NAME. All of /usr/include on the
# path of a cross compiler would give it this machine's libc.
function(zarrbits_host_headers name variable)
  set(folder ${CMAKE_BINARY_DIR}/host-headers/${name})
  if(NOT EXISTS /usr/include/${name})
    message(FATAL_ERROR "/usr/include/${name} is missing; scripts/deps installs it")
  endif()
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK /usr/include/${name} ${folder}/${name} SYMBOLIC)
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()
