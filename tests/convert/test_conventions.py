# SPDX-License-Identifier: BSL-1.0
"""What a convention changes in the store, checked without the community's software; tests/interop uses that.
ncgen makes the netCDF files."""

import json
import os
import subprocess
import zlib

import h5py
import numpy as np

from harness import convert, run
from store import Store

HIDDEN = "_nc_zarrbits"
REFERENCE = h5py.special_dtype(ref=h5py.Reference)
TEXT = h5py.string_dtype()


def ncgen(folder, cdl):
    with open(f"{folder}/in.cdl", "w") as f:
        f.write(cdl)
    subprocess.run(["ncgen", "-4", "-o", f"{folder}/in.nc", f"{folder}/in.cdl"], check=True)
    return f"{folder}/in.nc"


def to_store(folder, source, *options):
    out = os.path.join(folder, "out.zarr")
    convert(source, out, "--quiet", "--overwrite", "--report", f"{folder}/report.json", *options)
    with open(f"{folder}/report.json") as f:
        return Store(out), json.load(f)


def names(store, node):
    return store.meta(node)["dimension_names"]


def test_netcdf_dimensions(folder):
    store, report = to_store(
        folder,
        ncgen(
            folder,
            """netcdf t {
        dimensions: x = 3; y = 2; n = 4; t = UNLIMITED; unused = 7;
        variables: int x(y); float w(x, y); int twice(n, n); float c(n, x); float t(t, y); int few(t); few:_FillValue = -9;
                   double none(t, y);
        data: x = 4, 5; w = 1, 2, 3, 4, 5, 6; t = 1, 2, 3, 4, 5, 6; few = 8; }""",
        ),
    )
    assert report["convention"] == "netcdf"
    assert store.read("x").tolist() == [4, 5] and names(store, "x") == ["y"]  # HDF5 has it as _nc4_non_coord_x
    assert store.read("w").tolist() == [[1, 2], [3, 4], [5, 6]] and names(store, "w") == ["x", "y"]
    assert not any(store.has(d) for d in ("y", "n", "unused", "_nc4_non_coord_x"))
    assert names(store, "twice") == ["n", "n"]
    assert names(store, "t") == ["t", "y"]  # a coordinate variable of two dimensions
    assert store.read("few").tolist() == [8, -9, -9] and store.meta("none")["shape"] == [3, 2]
    notes = store.notes()
    assert notes["convention"] == "netcdf" and notes["names"] == {"x": "_nc4_non_coord_x"}
    assert {k: v["length"] for k, v in notes["dimensions"].items()} == {"x": 3, "y": 2, "n": 4, "unused": 7}
    kept = [o for o in report["objects"] if o["path"] == "/unused" and o["kind"] == "dataset"]
    assert kept[0]["outcome"] == "mapped" and "zarrbits.dimensions" in kept[0]["reason"]


