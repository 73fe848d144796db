# SPDX-License-Identifier: BSL-1.0
"""Files of others: `check` ends with each, and finds nothing in a store that convert makes of one.
ZARRBITS_CORPUS says where the files are; ZARRBITS_CASES=all asks for all of them."""

import json
import os
import pathlib

import h5py
import pytest

from harness import run

CORPUS = os.environ.get("ZARRBITS_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")


def sample():
    files = sorted(p for p in pathlib.Path(CORPUS or "/nonexistent").rglob("*") if p.is_file() and h5py.is_hdf5(p))
    return files if os.environ.get("ZARRBITS_CASES") == "all" else files[3::20]


def test_check_ends_with_each_file():
    outcomes = {}
    for path in sample():
        done = run("check", "--json", "-q", path, status=(0, 1, 3))
        assert done.returncode == 1 or json.loads(done.stdout)["sound"] == (done.returncode == 0), path
        outcomes[done.returncode] = outcomes.get(done.returncode, 0) + 1
    print(outcomes)


def test_a_store_of_each_file_has_no_finding(tmp_path):
    for i, path in enumerate(sample()[::2]):
        target = tmp_path / f"{i}.zarr"
        if run("convert", "-q", path, target, status=(0, 1, 3)).returncode == 1:
            continue
        done = run("check", "--json", "-q", target, status=None)
        assert done.returncode == 0, (path, done.stdout[-2000:], done.stderr)
