# SPDX-License-Identifier: BSL-1.0
"""A store in S3 as the source that somebody writes to: what is made is of one state of it, or the run ends. The sizes of its
objects do not change; their ETags do."""

import subprocess

import h5py
import numpy as np
import pytest

import s3_server
from harness import COMMAND, contents
from s3_conversion import environment, run

SOURCE = f"s3://{s3_server.BUCKET}/in.zarr"
WAYS = {
    "as it is": [],
    "shards": ["--shard", "40x100"],
    "recode": ["--compress", "zstd:3"],
    "other chunks": ["--chunk", "13x50"],
}


@pytest.fixture(name="server")
def server_of(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("a", data=np.arange(40000, dtype="i4").reshape(400, 100), chunks=(4, 100))
        f.create_dataset("b", data=np.arange(40000, dtype="i4").reshape(400, 100) + 10**6, chunks=(4, 100))
    assert run("convert", "-q", tmp_path / "in.h5", tmp_path / "in.zarr").returncode == 0
    with s3_server.Server() as server:
        for key, body in contents(tmp_path / "in.zarr").items():
            server.objects["in.zarr/" + key] = s3_server.Stored(body)
        yield server


def convert(server, *words, status=0):
    done = run(*words, "--endpoint", server.url)
    assert done.returncode == status, done.stderr
    return done.stderr


def change(server, key):
    """Other values of the same size, and the time of the object as it was."""
    before = server.objects[key]
    body = bytearray(before.body)
    body[0] ^= 1
    server.objects[key] = s3_server.Stored(bytes(body), modified=before.modified)


@pytest.mark.parametrize("way", WAYS)
def test_values_that_change_between_shares_are_not_mixed(server, tmp_path, way):
    out = tmp_path / "out.zarr"
    convert(server, "convert", "-q", SOURCE, out, "--partition", "0/2", *WAYS[way])
    change(server, "in.zarr/b/c/99/0")
    for words in (["--partition", "1/2", *WAYS[way]], ["--resume"], WAYS[way]):
        said = convert(server, "convert", SOURCE, out, *words, status=1)
        assert "before its source changed" in said, said
    assert not (out / "zarr.json").exists()


def test_values_that_change_before_finalize_are_noticed(server, tmp_path):
    out = tmp_path / "out.zarr"
    for share in range(2):
        convert(server, "convert", "-q", SOURCE, out, "--partition", f"{share}/2")
    change(server, "in.zarr/a/c/0/0")
    assert "before its source changed" in convert(server, "finalize", SOURCE, out, status=1)
    assert not (out / "zarr.json").exists()


@pytest.mark.parametrize("verb", ["convert", "export"])
@pytest.mark.parametrize("how", ["changed", "removed"])
def test_values_that_change_during_a_run_end_it(server, tmp_path, verb, how):
    """The server changes the last chunk as soon as the first one was read."""
    out = tmp_path / ("out.zarr" if verb == "convert" else "out.h5")
    key = "in.zarr/b/c/99/0"

    def once(request, go_on):
        if request.kind == "get" and "/c/" in request.key and request.key != key and key not in changed:
            changed.append(key)
            if how == "changed":
                change(server, key)
            else:
                del server.objects[key]
        return go_on()

    changed = []
    server.fault = once
    done = subprocess.run(
        [COMMAND, verb, "-q", SOURCE, str(out), "--endpoint", server.url, "--threads", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )
    assert changed and done.returncode == 1 and "was changed while it was" in done.stderr, done.stderr
    assert not (out / "zarr.json").exists() if verb == "convert" else not out.exists()


def test_the_same_objects_put_again_are_the_same_store(server, tmp_path):
    """With the same bytes, an object has the same ETag, whenever it was put."""
    out = tmp_path / "out.zarr"
    convert(server, "convert", "-q", SOURCE, out, "--partition", "0/2")
    for key, stored in list(server.objects.items()):
        server.objects[key] = s3_server.Stored(stored.body, modified=stored.modified + 5)
    convert(server, "convert", "-q", SOURCE, out, "--partition", "1/2")
    convert(server, "finalize", "-q", SOURCE, out)
    assert contents(tmp_path / "in.zarr") == contents(out)
