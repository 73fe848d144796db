# SPDX-License-Identifier: BSL-1.0
"""Frames of an X-ray detector, as its file writer stores them: uint32, bitshuffle with LZ4, a frame in each chunk.

convert_counts.py OUT.h5 FRAMES
"""

import sys

import h5py
import hdf5plugin
import numpy as np

rng = np.random.default_rng(1)
with h5py.File(sys.argv[1], "w") as f:
    d = f.create_dataset(
        "x", shape=(int(sys.argv[2]), 1024, 1024), dtype="u4", chunks=(1, 1024, 1024), **hdf5plugin.Bitshuffle(cname="lz4")
    )
    for i in range(d.shape[0]):
        d[i] = rng.poisson(3, d.shape[1:]).astype("u4")
