#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# bash and fish complete commands, options and values; zsh's file is at least a program. Shells that are not installed are skipped.
set -euo pipefail
folder=$(cd "$(dirname "$0")/../../command/completion" && pwd)
# shellcheck source=/dev/null
source "$folder/zarrbits.bash"

complete_line() {  # complete_line WORDS...: prints what the last one may become
  COMP_WORDS=("$ZARRBITS_COMMAND" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _zarrbits "$ZARRBITS_COMMAND"
  echo "${COMPREPLY[*]}"
}
check() {  # check WANTED WORDS...
  local wanted=$1 got
  shift
  got=$(complete_line "$@")
  if [ "$got" != "$wanted" ]; then
    echo "completing \"$*\": \"$got\" instead of \"$wanted\"" >&2
    exit 1
  fi
}
check "convert" con
check "finalize" f
check "--overwrite" convert --ov
check "--strict-padding" decode --str
check "portable" convert --profile p
check "anndata" convert --convention a
check "none gzip zstd blosc" convert --compress ""
check "slurm mpi" convert --partition ""
check "none" convert --shard ""
check "both time-series maps" suggest --for ""
check "none deflate zstd" repack --filter ""
check "" verify nothing-such
check "" convert --memory ""
for command in convert plan finalize export repack rename verify digest check inspect encode decode doctor suggest; do
  check "$command" "$command"
  check "--help" "$command" --hel
done
if command -v zsh > /dev/null; then
  zsh -n "$folder/_zarrbits"
  echo "zsh: the syntax is right"
else
  echo "SKIPPED: zsh is not installed"
fi

fish_completes() {  # fish_completes WANTED LINE
  local got
  got=$(cd / && PATH=$(dirname "$ZARRBITS_COMMAND"):$PATH fish --no-config -c "source '$folder/zarrbits.fish'; complete -C '$2'" | cut -f 1 | tr '\n' ' ')
  if [ "${got% }" != "$1" ]; then
    echo "completing \"$2\" in fish: \"${got% }\" instead of \"$1\"" >&2
    exit 1
  fi
}
if command -v fish > /dev/null; then
  fish_completes "convert" "zarrbits con"
  fish_completes "copy keep refuse" "zarrbits convert --links "
  fish_completes "portable" "zarrbits convert --profile p"
  fish_completes "--overwrite" "zarrbits convert --ov"
  fish_completes "etc/" "zarrbits verify et"
  fish_completes "etc/" "zarrbits convert --overwrite et"
else
  echo "SKIPPED: fish is not installed"
fi