def test_netcdf_attributes_and_characters(folder):
    source = ncgen(
        folder,
        """netcdf t {
        dimensions: s = 2; len = 3; t = UNLIMITED;
        variables: char name(s, len); char one(s); int v(t); v:_FillValue = -1; v:many = 1, 2; v:scale = 2.5; string v:units = "m";
                   v:missing_value = -1;
        :title = "t"; string :list = "a", "b";
        data: name = "ab", "cde"; one = "xy"; v = 1, 2; }""",  # noqa: E501
    )
    store, _ = to_store(folder, source)
    assert store.attributes("v") == {"_FillValue": -1, "many": [1, 2], "scale": 2.5, "units": "m", "missing_value": -1}
    assert {k: v for k, v in store.attributes().items() if k != HIDDEN} == {"title": "t", "list": ["a", "b"]}
    field = store.meta("v")["zarrbits"]
    assert field["must_understand"] is False and field["maxshape"] == [None]
    m = store.meta("name")
    assert m["data_type"] == {"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}} and m["shape"] == [2, 3]
    assert store.chunk("name/c/0/0") == b"ab\0cde" and store.chunk("one/c/0") == b"xy"
    store, report = to_store(folder, source, "--convention", "none")
    assert report["convention"] == "none" and store.attributes("v")["units"] == ["m"] and "zarrbits" in store.attributes("v")
    assert store.meta("name")["data_type"] == "string"


def test_netcdf_fill_values_of_text(folder):
    store, _ = to_store(
        folder,
        ncgen(
            folder,
            """netcdf t {
        dimensions: n = 2;
        variables: char c(n); c:_FillValue = "x"; c:a = 1; c:b = 2; string s(n); string s:_FillValue = "-"; s:a = 1; s:b = 2;
        data: c = "yz"; s = "p", "q"; }""",
        ),
    )
    # xarray knows no such attribute for these arrays, and refuses to open a group that has one;
    # the fill value of the array says the same
    for name, fill in ("s", ["-"]), ("c", "x"):
        assert store.attributes(name) == {"a": 1, "b": 2} and store.notes(name)["attribute_values"] == {
            "_FillValue": fill,
            "_Netcdf4Coordinates": [0],
        }
    assert store.meta("s")["fill_value"] == "-"
    run("verify", f"{folder}/in.nc", f"{folder}/out.zarr")


def test_records_that_a_partial_chunk_does_not_have_are_fill_value(folder):
    """HDF5 never writes the fill value into this chunk, whose last two records are anything; each way copies chunks."""
    for profile, deflate, shuffle in (("portable", False, False), ("portable", True, False), ("native", True, True)):
        source = f"{folder}/in.nc"
        with h5py.File(source, "w") as f:
            f.attrs["_NCProperties"] = "version=2"
            scale = f.create_dataset("t", (7,), "f4", maxshape=(None,))
            scale.make_scale("This is a netCDF dimension but not a netCDF variable         7")
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk((4,))
            properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            properties.set_fill_value(np.array(-5, "<i4"))
            if shuffle:
                properties.set_shuffle()
            if deflate:
                properties.set_deflate(4)
            space = h5py.h5s.create_simple((6,), (h5py.h5s.UNLIMITED,))
            v = h5py.Dataset(h5py.h5d.create(f.id, b"v", h5py.h5t.STD_I32LE, space, properties))
            v[:] = np.arange(100, 106)
            v.dims[0].attach_scale(scale)
        store, _ = to_store(folder, source, "--profile", profile)
        assert store.meta("v")["shape"] == [7] and store.meta("v")["fill_value"] == -5
        raw = store.chunk("v/c/1")
        for codec in reversed(store.meta("v")["codecs"]):
            if codec["name"] in ("gzip", "numcodecs.zlib"):
                raw = zlib.decompress(raw, 31 if codec["name"] == "gzip" else 15)
            elif codec["name"] == "numcodecs.shuffle":
                raw = np.frombuffer(raw, "u1").reshape(4, -1).T.tobytes()
        assert np.frombuffer(raw, "<i4")[:3].tolist() == [104, 105, -5], (profile, deflate, shuffle)


def test_anndata_records_are_structs(folder):
    source = f"{folder}/in.h5ad"
    with h5py.File(source, "w") as f:
        f.attrs["encoding-type"] = "anndata"
        record = np.array([("g1", 1.5, 3), ("gène", 2.5, 4)], dtype=[("name", TEXT), ("v", ">f4"), ("i", "i8")])
        f.create_dataset("uns/record", data=record)
    store, report = to_store(folder, source)
    assert report["convention"] == "anndata"
    m = store.meta("uns/record")
    fields = [(x["name"], x["data_type"]) for x in m["data_type"]["configuration"]["fields"]]
    assert fields == [
        ("name", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}}),
        ("v", "float32"),
        ("i", "int64"),
    ]
    values = np.frombuffer(store.chunk("uns/record/c/0"), [("name", "<U4"), ("v", "<f4"), ("i", "<i8")])
    assert values.tolist() == [("g1", 1.5, 3), ("gène", 2.5, 4)]
    assert m["fill_value"] == {"name": "", "v": 0.0, "i": 0}
    store, _ = to_store(folder, source, "--convention", "none")
    assert store.meta("uns/record")["node_type"] == "group" and store.read("uns/record/name").tolist() == ["g1", "gène"]


