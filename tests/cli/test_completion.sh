#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# bash completes commands, options and values; zsh's file is at least a program, where zsh is installed.
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
check "" verify nothing-such
for command in convert plan finalize verify inspect encode decode doctor suggest; do
  check "$command" "$command"
  check "--help" "$command" --hel
done
if command -v zsh > /dev/null; then
  zsh -n "$folder/_zarrbits"
  echo "zsh: the syntax is right"
else
  echo "SKIPPED: zsh is not installed"
fi
