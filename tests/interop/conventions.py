# SPDX-License-Identifier: BSL-1.0
"""Files of communities, read from HDF5 and from the store, are equal by the community's own comparison. docs/conventions.md has the
table. Each file is converted in four ways: portable, native, with shards, and as one .zip file."""
import glob
import importlib.metadata
import importlib.util
import os

import pytest

from conftest import run

CORPUS = os.environ.get("ZARRBITS_CORPUS")
WAYS = {"portable": [], "native": ["--profile", "native"], "shards": ["--shard", "64K"], "zip": []}


def at_least(package, version):
    """The package; the test is skipped where there is none, or one of before this version (older Pythons get these)."""
    module = pytest.importorskip(package.replace("-", "_"))
    have = importlib.metadata.version(package)
    if tuple(int(x) for x in have.split(".")[:2]) < version:
        pytest.skip(f"{package} is {have}")
    return module


def corpus(*patterns):
    found = sorted(f for p in patterns for f in glob.glob(f"{CORPUS}/{p}", recursive=True)) if CORPUS else []
    return found or [pytest.param(None, marks=pytest.mark.skip("ZARRBITS_CORPUS is not set"))]


@pytest.fixture(params=WAYS)
def convert(request, tmp_path):
    def to_store(source, *options):
        store = tmp_path / ("store.zip" if request.param == "zip" else "store.zarr")
        run("convert", source, store, "--quiet", *WAYS[request.param], *options)
        return str(store)
    return to_store


def opened(store):
    """What xarray and anndata take: a folder's name; of a .zip file they want the store."""
    if not store.endswith(".zip"):
        return store
    import zarr
    return zarr.storage.ZipStore(store, mode="r")
