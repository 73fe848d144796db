# SPDX-License-Identifier: BSL-1.0
"""What a file has besides values, after HDF5 or netCDF to Zarr and back: the order of objects, named types, types of attributes,
names as netCDF looks for them, links, and bytes beyond the edge of an array."""

import json
import os
import random
import re
import shutil
import subprocess
import unicodedata

import h5py
import numpy as np
import pytest

from harness import COMMAND, convert, execute, run, verify
from test_export import array, group

needs_netcdf = pytest.mark.skipif(not shutil.which("ncgen"), reason="netCDF's programs are not installed")
CDL = """netcdf s {
types:
  compound point { float x ; double y ; } ;
  byte enum cloud { Clear = 0, Cumulus = 1 } ;
dimensions: z = 2 ; a = 3 ; spare = UNLIMITED ;
variables:
  double z(z) ; point where(z) ; cloud sky(a) ; cloud sky:_FillValue = Clear ; float m(a, z) ; m:valid_range = 0., 1. ; int b(z) ;
  double a(a) ;
data: z = 1, 2 ; where = {1, 2}, {3, 4} ; sky = Clear, Cumulus, Clear ; m = 1, 2, 3, 4, 5, 6 ; b = 1, 2 ; a = 1, 2, 3 ;
group: second { variables: int y ; int x ; }
group: first { variables: int x ; }
}
"""


def there_and_back(source, folder, name):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, name)
    convert("-q", source, store)
    run("export", "-q", store, back)
    verify(source, store)
    verify(store, back)
    return back


def order(path, group="/"):
    with h5py.File(path) as f:
        opened = f[group]
        return sorted(opened, key=lambda n: opened.id.links.get_info(n.encode()).corder)


@pytest.fixture
def netcdf(folder):
    text, path = os.path.join(folder, "s.cdl"), os.path.join(folder, "s.nc")
    with open(text, "w", encoding="utf-8") as f:
        f.write(CDL)
    subprocess.run(["ncgen", "-4", "-o", path, text], check=True)
    return path


@needs_netcdf
@pytest.mark.parametrize("name", ["b.nc", "b.h5"])
def test_a_netcdf_file_comes_back_as_it_was(folder, netcdf, name):
    back = there_and_back(netcdf, folder, name)
    said = [subprocess.run(["ncdump", p], capture_output=True, text=True, check=True).stdout for p in (netcdf, back)]
    assert "spare = UNLIMITED" in said[0] and "double z(z)" in said[0]
    without_name = [re.sub(r"^netcdf \w+ ", "", text) for text in said]
    assert without_name[0] == without_name[1]  # types, order of variables and groups, types of attributes
    assert order(back) == order(netcdf) and order(back, "second") == ["y", "x"]
    with h5py.File(back) as f:
        assert all(f[v].id.get_type().committed() for v in ("where", "sky"))
        assert f["sky"].attrs.get_id("_FillValue").get_type().committed()


def test_an_order_of_creation_comes_back(folder):
    source, sorted_source = os.path.join(folder, "s.h5"), os.path.join(folder, "sorted.h5")
    names = ["b", "k", "a", "é", "z", "c"]
    with h5py.File(source, "w", track_order=True) as f:
        for n in names[:4]:
            f[n] = np.arange(3)
        f["z"] = h5py.SoftLink("/a")
        f.create_group("c", track_order=True)["x"] = 1
    with h5py.File(sorted_source, "w", track_order=True) as f:
        f["a"], f["b"] = 1, 2
    back = there_and_back(source, folder, "b.h5")
    assert order(back) == names
    root = json.loads(open(os.path.join(folder, "s.zarr", "zarr.json"), encoding="utf-8").read())
    assert root["attributes"]["_nc_zarrbits"]["order"] == names
    convert("-q", sorted_source, folder + "/sorted.zarr")
    assert "order" not in open(folder + "/sorted.zarr/zarr.json", encoding="utf-8").read()


def test_verify_notices_another_order(folder):
    for name, names in (("a.h5", "ba"), ("b.h5", "cab")):
        with h5py.File(os.path.join(folder, name), "w", track_order=True) as f:
            for n in names:
                f[n] = 1
    convert("-q", folder + "/a.h5", folder + "/a.zarr")
    found = verify(folder + "/b.h5", folder + "/a.zarr", status=1)
    assert "created in another order" in json.dumps(found)


def test_named_types_of_hdf5_are_used(folder):
    source = os.path.join(folder, "s.h5")
    with h5py.File(source, "w") as f:
        f["pair"] = np.dtype([("a", "i4"), ("b", "f8")])
        f.create_dataset("d", (3,), f["pair"])
        f["d"].attrs.create("one", np.zeros((), f["pair"].dtype), dtype=f["pair"])
        f["number"] = np.dtype("i4")
        f["plain"] = np.zeros(2, "i4")  # not of the type "number"
    with h5py.File(there_and_back(source, folder, "b.h5")) as f:
        assert f["d"].id.get_type().committed() and f["d"].attrs.get_id("one").get_type().committed()
        assert not f["plain"].id.get_type().committed()


