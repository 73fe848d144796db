#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Installs into a temporary prefix, then builds and runs small programs outside of this project against it: through find_package, and
# through pkg-config. The prefix is moved once before it is used, because an installed tree must not know where it was.
#
#   installs_and_links.sh BUILD_DIR CMAKE CXX "core streams ..."
set -euo pipefail

build=$1
cmake=$2
cxx=$3
read -ra parts <<< "$4"
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DESTDIR=

fail() {
  echo "FAILED: $*"
  exit 1
}

DESTDIR="" "$cmake" --install "$build" --prefix "$work/first" > "$work/install.log" || { cat "$work/install.log"; fail "cmake --install"; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix

if [[ " ${parts[*]} " == *" hdf5 "* ]]; then
  plugins=$(find "$prefix" -name libzarrbits_packbits.so -printf '%h')
  export HDF5_PLUGIN_PATH=$plugins
fi

# the installed documents link to what is installed
documents=$(dirname "$(find "$prefix" -name CONTRIBUTING.md)")
links=0
while IFS=: read -r document link; do
  [ -e "$(dirname "$document")/$link" ] || fail "$document links to $link, which is not installed"
  links=$((links + 1))
done < <(grep -roP --include='*.md' '\]\(\K(?![a-z]+:|#)[^)#\s]+' "$documents")
[ "$links" -gt 20 ] || fail "only $links links are in the installed documents"

# find_package, one outside project for each part
for part in "${parts[@]}"; do
  "$cmake" -G Ninja -S "$here/$part" -B "$work/$part" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release \
    > "$work/$part.log" 2>&1 || { cat "$work/$part.log"; fail "$part: find_package"; }
  "$cmake" --build "$work/$part" > "$work/$part.log" 2>&1 || { cat "$work/$part.log"; fail "$part: build"; }
  if grep -q "warning:" "$work/$part.log"; then
    cat "$work/$part.log"
    fail "$part: warnings in the user's file"
  fi
  (cd "$work/$part" && ./outside) || fail "$part: the program says no"
  echo "find_package(zarrbits COMPONENTS $part): built, ran"
done

# a part that is not there is refused with a sentence, not with a missing target when linking
printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(outside CXX)' 'find_package(zarrbits REQUIRED COMPONENTS nonsense)' > "$work/CMakeLists.txt"
if "$cmake" -G Ninja -S "$work" -B "$work/nonsense" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" > "$work/nonsense.log" 2>&1; then
  fail "find_package(zarrbits REQUIRED COMPONENTS nonsense) found something"
fi
# CMake wraps the lines of its messages
tr -s '\n ' ' ' < "$work/nonsense.log" | grep -q "installed without nonsense" || { cat "$work/nonsense.log"; fail "no sentence about the missing component"; }

# pkg-config
pc_dir=$(dirname "$(find "$prefix" -name zarrbits.pc)")
export PKG_CONFIG_PATH=$pc_dir
for part in "${parts[@]}"; do
  [ "$part" = hdf5 ] && continue  # a header; plugindir, below, is what it needs
  package=zarrbits-$part
  [ "$part" = core ] && package=zarrbits
  pkg-config --validate "$package" || fail "pkg-config --validate $package"
  read -ra flags <<< "$(pkg-config --cflags "$package")"
  read -ra libraries <<< "$(pkg-config --libs "$package")"
  compiler=("$cxx" -std=c++20) program=$here/$part/main.cpp
  [ "$part" = streams ] && program=$here/../../examples/stream.cpp
  [ "$part" = c ] && compiler=(cc -std=c99) program=$here/c/main.c
  "${compiler[@]}" -Wall -Wextra -Werror "${flags[@]}" "$program" -o "$work/pc-$part" "${libraries[@]}" || fail "pkg-config $package: build"
  (cd "$work" && LD_LIBRARY_PATH=$(pkg-config --variable=libdir "$package") "./pc-$part") || fail "pkg-config $package: the program says no"
  echo "pkg-config $package: built, ran"
done
[ "$(pkg-config --modversion zarrbits)" = "$(sed -n 's/.*ZARRBITS_VERSION_STRING "\(.*\)".*/\1/p' "$prefix/include/zarrbits/version.hpp")" ] ||
  fail "pkg-config and version.hpp give different versions"

# the lines of the documents, with their programs
block() {  # block HEADING LANGUAGE: the first one of README.md after the heading
  awk -v heading="$1" -v fence="^\`\`\`$2\$" 'index($0, heading) == 1 { section = 1 } section && $0 ~ fence { code = 1; next } code && /^```/ { exit } code' "$documents/README.md"
}
builds() {  # builds FOLDER PAGE LINE PROGRAM: the line that begins so builds the program, which runs
  local line
  line=$(grep -o "$3[^\`]*" "$documents/$2") || fail "$2 does not have the line $3"
  (cd "$1" && LD_LIBRARY_PATH=$(pkg-config --variable=libdir zarrbits) && export LD_LIBRARY_PATH && bash -ec "$line" && "./$4") || fail "$2: $line"
  echo "$2: $line: built, ran"
}
mkdir "$work/lines"
if [ -n "${plugins:-}" ] && pkg-config --exists hdf5; then
  block "### HDF5, from C++" cpp > "$work/lines/recorder.cpp"
  builds "$work/lines" README.md "c++ .*recorder\.cpp" recorder
fi
if [[ " ${parts[*]} " == *" streams "* ]]; then
  block "### C++ streams" cpp > "$work/lines/main.cpp"
  builds "$work/lines" README.md "c++ .*main\.cpp" a.out
  block "## Install and use" cmake > "$work/lines/CMakeLists.txt"
  "$cmake" -G Ninja -S "$work/lines" -B "$work/lines/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" > "$work/lines.log" 2>&1 &&
    "$cmake" --build "$work/lines/build" >> "$work/lines.log" 2>&1 && (cd "$work/lines" && build/mine) || { cat "$work/lines.log"; fail "README.md: its CMakeLists.txt"; }
  echo "README.md: its CMakeLists.txt: built, ran"
fi
if [[ " ${parts[*]} " == *" c "* ]]; then
  cp "$documents/examples/packbits.c" "$work/lines"
  builds "$work/lines" docs/guide/c.md "cc packbits.c" a.out
fi

# the contract program writes the bytes of 0xABC, 0xABC packed from the least significant end
if [ -e "$work/streams/frame.bits" ]; then
  [ "$(stat -c %s "$work/streams/frame.bits")" = $(((1 << 20) * 12 / 8)) ] || fail "frame.bits has another size than 12 bits for each pixel"
  [ "$(od -An -tx1 -N3 "$work/streams/frame.bits" | tr -d ' ')" = bccaab ] || fail "frame.bits does not begin with bc ca ab"
fi

if [ -n "${plugins:-}" ]; then
  plugindir=$(pkg-config --variable=plugindir zarrbits)
  for name in packbits bytes; do
    [ -f "$plugindir/libzarrbits_$name.so" ] || fail "plugindir of pkg-config, $plugindir, has no libzarrbits_$name.so"
  done
  [ "$(find "$plugindir" -mindepth 1 | wc -l)" = 2 ] || fail "plugindir holds other files than the plugins: $(ls "$plugindir")"
fi
if [ -e "$prefix/bin/zarrbits" ]; then
  "$prefix/bin/zarrbits" --version > /dev/null || fail "the installed command does not run"
fi
echo "installed package: ${#parts[@]} parts through find_package and pkg-config"
