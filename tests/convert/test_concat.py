# SPDX-License-Identifier: BSL-1.0
"""Several files as one store: --concat. Values are compared with those that numpy joins;
tests/interop/test_concat.py compares with xarray."""

import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import pytest

import harness
import store
from harness import convert, run


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def opened(name):
    return store.Store(os.path.abspath(name))


ROWS = np.random.default_rng(5).integers(-1000, 1000, (60, 6, 10)).astype("i2")


def write(name, first, count, chunk=4, change=None, **how):
    """Rows of ROWS with their number as the scale `t`, and a mask that all files share."""
    with h5py.File(name, "w") as f:
        f.attrs["title"] = "rows"
        f["t"] = np.arange(first, first + count, dtype="i8")
        f["t"].make_scale("t")
        d = f.create_dataset(
            "g/rows",
            data=ROWS[first : first + count],
            chunks=chunk and (chunk, 3, 10),
            maxshape=(None, 6, 10) if chunk else None,
            **{"compression": "gzip", "shuffle": True, **how} if chunk else {},
        )
        d.dims[0].attach_scale(f["t"])
        f["mask"] = np.arange(12).reshape(3, 4)
        if change:
            change(f)
    return name


def parts(*lengths, **how):
    """Files of so many rows each, one after the other."""
    ends = np.cumsum([0, *lengths])
    return [write(f"p{i}.h5", int(ends[i]), n, **how) for i, n in enumerate(lengths)]


def verify(*args, **how):
    return harness.verify("--concat", "t", *args, **how)


def joined(files, *options, status=0, compress=("--compress", "gzip:1"), out="out.zarr"):
    shutil.rmtree(out, ignore_errors=True)
    done = convert("--concat", "t", *files, out, *compress, *options, "--json", status=status)
    return json.loads(done.stdout) if done.stdout else done.stderr


def check(files, rows, *options, **how):
    """The store has these rows; verify agrees, and finds a wrong row."""
    report = joined(files, *options, **how)
    if how.get("compress", True) and "--shard" not in options:
        made = opened("out.zarr")
        got = made.read("g/rows")
        assert got.shape == rows.shape and (got == rows).all()
        assert (made.read("t") == np.arange(rows.shape[0])).all()
        assert (made.read("mask") == np.arange(12).reshape(3, 4)).all()
        assert [s["first"] for s in made.notes()["sources"]] == [s["first"] for s in report["sources"]]
    result = verify(*files, "out.zarr", *(options if "--order" in options else ()))
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 3 * len(files), result
    return {o["path"]: o for o in report["objects"] if o["kind"] == "dataset"}, report


@pytest.fixture
def even():
    return [write(f"even{i}.h5", 12 * i, 12) for i in range(5)]


@pytest.fixture
def uneven():
    return [write("u0.h5", 0, 10), write("u1.h5", 10, 13), write("u2.h5", 23, 1), write("u3.h5", 24, 36)]


def refused(files, *options, words):
    text = joined(files, *options, status=1)
    assert all(w in text for w in words) and not os.path.exists("out.zarr"), text
    return text


def other_mask(f):
    f["mask"][0, 0] = 9


def other_units(units, attribute="units"):
    return lambda f: f["g/rows"].attrs.__setitem__(attribute, units)


def test_parts_at_chunk_borders_are_copied_and_others_put_together(even, uneven):
    """Parts that begin at chunk borders are copied; those that do not are put together."""
    objects, report = check(even, ROWS, "--profile", "native", compress=())
    assert objects["/g/rows"]["chunks"] == {"raw": 30} and [s["count"] for s in report["sources"]] == [12] * 5, objects
    check(even, ROWS)
    check(even, ROWS, "--shard", "8,6,10")
    check(even, ROWS, "--chunk", "7,6,10")
    objects, _ = check(uneven, ROWS, "--profile", "native", compress=())
    assert objects["/g/rows"]["chunks"] == {"raw": 2 * 2 + 9 * 2, "recoded": 4 * 2}, objects
    check(uneven, ROWS)
    check([write("c0.h5", 0, 30, chunk=None), write("c1.h5", 30, 30, chunk=None)], ROWS)
    objects, _ = check(
        [write("m0.h5", 0, 20), write("m1.h5", 20, 20, chunk=5), write("m2.h5", 40, 20)],
        ROWS,
        "--profile",
        "native",
        compress=(),
    )
    assert objects["/g/rows"]["chunks"] == {"raw": 20, "recoded": 10}, objects
    check([write("f0.h5", 0, 20, compression="gzip"), write("f1.h5", 20, 40, compression="lzf")], ROWS)


