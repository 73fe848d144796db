# SPDX-License-Identifier: BSL-1.0
"""References to the chunks of a Zarr store (`convert --virtual IN.zarr refs.json`): the chunks stay in the store's objects, in
parts of its .zip file, or where its references lead. `verify` reads both sides; fsspec's reader is in tests/interop."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest

from harness import convert, refused, run, verify
from test_from_zarr import make


@pytest.fixture
def source(tmp_path):
    convert(make(tmp_path / "in.h5"), tmp_path / "a.zarr", "-q")
    return tmp_path / "in.h5", tmp_path / "a.zarr"


def refer(store, target, *options):
    return json.loads(convert("--virtual", store, target, "--json", "-q", *options).stdout)


def references(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["refs"]


def target(path, array, *index):
    """The bytes that the reference to a chunk leads to."""
    url, offset, size = references(path)[array + "/" + ".".join(map(str, index))]
    with open(url.removeprefix("file://"), "rb") as f:
        f.seek(offset)
        return f.read(size)


def test_chunks_stay_in_the_objects_of_the_store(source, tmp_path):
    refs = tmp_path / "refs.json"
    report = refer(source[1], refs)
    assert report["referred"]["objects"] == sum(1 for f in source[1].rglob("c/**/*") if f.is_file()) + 1  # a scalar's
    assert not os.path.exists(f"{refs}.data")
    assert target(refs, "cube", 3, 0, 0) == (source[1] / "cube/c/3/0/0").read_bytes()
    verify(source[1], refs)
    verify(source[0], refs, "--external", tmp_path)  # the first source, by verify's own reading of HDF5
    first = refs.read_bytes()
    refer(source[1], refs, "--overwrite")
    assert refs.read_bytes() == first


def test_shards_stay_whole(source, tmp_path):
    convert(source[0], tmp_path / "s.zarr", "-q", "--shard", "1M")
    refs = tmp_path / "refs.json"
    report = refer(tmp_path / "s.zarr", refs)
    assert report["referred"]["objects"] < 20
    cube = next(o for o in report["objects"] if o["path"] == "/cube")
    assert "only for readers of Zarr v3" in cube["reason"] and "sharding_indexed" in cube["reason"]
    assert target(refs, "cube", 0, 0, 0) == (tmp_path / "s.zarr/cube/c/0/0/0").read_bytes()
    verify(source[0], refs, "--external", tmp_path)


def test_members_of_a_zip_file(source, tmp_path):
    convert(source[0], tmp_path / "a.zip", "-q")
    refs = tmp_path / "refs.json"
    refer(tmp_path / "a.zip", refs)
    assert target(refs, "cube", 3, 0, 0) == (source[1] / "cube/c/3/0/0").read_bytes()
    url = references(refs)["cube/3.0.0"][0]
    assert url == f"file://{tmp_path}/a.zip"
    verify(source[0], refs, "--external", tmp_path)


def test_compressed_members_are_copied(source, tmp_path):
    """No reader of references inflates them."""
    shutil.make_archive(str(tmp_path / "deflated"), "zip", source[1])
    refs = tmp_path / "refs.json"
    report = refer(tmp_path / "deflated.zip", refs)
    assert "referred" not in report
    verify(source[0], refs)


def test_references_to_references_lead_to_the_file(source, tmp_path):
    """Not to the first references, which may be removed."""
    first, refs = tmp_path / "first.json", tmp_path / "refs.parquet"
    refer(source[0], first)
    refer(first, refs, "--exclude", "/sparse")
    first.unlink()
    for data in tmp_path.glob("first.json.data*"):
        assert data.stat().st_size > 0  # strings, which the file has in another form
    verify("--exclude", "/sparse", source[0], refs)


def test_metadata_of_zarr_v3_for_a_store_of_v2(source, tmp_path):
    """An archive of Zarr v2 that nobody may rewrite."""
    old = tmp_path / "old.zarr"
    (old / "t").mkdir(parents=True)
    (old / ".zgroup").write_text('{"zarr_format": 2}')
    (old / "t/.zarray").write_text(
        json.dumps(
            {
                "zarr_format": 2,
                "shape": [5],
                "chunks": [3],
                "dtype": "<i4",
                "compressor": None,
                "filters": None,
                "fill_value": 7,
                "order": "C",
            }
        )
    )
    (old / "t/0").write_bytes(np.arange(3, dtype="<i4").tobytes())
    refs = tmp_path / "refs.json"
    refer(old, refs, "--zarr-format", "3")
    node = json.loads(references(refs)["t/zarr.json"])
    assert node["zarr_format"] == 3 and node["fill_value"] == 7 and node["shape"] == [5]
    assert references(refs)["t/c/0"] == [f"file://{old}/t/0", 0, 12]
    assert "t/c/1" not in references(refs)
    verify(old, refs)


def test_a_store_that_changes_afterwards(source, tmp_path):
    refs = tmp_path / "refs.json"
    refer(source[1], refs)
    chunk = source[1] / "cube/c/3/0/0"
    chunk.write_bytes(chunk.read_bytes() + b"x")
    done = run("verify", source[0], refs, "--external", tmp_path, status=None)
    assert done.returncode != 0 and "has changed since the references were made" in done.stderr + done.stdout


def test_partitions_make_the_same_references(source, tmp_path):
    one, refs = tmp_path / "one.json", tmp_path / "refs.json"
    refer(source[1], one)
    for i in range(3):
        run("convert", "-q", "--virtual", source[1], refs, "--partition", f"{i}/3")
    run("finalize", "-q", "--virtual", source[1], refs)
    assert refs.read_bytes() == one.read_bytes()


def test_names_that_readers_elsewhere_use(source, tmp_path):
    refs = tmp_path / "refs.json"
    refer(source[1], refs, "--base", "https://host/archive")
    assert references(refs)["cube/3.0.0"][0] == "https://host/archive/a.zarr/cube/c/3/0/0"
    refer(source[1], refs, "--base", ".", "--overwrite")
    assert references(refs)["cube/3.0.0"][0] == "a.zarr/cube/c/3/0/0"
    verify(source[1], refs)


def test_only_zarr_v2(source, tmp_path):
    refs = tmp_path / "refs.json"
    done = convert("--virtual", "--zarr-format", "2", source[1], refs, status=3)
    assert "/sparse" in done.stderr and "Zarr v2 cannot have it" in done.stderr
    assert not any(key.endswith("zarr.json") for key in references(refs))
    assert json.loads(references(refs)["cube/.zarray"])["shape"] == [24, 30, 20]


@pytest.mark.parametrize("option", [["--chunk", "5"], ["--compress", "zstd"], ["--codec", "packbits"], ["--profile", "recode"]])
def test_chunks_stay_as_they_are(source, tmp_path, option):
    sentence = refused("convert", "--virtual", *option, source[1], tmp_path / "refs.json", status=2)
    assert sentence.endswith("leave out " + option[0]) and "stay as they are" in sentence
