# SPDX-License-Identifier: BSL-1.0
"""A store that grows: --append. Values are compared with those that numpy joins;
tests/interop/test_append.py compares with xarray.

ZARRBITS_KILLS: how many; ZARRBITS_SEED: others.
"""

import fcntl
import hashlib
import json
import os
import random
import shutil
import time

import h5py
import numpy as np
import pytest

from harness import convert
from kills import Reader, begin, end, kill_after, slow_writes
from test_concat import ROWS, here, opened, parts, verify, write  # noqa: F401  (here: each test in a folder of its own)

KILLS, SEED = int(os.environ.get("ZARRBITS_KILLS", "10")), int(os.environ.get("ZARRBITS_SEED", "5"))


def begun(files, *options):
    shutil.rmtree("out.zarr", ignore_errors=True)
    convert("--concat", "t", *files, "out.zarr", "--quiet", *options)


def append(*files, status=0):
    done = convert("--append", "t", *files, "out.zarr", "--json", status=status)
    return json.loads(done.stdout) if done.stdout else done.stderr


def state(folder="out.zarr"):
    return {
        os.path.relpath(os.path.join(at, name), folder): open(os.path.join(at, name), "rb").read()
        for at, _, names in os.walk(folder)
        for name in names
    }


def check(files, rows=ROWS, read=True):
    if read:
        made = opened("out.zarr")
        assert (made.read("g/rows") == rows).all() and made.read("g/rows").shape == rows.shape
        assert (made.read("t") == np.arange(len(rows))).all()
    result = verify(*files, "out.zarr")
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 3 * len(files), result


GZIP = ["--compress", "gzip:1"]


@pytest.mark.parametrize(
    "options",
    [
        GZIP,
        ["--profile", "native"],
        ["--compress", "none", "--checksum", "crc32c"],
        [*GZIP, "--shard", "16,6,10"],
        ["--profile", "native", "--shard", "8,3,10"],
        [*GZIP, "--chunk", "7,6,10"],
    ],
    ids=" ".join,
)
def test_file_by_file(options):
    files = parts(10, 13, 1, 5, 11, 20)
    begun(files[:1], *options)
    for file in files[1:]:
        append(file)
        assert not os.path.exists("out.zarr/.zarrbits-append")
    check(files, read=options == GZIP or "--chunk" in options)
    before = state()
    report = append(*files)
    assert [s["notes"] for s in report["sources"]] == [["it is already in the store"]] * 6 and state() == before
    notes = opened("out.zarr").notes()["sources"]
    assert [(n["file"], n["first"], n["count"]) for n in notes] == [
        ("p0.h5", 0, 10),
        ("p1.h5", 10, 13),
        ("p2.h5", 23, 1),
        ("p3.h5", 24, 5),
        ("p4.h5", 29, 11),
        ("p5.h5", 40, 20),
    ]


def test_whole_chunks_are_copied_and_old_ones_not_touched():
    files = parts(12, 24, 24)
    begun(files[:1], "--profile", "native")
    before = state()
    chunks = {o["path"]: o["chunks"] for o in append(*files[1:])["objects"]}
    assert chunks["/g/rows"] == {"raw": 24}, chunks
    assert {k: v for k, v in state().items() if k in before and k.startswith("g/rows/c")} == {
        k: v for k, v in before.items() if k.startswith("g/rows/c")
    }


def test_a_shard_begins_with_what_it_was():
    """A reader that has the old index finds its chunks where they were."""
    files = parts(10, 3)
    begun(files[:1], "--profile", "native", "--shard", "64,6,10")
    key = "out.zarr/g/rows/c/0/0/0"
    old = open(key, "rb").read()
    append(files[1])
    index = 16 * 2 * 16 + 4
    assert open(key, "rb").read()[: len(old) - index] == old[:-index]
    check(files, read=False)