def test_verify_names_what_is_not_of_the_store(even):
    damaged = write("wrong.h5", 24, 12)
    with h5py.File(damaged, "r+") as f:
        f["g/rows"][5, 3, 3] += 1
    joined(even)
    found = verify(even[0], even[1], damaged, even[3], even[4], "out.zarr", status=1)["findings"]
    assert len(found) == 1 and found[0]["index"] == [29, 3, 3] and "wrong.h5" in found[0]["reason"], found
    found = verify(*even[:4], "out.zarr", status=1)["findings"]
    assert {f["path"] for f in found} == {"/g/rows", "/t"} and "all files together" in found[0]["reason"], found


def test_order_and_names(even):
    shuffled = [even[2], even[0], even[1], even[4], even[3]]
    refused(shuffled, words=["does not continue", "change direction", "--order", "--allow-overlap"])
    refused([even[0], even[0]], words=["does not continue"])
    check(shuffled, ROWS, "--order", "name")
    joined(shuffled, "--order", "value")
    assert (opened("out.zarr").read("g/rows") == ROWS).all()
    joined([even[0], even[0]], "--allow-overlap")
    assert (opened("out.zarr").read("g/rows") == np.concatenate([ROWS[:12]] * 2)).all()
    os.mkdir("zeros")  # one order of names: that of the pattern is that of --order
    numbers = ["1", "02", "2", "010", "10", "11"]
    for i, n in enumerate(sorted(numbers, key=lambda n: (int(n), n))):
        write(f"zeros/z{n}.h5", i, 1)
    for how in (["zeros/*.h5"], [*(f"zeros/z{n}.h5" for n in reversed(numbers)), "--order", "name"]):
        joined(how)
        assert (opened("out.zarr").read("t") == np.arange(6)).all()
    for i in range(11):
        write(f"n{i}.h5", i, 1)
    joined(["n*.h5"])
    assert (opened("out.zarr").read("g/rows") == ROWS[:11]).all()
    with open("list.txt", "w") as f:
        f.write("even0.h5\neven1.h5\n")
    joined(["@list.txt"])
    assert (opened("out.zarr").read("t") == np.arange(24)).all()


def test_what_differs_is_refused_or_named(even):
    differs = write("d1.h5", 12, 12, change=other_mask)
    refused([even[0], differs], words=["mask", "their values differ", "even0.h5", "d1.h5", "--different"])
    report = joined([even[0], differs], "--different", "first")
    assert "mask" in report["sources"][1]["notes"][0], report["sources"]
    joined([even[0], differs], "--different", "skip")
    assert not opened("out.zarr").has("mask")
    refused([even[0], write("d2.h5", 12, 12, change=lambda f: f.__setitem__("more", 1))], words=["/more", "d2.h5"])
    refused(
        [write("k0.h5", 0, 12, change=other_units("K")), write("k1.h5", 12, 12, change=other_units("degC"))],
        words=["units", "degC"],
    )
    report = joined([even[0], write("d3.h5", 12, 12, change=lambda f: f.attrs.__setitem__("title", "other"))])
    assert '"title"' in report["sources"][1]["notes"][0], report["sources"]
    refused([even[0], write("d4.h5", 12, 12, change=lambda f: f["g/rows"].resize((12, 5, 10)))], words=["5 elements"])
    report = joined([even[0], write("d5.h5", 12, 12, change=lambda f: f.__delitem__("g/rows")), even[2]])
    assert "fill value" in report["sources"][1]["notes"][0]
    got = opened("out.zarr").read("g/rows")
    assert (got[:12] == ROWS[:12]).all() and (got[12:24] == 0).all() and (got[24:] == ROWS[24:36]).all()


