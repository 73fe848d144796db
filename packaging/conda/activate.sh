# SPDX-License-Identifier: BSL-1.0
# HDF5 of this environment, and programs that bring their own, look for plugins in the environment, and where they did before.
# shellcheck shell=sh
case ":${HDF5_PLUGIN_PATH:-}:" in
  *":$CONDA_PREFIX/lib/hdf5/plugin:"*) ;; # another package did it, and undoes it
  *)
    export HDF5_PLUGIN_PATH="$CONDA_PREFIX/lib/hdf5/plugin${HDF5_PLUGIN_PATH:+:$HDF5_PLUGIN_PATH}"
    export ZARRBITS_ACTIVATED="$CONDA_PREFIX"
    ;;
esac
