# SPDX-License-Identifier: BSL-1.0
# What `cmake --install` installs, and what another project finds afterwards: a CMake package with components, and pkg-config
# files. Both also say where the HDF5 plugins went, so that nobody has to guess what to put into HDF5_PLUGIN_PATH.
include(CMakePackageConfigHelpers)

set(zarrbits_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zarrbits)
set(zarrbits_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# A part is there when its target is: the options of the top-level file may have left it out.
set(zarrbits_parts core)
foreach(part streams convert)
  # with the bundled libhdf5 the converter is the command's alone
  if(TARGET zarrbits_${part} AND NOT (part STREQUAL convert AND ZARRBITS_HDF5 STREQUAL bundled))
    list(APPEND zarrbits_parts ${part})
  endif()
endforeach()
# zarrbits::hdf5 is a header and its definitions.
set(zarrbits_components ${zarrbits_parts})
if(ZARRBITS_BUILD_FILTER)
  list(APPEND zarrbits_components hdf5)
  install(TARGETS zarrbits_hdf5_header EXPORT zarrbits_targets)
  install(TARGETS zarrbits_packbits zarrbits_bytes LIBRARY DESTINATION ${ZARRBITS_PLUGIN_DIR} COMPONENT plugins)
endif()
set(zarrbits_has_plugins ${ZARRBITS_BUILD_FILTER})

# The C library has a target of another name.
if(TARGET zarrbits::c)
  list(APPEND zarrbits_parts c)
  list(APPEND zarrbits_components c)
  install(TARGETS zarrbits_library EXPORT zarrbits_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
elseif(TARGET zarrbits_library)  # in a package for Python
  install(TARGETS zarrbits_library LIBRARY DESTINATION ${ZARRBITS_LIBRARY_DIR} COMPONENT python)
endif()

if(TARGET zarrbits_reader_library AND SKBUILD)  # beside the command, with the same libraries inside
  install(TARGETS zarrbits_reader_library LIBRARY DESTINATION . COMPONENT command)
endif()

foreach(part ${zarrbits_parts})
  if(part STREQUAL c)
    continue()
  endif()
  install(TARGETS zarrbits_${part} EXPORT zarrbits_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT devel
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT devel)
endforeach()
if(TARGET zarrbits_command)
  set(zarrbits_commands zarrbits_command)
  if(TARGET zarrbits_mpi)
    list(APPEND zarrbits_commands zarrbits_mpi)
  endif()
  # the shared core, from an installed tree that can be moved; distributions set CMAKE_SKIP_INSTALL_RPATH, or their own CMAKE_INSTALL_RPATH
  if(ZARRBITS_SHARED AND NOT DEFINED CMAKE_INSTALL_RPATH)
    file(RELATIVE_PATH up /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(${zarrbits_commands} PROPERTIES INSTALL_RPATH $<IF:$<PLATFORM_ID:Darwin>,@loader_path,$ORIGIN>/${up})
  endif()
  install(TARGETS ${zarrbits_commands} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  install(FILES docs/man/zarrbits.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
  install(FILES command/completion/zarrbits.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME zarrbits COMPONENT command)
  set(ZARRBITS_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where zsh's completion is installed, below the prefix")
  install(DIRECTORY docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/zarrbits COMPONENT command)
  install(FILES command/completion/_zarrbits DESTINATION ${ZARRBITS_ZSH_DIR} COMPONENT command)
  install(FILES command/completion/zarrbits.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
endif()
install(EXPORT zarrbits_targets NAMESPACE zarrbits:: DESTINATION ${zarrbits_cmake_dir} COMPONENT devel)

# Headers of parts that were not built are not installed, so that a missing part shows when compiling and not when linking.
# hdf5_file.h is of a library for Python alone.
set(unbuilt_headers PATTERN hdf5_file.h EXCLUDE)
if(NOT TARGET zarrbits::c)
  list(APPEND unbuilt_headers PATTERN zarrbits_c.h EXCLUDE)
endif()
if(NOT TARGET zarrbits_streams)
  list(APPEND unbuilt_headers PATTERN iostreams EXCLUDE PATTERN iostreams.hpp EXCLUDE)
endif()
if(NOT convert IN_LIST zarrbits_parts)
  list(APPEND unbuilt_headers PATTERN compression.hpp EXCLUDE PATTERN "convert*.hpp" EXCLUDE PATTERN source_name.hpp EXCLUDE PATTERN verify.hpp EXCLUDE PATTERN export.hpp EXCLUDE PATTERN file_format.hpp EXCLUDE PATTERN reason_code.hpp EXCLUDE PATTERN repack.hpp EXCLUDE PATTERN rename.hpp EXCLUDE PATTERN combine.hpp EXCLUDE PATTERN digest.hpp EXCLUDE PATTERN check.hpp EXCLUDE PATTERN inspect.hpp EXCLUDE PATTERN hdf5_file.hpp EXCLUDE PATTERN hdf5_decoders.hpp EXCLUDE)
endif()
install(DIRECTORY include/zarrbits DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel ${unbuilt_headers})

# of libraries that are linked statically: scripts/wheel names a folder of them
if(ZARRBITS_LICENCES)
  install(DIRECTORY ${ZARRBITS_LICENCES}/ DESTINATION licences COMPONENT command)
endif()
if(NOT ZARRBITS_DEBIAN)  # which has names of its own for these
  install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT devel)
  # what README.md links to
  install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT devel
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "messages.txt" PATTERN "*.schema.json" PATTERN "*.cpp" PATTERN "*.c" PATTERN doxygen EXCLUDE PATTERN man EXCLUDE)
endif()

configure_package_config_file(cmake/zarrbitsConfig.cmake.in ${PROJECT_BINARY_DIR}/zarrbitsConfig.cmake
  INSTALL_DESTINATION ${zarrbits_cmake_dir} PATH_VARS ZARRBITS_PLUGIN_DIR)
# 0.x: a new minor version may break what was promised, so a request for 0.1 is not satisfied by 0.2 (docs/reference/versions.md).
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zarrbitsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zarrbitsConfig.cmake ${PROJECT_BINARY_DIR}/zarrbitsConfigVersion.cmake
  DESTINATION ${zarrbits_cmake_dir} COMPONENT devel)

set(zarrbits_pc_shared "")
if(ZARRBITS_SHARED)
  set(zarrbits_pc_shared " -DZARRBITS_SHARED")
endif()

# pkg-config: paths are relative to the .pc file, so that the installed tree can be moved.
if(IS_ABSOLUTE ${zarrbits_pkgconfig_dir})
  set(zarrbits_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /${zarrbits_pkgconfig_dir} /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(zarrbits_pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${dir}})
    set(zarrbits_pc_${dir} ${CMAKE_INSTALL_${dir}})
  else()
    set(zarrbits_pc_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
if(IS_ABSOLUTE ${ZARRBITS_PLUGIN_DIR})
  set(zarrbits_pc_plugindir ${ZARRBITS_PLUGIN_DIR})
else()
  set(zarrbits_pc_plugindir "\${prefix}/${ZARRBITS_PLUGIN_DIR}")
endif()
# What the static converter needs from outside: libhdf5, zlib, and the libraries that it found by path (compressors).
set(zarrbits_pc_convert "")
if(TARGET zarrbits_convert)
  get_target_property(libraries zarrbits_convert LINK_LIBRARIES)
  if(TARGET zarrbits_hdf5)
    get_target_property(hdf5 zarrbits_hdf5 INTERFACE_LINK_LIBRARIES)
    list(APPEND libraries ${hdf5})
  endif()
  foreach(library ${libraries})
    if(library STREQUAL "ZLIB::ZLIB")
      set(library -lz)
    elseif(library STREQUAL "Threads::Threads")
      set(library -pthread)
    elseif(NOT IS_ABSOLUTE "${library}")
      continue()  # our own targets, and what only the build needs
    endif()
    string(APPEND zarrbits_pc_convert " ${library}")
  endforeach()
endif()
foreach(part ${zarrbits_parts})
  set(pc zarrbits-${part}.pc)
  if(part STREQUAL core)
    set(pc zarrbits.pc)
  endif()
  configure_file(cmake/${pc}.in ${PROJECT_BINARY_DIR}/${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${zarrbits_pkgconfig_dir} COMPONENT devel)
endforeach()