def test_files_that_cannot_be_read_are_all_named(even):
    for name in ("bad1.h5", "bad2.h5"):
        with open(name, "wb") as f:
            f.write(b"no HDF5")
    refused([even[0], "bad1.h5", even[1], "bad2.h5"], words=["bad1.h5", "bad2.h5", "2 files of 4", "--keep-going"])
    report = joined([even[0], "bad1.h5", even[1]], "--keep-going", status=3)
    assert report["sources"][1]["left_out"] and (opened("out.zarr").read("g/rows") == ROWS[:24]).all()


def test_an_axis_by_its_number():
    for i in range(3):
        with h5py.File(f"run{i}.h5", "w") as f:
            f["images"] = ROWS[i * 5 : i * 5 + 5]
            f["dark"] = ROWS[0]
    shutil.rmtree("axis.zarr", ignore_errors=True)
    convert("--concat", "/images:0", *[f"run{i}.h5" for i in range(3)], "axis.zarr")
    assert (opened("axis.zarr").read("images") == ROWS[:15]).all() and (opened("axis.zarr").read("dark") == ROWS[0]).all()
    convert("--concat", "/images:7", "run0.h5", "run1.h5", "no.zarr", status=1)
    convert("--concat", "x", "run0.h5", "run1.h5", "no.zarr", status=1)
    convert("run0.h5", "no.zarr", "run1.h5", status=2)
    convert("run0.h5", "no.zarr", "--order", "name", status=2)


def test_virtual_datasets_are_joined():
    for i in range(3):
        with h5py.File(f"source{i}.h5", "w") as f:
            f["images"] = ROWS[i * 5 : i * 5 + 5]
        with h5py.File(f"run{i}.h5", "w") as f:
            layout = h5py.VirtualLayout((6, 6, 10), "i2")
            layout[:5] = h5py.VirtualSource(f"source{i}.h5", "images", (5, 6, 10))
            f.create_virtual_dataset("images", layout, fillvalue=-1)
    runs = [f"run{i}.h5" for i in range(3)]
    convert("--concat", "/images:0", *runs, "virtual.zarr")
    rest = np.full((1, 6, 10), -1, "i2")
    assert (
        opened("virtual.zarr").read("images") == np.concatenate([p for i in range(3) for p in (ROWS[i * 5 : i * 5 + 5], rest)])
    ).all()
    run("verify", "--concat", "/images:0", *runs, "virtual.zarr")


def test_no_file_reaches_raw_bytes_that_it_may_not():
    os.makedirs("inside")
    with open("secret", "wb") as f:
        f.write(b"SECRET!!" * 4)
    for i in range(2):
        with h5py.File(f"inside/run{i}.h5", "w") as f:
            raw = {"external": [(os.path.abspath("secret"), 0, 32)]} if i == 1 else {}
            f.create_dataset("v", (2, 2), "i8", **raw)
            f["w"] = np.zeros((2, 2), "i8")
    report = json.loads(convert("--concat", "/v:0", "inside/run0.h5", "inside/run1.h5", "raw.zarr", "--json", status=3).stdout)
    [skipped] = [o for o in report["objects"] if o["outcome"] == "skipped"]
    assert skipped["path"] == "/v" and "run1.h5" in skipped["reason"] and os.path.realpath("secret") in skipped["reason"]
    assert not any(b"SECRET" in p.read_bytes() for p in pathlib.Path("raw.zarr").rglob("*") if p.is_file())
    # nor to compare it
    convert("--concat", "/w:0", "inside/run0.h5", "inside/run1.h5", "other.zarr", status=1)