def test_strings_that_no_struct_can_hold_stay_a_group(folder):
    source = f"{folder}/in.h5ad"
    with h5py.File(source, "w") as f:
        f.attrs["encoding-type"] = "anndata"
        f.create_dataset("bytes", data=np.array([(b"\xff", 1)], dtype=[("name", TEXT), ("i", "i8")]))
    store, _ = to_store(folder, source)
    assert store.meta("bytes")["node_type"] == "group"


def test_nwb_references_and_links(folder):
    source = f"{folder}/in.nwb"
    with h5py.File(source, "w") as f:
        f.attrs["nwb_version"], f.attrs["neurodata_type"] = "2.0", "NWBFile"
        a = f.create_group("a")
        f["a/data"] = np.arange(3)
        f.create_dataset("table", data=np.array([(1, a.ref), (2, f["a/data"].ref)], dtype=[("n", "i4"), ("target", REFERENCE)]))
        f.create_dataset("references", data=np.array([a.ref, f["a/data"].ref], dtype=object), dtype=REFERENCE)
        f["table"].attrs["table"] = a.ref
        f["a/soft"] = h5py.SoftLink("/table")
        f["b/hard"] = f["a/data"]
        f["b/nowhere"] = h5py.SoftLink("/not there")
    store, report = to_store(folder, source)
    assert report["convention"] == "nwb"
    assert store.attributes("table")["table"] == {"_REFERENCE": {"source": ".", "path": "/a"}}
    assert store.attributes("table")["_REFERENCE_FIELDS"] == ["target"]
    values = np.frombuffer(store.chunk("table/c/0"), [("n", "<i4"), ("target", "<U7")])
    assert values.tolist() == [(1, "/a"), (2, "/a/data")]
    assert store.attributes("references")["_DTYPE"] == "object_reference"
    assert store.read("references").tolist() == ["/a", "/a/data"]
    assert store.attributes("a")["_LINKS"] == [{"source": ".", "path": "/table", "name": "soft"}]
    assert store.attributes("b")["_LINKS"] == [{"source": ".", "path": "/a/data", "name": "hard"}]


def test_matlab_complex_numbers(folder):
    """As MATLAB writes them: the extent reversed, the parts as a compound; in cells, below #refs#, too."""
    source = f"{folder}/in.mat"
    values = (np.arange(12.0) + 1j * np.arange(12)[::-1]).reshape(3, 4)
    with h5py.File(source, "w", userblock_size=512) as f:

        def parts(name, values, kind):
            v = np.empty(values.shape, [("real", kind), ("imag", kind)])
            v["real"], v["imag"] = values.real, values.imag
            f.create_dataset(name, data=v, chunks=values.shape, compression="gzip").attrs["MATLAB_class"] = np.bytes_("double")

        parts("z", values, "<f8")
        parts("#refs#/a", values, "<f4")
        parts("big", values, ">f8")
        parts("whole", values, "<i4")  # of integers Zarr has no complex numbers
        f["real"] = np.arange(3.0)
        f["real"].attrs["MATLAB_class"] = np.bytes_("double")
    with open(source, "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64")
    for options in [], ["--profile", "native"], ["--shard", "64K"]:
        store, report = to_store(folder, source, *options)
        assert report["convention"] == "matlab"
        assert (
            store.meta("z")["data_type"] == "complex128"
            and store.meta("%23refs%23/a" if store.has("%23refs%23/a") else "#refs#/a")["data_type"] == "complex64"
        )
        assert store.meta("whole")["data_type"]["name"] == "struct"
        run("verify", source, store.path)
    store, report = to_store(folder, source, "--compress", "none")
    assert (store.read("z") == values).all() and (store.read("big") == values).all()
    assert store.notes("z")["hdf5_type"] == {
        "class": "compound",
        "fields": [{"name": "real", "type": "float64"}, {"name": "imag", "type": "float64"}],
    }
    run("verify", source, store.path)
    # in HDF5's own terms, and where nothing says MATLAB, they are what they look like
    store, report = to_store(folder, source, "--convention", "none")
    assert report["convention"] == "none" and store.meta("z")["data_type"]["name"] == "struct"
    with h5py.File(f"{folder}/plain.h5", "w") as f:
        f["z"] = np.zeros(3, [("real", "<f8"), ("imag", "<f8")])
    store, report = to_store(folder, f"{folder}/plain.h5")
    assert report["convention"] == "none" and store.meta("z")["data_type"]["name"] == "struct"
    store, report = to_store(folder, f"{folder}/plain.h5", "--convention", "matlab")
    assert store.meta("z")["data_type"] == "complex128"


