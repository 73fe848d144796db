# SPDX-License-Identifier: BSL-1.0
# A big-endian machine, the honest test of a codec of byte orders: cmake --preset s390x
set(CMAKE_SYSTEM_PROCESSOR s390x)
include(${CMAKE_CURRENT_LIST_DIR}/cross/debian.cmake)
