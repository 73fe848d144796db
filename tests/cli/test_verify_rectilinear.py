# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` and `zarrbits inspect` on arrays with rectilinear chunk grids: written by zarr-python, and damaged."""

import copy
import json
import os
import shutil

import h5py
import numpy as np
import pytest

from command import run
from stores_by_hand import LITTLE, array, edit, flip, group, write, write_json

with open(os.path.join(os.path.dirname(os.environ["ZARRBITS_GOLDEN"]), "rectilinear.json")) as golden:
    GOLDEN = json.load(golden)["arrays"]


def verify(source="a.h5", store="a.zarr"):
    r = run("verify", "--json", source, store)
    report = json.loads(r.stdout)
    assert report["exit_status"] == r.returncode, r.returncode
    return r.returncode, report


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def put(*names):
    """Golden arrays as a store, and an HDF5 file with the same values."""
    shutil.rmtree("a.zarr", ignore_errors=True)
    group("a.zarr")
    with h5py.File("a.h5", "w") as f:
        for name in names:
            stored = GOLDEN[name]
            shape = stored["zarr.json"]["shape"]
            values = np.arange(np.prod(shape), dtype="<i2").reshape(shape)
            for first in stored["left_out"]:
                values[first : first + 5] = -5
            f.create_dataset(name, data=values, chunks=tuple(min(4, n) for n in shape), fillvalue=-5)
            write_json(f"a.zarr/{name}", stored["zarr.json"])
            for key, data in stored["objects"].items():
                os.makedirs(os.path.dirname(f"a.zarr/{name}/{key}"), exist_ok=True)
                write(f"a.zarr/{name}/{key}", bytes.fromhex(data))


def test_golden_arrays():
    put(*GOLDEN)
    status, report = verify()
    elements = sum(int(np.prod(a["zarr.json"]["shape"])) for a in GOLDEN.values())
    assert (status, report["findings"], report["datasets"]["equal"]) == (0, [], len(GOLDEN)), report
    assert report["elements"] == {"equal": elements, "unchecked": 0}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_wrong_value_in_each_chunk_is_found(name):
    put(name)
    for key, data in GOLDEN[name]["objects"].items():
        flip("a.zarr", f"{name}/{key}", 0)
        status, report = verify()
        assert status == 1 and len(report["findings"]) == 1, (key, report)
        write(f"a.zarr/{name}/{key}", bytes.fromhex(data))


def test_the_place_of_a_difference():
    put("runs")
    flip("a.zarr", "runs/c/3/1", 0)
    status, report = verify()
    assert status == 1 and "[30, 3]" in report["findings"][0]["reason"], report


def test_inspect():
    put("runs", "longer")
    nodes = {n["path"]: n for n in json.loads(run("inspect", "--json", "a.zarr").stdout)["trees"][0]["nodes"]}
    for name in ("runs", "longer"):
        assert nodes[f"/{name}"]["chunk_grid"] == GOLDEN[name]["zarr.json"]["chunk_grid"]
    assert nodes["/runs"]["chunk_shape"] == [10, 3]
    assert b"up to 10x3" in run("inspect", "a.zarr").stdout


def rectilinear(*shapes, **other):
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": list(shapes)} | other}


