# SPDX-License-Identifier: BSL-1.0
"""Joined files with --grid rectilinear: chunks end where those of the files do. Values are compared with those that numpy joins;
tests/interop/test_rectilinear.py asks zarr-python, xarray and zarrs."""

import json
import os
import re
import shutil

import h5py
import numpy as np
import pytest

from harness import contents, convert, refused, run, same
from test_concat import ROWS, here, opened, parts, verify, write  # noqa: F401  (here: each test in a folder of its own)

RECTILINEAR = ["--grid", "rectilinear"]
NATIVE = ["--profile", "native", *RECTILINEAR]
LENGTHS = [10, 13, 1, 5, 11, 20]  # chunks of 4 rows, 2 across


def joined(names, *options, out="out.zarr", verb="--concat"):
    done = convert(verb, "t", *names, out, "--json", *options)
    return {o["path"]: o for o in json.loads(done.stdout)["objects"] if o["kind"] == "dataset"}


def grid(node="g/rows", out="out.zarr"):
    return opened(out).meta(node)["chunk_grid"]


def lengths(*along):
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [list(along), [[3, 2]], [10]]}}


def check(names, rows=ROWS, out="out.zarr"):
    made = opened(out)
    assert (made.read("g/rows") == rows).all() and made.read("g/rows").shape == rows.shape
    assert (made.read("t") == np.arange(len(rows))).all()
    result = verify(*names, out)
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 3 * len(names), result


def plan(*arguments):
    document = json.loads(run("plan", "--json", *arguments).stdout)
    return {d["path"]: d for d in document["datasets"]}


@pytest.fixture
def months():
    return parts(*LENGTHS)


WHOLE, CUT = 2 * (2 + 3 + 1 + 2 + 5), 2 * (1 + 1 + 1 + 1 + 1)
EXPECTED = [[4, 2], 2, [4, 3], [1, 2], 4, 1, [4, 2], 3, [4, 5]]


def test_only_the_last_chunk_of_each_file_is_made_again(months):
    objects = joined(months, *NATIVE)
    assert objects["/g/rows"]["chunks"] == {"raw": WHOLE, "recoded": CUT}, objects
    assert grid() == lengths(*EXPECTED) and grid("t")["name"] == "regular"
    check(months)
    # the chunks of the files are there, byte for byte
    with h5py.File(months[5]) as f:
        assert f["g/rows"].id.read_direct_chunk((16, 3, 0))[1] == opened("out.zarr").chunk("g/rows/c/17/1/0")


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"fletcher32": True},
        {"compression": None, "shuffle": False},
        {"compression": None},
        {"compression": "lzf"},
        {"fillvalue": 7},
    ],
    ids=str,
)
@pytest.mark.parametrize("profile", ["portable", "native", "recode"])
def test_chunks_of_every_form(how, profile):
    names = parts(*LENGTHS, **how)
    joined(names, "--profile", profile, *RECTILINEAR, "--checksum", "crc32c")
    assert grid() == lengths(*EXPECTED)
    check(names)


def test_a_grid_that_copies_no_more_stays_regular():
    """Whole chunks, the last of which reaches over the edge; parts smaller than a chunk; and parts without chunks."""
    for names in (
        [write("e0.h5", 0, 12), write("e1.h5", 12, 48)],
        parts(*[1] * 60, chunk=8),
        [write("c0.h5", 0, 30, chunk=None), write("c1.h5", 30, 30, chunk=None)],
    ):
        shutil.rmtree("out.zarr", ignore_errors=True)
        joined(names, *NATIVE)
        assert grid()["name"] == "regular" and grid("t")["name"] == "regular", names
        check(names)
    joined(names, "--chunk", "7,6,10", *RECTILINEAR, out="other.zarr")
    assert grid(out="other.zarr") == {"name": "regular", "configuration": {"chunk_shape": [7, 6, 10]}}


