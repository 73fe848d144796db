# SPDX-License-Identifier: BSL-1.0
"""Other names for the sources of references: as if they had been made with these, and nothing changes if one cannot be changed.

ZARRBITS_CASES (default 150): damaged references of each form; ZARRBITS_SEED: another seed."""

import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil

import h5py
import numpy as np
import pytest

from harness import contents, refused, run

FORMS = ["json", "parquet"]


def source(path, day=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as f:
        f.create_dataset("t", data=np.arange(8 * day, 8 * day + 8), chunks=(4,), maxshape=(None,))
        f["t"].make_scale("t")
        values = np.random.default_rng(day).integers(0, 1000, (8, 60), "i4")
        f.create_dataset("v", data=values, chunks=(2, 60), maxshape=(None, 60), compression="gzip")
        f["v"].dims[0].attach_scale(f["t"])
    return path


def sources(folder):
    return [source(folder / f"{day}/d é{day}.h5", day) for day in range(3)]


def with_data(path):
    """Also with chunks that no source has: they are beside the references."""
    with h5py.File(source(path), "r+") as f:
        f.create_dataset("text", data=["one" * 500] * 40, dtype=h5py.string_dtype(), chunks=(20,))
    return path


def stored(refs):
    """The bytes of references, by the names of their files."""
    return contents(refs) if os.path.isdir(refs) else {"": refs.read_bytes()}


def metadata(refs):
    with open(refs / ".zmetadata" if refs.is_dir() else refs, encoding="utf-8") as f:
        return json.load(f)


def listed(refs):
    return metadata(refs)["zarrbits"]["sources"]


def unchanged(refs, *arguments, status=1):
    """The sentence of a run that fails; the references are as they were, and nothing is beside them."""
    before, beside = stored(refs), sorted(os.listdir(refs.parent))
    said = refused("rename", refs, *arguments, status=status)
    assert stored(refs) == before and sorted(os.listdir(refs.parent)) == beside
    return said


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("url", ["https://host/a", "s3://bucket/a", "az://container"])
def test_renamed_references_are_those_that_are_made_with_the_names(tmp_path, form, url):
    files, refs, expected = sources(tmp_path / "in"), tmp_path / f"refs.{form}", tmp_path / f"expected.{form}"
    run("convert", "-q", "--virtual", "--concat", "t", *files, refs)
    base = f"{tmp_path}/in={url}"
    run("convert", "-q", "--virtual", "--concat", "t", *files, expected, "--base", base)
    report = json.loads(run("rename", "--json", refs, f"{tmp_path}/in", url + "/").stdout)
    assert (report["files"], report["references"], report["exit_status"]) == (3, str(refs), 0)
    assert metadata(refs) == metadata(expected)
    parts, others = stored(refs), stored(expected)
    assert {k: v for k, v in parts.items() if k != ".zmetadata"} == {k: v for k, v in others.items() if k != ".zmetadata"}
    assert ("d%20%C3%A90.h5" if "https" in url else "d é0.h5") in listed(refs)[0]["url"]
    run("verify", "--base", base, "--concat", "t", *files, refs)
    # and back
    assert "3 files have another name" in run("rename", refs, url, f"file://{tmp_path}/in").stdout
    assert listed(refs) == [{"url": f"file://{f}", "size": os.path.getsize(f)} for f in files]
    run("verify", "--concat", "t", *files, refs)


@pytest.mark.parametrize("form", FORMS)
def test_the_file_beside_the_references_is_a_source_then(tmp_path, form):
    file, refs = with_data(tmp_path / "in.h5"), tmp_path / f"refs.{form}"
    run("convert", "-q", "--virtual", file, refs)
    data = f"{refs}.data"
    assert [s["url"] for s in listed(refs)] == [f"file://{file}"]
    assert json.loads(run("rename", "--json", refs, f"FILE://{tmp_path}", "HTTPS://host/a").stdout)["files"] == 2
    sizes = {"https://host/a/in.h5": os.path.getsize(file), f"https://host/a/refs.{form}.data": os.path.getsize(data)}
    assert {s["url"]: s["size"] for s in listed(refs)} == sizes and all(len(s) == 2 for s in listed(refs))
    run("verify", "--base", f"{tmp_path}=https://host/a", file, refs)


@pytest.mark.parametrize("form", FORMS)
def test_names_from_the_folder_of_the_references(tmp_path, form):
    files, refs = sources(tmp_path / "in"), tmp_path / f"refs.{form}"
    run("convert", "-q", "--virtual", "--base", ".", "--concat", "t", *files, refs)
    run("rename", "-q", refs, "in", "moved/in")
    assert [s["url"] for s in listed(refs)] == [f"moved/in/{day}/d é{day}.h5" for day in range(3)]
    (tmp_path / "moved").mkdir()
    files = [tmp_path / "moved" / f.relative_to(tmp_path) for f in files]
    shutil.move(tmp_path / "in", tmp_path / "moved/in")
    run("verify", "--concat", "t", *files, refs)


def renamed(folder, value, old, new):
    """What becomes of the name in one reference of another program."""
    refs = folder / "other.json"
    refs.write_text(json.dumps({"version": 1, "refs": {".zgroup": '{"zarr_format": 2}', "v/0": [value, 5, 10]}}))
    run("rename", "-q", refs, old, new)
    return json.loads(refs.read_text())["refs"]["v/0"][0]


@pytest.mark.parametrize(
    "value, old, new, expected",
    [
        ("/data/a b.nc", "/data", "https://host/x", "https://host/x/a%20b.nc"),
        ("/data/a.nc", "file:///data/", "s3://bucket", "s3://bucket/a.nc"),
        ("file:///data/a.nc", "/", "s3://bucket", "s3://bucket/data/a.nc"),
        ("file:///data/a.nc", "/data/a.nc", "/other/b.nc", "file:///other/b.nc"),
        ("https://host/x/a%20b.nc", "https://host/x", "https://mirror", "https://mirror/a%20b.nc"),
        ("https://host/x/a%20b.nc", "https://host", "/data", "file:///data/x/a b.nc"),
        ("s3://bucket/a%20b.nc", "s3://bucket", "https://host", "https://host/a%2520b.nc"),
        ("s3://bucket/a.nc", "s3://bucket", "abfs://container@account.dfs.core.windows.net/x", None),
    ],
)
def test_names_of_other_programs(tmp_path, value, old, new, expected):
    assert renamed(tmp_path, value, old, new) == (expected or f"{new}/a.nc")


def test_what_is_not_a_name_stays(tmp_path):
    """Every value, in its order: numbers to the last digit, keys that nobody knows, metadata that are JSON and not text."""
    document = {
        "version": 1,
        "zarrbits": {"sources": [{"url": "s3://a/x", "size": 1, "etag": "e", "more": "kept"}, {"url": "s3://ab", "size": 2}]},
        "other": [{"deep": [1, -2, 18446744073709551615, None, True]}, []],
        "refs": {
            "text": "s3://a/x",
            "a/.zarray": {"chunks": [1], "fill_value": 0.1},
            "bytes": "base64:AAEC",
            "whole": ["s3://a/y"],
            "none": ["s3://ab/x", 0, 1],
            "part": ["s3://a", 0, 1],
        },
    }
    refs = tmp_path / "refs.json"
    text = json.dumps(document).replace("0.1", "0.1000000000000000055511151231257827")
    refs.write_text(text)
    assert json.loads(run("rename", "--json", refs, "s3://a", "gs://b").stdout)["files"] == 3
    document["zarrbits"]["sources"][0] = {"url": "gs://b/x", "size": 1, "more": "kept"}
    document["refs"]["whole"], document["refs"]["part"] = ["gs://b/y"], ["gs://b", 0, 1]
    said = refs.read_text()
    assert json.loads(said) == document and list(json.loads(said)["refs"]) == list(document["refs"])
    assert "0.1000000000000000055511151231257827" in said and "18446744073709551615" in said


def test_version_0(tmp_path):
    refs = tmp_path / "refs.json"
    refs.write_text(json.dumps({".zgroup": '{"zarr_format": 2}', "v/0": ["/data/a.nc", 1, 2], "v/1": ["/other/a.nc"]}))
    run("rename", refs, "/data", "https://host")
    assert json.loads(refs.read_text())["v/0"] == ["https://host/a.nc", 1, 2]
    assert json.loads(refs.read_text())["v/1"] == ["/other/a.nc"]


@pytest.mark.parametrize("form", FORMS)
def test_a_link_to_references_stays_one(tmp_path, form):
    file, refs = source(tmp_path / "in.h5"), tmp_path / f"place/refs.{form}"
    refs.parent.mkdir()
    run("convert", "-q", "--virtual", file, refs)
    link = tmp_path / f"link.{form}"
    link.symlink_to(refs)
    run("rename", "-q", "--fsync", link, tmp_path, "s3://bucket")
    assert link.is_symlink() and listed(refs)[0]["url"] == "s3://bucket/in.h5"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_refused(tmp_path, form):
    refs = tmp_path / f"refs.{form}"
    run("convert", "-q", "--virtual", source(tmp_path / "in.h5"), refs)
    assert "no reference of" in unchanged(refs, tmp_path / "i", "s3://bucket")  # a part of a name
    for new, words in (
        ("https://me:secret@host", "may be a secret"),
        ("https://host/?secret", "may be a secret"),
        ("s3://bucket/x?versionId=secret", "may be a secret"),
        ("adl://bucket", "is not a scheme"),
        ("https://", "cannot be read by the name"),
        ("s3:", "cannot be read by the name"),
        ("/", "cannot be read by the name"),
    ):
        said = unchanged(refs, tmp_path, new, status=2)
        assert words in said and "secret@" not in said and "=secret" not in said, said
    assert "do not fit in the memory" in unchanged(refs, tmp_path, "s3://bucket", "--memory", "10")
    missing = refused("rename", tmp_path / "missing.json", "/a", "/b")
    assert "No such file" in missing and "use the name of references" in missing


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '"x"',
        '{"refs":{"a":["/data/x",1,2,3]}}',
        '{"refs":{"a":["/data/x",1]}}',
        '{"refs":{"a":["/data/x","/data/y",1,2]}}',
        '{"refs":{"a":["/data/x",-1,2]}}',
        '{"refs":{"a":["/data/x",1.5,2]}}',
        '{"refs":{"a":[["/data/x",1,2],1,2]}}',
        '{"refs":{"a":["/data/x",1,2],"b":7}}',
        '{"refs":{"a":["/data/x",1,2],"b":null}}',
        '{"refs":{"a":["/data/x",1,2]}} {}',
        '{"refs":{"a":["/data/\\ud800",1,2]}}',
        '{"refs":{"a":["/data/x",1,2]},"zarrbits":{"sources":[{"url":"/data/x"}]}}',
        '{"refs":{"a":["/data/x",1,2]},"zarrbits":{"sources":[{"url":1,"size":1}]}}',
        '{"refs":{"a":["/data/x",1,2]},"zarrbits":{"sources":["/data/x"]}}',
        '{"refs":{"a":["/data/x",1,2]},"zarrbits":{"sources":[{"url":"/data/x","size":{}}]}}',
        '{"version":1,"templates":{"u":"/data"},"refs":{"a":["{{u}}/x",1,2]}}',
        '{"version":1,"gen":[{"key":"a"}],"refs":{"a":["/data/x",1,2]}}',
        '{"refs":{"a":' + 100000 * "[" + "}",
        '{"refs":{"a":["/data/x",1,2],"b":' + 200 * '{"a":' + "1" + 200 * "}" + "}}",
    ],
)
def test_what_is_not_references_in_json(tmp_path, text):
    refs = tmp_path / "refs.json"
    refs.write_text(text)
    said = unchanged(refs, "/data", "s3://bucket")
    assert "; make " in said, said


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "refs.json")
    assert "is neither a file nor a folder" in refused("rename", tmp_path / "refs.json", "/data", "s3://bucket")


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda refs: (refs / "v/refs.0.parq").write_bytes(b"PAR1"), "v/refs.0.parq.*make the references again"),
        (lambda refs: (refs / ".zmetadata").unlink(), "has no .*zmetadata"),
        (lambda refs: (refs / ".zmetadata").write_text("[]"), "kerchunk's Parquet format.*make the references again"),
        (lambda refs: (refs / ".zmetadata").write_text('{"metadata": {}, "zarrbits": 1}'), "kerchunk's Parquet format"),
        (lambda refs: os.mkfifo(refs / "v/refs.1.parq"), "is not a file; remove it"),
        (lambda refs: (refs / "v/refs.1.parq").symlink_to("/etc/passwd"), "v/refs.1.parq"),
        (lambda refs: (refs / "other").symlink_to("/etc"), "/other"),
    ],
)
def test_what_is_not_references_in_parquet(tmp_path, damage, words):
    refs = tmp_path / "refs.parquet"
    run("convert", "-q", "--virtual", source(tmp_path / "in.h5"), refs)
    damage(refs)
    before = sorted((str(p), p.lstat().st_ino) for p in refs.rglob("*"))
    said = refused("rename", refs, tmp_path, "s3://bucket")
    assert re.search(words, said), said
    assert sorted((str(p), p.lstat().st_ino) for p in refs.rglob("*")) == before
    assert sorted(os.listdir(tmp_path)) == ["in.h5", "refs.parquet"]


