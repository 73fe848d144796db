# SPDX-License-Identifier: BSL-1.0
# Takes out what activate.sh put in, wherever it is now.
# shellcheck shell=sh
if [ "${ZARRBITS_ACTIVATED:-}" = "$CONDA_PREFIX" ]; then
  unset ZARRBITS_ACTIVATED
  HDF5_PLUGIN_PATH=":${HDF5_PLUGIN_PATH:-}:"
  case "$HDF5_PLUGIN_PATH" in
    *":$CONDA_PREFIX/lib/hdf5/plugin:"*)
      HDF5_PLUGIN_PATH="${HDF5_PLUGIN_PATH%%":$CONDA_PREFIX/lib/hdf5/plugin:"*}:${HDF5_PLUGIN_PATH#*":$CONDA_PREFIX/lib/hdf5/plugin:"}"
      ;;
  esac
  HDF5_PLUGIN_PATH="${HDF5_PLUGIN_PATH#:}"
  HDF5_PLUGIN_PATH="${HDF5_PLUGIN_PATH%:}"
  if [ -n "$HDF5_PLUGIN_PATH" ]; then
    export HDF5_PLUGIN_PATH
  else
    unset HDF5_PLUGIN_PATH
  fi
fi
