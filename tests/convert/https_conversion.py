# SPDX-License-Identifier: BSL-1.0
"""Conversions of sources on the small server of http_server.py: files of many kinds, and commands that end with one sentence."""

import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import pytest

import harness
from harness import PATIENCE
from http_server import Server

NATIVE = ["--profile", "native"]
PAGE = 1 << 20  # of metadata, and of the first request
OUTSIDE = ("AWS_", "ZARRBITS_HEADERS", "NETRC", "SSL_CERT_", "CURL_CA_")  # of the machine, so that tests are the same on all


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(OUTSIDE) and "proxy" not in k.lower()}
    return {**clean, "HOME": "/nonexistent", "ZARRBITS_S3_PATIENCE": PATIENCE, **more}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server():
    with Server() as s:
        yield s


def z(*arguments, status=0, timeout=600, **variables):
    return harness.run(*arguments, status=status, env=environment(**variables), timeout=timeout)


def refused(*arguments, words=(), status=1, **variables):
    """The one sentence of a command that fails, and that leaves nothing in the current folder, but what it says it keeps."""
    before = everything_here()
    done = z(*arguments, status=status, **variables)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarrbits: "), done.stderr
    for store in kept_stores(".", done.stderr):
        shutil.rmtree(store)
    assert everything_here() == before
    missing = [word for word in words if word.lower() not in lines[0].lower()]
    assert not missing, (missing, lines[0])
    return lines[0]


def kept_stores(folder, said):
    """Unfinished stores in a folder, if the sentence says that finished work is kept: none of them looks whole."""
    if "What is done is kept in" not in said:
        return []
    stores = [p for p in pathlib.Path(folder).iterdir() if (p / ".zarrbits-unfinished/plan").exists()]
    assert len(stores) == 1 and f'"{stores[0].name}"' in said and not (stores[0] / "zarr.json").exists(), said
    return stores


def everything_here():
    return sorted(str(p) for p in pathlib.Path().rglob("*"))


def chunked(f):
    rng = np.random.default_rng(1)
    f.attrs["title"] = "chunks"
    f.create_dataset("a/x", data=rng.integers(0, 99, (60, 50)).astype("i4"), chunks=(16, 16), compression="gzip", shuffle=True)
    f["a/x"].attrs["units"] = "K"
    f.create_dataset("a/y", data=np.arange(5000.0), chunks=(512,), fletcher32=True)
    sparse = f.create_dataset("sparse", (400, 100), "u2", chunks=(10, 100), compression="gzip", fillvalue=7)
    sparse[30:40] = 3
    masked = f.create_dataset("masked", (4, 100), "i4", chunks=(2, 100), compression="gzip")
    masked[:2] = 1
    masked.id.write_direct_chunk((2, 0), np.arange(200, dtype="i4").tobytes(), 1)
    # metadata and values that are more than a page
    f.create_dataset("noise", data=rng.integers(0, 2**32, (8, 60_000), dtype="u4"), chunks=(1, 60_000))


def contiguous(f):
    f["rows"] = np.random.default_rng(2).random((300, 900))
    f["number"] = np.float32(1.5)
    f.create_dataset("never", (1000,), "f8")
    f["after"] = np.arange(3000)


def texts(f):
    f.create_dataset("lines", data=[f"line {i} é" * (i % 7) for i in range(900)], dtype=h5py.string_dtype(), chunks=(100,))
    f["one"] = "a word"
    f["fixed"] = np.array([b"ab", b"cde"], "S3")
    rows = f.create_dataset("rows", (20,), h5py.vlen_dtype("i4"), chunks=(4,))
    for i in range(20):
        rows[i] = np.arange(i)
    f["lines"].attrs["names"] = np.array(["x", "yy"], h5py.string_dtype())


def compact(f):
    for i in range(3):
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((50,))
        d = h5py.h5d.create(f.id, b"c%d" % i, h5py.h5t.STD_I32BE, space, how)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(50, dtype=">i4") + i)


def within_itself(f):
    """A virtual dataset over two of the same file; chunks of one of them are whole chunks of it."""
    for name, first in (("u", 0), ("v", 100)):
        values = np.arange(first * 100, (first + 8) * 100, dtype="i4").reshape(8, 100)
        f.create_dataset(name, data=values, chunks=(2, 100), compression="gzip")
    layout = h5py.VirtualLayout((16, 100), "i4")
    layout[:8], layout[8:] = h5py.VirtualSource(f["u"]), h5py.VirtualSource(f["v"])
    f.create_virtual_dataset("all", layout, fillvalue=-1)


def types(f):
    f["record"] = np.array([(1, 2.5), (3, 4.5)], [("n", "<i2"), ("x", ">f4")])
    f.create_dataset("colour", (4,), h5py.enum_dtype({"RED": 0, "GREEN": 3}, "i1"))[1] = 3
    f["truth"] = np.arange(10) % 3 == 0
    f["link"] = h5py.SoftLink("/record")
    f["raw"] = np.array([b"\1\2\3"], "V3")


