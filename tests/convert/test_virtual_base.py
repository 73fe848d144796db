# SPDX-License-Identifier: BSL-1.0
"""--base: what references call local files, for readers who find them elsewhere."""

import json
import os
import shutil

import h5py
import numpy as np
import pytest

from harness import run
from test_virtual_formats import documents

VALUES = np.arange(24 * 6, dtype="i4").reshape(24, 6)


def days(folder):
    names = []
    for i in range(3):
        names.append(folder / f"20{i}/d {i}.h5")
        names[-1].parent.mkdir(parents=True)
        with h5py.File(names[-1], "w") as f:
            f.create_dataset("t", data=np.arange(8 * i, 8 * i + 8), chunks=(4,), maxshape=(None,))
            f["t"].make_scale("t")
            f.create_dataset("x", data=VALUES[8 * i : 8 * i + 8], chunks=(4, 6), maxshape=(None, 6))
            f["x"].dims[0].attach_scale(f["t"])
            text = [f"row {k}" * 300 for k in range(8)]
            f.create_dataset("text", data=text, dtype=h5py.string_dtype(), chunks=(4,), maxshape=(None,))
            f["text"].dims[0].attach_scale(f["t"])
    return names


def told(refs):
    """The names in references and in their list of sources."""
    if os.path.isdir(refs):
        with open(os.path.join(refs, ".zmetadata"), encoding="utf-8") as f:
            return {s["url"] for s in json.load(f)["zarrbits"]["sources"]}
    with open(refs, encoding="utf-8") as f:
        document = json.load(f)
    listed = document["zarrbits"]["sources"]
    assert all(set(s) == {"url", "size"} for s in listed), listed
    used = {v[0] for v in document["refs"].values() if isinstance(v, list)}
    assert used == {s["url"] for s in listed}
    return used


def dump(store):
    return run("inspect", store).stdout.split("\n", 1)[1]


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(
    "url, names",
    [
        ("https://host/a/", ["https://host/a/200/d%200.h5", "https://host/a/201/d%201.h5", "https://host/a/202/d%202.h5"]),
        ("s3://bucket", ["s3://bucket/200/d 0.h5", "s3://bucket/201/d 1.h5", "s3://bucket/202/d 2.h5"]),
    ],
)
def test_urls(tmp_path, form, url, names):
    files, refs = days(tmp_path / "in"), tmp_path / f"refs.{form}"
    base = f"{tmp_path}/in={url}"
    run("convert", "-q", "--virtual", "--base", base, "--concat", "t", *files[:2], refs)
    data = f"{url.rstrip('/')}/refs.{form}.data"
    assert told(refs) == {*names[:2], data}
    size = os.path.getsize(files[0])
    listed = documents_of(refs)["zarrbits"]["sources"]
    assert {"url": names[0], "size": size} in listed
    run("verify", "--base", base, "--concat", "t", *files[:2], refs)
    said = run("verify", "--concat", "t", *files[:2], refs, status=None)
    assert said.returncode == 1 and "neither a source nor" in said.stdout + said.stderr
    # an append says again what is where
    assert "say where: --base FOLDER=URL" in run("convert", "-q", "--append", "t", files[2], refs, status=1).stderr
    assert "--base FOLDER=URL" in run("convert", "-q", "--append", "t", "--base", url, files[2], refs, status=2).stderr
    run("convert", "-q", "--append", "t", "--base", base, files[2], refs)
    assert told(refs) == {*names, data, data + ".1"}
    run("verify", "--base", base, "--concat", "t", *files, refs)
    with open(files[1], "ab") as f:
        f.write(b"x")
    said = run("verify", "--base", base, "--concat", "t", *files, refs, status=1)
    assert "has changed since the references were made" in said.stdout + said.stderr
    assert "not as it was" in run("convert", "-q", "--append", "t", "--base", base, more(tmp_path / "in"), refs, status=1).stderr


def documents_of(refs):
    name = os.path.join(refs, ".zmetadata") if os.path.isdir(refs) else refs
    with open(name, encoding="utf-8") as f:
        return json.load(f)