def test_shares_threads_and_resumed_runs_make_the_same_store(uneven):
    """Shares, threads and resumed runs make the same store, byte for byte."""
    convert("--concat", "t", *uneven, "one.zarr", "--threads", "1")
    convert("--concat", "t", *uneven, "four.zarr", "--threads", "4")
    harness.same("one.zarr", "four.zarr")
    for i in range(3):
        convert("--concat", "t", *uneven, "shares.zarr", "--partition", f"{i}/3")
    harness.run("finalize", "--concat", "t", *uneven, "shares.zarr")
    harness.same("one.zarr", "shares.zarr")
    convert("--concat", "t", *uneven, "resumed.zarr", "--partition", "1/3")
    convert("--concat", "t", *uneven[:3], "resumed.zarr", "--resume", status=1)
    convert("--concat", "t", *uneven, "resumed.zarr", "--resume")
    harness.same("one.zarr", "resumed.zarr")


def test_a_plan_says_the_same_before(uneven):
    plan = json.loads(run("plan", "--json", "--concat", "t", *uneven).stdout)
    assert len(plan["sources"]) == 4 and plan["sources"][3]["first"] == 24, plan


@pytest.mark.parametrize("kind", ["i8", "f8"])
def test_calendars_that_agree_since_1582(kind):
    """The standard calendar is the proleptic Gregorian one from 1582-10-15 on; days before have other dates."""

    def times(name, units, calendar, values):
        with h5py.File(name, "w") as f:
            t = f.create_dataset("t", data=np.array(values, kind))
            t.attrs["units"] = units
            if calendar:
                t.attrs["calendar"] = calendar
            t.make_scale("t")
            f["x"] = np.array(values, "f4")
            f["x"].dims[0].attach_scale(t)
        return name

    first = times("a.h5", "days since 1970-01-01", None, [0, 1])
    names = [
        first,
        times("b.h5", "hours since 1970-01-01", "proleptic_gregorian", [48, 72]),
        times("c.h5", "days since 1970-01-01", "proleptic_gregorian", [4, 5]),
    ]
    joined(names)
    assert opened("out.zarr").read("t").tolist() == [0, 1, 2, 3, 4, 5]
    assert verify(*names, "out.zarr")["datasets"]["equal"] == 6
    # 1970-01-01 is 141427 days after 1582-10-15
    early = [
        times("d.h5", "days since 1970-01-01", None, [-141427, -141426]),
        times("e.h5", "days since 1970-01-01", "proleptic_gregorian", [-141428, 0]),
    ]
    assert "before 1582-10-15" in joined(early, "--allow-overlap", status=1)
    joined(
        list(reversed(early[:1])) + [times("f.h5", "days since 1970-01-01", "proleptic_gregorian", [-141427, 0])],
        "--allow-overlap",
    )
    assert opened("out.zarr").read("t").tolist() == [-141427, -141426, -141427, 0]
    assert "calendars" in joined([first, times("g.h5", "days since 1970-01-01", "noleap", [2, 3])], "--allow-overlap", status=1)


def run_file(name, i, rows=6, change=None, **how):
    """An image and a number of its own, on a scale that all files share."""
    with h5py.File(name, "w") as f:
        f["x"] = np.arange(10.0)
        f["x"].make_scale("x")
        d = f.create_dataset("image", data=ROWS[i, :rows], chunks=(3, 10), **{"compression": "gzip", "shuffle": True, **how})
        d.dims[1].attach_scale(f["x"])
        f["g/number"] = i
        f["g/text"] = f"run {i} é"
        if change:
            change(f)
    return name


def new(files, *options, status=0, verb="convert"):
    if verb == "convert":
        shutil.rmtree("out.zarr", ignore_errors=True)
    done = run(verb, "--concat-new", "run", *files, "out.zarr", "--json", *options, status=None)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else done.stderr


