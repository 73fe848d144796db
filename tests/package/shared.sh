#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# The core as a shared library (ZARRBITS_SHARED): built, installed, moved and used as the static one is (installs_and_links.sh); what it exports is what
# the public headers mark, under a version of its own; and libabigail can compare it with another.
#
#   shared.sh SOURCE_DIR CMAKE CXX "core streams"
set -euo pipefail

source=$1
cmake=$2
cxx=$3
parts=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*"
  exit 1
}

# Debug: types for libabigail, and the most symbols of templates that could show
"$cmake" -G Ninja -S "$source" -B "$work/build" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=ON -DZARRBITS_SHARED=ON -DZARRBITS_BUILD_CONVERT=OFF \
  -DZARRBITS_BUILD_FILTER=OFF -DZARRBITS_BUILD_LIBRARY=OFF -DZARRBITS_BUILD_TESTS=OFF -DZARRBITS_BUILD_EXAMPLES=OFF > "$work/log" 2>&1 || { cat "$work/log"; fail "configuring"; }
"$cmake" --build "$work/build" > "$work/log" 2>&1 || { cat "$work/log"; fail "building"; }

version=$(sed -n 's/.*ZARRBITS_VERSION_STRING "\(.*\)".*/\1/p' "$source/include/zarrbits/version.hpp")
soversion=${version%%.*}
[ "$soversion" != 0 ] || soversion=${version%.*}
library=$work/build/core/libzarrbits_core.so
dynamic=$(readelf -d "$library")
grep -qF "soname: [libzarrbits_core.so.$soversion]" <<< "$dynamic" || fail "the SONAME does not end in $soversion: $dynamic"
[ "$(readlink -f "$library")" = "$library.$version" ] || fail "libzarrbits_core.so leads to $(readlink -f "$library")"

# a name for each line: what is exported, and under which version
nm -DC --defined-only --with-symbol-versions "$library" | sed -n 's/^[0-9a-f]* [^A] //p' > "$work/exported"
if grep -vE '^((typeinfo|typeinfo name|vtable) for )?zarrbits::' "$work/exported"; then
  fail "these are exported"
fi
private='^zarrbits::detail::(first_refused|kernels|load_component|parse_node_json|parse_python_json|portable_kernels|with_kernels)\b'
public=$(grep -vE "$private" "$work/exported")
grep -qF 'zarrbits::encode_chunk(' <<< "$public" || fail "encode_chunk is not exported"
if grep -vF "@@ZARRBITS_$soversion" <<< "$public"; then
  fail "these have another version than ZARRBITS_$soversion"
fi
if grep -E "$private" "$work/exported" | grep -vF "@@ZARRBITS_PRIVATE_$version"; then
  fail "these are for the converter alone, and have another version than ZARRBITS_PRIVATE_$version"
fi

# programs outside of this project, in each way; and they do use the shared one
"$here/installs_and_links.sh" "$work/build" "$cmake" "$cxx" "$parts"
DESTDIR="" "$cmake" --install "$work/build" --prefix "$work/prefix" > "$work/log"
package() {  # package OPTION...: what pkg-config says
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name zarrbits.pc)") pkg-config "$@" zarrbits
}
read -ra flags <<< "$(package --cflags --libs)"
# -fvisibility=hidden: the exception that the library throws is the one that the program catches all the same
cat > "$work/catches.cpp" << 'END'
#include <zarrbits/zarrbits.hpp>
int main() {
  try {
    (void)zarrbits::packbits("uint16", {.last_bit = 16});
  } catch (const zarrbits::error& e) {
    return e.kind() == zarrbits::errc::invalid_configuration ? 0 : 1;
  }
  return 2;
}
END
"$cxx" -std=c++20 -fvisibility=hidden -Wall -Wextra -Werror "$work/catches.cpp" -o "$work/catches" "${flags[@]}" || fail "the program that catches does not build"
readelf -d "$work/catches" | grep -qF "[libzarrbits_core.so.$soversion]" || fail "the program was not linked with the shared core"
LD_LIBRARY_PATH=$(package --variable=libdir) "$work/catches" || fail "the exception of the library is not the program's"

if ! command -v abidiff > /dev/null; then
  echo "SKIPPED: abidiff is not installed (Debian: abigail-tools); everything else of the shared core was tested"
  exit 0
fi
# docs/reference/versions.md has this command. The same library is the same; one without a function is not.
abidw --headers-dir "$work/prefix/include" --drop-private-types --out-file "$work/now.abi" "$library"
abidiff --headers-dir2 "$work/prefix/include" --drop-private-types "$work/now.abi" "$library" || fail "abidiff finds a difference between a library and itself"
grep -v "elf-symbol name='_ZNK8zarrbits5codec19needs_element_countEv'" "$work/now.abi" > "$work/other.abi"
status=0
abidiff --drop-private-types "$work/now.abi" "$work/other.abi" > "$work/log" || status=$?
[ $((status & 8)) -ne 0 ] && grep -q "1 Removed function" "$work/log" || { cat "$work/log"; fail "abidiff does not find that a function is gone (exit status $status)"; }
if grep -q "name='codec_state'.*size-in-bits" "$work/now.abi"; then
  fail "what is private, codec_state, is part of the ABI"
fi
echo "shared core: exports $(wc -l < "$work/exported") names; abidiff compares it"