def more(folder):
    shutil.copy(folder / "202/d 2.h5", folder / "d3.h5")
    with h5py.File(folder / "d3.h5", "r+") as f:
        f["t"][...] = np.arange(24, 32)
    return folder / "d3.h5"


def test_the_folder_of_the_source(tmp_path):
    files = days(tmp_path)
    run("convert", "-q", "--virtual", "--inline", "1M", "--base", "https://host", files[0], tmp_path / "refs.json")
    assert told(tmp_path / "refs.json") == {"https://host/d%200.h5"}
    run("verify", "--base", "https://host", files[0], tmp_path / "refs.json")


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_what_travels_together(tmp_path, form):
    """Names from the folder of the references: the whole folder can be moved, also with other times."""
    files, refs = days(tmp_path / "a/in"), tmp_path / f"a/store/refs.{form}"
    refs.parent.mkdir()
    run("convert", "-q", "--virtual", "--base", ".", "--concat", "t", *files[:2], refs)
    assert told(refs) == {"../in/200/d 0.h5", "../in/201/d 1.h5", f"refs.{form}.data"}
    run("verify", "--concat", "t", *files[:2], refs)
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copyfile)
    shutil.rmtree(tmp_path / "a")
    files = [tmp_path / "b" / f.relative_to(tmp_path / "a") for f in files]
    refs = tmp_path / f"b/store/refs.{form}"
    run("verify", "--concat", "t", *files[:2], refs)
    run("convert", "-q", "--append", "t", "--external", tmp_path / "b", files[2], refs)
    assert told(refs) == {f"../in/20{i}/d {i}.h5" for i in range(3)} | {f"refs.{form}.data", f"refs.{form}.data.1"}
    run("verify", "--concat", "t", *files, refs)


@pytest.mark.parametrize(
    "base, words",
    [
        ("ftp://host", "https://host/path"),
        ("https://", "https://host/path"),
        ("somewhere", "https://host/path"),
        ("https://host/?SECRET=1", "may be a secret"),
        ("=https://host", "no folder"),
    ],
)
def test_what_is_no_base(tmp_path, base, words):
    files = days(tmp_path)
    done = run("convert", "-q", "--virtual", "--base", base, files[0], tmp_path / "refs.json", status=None)
    assert done.returncode in (1, 2) and words in done.stderr and "SECRET" not in done.stderr
    assert not (tmp_path / "refs.json").exists()


@pytest.mark.parametrize("base", ["https://me:SECRET@host", "https://host/#SECRET"])
def test_secrets_are_left_out(tmp_path, base):
    """The command takes them out of its arguments, as of any URL."""
    run("convert", "-q", "--virtual", "--inline", "1M", "--base", base, days(tmp_path)[0], tmp_path / "refs.json")
    assert told(tmp_path / "refs.json") == {"https://host/d%200.h5"}


def test_sources_outside(tmp_path):
    files = days(tmp_path)
    done = run(
        "convert", "-q", "--virtual", "--base", "https://host", "--concat", "t", *files, tmp_path / "refs.json", status=None
    )
    assert done.returncode in (1, 2) and "name a folder that has all sources: --base FOLDER=URL" in done.stderr
    assert not (tmp_path / "refs.json").exists() and not (tmp_path / "refs.json.data").exists()
    assert "--virtual" in run("convert", "-q", "--base", ".", files[0], tmp_path / "out.zarr", status=2).stderr


def test_names_that_lead_outside(tmp_path):
    """A URL below the base is a file below the folder, or nothing."""
    files, refs = days(tmp_path / "in"), tmp_path / "refs.json"
    base = f"{tmp_path}/in=https://host/a"
    run("convert", "-q", "--virtual", "--base", base, files[0], refs)
    for name in "../secret", "%2e%2e/secret", "200/../../secret", "200%2fd", "%00", "%4":
        text = refs.read_text().replace("https://host/a/200/d%200.h5", f"https://host/a/{name}")
        (tmp_path / "edited.json").write_text(text)
        done = run("verify", "--base", base, files[0], tmp_path / "edited.json", status=1)
        assert "neither a source nor" in done.stdout + done.stderr, name
    assert documents(refs)