@pytest.mark.parametrize(
    "options",
    [[], ["--profile", "native"], ["--compress", "gzip", "--shard", "4,6,10"], ["--compress", "gzip", "--chunk", "2,6,5"]],
    ids=" ".join,
)
def test_a_new_dimension(options):
    """Each file is one step of the new dimension; its stored chunks are copied, and scales are stored once."""
    files = [run_file(f"r{i}.h5", i) for i in range(5)]
    report = new(files, *options)
    assert [(s["first"], s["count"]) for s in report["sources"]] == [(i, 1) for i in range(5)]
    made = opened("out.zarr")
    meta = made.meta("image")
    assert meta["shape"] == [5, 6, 10] and meta["dimension_names"][0] == "run" and meta["dimension_names"][2] == "x", meta
    assert made.meta("x")["shape"] == [10] and made.meta("g/number")["shape"] == [5]
    if options == ["--profile", "native"]:
        chunks = {o["path"]: o["chunks"] for o in report["objects"] if o["kind"] == "dataset"}
        assert chunks["/image"] == {"raw": 10} and meta["chunk_grid"]["configuration"]["chunk_shape"] == [1, 3, 10], chunks
    elif "--shard" not in options:
        if "--chunk" in options:
            assert (made.read("image") == ROWS[:5]).all()
        assert made.read("g/number").tolist() == list(range(5)) and list(made.read("g/text")) == [f"run {i} é" for i in range(5)]
    result = new(files, verb="verify")
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["equal"] == 4 * 5, result
    run_file("r3.h5", 3, change=lambda f: f["image"].__setitem__((2, 2), 9999))
    found = new(files, verb="verify", status=1)["findings"]
    assert [f["index"] for f in found] == [[3, 2, 2]] and "r3.h5" in found[0]["reason"], found


def test_what_a_new_dimension_cannot_join():
    def refused(second, *words, dimension="run"):
        text = convert("--concat-new", dimension, "a.h5", second, "out.zarr", status=1).stderr
        assert all(w in text for w in words) and not os.path.exists("out.zarr"), text

    run_file("a.h5", 0)
    refused(run_file("shape.h5", 1, rows=4), "/image", "6 and 4")
    refused(run_file("scale.h5", 1, change=lambda f: f["x"].__setitem__(0, 9)), "/x", "values differ")
    refused(run_file("b.h5", 1), "has a dimension", dimension="x")
    refused(run_file("less.h5", 1, change=lambda f: f.__setitem__("more", 1)), "/more")
    convert("--concat-new", "run", "a.h5", "b.h5", "out.zarr", "--append", "t", status=2)
    text = convert("--concat-new", "run", "a.h5", "b.h5", "out.zarr", "--concat", "t", status=1).stderr
    assert 'no dataset of "a.h5" or the other files has a dimension "t"' in text
    convert("--concat-new", "a/b", "a.h5", "b.h5", "out.zarr", status=2)


def test_packing_of_each_step_is_undone():
    def packing(i):
        return lambda f: f["image"].attrs.update(scale_factor=0.5 + i, add_offset=float(i))

    files = [run_file(f"r{i}.h5", i, change=packing(i)) for i in range(3)]
    new(files, "--compress", "gzip")
    assert (opened("out.zarr").read("image") == np.stack([ROWS[i] * (0.5 + i) + i for i in range(3)])).all()
    assert new(files, verb="verify")["elements"]["unchecked"] == 0


