# SPDX-License-Identifier: BSL-1.0
"""Ten times as many chunks take about ten times the processor time, with each index of chunks that HDF5 has.

ZARRBITS_LARGE=1: 10^5 and 10^6 chunks, as scripts/ci/large has it.
Otherwise a tenth of these, which still tells linear from quadratic.
Times on a machine that others use are measured in turn, the shortest counts, and what is too long is measured again."""

import pathlib
import subprocess
import sys
import tempfile

import h5py
import pytest
from h5py import h5d, h5p, h5s, h5t

from harness import COMMAND
from processes import LARGE, run

FEW = 100_000 if LARGE else 10_000
MOST_TIMES = 20  # linear is 5 to 10, and more than 12 on a busy machine; quadratic is 100
MOST_SECONDS = 60  # for 10^6 chunks, to find and to copy them
ROUNDS = 4

OPTIONS = subprocess.run([COMMAND, "convert", "--help"], capture_output=True, text=True, check=True).stdout


def make(path, chunks, libver, unlimited=(), deflate=False):
    """Chunks of 32 bytes; the rank is that of `unlimited`, or 1.
    libhdf5 allocates all of them at once and fills them with zeros."""
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    if deflate:
        properties.set_deflate(1)
    shape = (chunks * 8,) if len(unlimited) < 2 else (chunks, 8)
    properties.set_chunk((8,) if len(shape) == 1 else (1, 8))
    most = tuple(h5s.UNLIMITED if d in unlimited else n for d, n in enumerate(shape))
    with h5py.File(path, "w", libver=libver) as f:
        h5d.create(f.id, b"d", h5t.STD_I32LE, h5s.create_simple(shape, most), properties)


class TestManyChunks:
    @pytest.fixture(autouse=True)
    def begin(self, request):
        self.name = request.node.name

    def linear(self, **how):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            ways = {
                "plan": ["plan", "{in}"],
                "convert to .zip": ["convert", "-q", "--threads", 1, "{in}", folder / "out.zip"],
                "references": ["convert", "-q", "--virtual", "{in}", folder / "out.json"],
            }
            if "--shard" in OPTIONS:
                ways["convert with shards"] = ["convert", "-q", "--threads", 1, "--shard", "4M", "{in}", folder / "out.zarr"]
            sources = {n: folder / f"{n}.h5" for n in (FEW, 10 * FEW)}
            for n, source in sources.items():
                make(source, n, **how)
            for way, command in ways.items():
                shortest = {n: float("inf") for n in sources}
                for _ in range(ROUNDS):
                    for n, source in sources.items():
                        more = ["--overwrite"] if command[0] == "convert" else []
                        taken = run(*(source if c == "{in}" else c for c in command), *more)
                        assert (taken.status, taken.errors) == (0, "")
                        shortest[n] = min(shortest[n], taken.cpu)
                    few, many = shortest.values()
                    if many <= MOST_TIMES * few:
                        break
                print(
                    f"{self.name}: {way}: {FEW} chunks {few:.2f} s, {10 * FEW} chunks {many:.2f} s of CPU: "
                    f"{many / few:.1f} times",
                    file=sys.stderr,
                )
                assert many <= MOST_TIMES * few
                assert many <= MOST_SECONDS

    def test_b_tree(self):
        self.linear(libver="earliest")

    def test_b_tree_of_compressed_chunks(self):
        self.linear(libver="earliest", deflate=True)

    def test_implicit_index(self):
        self.linear(libver="latest")

    def test_fixed_array(self):
        self.linear(libver="latest", deflate=True)

    def test_extensible_array(self):
        self.linear(libver="latest", unlimited=(0,))

    def test_b_tree_of_the_second_version(self):
        self.linear(libver="latest", unlimited=(0, 1))
