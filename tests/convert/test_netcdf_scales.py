# SPDX-License-Identifier: BSL-1.0
"""HDF5 files with dimension scales, as libnetcdf shows them to xarray.
tests/interop/test_corpus_roundtrips.py asks xarray itself about files of others; what is here was read off there."""

import json
import os

import h5py
import numpy as np

from harness import convert, run
from store import Store
from test_conventions import ncgen


def stored(folder, source, *options, name="out.zarr"):
    out = os.path.join(folder, name)
    convert(source, out, "--quiet", *options)
    run("verify", source, out)
    return Store(out)


def scale(f, name, length, **attributes):
    d = f.create_dataset(name, data=np.arange(length, dtype="i4"))
    d.make_scale(name)
    d.attrs.update(attributes)
    return d


def test_of_several_scales_of_a_dimension_the_last_one_counts(folder):
    with h5py.File(f"{folder}/in.h5", "w") as f:
        scales = [scale(f, name, n) for name, n in (("x1", 2), ("x2", 2), ("y", 3))]
        v = f.create_dataset("v", data=np.arange(6).reshape(3, 2))
        v.dims[0].attach_scale(scales[2])
        v.dims[1].attach_scale(scales[0])
        v.dims[1].attach_scale(scales[1])
    store = stored(folder, f"{folder}/in.h5")
    assert store.meta("v")["dimension_names"] == ["y", "x2"]
    assert store.meta("x1")["dimension_names"] == ["x1"] and store.meta("x2")["dimension_names"] == ["x2"]
    # without the convention, the first one
    assert stored(folder, f"{folder}/in.h5", "--convention", "none", name="none.zarr").meta("v")["dimension_names"] == ["y", "x1"]


def test_attributes_of_scales_are_shown_as_by_libnetcdf(folder):
    with h5py.File(f"{folder}/in.h5", "w") as f:
        x = scale(f, "x", 2)
        v = f.create_dataset("v", data=[1, 2])
        v.dims[0].attach_scale(x)
        v.dims[0].label = "a label"
        v.attrs["NAME"] = np.bytes_("a name")
    store = stored(folder, f"{folder}/in.h5")
    assert store.attributes("v") == {"DIMENSION_LABELS": "a label"}
    assert store.notes("v")["attribute_values"] == {"NAME": "a name", "DIMENSION_LABELS": ["a label"]}


def test_a_store_of_no_convention_grows_without_one(folder):
    """A netCDF file's characters are strings there."""
    for k in range(2):
        os.rename(
            ncgen(
                folder,
                f"""netcdf t {{ dimensions: t = UNLIMITED; n = 3; variables: int t(t); char c(t, n);
            data: t = {2 * k}, {2 * k + 1}; c = "abc", "def"; }}""",
            ),
            f"{folder}/{k}.nc",
        )
    convert(f"{folder}/0.nc", f"{folder}/out.zarr", "--quiet", "--convention", "none")
    convert("--append", "t", f"{folder}/1.nc", f"{folder}/out.zarr", "--quiet")
    store = Store(f"{folder}/out.zarr")
    assert store.meta("c")["data_type"] == "string" and store.meta("c")["shape"] == [4, 3]
    # without any note it could be of another program
    for path in "", "c", "t", "n":
        name = os.path.join(folder, "out.zarr", path, "zarr.json")
        with open(name) as f:
            meta = json.load(f)
        for key in "zarrbits", "_nc_zarrbits":
            meta["attributes"].pop(key, None)
            meta.pop(key, None)
        with open(name, "w") as f:
            json.dump(meta, f)
    os.rename(f"{folder}/1.nc", f"{folder}/2.nc")
    said = convert("--append", "t", "--allow-overlap", f"{folder}/2.nc", f"{folder}/out.zarr", "--quiet", status=1).stderr
    assert "made with another convention" in said and "--concat and --convention" in said and "null_terminated" not in said


def test_a_slash_behind_a_folder_of_references(folder):
    source = ncgen(folder, "netcdf t { dimensions: x = 2; variables: int v(x); data: v = 1, 2; }")
    convert(source, f"{folder}/refs.parquet/", "--quiet", "--virtual")
    assert os.path.exists(f"{folder}/refs.parquet/.zmetadata")
    run("verify", source, f"{folder}/refs.parquet/")
    convert(source, f"{folder}/refs.parquet/", "--quiet", "--virtual", "--overwrite")