def test_files_with_chunks_of_other_lengths():
    names = [write("m0.h5", 0, 22), write("m1.h5", 22, 20, chunk=5), write("m2.h5", 42, 18, chunk=9)]
    objects = joined(names, *NATIVE)
    assert grid() == lengths([4, 5], 2, [5, 4], [9, 2])
    assert objects["/g/rows"]["chunks"] == {"raw": 2 * (5 + 4 + 2), "recoded": 2}, objects
    check(names)
    # another filter, or another length across: put together, on borders of their own
    other = [write("o0.h5", 0, 22), write("o1.h5", 22, 19, compression="lzf"), write("o2.h5", 41, 19)]
    objects = joined(other, *NATIVE, out="other.zarr")
    assert grid(out="other.zarr") == lengths([4, 5], 2, [4, 4], 3, [4, 4], 3)
    assert objects["/g/rows"]["chunks"] == {"raw": 2 * (5 + 4), "recoded": 2 * 7}, objects
    check(other, out="other.zarr")


def test_another_axis_packed_values_and_what_was_never_written():
    def more(f):
        n = len(f["t"])
        d = f.create_dataset("late", data=ROWS[:n].T[:5], chunks=(5, 3, 4), maxshape=(5, 6, None), compression="gzip")
        d.dims[2].attach_scale(f["t"])
        e = f.create_dataset("empty", (n, 6), "f4", chunks=(4, 4), maxshape=(None, 6), fillvalue=-1.5, compression="gzip")
        e.dims[0].attach_scale(f["t"])
        e[0:4, 0:4] = 2

    names = parts(10, 13, 37, change=more)
    objects = joined(names, "--profile", "native", *RECTILINEAR)
    assert grid("late")["configuration"]["chunk_shapes"] == [[5], [[3, 2]], [[4, 2], 2, [4, 3], 1, [4, 9], 1]]
    assert grid("empty")["configuration"]["chunk_shapes"] == [[[4, 2], 2, [4, 3], 1, [4, 9], 1], 4]
    assert objects["/empty"]["chunks"]["raw"] == 3 and objects["/empty"]["chunks"]["absent"] == 2 * 17 - 3, objects
    made = opened("out.zarr")
    assert (made.read("late") == np.concatenate([ROWS[:n].T[:5] for n in (10, 13, 37)], 2)).all()
    empty = made.read("empty")
    for first in (0, 10, 23):
        assert (empty[first : first + 4, :4] == 2).all()
    assert (empty == 2).sum() == 48 and (empty == -1.5).sum() == 60 * 6 - 48
    result = verify(*names, "out.zarr")
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 5 * 3, result


def test_shares_threads_and_resumed_runs_make_the_same_store(months):
    joined(months, *NATIVE, "--threads", "1", out="one.zarr")
    joined(months, *NATIVE, "--threads", "4", out="four.zarr")
    same("one.zarr", "four.zarr")
    for i in range(3):
        convert("--concat", "t", *months, "shares.zarr", *NATIVE, "--partition", f"{i}/3")
    run("finalize", "--concat", "t", *months, "shares.zarr")
    same("one.zarr", "shares.zarr")
    convert("--concat", "t", *months, "resumed.zarr", *NATIVE, "--partition", "1/3")
    convert("--concat", "t", *months, "resumed.zarr", "--profile", "native", "--grid", "regular", status=1)
    convert("--concat", "t", *months, "resumed.zarr", "--resume")
    same("one.zarr", "resumed.zarr")


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_references_to_all_whole_chunks(months, form):
    out = f"out.{form}"
    joined(months, *RECTILINEAR, "--virtual", out=out)
    if form == "json":
        references = json.load(open(out))["refs"]
        chunks = {k: v for k, v in references.items() if re.fullmatch(r"g/rows/\d+\.\d+\.\d+", k)}
        assert sum(isinstance(v, list) and v[0].endswith(".h5") for v in chunks.values()) == WHOLE
        assert sum(isinstance(v, str) for v in chunks.values()) == CUT and len(chunks) == WHOLE + CUT
    else:
        metadata = json.load(open(os.path.join(out, ".zmetadata")))["metadata"]
        assert metadata["g/rows/.zarray"] == {"shape": [18, 2, 1], "chunks": [1, 1, 1]}
    result = verify(*months, out)
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 18, result


