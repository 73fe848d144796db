# SPDX-License-Identifier: BSL-1.0
"""Files with parts of several dimensions (--concat time,y,x): every value is where its coordinates say, in copies, references and
HDF5 files with virtual datasets; what does not belong together is refused.

ZARRBITS_CASES: layouts, 12 by default. ZARRBITS_SEED: others.
"""

import itertools
import json
import os
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, convert, refused, report, run
from store import Store

CASES, SEED = int(os.environ.get("ZARRBITS_CASES", "12")), int(os.environ.get("ZARRBITS_SEED", "1"))


def field(coordinates):
    """Values that tell where they belong."""
    grid = np.meshgrid(*coordinates, indexing="ij")
    return sum((g * 100.0**i for i, g in enumerate(grid)), np.zeros([len(c) for c in coordinates]))


def write(path, coordinates, variables, chunks=None, attributes=None, group="/"):
    """`variables`: name -> names of dimensions."""
    with h5py.File(path, "w", track_order=True) as f:
        f.attrs["title"] = "tiles"
        g = f.require_group(group)
        for name, values in coordinates.items():
            g[name] = np.asarray(values, "f8")
            g[name].make_scale(name)
            g[name].attrs["axis"] = name.upper()
        for name, dims in variables.items():
            values = field([np.asarray(coordinates[d]) for d in dims])
            d = g.create_dataset(name, data=values, chunks=chunks and tuple(min(chunks, n) for n in values.shape), fillvalue=-1.0)
            d.attrs["long_name"] = name
            d.attrs.update(attributes or {})
            for i, dim in enumerate(dims):
                d.dims[i].attach_scale(g[dim])
    return path


