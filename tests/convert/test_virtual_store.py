# SPDX-License-Identifier: BSL-1.0
"""--virtual: a store of references. The test follows each one itself; it must lead to the bytes that a native copy has."""
import base64
import json
import os
import subprocess

import h5py
import numpy as np
import pytest

from store import COMMAND

RNG = np.random.default_rng(8)


def run(*arguments, status=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (done.returncode, done.stderr, done.stdout)
    return done


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
        f.create_dataset("small", data=np.arange(4))
    return name


def followed(name):
    with open(name, encoding="utf-8") as f:
        document = json.load(f)
    assert document["version"] == 1
    for key, value in document["refs"].items():
        if isinstance(value, str):
            yield key, base64.b64decode(value[7:]) if value.startswith("base64:") else value.encode(), None
        else:
            url, offset, size = value
            assert url.startswith("file:///")
            with open(url[7:], "rb") as f:
                f.seek(offset)
                yield key, f.read(size), os.path.basename(url)


def files(store):
    return {os.path.relpath(os.path.join(at, n), store): os.path.join(at, n) for at, _, names in os.walk(store) for n in names}


@pytest.mark.parametrize("inline", [None, 0, "1M"])
def test_every_reference_leads_to_what_a_copy_has(tmp_path, inline):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--profile", "native", path, tmp_path / "copy.zarr")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json", *([] if inline is None else ["--inline", inline]))
    copy = files(tmp_path / "copy.zarr")
    got, at = {}, {}
    for key, content, where in followed(tmp_path / "refs.json"):
        got[key], at[key] = content, where
    assert got.keys() == copy.keys()
    for key, name in copy.items():
        with open(name, "rb") as f:
            assert f.read() == got[key], key
    assert {at[k] for k in at if k.startswith(("native/c", "plain/c"))} == {"in.h5"}
    assert at["masked/c/0/0"] == "in.h5" and at["masked/c/1/0"] != "in.h5"
    assert all(at[k] is None for k in at if k.endswith("zarr.json"))
    assert {at[k] for k in at if k.startswith("text/c")} == {None if inline == "1M" else "refs.json.data"}
    assert os.path.exists(tmp_path / "refs.json.data") == (inline != "1M")
    run("verify", path, tmp_path / "refs.json")
    assert "native" in run("inspect", tmp_path / "refs.json").stdout


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
    for arguments, words in ((["--virtual", path, "out.zarr"], "OUT.json"), ([path, "out.json"], "--virtual"), (["--inline", "5", path, "out.zarr"], "--inline"),
                             (["--virtual", "--shard", "64M", path, "out.json"], "--shard"), (["--virtual", "--resume", path, "out.json"], "--resume")):
        done = subprocess.run([COMMAND, "convert", *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode in (1, 2) and words in done.stderr, (arguments, done)
    assert os.listdir(tmp_path) == ["in.h5"]


def test_a_source_that_changed_or_is_gone(tmp_path):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    os.utime(path, ns=(1, 1))
    assert "has changed since the references were made" in run("verify", path, tmp_path / "refs.json", status=1).stdout
    os.rename(path, tmp_path / "moved.h5")
    assert "cannot be opened" in run("verify", tmp_path / "moved.h5", tmp_path / "refs.json", status=1).stdout


@pytest.mark.parametrize("change, words", [
    (lambda r: r.__setitem__("native/c/0/0", ["file:///etc/hostname", 0, 5]), "not in the source's folder"),
    (lambda r: r["native/c/0/0"].__setitem__(1, 1 << 40), "behind the end"),
    (lambda r: r["native/c/0/0"].__setitem__(2, (1 << 64) - 1), "behind the end"),
    (lambda r: r.__setitem__("native/c/0/0", "base64:!!"), "base64"),
    (lambda r: r.__setitem__("native/c/0/0", ["file:///x"]), "references"),
    (lambda r: r.__setitem__("native/c/0/0", [[["file:///x"]]]), "references"),
    (lambda r: r.__setitem__("native/c/0/0", None), "references"),
    (lambda r: r.__setitem__("native/c/0/0", {"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}), "references"),
])
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


def test_joined_files(tmp_path):
    values = RNG.integers(0, 1000, (20, 6)).astype("i4")
    names = []
    for i, (first, count) in enumerate([(0, 8), (8, 5), (13, 7)]):
        names.append(tmp_path / f"f{i}.h5")
        with h5py.File(names[-1], "w") as f:
            f["t"] = np.arange(first, first + count)
            f["t"].make_scale("t")
            f.create_dataset("x", data=values[first:first + count], chunks=(4, 6), compression="gzip", maxshape=(None, 6))
            f["x"].dims[0].attach_scale(f["t"])
    run("convert", "-q", "--virtual", "--concat", "t", *names, tmp_path / "refs.json")
    run("verify", "--concat", "t", *names, tmp_path / "refs.json")
    at = {key: where for key, _, where in followed(tmp_path / "refs.json")}
    assert [at[f"x/c/{i}/0"] for i in range(3)] == ["f0.h5", "f0.h5", "f1.h5"] and at["x/c/3/0"] not in ("f1.h5", "f2.h5")
