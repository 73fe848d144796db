# SPDX-License-Identifier: BSL-1.0
"""Arrays whose chunks have different lengths become HDF5's chunks of one shape. The stores are those of zarr-python
(tests/golden/rectilinear.json), and those of `convert --grid rectilinear`, whose values are compared with numpy's."""

import json
import os
import random

import h5py
import numpy as np
import pytest

from harness import contents, convert, run
from test_export import group

with open(os.path.join(os.path.dirname(os.environ["ZARRBITS_GOLDEN"]), "rectilinear.json"), encoding="utf-8") as golden:
    GOLDEN = json.load(golden)["arrays"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def exported(*options, status=0, source="s.zarr"):
    done = run("export", source, "b.h5", "-q", "--json", "--overwrite", *options, status=status)
    return {o["path"]: o for o in json.loads(done.stdout)["objects"] if o["kind"] == "dataset"}


def put(name):
    """A golden array in the store, and its values."""
    stored = GOLDEN[name]
    os.makedirs(f"s.zarr/{name}")
    with open(f"s.zarr/{name}/zarr.json", "w", encoding="utf-8") as f:
        json.dump(stored["zarr.json"], f)
    for key, data in stored["objects"].items():
        os.makedirs(os.path.dirname(f"s.zarr/{name}/{key}"), exist_ok=True)
        with open(f"s.zarr/{name}/{key}", "wb") as f:
            f.write(bytes.fromhex(data))
    shape = stored["zarr.json"]["shape"]
    values = np.arange(np.prod(shape), dtype="<i2").reshape(shape)
    for first in stored["left_out"]:
        values[first : first + 5] = -5
    return values


# the length with the most elements, in each dimension
CHUNKS = {"runs": (10, 3), "both": (4, 5), "longer": (4,), "turned": (3, 5), "packed": (8,), "gaps": (5,)}


def test_arrays_of_zarr_python():
    group("s.zarr")
    values = {name: put(name) for name in GOLDEN}
    objects = exported()
    with h5py.File("b.h5") as f:
        for name, expected in values.items():
            assert f[name].chunks == CHUNKS[name] and f[name].fillvalue == -5, name
            assert np.array_equal(f[name][()], expected), name
            assert objects[f"/{name}"]["outcome"] == "recoded", objects
            assert f[name].compression == ("gzip" if name == "packed" else None)
        assert f["gaps"].id.get_num_chunks() == 2
        stored = sum(len(data) // 2 for data in GOLDEN["both"]["objects"].values())
        assert objects["/both"]["store_bytes"] == stored, objects["/both"]
    run("verify", "b.h5", "s.zarr")


def files_of(lengths, names=("x", "y")):
    """Files that are joined along their first dimension, and what numpy makes of them."""
    rng, whole = np.random.default_rng(6), {}
    sources = []
    for i, n in enumerate(lengths):
        sources.append(f"p{i}.h5")
        with h5py.File(sources[-1], "w") as f:
            f["t"] = np.arange(n, dtype="i8") + 100 * i
            f["t"].make_scale("t")
            for name, dtype in zip(names, (">i4", "f8")):
                data = rng.integers(0, 50, (n, 6, 10)).astype(dtype)
                d = f.create_dataset(name, data=data, chunks=(4, 3, 10), maxshape=(None, 6, 10), compression="gzip", shuffle=True)
                d.dims[0].attach_scale(f["t"])
                whole.setdefault(name, []).append(data)
            text = np.array([f"é{i}-{k}" for k in range(n)], object)
            d = f.create_dataset("text", data=text, dtype=h5py.string_dtype(), chunks=(4,), maxshape=(None,))
            d.dims[0].attach_scale(f["t"])
            whole.setdefault("text", []).append(text)
    return sources, {name: np.concatenate(parts) for name, parts in whole.items()}


@pytest.mark.parametrize("options", [[], ["--filters", "standard"], ["--filter", "none"], ["--memory", "16M", "--threads", "1"]])
def test_joined_files_come_back_as_one(options):
    sources, whole = files_of([10, 13, 1, 5, 11, 20])
    convert("-q", "--concat", "t", *sources, "s.zarr", "--grid", "rectilinear", "--profile", "native")
    with open("s.zarr/x/zarr.json", encoding="utf-8") as f:
        assert json.load(f)["chunk_grid"]["name"] == "rectilinear"
    objects = exported(*options)
    with h5py.File("b.h5") as f:
        for name, expected in whole.items():
            got = f[name].asstr()[()] if name == "text" else f[name][()]
            assert np.array_equal(got, expected), name
            assert f[name].chunks[0] == 4
        assert f["x"].dtype == ">i4" and f["x"].maxshape[0] is None and f["x"].shuffle == ("none" not in options)
    assert objects["/x"]["outcome"] == "recoded" and objects["/x"]["chunks"] == 2 * 15
    run("verify", "b.h5", "s.zarr", "--json", status=(0, 3))


def test_threads_change_no_byte():
    sources, _ = files_of([10, 13, 1, 5, 11, 20])
    convert("-q", "--concat", "t", *sources, "s.zarr", "--grid", "rectilinear")
    made = []
    for threads in 1, 3:
        exported("--threads", threads)
        with open("b.h5", "rb") as f:
            made.append(f.read())
    assert made[0] == made[1]


def test_a_chunk_that_cannot_be_read():
    sources, whole = files_of([10, 13, 5])
    convert("-q", "--concat", "t", *sources, "s.zarr", "--grid", "rectilinear")
    with open("s.zarr/x/c/2/0/0", "wb") as f:  # rows 8 and 9
        f.write(b"damaged")
    said = run("export", "s.zarr", "b.h5", status=1).stderr
    assert "/x" in said and not os.path.exists("b.h5"), said
    objects = exported("--keep-going", status=3)
    assert objects["/x"]["lost_chunks"] == [[2, 0, 0]], objects["/x"]
    with h5py.File("b.h5") as f:
        got = f["x"][()]
        kept = np.ones(got.shape, bool)
        kept[8:12, :3] = False
        assert np.array_equal(got[kept], whole["x"][kept]) and not got[~kept].any()
        assert np.array_equal(f["y"][()], whole["y"])


def test_random_grids():
    dice = random.Random(5)
    for case in range(40):
        rank = dice.randrange(1, 4)
        lengths = [[dice.randrange(1, 6) for _ in range(dice.randrange(1, 6))] for _ in range(rank)]
        shape = [max(1, sum(d) - dice.randrange(d[-1])) for d in lengths]
        values = np.random.default_rng(case).integers(1, 1000, shape).astype("<u2")
        name = f"s{case}.zarr"
        group(name)
        os.makedirs(f"{name}/v/c")
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": "uint16",
            "chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": lengths}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": 7,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }
        with open(f"{name}/v/zarr.json", "w", encoding="utf-8") as f:
            json.dump(document, f)
        edges = [np.cumsum([0, *d]) for d in lengths]
        os.rmdir(f"{name}/v/c")
        for at in np.ndindex(*(len(d) for d in lengths)):
            place = tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, at))
            if dice.random() < 0.3:
                values[place] = 7
                continue
            chunk = np.zeros([d[i] for d, i in zip(lengths, at)], "<u2")
            inside = values[place]
            chunk[tuple(slice(0, n) for n in inside.shape)] = inside
            with open(f"{name}/v/c." + ".".join(map(str, at)), "wb") as f:
                f.write(chunk.tobytes())
        exported(source=name)
        with h5py.File("b.h5") as f:
            assert np.array_equal(f["v"][()], values), (case, lengths, shape)
    assert contents(name)