@pytest.mark.parametrize("form", ["zarr", "json", "parquet"])
@pytest.mark.parametrize("first", [1, 2, 4])
def test_a_store_that_grows_gets_more_chunks(months, form, first):
    """An append to a rectilinear grid needs no option, and changes no chunk of it."""
    out, more = f"out.{form}", [] if form == "zarr" else ["--virtual"]
    options = [*NATIVE, *more]
    joined(months, *options, out="whole." + form)
    joined(months[:first], *options, out=out)
    for name in months[first:]:
        before = contents(out) if form == "zarr" else None
        objects = joined([name], *([] if first > 1 else RECTILINEAR), out=out, verb="--append")
        assert "raw" in objects["/g/rows"]["chunks"] or name == months[2], objects
        if form == "zarr" and first > 1:
            after = contents(out)
            assert all(after[k] == v for k, v in before.items() if "rows/c/" in k)
    if form == "zarr":
        assert grid() == lengths(*EXPECTED)
        check(months)
    result = verify(*months, out)
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 18, result
    assert json.loads(run("inspect", "--json", out).stdout)["trees"][0]["nodes"][2].get("chunk_grid") == json.loads(
        run("inspect", "--json", "whole." + form).stdout
    )["trees"][0]["nodes"][2].get("chunk_grid")


def test_a_regular_grid_becomes_rectilinear_only_if_asked(months):
    joined(months[:1], "--profile", "native")
    shutil.copytree("out.zarr", "asked.zarr")
    joined(months[1:], out="out.zarr", verb="--append")
    assert grid() == {"name": "regular", "configuration": {"chunk_shape": [4, 3, 10]}}
    objects = joined(months[1:], *RECTILINEAR, out="asked.zarr", verb="--append")
    assert grid(out="asked.zarr") == lengths(*EXPECTED)
    # and the last chunk of the store, which was full with fill values
    assert objects["/g/rows"]["chunks"] == {"raw": WHOLE - 4, "recoded": CUT}, objects
    check(months)
    check(months, out="asked.zarr")
    # at a border of chunks it stays regular: only the last file ends within a chunk
    even = [write("e0.h5", 0, 12), write("e1.h5", 12, 40), write("e2.h5", 52, 8)]
    joined(even[:1], "--profile", "native", out="even.zarr")
    joined(even[1:], *RECTILINEAR, out="even.zarr", verb="--append")
    assert grid(out="even.zarr")["name"] == "regular"
    check(even, out="even.zarr")


def test_what_is_refused(months):
    text = convert("--concat", "t", *months, "out.zarr", *RECTILINEAR, "--shard", "1M", status=2).stderr
    assert "one shape" in text and "leave out --shard or --grid" in text, text
    assert "use --concat" in convert(months[0], "out.zarr", *RECTILINEAR, status=2).stderr
    assert "regular or rectilinear" in convert("--concat", "t", *months, "out.zarr", "--grid", "round", status=2).stderr
    joined(months[:1], "--profile", "native", "--shard", "16,6,10")
    text = refused("convert", "--append", "t", *months[1:], "out.zarr", *RECTILINEAR)
    assert "shards" in text and "--grid" in text and "the store is as before" in text, text
    joined(months[1:], verb="--append")
    result = verify(*months, "out.zarr")
    assert result["datasets"]["equal"] == 18, result