def test_chunks_that_are_asked_for_at_once_and_later():
    """More and fewer chunks than are remembered of a file, some never written, and of which filters were left out."""
    for i, rows in enumerate([40, 200]):
        with h5py.File(f"s{i}.h5", "w") as f:
            d = f.create_dataset("d", (rows, 4), "i4", chunks=(2, 4), maxshape=(None, 4), fillvalue=7)
            d[10:30] = np.arange(80).reshape(20, 4) + 100 * i
            z = f.create_dataset("z", (rows, 4), "i4", chunks=(2, 4), maxshape=(None, 4), compression="gzip", compression_opts=1)
            z[...] = np.arange(4 * rows).reshape(rows, 4) + i
            z.id.write_direct_chunk((4, 0), np.full((2, 4), 9, "<i4").tobytes(), 1)
    convert("--concat", "/*:0", "s0.h5", "s1.h5", "out.zarr", "--quiet", "--profile", "native", "--report", "report.json")
    with open("report.json") as f:
        chunks = {o["path"]: o["chunks"] for o in json.load(f)["objects"] if o["kind"] == "dataset"}
    assert chunks["/d"]["raw"] == 20 and sum(chunks["/z"].values()) == 120, chunks
    want = np.full((240, 4), 7)
    want[10:30], want[50:70] = np.arange(80).reshape(20, 4), np.arange(80).reshape(20, 4) + 100
    assert (opened("out.zarr").read("d") == want).all()
    convert("--concat", "/*:0", "s0.h5", "s1.h5", "gzip.zarr", "--quiet", "--compress", "gzip:1")
    want = np.concatenate([np.arange(160).reshape(40, 4), np.arange(800).reshape(200, 4) + 1])
    want[4:6] = want[44:46] = 9
    assert (opened("gzip.zarr").read("z") == want).all()
    convert("--concat", "/*:0", "s0.h5", "s1.h5", "out.zarr", "--quiet", "--profile", "native", "--overwrite")
    run("verify", "--concat", "/*:0", "s0.h5", "s1.h5", "out.zarr")


def test_all_damaged_files_are_named_in_their_order():
    files = [write(f"n{i:02}.h5", i, 1) for i in range(50)]
    damaged = files[7], files[20], files[49]
    for name in damaged:
        with open(name, "r+b") as f:
            f.write(b"no HDF5 file")
    text = refused(files, words=["3 files of 50"])
    assert [text.index(name) for name in damaged] == sorted(text.index(name) for name in damaged)
    assert not any(name in text for name in files if name not in damaged), text


