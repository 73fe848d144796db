# SPDX-License-Identifier: BSL-1.0
"""Files with parts of several dimensions (--concat time,y,x): every value is where its coordinates say, in copies, references and
HDF5 files with virtual datasets; what does not belong together is refused.

ZARRBITS_CASES: layouts, 12 by default. ZARRBITS_SEED: others.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, contents, convert, refused, report, run, same
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
    convert(
        "-q", "--virtual", "--base", "https://host/map", "--zarr-format", "3", "--concat", "x,y", *paths, tmp_path / "web.json"
    )
    with open(tmp_path / "web.json", encoding="utf-8") as f:
        assert json.load(f)["refs"]["v/c/0/0"][0] == "https://host/map/p0_0.nc"


UNEVEN = {"time": [[0, 1], [2, 3, 4]], "y": [[0, 1, 2, 3, 4], [5, 6, 7]], "x": [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9], [10, 11]]}
RECTILINEAR = ["--grid", "rectilinear"]


def lengths_of_chunks(store, name):
    grid = store.meta(name)["chunk_grid"]
    assert grid["name"] == "rectilinear"
    return grid["configuration"]["chunk_shapes"]


def chunks_of(done, path="/tas"):
    return next(o["chunks"] for o in json.loads(done.stdout)["objects"] if o["path"] == path)


@pytest.mark.parametrize(
    ("chunks", "lengths", "copied", "encoded"),
    [
        (99, [[2, 3], [5, 3], [4, 6, 2]], 12, 0),  # a tile is a chunk
        (3, [[2, 3], [3, 2, 3], [3, 1, [3, 2], 2]], 2 * 2 * 4, 2 * 3 * 5 - 2 * 2 * 4),  # some end within a chunk
    ],
)
def test_uneven_tiles_on_a_rectilinear_grid(tmp_path, chunks, lengths, copied, encoded):
    paths = tiles(tmp_path / "tiles", UNEVEN, VARIABLES, chunks=chunks)
    np.random.default_rng(1).shuffle(paths)
    names = ["--concat", "time,y,x", *paths]
    done = convert(*names, tmp_path / "all.zarr", *RECTILINEAR, "--json")
    store = Store(str(tmp_path / "all.zarr"))
    assert lengths_of_chunks(store, "tas") == lengths and lengths_of_chunks(store, "area") == lengths[1:]
    assert store.meta("x")["chunk_grid"]["name"] == "regular"
    assert chunks_of(done) == {"raw": copied, **({"recoded": encoded} if encoded else {})}
    check(store.read, whole(UNEVEN), VARIABLES)
    run("verify", "-q", *names, tmp_path / "all.zarr")
    for options, used in (RECTILINEAR, "rectilinear"), ([], "regular"):
        plan = {d["path"]: d for d in json.loads(run("plan", "--json", *names, *options).stdout)["datasets"]}
        grids = plan["/tas"]["grids"]
        assert grids["used"] == used and grids["rectilinear"] == {"chunks": copied + encoded, "copied": copied}
        assert grids["suggested"] == "rectilinear" and grids["regular"]["copied"] < copied
        assert "grids" not in plan["/x"]
    assert f"a rectilinear grid {copied} of {copied + encoded} chunks" in run("plan", *names).stdout
    # the same of the file that combines them, and as references
    convert("-q", "--virtual", *names, tmp_path / "all.nc")
    convert("-q", tmp_path / "all.nc", tmp_path / "again.zarr", *RECTILINEAR)
    assert lengths_of_chunks(Store(str(tmp_path / "again.zarr")), "tas") == lengths
    check(Store(str(tmp_path / "again.zarr")).read, whole(UNEVEN), VARIABLES)
    convert("-q", "--virtual", "--zarr-format", "3", *names, tmp_path / "all.json", *RECTILINEAR)
    with open(tmp_path / "all.json", encoding="utf-8") as f:
        refs = json.load(f)["refs"]
    files = [v[0] for k, v in refs.items() if k.startswith("tas/c/") and isinstance(v, list) and v[0].endswith(".nc")]
    assert len(files) == copied and len(set(files)) == len(paths)
    run("verify", "-q", *names, tmp_path / "all.json")


def test_chunks_of_most_files(tmp_path):
    """On a regular grid, the shape of most files' chunks, wherever the first one is, and with the chunk at the edge."""
    blocks = {"y": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], "x": [[0, 1, 2], [3, 4, 5]]}
    paths = tiles(tmp_path / "tiles", blocks, {"v": ("y", "x")}, chunks=4)
    done = convert("--concat", "y,x", *reversed(paths), tmp_path / "all.zarr", "--json")
    store = Store(str(tmp_path / "all.zarr"))
    assert store.meta("v")["chunk_grid"]["configuration"] == {"chunk_shape": [4, 3]}
    assert chunks_of(done, "/v") == {"raw": 4, "recoded": 2}
    check(store.read, whole(blocks), {"v": ("y", "x")})


