# SPDX-License-Identifier: BSL-1.0
"""digest --attributes: the attributes of a file, its stores and what is exported from them have the same digests.
ZARRBITS_CORPUS says where files of others are; ZARRBITS_CASES=all asks for all of them."""

import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import pytest

from harness import refused, run
from value_digests import array_digest, attribute_digest, tree_digest

CORPUS = os.environ.get("ZARRBITS_CORPUS")
ROOT = {
    "title": 'yö "quoted" \\ \n \x01',
    "numbers": np.arange(3, dtype="i2"),
    "whole": np.float64(3.0),
    "half": np.float32(0.5),
    "large": np.float64(1e300),
    "not_finite": np.array([np.nan, np.inf, -np.inf]),
    "unsigned": np.uint64(2**64 - 1),
    "negative": np.int64(-(2**63)),
    "empty": np.array([], "f8"),
    "texts": np.array(["a", ""], object),
    "matrix": np.arange(4.0).reshape(2, 2),
}
EXPECTED = {"/": attribute_digest(ROOT), "/g/v": attribute_digest({"units": "K", "\u00fc": 1})}


def report(name, *options, status=0):
    return json.loads(run("digest", "-q", "--json", "--attributes", *options, name, status=status).stdout)


def digests(name, *options, status=0):
    return {a["path"]: a["digest"] for a in report(name, *options, status=status)["attributes"]}


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        for name, value in ROOT.items():
            f.attrs[name] = value
        x = f.create_dataset("g/x", data=np.arange(3.0))
        x.make_scale("x")
        v = f.create_dataset("g/v", data=np.arange(3, dtype="f4"), fillvalue=-1)
        v.attrs["_FillValue"] = np.array([-1], "f4")
        v.attrs["units"] = "K"
        v.attrs["\u00fc"] = 1
        v.dims[0].attach_scale(x)
    return tmp_path / "in.h5"


def test_attributes_of_all_forms_have_one_digest(source, tmp_path):
    assert digests(source) == EXPECTED
    for name, command in {
        "out.zarr": ["convert", source],
        "plain.zarr": ["convert", "--convention", "none", source],
        "netcdf.zarr": ["convert", "--convention", "netcdf", source],
        "refs.json": ["convert", "--virtual", source],
        "again.zarr": ["convert", "--chunk", "2", tmp_path / "out.zarr"],
        "noted.zarr": ["convert", "--digest", source],
        "out.h5": ["export", "--digest", tmp_path / "out.zarr"],
        "out.nc": ["export", tmp_path / "out.zarr"],
        "repacked.h5": ["repack", source],
    }.items():
        run(*command, tmp_path / name, "-q")
        assert digests(tmp_path / name) == EXPECTED, name


def test_the_digest_of_all_counts_them(source):
    arrays = {"/g/x": array_digest(np.arange(3.0)), "/g/v": array_digest(np.arange(3, dtype="f4"))}
    assert report(source)["digest"] == tree_digest(arrays, EXPECTED)
    assert json.loads(run("digest", "-q", "--json", source).stdout)["digest"] == tree_digest(arrays)
    lines = run("digest", "--attributes", source).stdout.splitlines()
    assert lines[2:4] == [f"{EXPECTED['/']}  /  attributes", f"{EXPECTED['/g/v']}  /g/v  attributes"] and len(lines) == 5


def test_each_change_changes_the_digest(source):
    known = {digests(source)["/"]}
    changes = [("title", "yo"), ("whole", 4.0), ("numbers", np.array([0, 1, 3])), ("new", 1), ("texts", "a")]
    for name, value in changes:
        with h5py.File(source, "r+") as f:
            f.attrs[name] = value
        digest = digests(source)["/"]
        assert digest not in known, name
        known.add(digest)


def test_the_vector_of_the_reference(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.attrs["units"] = "K"
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/reference/digest.md").read_text(encoding="utf-8")
    assert f"`{digests(tmp_path / 'in.h5')['/']}`" in page


def test_selected_objects_alone(source):
    assert digests(source, "--exclude", "/g/v") == {"/": EXPECTED["/"]}


def test_options_that_do_not_go_with_attributes_are_refused(source):
    for options in (["--partition", "0/2", "--json"], ["--add"], ["--dandi"]):
        assert "remove" in refused("digest", "--attributes", *options, source, status=2)


@pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
def test_files_of_others_keep_the_digests_of_their_attributes(tmp_path):
    files = sorted(p for p in pathlib.Path(CORPUS).rglob("*") if p.is_file() and h5py.is_hdf5(p))
    wrong, compared = [], 0
    for path in files if os.environ.get("ZARRBITS_CASES") == "all" else files[::19]:
        if path.stat().st_size > 20 << 20 or run("convert", "-q", path, tmp_path / "out.zarr", status=None).returncode != 0:
            shutil.rmtree(tmp_path / "out.zarr", ignore_errors=True)
            continue
        wanted = digests(path, status=(0, 3))
        forms = {
            "out.zarr": [],
            "refs.json": ["convert", "--virtual", path],
            "again.zarr": ["convert", tmp_path / "out.zarr", "--compress", "zstd:1"],
            "out.h5": ["export", tmp_path / "out.zarr"],
            "netcdf.h5": ["export", "--netcdf", tmp_path / "out.zarr"],
        }
        for name, command in forms.items():
            if command and run(*command, tmp_path / name, "-q", status=None).returncode != 0:
                continue
            compared += 1
            actual = digests(tmp_path / name, "--external", "all", status=(0, 3))
            if actual != wanted:
                wrong.append(
                    (str(path.relative_to(CORPUS)), name, [p for p in wanted | actual if wanted.get(p) != actual.get(p)])
                )
        for child in tmp_path.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    assert not wrong and compared > 20, (compared, wrong)