def test_scales_of_other_forms_come_back(folder):
    source = os.path.join(folder, "s.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("y", data=np.zeros(3, "f4"))
        f.create_dataset("x", data=h5py.Empty("i4"))
        f["x"].make_scale("no values")
        f["y"].dims[0].attach_scale(f["x"])
        f["name"] = np.zeros((1, 3), "f4")
        f["name"].attrs["NAME"] = "mine"  # of a dataset that is not a scale
    with h5py.File(there_and_back(source, folder, "b.h5")) as f:
        assert f["y"].dims[0][0] == f["x"] and f["x"].attrs["CLASS"] == b"DIMENSION_SCALE"
        assert f["x"].attrs["NAME"] == b"no values" and f["name"].attrs["NAME"] == "mine"


def some_names():
    dice = random.Random(1)
    marks = [chr(c) for c in range(0x300, 0x35D)]
    letters = [chr(c) for c in [*range(0x61, 0x7B), *range(0xC0, 0x180), *range(0x1EA0, 0x1EFA), 0x212B, 0xAC01, 0x1112, 0x1161]]
    letters = [c for c in letters if unicodedata.category(c).startswith("L")]
    for i in range(200):
        name = "".join(dice.choice(letters if dice.random() < 0.6 else marks) for _ in range(6))
        yield f"n{i}" + unicodedata.normalize(dice.choice(["NFC", "NFD"]), name) + dice.choice(["", dice.choice(marks)])


def test_names_are_as_netcdf_looks_for_them(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    names = list(some_names())
    wanted = {unicodedata.normalize("NFC", n) for n in names}
    assert len(wanted) == len(names) and wanted != set(names)
    group(store, {n: 1 for n in names})
    for n in names[:40]:
        array(os.path.join(store, n), np.arange(2, dtype="i4"), (2,), dimension_names=["dim" + n])
    execute(COMMAND, "export", "-q", store, back)  # ncdump 4.9.0 does not find some of them, even in files of its own
    with h5py.File(back) as f:
        assert set(f.attrs) == wanted
        variables = {unicodedata.normalize("NFC", n) for n in names[:40]}
        assert set(f) == variables | {unicodedata.normalize("NFC", "dim" + n) for n in names[:40]}
    run("export", "-q", store, folder + "/b.h5", "--no-netcdf")
    with h5py.File(folder + "/b.h5") as f:
        assert set(f.attrs) == set(names) and set(f) == set(names[:40])


@needs_netcdf
def test_ncdump_finds_what_a_file_has(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    words = ["temp\u00e9rature", "\u1e9a\u00fc", "\ud55c\uae00", "\u212b"]
    group(store, {unicodedata.normalize("NFD", w): 1 for w in words})
    for w in words:
        name = unicodedata.normalize("NFD", w)
        array(os.path.join(store, name), np.arange(2, dtype="i4"), (2,), attributes={name: "a"}, dimension_names=["d" + name])
    said = run("export", "-q", store, back) and execute("ncdump", "-v", unicodedata.normalize("NFC", words[0]), back).stdout
    for w in words:
        name = unicodedata.normalize("NFC", w)
        assert f"int {name}(d{name})" in said and f'{name}:{name} = "a"' in said and f":{name} = 1LL" in said


def test_two_names_that_are_one_for_netcdf(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store, {"\u00e9": 1, "e\u0301": 2})
    array(store + "/\u00e9", np.arange(2, dtype="i4"), (2,))
    array(store + "/e\u0301", np.arange(3, dtype="i4"), (3,))
    said = json.loads(run("export", "-q", "--json", store, back, status=3).stdout)
    assert [(o["kind"], o["outcome"]) for o in said["objects"] if o["outcome"] == "skipped"] == [
        ("dataset", "skipped"),
        ("attribute", "skipped"),
    ]


def test_bytes_beyond_the_edge_are_not_values(folder):
    source = os.path.join(folder, "s.h5")
    dtype = np.dtype([("a", "<i4"), ("b", "?")])
    values = np.zeros(6, dtype)
    values["a"] = range(6)
    raw = values.view("u1").reshape(6, 5)
    raw[1, 4], raw[4, 4] = 1, 247
    with h5py.File(source, "w") as f:
        d = f.create_dataset("beyond", (3,), dtype, chunks=(6,), maxshape=(None,))
        d.id.write_direct_chunk((0,), raw.tobytes())
        d = f.create_dataset("within", (5,), dtype, chunks=(6,), maxshape=(None,))  # h5py and numpy take it for true, too
        d.id.write_direct_chunk((0,), raw.tobytes())
    with h5py.File(there_and_back(source, folder, "b.h5")) as f:
        assert f["beyond"][:].tolist() == [(0, False), (1, True), (2, False)]
        assert [bool(v) for v in f["within"]["b"]] == [False, True, False, False, True]


@pytest.mark.parametrize("name", ["b.h5", "there/b.h5", "there/b.nc"])
def test_a_link_that_would_lead_nowhere_is_a_copy(folder, name):
    os.mkdir(folder + "/there")
    with h5py.File(folder + "/other.h5", "w") as f:
        f["group/x"] = np.arange(4)
    with h5py.File(folder + "/s.h5", "w") as f:
        f["linked"] = h5py.ExternalLink("other.h5", "/group")
        f["gone"] = h5py.ExternalLink("nowhere.h5", "/")
    store, back = folder + "/s.zarr", os.path.join(folder, name)
    convert("-q", folder + "/s.h5", store, status=(0, 3))
    run("export", "-q", store, back, status=3 if name.endswith(".nc") else 0)
    with h5py.File(back) as f:
        assert isinstance(f.get("linked", getlink=True), h5py.ExternalLink) == (name == "b.h5")
        assert f["linked/x"][:].tolist() == [0, 1, 2, 3]
        assert isinstance(f.get("gone", getlink=True), h5py.ExternalLink) == name.endswith(".h5")
    if name == "there/b.h5":
        report = verify(store, back, status=(0, 1, 3))
        assert all("gone" in json.dumps(f) for f in report["findings"]), report