def test_gaps_on_a_rectilinear_grid(tmp_path):
    paths = tiles(tmp_path / "tiles", UNEVEN, VARIABLES, chunks=99, missing=[(0, 1, 1), (1, 0, 2)])
    done = convert("--concat", "time,y,x", *paths, tmp_path / "all.zarr", *RECTILINEAR, "--json")
    assert chunks_of(done)["raw"] == 10 and set(chunks_of(done)) <= {"raw", "absent"}
    check(
        Store(str(tmp_path / "all.zarr")).read,
        whole(UNEVEN),
        {"tas": ("time", "y", "x")},
        lambda t, y, x: ((t < 2) & (y > 4) & (x > 3) & (x < 10)) | ((t > 1) & (y < 5) & (x > 9)),
    )
    run("verify", "-q", "--concat", "time,y,x", *paths, tmp_path / "all.zarr")
    for i in range(3):  # processes
        run("convert", "-q", "--partition", f"{i}/3", "--concat", "time,y,x", *paths, tmp_path / "parts.zarr", *RECTILINEAR)
    run("finalize", "-q", "--concat", "time,y,x", *paths, tmp_path / "parts.zarr")
    assert contents(tmp_path / "parts.zarr") == contents(tmp_path / "all.zarr")


def test_where_there_is_no_rectilinear_grid(tmp_path):
    paths = tiles(tmp_path / "tiles", UNEVEN, VARIABLES, chunks=99)
    sentence = refused("convert", *RECTILINEAR, paths[0], tmp_path / "no.zarr", status=2)
    assert "no dataset of" in sentence and "remove --grid" in sentence
    convert("-q", "--concat", "time,y,x", *paths[:6], tmp_path / "all.zarr", *RECTILINEAR)
    sentence = refused("convert", "--append", "time,y,x", *paths[6:], tmp_path / "all.zarr", *RECTILINEAR)
    assert "differ in their length along another dimension" in sentence


def nested(folder, members=("r1", "r2", "r10"), files=3):
    """Files whose times neither rise nor fall from one to the next; what combine="nested" has of them."""
    stacked = []
    for i, member in enumerate(members):
        os.makedirs(folder / member)
        values = []
        for k in range(files):
            time = [10 * (k * 3 % 5), 10 * (k * 3 % 5) + 1]
            path = write(folder / member / f"t{k + 8}.h5", {"time": time, "x": [1, 2]}, {"v": ("time", "x")}, chunks=2)
            with h5py.File(path, "r+") as f:
                f["v"][...] += 1e6 * i
                values.append(f["v"][...])
        stacked.append(np.concatenate(values))
    return np.stack(stacked)


def test_nested_order(tmp_path):
    """Folders along the first dimension, the files in each along the second, in the order of their names or as given."""
    expected = nested(tmp_path / "in")
    names = [str(p) for p in (tmp_path / "in").glob("*/*.h5")]
    np.random.default_rng(1).shuffle(names)
    how = ["--concat-new", "member", "--concat", "time"]
    convert("-q", *how, "--order", "name", *names, tmp_path / "name.zarr")
    store = Store(str(tmp_path / "name.zarr"))
    np.testing.assert_array_equal(store.read("v"), expected)
    assert store.read("time").tolist() == [0, 1, 30, 31, 10, 11]
    run("verify", "-q", *how, "--order", "name", *names, tmp_path / "name.zarr")
    given = [str(tmp_path / "in" / m / f"t{k}.h5") for m in ("r10", "r1", "r2") for k in (10, 8, 9)]
    run("convert", "-q", "--virtual", *how, "--order", "given", *given, tmp_path / "given.h5")
    with h5py.File(tmp_path / "given.h5") as f:
        rows = [4, 5, 0, 1, 2, 3]
        np.testing.assert_array_equal(f["v"][...], expected[[2, 0, 1]][:, rows])
    run("convert", "-q", "--virtual", "--concat", "time", "--order", "given", *given[:3], tmp_path / "one.h5")
    with h5py.File(tmp_path / "one.h5") as f:
        np.testing.assert_array_equal(f["v"][...], expected[2][rows])


