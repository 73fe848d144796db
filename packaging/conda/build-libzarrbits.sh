#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -euo pipefail

# CMAKE_ARGS is conda's
# shellcheck disable=SC2086
cmake -G Ninja -S . -B build-libzarrbits ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_PREFIX_PATH="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
  -DCMAKE_UNITY_BUILD=ON -DZARRBITS_SHARED=ON -DZARRBITS_S3=ON -DZARRBITS_BUILD_FILTER=OFF -DZARRBITS_BUILD_TESTS=OFF -DZARRBITS_BUILD_EXAMPLES=OFF
cmake --build build-libzarrbits --target zarrbits_core zarrbits_streams zarrbits_convert zarrbits_library
# not the command, which is the other package's
cmake --install build-libzarrbits --component runtime
cmake --install build-libzarrbits --component devel
