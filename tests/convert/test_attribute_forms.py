# SPDX-License-Identifier: BSL-1.0
"""Attributes and names in the form that the readers of a community expect, and what the notes keep of the form in HDF5.
tests/interop asks those readers."""

import json
import math

import h5py
import numpy as np

from harness import convert, run
from store import Store
from test_conventions import to_store

PAYLOAD = np.array(0xFFC00001, "u4").view("f4")
MARKS = {
    "netcdf": {"_NCProperties": "version=2"},
    "nwb": {"nwb_version": "2.0", "neurodata_type": "NWBFile"},
    "anndata": {"encoding-type": "anndata"},
    "nexus": {"NX_class": "NXroot"},
    "pytables": {"PYTABLES_FORMAT_VERSION": "2.1"},
}


class PythonStore(Store):
    """Reads NaN and Infinity, as zarr-python does."""

    def meta(self, node):
        with open(f"{self.path}/{node}/zarr.json", encoding="utf-8") as f:
            return json.load(f)


def made(folder, fill, convention=None, *options):
    source = f"{folder}/in.h5"
    with h5py.File(source, "w") as f:
        f.attrs.update(MARKS.get(convention, {}))
        fill(f)
    _, report = to_store(folder, source, *options)
    assert report["convention"] == (convention or "none")
    run("verify", source, f"{folder}/out.zarr")
    return PythonStore(f"{folder}/out.zarr"), {(o["path"], o.get("attribute")): o for o in report["objects"]}


def empty_texts(f):
    d = f.create_dataset("d", data=np.zeros(2))
    d.attrs["coordinates"] = h5py.Empty("S1")  # as libnetcdf writes nc_put_att_text(.., 0, "")
    d.attrs["strings"] = h5py.Empty(h5py.string_dtype())
    d.attrs["numbers"] = h5py.Empty("f4")
    d.attrs["list"] = np.zeros(0, "i4")


def test_attributes_without_a_value(folder):
    store, _ = made(folder, empty_texts, "netcdf")
    assert store.attributes("d") == {"coordinates": "", "strings": [], "numbers": [], "list": []}  # as netCDF4 gives them
    assert store.notes("d")["attribute_values"] == {"coordinates": None, "strings": None, "numbers": None}
    store, _ = made(folder, empty_texts)
    assert store.attributes("d") == {"coordinates": None, "strings": None, "numbers": None, "list": []}


def test_text_that_is_not_utf8(folder):
    def fill(f):
        f.attrs["scalar"] = np.bytes_(b"\xb5g m-3")
        f.attrs["list"] = np.array([b"\xb5g", b"m"], "S2")
        f.attrs["one"] = np.array([b"\xe2\x82("], "S3")
        f.attrs["nul"] = np.array(b"a\0b", "S4")
        f.attrs["good"] = "µg"
        f["d"] = [1, 2]

    store, _ = made(folder, fill, "netcdf")
    have = store.attributes()
    assert (
        have["scalar"] == "\ufffdg m-3" and have["list"] == ["\ufffdg", "m"] and have["one"] == "\ufffd(" and have["good"] == "µg"
    )
    assert have["nul"] == "ab"
    kept = store.notes()["attribute_values"]
    assert (
        kept["scalar"] == {"base64": "tWcgbS0z"}
        and kept["list"] == [{"base64": "tWc="}, "m"]
        and kept["nul"] == "a\0b"
        and "good" not in kept
    )
    store, _ = made(folder, fill)
    assert store.attributes()["scalar"] == {"base64": "tWcgbS0z"}