def test_another_axis_and_a_dimension_without_scale():
    images = np.arange(6 * 20 * 4, dtype="u2").reshape(6, 20, 4)
    for i, (a, b) in enumerate([(0, 7), (7, 12), (12, 20)]):
        with h5py.File(f"i{i}.h5", "w") as f:
            f.create_dataset("images", data=images[:, a:b], chunks=(3, 4, 4), maxshape=(None, None, 4), compression="gzip")
    convert("--concat", "/images:1", "i0.h5", "out.zarr", "--quiet")
    for i in (1, 2):
        convert("--append", "/images:1", f"i{i}.h5", "out.zarr", "--quiet")
    assert (opened("out.zarr").read("images") == images).all()
    assert opened("out.zarr").notes("images")["maxshape"] == [None, None, 4]


def test_a_store_of_one_file():
    files = parts(10, 20)
    convert(files[0], "out.zarr", "--quiet", *GZIP)
    append(files[1])
    assert (opened("out.zarr").read("g/rows") == ROWS[:30]).all()
    assert [n["first"] for n in opened("out.zarr").notes()["sources"]] == [10]


def test_texts_and_truths_are_completed():
    for i, n in enumerate([3, 5]):
        with h5py.File(f"x{i}.h5", "w") as f:
            f.create_dataset("text", data=[f"{i}.{k} é" * k for k in range(n)], chunks=(4,), maxshape=(None,))
            f.create_dataset("fixed", data=np.array([f"{i}{k}" for k in range(n)], "S4"), chunks=(4,), maxshape=(None,))
            f.create_dataset("truth", data=np.arange(n) % 2 == i, chunks=(4,), maxshape=(None,))
            f.create_dataset("big", data=np.arange(n, dtype=">f4") + 10 * i, chunks=(4,), maxshape=(None,))
    convert("--concat", "/*:0", "x0.h5", "out.zarr", "--quiet")
    convert("--append", "/*:0", "x1.h5", "out.zarr", "--quiet")
    made = opened("out.zarr")
    assert list(made.read("text")) == [f"0.{k} é" * k for k in range(3)] + [f"1.{k} é" * k for k in range(5)]
    assert list(made.read("fixed")) == ["00", "01", "02", "10", "11", "12", "13", "14"]
    assert made.read("truth").tolist() == [True, False, True, False, True, False, True, False]
    assert made.read("big").tolist() == [0, 1, 2, 10, 11, 12, 13, 14]


def test_what_was_never_written():
    """Chunks that a file does not have read as its fill value, whatever the store's is, and no older file becomes one."""

    def make(name, n, fill, rows):
        with h5py.File(name, "w") as f:
            d = f.create_dataset("d", (n, 4), "i4", chunks=(2, 4), maxshape=(None, 4), fillvalue=fill)
            for r in rows:
                d[r] = r

    make("a.h5", 3, 7, [0])
    make("b.h5", 8, 7, [7])
    make("c.h5", 8, 9, [7])
    for other, fill in (("b.h5", 7), ("c.h5", 9)):
        shutil.rmtree("out.zarr", ignore_errors=True)
        convert("--concat", "/d:0", "a.h5", "out.zarr", "--quiet")
        for k in (3, 4, 5, 9):  # of an array that was longer once
            os.makedirs(f"out.zarr/d/c/{k}", exist_ok=True)
            shutil.copy("out.zarr/d/c/0/0", f"out.zarr/d/c/{k}/0")
        convert("--append", "/d:0", other, "out.zarr", "--quiet")
        want = np.concatenate([[0, 7, 7], [fill] * 7, [7]])
        assert opened("out.zarr").read("d")[:, 1].tolist() == want.tolist(), other


