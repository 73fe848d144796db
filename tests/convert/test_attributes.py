# SPDX-License-Identifier: BSL-1.0
"""Attributes as strict JSON, and dimension names."""
import base64
import json
import os
import struct

import h5py
import numpy as np

from store import Store, convert, run_tests


def made(folder, fill, status=0):
    source, target, report = (os.path.join(folder, n) for n in ("in.h5", "out.zarr", "r.json"))
    with h5py.File(source, "w") as f:
        fill(f)
    convert(source, target, "--report", report, "--quiet", status=status)
    with open(report, encoding="utf-8") as f:
        return Store(target), {(o["path"], o.get("attribute")): o for o in json.load(f)["objects"]}


def test_values_of_each_type(folder):
    nan = np.array([0x7FF8000000000001], "u8").view("f8")[0]
    given = {"int": (np.int32(-5), -5), "big": (np.uint64(2**64 - 1), 2**64 - 1), "float": (np.float32(0.1), float(np.float32(0.1))),
             "one": (np.array([1.5]), [1.5]), "matrix": (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]), "nan": (np.nan, "NaN"),
             "payload": (nan, "0x7ff8000000000001"), "infinities": (np.array([np.inf, -np.inf]), ["Infinity", "-Infinity"]),
             "bool": (np.bool_(True), True), "complex": (np.complex128(1 - 2j), [1.0, -2.0]), "text": ("größe", "größe"),
             "texts": (np.array(["a", "b"], dtype=h5py.string_dtype()), ["a", "b"]), "bytes": (np.bytes_(b"caf\xe9"), {"base64": base64.b64encode(b"caf\xe9").decode()}),
             "null": (h5py.Empty("f8"), None), "opaque": (np.void(b"\0\1"), {"base64": "AAE="}), "nothing": (np.zeros((2, 0)), [[], []]),
             "record": (np.array((1, 2.5), [("a", "i4"), ("b", "f8")]), {"a": 1, "b": 2.5})}

    def fill(f):
        for name, (value, _) in given.items():
            f.attrs[name] = value
        f.attrs["minus_zero"] = -0.0
        f.attrs["reference"] = f.ref
    store, report = made(folder, fill)
    have = store.attributes()
    for name, (_, wanted) in given.items():
        assert have[name] == wanted and type(have[name]) is type(wanted), (name, have[name])
        assert report["/", name]["outcome"] == "mapped"
    assert str(have["minus_zero"]) == "-0.0" and have["reference"] == "/"


def test_fill_value_attribute_as_xarray_reads_it(folder):
    def fill(f):
        for name, dtype in (("f", "f4"), ("i", "i2")):
            d = f.create_dataset(name, data=np.zeros(3, dtype))
            d.attrs.create("_FillValue", np.array([-999], dtype))
            d.attrs["missing_value"] = np.array([-999], dtype)
        f["s"] = np.array([b"a"], "S1")
        f["s"].attrs["_FillValue"] = np.bytes_(b"\0")
    store, report = made(folder, fill)
    assert struct.unpack("<d", base64.b64decode(store.attributes("f")["_FillValue"])) == (-999,)
    assert store.attributes("i")["_FillValue"] == -999
    assert store.attributes("f")[report["/f", "_FillValue"]["zarr_name"]] == [-999.0]
    assert store.attributes("f")["missing_value"] == [-999.0]
    assert "_FillValue" not in store.attributes("s")


def test_scales_and_labels_name_dimensions(folder):
    def fill(f):
        for name, n in (("time", 3), ("lat", 4)):
            f[name] = np.arange(n)
            f[name].make_scale(name)
        f["x"] = np.zeros((3, 4, 4, 5))
        f["x"].dims[0].attach_scale(f["time"])
        f["x"].dims[1].attach_scale(f["lat"])
        f["x"].dims[2].attach_scale(f["lat"])
        f["x"].dims[3].label = "level"
        f["table"] = np.zeros(2)
        f["table"].attrs["CLASS"] = np.bytes_(b"TABLE")
    store, _ = made(folder, fill)
    names = store.meta("x")["dimension_names"]
    assert names[:2] == ["time", "lat"] and names[3] == "level" and len(set(names)) == 4, names
    assert store.meta("time")["dimension_names"] == ["time"]
    assert "CLASS" not in store.attributes("time") and "REFERENCE_LIST" not in store.attributes("time")
    assert "DIMENSION_LIST" not in store.attributes("x")
    assert store.attributes("table")["CLASS"] == "TABLE"      # not a scale's: the user's own


def test_an_attribute_called_as_our_own_key_survives(folder):
    def fill(f):
        f.attrs["zarrbits"] = "mine"
        f["soft"] = h5py.SoftLink("/nowhere")
    store, report = made(folder, fill)
    assert store.attributes()[report["/", "zarrbits"]["zarr_name"]] == "mine"
    assert store.attributes()["zarrbits"]["links"]["soft"] == {"kind": "soft", "target": "/nowhere"}


def test_attributes_of_named_types_are_kept(folder):
    def fill(f):
        f["t"] = np.dtype("i4")
        f["t"].attrs["unit"] = "m"
    store, report = made(folder, fill)
    assert store.attributes("t")["unit"] == "m" and store.attributes()["zarrbits"]["named_types"]["t"] == "int32"
    assert report["/t", None]["kind"] == "datatype"


if __name__ == "__main__":
    run_tests(globals())
