# SPDX-License-Identifier: BSL-1.0
"""--memory limits the process: prints the peak of its resident memory for each case.
A warning names chunks for which it is not enough.

ZARRBITS_LARGE=1 adds datasets of 4 GiB and a single chunk of 400 MiB under the default bound,
which take a minute and the room."""

import json
import sys
import zlib

import h5py
import numpy as np
import pytest
from h5py import h5a, h5d, h5p, h5s, h5t

from processes import LARGE, run

MIB = 1 << 20


def allocated(f, name, size, chunk=None):
    """Stored zeros (in a file with holes): HDF5 has allocated the space, and nobody has written to it."""
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5d.FILL_TIME_NEVER)
    if chunk:
        properties.set_chunk((chunk,))
    h5d.create(f.id, name.encode(), h5t.STD_U8LE, h5s.create_simple((size,)), properties)


def compressed(f, name, size, chunk, shuffle=False):
    """u4 values, all chunks the same, through deflate or shuffle and deflate."""
    values = np.arange(chunk // 4, dtype="<u4") % 1000
    d = f.create_dataset(name, (size // 4,), "<u4", chunks=(chunk // 4,), compression="gzip", shuffle=shuffle)
    stored = zlib.compress(np.ascontiguousarray(values.view("u1").reshape(-1, 4).T) if shuffle else values, 1)
    for i in range(0, size, chunk):
        d.id.write_direct_chunk((i // 4,), stored)


class TestMemory:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path, request):
        self.name = request.node.name
        self.source = tmp_path / "in.h5"

    def convert(self, make, *options, threads=2):
        with h5py.File(self.source, "w") as f:
            make(f)
        return run("convert", "-q", "--overwrite", self.source, self.source.with_suffix(".zarr"), "--threads", threads, *options)

    def within(self, bound, make, *options, default=False, **how):
        """Converts without a warning, and returns the peak in MiB."""
        taken = self.convert(make, *([] if default else ["--memory", f"{bound}M"]), *options, **how)
        print(f"{self.name}: peak {taken.peak / MIB:.0f} of {bound} MiB, {taken.cpu:.1f} s of CPU", file=sys.stderr)
        assert (taken.status, taken.errors) == (0, "")
        assert taken.peak <= bound * MIB

    def test_contiguous(self):
        self.within(64, lambda f: allocated(f, "d", 300 * MIB))

    def test_chunks_that_are_copied(self):
        self.within(64, lambda f: allocated(f, "d", 300 * MIB, 8 * MIB))

    def test_chunks_each_of_which_takes_more_than_half(self):
        self.within(64, lambda f: allocated(f, "d", 300 * MIB, 40 * MIB))

    def test_one_large_chunk_that_is_copied(self):
        self.within(128, lambda f: allocated(f, "d", 100 * MIB, 100 * MIB))

    def test_deflate(self):
        self.within(64, lambda f: compressed(f, "d", 300 * MIB, 8 * MIB))

    def test_encoded_anew_on_more_threads_than_fit(self):
        self.within(128, lambda f: compressed(f, "d", 512 * MIB, 16 * MIB, shuffle=True), threads=8)

    def test_shards(self):
        self.within(64, lambda f: allocated(f, "d", 300 * MIB, 4 * MIB), "--shard", "128M")

    def test_shards_of_chunks_that_get_a_checksum(self):
        self.within(64, lambda f: allocated(f, "d", 300 * MIB), "--shard", "128M", "--checksum", "crc32c")
        self.within(64, lambda f: allocated(f, "d", 300 * MIB, 4 * MIB), "--shard", "128M", "--checksum", "crc32c")

    def test_chunks_of_another_shape(self):
        self.within(128, lambda f: compressed(f, "d", 200 * MIB, 8 * MIB), "--chunk", "3000000,", "--compress", "zstd:1")

    def test_into_a_zip(self):
        with h5py.File(self.source, "w") as f:
            allocated(f, "d", 100 * MIB, 8 * MIB)
        taken = run("convert", "-q", self.source, self.source.with_suffix(".zip"), "--memory", "64M")
        assert taken.status == 0, taken.errors
        assert taken.peak <= 64 * MIB

    def test_read_by_libhdf5(self):
        def make(f):
            f.create_dataset("d", data=np.tile(np.arange(1000, dtype="u4"), 16384), chunks=(1024 * 1000,), scaleoffset=10)

        self.within(64, make)

    def test_a_chunk_that_needs_more_is_told_before(self):
        def make(f):
            f.create_dataset("large", data=np.tile(np.arange(250, dtype="u1"), 100000), chunks=(25000000,), scaleoffset=8)
            f.create_dataset("small", data=np.arange(1000), chunks=(100,))

        taken = self.convert(make, "--memory", "40M")
        assert taken.status == 0
        lines = taken.errors.splitlines()
        assert len(lines) == 1, taken.errors
        assert lines[0].startswith('zarrbits: warning: dataset "/large" of '), lines[0]
        for words in ("chunks of 23.8 MiB", "may take 71.5 MiB", "40.0 MiB that are allowed"):
            assert words in lines[0]
        assert taken.peak < 100 * MIB
        assert self.convert(make, "--memory", "80M").errors == ""

    def test_an_append_to_large_chunks_takes_what_it_tells(self):
        """The last chunk of the store is decoded and made again, however small the file is."""
        files = [self.source.with_name(f"{i}.h5") for i in range(2)]
        for i, file in enumerate(files):
            with h5py.File(file, "w") as f:
                f["d"] = np.arange(1000 * i, 1000 * (i + 1), dtype="f8")
        store = self.source.with_suffix(".zarr")
        assert (
            run("convert", "-q", "--concat", "/d:0", files[0], store, "--chunk", f"{8 * MIB},", "--compress", "gzip:1").status
            == 0
        )
        taken = run("convert", "-q", "--append", "/d:0", files[1], store, "--memory", "64M")
        assert taken.status == 0, taken.errors
        for words in (
            "chunks of 64.0 MiB",
            "may take 256.0 MiB",
            "64.0 MiB that are allowed",
            "make the store again with smaller chunks",
        ):
            assert words in taken.errors, taken.errors
        assert 64 * MIB < taken.peak <= 256 * MIB

    @pytest.mark.parametrize("kind, status", [("numbers", 1), ("strings", 3)])
    def test_verify_of_a_chunk_that_inflates(self, kind, status):
        """A chunk of numbers has a size; one of strings may have any, and is left unchecked where it takes more than --memory."""
        with h5py.File(self.source, "w") as f:
            f.create_dataset("d", (4,), "i4" if kind == "numbers" else h5py.string_dtype(), chunks=(4,))[0] = (
                1 if kind == "numbers" else "a"
            )
        store = self.source.with_suffix(".zarr")
        assert run("convert", "-q", self.source, store, "--compress", "gzip:1").status == 0
        gzip, zeros = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(16 * MIB)
        (store / "d/c/0").write_bytes(b"".join([gzip.compress(zeros) for _ in range(32)]) + gzip.flush())
        taken = run("verify", self.source, store, "--memory", "64M")
        assert taken.status == status and taken.peak <= 96 * MIB, (taken.status, taken.peak)

    @pytest.mark.parametrize("threads", [1, 8])
    def test_verify_in_threads(self, threads):
        """Of chunks of 2 MiB, both sides of as many as the bound allows are in memory."""
        store = self.source.with_suffix(".zarr")
        with h5py.File(self.source, "w") as f:
            compressed(f, "d", 200 * MIB, 2 * MIB, shuffle=True)
        assert run("convert", "-q", self.source, store).status == 0
        taken = run("verify", "-q", self.source, store, "--memory", "64M", "--threads", threads)
        print(f"{self.name}: peak {taken.peak / MIB:.0f} MiB, {taken.cpu:.1f} s of CPU", file=sys.stderr)
        assert (taken.status, taken.errors) == (0, "")
        assert taken.peak <= 64 * MIB

    def test_many_attributes_of_an_object(self):
        """libhdf5 lists all of them at once."""

        def make(f):
            order = h5p.create(h5p.DATASET_CREATE)
            order.set_attr_creation_order(h5p.CRT_ORDER_TRACKED)  # so with an index, as libhdf5 has it for many
            scalar = h5s.create(h5s.SCALAR)
            for name, count in (b"few", 10), (b"many", 40_000):
                d = h5d.create(f.id, name, h5t.STD_I8LE, scalar, order)
                for i in range(count):
                    h5a.create(d, str(i).encode(), h5t.STD_I8LE, scalar)

        taken = self.convert(make, "--memory", "64M")
        assert taken.status == 3 and '"/many"' in taken.errors and "40000 attributes" in taken.errors, taken.errors
        assert taken.peak <= 64 * MIB, taken.peak // MIB
        store = self.source.with_suffix(".zarr")
        assert len(json.loads((store / "few/zarr.json").read_text())["attributes"]) >= 10
        assert self.convert(make, "--memory", "256M").status == 0
        assert len(json.loads((store / "many/zarr.json").read_text())["attributes"]) >= 40_000

    @pytest.mark.skipif(not (LARGE), reason="ZARRBITS_LARGE is not set")
    def test_large_contiguous(self):
        self.within(512, lambda f: allocated(f, "d", 4096 * MIB), default=True)

    @pytest.mark.skipif(not (LARGE), reason="ZARRBITS_LARGE is not set")
    def test_large_chunks_that_are_copied(self):
        self.within(512, lambda f: allocated(f, "d", 4096 * MIB, 4 * MIB), default=True)

    @pytest.mark.skipif(not (LARGE), reason="ZARRBITS_LARGE is not set")
    def test_large_deflate(self):
        self.within(512, lambda f: compressed(f, "d", 4096 * MIB, 4 * MIB), default=True)

    @pytest.mark.skipif(not (LARGE), reason="ZARRBITS_LARGE is not set")
    def test_large_encoded_anew(self):
        self.within(512, lambda f: compressed(f, "d", 4096 * MIB, 64 * MIB, shuffle=True), default=True)

    @pytest.mark.skipif(not (LARGE), reason="ZARRBITS_LARGE is not set")
    def test_large_single_chunk_that_is_copied(self):
        self.within(512, lambda f: allocated(f, "d", 400 * MIB, 400 * MIB), default=True)
