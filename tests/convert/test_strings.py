# SPDX-License-Identifier: BSL-1.0
"""Strings of variable length, which are read from the file's global heaps without libhdf5: the store holds what h5py reads."""

import os
import random
import re
import resource
import struct

import h5py
import numpy as np
import pytest

from harness import run
from store import Store

WORDS = ["", "a", "zwölf Bäume", "日本語", "x" * 300, "y" * 100_000, "the same", "the same"]


def words(n):
    return [WORDS[i * 7 % len(WORDS)] if i % 5 == 0 else f"number {i}" for i in range(n)]


def convert(source, out, *options):
    return run("convert", "-q", "--overwrite", source, out, *options, status=None)


def same_as_h5py(folder, source, names):
    done = convert(source, f"{folder}/out.zarr")
    assert done.returncode == 0, done.stderr
    store = Store(f"{folder}/out.zarr")
    with h5py.File(source, "r+") as f:  # libhdf5 1.10 writes the fill value into a heap where it reads one
        for name in names:
            assert store.read(name).tolist() == f[name].asstr()[...].tolist(), name


@pytest.mark.parametrize(
    "how", [{}, {"userblock_size": 1024}, {"libver": "latest"}], ids=["usual", "user block", "newest format"]
)
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
    for at, certain in (
        (0, True),
        (4, True),
        (8, False),
        (9, False),
        (14, True),
        (16, True),
        (17, True),
        (24, False),
        (25, True),
        (31, True),
    ):
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
    """libhdf5 copies as much as the element says; here that is not text of the file's."""
    source = f"{folder}/in.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=["abcdefgh"] * 600, dtype=h5py.string_dtype(), chunks=(600,))
        offset = f["x"].id.get_chunk_info(0).byte_offset
    with open(source, "r+b") as f:
        f.seek(offset + 16 * 5)
        f.write((1 << 24).to_bytes(4, "little"))
    done = convert(source, f"{folder}/out.zarr")
    assert done.returncode == 1 and re.search("have no entry [0-9]+ of 16777216 bytes", done.stderr), done


def test_a_length_that_the_heap_does_not_have(folder):
    """Also of few strings, and of one: libhdf5 would give what lies behind."""
    for number, shape, chunks in ((0, (), None), (1, (1,), None), (2, (3,), (3,)), (3, (5, 7), (2, 3)), (4, (300,), None)):
        source = f"{folder}/in{number}.h5"
        count = int(np.prod(shape))
        with h5py.File(source, "w") as f:
            texts = np.array([f"secret {i}" for i in range(count)], object).reshape(shape)
            f.create_dataset("x", data=texts if shape else "secret 0", dtype=h5py.string_dtype(), chunks=chunks)
        same_as_h5py(folder, source, ["x"])
        with open(source, "r+b") as f:
            data = f.read()
            heap = data.index(b"GCOL")
            element = data.index(struct.pack("<IQ", 8, heap))  # length, and the heap's address
            f.seek(element)
            f.write(struct.pack("<I", 200))
        done = convert(source, f"{folder}/bad.zarr")
        assert done.returncode == 1 and "of 200 bytes" in done.stderr, (shape, done)


def test_a_collection_with_a_high_number(folder):
    """Its table is as long as it has objects: small collections of one object with the number 65535,
    of which many are in use by turns."""
    source, n, collections = f"{folder}/in.h5", 100_000, 32
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=["x"] * n, dtype=h5py.string_dtype())
        address = f["x"].id.get_offset()
    data = bytearray(open(source, "rb").read())
    heap = len(data)
    data += (b"GCOL\x01\0\0\0" + struct.pack("<QHHIQ", 40, 65535, 1, 0, 4) + b"text\0\0\0\0") * collections
    data[address : address + 16 * n] = b"".join(struct.pack("<IQI", 4, heap + 40 * (i % collections), 65535) for i in range(n))
    data[40:48] = struct.pack("<Q", len(data))
    open(source, "wb").write(data)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = convert(source, f"{folder}/out.zarr")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert Store(f"{folder}/out.zarr").read("x").tolist() == ["text"] * n
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize("fill", ["nothing", ""])
@pytest.mark.parametrize(
    "options", [("--chunk", "16"), ("--chunk", "7x9"), ("--chunk", "16", "--shard", "32"), ("--profile", "recode")]
)
def test_chunks_that_were_never_written(folder, fill, options):
    source = f"{folder}/in.h5"
    with h5py.File(source, "w") as f:
        line = f.create_dataset("line", (1000,), h5py.string_dtype(), chunks=(10,), fillvalue=fill)
        line[200:205] = words(5)
        line[991] = "last"
        plane = f.create_dataset("plane", (40, 30), h5py.string_dtype(), chunks=(16, 20), fillvalue=fill)
        plane[17, 3:25] = words(22)
    done = convert(source, f"{folder}/out.zarr", *options)
    assert done.returncode == 0, done.stderr
    assert run("verify", source, f"{folder}/out.zarr").stdout.splitlines()[-1].startswith("OK")
    run("check", source)
    with h5py.File(source, "r+") as f:  # libhdf5 1.10 writes the fill value into a heap where it reads one
        for name in ("line", "plane"):
            assert Store(f"{folder}/out.zarr").read(name).tolist() == f[name].asstr()[...].tolist(), name
