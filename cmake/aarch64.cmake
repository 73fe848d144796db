# SPDX-License-Identifier: BSL-1.0
# 64-bit ARM, for the NEON kernels: cmake --preset aarch64
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross/debian.cmake)
