# SPDX-License-Identifier: BSL-1.0
"""What a store becomes for netCDF's own programs: ncdump is the judge here, tests/interop/test_export_netcdf.py has the others.
harness.run() opens everything that the tests export to .nc with it."""

import itertools
import json
import os
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from harness import convert, refused, run, verify
from test_export import array, group

pytestmark = pytest.mark.skipif(not shutil.which("ncdump"), reason="netCDF's programs are not installed")
BYTES = [{"name": "bytes"}]
LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]
TEXT = """netcdf s {
dimensions: time = UNLIMITED ; lat = 3 ; lon = 4 ; bnds = 2 ; depth = 6 ;
variables:
  double time(time) ; time:units = "days since 2000-01-01" ;
  float lat(lat) ; lat:bounds = "lat_bnds" ;
  float lon(lon) ;
  float lat_bnds(lat, bnds) ;
  float t(time, lat, lon) ; t:_FillValue = -9.f ;
  int depth(depth, bnds) ;
  short q(depth, time) ;
data:
  time = 1, 2, 3, 4, 5 ; lat = 1, 2, 3 ; lon = 1, 2, 3, 4 ; lat_bnds = 1, 2, 3, 4, 5, 6 ;
  t = %s ; depth = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ; q = %s ;
group: g {
  variables: double u(time, lon) ; double w(lat) ;
  data: u = %s ; w = 7, 8, 9 ;
}
}
"""


def numbers(n):
    return ", ".join(map(str, range(n)))


@pytest.fixture
def source(folder):
    text, path = os.path.join(folder, "s.cdl"), os.path.join(folder, "s.nc")
    with open(text, "w", encoding="utf-8") as f:
        # of records, the last dimension
        rows = ", ".join("{" + ", ".join(map(str, range(i, i + 5))) + "}" for i in range(0, 30, 5))
        f.write(TEXT % (numbers(60), rows, numbers(20)))
    subprocess.run(["ncgen", "-4", "-o", path, text], check=True)
    return path


