# SPDX-License-Identifier: BSL-1.0
# Completion of `zarrbits` for bash: commands, options and their values, as the command's --help has them; else names of files.
_zarrbits() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="--help --version $("$1" --help 2> /dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p')"
  elif [[ $current == -* ]]; then
    words=$("$1" "${COMP_WORDS[1]}" --help 2> /dev/null | sed -n 's/^  \(-[a-z],\)\{0,1\}\(--[a-z-]*\).*/\2/p')
  elif [[ $previous == --* ]]; then
    # "--links keep|copy|refuse": words in lower case are values, others stand for some
    words=$("$1" "${COMP_WORDS[1]}" --help 2> /dev/null | sed -n "s/^  ${previous//[^a-z-]/} \([^ ]*\).*/\1/p" |
      sed 's/\[[^]]*\]//g' | tr '|' '\n' | grep -x '[a-z][a-z0-9-]*')
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  [ -n "$words" ] || compopt -o default 2> /dev/null
}
complete -F _zarrbits zarrbits