def test_nan_and_infinities(folder):
    def fill(f):
        f.attrs["nan"], f.attrs["both"] = np.nan, np.array([1.5, -np.inf])
        f.attrs["payload"], f.attrs["word"] = PAYLOAD, "NaN"
        f.attrs["complex"] = np.complex64(complex(np.inf, 1))
        f["d"] = [1, 2]

    for convention in "netcdf", "nwb", "anndata":  # zarr-python reads and writes these words
        for options in [], ["--consolidate"]:
            store, _ = made(folder, fill, convention, *options)
            have = store.attributes()
            assert (
                math.isnan(have["nan"])
                and have["both"] == [1.5, -math.inf]
                and math.isnan(have["payload"])
                and have["word"] == "NaN"
            )
            assert have["complex"] == [math.inf, 1.0] and store.notes()["attribute_values"]["payload"] == "0xffc00001"
            assert "NaN," in open(f"{folder}/out.zarr/zarr.json").read()
    for convention in "nexus", "pytables", None:  # any reader, so strict JSON
        made(folder, fill, convention)
        have = Store(f"{folder}/out.zarr").attributes()
        assert (have["nan"], have["both"], have["payload"]) == ("NaN", [1.5, "-Infinity"], "0xffc00001")


def test_attributes_that_netcdf_cannot_have_are_notes(folder):
    pair = np.array((1, 2.5), [("a", "i4"), ("b", "f8")])

    def fill(f):
        d = f.create_dataset("d", data=np.zeros(2))
        d.attrs["pair"], d.attrs["opaque"], d.attrs["n"] = pair, np.void(b"ab"), 1

    store, report = made(folder, fill, "netcdf")
    assert store.attributes("d") == {"n": 1}
    # the notes also say that the number is not a list of one, as netCDF-C has numbers
    assert store.notes("d")["attribute_values"] == {"pair": {"a": 1, "b": 2.5}, "opaque": {"base64": "YWI="}, "n": 1}
    assert "zarrbits.attribute_values" in report["/d", "pair"]["reason"]
    store, _ = made(folder, fill)
    assert store.attributes("d")["pair"] == {"a": 1, "b": 2.5}


def test_notes_are_where_readers_do_not_see_them(folder):
    def fill(f):
        f.create_dataset("d", data=np.zeros(3), maxshape=(None,))
        f["e"] = np.array([1, 2], h5py.enum_dtype({"A": 1, "B": 2}, "i1"))
        f["t"] = np.dtype("i4")
        f["soft"] = h5py.SoftLink("/nowhere")

    store, _ = made(folder, fill)
    assert store.meta("d")["zarrbits"] == {"must_understand": False, "maxshape": [None]} and store.attributes("d") == {}
    assert store.notes("e") == {"enum": {"A": 1, "B": 2}} and store.attributes("e") == {}
    assert list(store.attributes()) == ["_nc_zarrbits"] and set(store.notes()) == {"links", "named_types"}
    store, _ = made(folder, fill, None, "--convention", "none")
    assert store.attributes("d") == {"zarrbits": {"maxshape": [None]}} and list(store.attributes()) == ["zarrbits"]


def test_names(folder):
    names = ["% mito", "50%", "q%", "a%20b", "a%2Fb", "%41", "%", "__x", "%5F_y", "__y"]

    def fill(f):
        for i, name in enumerate(names):
            f[f"__g/{name}"] = np.int64(i)
        f["__g/a\\b"] = np.int64(-1)
        f["__g/a%5Cb"] = np.int64(-2)
        f.create_dataset("pairs", data=np.array([(1, 2, "x")], [("a/b", "i8"), ("a%2Fb", "i8"), ("50%", h5py.string_dtype())]))

    for convention in "netcdf", "anndata", "nwb", "nexus", None:
        store, _ = made(folder, fill, convention)
        taken = convention in ("netcdf", "anndata", "nwb")  # zarr-python's; Zarr v3 reserves the prefix
        group = "__g" if taken else "%5F_g"
        for i, name in enumerate(names):
            if taken or not name.startswith("__") and name != "%5F_y":
                assert store.read(f"{group}/{name}") == i, name
        noted = store.notes(group)["names"]
        stored = {name: next((s for s, n in noted.items() if n == name), name) for name in [*names, "a\\b", "a%5Cb"]}
        assert len(set(stored.values())) == len(names) + 2 and not any("\\" in s for s in stored.values())
        assert store.read(f"{group}/{stored['a' + chr(92) + 'b']}") == -1 and store.read(f"{group}/{stored['a%5Cb']}") == -2
        if convention not in ("anndata", "nwb"):
            fields = {n: s for s, n in store.notes("pairs")["names"].items()}
            assert store.read(f"pairs/{fields['a/b']}") == [1] and store.read(f"pairs/{fields.get('a%2Fb', 'a%2Fb')}") == [2]
            assert store.read("pairs/50%").tolist() == ["x"]
        listed = run("inspect", store.path).stdout
        assert "% mito" in listed and "%41" in listed