def test_order_by_value_is_that_of_the_coordinates(tmp_path):
    paths = tiles(tmp_path / "tiles", BLOCKS, VARIABLES, chunks=3)
    convert("-q", "--concat", "time,y,x", *paths, tmp_path / "all.zarr")
    convert("-q", "--concat", "time,y,x", "--order", "value", *paths, tmp_path / "value.zarr")
    assert contents(tmp_path / "value.zarr") == contents(tmp_path / "all.zarr")

    def sentence(*options):
        return refused("convert", *options, *paths, tmp_path / "no.zarr", status=2)

    assert "--order name is for two dimensions" in sentence("--concat", "time,y,x", "--order", "name")
    assert "is not an order of files" in sentence("--concat", "time,y", "--order", "size")
    assert "remove --order given" in refused(
        "convert", "--append", "time,y,x", "--order", "given", *paths, tmp_path / "all.zarr", status=2
    )
    (tmp_path / "places.csv").write_text("file,y,x\n", encoding="utf-8")
    assert "remove --order, or --places" in sentence("--concat", "y,x", "--places", tmp_path / "places.csv", "--order", "name")
    nested(tmp_path / "in")
    os.unlink(tmp_path / "in/r2/t8.h5")
    names = [str(p) for p in (tmp_path / "in").glob("*/*.h5")]
    told = refused("convert", "--concat-new", "m", "--concat", "time", "--order", "name", *names, tmp_path / "no.zarr", status=2)
    assert "the same number of files" in told and 'r2" with 2' in told
    told = refused("convert", "--virtual", "--concat", "time", "--allow-overlap", *names, tmp_path / "no.h5", status=2)
    assert "--allow-overlap is for OUT.zarr" in told


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
    for option in (["--allow-overlap"],):
        assert f"{option[0]} goes with one dimension" in sentence(options=option)
    for name in "far1.h5", "far2.h5":
        with h5py.File(write(tmp_path / name, {"t": [len(name)], "x": [0]}, {}), "r+") as f:
            f.create_dataset("sparse", (1 << 50,), "u1", chunks=(64,))[5] = 1
    far = [tmp_path / "far1.h5", tmp_path / "far2.h5"]
    assert "far larger than what the file has of it" in refused("convert", "--concat", "x,t", *far, tmp_path / "no.zarr")
    assert "only whole files" in sentence(f"{paths[0]}:/t")
    with open(tmp_path / "text.nc", "w", encoding="ascii") as f:
        f.write("no HDF5 file")
    assert "text.nc" in sentence(tmp_path / "text.nc")
    assert not (tmp_path / "no.zarr").exists()


def members(folder, missing=(), **how):
    """An ensemble: a folder for each member, with a file for each part of time."""
    paths = []
    for i, member in enumerate(["r1", "r2", "r10"]):
        os.makedirs(folder / member, exist_ok=True)
        for t, times in enumerate([[0, 1], [2, 3, 4]]):
            if (i, t) in missing:
                continue
            paths.append(write(folder / member / f"t{t}.nc", {"time": times, "x": [5, 6]}, {"tas": ("time", "x")}, **how))
            with h5py.File(paths[-1], "r+") as f:
                f["tas"][...] += 1000 * i
                f["run"] = f"run {i}"
                f["weight"] = np.float32(i)
    return paths


def check_members(read, missing=lambda m, t: m < 0):
    m, t, x = np.meshgrid(np.arange(3), np.arange(5), [5, 6], indexing="ij")
    np.testing.assert_array_equal(read("tas"), np.where(missing(m, t), -1.0, 1000 * m + t + 100 * x))
    np.testing.assert_array_equal(read("time"), np.arange(5))
    np.testing.assert_array_equal(read("x"), [5, 6])
    np.testing.assert_array_equal(read("weight"), [0, 1, 2])


