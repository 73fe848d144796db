# SPDX-License-Identifier: BSL-1.0
# Completion of `zarrbits` for bash: commands and options, as the command itself tells them; else names of files.
_zarrbits() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="--help --version $("$1" --help 2> /dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p')"
  elif [[ $current == -* ]]; then
    words=$("$1" "${COMP_WORDS[1]}" --help 2> /dev/null | sed -n 's/^  \(-[a-z],\)\{0,1\}\(--[a-z-]*\).*/\2/p')
  else
    case $previous in
      --convention) words="none netcdf anndata nwb nexus matlab pytables" ;;
      --links) words="keep copy refuse" ;;
      --order) words="given name value" ;;
      --different) words="refuse first skip" ;;
      --profile) words="portable native recode" ;;
      --for) words="both time-series maps" ;;
      --grid) words="regular rectilinear" ;;
      --codec) words="bytes packbits" ;;
      --shard) words="16M 64M 256M" ;;
      --partition) words="slurm mpi" ;;
      --bits) words="auto" ;;
      --log-format) words="text json" ;;
      --filter) words="none deflate:4 zstd:3" ;;
      --filters) words="standard any" ;;
      --libver) words="compatible latest" ;;
      --nan) words="bits any" ;;
      --compress) words="none gzip:6 zstd:3 blosc:zstd:5 blosc:lz4:5" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  [ -n "$words" ] || compopt -o default 2> /dev/null
}
complete -F _zarrbits zarrbits