def test_processes_that_read_the_metadata_change_nothing():
    """Three processes read the files in turn, and make what one makes: bytes, reports and sentences."""

    def unlike(i):
        def change(f):
            rows = f["g/rows"]
            f.attrs["title"] = f"rows {i % 3}"
            rows.attrs["_FillValue"] = np.int16(-i % 4 - 2000)
            f["t"].attrs["units"] = f"days since 2000-01-0{1 + i % 2}"
            f["t"][...] -= i % 2
            f.create_dataset(
                "wide", data=np.full((1, 3), [np.nan, -0.0, i], "f8" if i % 5 else "f4"), chunks=(1, 3), maxshape=(None, 3)
            ).dims[0].attach_scale(f["t"])
            if i % 7 == 3:
                del f["wide"]
            if i > 20:
                f["mask"][0, 0] = 9
            if i > 40:
                f["late"] = 1

        return change

    files = [write(f"many{i:02d}.h5", i, 1, chunk=1 + i // 30, change=unlike(i)) for i in range(60)]

    def both(*options, status=0, out="out.zarr"):
        ways = []
        for threads in "1", "3":
            made = joined(files, "--threads", threads, *options, status=status, compress=(), out=out)
            paths = [p for p in pathlib.Path(out).rglob("*") if p.is_file()] if status in (0, 3) else []
            if isinstance(made, dict):
                made = {k: v for k, v in made.items() if k not in ("started", "seconds")}
            ways.append((made, {str(p): p.read_bytes() for p in paths}))
        assert ways[0] == ways[1], [w[0] for w in ways]
        return ways[0]

    report, made = both("--different", "skip")
    tells_of_mask = [any("mask" in note for note in s["notes"]) for s in report["sources"]]
    assert len(made) > 100 and tells_of_mask == [i == 21 for i in range(60)], tells_of_mask
    both("--different", "first", "--profile", "native")
    assert "many21.h5" in both(status=1)[0]
    for i in 5, 6, 50:
        pathlib.Path(files[i]).write_bytes(b"no HDF5")
    assert all(f"many{i}.h5" in both("--different", "first", status=1)[0] for i in ("05", "06", "50"))
    report, _ = both("--different", "first", "--keep-going", status=3)
    assert [s["left_out"] for s in report["sources"]] == [i in (5, 6, 50) for i in range(60)]


def test_strings_of_a_first_file_that_is_read_while_others_close():
    """libhdf5 kept a handle of the first file that was closed, and crashed at the fill value of its strings: one run of four."""

    def text(f):
        how = dict(dtype=h5py.string_dtype(), chunks=(2,), maxshape=(None,), fillvalue="nothing")
        d = f.create_dataset("text", data=[f"é{i}" for i in range(2)], **how)
        d.dims[0].attach_scale(f["t"])

    files = parts(*[2] * 30, change=text)
    for _ in range(20):
        joined(files, "--threads", "2", compress=())
    assert list(opened("out.zarr").read("text")) == ["é0", "é1"] * 30


def dated(names, days, units="days since 2001-01-01", each=1):
    """A file for each name, with these times."""
    for k, name in enumerate(names):
        with h5py.File(name, "w") as f:
            t = f.create_dataset("t", data=np.asarray(days[each * k : each * (k + 1)], "f8"), maxshape=(None,), chunks=(4,))
            t.make_scale("t")
            t.attrs["units"] = units
            for rows in ("rows", "u"):  # before the dimension's variable, and after it
                data = f.create_dataset(rows, data=np.zeros((each, 3), "f4"), maxshape=(None, 3), chunks=(1, 3))
                data.dims[0].attach_scale(t)
    return names


def said(files, *options):
    shutil.rmtree("out.zarr", ignore_errors=True)
    done = harness.run("convert", "--concat", "t", *files, "out.zarr", *options)
    lines = [line for line in done.stderr.splitlines() if " gap" in line]
    assert len(lines) <= 1, lines
    return lines[0] if lines else ""


def test_a_missing_file_is_noted():
    months = np.cumsum([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])
    names = [f"d{k}.nc" for k in range(10)]
    days = np.r_[0:4, 5:11]
    text = said(dated(names, days))
    assert '"/t" has 1 gap: its steps are 1 day, but 2 days from "d3.nc" to "d4.nc"; if this is not intended' in text
    assert said(names, "--quiet") == "" and '"/t" has 1 gap' in harness.run("plan", "--concat", "t", *names).stderr
    assert said(dated(names, np.arange(10))) == ""
    assert "steps are 6 hours, but 12 hours from" in said(dated(names, 6 * days, "hours since 1900-01-01"))
    assert said(dated(names, months)) == ""  # of 28 to 31 days
    text = said(dated(names[:9], np.delete(months, [4, 7])))
    assert 'has 2 gaps: its steps are between 28 days and 31 days, but 61 days from "d3.nc" to "d4.nc", the first of' in text
    assert "its steps are 0.25, but 0.5 from" in said(dated(names, days / 4, "degrees"))
    assert 'but 3 days within "d1.nc"' in said(dated(names[:5], [0, 1, 2, 5, 6, 7, 8, 9, 10, 11], each=2))
    # what has no usual step has no gaps
    assert said(dated(names, np.cumsum(np.random.default_rng(1).exponential(1, 10)))) == ""
    assert said(dated(names[:2], [0, 5])) == ""
    # nor is one file after another, of several values each, a gap
    assert said(dated(names[:5], np.arange(10), each=2)) == ""


def test_a_gap_before_what_is_appended_is_noted():
    names = [f"d{k}.nc" for k in range(6)]
    dated(names, [0, 1, 2, 4, 5, 6])
    assert said(names[:3]) == ""
    done = harness.run("convert", "--append", "t", *names[3:], "out.zarr")
    assert done.returncode == 0 and "its steps are 1 day, but 2 days from" in done.stderr, done.stderr