def test_nexus_and_pytables_are_known_by_their_marks(folder):
    with h5py.File(f"{folder}/in.nxs", "w") as f:
        entry = f.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        d = entry.create_dataset("instrument/detector/data", data=np.arange(6.0))
        d.attrs["target"] = "/entry/instrument/detector/data"
        entry["data/signal"] = h5py.SoftLink("/entry/instrument/detector/data")  # as most writers do
        entry["data/axis"] = d  # as napi does
    with h5py.File(f"{folder}/in.h5", "w") as f:
        f.attrs["PYTABLES_FORMAT_VERSION"] = np.bytes_("2.1")
        f["d"] = np.arange(6.0)
        f["link"] = h5py.SoftLink("/d")
    store, report = to_store(folder, f"{folder}/in.nxs")
    assert report["convention"] == "nexus" and report["links"]["copied"] == 2
    for name in "entry/data/signal", "entry/data/axis":
        assert (
            store.read(name).tolist() == [0, 1, 2, 3, 4, 5]
            and store.attributes(name)["target"] == "/entry/instrument/detector/data"
        )
    assert "convention nexus" in run("plan", f"{folder}/in.nxs").stdout
    store, report = to_store(folder, f"{folder}/in.h5")
    assert report["convention"] == "pytables" and store.read("link").tolist() == [0, 1, 2, 3, 4, 5]


def test_a_convention_is_one_of_the_plan(folder):
    source = ncgen(folder, "netcdf t { dimensions: x = 2; variables: int v(x); data: v = 1, 2; }")
    out = os.path.join(folder, "shares.zarr")
    for i in (0, 1):
        convert(source, out, "--quiet", "--partition", f"{i}/2")
    done = run("convert", source, out, "--resume", "--convention", "none", status=None)
    assert done.returncode == 1 and "was begun with different options" in done.stderr, done.stderr
    run("finalize", source, out, "--quiet")
    assert names(Store(out), "v") == ["x"] and not Store(out).has("x")


def test_a_damaged_list_of_dimensions_costs_their_names_alone(folder):
    source = f"{folder}/in.nc"
    with h5py.File(source, "w") as f:
        f.attrs["_NCProperties"] = "version=2"
        v = f.create_dataset("v", data=np.arange(6).reshape(2, 3))
        v.attrs["DIMENSION_LIST"] = "no list"
        v.attrs["_Netcdf4Coordinates"] = np.arange(1000)
        s = f.create_dataset("scale", data=np.float32(0))
        s.attrs["CLASS"], s.attrs["NAME"] = (
            np.bytes_("DIMENSION_SCALE"),
            np.bytes_("This is a netCDF dimension but not a netCDF variable"),
        )
    store, _ = to_store(folder, source)
    assert store.read("v").tolist() == [[0, 1, 2], [3, 4, 5]] and names(store, "v") == ["phony_dim_0", "phony_dim_1"]
    assert store.read("scale") == 0  # without an extent it is not a dimension
