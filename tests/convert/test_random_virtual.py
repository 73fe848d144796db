# SPDX-License-Identifier: BSL-1.0
"""Random virtual datasets: regular and irregular mappings, sources of other types, chunks, filters and fill values,
sources that are not there, dimensions without an end with names by number, in one file or many.
The store has what h5py reads, and `verify` agrees.
cases.py has the variables.
"""

import os

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from cases import each_case
from random_files import command, materialise
from store import Store

TYPES = ["i1", "<i2", ">i2", "<u4", "<i8", "<f4", ">f8"]


def write_source(folder, name, dtype, shape, dice, rng, maxshape=None):
    """A dataset `data`; some of its chunks may not be written."""
    how = {}
    if dice.random() < 0.8 or maxshape:
        how = {
            "chunks": tuple(dice.randint(1, n) for n in shape),
            **dice.choice(
                [
                    {},
                    {"compression": "gzip"},
                    {"compression": "gzip", "shuffle": True},
                    {"fletcher32": True},
                    {"compression": "lzf"},
                ]
            ),
        }
    with h5py.File(f"{folder}/{name}", "a") as f:
        d = f.create_dataset("data", shape, dtype, maxshape=maxshape, fillvalue=dice.choice([None, 0, 3]), **how)
        values = (
            rng.integers(-100, 100, shape).astype(dtype)
            if np.dtype(dtype).kind != "u"
            else rng.integers(0, 200, shape).astype(dtype)
        )
        box = tuple(slice(0, n if dice.random() < 0.7 else dice.randint(0, n)) for n in shape)
        d[box] = values[box]


def window(dice, size, count):
    """Where `count` elements of a dimension of this size may be: start, stride, count, block."""
    block = dice.choice([b for b in range(1, count + 1) if count % b == 0])
    blocks = count // block
    most = (size - block) // (blocks - 1) if blocks > 1 else block
    stride = dice.choice([block, dice.randint(block, max(block, most))]) if blocks > 1 else block
    return dice.randint(0, size - (blocks - 1) * stride - block), stride, blocks, block


def hyperslab(space, windows):
    space.select_hyperslab(*(tuple(w[i] for w in windows) for i in (0, 2, 1, 3)))
    return space


def fixed(dice, rng, folder, create, dtype):
    """Mappings of boxes, which do not overlap along the first dimension; whether a source is missing."""
    rank = dice.randint(1, 3)
    shape = tuple(dice.randint(2, (40, 12, 8)[rank - 1]) for _ in range(rank))
    at, lost = 0, False
    for i in range(dice.randint(1, 4)):
        if at >= shape[0]:
            break
        rows = dice.randint(1, shape[0] - at)
        counts = (rows, *(dice.randint(1, n) for n in shape[1:]))
        here = [(at, 1, rows, 1), *(window(dice, n, c) for n, c in zip(shape[1:], counts[1:]))]
        source_shape = tuple(c + dice.choice([0, 0, dice.randint(0, 9)]) for c in counts)
        there = [window(dice, n, c) for n, c in zip(source_shape, counts)]
        name = f"s{i}.h5" if dice.random() < 0.9 else f"missing{i}.h5"
        lost = lost or name.startswith("m")
        if not name.startswith("m"):
            write_source(folder, name, dtype if dice.random() < 0.8 else dice.choice(TYPES), source_shape, dice, rng)
        create.set_virtual(
            hyperslab(h5s.create_simple(shape), here), name.encode(), b"data", hyperslab(h5s.create_simple(source_shape), there)
        )
        at += rows + dice.choice([0, 0, 1])
    return shape, shape, lost


def interleaved(dice, rng, folder, create, dtype):
    """Files that take turns along the first dimension, without an end."""
    files, block, width = dice.randint(1, 3), dice.randint(1, 3), dice.randint(1, 6)
    longest = 0
    for i in range(files):
        length = dice.randint(1, 4) * block
        longest = max(longest, length * files)
        write_source(folder, f"t{i}.h5", dtype, (length, width), dice, rng, maxshape=(None, width))
        here = h5s.create_simple((length * files, width), (h5s.UNLIMITED, width))
        here.select_hyperslab((i * block, 0), (h5s.UNLIMITED, 1), (block * files, 1), (block, width))
        there = h5s.create_simple((length, width), (h5s.UNLIMITED, width))
        there.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), (block, 1), (block, width))
        create.set_virtual(here, f"t{i}.h5".encode(), b"data", there)
    return (longest, width), (h5s.UNLIMITED, width), False


def numbered(dice, rng, folder, create, dtype):
    """One mapping for files of consecutive numbers; after a gap, h5py reads no more of them."""
    block, width = dice.randint(1, 4), dice.randint(1, 6)
    files = dice.randint(1, 4)
    for i in range(files):
        if i == 0 or dice.random() < 0.9:
            write_source(folder, f"n-{i}.h5", dtype, (block, width), dice, rng)
    here = h5s.create_simple((block * files, width), (h5s.UNLIMITED, width))
    here.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), (block, 1), (block, width))
    create.set_virtual(here, b"n-%b.h5", b"data", h5s.create_simple((block, width)))
    return (block * files, width), (h5s.UNLIMITED, width), False


def check(dice, folder):
    rng = np.random.default_rng(dice.getrandbits(32))
    dtype = dice.choice(TYPES)
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_layout(h5d.VIRTUAL)
    fill = dice.choice([None, 0, 7, 3])
    if fill is not None:
        create.set_fill_value(np.array(fill, dtype))
    shape, limits, lost = dice.choice([fixed, fixed, interleaved, numbered])(dice, rng, folder, create, dtype)
    with h5py.File(f"{folder}/in.h5", "w", libver="latest") as f:
        h5d.create(f.id, b"v", h5t.py_create(np.dtype(dtype)), h5s.create_simple(shape, limits), create)
    here = os.getcwd()
    os.chdir(folder)  # HDF5 1.10.8 also looks for sources here
    try:
        with h5py.File("in.h5") as f:
            want = f["v"][...]
    finally:
        os.chdir(here)
    way = dice.choice(
        [
            [],
            ["--profile", "native"],
            ["--compress", "none"],
            ["--chunk", "3,2"] if len(shape) == 2 else ["--shard", "64M"],
            ["--virtual"],
        ]
    )
    target = "refs.json" if way == ["--virtual"] else "out.zarr"
    status = 3 if lost else 0
    command(folder, "convert", "-q", *way, "in.h5", target, status=status)
    store = materialise(f"{folder}/refs.json", f"{folder}/refs.zarr") if target == "refs.json" else Store(f"{folder}/{target}")
    got = store.read("v")
    assert (
        got.shape == want.shape
        and got.dtype.itemsize == want.dtype.itemsize
        and got.astype(want.dtype).tobytes() == want.tobytes()
    ), (way, got, want)
    command(folder, "verify", "in.h5", target)


def test_random_virtual_datasets(folder):
    each_case(folder, 15, check)