def test_members(tmp_path):
    """--concat-new beside --concat: files of one folder are one step."""
    paths = members(tmp_path / "e", chunks=2)
    how = ("--concat-new", "member", "--concat", "time")
    convert("-q", *how, *paths, tmp_path / "all.zarr")
    store = Store(str(tmp_path / "all.zarr"))
    check_members(store.read)
    assert store.meta("tas")["dimension_names"] == ["member", "time", "x"]
    assert store.read("run").tolist() == ["run 0", "run 1", "run 2"]
    run("verify", "-q", *how, *paths, tmp_path / "all.zarr")
    convert("-q", "--virtual", "--zarr-format", "3", *how, *paths, tmp_path / "all.json")
    run("verify", "-q", *how, *paths, tmp_path / "all.json")
    with open(tmp_path / "all.json", encoding="utf-8") as f:
        assert all("/e/r" in v[0] for v in json.load(f)["refs"].values() if isinstance(v, list))  # to no temporary file
    convert("-q", "--virtual", *how, *paths, tmp_path / "all.nc")
    check_members(h5_reader(tmp_path / "all.nc"))
    with h5py.File(tmp_path / "all.nc") as f:
        assert [d[0].name for d in f["tas"].dims] == ["/member", "/time", "/x"]
        assert f["time"].attrs["axis"] == "TIME"
        assert {(f[r].name, int(i)) for r, i in f["time"].attrs["REFERENCE_LIST"]} == {("/tas", 1)}
    convert("-q", tmp_path / "all.nc", tmp_path / "again.zarr")
    check_members(Store(str(tmp_path / "again.zarr")).read)


def test_members_without_some_files(tmp_path):
    paths = members(tmp_path / "e", missing=[(1, 1)], chunks=2)
    done = run("convert", "--concat-new", "member", "--concat", "time", *paths, tmp_path / "all.zarr")
    assert 'note: 1 of the 6 parts of "/tas" is in no file, and reads as the fill value' in done.stderr
    check_members(Store(str(tmp_path / "all.zarr")).read, lambda m, t: (m == 1) & (t >= 2))


