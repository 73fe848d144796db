# SPDX-License-Identifier: BSL-1.0
"""--virtual: a store of references. The test follows each one itself; it must lead to the bytes that a native copy has."""

import json
import os
import random
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from followed import files, followed
from harness import run
from kills import Reader, kill_after

RNG = np.random.default_rng(8)


def source(name):
    values = RNG.integers(0, 1000, (40, 30)).astype("i4")
    with h5py.File(name, "w", libver="latest") as f:
        f.attrs["title"] = "references"
        f.create_dataset("native", data=values, chunks=(8, 30), compression="gzip", shuffle=True)
        f.create_dataset("plain", data=values, chunks=(16, 16))
        f.create_dataset("contiguous", data=values)
        f.create_dataset("text", data=["one", "two", "three"] * 300, dtype=h5py.string_dtype(), chunks=(300,))
        masked = f.create_dataset("masked", (16, 30), "i4", chunks=(8, 30), compression="gzip", shuffle=True)
        masked[:8] = values[:8]
        masked.id.write_direct_chunk((8, 0), values[8:16].tobytes(), 3)  # without its filters
        f.create_dataset("summed", data=values, chunks=(8, 30), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("truth", data=values > 500, chunks=(8, 30))
        f.create_dataset("small", data=np.arange(4))
    return name


@pytest.mark.parametrize("inline", [None, 0, "1M"])
def test_every_reference_leads_to_what_a_copy_has(tmp_path, inline):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--profile", "native", path, tmp_path / "copy.zarr")
    inlined = [] if inline is None else ["--inline", inline]
    run("convert", "-q", "--virtual", "--zarr-format", "3", path, tmp_path / "refs.json", *inlined)
    copy = files(tmp_path / "copy.zarr")
    got, at = {}, {}
    for key, content, where in followed(tmp_path / "refs.json"):
        got[key], at[key] = content, where
    assert got.keys() == copy.keys()
    for key, name in copy.items():
        with open(name, "rb") as f:
            assert f.read() == got[key], key
    assert {at[k] for k in at if k.startswith(("native/c", "plain/c", "summed/c", "truth/c"))} == {"in.h5"}
    assert at["masked/c/0/0"] == "in.h5" and at["masked/c/1/0"] != "in.h5"
    assert all(at[k] is None for k in at if k.endswith("zarr.json"))
    assert {at[k] for k in at if k.startswith("text/c")} == {None if inline == "1M" else "refs.json.data"}
    assert os.path.exists(tmp_path / "refs.json.data") == (inline != "1M")
    run("verify", path, tmp_path / "refs.json")
    assert "native" in run("inspect", tmp_path / "refs.json").stdout


@pytest.mark.parametrize("form", ["refs.json", "refs.parquet"])
def test_what_is_inlined_is_bounded_by_memory(tmp_path, form):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("text", data=[RNG.bytes(200_000).hex() for _ in range(30)], dtype=h5py.string_dtype(), chunks=(1,))
    run("convert", "-q", "--virtual", "--inline", "1M", "--memory", "16M", tmp_path / "in.h5", tmp_path / form)
    inlined = tmp_path / form
    assert sum(f.stat().st_size for f in ([inlined] if inlined.is_file() else inlined.rglob("*")) if f.is_file()) < 8_000_000
    assert (tmp_path / f"{form}.data").stat().st_size > 30 * 400_000 - (4 << 20)
    run("verify", "--memory", "16M", tmp_path / "in.h5", tmp_path / form)


def test_overwritten_whole_or_not_at_all(tmp_path):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json", status=1)
    run("convert", "-q", "--virtual", "--overwrite", "--inline", "1M", path, tmp_path / "refs.json")
    assert sorted(os.listdir(tmp_path)) == ["in.h5", "refs.json"]
    (tmp_path / "other.json").write_text("{}")
    assert "made" in run("convert", "-q", "--virtual", "--overwrite", path, tmp_path / "other.json", status=1).stderr
    assert (tmp_path / "other.json").read_text() == "{}"


def test_options_that_mean_nothing(tmp_path):
    path = source(tmp_path / "in.h5")
    for arguments, words in (
        (["--virtual", path, "out.zarr"], "OUT.json"),
        ([path, "out.json"], "--virtual"),
        (["--inline", "5", path, "out.zarr"], "--inline"),
        (["--virtual", "--shard", "64M", path, "out.json"], "--shard"),
        (["--virtual", "--partition", "0/2", "--overwrite", path, "out.json"], "--partition"),
    ):
        done = run("convert", *arguments, status=None, cwd=tmp_path)
        assert done.returncode in (1, 2) and words in done.stderr, (arguments, done)
    assert os.listdir(tmp_path) == ["in.h5"]


def test_a_source_that_changed_or_is_gone(tmp_path):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    os.utime(path, ns=(1, 1))
    assert "has changed since the references were made" in run("verify", path, tmp_path / "refs.json", status=1).stdout
    os.rename(path, tmp_path / "moved.h5")
    assert "cannot be opened" in run("verify", tmp_path / "moved.h5", tmp_path / "refs.json", status=1).stdout


@pytest.mark.parametrize(
    "change, words",
    [
        (
            lambda r: r.__setitem__("native/0.0", ["file:///etc/hostname", 0, 5]),
            "not in the folder of a source; name it with --external",
        ),
        (lambda r: r["native/0.0"].__setitem__(1, 1 << 40), "beyond the end"),
        (lambda r: r["native/0.0"].__setitem__(2, (1 << 64) - 1), "beyond the end"),
        (lambda r: r.__setitem__("native/0.0", "base64:!!"), "base64"),
        (lambda r: r.__setitem__("native/0.0", ["file:///x"]), "references"),
        (lambda r: r.__setitem__("native/0.0", [[["file:///x"]]]), "references"),
        (lambda r: r.__setitem__("native/0.0", None), "references"),
        (lambda r: r.__setitem__("/native/0.0", "x"), "not a key"),
        (lambda r: r.__setitem__("", "x"), "not a key"),
        (lambda r: r.__setitem__("native//c", "x"), "not a key"),
        (lambda r: r.__setitem__("native/../c", "x"), "not a key"),
        (lambda r: r.__setitem__("native/", "x"), "not a key"),
        (lambda r: r.__setitem__("native/0.0", {"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}), "references"),
    ],
)
def test_hostile_references(tmp_path, change, words):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    with open(tmp_path / "refs.json", encoding="utf-8") as f:
        document = json.load(f)
    change(document["refs"])
    with open(tmp_path / "refs.json", "w", encoding="utf-8") as f:
        json.dump(document, f)
    done = run("verify", path, tmp_path / "refs.json", status=1)
    assert words in done.stdout + done.stderr, done
    if words == "not a key":
        assert words in run("convert", "-q", "--append", "t", "--virtual", path, tmp_path / "refs.json", status=1).stderr
        assert words in run("inspect", tmp_path / "refs.json", status=1).stderr


def test_references_that_take_more_than_memory(tmp_path):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    with open(tmp_path / "refs.json", encoding="utf-8") as f:
        document = json.load(f)
    document["refs"].update({f"native/0.{i}": "" for i in range(5, 300000)})
    (tmp_path / "refs.json").write_text(json.dumps(document))
    for arguments in ("verify", path), ("inspect",), ("convert", "-q", "--virtual", "--append", "t", path):
        assert "increase --memory" in run(*arguments, "--memory", "16M", tmp_path / "refs.json", status=1).stderr
    run("inspect", "--memory", "200M", tmp_path / "refs.json")


def test_what_is_no_file(tmp_path):
    """A pipe would be waited for."""
    path = source(tmp_path / "in.h5")
    os.mkfifo(tmp_path / "refs.json")
    for arguments in ("verify", path), ("inspect",):
        assert "regular" in run(*arguments, tmp_path / "refs.json", status=1).stderr


def test_joined_files(tmp_path):
    values = RNG.integers(0, 1000, (20, 6)).astype("i4")
    names = []
    for i, (first, count) in enumerate([(0, 8), (8, 5), (13, 7)]):
        names.append(tmp_path / f"f{i}.h5")
        with h5py.File(names[-1], "w") as f:
            f["t"] = np.arange(first, first + count)
            f["t"].make_scale("t")
            f.create_dataset("x", data=values[first : first + count], chunks=(4, 6), compression="gzip", maxshape=(None, 6))
            f["x"].dims[0].attach_scale(f["t"])
    run("convert", "-q", "--virtual", "--concat", "t", *names, tmp_path / "refs.json")
    run("verify", "--concat", "t", *names, tmp_path / "refs.json")
    at = {key: where for key, _, where in followed(tmp_path / "refs.json")}
    assert [at[f"x/{i}.0"] for i in range(3)] == ["f0.h5", "f0.h5", "f1.h5"] and at["x/3.0"] not in ("f1.h5", "f2.h5")


def joined(folder, parts, chunk=4):
    """Files along t, and all values."""
    values = RNG.integers(0, 1000, (sum(parts), 6)).astype("i4")
    names, first = [], 0
    for i, count in enumerate(parts):
        names.append(folder / f"f{i}.h5")
        with h5py.File(names[-1], "w") as f:
            f["t"] = np.arange(first, first + count)
            f["t"].make_scale("t")
            f.create_dataset("x", data=values[first : first + count], chunks=(chunk, 6), compression="gzip", maxshape=(None, 6))
            f["x"].dims[0].attach_scale(f["t"])
            f.create_dataset(
                "g/text",
                data=[f"row {k}" for k in range(first, first + count)],
                dtype=h5py.string_dtype(),
                chunks=(chunk,),
                maxshape=(None,),
            )
            f["g/text"].dims[0].attach_scale(f["t"])
            f["fixed"] = np.arange(5)
        first += count
    return names, values


FORMS = ("refs.json", "refs.parquet")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("inline", [1024, 0])
def test_files_that_are_appended(tmp_path, form, inline):
    names, _ = joined(tmp_path, (8, 5, 7, 4))
    store, whole = tmp_path / form, tmp_path / ("whole-" + form)
    run("convert", "-q", "--virtual", "--inline", inline, "--concat", "t", *names[:2], store)
    before = snapshot(tmp_path, form)
    for name in names[2:]:
        assert "referred to" in run("plan", "--append", "t", name, store).stdout
        run("convert", "-q", "--append", "t", "--inline", inline, "--virtual", name, store)
    run("verify", "--concat", "t", *names, store)
    run("convert", "-q", "--virtual", "--concat", "t", *names, whole)
    for path in ("/x", "/g/text"):  # chunks of t are as long as the first file's part
        assert [n for n in dump(store) if n["path"] == path] == [n for n in dump(whole) if n["path"] == path]
    after = snapshot(tmp_path, form)
    assert before != after
    run("convert", "-q", "--append", "t", names[0], names[3], store)  # both are in it
    assert snapshot(tmp_path, form) == after
    os.utime(names[1], ns=(1, 1))
    with h5py.File(tmp_path / "f4.h5", "w") as f:
        f["t"] = np.arange(24, 26)
        f["t"].make_scale("t")
        f["x"] = np.zeros((2, 6), "i4")
        f["x"].dims[0].attach_scale(f["t"])
        f.create_dataset("g/text", data=["a", "b"], dtype=h5py.string_dtype())
        f["g/text"].dims[0].attach_scale(f["t"])
        f["fixed"] = np.arange(5)
    done = run("convert", "-q", "--append", "t", tmp_path / "f4.h5", store, status=1)
    assert "f1.h5" in done.stderr and "not as it was" in done.stderr
    assert snapshot(tmp_path, form) == after


def snapshot(folder, form):
    """All files of a store of references, as they are."""
    return {
        os.path.relpath(n, folder): open(n, "rb").read()
        for n in (os.path.join(at, n) for at, _, files in os.walk(folder) for n in files)
        if os.path.relpath(n, folder).startswith(form)
    }


def dump(store):
    """What a store has, by the command's own reader: arrays, codecs, number and bytes of chunks."""
    return json.loads(run("inspect", "--json", store).stdout)["trees"][0]["nodes"]


def test_parquet_has_what_json_has(tmp_path):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.parquet")
    run("verify", path, tmp_path / "refs.parquet")
    run("convert", "-q", "--virtual", "--consolidate", path, tmp_path / "whole.json")
    run("convert", "-q", "--virtual", "--zarr-format", "3", path, tmp_path / "v3.parquet")
    with open(tmp_path / "v3.parquet/.zmetadata", encoding="utf-8") as f:  # what fsspec needs, and no more
        assert json.load(f)["metadata"]["native/.zarray"] == {"shape": [40, 30], "chunks": [8, 30]}
    shutil.rmtree(tmp_path / "v3.parquet")
    os.unlink(tmp_path / "v3.parquet.data")
    assert dump(tmp_path / "whole.json") == dump(tmp_path / "refs.parquet")
    with open(tmp_path / "refs.parquet/.zmetadata", encoding="utf-8") as f:
        document = json.load(f)
    assert document["record_size"] == 10000 and document["metadata"]["native/.zarray"]["dtype"] == "<i4"
    assert document["metadata"]["native/zarr.json"]["chunk_key_encoding"] == {"name": "v2", "configuration": {"separator": "."}}
    run("convert", "-q", "--virtual", path, tmp_path / "refs.parquet", status=1)
    run("convert", "-q", "--virtual", "--overwrite", "--inline", "1M", path, tmp_path / "refs.parquet/")
    run("verify", path, tmp_path / "refs.parquet")
    assert sorted(os.listdir(tmp_path)) == [
        "in.h5",
        "refs.json",
        "refs.json.data",
        "refs.parquet",
        "whole.json",
        "whole.json.data",
    ]
    (tmp_path / "other.parquet").mkdir()
    assert "made" in run("convert", "-q", "--virtual", "--overwrite", path, tmp_path / "other.parquet", status=1).stderr
    run("convert", "-q", "--virtual", f"{path}:/native", tmp_path / "one.json")
    assert "one array" in run("convert", "-q", "--virtual", f"{path}:/native", tmp_path / "one.parquet", status=1).stderr
    assert "one.parquet" not in " ".join(os.listdir(tmp_path))


@pytest.mark.parametrize("form", FORMS)
def test_resumed_and_planned(tmp_path, form):
    path, store = source(tmp_path / "in.h5"), tmp_path / form
    plan = json.loads(run("plan", "--virtual", "--json", path, store).stdout)["datasets"]
    ways = {d["path"]: (d["how"], d["store_bytes"]) for d in plan}
    assert ways["/native"] == ("referred to, with numcodecs' names for the filters", 0) and ways["/text"][1] > 0
    run("convert", "-q", "--virtual", "--resume", path, store)
    made = snapshot(tmp_path, form)
    assert "nothing is left to do" in run("convert", "--virtual", "--resume", path, store).stderr
    assert snapshot(tmp_path, form) == made


@pytest.mark.parametrize("form", FORMS)
def test_overwriting_leaves_the_old_store_until_the_new_one_is_whole(tmp_path, form):
    path, store = source(tmp_path / "in.h5"), tmp_path / form
    run("convert", "-q", "--virtual", path, store)
    before = snapshot(tmp_path, form)
    with h5py.File(tmp_path / "damaged.h5", "w") as f:
        f.create_dataset("text", data=["one", "two", "three"] * 300, dtype=h5py.string_dtype(), chunks=(300,), compression="gzip")
        f["text"].id.write_direct_chunk((0,), b"damaged", 0)
    run("convert", "-q", "--virtual", "--overwrite", tmp_path / "damaged.h5", store, status=1)
    assert snapshot(tmp_path, form) == before
    run("verify", path, store)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda d: (d / ".zmetadata").write_text("{"), "Parquet"),
        (lambda d: (d / ".zmetadata").write_text('{"metadata":{},"record_size":0}'), "Parquet"),
        (
            lambda d: edit(d, lambda m: m["metadata"].update({"../native/zarr.json": m["metadata"]["native/zarr.json"]})),
            "points outside of it",
        ),
        (lambda d: edit(d, lambda m: m["metadata"]["native/zarr.json"].update(shape=[4, 30])), "not a chunk of the array"),
        (lambda d: (d / "native/refs.0.parq").write_bytes(b"PAR1"), "not a Parquet file"),
        (
            lambda d: (d / "native/refs.0.parq").write_bytes((d / "native/refs.0.parq").read_bytes()[:-9] + b"\xff" * 9),
            "not a Parquet file",
        ),
        (
            lambda d: (d / "native/refs.18446744073709551615.parq").write_bytes((d / "native/refs.0.parq").read_bytes()),
            "not a chunk of the array",
        ),
        (lambda d: (d / "native/refs.0.parq").unlink(), '"native/refs.0.parq" is missing'),
        (lambda d: shutil.rmtree(d / "native"), "points outside of it|is missing"),
        (lambda d: (d / "native/refs.0.parq").write_bytes(b""), "not a Parquet file"),
        (lambda d: cut(d / "native/refs.0.parq"), "not a Parquet file"),
        (lambda d: shutil.copy(d / "masked/refs.0.parq", d / "native/refs.0.parq"), "only 2 rows"),
        (lambda d: edit(d, lambda m: m["zarrbits"]["parts"].update(native=[[0, 6]])), "it has 5 references, and had 6"),
        (lambda d: edit(d, lambda m: m["zarrbits"]["parts"].update(native=[[1, 6]])), "should not be there"),
        (lambda d: edit(d, lambda m: m["zarrbits"]["parts"].update(native=[[0]])), "Parquet"),
    ],
)
def test_hostile_parquet(tmp_path, change, words):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.parquet")
    change(tmp_path / "refs.parquet")
    made = snapshot(tmp_path, "refs.parquet")
    done = run("verify", path, tmp_path / "refs.parquet", status=1)
    assert re.search(words, done.stdout + done.stderr), done
    run("convert", "-q", "--virtual", "--append", "t", path, tmp_path / "refs.parquet", status=1)
    assert snapshot(tmp_path, "refs.parquet") == made


def cut(path):
    with open(path, "r+b") as f:
        f.truncate(path.stat().st_size // 2)


def edit(folder, change):
    with open(folder / ".zmetadata", encoding="utf-8") as f:
        document = json.load(f)
    change(document)
    (folder / ".zmetadata").write_text(json.dumps(document))


@pytest.mark.parametrize("form", FORMS)
def test_killed_at_any_moment_with_a_reader(tmp_path, form):
    """An append or a replacement that is killed: a reader sees the old store or the new one,
    and each chunk that it leads to is there."""
    names, values = joined(tmp_path, (8, 5, 7, 4))
    store, kills = tmp_path / form, int(os.environ.get("ZARRBITS_KILLS", "10"))
    inline = ["--inline", 0]
    run("convert", "-q", "--virtual", *inline, "--concat", "t", *names[:2], store)
    dice = random.Random(int(os.environ.get("ZARRBITS_SEED", "5")))

    def look():
        # all of it by one process; a replaced file of data may be gone before it is read, which is an error and no wrong value
        try:
            done = run("verify", "--concat", "t", *names[:2], store, status=None, timeout=600)
        except subprocess.TimeoutExpired:
            raise AssertionError("a reader that does not end") from None
        if done.returncode == 0:
            return "two files"
        if "along the dimension" in done.stdout or "differ" in done.stdout:
            assert "values" not in done.stdout, done
            return "more files"
        assert any(
            why in done.stdout + done.stderr for why in ("cannot be opened", "No such file", 'has no "', "was replaced while")
        ), done
        return "between"

    with Reader(look) as reader:
        for count in (3, 4, 2):
            for _ in range(-(-kills // 3)):
                how = ["--append", "t", *names[:count]] if count > 2 else ["--overwrite", "--concat", "t", *names[:2]]
                kill_after(dice.uniform(0, 0.06), "convert", "-q", "--virtual", *map(str, inline), *map(str, how), str(store))
                run("inspect", store)
            run("convert", "-q", "--virtual", *inline, *how, store)
            run("verify", "--concat", "t", *names[:count], store)
            assert not [n for n in os.listdir(tmp_path) if "unfinished" in n]
    print(f"{kills} kills, reads: {dict(reader.seen)}")


def test_parquet_mutations(tmp_path):
    """Any byte of a Parquet file may be another: the reader says so, or reads something, and does nothing else."""
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.parquet")
    part = tmp_path / "refs.parquet/native/refs.0.parq"
    good = part.read_bytes()
    dice = np.random.default_rng(int(os.environ.get("ZARRBITS_SEED", 1)))
    for _ in range(int(os.environ.get("ZARRBITS_MUTATIONS", 40))):
        bad = bytearray(good)
        for at in dice.integers(0, len(bad), dice.integers(1, 4)):
            bad[at] = dice.integers(0, 256)
        part.write_bytes(bad)
        run("verify", path, tmp_path / "refs.parquet", status=(0, 1, 3), timeout=600)
