# SPDX-License-Identifier: BSL-1.0
"""Stores in other forms than a directory of files, read by zarr-python: a .zip file, and metadata that is consolidated."""

import json
import os
import subprocess

import h5py
import numpy as np
import pytest
import zarr

COMMAND = os.environ["ZARRBITS_COMMAND"]


@pytest.fixture()
def source(tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("b/c/d", data=np.arange(10000, dtype="f4").reshape(100, 100), chunks=(7, 30), compression="gzip")
        f.create_dataset("a", data=np.arange(5))
        f.create_dataset("b/nan", data=np.array([1.5, np.nan, np.inf]), fillvalue=np.nan)
        f.create_group("empty").attrs["x"] = [1, 2]
        f["b/text"] = np.array(["x", "ü"], dtype=h5py.string_dtype())
    return path


def convert(*arguments):
    subprocess.run([COMMAND, "convert", "-q", *map(str, arguments)], check=True)


def test_zarr_python_reads_a_zip(source, tmp_path):
    convert(source, tmp_path / "out.zip")
    store = zarr.storage.ZipStore(tmp_path / "out.zip", mode="r")
    group = zarr.open_group(store, mode="r")
    with h5py.File(source) as f:
        np.testing.assert_array_equal(group["b/c/d"][:], f["b/c/d"][:])
        np.testing.assert_array_equal(group["b/nan"][:], f["b/nan"][:])
    assert sorted(group.keys()) == ["a", "b", "empty"]


def test_consolidated_metadata_is_what_the_nodes_say(source, tmp_path):
    convert(source, tmp_path / "out.zarr", "--consolidate")
    text = json.loads((tmp_path / "out.zarr/zarr.json").read_text())
    all_nodes = text["consolidated_metadata"]["metadata"]
    assert list(all_nodes) == ["a", "b", "empty", "b/c", "b/nan", "b/text", "b/c/d"]  # by depth, then name
    for path, node in all_nodes.items():
        assert node == json.loads((tmp_path / "out.zarr" / path / "zarr.json").read_text())


def test_zarr_python_finds_all_nodes_in_consolidated_metadata(source, tmp_path):
    convert(source, tmp_path / "out.zarr", "--consolidate")
    plain = zarr.open_group(tmp_path / "out.zarr", mode="r", use_consolidated=False)
    members = {path: node.metadata.to_dict() for path, node in plain.members(max_depth=None)}
    # nothing but the root's zarr.json and the chunks: who asks for another one fails
    for path in (tmp_path / "out.zarr").rglob("*/zarr.json"):
        path.unlink()
    group = zarr.open_consolidated(tmp_path / "out.zarr", mode="r")
    found = {path: node.metadata.to_dict() for path, node in group.members(max_depth=None)}
    for node in [*members.values(), *found.values()]:
        node.pop("consolidated_metadata", None)
    assert repr(sorted(found.items())) == repr(sorted(members.items())) and len(found) == 7
    with h5py.File(source) as f:
        np.testing.assert_array_equal(group["b/c/d"][:], f["b/c/d"][:])