def test_members_as_an_hdf5_file(tmp_path):
    """--concat-new alone: each file is a step."""
    paths = [members(tmp_path / "e")[i] for i in (0, 2, 4)]
    convert("-q", "--virtual", "--concat-new", "member", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        assert f["tas"].shape == (3, 2, 2) and f["tas"][:, 0, 0].tolist() == [500, 1500, 2500]
        assert f["time"].shape == (2,)


def test_members_that_cannot_be_told_apart(tmp_path):
    paths = members(tmp_path / "e")
    os.rename(tmp_path / "e" / "r2" / "t0.nc", tmp_path / "e" / "r1" / "other.nc")
    paths[2] = tmp_path / "e" / "r1" / "other.nc"
    how = ("convert", "--concat-new", "member", "--concat", "time")
    assert 'files in one folder are one step of "member"' in refused(*how, *paths, tmp_path / "no.zarr")
    assert "has the name of the new dimension" in refused(
        "convert", "--concat-new", "tas", "--concat", "time", *paths, tmp_path / "no.zarr"
    )
    assert 'has no "/"' in refused(
        "convert", "--concat-new", "a/b", "--concat", "time", *paths, tmp_path / "no.zarr", status=None
    )
    assert "name twice" in refused(
        "convert", "--concat-new", "time", "--concat", "time", *paths, tmp_path / "no.zarr", status=None
    )


def test_places_from_a_list(tmp_path):
    """By numbers, in any order of columns and lines, where coordinates neither rise nor fall or are missing."""
    names, parts = {}, ([[3, 1], [2]], [[0, 9], [4, 4, 4]])
    (tmp_path / "tiles").mkdir()
    for t, y in itertools.product(range(2), range(2)):
        name = f'{"ab"[t]}, "{y}".nc'
        names[t, y] = tmp_path / "tiles" / name
        with h5py.File(names[t, y], "w") as f:
            f["time"] = np.array(parts[0][t], "f8")
            f["time"].make_scale("time")
            f["y"] = np.zeros(len(parts[1][y]), ">f4")
            f["y"].make_scale("This is a netCDF dimension but not a netCDF variable.         2")
            f["v"] = np.array(parts[0][t], "f8")[:, None] * 100 + np.array(parts[1][y])
            for i, d in enumerate(["time", "y"]):
                f["v"].dims[i].attach_scale(f[d])
    lines = ["y,file,time".replace("y,file", "file,y")] + [
        '"{}",{},{}'.format(p.name.replace('"', '""'), y, t) for (t, y), p in reversed(names.items())
    ]
    (tmp_path / "tiles" / "places.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    how = ("--concat", "time,y", "--places", tmp_path / "tiles" / "places.csv")
    convert("-q", *how, *names.values(), tmp_path / "all.zarr")
    store = Store(str(tmp_path / "all.zarr"))
    expected = np.array([3, 1, 2.0])[:, None] * 100 + np.array([0, 9, 4, 4, 4])
    np.testing.assert_array_equal(store.read("v"), expected)
    assert store.read("time").tolist() == [3, 1, 2] and store.meta("v")["dimension_names"] == ["time", "y"]
    run("verify", "-q", *how, *names.values(), tmp_path / "all.zarr")
    convert("-q", "--virtual", *how, *names.values(), tmp_path / "all.nc")
    np.testing.assert_array_equal(h5_reader(tmp_path / "all.nc")("v"), expected)
    # the same files as members of the first dimension
    with open(tmp_path / "new.csv", "w", encoding="utf-8") as f:
        f.write(
            "file,run,y\n" + "".join('"tiles/{}",{},{}\n'.format(p.name.replace('"', '""'), t, y) for (t, y), p in names.items())
        )
    with h5py.File(names[1, 0], "r+") as f:
        f["time"][...] = 0
    again = refused(
        "convert", "--concat-new", "run", "--concat", "y", "--places", tmp_path / "new.csv", *names.values(), tmp_path / "n"
    )
    assert "another length along dimension" in again


def test_lists_of_places_that_are_wrong(tmp_path):
    paths = tiles(tmp_path / "t", {"t": [[0, 1], [2, 3]], "x": [[0], [1]]}, {"v": ("t", "x")})
    right = ["file,t,x", "p0_0.nc,0,0", "p0_1.nc,0,1", "p1_0.nc,1,0", "p1_1.nc,1,1"]

    def sentence(lines, given=None, concat="t,x"):
        (tmp_path / "t" / "list.csv").write_text("\n".join(lines), encoding="utf-8")
        how = ("--concat", concat, "--places", tmp_path / "t" / "list.csv")
        return refused("convert", *how, *(paths if given is None else given), tmp_path / "no.zarr", status=None)

    assert "line 3" in sentence([*right[:2], "p9.nc,0,1", *right[3:]]) and "is not among the files" in sentence(
        [*right, "p9.nc,0,0"]
    )
    assert "has no line for" in sentence(right[:4])
    assert "line 5" in sentence(right, given=paths[:3])
    assert "line 6" in sentence([*right, right[4]]) and "has a line already" in sentence([*right, right[4]])
    assert "is not a place" in sentence([*right[:4], "p1_1.nc,1,-1"]) and "line 5" in sentence([*right[:4], "p1_1.nc,1,x"])
    assert "has 2 fields" in sentence([*right[:4], "p1_1.nc,1"])
    assert 'names the columns, "file,t,x"' in sentence(["file,t,y", *right[1:]])
    assert 'begins with the line "file,t,x"' in sentence([])
    assert "a quote that nothing closes" in sentence([*right[:4], '"p1_1.nc,1,1'])
    assert "line 5 goes on after a field" in sentence([*right[:4], '"p1_1.nc"x,1,1'])
    assert "line 5 has a quote within" in sentence([*right[:4], 'p"1_1.nc,1,1'])
    assert "no file has the place 1 along" in sentence([line.replace(",1,", ",2,") for line in right])
    assert "both have the place 0" in sentence([line.replace(",1,", ",0,") for line in right])
    assert "is given twice" in sentence(right, given=[*paths, paths[0]])
    assert "go with --concat" in refused("convert", "--places", "x.csv", paths[0], tmp_path / "no.zarr", status=None)
    assert "cannot read the list of places" in refused(
        "convert", "--concat", "t", "--places", tmp_path / "none.csv", *paths, tmp_path / "no.zarr", status=None
    )
    assert not (tmp_path / "no.zarr").exists()


def times(path, units, values, x, dtype="i4", **attributes):
    """netCDF with bounds that inherit their units."""
    with h5py.File(path, "w") as f:
        f["time"] = np.asarray(values, dtype)
        f["time"].make_scale("time")
        f["time"].attrs.update({"units": units, "bounds": "time_bnds"} | attributes)
        f["time_bnds"] = np.stack([np.asarray(values), np.asarray(values) + 1], 1).astype(dtype)
        f["x"] = np.asarray(x, "f8")
        f["x"].make_scale("x")
        f.create_dataset("v", data=np.asarray(values, "f8")[:, None] + np.asarray(x, "f8"), chunks=(len(values), len(x)))
        f["time_bnds"].dims[0].attach_scale(f["time"])
        for i, d in enumerate(["time", "x"]):
            f["v"].dims[i].attach_scale(f[d])
    return path


def test_times_of_other_epochs(tmp_path):
    """They are stored in the units of the first file, and so are their bounds; references name no temporary file."""
    paths = [
        times(tmp_path / f"{t}{x}.nc", f"days since 2000-01-{1 + 10 * t:02}", np.arange(10), [2 * x, 2 * x + 1])
        for t, x in itertools.product(range(2), range(2))
    ]
    convert("-q", "--concat", "time,x", *paths[::-1], tmp_path / "all.zarr")
    store = Store(str(tmp_path / "all.zarr"))
    assert store.attributes("time")["units"] == "days since 2000-01-11"
    assert store.read("time").tolist() == list(range(-10, 10)) and store.read("time").dtype == np.int32
    assert store.read("time_bnds").tolist() == [[i, i + 1] for i in range(-10, 10)]
    run("verify", "-q", "--concat", "time,x", *paths[::-1], tmp_path / "all.zarr")
    convert("-q", "--virtual", "--inline", "0", "--concat", "time,x", *paths, tmp_path / "all.json")
    run("verify", "-q", "--concat", "time,x", *paths, tmp_path / "all.json")
    with open(tmp_path / "all.json", encoding="utf-8") as f:
        files = {v[0] for v in json.load(f)["refs"].values() if isinstance(v, list)}
    assert files == {f"file://{p}" for p in (*paths, tmp_path / "all.json.data")}
    # hours that are no whole number of days
    halves = [times(tmp_path / f"h{i}.nc", f"days since 2000-01-01 {12 * i}:00", [i], [0, 1]) for i in range(2)]
    convert("-q", "--virtual", "--concat", "x,time", *halves, tmp_path / "halves.nc")
    with h5py.File(tmp_path / "halves.nc") as f:
        assert f["time"][...].tolist() == [0, 1.5] and f["time_bnds"][...].tolist() == [[0, 1], [1.5, 2.5]]


def test_times_that_do_not_fit_together(tmp_path):
    first = times(tmp_path / "a.nc", "days since 2000-01-01", [0, 1], [0, 1])

    def sentence(units, values=(5, 6), **how):
        other = times(tmp_path / "b.nc", units, values, [0, 1], **how)
        return refused("convert", "--concat", "time,x", first, other, tmp_path / "no.zarr")

    assert "calendars" in sentence("days since 2000-01-01", calendar="noleap")
    assert "another units" in sentence("m")
    assert "their units are" in sentence("months since 2000-01-01")
    assert "another datatype" in sentence("days since 2000-01-03", dtype="f8")
    assert "not a whole number of units" in sentence("hours since 2000-01-01", values=(5 * 24, 6 * 24 + 1))


def test_append_the_tiles_of_a_new_time(tmp_path):
    """As one file of them, along the one dimension that they extend."""
    blocks = {"time": [[0, 1], [2, 3], [4, 5]], "x": [[0, 1], [2, 3]]}
    paths = tiles(tmp_path / "tiles", blocks, {"v": ("time", "x")}, chunks=2)
    convert("-q", "--concat", "time,x", *paths[:4], tmp_path / "all.zarr")
    assert "cannot be" in refused("convert", "--append", "time", *paths[4:], tmp_path / "all.zarr")
    convert("-q", "--virtual", "--concat", "time,x", *paths[4:], tmp_path / "new.nc")
    convert("-q", "--append", "time", tmp_path / "new.nc", tmp_path / "all.zarr")
    check(Store(str(tmp_path / "all.zarr")).read, whole(blocks), {"v": ("time", "x")})
    run("verify", "-q", "--concat", "time,x", *paths, tmp_path / "all.zarr")


APPENDED = {"time": [[0, 1], [2, 3, 4], [5, 6]], "y": [[10, 11, 12], [13, 14]], "x": [[0, 1, 2], [3]]}


@pytest.mark.parametrize("grows", ["time", "y", "x"])
@pytest.mark.parametrize("target", ["all.zarr", "all.json"])
def test_append_along_one_of_several_dimensions(tmp_path, grows, target):
    """Which one follows from the coordinates; the names are in any order."""
    variables = {"v": ("time", "y", "x"), "area": ("y", "x"), "mean": ("time",)}
    paths = tiles(tmp_path / "tiles", APPENDED, variables, chunks=1)
    axis = list(APPENDED).index(grows)
    place = [int(str(p).rsplit("p", 1)[1].removesuffix(".nc").split("_")[axis]) for p in paths]
    last = len(APPENDED[grows]) - 1
    old, new = [p for p, i in zip(paths, place) if i < last], [p for p, i in zip(paths, place) if i == last]
    how = ["-q", "--virtual"] if target.endswith(".json") else ["-q"]
    convert(*how, "--concat", "time,y,x", *old, tmp_path / target)
    append = ["--append", "x,time,y", *new, tmp_path / target]
    plan = json.loads(run("plan", "--json", *append, status=(0, 3)).stdout)
    assert {d["path"] for d in plan["datasets"] if d["outcome"] != "skipped"} >= {"/v", "/" + grows}
    run("verify", "-q", "--concat", "time,y,x", *old, tmp_path / target)  # the plan wrote nothing
    done = convert(*append, "--report", tmp_path / "r.json")
    assert f"{len(new)} file{'s' * (len(new) > 1)} joined" in done.stderr + done.stdout
    sources = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["sources"]
    begin = sum(map(len, APPENDED[grows][:-1]))
    assert [(s["file"], s["first"], s["count"]) for s in sources] == [(p, begin, len(APPENDED[grows][-1])) for p in new]
    run("verify", "-q", "--concat", "time,y,x", *paths, tmp_path / target)
    if target.endswith(".zarr"):
        check(Store(str(tmp_path / target)).read, whole(APPENDED), variables)
    again = convert(*append)
    assert "already: nothing was appended" in again.stderr + again.stdout, again
    run("verify", "-q", "--concat", "time,y,x", *paths, tmp_path / target)


def test_what_several_dimensions_cannot_be_appended(tmp_path):
    variables = {"v": ("time", "x")}
    blocks = {"time": [[0, 1], [2, 3]], "x": [[0, 1], [2, 3]]}
    first, right, above, corner = tiles(tmp_path / "tiles", blocks, variables)
    store = tmp_path / "all.zarr"
    convert("-q", "--concat", "time,x", first, right, store)
    before = contents(store)

    def sentence(*files, status=1, options=()):
        said = refused("convert", "-q", *options, "--append", "time,x", *files, store, status=status)
        assert contents(store) == before
        return said

    assert '"/time" and "/x" are not those of the store' in sentence(above)  # half of the new row
    assert '"/time" and "/x" are not those of the store' in sentence(corner)
    assert "all dimensions already" in sentence(first, right)
    earlier = tiles(tmp_path / "earlier", {"time": [[-2, -1]], "x": [[0, 1], [2, 3]]}, variables)
    assert "time" in sentence(*earlier)
    other = tiles(tmp_path / "other", {"time": [[2, 3]], "x": [[0, 1], [2, 4]]}, variables)
    assert "are not those of the store" in sentence(*other)
    assert "--base goes with one dimension" in sentence(above, corner, status=2, options=["--base", "https://host"])
    assert "follows the coordinates; remove --order name" in sentence(above, corner, status=2, options=["--order", "name"])
    assert "empty name" in refused("convert", "--append", "time,", above, corner, store, status=2)
    assert "no dataset" in refused("convert", "--append", "time,z", above, corner, store, status=None)
    missing = refused("convert", "--append", "time,x", above, corner, tmp_path / "no.zarr")
    assert "no such store" in missing and "no.zarr" in missing and not (tmp_path / "no.zarr").exists()
    assert "no such store" in refused("plan", "--append", "time,x", above, corner)
    convert("-q", "--append", "time,x", above, corner, store)
    check(Store(str(store)).read, whole(blocks), variables)


def test_partitions_are_those_of_the_same_files(tmp_path):
    blocks = {"time": [[0, 1], [2, 3], [4, 5]], "x": [[0, 1], [2, 3]]}
    paths = tiles(tmp_path / "tiles", blocks, {"v": ("time", "x"), "w": ("x", "time")}, chunks=2)
    how = ["-q", "--concat", "time,x", *paths]
    convert(*how, tmp_path / "whole.zarr")
    for target in "parts.zarr", "changed.zarr":
        convert(*how, "--partition", "0/2", tmp_path / target)
    convert(*how, "--partition", "1/2", tmp_path / "parts.zarr")
    run("finalize", *how, tmp_path / "parts.zarr")
    same(tmp_path / "whole.zarr", tmp_path / "parts.zarr")
    assert "is complete" in run("convert", *how[1:], "--resume", tmp_path / "parts.zarr").stderr
    run("finalize", *how, tmp_path / "changed.zarr", status=1)  # a part is missing
    other_order = [*how[:3], *paths[::-1]]
    assert "continue it as it was begun" in refused("convert", *other_order, "--partition", "1/2", tmp_path / "changed.zarr")
    with h5py.File(paths[0], "r+") as f:
        f["v"][...] = 7
    assert "continue it as it was begun" in refused("convert", *how, "--partition", "1/2", tmp_path / "changed.zarr")


@pytest.mark.parametrize("option", [[], ["--resume"]])
def test_a_killed_conversion_goes_on(tmp_path, option):
    parts = [[2 * i, 2 * i + 1] for i in range(40)]
    paths = [
        write(str(tmp_path / f"{i:02}.nc"), {"y": p, "x": np.arange(1 << 14)}, {"v": ("y", "x")}, 1 << 15)
        for i, p in enumerate(parts)
    ]
    how = ["--concat", "y,x", *paths]
    convert("-q", *how, tmp_path / "whole.zarr")
    for attempt in range(30):
        out = tmp_path / f"{attempt}.zarr"
        with subprocess.Popen(
            [COMMAND, "convert", "-q", "--threads", "1", *how, out], stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            while not (out / "v/c/0/0").exists() and process.poll() is None:
                pass
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        if not (out / "zarr.json").exists():  # otherwise it was complete before
            break
    convert("-q", *how, *option, out)
    same(tmp_path / "whole.zarr", out)


def test_a_part_that_changes_meanwhile(tmp_path):
    """The unit that has copied its chunk looks at the file once more, at no other file."""
    parts = [[2 * i, 2 * i + 1] for i in range(40)]
    paths = [
        write(str(tmp_path / f"{i:02}.nc"), {"y": p, "x": np.arange(1 << 16)}, {"v": ("y", "x")}, 1 << 17)
        for i, p in enumerate(parts)
    ]
    convert("-q", "--virtual", "--concat", "y", *paths, tmp_path / "all.nc")
    for attempt in range(30):
        out = tmp_path / f"{attempt}.zarr"
        with subprocess.Popen(
            [COMMAND, "convert", "-q", "--threads", "1", tmp_path / "all.nc", out],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            while not (out / "v/c/0/0").exists() and process.poll() is None:
                pass
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGSTOP)
            is_between = (out / "v/c/0/0").exists() and not (out / "v/c/39/0").exists()
            if is_between:
                with open(paths[0], "ab") as f:
                    f.write(b"\0")
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGCONT)
            said = process.communicate()[1]
        if not is_between:
            continue
        if "it changed meanwhile" in said:  # seen earlier, by the thread that was still reading the file
            assert process.returncode == 1 and f'"{paths[0]}" cannot be read' in said, said
            os.truncate(paths[0], os.path.getsize(paths[0]) - 1)
            continue
        assert process.returncode == 1 and f'"{paths[0]}" changed while it was converted' in said, said
        return
    pytest.skip("the conversion was never stopped between two chunks")
