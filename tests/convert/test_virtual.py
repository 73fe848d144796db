# SPDX-License-Identifier: BSL-1.0
"""Virtual datasets: chunks that are whole chunks of a source are copied, all others are read through libhdf5. The store has the
values that h5py reads."""

import json
import os
import subprocess

import h5py
import numpy as np

from harness import COMMAND, run
from store import Store

rng = np.random.default_rng(11)


def frames(n, y=16, x=24):
    return rng.integers(0, 900, (n, y, x)).astype("u4")


def source(name, values, path="data", **how):
    how = {"chunks": (1, *values.shape[1:]), "compression": "gzip", "shuffle": True, **how}
    with h5py.File(name, "a") as f:
        f.create_dataset(path, data=values, **how)
    return values


def stored(name, path="data"):
    """The stored bytes of each chunk."""
    with h5py.File(name, "r") as f:
        d = f[path]
        return {
            d.id.get_chunk_info(i).chunk_offset: d.id.read_direct_chunk(d.id.get_chunk_info(i).chunk_offset)[1]
            for i in range(d.id.get_num_chunks())
        }


def convert(folder, *options, status=0):
    out, report = f"{folder}/out.zarr", f"{folder}/report.json"
    done = run("convert", "-q", "--overwrite", f"{folder}/in.h5", out, "--report", report, *options, status=None, timeout=600)
    assert done.returncode == status, done.stderr
    run("verify", f"{folder}/in.h5", out, timeout=600)
    with open(report, encoding="utf-8") as f:
        return Store(out), next(o for o in json.load(f)["objects"] if o["path"] == "/v")


def make(folder, layout, fillvalue=0):
    with h5py.File(f"{folder}/in.h5", "a") as f:
        f.create_virtual_dataset("v", layout, fillvalue=fillvalue)
        return f["v"][...]


def same(store, values, key="v"):
    got = store.read(key)
    assert got.shape == values.shape and got.dtype == values.dtype and np.array_equal(got, values)


def raw(report):
    return report["chunks"].get("raw", 0) + report["chunks"].get("rewrapped", 0), report["chunks"].get("recoded", 0)


def test_stacked_along_the_first_dimension(folder):
    """As detectors write them: native chunks are the stored bytes themselves."""
    layout = h5py.VirtualLayout((30, 16, 24), "u4")
    for i in range(3):
        source(f"{folder}/f{i}.h5", frames(10))
        layout[10 * i : 10 * i + 10] = h5py.VirtualSource(f"f{i}.h5", "data", (10, 16, 24))
    values = make(folder, layout)
    store, report = convert(folder, "--profile", "native")
    assert raw(report) == (30, 0), report
    for i in range(3):
        for (n, _, _), chunk in stored(f"{folder}/f{i}.h5").items():
            with open(f"{folder}/out.zarr/v/c/{10 * i + n}/0/0", "rb") as f:
                assert f.read() == chunk
    store, report = convert(folder)
    same(store, values)
    convert(folder, "--shard", "8,16,24")


def test_new_axis_and_frames_in_turn(folder):
    layout = h5py.VirtualLayout((4, 16, 24), "u4")
    for i in range(4):
        source(f"{folder}/f{i}.h5", frames(1)[0], chunks=(8, 24))
        layout[i] = h5py.VirtualSource(f"f{i}.h5", "data", (16, 24))
    values = make(folder, layout)
    store, report = convert(folder, "--compress", "none")
    same(store, values)
    store, report = convert(folder, "--profile", "native")
    assert raw(report) == (8, 0), report

    os.remove(f"{folder}/in.h5")
    layout = h5py.VirtualLayout((12, 16, 24), "u4")
    for i in range(4):
        source(f"{folder}/g{i}.h5", frames(3))
        layout[i::4] = h5py.VirtualSource(f"g{i}.h5", "data", (3, 16, 24))
    values = make(folder, layout)
    store, report = convert(folder, "--profile", "native")
    assert raw(report) == (12, 0), report
    store, report = convert(folder)
    same(store, values)


def test_borders_that_are_no_borders_of_chunks(folder):
    """Parts of chunks, sources that differ, and places without a source."""
    layout = h5py.VirtualLayout((50, 16), "i2")
    one = source(f"{folder}/a.h5", np.arange(20 * 16, dtype="i2").reshape(20, 16), chunks=(4, 16))
    source(f"{folder}/b.h5", -one, chunks=(4, 16))
    source(f"{folder}/c.h5", one * 3, chunks=(4, 16), shuffle=False)
    source(f"{folder}/d.h5", one.astype(">i2"), chunks=(4, 16))
    layout[0:8] = h5py.VirtualSource(f"{folder}/a.h5", "data", (20, 16))[4:12]  # two chunks
    layout[8:18] = h5py.VirtualSource(f"{folder}/b.h5", "data", (20, 16))[2:12]  # none: begins inside of one
    layout[20:28] = h5py.VirtualSource(f"{folder}/c.h5", "data", (20, 16))[0:8]  # other filters
    layout[28:36] = h5py.VirtualSource(f"{folder}/d.h5", "data", (20, 16))[0:8]  # another type
    layout[36:44] = h5py.VirtualSource(f"{folder}/none.h5", "data", (20, 16))[0:8]  # not there
    layout[44:50] = h5py.VirtualSource(f"{folder}/b.h5", "data", (20, 16))[12:18]  # ends with the array
    values = make(folder, layout, fillvalue=0)
    store, report = convert(folder, "--profile", "native", status=3)
    assert raw(report)[0] == 4, report
    store, report = convert(folder, "--compress", "none", status=3)
    same(store, values)


