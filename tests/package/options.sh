#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Every part can be left out, alone or with one other: each of these builds configures, and links no target that it does not have.
#
#   options.sh SOURCE_DIR CMAKE CXX
set -euo pipefail

source=$1
cmake=$2
cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
parts=(STREAMS FILTER LIBRARY CONVERT TESTS EXAMPLES)

for first in "${!parts[@]}"; do
  for second in "${parts[@]:first}"; do
    options=("-DZARRBITS_BUILD_${parts[first]}=OFF" "-DZARRBITS_BUILD_$second=OFF")
    # one folder, so that compilers and libraries are looked for once; the other parts get their defaults again
    if ! "$cmake" -G Ninja -S "$source" -B "$work/build" -DCMAKE_CXX_COMPILER="$cxx" -U "ZARRBITS_BUILD_*" "${options[@]}" > "$work/log" 2>&1; then
      cat "$work/log"
      echo "FAILED: ${options[*]}"
      exit 1
    fi
    # a name that is not a target is a library for CMake
    if grep -nE -e "-lzarrbits" "$work/build/build.ninja"; then
      echo "FAILED: ${options[*]}: that library is not built"
      exit 1
    fi
    grep -qE "^build .*libzarrbits_core" "$work/build/build.ninja" || { echo "FAILED: ${options[*]}: no core"; exit 1; }
    [ "$second" != TESTS ] || ! grep -q "test_core" "$work/build/build.ninja" || { echo "FAILED: ${options[*]}: has tests"; exit 1; }
  done
done
echo "each of ${#parts[@]} parts can be left out, also with each other one"
