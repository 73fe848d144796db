# SPDX-License-Identifier: BSL-1.0
# Completion of `zarrbits` for fish: commands, options and their values, as the command's --help has them; else names of files.
function __zarrbits_help
  set -l words (commandline -opc)
  $words[1] $words[2..2] --help 2>/dev/null
end

function __zarrbits_is_first
  test (count (commandline -opc)) -eq 1
end

function __zarrbits_values
  # "--links keep|copy|refuse": words in lower case are values, others stand for some
  set -l words (commandline -opc)
  string match -q -- '--*' $words[-1]; or return 1
  __zarrbits_help | sed -n "s/^  $(string replace -ra '[^a-z-]' '' -- $words[-1]) \([^ ]*\).*/\1/p" |
    sed 's/\[[^]]*\]//g' | tr '|' '\n' | grep -x '[a-z][a-z0-9-]*'
end

complete -c zarrbits -n __zarrbits_is_first -f -a \
  "(__zarrbits_help | sed -n '/^Commands:/,/^\$/s/^  \([a-z]*\)  *\(.*\)/\1\t\2/p')"
complete -c zarrbits -n 'not __zarrbits_is_first; and string match -q -- "-*" (commandline -ct)' -f -a \
  "(__zarrbits_help | sed -n 's/^  \(-[a-z],\)\{0,1\}\(--[a-z-]*\).*/\2/p')"
complete -c zarrbits -n 'not __zarrbits_is_first; and set -l values (__zarrbits_values); and test -n "$values"' -f -a '(__zarrbits_values)'
