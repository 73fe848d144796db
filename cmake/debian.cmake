# SPDX-License-Identifier: BSL-1.0
# -DZARRBITS_DEBIAN=ON, as scripts/package gives it: `cpack` makes zarrbits_*.deb and libzarrbits-dev_*.deb. Debian's own libhdf5 looks for plugins in a
# folder of each of its flavours; ZARRBITS_PLUGIN_DIR is the serial one's, and the others get links.
set(debian_made ${PROJECT_BINARY_DIR}/debian)
set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if("$ENV{DEBEMAIL}" STREQUAL "")
  set(maintainer "zarrbits <zarrbits@packages.invalid>")  # who gives the packages to others sets both
endif()

foreach(plugin packbits bytes)
  foreach(flavour openmpi mpich)
    file(MAKE_DIRECTORY ${debian_made}/${flavour})
    file(CREATE_LINK ../../serial/plugins/libzarrbits_${plugin}.so ${debian_made}/${flavour}/libzarrbits_${plugin}.so SYMBOLIC)
    install(FILES ${debian_made}/${flavour}/libzarrbits_${plugin}.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/hdf5/${flavour}/plugins COMPONENT plugins)
  endforeach()
endforeach()

# copyright: the licence as Debian's machine-readable form has it
file(READ LICENSE licence)
string(REGEX REPLACE "\n+$" "" licence "${licence}")
string(REPLACE "\n" "\n " licence "${licence}")
string(REPLACE "\n \n" "\n .\n" licence "${licence}")
file(WRITE ${debian_made}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: zarrbits

Files: *
Copyright: 2026 the zarrbits authors
License: BSL-1.0

License: BSL-1.0
 ${licence}
")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where that is set
foreach(package zarrbits libzarrbits-dev)
  set(component command)
  if(package STREQUAL "libzarrbits-dev")
    set(component devel)
  endif()
  file(WRITE ${debian_made}/${package}/changelog.Debian
    "zarrbits (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * Built from source by scripts/package; changelog.gz has the changes.\n\n -- ${maintainer}  ${now}\n")
  install(FILES ${debian_made}/copyright ${debian_made}/${package}/changelog.Debian DESTINATION share/doc/${package} COMPONENT ${component})
  install(FILES CHANGELOG.md DESTINATION share/doc/${package} RENAME changelog COMPONENT ${component})
  install(FILES cmake/debian/${package}.lintian DESTINATION share/lintian/overrides RENAME ${package} COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "packed integers in HDF5 and Zarr")
set(CPACK_PACKAGE_VENDOR zarrbits)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/compress.cmake)
set(CPACK_COMPONENTS_ALL command plugins devel)
set(CPACK_COMPONENT_COMMAND_GROUP main)
set(CPACK_COMPONENT_PLUGINS_GROUP main)
set(CPACK_COMPONENT_DEVEL_GROUP dev)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_MAIN_PACKAGE_NAME zarrbits)
set(CPACK_DEBIAN_MAIN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MAIN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MAIN_PACKAGE_SUGGESTS "python3-h5py, hdf5-tools")
set(CPACK_DEBIAN_MAIN_DESCRIPTION "Plugins that let every HDF5 program read and write chunks in Zarr's bytes and
packbits codecs (12 bits of 16, 1 bit of 8), and a command that converts HDF5
files to Zarr version 3 and compares a store with its source.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libzarrbits-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# static libraries: what they are linked with
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libboost-dev, nlohmann-json3-dev, libhdf5-dev, zlib1g-dev, libdeflate-dev, libzstd-dev, libblosc-dev, liblz4-dev, liblzf-dev, libbz2-dev, libcurl4-openssl-dev, libssl-dev, libpugixml-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS zarrbits)
set(CPACK_DEBIAN_DEV_DESCRIPTION "Zarr's bytes and packbits codecs as functions of chunks and as filters of
Boost.Iostreams, the settings of the HDF5 plugins, and the converter from HDF5
to Zarr as a library.")
include(CPack)