@pytest.mark.parametrize("form", FORMS)
def test_damaged_references_are_renamed_or_stay(tmp_path, form):
    refs, copy = tmp_path / f"refs.{form}", tmp_path / f"whole.{form}"
    run("convert", "-q", "--virtual", source(tmp_path / "in.h5"), copy)
    rng = random.Random(int(os.environ.get("ZARRBITS_SEED", "7")))
    done = 0
    for case in range(int(os.environ.get("ZARRBITS_CASES", "150"))):
        shutil.copytree(copy, refs) if copy.is_dir() else shutil.copy(copy, refs)
        name = rng.choice([p for p in refs.rglob("*") if p.is_file()]) if refs.is_dir() else refs
        data = bytearray(name.read_bytes())
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        else:
            for _ in range(rng.choice((1, 1, 4))):
                data[rng.randrange(len(data))] = rng.choice((0, 34, 44, 92, 125, 255, rng.randrange(256)))
        name.write_bytes(data)
        before = stored(refs)
        status = run("rename", "-q", refs, tmp_path, "https://host", status=(0, 1)).returncode
        assert (stored(refs) == before) == (status == 1), (case, name)
        assert sorted(os.listdir(tmp_path)) == ["in.h5", *sorted([refs.name, copy.name])]
        done += status == 0
        shutil.rmtree(refs) if refs.is_dir() else refs.unlink()
    assert done > 0


