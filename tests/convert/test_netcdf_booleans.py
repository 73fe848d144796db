# SPDX-License-Identifier: BSL-1.0
"""xarray writes booleans to netCDF as int8 with the attribute dtype = "bool".
In the store they are bool, as xarray's own writer makes them; int8 stays where a value is neither 0 nor 1, or is not known."""

import json
import os

import h5py
import numpy as np

from harness import convert, run
from store import Store


def write(path, values, chunks=None, fill=-127, length=None, mark="bool", **attributes):
    """A netCDF file of one variable, "b". Its fill value is that of libnetcdf for bytes; attributes as xarray writes them."""
    with h5py.File(path, "w") as f:
        f.attrs["Conventions"] = "CF-1.8"
        values = np.asarray(values, "i1")
        x = f.create_dataset("x", data=np.arange(len(values), dtype="i4"), maxshape=(None,), chunks=(4,))
        x.make_scale("x")
        b = f.create_dataset(
            "b", shape=(length or len(values),), dtype="i1", chunks=chunks, fillvalue=fill, maxshape=(None,) if chunks else None
        )
        b[: len(values)] = values
        b.dims[0].attach_scale(x)
        b.attrs["dtype"] = np.bytes_(mark)
        b.attrs["units"] = np.bytes_("1")
        for name, value in attributes.items():
            b.attrs[name] = value
    return path


def stored(folder, *sources, options=(), name="out.zarr"):
    out = os.path.join(folder, name)
    convert(*sources, out, "--quiet", *options)
    return Store(out)


def is_verified(folder, *sources, options=(), name="out.zarr"):
    run("verify", *options, *sources, os.path.join(folder, name))
    return True


def test_int8_that_says_bool_is_bool(folder):
    values = [1, 0, 1, 1, 0, 0, 1]
    for i, (chunks, fill) in enumerate([(None, -127), ((3,), -127), ((3,), 0), (None, 0)]):
        source = write(f"{folder}/{i}.nc", values, chunks, fill)
        store = stored(folder, source, name=f"{i}.zarr")
        assert store.meta("b")["data_type"] == "bool" and store.meta("b")["fill_value"] is False
        assert store.read("b").tolist() == [bool(v) for v in values]
        assert store.attributes("b") == {"units": "1"}  # as xarray's own writer
        assert store.meta("b")["zarrbits"]["attribute_values"] == {"dtype": "bool"}
        assert is_verified(folder, source, name=f"{i}.zarr")


def test_one_bit_each_with_packbits(folder):
    source = write(f"{folder}/in.nc", [1, 0, 1, 1, 0, 0, 1, 0], (8,))
    store = stored(folder, source, options=["--codec", "packbits", "--profile", "portable"])
    assert store.meta("b")["codecs"][0]["name"] == "packbits"
    assert is_verified(folder, source)


def test_int8_that_is_no_boolean_stays(folder):
    never_written = write(f"{folder}/never.nc", [1, 0, 1], (2,), length=8)
    cases = {
        "a 2": write(f"{folder}/two.nc", [1, 0, 2], (2,)),
        "never written": never_written,
        "packed": write(f"{folder}/packed.nc", [1, 0, 1], (2,), scale_factor=2.0),
        "another word": write(f"{folder}/word.nc", [1, 0, 1], (2,), mark="boolean"),
    }
    for i, (what, source) in enumerate(cases.items()):
        store = stored(folder, source, name=f"{i}.zarr")
        assert store.meta("b")["data_type"] == "int8" and store.meta("b")["fill_value"] == -127, what
        assert store.attributes("b")["dtype"] == ("boolean" if what == "another word" else "bool"), what
        assert is_verified(folder, source, name=f"{i}.zarr"), what


def test_values_of_references_are_not_looked_at(folder):
    source = write(f"{folder}/in.nc", [1, 0, 1, 1], (2,))
    out = f"{folder}/out.json"
    convert(source, out, "--quiet", "--virtual")
    with open(out) as f:
        meta = json.loads(json.load(f)["refs"]["b/zarr.json"])
    assert meta["data_type"] == "int8" and meta["attributes"]["dtype"] == "bool"
    assert is_verified(folder, source, name="out.json")


def test_only_under_the_convention(folder):
    store = stored(folder, write(f"{folder}/in.nc", [1, 0, 1], (2,)), options=["--convention", "none"])
    assert store.meta("b")["data_type"] == "int8" and store.attributes("b")["dtype"] == "bool"


def test_several_files(folder):
    parts = [[1, 0, 1, 0, 1], [0, 0, 1], [1, 1, 0, 1]]
    sources = [write(f"{folder}/{i}.nc", p, (4,)) for i, p in enumerate(parts)]
    store = stored(folder, *sources, options=["--concat", "x", "--allow-overlap"])
    assert store.meta("b")["data_type"] == "bool" and store.read("b").tolist() == [bool(v) for p in parts for v in p]
    assert is_verified(folder, *sources, options=["--concat", "x", "--allow-overlap"])
    twos = write(f"{folder}/twos.nc", [1, 2, 0], (4,))
    store = stored(folder, *sources, twos, options=["--concat", "x", "--allow-overlap"], name="twos.zarr")
    assert store.meta("b")["data_type"] == "int8" and store.read("b").tolist() == sum(parts, []) + [1, 2, 0]


def test_either_form_grows(folder):
    first, second = write(f"{folder}/0.nc", [1, 0, 1, 0, 1], (4,)), write(f"{folder}/1.nc", [0, 1, 1], (4,))
    wanted = [1, 0, 1, 0, 1, 0, 1, 1]
    options = ["--append", "x", "--allow-overlap"]
    store = stored(folder, first)
    store = stored(folder, second, options=options)
    assert store.meta("b")["data_type"] == "bool" and store.read("b").tolist() == [bool(v) for v in wanted]
    # as an earlier version made it: int8, whose chunks have the same bytes
    store = stored(folder, first, name="old.zarr")
    path = f"{folder}/old.zarr/b/zarr.json"
    with open(path) as f:
        meta = json.load(f)
    meta.update(data_type="int8", fill_value=-127)
    meta["attributes"]["dtype"] = "bool"
    meta.pop("zarrbits", None)
    with open(path, "w") as f:
        json.dump(meta, f)
    store = stored(folder, second, options=options, name="old.zarr")
    assert store.meta("b")["data_type"] == "int8" and store.read("b").tolist() == wanted