def test_what_is_refused_changes_nothing():
    files = parts(10, 13, 5)
    begun(files[:2], *GZIP)
    before = state()

    def refused(*names, words):
        text = append(*names, status=1)
        assert all(w in text for w in words), text
        assert state() == before

    again = shutil.copy(files[0], "again.h5")
    refused(again, words=["does not continue", "out.zarr"])
    changed = write("p1.h5", 10, 13, change=lambda f: f.attrs.__setitem__("more", 1))
    refused(files[2], changed, words=["p1.h5", "already", "another"])
    refused(
        write("mask.h5", 23, 5, change=lambda f: f["mask"].__setitem__((0, 0), 9)),
        words=["/mask", "values differ", "--different"],
    )
    refused(write("less.h5", 23, 5, change=lambda f: f.__delitem__("g/rows")), words=["/g/rows", "no such dataset"])
    refused(write("more.h5", 23, 5, change=lambda f: f.__setitem__("more", 1)), words=["/more", "not in the store", "--exclude"])
    refused(
        write("float.h5", 23, 5, change=lambda f: f["g/rows"].attrs.__setitem__("scale_factor", 0.5)),
        words=["a different type", "its packing differs"],
    )
    refused("list.h5", words=["list.h5"])
    with open("damaged.h5", "wb") as f:
        f.write(b"\x89HDF\r\n\x1a\n" * 100)
    refused(files[2], "damaged.h5", words=["damaged.h5"])
    for options in (["--shard", "1M"], ["--overwrite"], ["--resume"], ["--concat", "t"]):
        convert("--append", "t", files[2], "out.zarr", *options, status=2)
    convert("--append", "t", files[2], "out.zarr", "--partition", "0/2", status=2)
    convert("--append", "t", files[2], "out.zip", status=2)
    assert "no such store" in convert("--append", "t", files[2], "none.zarr", status=1).stderr and not os.path.exists("none.zarr")
    assert state() == before
    os.makedirs("out.zarr/.zarrbits-append")
    with open("out.zarr/.zarrbits-append/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another process" in append(files[2], status=1)
    append(files[2])


def test_stores_that_lie():
    files = parts(10, 13)
    begun(files[:1], *GZIP, "--shard", "16,6,10")
    shutil.copytree("out.zarr", "good.zarr")

    def broken(key, change, said):
        shutil.rmtree("out.zarr")
        shutil.copytree("good.zarr", "out.zarr")
        with open(f"out.zarr/{key}", "rb+") as f:
            text = change(f.read())
            f.seek(0)
            f.truncate()
            f.write(text)
        before = state()
        assert said in append(files[1], status=1)
        assert state() == before

    def edited(**what):
        return lambda text: json.dumps({**json.loads(text), **what}).encode()

    broken("g/rows/zarr.json", edited(chunk_key_encoding={"name": "v2"}), "chunk keys do not have the form")
    broken("g/rows/zarr.json", edited(data_type="float16"), "datatypes differ")
    broken("g/rows/zarr.json", edited(shape=[10, 7, 10]), "dimensions")
    broken("g/rows/zarr.json", edited(shape=[1 << 63, 6, 10]), "length")
    broken("g/rows/zarr.json", edited(codecs=[]), "codec")
    broken("g/rows/zarr.json", lambda text: text[:-20], "zarr.json")
    broken("zarr.json", edited(attributes={"zarrbits": {"sources": [{"file": 3}]}}), "list of the files")
    broken("g/rows/c/0/0/0", lambda text: text[:-5] + b"\0" + text[-4:], "checksum")
    broken("g/rows/c/0/0/0", lambda text: text[:50], "shorter")


def test_a_store_that_was_changed_meanwhile_is_told():
    files = parts(10, 13)
    begun(files[:1], *GZIP)
    shutil.copytree("out.zarr", "other.zarr")
    append(files[1])
    os.makedirs("other.zarr/.zarrbits-append/store")
    shutil.copy("out.zarr/zarr.json", "other.zarr/.zarrbits-append/store/zarr.json")
    with open("other.zarr/.zarrbits-append/metadata", "w") as f:
        json.dump([{"key": "zarr.json", "before": "00", "after": "11"}], f)
    shutil.rmtree("out.zarr")
    os.rename("other.zarr", "out.zarr")
    assert "changed by another program" in append(files[1], status=1)
    with open("out.zarr/.zarrbits-append/metadata", "w") as f:
        json.dump([{"key": "../../zarr.json", "before": "00", "after": "11"}], f)
    assert "not a valid key in a store" in append(files[1], status=1)
    shutil.rmtree("out.zarr/.zarrbits-append")
    append(files[1])
    check(files, ROWS[:23])


def test_another_program_that_changes_the_store_meanwhile_is_noticed():
    """Between the moment when its metadata is read and the one when it would be replaced."""
    slow = slow_writes()
    if not slow:
        pytest.skip("writes cannot be made slow here")
    files = parts(10, 13)
    begun(files[:1], *GZIP)
    before = state()
    process = begin("convert", "--append", "t", files[1], "out.zarr", "--quiet", "--threads", "1", **slow)
    while process.poll() is None and not os.path.exists("out.zarr/.zarrbits-append/store/g/rows/c"):
        time.sleep(0.001)
    with open("out.zarr/g/rows/zarr.json") as f:
        node = json.load(f)
    node["attributes"]["more"] = 1
    with open("changed", "w") as f:
        json.dump(node, f)
    with open("changed", "rb") as f:
        before["g/rows/zarr.json"] = f.read()
    os.rename("changed", "out.zarr/g/rows/zarr.json")
    status, said = end(process)
    assert status == 1, said
    assert "another program changed" in said
    assert "g/rows/zarr.json" in said
    assert state() == before
    append(files[1])
    with open("out.zarr/g/rows/zarr.json") as f:
        node = json.load(f)
    assert node["attributes"]["more"] == 1
    assert node["shape"][0] == 23


def look():
    """Where the coordinate has a value, the rows must be those of that value."""
    made = opened("out.zarr")
    t, rows = made.read("t"), made.read("g/rows")
    assert len(rows) >= len(t) and (rows[: len(t)] == ROWS[t]).all(), (len(t), len(rows))
    return len(t)


def test_killed_at_any_moment_with_a_reader():
    files = parts(7, 6, 9, 13, 2, 4, 19)
    dice = random.Random(SEED)
    begun(files[:1], *GZIP)
    with Reader(look) as reader:
        for i in range(1, len(files)):
            before = len(opened("out.zarr").read("t"))
            for _ in range(-(-KILLS // (len(files) - 1))):
                kill_after(dice.uniform(0, 0.06), "convert", "--append", "t", *files[: i + 1], "out.zarr", "--quiet")
                now = len(opened("out.zarr").read("t"))
                assert now in (before, before + len(h5py.File(files[i])["t"]))
            append(*files[: i + 1])
            assert not os.path.exists("out.zarr/.zarrbits-append")
    print(f"{KILLS} kills (seed {SEED}), reads by length: {dict(sorted(reader.seen.items()))}")
    check(files)


@pytest.mark.parametrize("moved", [0, 0.3, 0.7, 1])
def test_a_move_that_was_cut_off_is_gone_on_with(moved):
    """Some files were renamed to their places, in order, and others not: the next run renames the others."""
    files = parts(10, 13)
    begun(files[:1], *GZIP)
    old = state()
    append(files[1])
    new = state()
    metadata = ["g/rows/zarr.json", "t/zarr.json", "zarr.json"]
    order = sorted(
        (k for k in new if new[k] != old.get(k)), key=lambda k: (k in metadata, metadata.index(k) if k in metadata else 0)
    )
    done = order[: int(moved * len(order))]
    shutil.rmtree("out.zarr")
    places = {k: f"out.zarr/{k}" for k in {*old, *done}} | {
        k: f"out.zarr/.zarrbits-append/store/{k}" for k in order if k not in done
    }
    for key, place in [*places.items(), *((k, f"out.zarr/{k}") for k in order if k in old and k not in done)]:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as f:
            f.write(new[key] if key in done or "zarrbits-append" in place else old[key])
    os.makedirs("out.zarr/.zarrbits-append/store", exist_ok=True)
    with open("out.zarr/.zarrbits-append/metadata", "w") as f:
        json.dump(
            [
                {"key": k, "before": hashlib.sha256(old[k]).hexdigest(), "after": hashlib.sha256(new[k]).hexdigest()}
                for k in metadata
            ],
            f,
        )
    report = append(files[1])
    assert state() == new and report["sources"][0]["notes"] == ["it is already in the store"]
