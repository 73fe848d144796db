# SPDX-License-Identifier: BSL-1.0
"""`zarrbits check` of stores and files in S3: one request for each object, and the findings of a directory."""

import json
import pathlib

import h5py
import numpy as np
import pytest

from harness import convert
from s3_conversion import run
from s3_server import BUCKET, Server, Stored


@pytest.fixture
def server():
    with Server() as s:
        yield s
        assert s.wrong_signatures == []


def check(server, name, *options, status=0):
    server.requests.clear()
    done = run("check", "--json", "-q", f"s3://{BUCKET}/{name}", "--endpoint", server.url, *options)
    if done.returncode == 1 and "built without" in done.stderr:
        pytest.skip("THIS BUILD HAS NO S3")
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def upload(server, tmp_path, *options):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("g/v", data=np.arange(1000, dtype="i4").reshape(50, 20), chunks=(5, 5), compression="gzip")
    convert("-q", tmp_path / "in.h5", tmp_path / "out.zarr", *options)
    for path in pathlib.Path(tmp_path / "out.zarr").rglob("*"):
        if path.is_file():
            server.objects[str(path.relative_to(tmp_path))] = Stored(path.read_bytes())
    server.objects["in.h5"] = Stored((tmp_path / "in.h5").read_bytes())


@pytest.mark.parametrize("options", [[], ["--shard", "64M"]])
def test_each_object_of_a_store_is_requested_once(server, tmp_path, options):
    upload(server, tmp_path, *options)
    report = check(server, "out.zarr")
    assert report["sound"] and report["arrays"][0]["checked"] == 40, report
    gets = [r.key for r in server.requests if r.kind == "get" and r.key != "out.zarr"]  # is that a file?
    assert len(gets) == len(set(gets)) == sum(key.startswith("out.zarr/") for key in server.objects), gets


def test_findings(server, tmp_path):
    upload(server, tmp_path)
    server.objects["out.zarr/g/v/c/3/1"] = Stored(b"?")
    server.objects["out.zarr/g/notes"] = Stored(b"?")
    found = [(f["rule"], f["path"], f["key"]) for f in check(server, "out.zarr", status=3)["findings"]]
    assert found == [("key", "/g", "notes"), ("chunk", "/g/v", "c/3/1")], found
    assert [f["rule"] for f in check(server, "out.zarr", "--metadata", status=3)["findings"]] == ["key"]
    assert not [r for r in server.requests if "/c/" in r.key]


def test_a_file(server, tmp_path):
    upload(server, tmp_path)
    report = check(server, "in.h5")
    assert report["format"] == "HDF5" and report["arrays"][0]["checked"] == 40, report


@pytest.mark.parametrize("name", ["noted", "noted.zarr"])
def test_a_noted_digest_is_compared(server, tmp_path, name):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=np.arange(100.0), chunks=(30,))
    arguments = ["-q", "--digest", "--json", "--compress", "none", tmp_path / "in.h5", f"s3://{BUCKET}/{name}"]
    done = run("convert", *arguments, "--endpoint", server.url)
    if done.returncode == 1 and "built without" in done.stderr:
        pytest.skip("THIS BUILD HAS NO S3")
    digests = json.loads(done.stdout)["digest"]
    assert digests["noted"] and not [key for key in server.objects if "zarrbits-" in key], server.objects.keys()
    report = check(server, name)
    assert report["digest"] == digests["source"] == digests["target"] and not report["findings"]
    chunk = server.objects[f"{name}/v/c/1"]
    server.objects[f"{name}/v/c/1"] = Stored(chunk.body[:8][::-1] + chunk.body[8:])
    assert [f["rule"] for f in check(server, name, status=3)["findings"]] == ["digest"]
