# SPDX-License-Identifier: BSL-1.0
"""Runs zarrbits doctor and suggest for their tests, and makes a file for both."""

import os

import h5py
import numpy as np

import harness

PLUGINS, PACKBITS, BYTES = (
    os.environ["ZARRBITS_PLUGINS"],
    int(os.environ["ZARRBITS_PACKBITS_ID"]),
    int(os.environ["ZARRBITS_BYTES_ID"]),
)


def run(*arguments, path=PLUGINS, status=0, **variables):
    """What it prints; of wrong usage what it says."""
    variables = {**os.environ, **variables}
    variables.pop("HDF5_PLUGIN_PATH", None)
    if path is not None:
        variables["HDF5_PLUGIN_PATH"] = str(path)
    done = harness.run(*arguments, status=status, env=variables)
    return done.stdout if status != 2 else done.stderr


def write_packed(packed):
    v = np.arange(4 * 64, dtype="u2").reshape(4, 64)
    v[1, 7] = 4096
    with h5py.File(packed, "w") as f:
        f.create_dataset("camera", data=v, chunks=(1, 64), compression=PACKBITS, compression_opts=(12,))
        f.create_dataset("checked", data=v, chunks=(1, 64), compression=PACKBITS, compression_opts=(12, 2), fletcher32=True)
        f.create_dataset("mask", data=np.ones(99, bool), chunks=(50,), compression=PACKBITS)
        f.create_dataset("edge", data=np.zeros(70, "u2"), chunks=(64,), compression=PACKBITS, compression_opts=(3,), fillvalue=9)
        f.create_dataset("big", data=v, chunks=(4, 64), compression=BYTES, compression_opts=(1,))
        f["plain"] = v
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((64,))
        dcpl.set_filter(PACKBITS, 0, (5,))
        h5py.h5d.create(f.id, b"mandatory", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((64,)), dcpl)