def recognised(folder, fill):
    with h5py.File(f"{folder}/in.h5", "w") as f:
        fill(f)
    done = convert(f"{folder}/in.h5", f"{folder}/out.zarr", "--overwrite", "--report", f"{folder}/r.json")
    plan = run("plan", f"{folder}/in.h5")
    with open(f"{folder}/r.json") as f:
        convention = json.load(f)["convention"]
    assert (f"convention {convention}" in plan.stdout) == (convention != "none")
    assert ("--convention netcdf" in done.stderr) == ("--convention netcdf" in plan.stderr)
    return convention, "--convention netcdf" in done.stderr


def test_files_that_are_netcdf_in_all_but_the_mark(folder):
    def data(f):
        d = f.create_dataset("d", data=np.array([1, -1], "i1"))
        d.attrs["_Unsigned"] = np.array([b"true"])
        return d

    def scale(f):
        f["g/x"] = [1, 2]
        f["g/x"].make_scale()
        data(f).dims[0].attach_scale(f["g/x"])

    def early(f):  # of before netCDF 4.1: without _Netcdf4Dimid
        x = f.create_dataset("x", (2,), ">f4")
        x.make_scale("This is a netCDF dimension but not a netCDF variable         2")
        data(f).dims[0].attach_scale(x)

    def group(name):
        return lambda f: (f.create_group(name), data(f))

    def conventions(text):
        return lambda f: (f.attrs.__setitem__("Conventions", text), data(f))

    for fill in (
        scale,
        early,
        group("HDFEOS"),
        group("HDFEOS INFORMATION"),
        *map(conventions, ("CF-1.7", "CF-1.6, ACDD-1.3", "COARDS", "acdd 1.3", np.array([b"CF-1.0"]))),
    ):
        assert recognised(folder, fill) == ("netcdf", False)
        assert Store(f"{folder}/out.zarr").attributes("d")["_Unsigned"] == "true"
    assert not Store(f"{folder}/out.zarr").has("x")
    recognised(folder, early)
    assert not Store(f"{folder}/out.zarr").has("x") and Store(f"{folder}/out.zarr").meta("d")["dimension_names"] == ["x"]
    for fill in data, conventions("NCCSV-1.0"), conventions("CFD solver"), conventions(h5py.Empty("S1")):
        assert (fill is data or True) and recognised(folder, fill)[0] == "none"


def test_attributes_of_cf_in_a_file_without_marks(folder):
    for name, value in (
        ("scale_factor", 0.5),
        ("_FillValue", np.int8(-1)),
        ("standard_name", "air_temperature"),
        ("coordinates", "lat lon"),
    ):
        assert recognised(folder, lambda f: f.create_dataset("g/d", data=np.zeros(2, "i1")).attrs.__setitem__(name, value)) == (
            "none",
            True,
        )
    assert recognised(folder, lambda f: f.create_dataset("g/d", data=np.zeros(2)).attrs.__setitem__("units", "m")) == (
        "none",
        False,
    )
    said = convert(f"{folder}/in.h5", f"{folder}/out.zarr", "--overwrite", "--convention", "none").stderr
    assert "--convention" not in said
