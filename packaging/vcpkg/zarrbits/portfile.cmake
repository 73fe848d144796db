# SPDX-License-Identifier: BSL-1.0
# vcpkg install zarrbits --overlay-ports=packaging/vcpkg: builds the checkout that it lies in. A port of vcpkg's own has vcpkg_from_github() here.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    streams ZARRBITS_BUILD_STREAMS
    filter ZARRBITS_BUILD_FILTER
    convert ZARRBITS_BUILD_CONVERT
    convert ZARRBITS_S3)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" ZARRBITS_SHARED)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DZARRBITS_SHARED=${ZARRBITS_SHARED}
    -DZARRBITS_BUILD_LIBRARY=OFF
    -DZARRBITS_BUILD_TESTS=OFF
    -DZARRBITS_BUILD_EXAMPLES=OFF
    -DCMAKE_UNITY_BUILD=ON
  MAYBE_UNUSED_VARIABLES
    ZARRBITS_S3)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/zarrbits)
vcpkg_fixup_pkgconfig()
if("convert" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES zarrbits AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
