#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -euo pipefail

export CMAKE_ARGS="${CMAKE_ARGS:-} -DCMAKE_PREFIX_PATH=$PREFIX -DZARRBITS_S3=ON"
"$PYTHON" -m pip install . --no-deps --no-build-isolation -vv
# the Python package has the plugins, too, and finds its own; this folder is for every other program of the environment
mkdir -p "$PREFIX/lib/hdf5/plugin"
cp "$SP_DIR"/zarrbits/plugins/libzarrbits_*."${SHLIB_EXT#.}" "$PREFIX/lib/hdf5/plugin"
for when in activate deactivate; do
  mkdir -p "$PREFIX/etc/conda/$when.d"
  cp "$RECIPE_DIR/$when.sh" "$PREFIX/etc/conda/$when.d/zarrbits.sh"
done
