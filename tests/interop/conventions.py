# SPDX-License-Identifier: BSL-1.0
"""Files of communities, read from HDF5 and from the store, are equal by the community's own comparison.
docs/reference/conventions.md has the table. Each file is converted in four ways: portable, native, in shards, as a .zip file."""

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


def as_in_zarr(tree):
    """A tree that was read from netCDF without decoding: xarray writes booleans to netCDF as int8 with an attribute,
    to Zarr as bool."""

    def booleans(dataset):
        marked = [k for k, v in dataset.variables.items() if v.dtype == "int8" and v.attrs.get("dtype") == "bool"]
        for name in marked:
            attributes = {k: v for k, v in dataset[name].attrs.items() if k != "dtype"}
            dataset[name] = (dataset[name].dims, dataset[name].values.astype(bool), attributes)
        return dataset

    return tree.map_over_datasets(booleans)