def many_small(f):
    d = f.create_dataset("x", data=np.arange(800 * 32, dtype="i4"), chunks=(32,), compression="gzip")
    for i in range(40):
        g = f.create_group(f"g{i}")
        g.attrs["text"] = "x" * 2000
        g["d"] = np.arange(i + 1)
    d.attrs["after"] = 1


KINDS = {
    "chunked": (chunked, {}),
    "chunked, of the newest format": (chunked, {"libver": "latest"}),
    "chunked, in pages": (chunked, {"fs_strategy": "page", "fs_page_size": 65536, "fs_persist": True}),
    "chunked, behind a user block": (chunked, {"userblock_size": 2048}),
    "contiguous": (contiguous, {}),
    "texts": (texts, {}),
    "compact": (compact, {}),
    "a virtual dataset within itself": (within_itself, {"libver": "latest"}),
    "types": (types, {}),
    "many small chunks": (many_small, {}),
}


def make(name, kind="chunked"):
    what, how = KINDS[kind]
    with h5py.File(name, "w", **how) as f:
        what(f)
    if how.get("userblock_size"):
        with open(name, "r+b") as f:
            f.write(b"#!/bin/sh\n")
    return pathlib.Path(name).read_bytes()


def large(name, chunks=18, size=1 << 20):
    """Chunks of this size that do not compress."""
    with h5py.File(name, "w") as f:
        values = np.random.default_rng(3).integers(0, 256, (chunks, size), dtype="u1")
        f.create_dataset("x", data=values, chunks=(1, size))
    return pathlib.Path(name).read_bytes()


def in_pages(name, variables=3):
    """As archives make them for the cloud: metadata in pages of its own."""
    with h5py.File(name, "w", fs_strategy="page", fs_page_size=PAGE, fs_persist=True) as f:
        for i in range(variables):
            values = np.random.default_rng(i).integers(0, 2**32, (16, 40_000), dtype="u4")
            f.create_dataset(f"v{i}", data=values, chunks=(1, 40_000), compression="gzip", shuffle=True)
            f[f"v{i}"].attrs["long_name"] = "x" * 100
    return pathlib.Path(name).read_bytes()


def scattered(name):
    """Metadata all over the file."""
    with h5py.File(name, "w") as f:
        for i in range(60):
            g = f.create_group(f"g{i}")
            g.attrs["text"] = "x" * 3000
            values = np.random.default_rng(i).integers(0, 2**32, (8, 5_000), dtype="u4")
            g.create_dataset("d", data=values, chunks=(1, 5_000), compression="gzip")
    return pathlib.Path(name).read_bytes()


def day(name, first, count):
    """A part of a series along t."""
    with h5py.File(name, "w") as f:
        f["t"] = np.arange(first, first + count, dtype="i8")
        f["t"].make_scale("t")
        rows = np.arange(first * 30, (first + count) * 30, dtype="i2").reshape(count, 3, 10)
        how = {"compression": "gzip", "shuffle": True, "chunks": (4, 3, 10), "maxshape": (None, 3, 10)}
        f.create_dataset("g/rows", data=rows, **how).dims[0].attach_scale(f["t"])
        f["mask"] = np.arange(12).reshape(3, 4)
    return name


def make_days():
    """In natural order, and not in that of their letters; chunks of two of them begin on the grid of all."""
    return [day(f"d{i}.h5", first, n) for i, first, n in ((8, 0, 8), (9, 8, 10), (10, 18, 6))]


def make_tiles():
    """2 x 2 files with parts of two dimensions, and the whole."""
    values = np.random.default_rng(3).random((10, 9)).round(3)
    names = []
    for i, (y, x) in enumerate((y, x) for y in (slice(0, 6), slice(6, 10)) for x in (slice(0, 5), slice(5, 9))):
        names.append(f"p{i}.h5")
        with h5py.File(names[-1], "w") as f:
            for name, at in ("y", y), ("x", x):
                f[name] = np.arange(10.0)[at]
                f[name].make_scale(name)
            f.create_dataset("v", data=values[y, x], chunks=(2, 2), compression="gzip", shuffle=True)
            for d, name in enumerate("yx"):
                f["v"].dims[d].attach_scale(f[name])
    return names, values


def sources(out="out.zarr"):
    return json.loads(pathlib.Path(out, "zarr.json").read_text())["attributes"]["_nc_zarrbits"]["sources"]


def same_but_for_sources(a, b):
    """Byte by byte; of the notes on files the names and places are compared: those of a server have no checksum."""
    notes, stores = [], []
    for out in (a, b):
        store = harness.contents(out)
        root = json.loads(store["zarr.json"])
        listed = root["attributes"]["_nc_zarrbits"].pop("sources")
        notes.append([{k: n[k] for k in ("file", "first", "count", "size")} for n in listed])
        stores.append({**store, "zarr.json": json.dumps(root)})
    assert notes[0] == notes[1]
    assert sorted(stores[0]) == sorted(stores[1])
    assert [k for k in stores[0] if stores[0][k] != stores[1][k]] == []