HUGE = 2**64 - 1
HOSTILE = {  # chunk grid of an array of 31 x 4: what is said of it
    "too short": (rectilinear([10, 10, 10], 3), "cover 30 of 31"),
    "empty": (rectilinear([], 3), "cover 0 of 31"),
    "a length of 0": (rectilinear([10, 0, 21], 3), "holds 0"),
    "no chunks of a length": (rectilinear([[10, 0], 31], 3), "holds 0"),
    "a number of 0": (rectilinear([31], 0), "holds 0"),
    "a negative length": (rectilinear([-10, 41], 3), "holds -10"),
    "a fraction": (rectilinear([15.5, 15.5], 3), "holds 15.5"),
    "a text": (rectilinear(["31"], 3), 'holds "31"'),
    "three in a run": (rectilinear([[10, 3, 1], 1], 3), "holds [10,3,1]"),
    "a run in a run": (rectilinear([[[10, 3], 1], 1], 3), "holds [10,3]"),
    "one dimension": (rectilinear([31]), "differ in their number of dimensions"),
    "three dimensions": (rectilinear([31], 3, 1), "differ in their number of dimensions"),
    "no list": ({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": 31}}, "not a list"),
    "no lengths": ({"name": "rectilinear", "configuration": {"kind": "inline"}}, '"chunk_shapes"'),
    "no kind": ({"name": "rectilinear", "configuration": {"chunk_shapes": [[31], 3]}}, '"kind"'),
    "nothing": ("rectilinear", '"kind"'),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_grids_that_are_not_valid(case):
    chunk_grid, words = HOSTILE[case]
    put("runs")
    edit("a.zarr", "runs", chunk_grid=chunk_grid)
    status, report = verify()
    assert status == 1 and len(report["findings"]) == 1 and words in report["findings"][0]["reason"], report
    r = run("inspect", "a.zarr")
    assert r.returncode in (0, 3), r


UNSUPPORTED = {
    "another kind": (rectilinear([31], 3, kind="in a file"), None, "of the kind"),
    "shards": (
        rectilinear([10, 10, 11], 3),
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [LITTLE], "index_codecs": [LITTLE]}},
        "shards in a rectilinear chunk grid",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_is_not_supported_is_said(case):
    chunk_grid, codec, words = UNSUPPORTED[case]
    put("runs")
    edit("a.zarr", "runs", chunk_grid=chunk_grid, **({"codecs": [codec]} if codec else {}))
    status, report = verify()
    assert status != 0 and words in json.dumps(report["findings"]), report


@pytest.mark.parametrize(
    "along",
    [
        [[1, HUGE]],
        [[1, HUGE], [1, HUGE], [HUGE, HUGE]],
        [[1, 2**62], [3, HUGE], HUGE],
        [HUGE],
        [[HUGE, HUGE]],
        [1, HUGE, HUGE],
        [[1, 6]] * 10000,
        HUGE,
    ],
    ids=lambda x: json.dumps(x)[:60],
)
def test_lists_that_mean_more_than_there_is(along):
    """They are not expanded: what lies beyond the array does not count, and one chunk of 2^64 elements is refused."""
    group("a.zarr")
    array("a.zarr/a", [6], [1], "int16", [LITTLE], 0, {f"c/{i}": np.array([i], "<i2").tobytes() for i in range(6)})
    edit("a.zarr", "a", chunk_grid=rectilinear(along))
    with h5py.File("a.h5", "w") as f:
        f["a"] = np.arange(6, dtype="<i2")
    status, report = verify()
    if isinstance(along, list) and along[0] in ([1, HUGE], [1, 6], [1, 2**62]):
        assert (status, report["elements"]["equal"]) == (0, 6), report
    else:
        assert status != 0 and len(report["findings"]) == 1, report
    assert run("inspect", "a.zarr").returncode == 0


def test_an_array_of_more_chunks_than_can_be_visited():
    """10^15 chunks of one element in one run, of which none is stored."""
    group("a.zarr")
    array("a.zarr/a", [10**15], [1], "int16", [LITTLE], 0, {"c/5": np.array([7], "<i2").tobytes()})
    edit("a.zarr", "a", chunk_grid=rectilinear([[1, 10**15]]))
    with h5py.File("a.h5", "w") as f:
        d = f.create_dataset("a", (10**15,), "<i2", chunks=(1000,))
        d[5] = 7
    status, report = verify()
    assert status != 1 and report["datasets"]["equal"] + len(report["findings"]) == 1, report


def test_chunks_of_the_wrong_size():
    put("runs")
    for key, data in (("c/3/0", b"\0" * 60), ("c/0/0", b"\0" * 6)):
        write(f"a.zarr/runs/{key}", data)
        status, report = verify()
        assert status == 1 and "bytes instead of" in report["findings"][0]["reason"], report
        write(f"a.zarr/runs/{key}", bytes.fromhex(GOLDEN["runs"]["objects"][key]))


def test_mutated_grids():
    """Each number of each golden grid replaced by others: never anything but a sentence or an equal array."""
    for name, stored in GOLDEN.items():
        put(name)
        shapes = stored["zarr.json"]["chunk_grid"]["configuration"]["chunk_shapes"]
        for d, along in enumerate(shapes):
            for i in range(len(along) if isinstance(along, list) else 1):
                for value in (0, 1, 2, HUGE, [1, 2], [HUGE, HUGE], [], [[2, 2]], None, "2"):
                    changed = copy.deepcopy(shapes)
                    if isinstance(along, list):
                        changed[d][i] = value
                    else:
                        changed[d] = value
                    edit("a.zarr", name, chunk_grid=rectilinear(*changed))
                    status, report = verify()
                    assert status in (0, 1, 3) and (status == 0) == (not report["findings"]), (name, changed, report)