@pytest.mark.parametrize("form", FORMS)
def test_one_run_at_a_time(tmp_path, form):
    refs = tmp_path / f"refs.{form}"
    run("convert", "-q", "--virtual", source(tmp_path / "in.h5"), refs)
    work = pathlib.Path(f"{refs}.zarrbits-unfinished")
    work.mkdir() if form == "parquet" else work.write_bytes(b"")
    lock = os.open(work, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert "another conversion is writing to" in unchanged(refs, tmp_path, "s3://bucket")
    os.close(lock)
    run("rename", "-q", refs, tmp_path, "s3://bucket")  # what was left is in nobody's way
    assert sorted(os.listdir(tmp_path)) == ["in.h5", refs.name]


@pytest.mark.skipif("ZARRBITS_SANITIZED" in os.environ, reason="a sanitizer takes terabytes of address space")
def test_large_json_is_read_piece_by_piece(tmp_path):
    """300 MB, in 256 MiB of address space, of which libraries have most."""
    refs = tmp_path / "refs.json"
    with open(refs, "w") as f:
        f.write('{"version":1,"refs":{')
        for i in range(100):
            f.write(
                "\n".join(f'"v/c/{i}/{k}":["s3://bucket/long/name/of/a/file/{k % 7}.nc",{k * 1000},1000],' for k in range(30000))
            )
        f.write('"z":""}}')
    limit = (256 << 20, 256 << 20)
    size = os.path.getsize(refs)
    assert size > 200 << 20
    said = run("rename", refs, "s3://bucket", "s3://other", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    assert "7 files have another name" in said.stdout
    assert os.path.getsize(refs) > size - (10 << 20)