def test_the_plan_compares_both_grids(months):
    """It counts what is copied on either grid, as the conversions then do, and suggests the other where that saves most."""
    counts = {"regular": {"chunks": 30, "copied": 2 * (2 + 1 + 5)}, "rectilinear": {"chunks": WHOLE + CUT, "copied": WHOLE}}
    one = plan("--concat", "t", *months, "--profile", "native")["/g/rows"]
    assert one["grids"] == {"used": "regular", "suggested": "rectilinear", **counts}, one
    assert one["outcome"] == "recoded" and "14 of 30 chunks put together" in one["how"], one
    other = plan("--concat", "t", *months, *NATIVE)["/g/rows"]
    assert other["grids"] == {"used": "rectilinear", "suggested": "rectilinear", **counts}, other
    assert f"{CUT} of {WHOLE + CUT} chunks put together" in other["how"], other
    for options in ([], RECTILINEAR):
        objects = joined(months, "--profile", "native", *options, out=f"out{len(options)}.zarr")
        expected = counts["rectilinear" if options else "regular"]
        assert objects["/g/rows"]["chunks"] == {
            "raw": expected["copied"],
            "recoded": expected["chunks"] - expected["copied"],
        }
    text = run("plan", "--concat", "t", *months, "--profile", "native").stdout
    assert f"{WHOLE} of {WHOLE + CUT} chunks" in text and "--grid rectilinear" in text, text
    assert "--grid" not in run("plan", "--concat", "t", *months, *NATIVE).stdout
    assert "grids" not in plan("--concat", "t", write("e0.h5", 0, 12), write("e1.h5", 12, 12))["/g/rows"]
    # appended files: their chunks alone
    joined(months[:1], "--profile", "native", out="some.zarr")
    grown = plan("--append", "t", *months[1:], "some.zarr")["/g/rows"]["grids"]
    assert grown["suggested"] == "rectilinear" and grown["rectilinear"]["copied"] == WHOLE - 4, grown


def test_inspect_says_where_the_chunks_end(months):
    joined(months, *NATIVE)
    node = next(n for n in json.loads(run("inspect", "--json", "out.zarr").stdout)["trees"][0]["nodes"] if n["path"] == "/g/rows")
    assert node["chunk_shape"] == [4, 3, 10] and node["chunk_grid"] == lengths(*EXPECTED), node
    assert "up to 4x3x10" in run("inspect", "out.zarr").stdout


@pytest.mark.parametrize("kind", ["regular", "rectilinear"])
def test_a_store_with_more_chunks_than_can_be_walked(kind):
    """A few characters can say 10^15 chunks: those that are in the store are not visited one by one."""
    rows = 10**15
    shapes = {"chunk_shape": [1]} if kind == "regular" else {"kind": "inline", "chunk_shapes": [[[1, rows]]]}
    array = {
        "node_type": "array",
        "shape": [rows],
        "data_type": "int16",
        "chunk_grid": {"name": kind, "configuration": shapes},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": ["t"],
    }
    for folder, node in (("out.zarr", {"node_type": "group"}), ("out.zarr/a", array)):
        os.makedirs(folder)
        with open(f"{folder}/zarr.json", "w") as f:
            json.dump({"zarr_format": 3, "attributes": {}, **node}, f)
    with h5py.File("more.h5", "w") as f:
        f["t"] = np.arange(3)
        f["t"].make_scale("t")
        f.create_dataset("a", data=np.arange(1, 4, dtype="<i2"), chunks=(1,), maxshape=(None,)).dims[0].attach_scale(f["t"])
    convert("--append", "t", "more.h5", "out.zarr", "--exclude", "t", "--allow-overlap", timeout=600)
    grown = opened("out.zarr").meta("a")
    assert grown["shape"] == [rows + 3]
    assert grown["chunk_grid"]["configuration"].get("chunk_shapes", [[[1, rows + 3]]]) == [[[1, rows + 3]]]
    for i in range(3):
        assert opened("out.zarr").chunk(f"a/c/{rows + i}") == bytes([i + 1, 0])