def test_another_fill_value(folder):
    """Chunks that are not stored read as the source's."""
    with h5py.File(f"{folder}/a.h5", "w") as f:
        d = f.create_dataset("data", (8, 10), "i4", chunks=(2, 10), fillvalue=5, compression="gzip")
        d[2:4] = 1
    layout = h5py.VirtualLayout((10, 10), "i4")
    layout[:8] = h5py.VirtualSource("a.h5", "data", (8, 10))
    values = make(folder, layout, fillvalue=7)
    assert values[0, 0] == 5 and values[9, 0] == 7
    store, report = convert(folder)
    same(store, values)
    assert raw(report)[0] == 0
    os.remove(f"{folder}/in.h5")
    values = make(folder, layout, fillvalue=5)
    store, report = convert(folder)
    same(store, values)
    assert raw(report) == (1, 0), report


def test_sources_that_grow(folder):
    """Without an end: as long as the sources are, a frame of each in turn."""
    with h5py.File(f"{folder}/in.h5", "w") as f:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_fill_value(np.zeros(1, "u4"))
        for i in range(2):
            source(f"{folder}/f{i}.h5", frames(5 + i), maxshape=(None, 16, 24))
            here = h5py.h5s.create_simple((11, 16, 24), (h5py.h5s.UNLIMITED, 16, 24))
            here.select_hyperslab((i, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (2, 1, 1), (1, 16, 24))
            there = h5py.h5s.create_simple((5 + i, 16, 24), (h5py.h5s.UNLIMITED, 16, 24))
            there.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (1, 1, 1), (1, 16, 24))
            create.set_virtual(here, f"f{i}.h5".encode(), b"data", there)
        space = h5py.h5s.create_simple((11, 16, 24), (h5py.h5s.UNLIMITED, 16, 24))
        h5py.h5d.create(f.id, b"v", h5py.h5t.NATIVE_UINT32, space, create)
    with h5py.File(f"{folder}/in.h5", "r") as f:
        values = f["v"][...]
    store, report = convert(folder, "--profile", "native")
    assert len(values) == 12 and raw(report)[0] == 11, (values.shape, report)
    store, report = convert(folder)
    same(store, values)


def test_one_over_the_other(folder):
    layout = h5py.VirtualLayout((12, 8), "u1")
    for i, at in enumerate((0, 4)):
        source(f"{folder}/f{i}.h5", np.full((8, 8), i + 1, "u1"), chunks=(2, 8))
        layout[at : at + 8] = h5py.VirtualSource(f"f{i}.h5", "data", (8, 8))
    values = make(folder, layout)
    store, report = convert(folder)
    same(store, values)
    assert sum(raw(report)) == 6


def test_sources_in_the_same_file_and_text(folder):
    name = f"{folder}/in.h5"
    a = source(name, np.arange(64, dtype="f8").reshape(8, 8), "a", chunks=(4, 8))
    layout = h5py.VirtualLayout((16, 8), "f8")
    layout[:8] = h5py.VirtualSource(".", "a", (8, 8))
    layout[8:] = h5py.VirtualSource(".", "a", (8, 8))
    with h5py.File(name, "a") as f:
        text = f.create_dataset("t", (8,), h5py.string_dtype(), chunks=(4,))
        text[:] = [f"word {i}" for i in range(8)]
        words = h5py.VirtualLayout((8,), h5py.string_dtype())
        words[:] = h5py.VirtualSource(".", "t", (8,))
        f.create_virtual_dataset("w", words)
    make(folder, layout)
    store, report = convert(folder, "--profile", "native")
    assert raw(report) == (4, 0), report
    assert store.read("w").tolist() == [f"word {i}" for i in range(8)]
    store, report = convert(folder)
    same(store, np.concatenate([a, a]))


def test_source_that_ends_before_its_place(folder):
    """The file is another one than when the virtual dataset was made: what libhdf5 cannot read, nobody copies."""
    source(f"{folder}/a.h5", np.arange(48, dtype="u2").reshape(6, 8), chunks=(4, 8))
    layout = h5py.VirtualLayout((12, 8), "u2")
    layout[:12] = h5py.VirtualSource("a.h5", "data", (12, 8))
    with h5py.File(f"{folder}/in.h5", "a") as f:
        f.create_virtual_dataset("v", layout)
    command = [COMMAND, "convert", "-q", "--profile", "native", f"{folder}/in.h5", f"{folder}/out.zarr"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and '"/v" cannot be read' in done.stderr, done.stderr
    source(f"{folder}/b.h5", np.arange(96, dtype="u2").reshape(12, 8), chunks=(4, 8))
    os.replace(f"{folder}/b.h5", f"{folder}/a.h5")
    store, report = convert(folder, "--profile", "native")
    assert raw(report) == (3, 0), report
