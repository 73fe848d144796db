# SPDX-License-Identifier: BSL-1.0
"""Attributes as strict JSON, and dimension names."""

import base64
import json
import os
import struct

import h5py
import numpy as np

from harness import convert
from store import Store


def made(folder, fill, *options, status=0):
    source, target, report = (os.path.join(folder, n) for n in ("in.h5", "out.zarr", "r.json"))
    with h5py.File(source, "w") as f:
        fill(f)
    convert(source, target, "--report", report, "--quiet", *options, status=status)
    with open(report, encoding="utf-8") as f:
        return Store(target), {(o["path"], o.get("attribute")): o for o in json.load(f)["objects"]}


def test_values_of_each_type(folder):
    nan = np.array([0x7FF8000000000001], "u8").view("f8")[0]
    given = {
        "int": (np.int32(-5), -5),
        "big": (np.uint64(2**64 - 1), 2**64 - 1),
        "float": (np.float32(0.1), float(np.float32(0.1))),
        "one": (np.array([1.5]), [1.5]),
        "matrix": (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        "nan": (np.nan, "NaN"),
        "payload": (nan, "0x7ff8000000000001"),
        "infinities": (np.array([np.inf, -np.inf]), ["Infinity", "-Infinity"]),
        "bool": (np.bool_(True), True),
        "complex": (np.complex128(1 - 2j), [1.0, -2.0]),
        "text": ("größe", "größe"),
        "texts": (np.array(["a", "b"], dtype=h5py.string_dtype()), ["a", "b"]),
        "bytes": (np.bytes_(b"caf\xe9"), {"base64": base64.b64encode(b"caf\xe9").decode()}),
        "null": (h5py.Empty("f8"), None),
        "opaque": (np.void(b"\0\1"), {"base64": "AAE="}),
        "nothing": (np.zeros((2, 0)), [[], []]),
        "record": (np.array((1, 2.5), [("a", "i4"), ("b", "f8")]), {"a": 1, "b": 2.5}),
    }

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


def test_types_that_json_does_not_tell(folder):
    """Types are under zarrbits.attribute_types, by the name in the store; those that `export` makes of the value are not."""
    colours = h5py.enum_dtype({"RED": 1, "BLUE": -2}, "i2")

    def fill(f):
        d = f.create_dataset("d", data=np.zeros(3, "f4"))
        for at in f, d, f.create_group("g"):
            at.attrs.create("colour", 1, dtype=colours)
            at.attrs.create("colours", [1, -2], dtype=colours)
            opaque = h5py.h5t.create(h5py.h5t.OPAQUE, 3)
            opaque.set_tag(b"a tag")
            h5py.h5a.create(at.id, b"opaque", opaque, h5py.h5s.create(h5py.h5s.SCALAR)).write(np.array(b"abc", "V3"), opaque)
            at.attrs["path"] = d.ref
            at.attrs["region"] = d.regionref[1:]
            at.attrs["path_as_text"] = "/d"
            vlen = np.empty(1, object)
            vlen[0] = np.array([1, 2], "i4")
            at.attrs.create("vlen", vlen, dtype=h5py.vlen_dtype("i4"))
            at.attrs["complex"] = np.complex64(1)
            at.attrs["record"] = np.array((1, 2.5), [("a", "i4"), ("b", "f8")])
            at.attrs.create("coloured", np.array((1, 1), [("a", "i4"), ("c", colours)]))
            at.attrs["nan"] = np.float32("nan")
            at.attrs["nan_as_text"] = "NaN"
            at.attrs["null"] = h5py.Empty("S5")
            at.attrs["empty"] = np.zeros(0, ">i8")
            at.attrs["bool"], at.attrs["int"], at.attrs["float"], at.attrs["texts"] = np.bool_(True), 7, [1.5, 2], ["a", "b"]
            at.attrs["bytes"] = np.bytes_(b"\xff")
            at.attrs["zarrbits"] = np.void(b"mine")
        named = h5py.h5t.py_create(np.dtype("i4"))
        named.commit(f.id, b"named")
        f["named"].attrs["path"] = f.ref

    store, _ = made(folder, fill)
    enum = {"class": "enum", "base": "int16", "members": {"RED": 1, "BLUE": -2}}
    wanted = {
        "colour": enum,
        "colours": enum,
        "opaque": {"class": "opaque", "length": 3, "tag": "a tag"},
        "path": {"class": "object_reference"},
        "region": {"class": "region_reference"},
        "vlen": {"class": "sequence", "base": "int32"},
        "complex": "complex64",
        "coloured": {"class": "compound", "fields": [{"name": "a", "type": "int32"}, {"name": "c", "type": enum}]},
        "nan": "float32",
        "record": {"class": "compound", "fields": [{"name": "a", "type": "int32"}, {"name": "b", "type": "float64"}]},
        "bytes": {"class": "string", "length": 1, "padding": "null"},
        "null": {"class": "string", "length": 5, "padding": "null"},
        "empty": {"class": "int64", "endian": "big"},
        "zarrbits_": {"class": "opaque", "length": 4, "tag": ""},
    }
    for node in "", "d", "g":
        attributes = store.attributes(node)
        assert store.notes(node)["attribute_types"] == wanted, store.notes(node)
        assert attributes["path"] == attributes["path_as_text"] == "/d" and attributes["opaque"] == {"base64": "YWJj"}
    assert store.notes("named") == {"attribute_types": {"path": {"class": "object_reference"}}, "datatype": "int32"}


def test_nothing_is_noted_of_plain_attributes(folder):
    def fill(f):
        f.attrs["a"], f.attrs["b"], f.attrs["c"] = 1, 2.5, "text"
        f["d"] = np.zeros(3)
        f["d"].attrs["_FillValue"] = np.float64(-1)

    store, _ = made(folder, fill)
    assert not store.notes() and not store.notes("d")


def test_user_block(folder):
    """The user block is kept as bytes; one that is too large is reported as a loss."""
    source, target, report = (os.path.join(folder, n) for n in ("in.h5", "out.zarr", "r.json"))

    def entry(*options, status=0, top=""):
        with h5py.File(source, "w", userblock_size=1 << 22) as f:
            f["g/d"] = [1, 2]
        with open(source, "r+b") as f:
            f.write(block)
        convert(source + top, target, "--overwrite", "--report", report, "-q", *options, status=status)
        with open(report, encoding="utf-8") as f:
            return [o for o in json.load(f)["objects"] if o["kind"] == "user_block"]

    block = bytes(range(256)) * 100
    assert entry() == [{"path": "/", "kind": "user_block", "outcome": "mapped"}]
    kept = base64.b64decode(Store(target).notes()["user_block"]["base64"])
    assert kept == block.ljust(1 << 22, b"\0")
    [lost] = entry("--memory", "16M", status=3)
    assert lost["outcome"] == "skipped" and "4.0 MiB" in lost["reason"], lost
    assert not Store(target).notes()
    [other] = entry(top=":/g")
    assert other["selected"] is False
    assert "user_block" not in Store(target).notes()


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
    assert store.notes("f")["attribute_values"] == {"_FillValue": [-999.0]} and store.notes("i")["attribute_values"] == {
        "_FillValue": [-999]
    }
    assert store.attributes("f")["missing_value"] == [-999.0]
    assert "_FillValue" not in store.attributes("s") and store.notes("s")["attribute_values"] == {"_FillValue": ""}
    assert "zarrbits.attribute_values" in report["/s", "_FillValue"]["reason"]


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

    store, _ = made(folder, fill, "--convention", "none")  # a file with scales is netCDF, which has a dimension twice
    names = store.meta("x")["dimension_names"]
    assert names[:2] == ["time", "lat"] and names[3] == "level" and len(set(names)) == 4, names
    assert store.meta("time")["dimension_names"] == ["time"]
    assert "CLASS" not in store.attributes("time") and "REFERENCE_LIST" not in store.attributes("time")
    assert "DIMENSION_LIST" not in store.attributes("x")
    assert store.attributes("table")["CLASS"] == "TABLE"  # not a scale's: the user's own


def test_attributes_keep_the_order_in_which_they_were_made(folder):
    with h5py.File(f"{folder}/in.h5", "w") as f:
        for name, track in (("tracked", True), ("not", False)):
            g = f.create_group(name, track_order=track)
            d = f.create_dataset(f"{name}_array", data=1, track_order=track)
            for key in ("z", "a", "m"):
                g.attrs[key] = d.attrs[key] = 1
    convert(f"{folder}/in.h5", f"{folder}/out.zarr", "--quiet")
    store = Store(f"{folder}/out.zarr")
    for node in ("tracked", "tracked_array"):
        assert list(store.attributes(node)) == ["z", "a", "m"]
    assert list(store.attributes("not")) == ["a", "m", "z"]


def test_an_attribute_called_as_our_own_key_survives(folder):
    def fill(f):
        f.attrs["zarrbits"] = "mine"
        f["soft"] = h5py.SoftLink("/nowhere")

    store, report = made(folder, fill)
    assert store.attributes()[report["/", "zarrbits"]["zarr_name"]] == "mine"
    assert store.notes()["links"]["soft"] == {"kind": "soft", "target": "/nowhere"}


def test_attributes_of_named_types_are_kept(folder):
    def fill(f):
        f["t"] = np.dtype("i4")
        f["t"].attrs["unit"] = "m"

    store, report = made(folder, fill)
    assert store.attributes("t")["unit"] == "m" and store.notes()["named_types"]["t"] == "int32"
    assert report["/t", None]["kind"] == "datatype"
