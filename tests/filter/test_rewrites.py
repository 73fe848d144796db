# SPDX-License-Identifier: BSL-1.0
"""Chunks written again and again, some with a value that does not fit.

With each filter that may follow packbits, or fletcher32 before it, so many rewrites of random chunks have to leave what was
written last, and none may fail.
ZARRBITS_REWRITES: how many; ZARRBITS_SEED: others.
"""

import glob
import os
import subprocess
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
DEFLATE, SHUFFLE, FLETCHER32, SZIP, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD, BZIP2 = 1, 2, 3, 4, 32000, 32001, 32004, 32008, 32015, 307
CHECK, HERE = (FLETCHER32, 0, ()), (PACKBITS, None, None)
PIPELINES = {
    "alone": [HERE],
    "fletcher32": [HERE, CHECK],
    "fletcher32 before": [CHECK, HERE],
    "deflate": [HERE, (DEFLATE, 1, (4,))],
    "lzf": [HERE, (LZF, 1, ())],
    "shuffle, deflate": [HERE, (SHUFFLE, 0, ()), (DEFLATE, 1, (4,))],
    "fletcher32, deflate": [HERE, CHECK, (DEFLATE, 1, (1,))],
    "deflate, fletcher32": [HERE, (DEFLATE, 1, (1,)), CHECK],
    "fletcher32 before, deflate": [CHECK, HERE, (DEFLATE, 1, (1,))],
    "szip": [HERE, (SZIP, 1, (141, 32))],
    "blosc": [HERE, (BLOSC, 1, ())],
    "lz4": [HERE, (LZ4, 1, ())],
    "bitshuffle": [HERE, (BITSHUFFLE, 1, (0, 2))],
    "zstd": [HERE, (ZSTD, 1, ())],
    "bzip2": [HERE, (BZIP2, 1, (9,))],
}
CHUNKS = 4


class Refused(Exception):
    pass


class Rewritten:
    """A dataset of a few chunks, and its expected values."""

    def __init__(self, file, name, rng, pipeline):
        self.dtype = np.dtype(rng.choice(["u1", "<u2", ">u2", "<u2", "<u4"]))
        width = 8 * self.dtype.itemsize
        self.chunk = int(rng.choice([rng.integers(1, 9), rng.integers(1, 65), rng.integers(100, 600)]))
        # often just below the width, where packed chunks come near to raw ones
        self.bits = int(rng.choice([rng.integers(1, width), rng.integers(max(1, width - 4), width)]))
        padding = int(rng.integers(0, 3))
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((self.chunk,))
        for number, flags, values in pipeline:
            if number == PACKBITS:  # optional, or, as netCDF sets it, mandatory
                dcpl.set_filter(PACKBITS, int(rng.integers(2)), (self.bits, padding))
            else:
                dcpl.set_filter(number, flags, values)
        self.memory = h5py.h5s.create_simple((self.chunk,))
        self.space = h5py.h5s.create_simple((CHUNKS * self.chunk,))
        try:
            self.id = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(self.dtype), self.space, dcpl)
        except ValueError as e:
            packed = (self.chunk * self.bits + 7) // 8 + (padding != 0)
            assert ("zarrbits" in str(e) and packed == self.chunk * self.dtype.itemsize) or "pixels per block" in str(e), e
            raise Refused from None
        self.wanted = np.zeros(CHUNKS * self.chunk, self.dtype)
        self.back = np.empty(self.chunk, self.dtype)

    def rewrite(self, rng):
        """One chunk."""
        first = int(rng.integers(CHUNKS)) * self.chunk
        values = np.zeros(self.chunk, self.dtype)
        for _ in range(int(rng.integers(0, 4))):
            values[rng.integers(self.chunk)] = rng.integers(1 << self.bits)
        if rng.integers(8) == 0:  # what no compressor makes smaller
            values[:] = rng.integers(0, 1 << self.bits, self.chunk)
        if rng.integers(2):  # a misfit
            values[rng.integers(self.chunk)] = rng.integers(1 << self.bits, 1 << 8 * self.dtype.itemsize)
        self.space.select_hyperslab((first,), (self.chunk,))
        self.id.write(self.memory, self.space, values)
        self.wanted[first : first + self.chunk] = values

    def faults(self, start, count):
        """(wrong, unreadable) of a dataset's chunks."""
        wrong = unreadable = 0
        for first in range(start, start + count, self.chunk):
            self.space.select_hyperslab((first,), (self.chunk,))
            try:
                self.id.read(self.memory, self.space, self.back)
                wrong += not np.array_equal(self.back, self.wanted[first : first + self.chunk])
            except OSError:
                unreadable += 1
        return wrong, unreadable


