#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# add_subdirectory(zarrbits) asks for nothing that the project does not use: configured where libraries are not to be found. What would be
# built is looked at and not built.
#
#   subproject.sh SOURCE_DIR CMAKE CXX "core streams ..."
set -euo pipefail

source=$1
cmake=$2
cxx=$3
all=${4// /;}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {  # check NAME EXPECTED_PARTS OPTIONS...
  local name=$1 expect=$2
  shift 2
  if ! "$cmake" -G Ninja -S "$here/subproject" -B "$work/$name" -Dsource="$source" -Dexpect="$expect" -DCMAKE_CXX_COMPILER="$cxx" "$@" > "$work/$name.log" 2>&1; then
    cat "$work/$name.log"
    echo "FAILED: $name"
    exit 1
  fi
  ninja -C "$work/$name" -n outside > "$work/$name.log" || { cat "$work/$name.log"; echo "FAILED: $name, what is to be built"; exit 1; }
  if [[ $expect != *convert* ]] && grep -qi "convert/\|hdf5/serial" "$work/$name.log"; then
    grep -i "convert/\|hdf5/serial" "$work/$name.log"
    echo "FAILED: $name builds the converter"
    exit 1
  fi
  # the project's own installation has nothing of zarrbits, unless it asks for it
  local has_rules=no asked=no
  if grep -rq "file(INSTALL" --include=cmake_install.cmake "$work/$name/zarrbits"; then has_rules=yes; fi
  if [[ "$*" == *ZARRBITS_INSTALL=ON* ]]; then asked=yes; fi
  [ $has_rules = $asked ] || { echo "FAILED: $name: has rules of installation: $has_rules; asked for: $asked"; exit 1; }
  echo "$name: $expect"
}

check without-hdf5 "core;streams;hdf5" -DCMAKE_DISABLE_FIND_PACKAGE_HDF5=ON
check without-boost "core;hdf5" -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
check streams-alone "core;streams" -DZARRBITS_BUILD_CONVERT=OFF -DZARRBITS_BUILD_FILTER=OFF
check shared "core;streams" -DZARRBITS_BUILD_CONVERT=OFF -DZARRBITS_BUILD_FILTER=OFF -DZARRBITS_SHARED=ON
grep -q "libzarrbits_core\.so" "$work/shared.log" || { cat "$work/shared.log"; echo "FAILED: ZARRBITS_SHARED makes no shared core"; exit 1; }
check installed "core;streams;hdf5" -DZARRBITS_BUILD_CONVERT=OFF -DZARRBITS_INSTALL=ON
# the lines of README.md
mkdir "$work/lines"
ln -s "$source" "$work/lines/zarrbits"
touch "$work/lines/main.cpp"
printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(mine CXX)' 'add_executable(mine main.cpp)' > "$work/lines/CMakeLists.txt"
awk '/^To build zarrbits within your own project/ { section = 1 } section && /^```cmake/ { code = 1; next } code && /^```/ { exit } code' "$source/README.md" > "$work/block"
grep -q add_subdirectory "$work/block"
cat "$work/block" >> "$work/lines/CMakeLists.txt"
"$cmake" -G Ninja -S "$work/lines" -B "$work/lines/build" -DCMAKE_CXX_COMPILER="$cxx" > "$work/lines.log" 2>&1 && ninja -C "$work/lines/build" -n mine > "$work/lines.log" ||
  { cat "$work/lines.log"; echo "FAILED: README.md, add_subdirectory"; exit 1; }
grep -q zarrbits_streams "$work/lines.log" || { cat "$work/lines.log"; echo "FAILED: README.md, add_subdirectory: without the streams"; exit 1; }
# by itself, without the streams: then there is no converter, and who asks for it is told so
"$cmake" -G Ninja -S "$source" -B "$work/alone" -DCMAKE_CXX_COMPILER="$cxx" -DZARRBITS_BUILD_STREAMS=OFF -DZARRBITS_BUILD_TESTS=OFF > "$work/alone.log" 2>&1 ||
  { cat "$work/alone.log"; echo "FAILED: ZARRBITS_BUILD_STREAMS=OFF"; exit 1; }
"$cmake" "$work/alone" -DZARRBITS_BUILD_CONVERT=ON > "$work/alone.log" 2>&1 && { echo "FAILED: a converter without the streams"; exit 1; }
grep -q "the converter needs the streams" "$work/alone.log" || { cat "$work/alone.log"; echo "FAILED: no sentence about the streams"; exit 1; }
if [[ $all == *convert* && $all == *hdf5* ]]; then
  check everything "$all"
fi
