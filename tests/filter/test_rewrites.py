# SPDX-License-Identifier: BSL-1.0
"""Chunks written again and again, some with a value that does not fit.

libhdf5 leaves a chunk's filter mask where the chunk is stored again with the same size, so that what changes between packed and raw, or between
compressed and not, may be misread for ever. With each filter that may follow packbits, so many rewrites of random chunks have to leave what was
written last; a write that fails has to leave what was there before.
ZARRBITS_REWRITES: how many; ZARRBITS_SEED: others.
"""
import glob
import os
import sys

# Debian's h5py finds Debian's plugins, which are linked to its libhdf5
others = glob.glob("/usr/lib/*/hdf5/serial/plugins") + glob.glob("/usr/lib/*/hdf5/plugins") if sys.prefix == "/usr" else []
os.environ["HDF5_PLUGIN_PATH"] = os.pathsep.join([os.environ["ZARRBITS_PLUGINS"], *others])
os.environ["ZARRBITS_HDF5_LOG"] = "0"

import h5py
import numpy as np
import pytest

try:
    import hdf5plugin  # noqa: F401  more filters, if it is there
except ImportError:
    pass

PACKBITS = int(os.environ["ZARRBITS_PACKBITS_ID"])
REWRITES, SEED = int(os.environ.get("ZARRBITS_REWRITES", "600")), int(os.environ.get("ZARRBITS_SEED", "17"))
DEFLATE, SHUFFLE, FLETCHER32, LZF, BLOSC, LZ4, ZSTD, BZIP2 = 1, 2, 3, 32000, 32001, 32004, 32015, 307
AFTER = {"nothing": [], "fletcher32": [(FLETCHER32, 0, ())], "deflate": [(DEFLATE, 1, (4,))], "lzf": [(LZF, 1, ())],
         "shuffle, deflate": [(SHUFFLE, 0, ()), (DEFLATE, 1, (4,))], "fletcher32, deflate": [(FLETCHER32, 0, ()), (DEFLATE, 1, (1,))],
         "blosc": [(BLOSC, 1, ())], "lz4": [(LZ4, 1, ())], "zstd": [(ZSTD, 1, ())], "bzip2": [(BZIP2, 1, (9,))]}
CHUNKS = 4


class Refused(Exception):
    pass


class Rewritten:
    """A dataset of a few chunks, and its expected values."""

    def __init__(self, file, name, rng, after):
        self.dtype = np.dtype(rng.choice(["u1", "<u2", ">u2", "<u2", "<u4"]))
        width = 8 * self.dtype.itemsize
        self.chunk = int(rng.choice([rng.integers(1, 9), rng.integers(1, 65), rng.integers(100, 600)]))
        # often just below the width, where packed chunks come near to raw ones
        self.bits = int(rng.choice([rng.integers(1, width), rng.integers(max(1, width - 4), width)]))
        padding = int(rng.integers(0, 3))
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((self.chunk,))
        dcpl.set_filter(PACKBITS, h5py.h5z.FLAG_OPTIONAL, (self.bits, padding))
        for number, flags, values in after:
            dcpl.set_filter(number, flags, values)
        self.memory = h5py.h5s.create_simple((self.chunk,))
        self.space = h5py.h5s.create_simple((CHUNKS * self.chunk,))
        try:
            self.id = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(self.dtype), self.space, dcpl)
        except ValueError as e:
            packed = (self.chunk * self.bits + 7) // 8 + (padding != 0)
            assert "zarrbits" in str(e) and packed == self.chunk * self.dtype.itemsize, e
            raise Refused from None
        self.wanted = np.zeros(CHUNKS * self.chunk, self.dtype)
        self.back = np.empty(self.chunk, self.dtype)

    def rewrite(self, rng):
        """One chunk; False where HDF5 does not take it."""
        first = int(rng.integers(CHUNKS)) * self.chunk
        values = np.zeros(self.chunk, self.dtype)
        for _ in range(int(rng.integers(0, 4))):
            values[rng.integers(self.chunk)] = rng.integers(1 << self.bits)
        if rng.integers(8) == 0:  # what no compressor makes smaller
            values[:] = rng.integers(0, 1 << self.bits, self.chunk)
        misfit = bool(rng.integers(2))
        if misfit:
            values[rng.integers(self.chunk)] = rng.integers(1 << self.bits, 1 << 8 * self.dtype.itemsize)
        self.space.select_hyperslab((first,), (self.chunk,))
        try:
            self.id.write(self.memory, self.space, values)
        except OSError:
            assert misfit
            return False
        self.wanted[first:first + self.chunk] = values
        return True

    def faults(self, start, count):
        """(wrong, unreadable) of a dataset's chunks."""
        wrong = unreadable = 0
        for first in range(start, start + count, self.chunk):
            self.space.select_hyperslab((first,), (self.chunk,))
            try:
                self.id.read(self.memory, self.space, self.back)
                wrong += not np.array_equal(self.back, self.wanted[first:first + self.chunk])
            except OSError:
                unreadable += 1
        return wrong, unreadable


@pytest.mark.parametrize("name", AFTER)
def test_every_value_is_kept(name, folder):
    for number, _, _ in AFTER[name]:
        if not h5py.h5z.filter_avail(number):
            pytest.skip(f"there is no filter {number}")
    rng = np.random.default_rng([SEED, list(AFTER).index(name)])
    path = os.path.join(folder, "rewrites.h5")
    datasets, refused, errors, wrong, unreadable = [], 0, 0, 0, 0
    # without a cache of chunks, so that each write and each read goes through the filters
    with h5py.File(path, "w", rdcc_nbytes=0) as file:
        while len(datasets) < 40:
            try:
                datasets.append(Rewritten(file, f"d{len(datasets)}", rng, AFTER[name]))
            except Refused:
                refused += 1
        for _ in range(REWRITES):
            d = datasets[rng.integers(len(datasets))]
            errors += not d.rewrite(rng)
            start = int(rng.integers(CHUNKS)) * d.chunk
            w, u = d.faults(start, d.chunk)
            wrong, unreadable = wrong + w, unreadable + u
    with h5py.File(path, "r") as file:
        for i, d in enumerate(datasets):
            d.id = file[f"d{i}"].id
            w, u = d.faults(0, CHUNKS * d.chunk)
            wrong, unreadable = wrong + w, unreadable + u
    print(f"packbits, then {name}: {REWRITES} rewrites, {wrong} wrong, {unreadable} unreadable, {errors} writes failed, {refused} datasets refused")
    follows = bool(AFTER[name]) and name != "fletcher32"
    assert wrong == 0 and unreadable == 0 and (errors > 0) == follows
