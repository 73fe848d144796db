#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Who compiles in a way that zarrbits does not take is told so in one sentence, by every public header.
#
#   requirements.sh INCLUDE_DIR CXX LIBRARIES...
set -euo pipefail

include=$1
cxx=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

refused() {  # refused SENTENCE LINES COMMAND...: at most that many lines
  local sentence=$1 lines=$2
  shift 2
  if "$@" > "$work/said" 2>&1; then
    echo "succeeds: $*"
  elif ! grep -qF "$sentence" "$work/said" || [ "$(wc -l < "$work/said")" -gt "$lines" ]; then
    echo "does not say \"$sentence\" in $lines lines: $*"
    head -n 20 "$work/said"
  else
    return 0
  fi
  failed=$((failed + 1))
}

casting='/(iostreams|checked|encoder|seekable_decoder)\.hpp$'
throwing='/(zarrbits|chunk|source_name|convert|verify|inspect|iostreams|checked|codec_error|elements|encoder|seekable_decoder)\.hpp$'
count=0
while IFS= read -r header; do
  printf '#include <%s>\nint main() { return 0; }\n' "${header#"$include"/}" > "$work/one.cpp"
  [[ $header = */version.hpp ]] && continue  # needs nothing
  count=$((count + 1))
  for standard in c++11 c++17; do
    refused "zarrbits needs C++20: compile with -std=c++20" 12 "$cxx" -std=$standard -I "$include" -fsyntax-only "$work/one.cpp"
  done
  if [[ $header =~ $throwing ]]; then
    refused "compile without -fno-exceptions" 12 "$cxx" -std=c++20 -fno-exceptions -I "$include" -fsyntax-only "$work/one.cpp"
  fi
  if [[ $header =~ $casting ]]; then
    refused "compile without -fno-rtti" 12 "$cxx" -std=c++20 -fno-rtti -I "$include" -fsyntax-only "$work/one.cpp"
  fi
done < <(find "$include/zarrbits" -name '*.hpp' -not -path '*/detail/*' | sort)
[ "$count" -ge 15 ] || { echo "only $count headers were found"; failed=1; }

# A vector of another layout would be garbage: it does not link, and the missing name says why.
cat > "$work/debug.cpp" << 'END'
#include <zarrbits/zarrbits.hpp>
int main() { return zarrbits::encode(zarrbits::packbits("bool"), std::vector<unsigned char>{1, 0, 1})[0] != std::byte{5}; }
END
"$cxx" -std=c++20 -I "$include" "$work/debug.cpp" "$@" -o "$work/debug"
"$work/debug"
refused "zarrbits::detail::library_was_built_with_GLIBCXX_DEBUG" 12 "$cxx" -std=c++20 -D_GLIBCXX_DEBUG -I "$include" "$work/debug.cpp" "$@" -o "$work/debug"
[ "$failed" -eq 0 ]