def check(name, path, rng, swmr, **how):
    for number, _, _ in PIPELINES[name]:
        if not h5py.h5z.filter_avail(number):
            pytest.skip(f"there is not a filter {number}")
    datasets, refused, wrong, unreadable = [], 0, 0, 0
    with h5py.File(path, "w", **how) as file:
        while len(datasets) < 40:
            try:
                datasets.append(Rewritten(file, f"d{len(datasets)}", rng, PIPELINES[name]))
            except Refused:
                refused += 1
        if swmr:
            file.swmr_mode = True
        for i in range(REWRITES):
            d = datasets[rng.integers(len(datasets))]
            d.rewrite(rng)
            if "rdcc_nbytes" not in how and i % 7 == 0:
                d.id.flush() if swmr else file.flush()
            start = int(rng.integers(CHUNKS)) * d.chunk
            w, u = d.faults(start, d.chunk)
            wrong, unreadable = wrong + w, unreadable + u
    with h5py.File(path, "r") as file:
        for i, d in enumerate(datasets):
            d.id = file[f"d{i}"].id
            w, u = d.faults(0, CHUNKS * d.chunk)
            wrong, unreadable = wrong + w, unreadable + u
    print(f"{name}: {REWRITES} rewrites, {wrong} wrong, {unreadable} unreadable, {refused} datasets refused")
    assert wrong == 0 and unreadable == 0


@pytest.mark.parametrize("name", PIPELINES)
def test_every_value_is_kept(name, folder):
    """Without a cache of chunks, so that each write and each read goes through the filters."""
    check(
        name,
        os.path.join(folder, "rewrites.h5"),
        np.random.default_rng([SEED, list(PIPELINES).index(name)]),
        False,
        rdcc_nbytes=0,
    )


@pytest.mark.parametrize("name", PIPELINES)
def test_every_value_is_kept_where_a_reader_may_look_on(name, folder):
    """In HDF5's cache and in its newest format, as one who writes while others read."""
    check(
        name,
        os.path.join(folder, "swmr.h5"),
        np.random.default_rng([SEED, 100 + list(PIPELINES).index(name)]),
        True,
        libver="latest",
    )


PROGRAM = """if 1:
    import sys
    import h5py, numpy as np
    path, packbits, flag = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with h5py.File(path, "w") as f:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((256,))
        dcpl.set_filter(packbits, flag, (12,))
        dcpl.set_deflate(4)
        d = h5py.Dataset(h5py.h5d.create(f.id, b"m", h5py.h5t.STD_U16LE, h5py.h5s.create_simple((256,)), dcpl))
        d[:] = 5
        b = np.zeros(256, "u2")
        b[3] = 5000
        d[:] = b
    with h5py.File(path, "r") as f:
        assert np.array_equal(f["m"][:], b)
    print("equal")
    """


@pytest.mark.parametrize("flag", [0, 1])
def test_a_misfit_before_a_compressor_neither_fails_nor_ends_the_process(flag, folder):
    """The chunk stays in HDF5's cache until the file is closed;
    where a filter fails then, libhdf5 ends the process when it ends."""
    r = subprocess.run(
        [sys.executable, "-c", PROGRAM, os.path.join(folder, "m.h5"), str(PACKBITS), str(flag)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (r.returncode, r.stdout, r.stderr) == (0, "equal\n", ""), r
