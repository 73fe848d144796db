#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Every public header compiles as the only include of a file, without a warning: who includes it should not have to know what else it
# wants, nor see warnings that are ours. And with macros named min and max, which <windows.h> defines, once what it includes itself is in.
#
#   headers_compile_alone.sh INCLUDE_DIR HDF5_INCLUDE_DIRS CXX CC
set -euo pipefail

include=$1
hdf5_include=$2
cxx=$3
cc=$4
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
hdf5_flags=()
IFS=';' read -ra dirs <<< "$hdf5_include"
for dir in "${dirs[@]}"; do
  hdf5_flags+=(-isystem "$dir")
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
compiled=0
check() {  # check NAME COMMAND...
  local name=$1
  shift
  if "$@"; then
    compiled=$((compiled + 1))
  else
    echo "$name does not compile"
    failed=$((failed + 1))
  fi
}

all=
foreign=$(grep -h '^#include <' -r "$include" | grep -v '<zarrbits/\|<hdf5' | sort -u)
while IFS= read -r -d '' header; do
  name=${header#"$include"/}
  # twice: a missing include guard shows as well
  printf '#include <%s>\n#include <%s>\nint main() { return 0; }\n' "$name" "$name" > "$work/alone.cpp"
  check "$name" "$cxx" -std=c++20 "${warnings[@]}" -I "$include" "${hdf5_flags[@]}" -fsyntax-only "$work/alone.cpp"
  case $name in
    *.h)
      printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$name" "$name" > "$work/alone.c"
      check "$name (C)" "$cc" -std=c99 "${warnings[@]}" -I "$include" "${hdf5_flags[@]}" -fsyntax-only "$work/alone.c"
      ;;
  esac
  all+="#include <$name>"$'\n'
done < <(find "$include" -name '*.h' -print0 -o -name '*.hpp' -print0 | sort -z)

# what others wrote comes first: it knows no such macros
printf '%s\n#define min(a, b) ((a) < (b) ? (a) : (b))\n#define max(a, b) ((a) < (b) ? (b) : (a))\n%sint main() { return 0; }\n' "$foreign" "$all" > "$work/macros.cpp"
check "one of the headers, with macros named min and max," "$cxx" -std=c++20 "${warnings[@]}" -I "$include" "${hdf5_flags[@]}" -fsyntax-only "$work/macros.cpp"

echo "$compiled programs of one header compile, $failed do not"
[ "$compiled" -gt 0 ] && [ "$failed" -eq 0 ]
