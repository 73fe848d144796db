# SPDX-License-Identifier: BSL-1.0
"""Strings of variable length, which are read from the file's global heaps without libhdf5: the store holds what h5py reads."""
import os
import random
import re
import subprocess

import h5py
import numpy as np
import pytest

from store import COMMAND, Store

WORDS = ["", "a", "zwölf Bäume", "日本語", "x" * 300, "y" * 100_000, "the same", "the same"]


def words(n):
    return [WORDS[i * 7 % len(WORDS)] if i % 5 == 0 else f"number {i}" for i in range(n)]


def convert(source, out, *options):
    return subprocess.run([COMMAND, "convert", "-q", "--overwrite", source, out, *options], capture_output=True, text=True, timeout=120)


def same_as_h5py(folder, source, names):
    done = convert(source, f"{folder}/out.zarr")
    assert done.returncode == 0, done.stderr
    store = Store(f"{folder}/out.zarr")
    with h5py.File(source, "r+") as f:  # libhdf5 1.10 writes the fill value into a heap where it reads one
        for name in names:
            assert store.read(name).tolist() == f[name].asstr()[...].tolist(), name


@pytest.mark.parametrize("how", [{}, {"userblock_size": 1024}, {"libver": "latest"}], ids=["usual", "user block", "newest format"])
def test_layouts(folder, how):
    source = f"{folder}/in.h5"
    text = h5py.string_dtype()
    with h5py.File(source, "w", **how) as f:
        f.create_dataset("contiguous", data=words(2000), dtype=text)
        f.create_dataset("chunked", data=words(2000), dtype=text, chunks=(700,))  # the last one over the edge
        f.create_dataset("compressed", data=words(2000), dtype=text, chunks=(512,), compression="gzip", shuffle=True)
        f.create_dataset("two", data=np.array(words(40 * 30), object).reshape(40, 30), dtype=text, chunks=(16, 20))
        f.create_dataset("plane", data=np.array(words(40 * 30), object).reshape(40, 30), dtype=text)
        f.create_dataset("written in part", (3000,), text, chunks=(1000,), fillvalue="nothing")[1200:1300] = words(100)
        f.create_dataset("of another order", (2000,), text, chunks=(1000,))
        for i in random.Random(3).sample(range(2000), 2000):
            f["of another order"][i] = f"{i} at random"
    same_as_h5py(folder, source, ["contiguous", "chunked", "compressed", "two", "plane", "written in part", "of another order"])


@pytest.mark.parametrize("sizes", [(4, 4), (8, 4), (4, 8), (2, 8)])
def test_other_sizes_of_addresses(folder, sizes):
    source = f"{folder}/in.h5"
    create = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    create.set_sizes(*sizes)
    n = 400 if sizes[0] == 2 else 2000  # a file of 64 KiB
    values = [f"number {i}" for i in range(n)]
    with h5py.File(h5py.h5f.create(source.encode(), h5py.h5f.ACC_TRUNC, create)) as f:
        f.create_dataset("x", data=values, dtype=h5py.string_dtype(), chunks=(n // 2,))
    same_as_h5py(folder, source, ["x"])


def test_damage_is_never_read_as_text(folder):
    """One byte of the heap at a time: the text that was written, or a failure that says so. libhdf5 may crash on such files."""
    source, out = f"{folder}/in.h5", f"{folder}/out.zarr"
    values = [f"number {i}" for i in range(600)]
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=values, dtype=h5py.string_dtype(), chunks=(300,))
    with open(source, "rb") as f:
        whole = f.read()
    heap = whole.index(b"GCOL")
    # signature, version, size of the collection; number and size of its first object
    for at, certain in ((0, True), (4, True), (8, False), (9, False), (14, True), (16, True), (17, True), (24, False), (25, True), (31, True)):
        damaged = bytearray(whole)
        damaged[heap + at] ^= 0x41
        with open(source, "wb") as f:
            f.write(damaged)
        done = convert(source, out)
        if done.returncode == 0:
            assert not certain and Store(out).read("x").tolist() == values, at
        else:
            assert done.returncode == 1 and "global heap" in done.stderr and not os.path.exists(f"{out}/zarr.json"), (at, done)


def test_a_string_that_is_longer_than_its_place(folder):
    """libhdf5 copies as much as the element says; here that is no text of the file's."""
    source = f"{folder}/in.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=["abcdefgh"] * 600, dtype=h5py.string_dtype(), chunks=(600,))
        offset = f["x"].id.get_chunk_info(0).byte_offset
    with open(source, "r+b") as f:
        f.seek(offset + 16 * 5)
        f.write((1 << 24).to_bytes(4, "little"))
    done = convert(source, f"{folder}/out.zarr")
    assert done.returncode == 1 and re.search("have no number [0-9]+ of 16777216 bytes", done.stderr), done