def dump(path, *options):
    done = subprocess.run(["ncdump", *options, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shape_and_values(path, names, within=""):
    """Of variables, by ncdump: "t(time, lat, lon)", the lengths of these dimensions, and the values."""
    text = dump(path, "-v", ",".join(within + n for n in names))
    lengths = {m[1]: m[2] for m in re.finditer(r"(\w+) = (?:UNLIMITED ; // \()?(\d+)", text.split("variables:")[0])}
    seen = {}
    for name in names:
        declared = re.findall(rf"\w+ ({name}(?:\([^)]*\))?) ;", text)
        values = re.findall(rf"\n *{name} =\s*([^;]*);", text)
        seen[name] = (declared, [[lengths.get(d) for d in re.findall(r"[\w]+", w)[1:]] for w in declared], values)
    return seen


VARIABLES = ["time", "lat", "lon", "lat_bnds", "t", "depth", "q"]


def test_every_part_of_a_netcdf_store_is_a_netcdf_file(folder, source):
    """_Netcdf4Dimid and _Netcdf4Coordinates number the dimensions of a whole file, of which a part has some."""
    store, back, whole = (os.path.join(folder, n) for n in ("x.zarr", "x.nc", "whole.zarr"))
    wanted = shape_and_values(source, VARIABLES)
    convert("-q", source, whole)
    parts = list(itertools.chain.from_iterable(itertools.combinations(VARIABLES, k) for k in range(1, 7)))
    for part in parts if "ZARRBITS_CASES" in os.environ else parts[::7]:
        chosen = [word for name in part for word in ("--include", "/" + name)]
        convert("-q", "--overwrite", *chosen, source, store)
        run("export", "-q", "--overwrite", store, back)
        seen = shape_and_values(back, part)
        assert seen == {name: wanted[name] for name in part}, part
        run("export", "-q", "--overwrite", *chosen, whole, back)  # the same from the whole store
        assert shape_and_values(back, part) == seen, part


def test_a_group_of_a_netcdf_store(folder, source):
    store, back = os.path.join(folder, "x.zarr"), os.path.join(folder, "x.nc")
    convert("-q", source + ":/g", store)
    run("export", "-q", store, back)
    first = dump(back)
    assert "double u(time, lon)" in first and "double w(lat)" in first and "w = 7, 8, 9" in first
    convert("-q", "--overwrite", source, store)
    run("export", "-q", "--overwrite", store + ":/g", back)
    assert dump(back) == first
    assert "/none" in refused("export", "--overwrite", store + ":/none", back)


def test_a_whole_netcdf_file_keeps_its_numbers(folder, source):
    store, back = os.path.join(folder, "x.zarr"), os.path.join(folder, "x.nc")
    convert("-q", source, store)
    run("export", "-q", store, back)
    with h5py.File(source) as a, h5py.File(back) as b:
        for name in [*VARIABLES, "bnds"]:
            for attribute in ("_Netcdf4Dimid", "_Netcdf4Coordinates"):
                assert np.array_equal(a[name].attrs.get(attribute), b[name].attrs.get(attribute)), (name, attribute)
    lines = [line for line in dump(source).splitlines()[1:] if line]  # in the order of their names
    assert sorted(line for line in dump(back).splitlines()[1:] if line) == sorted(lines)


def test_a_store_whose_root_another_program_wrote(folder, source):
    """xarray's mode="a" writes the root's attributes anew, without the notes."""
    store, back = os.path.join(folder, "x.zarr"), os.path.join(folder, "x.nc")
    convert("-q", source, store)
    group(store, {"title": "T"})
    array(store + "/new", np.arange(12.0).reshape(3, 4), (3, 4), dimension_names=["lat", "lon"])
    run("export", "-q", store, back)
    seen = shape_and_values(back, [*VARIABLES, "new"])
    assert seen.pop("new")[0] == ["new(lat, lon)"] and seen == shape_and_values(source, VARIABLES)


def text_array(path, values, size, chunks=True, fill="", **more):
    array(
        path,
        np.array(values, f"S{size}"),
        (2,),
        BYTES,
        data_type={"name": "null_terminated_bytes", "configuration": {"length_bytes": size}},
        fill=fill,
        chunks=chunks,
        **more,
    )


def test_texts_of_fixed_length_are_characters(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    text_array(store + "/s", [b"abcd", b"d", b"\xc3\xa9"], 4, dimension_names=["x"])
    text_array(store + "/one", [b"a", b"\xe9", b""], 1, dimension_names=["x"])
    text_array(store + "/filled", [b"", b"", b""], 3, chunks=False, fill="YWI=", dimension_names=["x"])  # "ab"
    run("export", "-q", store, back)
    said = dump(back)
    assert "char s(x, string4)" in said and "char one(x)" in said and "char filled(x, string3)" in said
    assert re.search(r's =\s*"abcd",\s*"d",\s*"\\303\\251"', said) and re.search(r'filled =\s*"ab",\s*"ab",\s*"ab"', said)
    with h5py.File(back) as f:
        assert f["s"][()].tobytes() == b"abcdd\0\0\0\xc3\xa9\0\0" and f["filled"].shape == (3, 3)


def test_types_that_netcdf_has_as_named_types_or_as_others(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    fields = [["n", "int16"], ["flag", "bool"], ["z", "complex64"], ["half", "float16"]]
    record = np.zeros(2, [("n", "<i2"), ("flag", "?"), ("z", "<c8"), ("half", "<f2")])
    record["n"], record["flag"], record["z"], record["half"] = [1, 2], [True, False], [1 + 2j, 3j], [0.5, -1]
    struct = {"name": "structured", "configuration": {"fields": fields}}
    names = {"dimension_names": ["x"]}
    array(store + "/record", record, (2,), LITTLE, data_type=struct, fill="AAAAAAAAAAAAAAAAAA==", **names)
    array(store + "/z", np.array([1 + 2j, 3j]), (2,), fill=[0.0, 0.0], **names)
    array(store + "/half", np.array([0.5, np.inf], "f2"), (2,), attributes={"_FillValue": 0.5, "valid_min": -1.0}, **names)
    raw = {"name": "raw_bytes", "configuration": {"length_bytes": 3}}
    array(store + "/raw", np.array([b"abc", b"\xff\0\1"], "V3"), (2,), BYTES, data_type=raw, fill="AAAA", **names)
    array(store + "/yes", np.array([True, False]), (2,), BYTES, fill=False, **names)
    run("export", "-q", store, back)
    said = dump(back)
    assert "compound record_t" in said and re.search(r"record =\s*\{1, 1, \{1, 2\}, 0.5\}, \{2, 0, \{0, 3\}, -1\}", said), said
    assert "compound _PFNC_DOUBLE_COMPLEX_TYPE" in said and re.search(r"z = \{1, 2\}, \{0, 3\}", said)
    assert "float half(x)" in said and "half:_FillValue = 0.5f" in said and "half:valid_min = -1.f" in said
    assert re.search(r"half =\s*_, Infinityf", said)
    assert "opaque(3) raw_t" in said and re.search(r"raw = 0X616263, 0XFF0001", said)
    assert re.search(r"byte yes\(x\)", said) and 'yes:dtype = "bool"' in said and "yes = 1, 0" in said


def test_times_of_numpy_are_those_of_cf(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    for name, unit in (("time", "ms"), ("years", "Y")):
        kind = {"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": 1}}
        more = {"dimension_names": ["x"], "attributes": {"units": "UTC"} if name == "time" else {}}
        array(store + "/" + name, np.array([0, 86400000]), (2,), LITTLE, data_type=kind, fill="NaT", **more)
    kind = {"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 1}}
    array(store + "/span", np.array([1, 2]), (2,), LITTLE, data_type=kind, fill=0, dimension_names=["x"])
    errors = run("export", "-q", store, back, status=3).stderr
    assert 'attribute "units"' in errors and '"/years"' in errors and "CF does not have" in errors
    said = dump(back)
    assert 'time:units = "milliseconds since 1970-01-01"' in said and "time = 0, 86400000" in said
    assert 'span:units = "seconds"' in said and "span = 1, 2" in said and "years" not in said


def test_dimensions_that_netcdf_cannot_have_get_other_names(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    group(store + "/g")
    array(store + "/a", np.zeros((2, 3)), (2, 3), dimension_names=["x", None])
    array(store + "/b", np.zeros((2, 4)), (2, 4), dimension_names=["x", "g"])
    array(store + "/c", np.zeros((5,)), (5,), dimension_names=["x"])
    array(store + "/d", np.zeros((5,)), (5,), dimension_names=["x"])
    array(store + "/e", np.zeros((2,)), (2,), dimension_names=["a/b"])
    done = run("export", "-q", "--json", store, back, status=3)
    said = dump(back, "-h")
    for declared in ("a(x, a_dim_1)", "b(x, g_dim)", "c(x_5)", "d(x_5)", "e(e_dim_0)"):
        assert "double " + declared in said, declared
    told = {o["path"]: o["reason"] for o in json.loads(done.stdout)["objects"] if o.get("attribute") == "dimension_names"}
    assert sorted(told) == ["/c", "/d", "/e", "/g"] and '"x_5"' in told["/c"] and '"e_dim_0"' in told["/e"], told


def test_the_coordinate_decides_about_the_length(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    array(store + "/a", np.zeros((2,)), (2,), dimension_names=["x"])
    array(store + "/x", np.zeros((3,)), (3,), dimension_names=["x"])
    run("export", "-q", store, back, status=3)
    said = dump(back, "-h")
    assert "double a(x_2)" in said and "double x(x)" in said and "x = 3 ;" in said


def test_names_that_netcdf_keeps_for_itself(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    reserved = ["CLASS", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "NAME", "_Netcdf4Coordinates", "_NCProperties"]
    group(store, {name: "mine" for name in reserved})
    for name in ("x", "v"):
        more = {"attributes": {**{name: "mine" for name in reserved}, "units": "m", "a\nb": 1}, "dimension_names": ["x"]}
        array(store + "/" + name, np.arange(3.0), (3,), **more)
    array(store + "/tab\t", np.arange(3.0), (3,), dimension_names=["x"])
    errors = run("export", "-q", store, back, status=3).stderr
    assert errors.count("netCDF keeps this name for itself") == 3 * len(reserved) and errors.count("control characters") == 3
    said = dump(back)
    assert "double v(x)" in said and 'v:units = "m"' in said and "mine" not in said and "tab" not in said


def test_the_dimension_of_a_coordinate_that_is_left_out(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    kind = {"name": "numpy.datetime64", "configuration": {"unit": "Y", "scale_factor": 1}}
    array(store + "/x", np.array([1, 2]), (2,), LITTLE, data_type=kind, dimension_names=["x"])
    array(store + "/v", np.arange(2.0), (2,), dimension_names=["x"])
    run("export", "-q", store, back, status=3)
    assert "double v(x)" in dump(back)


def test_attributes_have_the_type_of_the_variable(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    flags = {"flag_values": [0, 1, 2], "valid_range": [-1, 127], "missing_value": -128, "valid_max": 200, "other": 1}
    array(store + "/flag", np.array([0, 1], "i1"), (2,), BYTES, attributes=flags, dimension_names=["x"])
    array(store + "/t", np.array([0, 1], "f4"), (2,), attributes={"valid_min": 0.1, "missing_value": -9999.0})
    run("export", "-q", store, back)
    said = dump(back, "-h")
    for line in (
        "flag_values = 0b, 1b, 2b",
        "valid_range = -1b, 127b",
        "missing_value = -128b",
        "valid_max = 200LL",
        "other = 1LL",
    ):
        assert "flag:" + line in said, line
    assert "t:valid_min = 0.1 ;" in said and "t:missing_value = -9999.f" in said


@pytest.mark.parametrize("name", ["b.h5", "b.nc"])
def test_a_fill_value_of_variable_length_is_written(folder, name):
    """libhdf5 reads no such fill value from a file that is open for reading only."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, name)
    group(store)
    more = {"chunks": False, "dimension_names": ["x"]}
    array(store + "/s", np.zeros(3), (2,), [{"name": "vlen-utf8"}], data_type="string", fill="none", **more)
    array(store + "/empty", np.zeros(3), (2,), [{"name": "vlen-utf8"}], data_type="string", fill="", **more)
    wide = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
    array(store + "/wide", np.zeros(3), (2,), LITTLE, data_type=wide, fill="é", **more)
    array(store + "/blank", np.zeros(3), (2,), LITTLE, data_type=wide, fill="", **more)
    array(store + "/bytes", np.zeros(3), (2,), [{"name": "vlen-bytes"}], data_type="variable_length_bytes", fill="AAE=", **more)
    run("export", "-q", store, back)
    with h5py.File(back) as f:
        assert [f[n].asstr()[()].tolist() for n in ("s", "empty", "wide", "blank")] == [
            ["none"] * 3,
            [""] * 3,
            ["é"] * 3,
            [""] * 3,
        ]
        assert [list(v) for v in f["bytes"][()]] == [[0, 1]] * 3
    if name.endswith(".nc"):
        assert 's = "none", "none", "none"' in dump(back, "-v", "s")


def test_nul_within_texts(folder):
    for name in ("b.h5", "b.nc"):
        store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, name)
        group(store, {"text": "a\0b"})
        text_array(store + "/s", [b"a\0b", b"c", b""], 3, dimension_names=["x"])
        run("export", "-q", store, back)
        with h5py.File(back) as f:
            assert f["s"][()].tobytes() == b"a\0bc\0\0\0\0\0" and f.attrs["text"] in (b"a\0b", "a\0b"), name


def test_patterns(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store)
    group(store + "/g")
    for name in ("a", "g/b", "g/c"):
        array(store + "/" + name, np.arange(3), (3,))
    run("export", "-q", "--include", "/g", "--exclude", "c", store, back)
    with h5py.File(back) as f:
        assert list(f) == ["g"] and list(f["g"]) == ["b"]
    assert "matches no path" in refused("export", "--overwrite", "--include", "/none", store, back)
    run("export", "-q", "--overwrite", store + ":/g", back)
    with h5py.File(back) as f:
        assert list(f) == ["b", "c"]


def test_a_target_in_the_store_is_refused(folder):
    store = os.path.join(folder, "s.zarr")
    group(store)
    assert "lies in the store" in refused("export", store, os.path.join(store, "o.h5"))
    assert os.listdir(store) == ["zarr.json"]


def test_all_dimensions_have_names_if_one_has(folder):
    """xarray does not open files in which some arrays have dimensions with names, and others have none."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    array(store + "/a", np.zeros((2, 3)), (2, 3), dimension_names=["x", "y"])
    array(store + "/b", np.zeros((2, 3)), (2, 3))
    run("export", "-q", store, back)
    said = dump(back, "-h")
    assert "double a(x, y)" in said and "double b(b_dim_0, b_dim_1)" in said
    run("verify", store, back)
    shutil.rmtree(store + "/a")
    run("export", "-q", "--overwrite", store, back)
    assert "double b(phony_dim_0, phony_dim_1)" in dump(back, "-h")


def test_no_dimension_hides_the_one_that_an_array_has(folder):
    """netCDF's programs look for the nearest dimension of a name."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    group(store + "/g")
    array(store + "/a", np.zeros(5), (5,), dimension_names=["x"])
    array(store + "/g/b", np.zeros(3), (3,), dimension_names=["x"])
    array(store + "/g/c", np.zeros(5), (5,), dimension_names=["x"])
    array(store + "/g/d", np.zeros(5), (5,), dimension_names=["y"])
    array(store + "/y", np.zeros(5), (5,), dimension_names=["y"])
    array(store + "/g/y", np.zeros(3), (3,), dimension_names=["y"])
    run("export", "-q", store, back, status=3)
    said = dump(back, "-h")
    for declared in ("a(x)", "b(x)", "c(x_5)", "d(y_5)", "y(y)"):
        assert "double " + declared in said, said
    run("verify", store, back)


def test_a_fill_value_of_complex_numbers_is_no_attribute(folder):
    """xarray opens no file with one."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    array(store + "/z", np.array([1 + 2j]), (1,), fill=[0.0, 0.0], attributes={"_FillValue": [0.0, 0.0]}, dimension_names=["x"])
    assert "complex" in run("export", "-q", store, back, status=3).stderr
    assert "_FillValue" not in dump(back, "-h")
    back = os.path.join(folder, "b.h5")
    run("export", "-q", store, back)
    run("verify", store, back)


def test_a_file_that_need_not_be_netcdf_has_all_times(folder):
    """Dimensions like netCDF's do not make a file one for netCDF, which has no times in years."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    kind = {"name": "numpy.datetime64", "configuration": {"unit": "Y", "scale_factor": 1}}
    group(store)
    array(store + "/x", np.arange(3.0), (3,), dimension_names=["x"])
    array(store + "/years", np.array([50, 51, 52]), (3,), LITTLE, data_type=kind, dimension_names=["x"])
    run("export", "-q", store, back)
    with h5py.File(back) as f:
        assert f["years"][:].tobytes() == np.array([50, 51, 52], "<i8").tobytes()
    run("verify", store, back)


def test_verify_knows_what_netcdf_has_for_another_name_or_fill_value(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store, {"n": 1, "text": "a"})
    wide = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
    array(store + "/none", np.zeros(3), (2,), LITTLE, data_type=wide, fill="é", chunks=False)
    run("export", "-q", store, back)  # there is no dimension by which it could be told from another HDF5 file
    run("verify", store, back)
    group(store + "/g")
    array(store + "/a", np.zeros((2, 4)), (2, 4), dimension_names=["x", "g"])
    array(store + "/b", np.zeros(3), (3,), dimension_names=["x"])
    run("export", "-q", "--overwrite", store, back, status=3)
    assert "double b(x_3)" in dump(back, "-h")
    run("verify", store, back)
    with h5py.File(back, "r+") as f:
        f["other_3"] = np.zeros(3)
    assert "/other_3" in run("verify", store, back, status=1).stdout


@pytest.mark.parametrize("way", ["store", "file"])
def test_lists_of_lists_are_one_list(folder, way):
    """netCDF's programs do not open a file with an attribute of two dimensions, whether a store or a file had it first."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    lists = {"n": [[1, 2], [3, 4]], "f": [[1.5], [2.5]], "t": [["a", "b"], ["c", "d"]], "b": [[True, False]]}
    if way == "store":
        group(store, lists)
        array(store + "/a", np.arange(3), (3,), attributes=lists, dimension_names=["x"])
    else:
        with h5py.File(os.path.join(folder, "in.h5"), "w") as f:
            f["a"] = np.arange(3)
            for where in (f, f["a"]):
                where.attrs["n"] = np.array([[1, 2], [3, 4]], "i2")
        convert(os.path.join(folder, "in.h5"), store, "-q")
    report = json.loads(run("export", "-q", "--json", store, back).stdout)  # and ncdump opens it
    said = {(o["path"], o["attribute"]): o.get("reason") for o in report["objects"] if o["kind"] == "attribute"}
    assert "as one list" in said["/", "n"] and "as one list" in said["/a", "n"], said
    with h5py.File(back) as f:
        for where in (f, f["a"]):
            assert where.attrs["n"].tolist() == [1, 2, 3, 4]
            if way == "store":
                assert where.attrs["f"].tolist() == [1.5, 2.5] and list(where.attrs["t"]) == ["a", "b", "c", "d"]
    if way == "store":
        verify(store, back)
    run("export", "-q", store, os.path.join(folder, "b.h5"))  # HDF5 has them as they are
    with h5py.File(os.path.join(folder, "b.h5")) as f:
        assert f["a"].attrs["n"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "arrays",
    [
        {"a": ((3, 5), ["x", "x"])},
        {"a": ((3, 5), ["x", "x"]), "b": ((7,), ["x_5"])},
        {"a": ((7,), ["x_5"]), "b": ((3, 5, 2), ["x", "x", "y"])},
        {"a": ((3, 5, 4), ["x", "x", None])},
        {"a": ((2, 3, 5), ["y", "x", "x"]), "x": ((3,), ["x"])},
        {"x": ((3,), ["x"]), "b": ((5,), ["x"]), "x_5": ((7,), ["x_5"])},
        {"x": ((3, 5), ["x", "x"]), "x_5": ((5, 2), ["x_5", "y"])},
    ],
)
def test_a_dimension_of_two_lengths_beside_others(folder, arrays):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    for name, (shape, names) in arrays.items():
        array(f"{store}/{name}", np.arange(np.prod(shape)).reshape(shape), shape, dimension_names=names)
    assert "another length" in run("export", "-q", store, back, status=3).stderr  # and ncdump opens it
    with h5py.File(back) as f:
        for name, (shape, _) in arrays.items():
            found = f.get(f"_nc4_non_coord_{name}") or f[name]
            assert found[()].tolist() == np.arange(np.prod(shape)).reshape(shape).tolist()


@pytest.mark.parametrize("ending", ["h5", "nc"])
@pytest.mark.parametrize("names", [{}, {"dimension_names": ["y", "x"]}])
def test_verify_knows_a_store_that_is_one_array(folder, ending, names):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b." + ending)
    array(store, np.arange(12.0).reshape(3, 4), (2, 2), attributes={"units": "m"}, **names)
    run("export", "-q", store, back)
    for order in ((store, back), (back, store)):
        assert "elements: 12 equal" in run("verify", *order).stdout
    with h5py.File(back, "r+") as f:
        f["data"][1, 1] = 99
    assert "/data" in run("verify", store, back, status=1).stdout
    run("export", "-q", "--overwrite", store, back)
    with h5py.File(back, "r+") as f:
        f["more"] = 1
    run("verify", store, back, status=1)


def test_what_netcdf_makes_of_another_convention_is_no_difference(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.attrs["file_name"] = "in.h5"
        entry = f.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        entry["title"] = "a title"
        entry["title"].attrs["type"] = "NX_CHAR"
        entry.create_dataset("fixed", data=np.bytes_("of a fixed length"))
    convert("-q", tmp_path / "in.h5", tmp_path / "in.zarr")
    convert("-q", tmp_path / "in.zarr", tmp_path / "out.nc")
    assert verify(tmp_path / "in.zarr", tmp_path / "out.nc")["findings"] == []
    with h5py.File(tmp_path / "out.nc", "r+") as f:
        f["entry/title"].attrs["type"] = 7
    assert verify(tmp_path / "in.zarr", tmp_path / "out.nc", status=1)["findings"][0]["attribute"] == "type"
