# SPDX-License-Identifier: BSL-1.0
"""zarrbits digest of the objects of a store: --dandi prints what zarr_checksum does, --manifest writes what sha256sum checks."""

import hashlib
import json

import pytest

import dandi_trees
from harness import execute, refused, run

TREES = dandi_trees.trees()


@pytest.mark.parametrize("name", list(TREES))
def test_dandi_prints_the_checksum_of_zarr_checksum(tmp_path, name):
    store = dandi_trees.write(TREES[name], tmp_path / "store")
    golden = json.loads(dandi_trees.GOLDEN.read_text())
    for threads in (1, 5):
        assert run("digest", "--dandi", "--threads", threads, store).stdout == f"{golden[name]}  {store}\n"


@pytest.mark.parametrize("name", list(TREES))
def test_sha256sum_checks_the_manifest(tmp_path, name):
    store = dandi_trees.write(TREES[name], tmp_path / "store")
    manifest = tmp_path / "manifest.sha256"
    run("digest", "--manifest", manifest, store)
    lines = manifest.read_text(encoding="utf-8").splitlines()
    assert lines[::2] == [f"# {len(TREES[name][p])} bytes" for p in sorted(TREES[name], key=str.encode)]
    assert [line.lstrip("\\")[:64] for line in lines[1::2]] == [
        hashlib.sha256(TREES[name][p]).hexdigest() for p in sorted(TREES[name], key=str.encode)
    ]
    checked = execute("sha256sum", "-c", "--strict", manifest, cwd=store)
    assert checked.stdout.count(": OK\n") == len(TREES[name])
    victim = store / next(iter(TREES[name]))
    victim.write_bytes(victim.read_bytes() + b"x")
    execute("sha256sum", "-c", manifest, cwd=store, status=1)


def test_manifest_of_a_file_has_its_name(tmp_path):
    (tmp_path / "in.zip").write_bytes(b"abc")
    run("digest", "--manifest", tmp_path / "out", tmp_path / "in.zip")
    assert (tmp_path / "out").read_text() == f"# 3 bytes\n{hashlib.sha256(b'abc').hexdigest()}  in.zip\n"


def test_wrong_uses_are_refused(tmp_path):
    store = dandi_trees.write(TREES["v3"], tmp_path / "store")
    assert "use --dandi or --manifest" in refused("digest", "--dandi", "--manifest", tmp_path / "m", store, status=2)
    assert "remove --json" in refused("digest", "--dandi", "--json", store, status=2)
    assert "about one name" in refused("digest", "--manifest", tmp_path / "m", store, store, status=2)
    assert "lies in the store" in refused("digest", "--manifest", store / "m", store)
    assert "cannot open" in refused("digest", "--manifest", tmp_path / "m", tmp_path / "missing")
    assert "cannot be listed" in refused("digest", "--dandi", "https://127.0.0.1/x.zarr")
    assert not (tmp_path / "m").exists()