def tiles(folder, blocks, variables, missing=(), **how):
    """One file for each combination of blocks: {"x": [[0, 1], [2]]}."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for place in itertools.product(*(range(len(b)) for b in blocks.values())):
        if place in missing:
            continue
        coordinates = {name: blocks[name][i] for name, i in zip(blocks, place)}
        paths.append(write(os.path.join(folder, "p" + "_".join(map(str, place)) + ".nc"), coordinates, variables, **how))
    return paths


def whole(blocks, falling=()):
    return {
        n: np.sort(np.concatenate([np.asarray(b, "f8") for b in bs]))[:: -1 if n in falling else 1] for n, bs in blocks.items()
    }


def check(read, coordinates, variables, missing=None):
    for name, values in coordinates.items():
        np.testing.assert_array_equal(read(name), values)
    for name, dims in variables.items():
        expected = field([coordinates[d] for d in dims])
        if missing is not None:
            expected[missing(*np.meshgrid(*(coordinates[d] for d in dims), indexing="ij"))] = -1
        np.testing.assert_array_equal(read(name), expected)


def h5_reader(path):
    f = h5py.File(path)
    return lambda name: f[name][...]


BLOCKS = {"time": [[0, 1], [2, 3, 4]], "y": [[10, 11, 12], [13, 14, 15]], "x": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]}
VARIABLES = {"tas": ("time", "y", "x"), "area": ("y", "x"), "mean": ("time",)}


@pytest.mark.parametrize("chunks", [None, 3])
def test_tiles(tmp_path, chunks):
    paths = tiles(tmp_path / "tiles", BLOCKS, VARIABLES, chunks=chunks)
    np.random.default_rng(1).shuffle(paths)
    convert("-q", "--concat", "time,y,x", *paths, tmp_path / "all.zarr", "--report", tmp_path / "r.json")
    store = Store(str(tmp_path / "all.zarr"))
    check(store.read, whole(BLOCKS), VARIABLES)
    assert store.meta("tas")["dimension_names"] == ["time", "y", "x"]
    assert store.attributes("tas")["long_name"] == "tas" and store.attributes()["title"] == "tiles"
    run("verify", "-q", "--concat", "time,y,x", *paths, tmp_path / "all.zarr")
    r = report(tmp_path / "r.json")
    assert [s["file"] for s in r["sources"]] == [str(p) for p in paths] and r["source"] == str(paths[0])
    convert("-q", "--virtual", "--concat", "time,y,x", *paths, tmp_path / "all.json")
    run("verify", "-q", "--concat", "time,y,x", *paths, tmp_path / "all.json")
    plan = json.loads(run("plan", "--json", "--concat", "time,y,x", *paths).stdout)
    assert {d["path"] for d in plan["datasets"]} == {"/tas", "/area", "/mean", "/time", "/y", "/x"}


def test_references(tmp_path):
    """Chunks of the parts that are chunks of the whole stay in their files."""
    blocks = {"y": [[0, 1, 2, 3], [4, 5, 6, 7]], "x": [[0, 1], [2, 3], [4, 5]]}
    paths = tiles(tmp_path / "tiles", blocks, {"v": ("y", "x")}, chunks=2)
    convert("-q", "--virtual", "--zarr-format", "3", "--concat", "x,y", *paths, tmp_path / "all.json")
    with open(tmp_path / "all.json", encoding="utf-8") as f:
        refs = json.load(f)["refs"]
    places = {k: v for k, v in refs.items() if k.startswith("v/") and isinstance(v, list)}
    assert set(places) == {f"v/c/{y}/{x}" for y in range(4) for x in range(3)}
    for key, (url, offset, size) in places.items():
        y, x = map(int, key[4:].split("/"))
        assert url.endswith(f"tiles/p{y // 2}_{x}.nc")
        with open(url.removeprefix("file://"), "rb") as f:
            f.seek(offset)
            got = np.frombuffer(f.read(size), "f8").reshape(2, 2)
        np.testing.assert_array_equal(got, field([np.arange(2 * y, 2 * y + 2), np.arange(2 * x, 2 * x + 2)]))
    run("verify", "-q", "--concat", "x,y", *paths, tmp_path / "all.json")


def test_an_hdf5_file_of_virtual_datasets(tmp_path):
    paths = tiles(tmp_path / "a" / "tiles", BLOCKS, VARIABLES, chunks=3)
    out = tmp_path / "a" / "all.nc"
    done = json.loads(run("convert", "-q", "--json", "--virtual", "--concat", "time,y,x", *paths, out).stdout)
    assert len(done["files"]) == 12 and done["files"][0]["place"][0]["dimension"] == "/time"
    os.rename(tmp_path / "a", tmp_path / "b")  # names are relative
    check(h5_reader(tmp_path / "b" / "all.nc"), whole(BLOCKS), VARIABLES)
    with h5py.File(tmp_path / "b" / "all.nc") as f:
        assert f["tas"].is_virtual and [d.keys() for d in f["tas"].dims] == [["time"], ["y"], ["x"]]
    convert("-q", tmp_path / "b" / "all.nc", tmp_path / "all.zarr")
    run("verify", "-q", tmp_path / "b" / "all.nc", tmp_path / "all.zarr")
    check(Store(str(tmp_path / "all.zarr")).read, whole(BLOCKS), VARIABLES)
    assert "exists" in refused(
        "convert", "--virtual", "--concat", "time,y,x", *(tmp_path / "b" / "tiles").iterdir(), tmp_path / "b" / "all.nc"
    )


def test_one_dimension_as_an_hdf5_file(tmp_path):
    paths = tiles(tmp_path, {"time": [[0, 1], [2, 3]]}, {"mean": ("time",)})
    run("convert", "-q", "--virtual", "--concat", "time", *paths, tmp_path / "all.h5")
    check(h5_reader(tmp_path / "all.h5"), {"time": np.arange(4.0)}, {"mean": ("time",)})


def test_parts_in_no_file(tmp_path):
    paths = tiles(tmp_path / "tiles", BLOCKS, VARIABLES, missing=[(1, 1, 2), (0, 0, 0)], chunks=3)
    done = run("convert", "--concat", "time,y,x", *paths, tmp_path / "all.zarr")
    assert 'note: 2 of the 12 parts of "/tas" are in no file, and read as the fill value' in done.stderr
    check(
        Store(str(tmp_path / "all.zarr")).read,
        whole(BLOCKS),
        {"tas": ("time", "y", "x")},
        lambda t, y, x: ((t >= 2) & (y >= 13) & (x >= 8)) | ((t < 2) & (y < 13) & (x < 4)),
    )
    run("verify", "-q", "--concat", "time,y,x", *paths, tmp_path / "all.zarr")


@pytest.mark.parametrize("verb", ["convert", "plan", "verify"])
def test_an_interrupted_run_leaves_no_temporary_file(tmp_path, verb):
    paths = tiles(tmp_path / "tiles", BLOCKS, VARIABLES, chunks=3)
    target = tmp_path / "all.zarr"
    if verb == "verify":
        convert("-q", "--concat", "time,y,x", *paths, target)
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [COMMAND, verb, "-q" if verb != "plan" else "--json", "--concat", "time,y,x", *map(str, paths), str(target)],
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.DEVNULL,
    )
    while not os.listdir(tmp_path / "temporary") and process.poll() is None:
        time.sleep(0.0005)
    process.terminate()
    process.wait(timeout=60)
    assert os.listdir(tmp_path / "temporary") == []


def test_falling_coordinates_and_a_group(tmp_path):
    blocks = {"y": [[3, 2], [9, 8, 7], [1]], "x": [[5], [6]]}
    paths = tiles(tmp_path / "tiles", blocks, {"v": ("y", "x")}, group="/g/h")
    convert("-q", "--concat", "y,x", *paths, tmp_path / "all.zarr")
    store = Store(str(tmp_path / "all.zarr"))
    check(lambda name: store.read("g/h/" + name), whole(blocks, falling=["y"]), {"v": ("y", "x")})


def test_random_layouts(tmp_path):
    """Any number of dimensions, blocks of any lengths, variables of some of the dimensions, files that miss."""
    dice = np.random.default_rng(SEED)
    for case in range(CASES):
        folder = tmp_path / str(case)
        names = ["a", "b", "c", "d"][: dice.integers(2, 5)]
        blocks, falling = {}, [n for n in names if dice.random() < 0.3]
        for n in names:
            values = np.cumsum(dice.integers(1, 4, dice.integers(1, 9)))
            cuts = np.unique(dice.integers(0, len(values) + 1, dice.integers(0, 3)))
            parts = [p for p in np.split(values, cuts) if len(p)]
            if all(len(p) == 1 for p in parts) and n in falling:
                falling.remove(n)  # nothing tells the direction
            blocks[n] = [p[:: -1 if n in falling else 1] for p in parts]
        variables = {"v": tuple(names), "w": tuple(dice.permutation(names)[:2]), "u": (names[0],)}
        paths = tiles(folder, blocks, variables, chunks=int(dice.integers(1, 5)))
        if len(paths) < 2:
            continue
        dice.shuffle(paths)
        run("convert", "-q", "--virtual", "--concat", ",".join(names), *paths, folder / "all.h5")
        coordinates = whole(blocks, falling)
        check(h5_reader(folder / "all.h5"), coordinates, variables)
        convert("-q", "--concat", ",".join(dice.permutation(names)), *paths, folder / "all.zarr")
        check(Store(str(folder / "all.zarr")).read, coordinates, variables)
        shutil.rmtree(folder)


def test_files_of_different_variables(tmp_path):
    """What only some files have is there once, or where they have it."""
    time = [[0, 1], [2, 3]]
    a = tiles(tmp_path / "a", {"time": time, "x": [[0, 1], [2]]}, {"tas": ("time", "x")}, chunks=2)
    b = tiles(tmp_path / "b", {"time": time[:1], "x": [[0, 1], [2]]}, {"pr": ("time", "x"), "mask": ("x",)}, chunks=2)
    convert("-q", "--concat", "time,x", *a, *b, tmp_path / "all.zarr")
    store, coordinates = Store(str(tmp_path / "all.zarr")), {"time": np.arange(4.0), "x": np.arange(3.0)}
    check(store.read, coordinates, {"tas": ("time", "x"), "mask": ("x",)})
    check(store.read, coordinates, {"pr": ("time", "x")}, lambda t, x: t >= 2)
    assert store.meta("pr")["dimension_names"] == ["time", "x"]
    run("verify", "-q", "--concat", "time,x", *a, *b, tmp_path / "all.zarr")


def test_other_types(tmp_path):
    """Strings, compounds, enumerations, scalars, references and named types."""
    record = np.dtype([("a", "i4"), ("s", "S3")])
    for i in range(4):
        t, x = divmod(i, 2)
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            for name, k in ("t", t), ("x", x):
                f[name] = np.arange(2 * k, 2 * k + 2)
                f[name].make_scale(name)
            f["named"] = np.dtype("i2")
            for name, values in {
                "words": np.array([[f"{t}{x}{j}{k}" for k in range(2)] for j in range(2)], object),
                "records": np.array([[(i, b"ab"), (i, b"c")], [(7, b""), (8, b"xyz")]], record),
                "colours": np.full((2, 2), i % 2, h5py.enum_dtype({"RED": 0, "BLUE": 1}, basetype="i1")),
            }.items():
                d = f.create_dataset(
                    name, data=values, dtype=h5py.string_dtype() if name == "words" else values.dtype, chunks=(1, 2)
                )
                d.dims[0].attach_scale(f["t"])
                d.dims[1].attach_scale(f["x"])
            f["scalar"] = 2.5
            f["labels"] = np.array(["p", "q"], h5py.string_dtype())
            f.attrs["first"] = f["words"].ref
            f["alias"] = f["records"]
    paths = [tmp_path / f"{i}.h5" for i in range(4)]
    convert("-q", "--concat", "t,x", *paths, tmp_path / "all.zarr")
    store = Store(str(tmp_path / "all.zarr"))
    words = store.read("words")
    assert words.tolist() == [[f"{j // 2}{k // 2}{j % 2}{k % 2}" for k in range(4)] for j in range(4)]
    assert store.read("colours").tolist() == [[0, 0, 1, 1]] * 4 and store.read("scalar") == 2.5
    assert store.read("labels").tolist() == ["p", "q"]
    records = store.read("records")
    assert records.shape == (4, 4) and records["a"].tolist()[0] == [0, 0, 1, 1] and records["s"][3, 3] == b"xyz"
    run("verify", "-q", "--concat", "t,x", *paths, tmp_path / "all.zarr")
    convert("-q", "--virtual", "--zarr-format", "3", "--concat", "t,x", *paths, tmp_path / "all.json")  # to no temporary file
    run("verify", "-q", "--concat", "t,x", *paths, tmp_path / "all.json")


def test_what_does_not_belong_together(tmp_path):
    paths = tiles(tmp_path / "tiles", {"t": [[0, 1], [2]], "x": [[0], [1]]}, {"v": ("t", "x")})

    def sentence(*more, concat="t,x", options=()):
        return refused("convert", "--concat", concat, *options, *paths, *more, tmp_path / "no.zarr", status=None)

    def other(name="other.nc", t=(7, 8), x=(0,), variables=None, **how):
        return write(tmp_path / name, {"t": t, "x": x}, variables or {"v": ("t", "x")}, **how)

    assert "overlap; cut the files" in sentence(other(t=(1, 2)))
    assert "rise in one and fall in the other" in sentence(other(t=(8, 7)))
    assert "neither rise nor fall" in sentence(other(t=(8, 8)))
    assert "neither rise nor fall" in sentence(other(t=(8, np.nan)))
    assert "has another units than in" in sentence(other(attributes={"units": "K"}))
    assert "has other dimensions" in sentence(other(variables={"v": ("x", "t")}))
    assert 'has a dimension "q"' in sentence(concat="t,q")
    assert "has an empty name" in sentence(concat="t,")
    same_place = other(t=(2,), x=(1,))
    with h5py.File(same_place, "r+") as f:
        f["v"][...] = 5
    assert "both are for the same place; see --different" in sentence(same_place)
    convert("-q", "--concat", "t,x", "--different", "first", *paths, same_place, tmp_path / "first.zarr")
    check(Store(str(tmp_path / "first.zarr")).read, {"t": np.arange(3.0), "x": np.arange(2.0)}, {"v": ("t", "x")})
    convert("-q", "--concat", "t,x", "--different", "skip", *paths, same_place, tmp_path / "skip.zarr")
    assert not Store(str(tmp_path / "skip.zarr")).has("v")
    for option in (["--order", "name"], ["--allow-overlap"], ["--resume"], ["--partition", "0/2"], ["--grid", "rectilinear"]):
        assert f"{option[0]} goes with one dimension" in sentence(options=option)
    for name in "far1.h5", "far2.h5":
        with h5py.File(write(tmp_path / name, {"t": [len(name)], "x": [0]}, {}), "r+") as f:
            f.create_dataset("sparse", (1 << 50,), "u1", chunks=(64,))[5] = 1
    far = [tmp_path / "far1.h5", tmp_path / "far2.h5"]
    assert "far larger than what the file has of it" in refused("convert", "--concat", "x,t", *far, tmp_path / "no.zarr")
    assert "only whole local files" in sentence("https://127.0.0.1:9/x.nc")
    with open(tmp_path / "text.nc", "w", encoding="ascii") as f:
        f.write("no HDF5 file")
    assert "text.nc" in sentence(tmp_path / "text.nc")
    assert not (tmp_path / "no.zarr").exists()