def test_hostile_grids():
    """A few characters that say 10^18 chunks, or one without an end, or one that is larger than memory."""
    group("s.zarr")
    for name, shape, lengths in (
        ("many", [1 << 60], [[[1, 1 << 60]]]),
        ("endless", [100], [[10, (1 << 64) - 1]]),
        ("mixed", [1 << 32], [[1 << 31, [1, 1 << 31]]]),
    ):
        os.makedirs(f"s.zarr/{name}/c")
        with open(f"s.zarr/{name}/zarr.json", "w", encoding="utf-8") as f:
            f.write(
                json.dumps(
                    {
                        "zarr_format": 3,
                        "node_type": "array",
                        "shape": shape,
                        "data_type": "uint8",
                        "chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": lengths}},
                        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                        "fill_value": 0,
                        "codecs": [{"name": "bytes"}],
                    }
                )
            )
        with open(f"s.zarr/{name}/c/0", "wb") as f:
            f.write(b"\1" * 10)
    objects = exported("--keep-going", "--memory", "64M", status=3)
    assert objects["/endless"]["outcome"] == objects["/mixed"]["outcome"] == "skipped"
    assert "memory" in objects["/mixed"]["reason"] and "4 GiB" in objects["/endless"]["reason"]
    assert objects["/many"]["lost_chunks"] == [[0]]  # ten bytes of one element
