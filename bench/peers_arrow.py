# SPDX-License-Identifier: BSL-1.0
"""Apache Arrow, whose arrays of bools are packed bits: making one from numpy's bools, and back. Run as peers.py is."""

import numpy as np
import pyarrow

import peers


def measure(bench, n, noise):
    truth = bench.source.view(bool)
    bench.source[:] = noise(n) & 1
    packed = pyarrow.array(truth)
    assert packed.buffers()[1].size == n // 8 and np.array_equal(packed.to_numpy(zero_copy_only=False), truth)
    bench.measure("encode/bool", "Arrow (pyarrow.array)", n, lambda: pyarrow.array(truth))
    bench.measure("decode/bool", "Arrow (to_numpy)", n, lambda: packed.to_numpy(zero_copy_only=False))


peers.main([measure])
