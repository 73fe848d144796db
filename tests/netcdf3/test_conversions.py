# SPDX-License-Identifier: BSL-1.0
"""A netCDF-3 file becomes the store that the netCDF-4 file with its content becomes; netCDF-C (ncgen, nccopy, ncdump) and h5py
say what that content is."""

import json

import numpy as np
import pytest

from harness import convert, execute, refused, run, verify
from netcdf3_bytes import Header
from netcdf3_files import KINDS, ncgen, netcdf4_values
from store import Store

CLASSIC = """netcdf t {
dimensions: time = UNLIMITED ; lat = 3 ; lon = 4 ; n = 5 ; unused = 7 ;
variables:
  double time(time) ; time:units = "days since 2000-01-01" ;
  float temp(time, lat, lon) ; temp:_FillValue = -999.f ; temp:missing_value = -999.f ; temp:valid_range = -10.f, 50.f ;
  short s(lat) ; s:_FillValue = -1s ; s:scale_factor = 0.5 ; s:flags = 1s, 2s ; s:one = 3b ;
  byte b(time, n) ; b:_FillValue = -1b ;
  char c(n) ; c:long_name = "näme" ; c:_FillValue = "x" ;
  char cc(lat, n) ; char c0 ; char lines(time, n) ;
  int i0 ; i0:none = "" ; int i(lat) ; float f(lat) ; f:_FillValue = NaNf ; float lat(lat) ;
  double d(lat, lon) ; d:_FillValue = 1e300 ;
  int lon(lat) ;
  int größe(n) ;
  :title = "hello" ; :num = 3 ; :list = 1., 2. ; :nans = 3.5, NaN ; :bytes = 1b, -2b ; :uni = "é" ; :floats = 1.1f, -Infinityf ;
data:
  time = 1, 2 ; temp = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ;
  s = 1, 2, 3 ; b = 1, 2, -1, 3, 4, 5, 6, 7, 8, 9 ; c = "abcde" ; cc = "abc", "defgh", "i" ; c0 = "q" ; lines = "one", "two" ;
  i0 = 5 ; i = 1, _, 3 ; f = 1, NaN, 3 ; lat = 1, 2, 3 ; d = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ; lon = 7, 8, 9 ;
  größe = 1, 2, 3, 4, 5 ;
}"""
CDF5 = """netcdf t {
dimensions: r = UNLIMITED ; x = 3 ;
variables: ubyte ub(r, x) ; ub:_FillValue = 7ub ; ubyte ubs(x) ; ushort us(x) ; us:a = 65535us, 1us ; uint ui(r) ;
  ui:a = 4294967295u ;
  uint64 ul(x) ; ul:a = 18446744073709551615ull ; ul:b = 1ll ;
data: ub = 1, 2, 3, 4, 5, 6 ; ubs = 250, 251, _ ; us = 65535, 2, _ ; ui = 4294967295, 1 ;
  ul = 18446744073709551615, 1, _ ;
}"""
FILES = {
    "everything": CLASSIC,
    "nothing": "netcdf t { }",
    "attributes alone": 'netcdf t { :a = "b" ; }',
    "no records": "netcdf t { dimensions: t = UNLIMITED ; x = 2 ; variables: int v(t, x) ; double t(t) ; }",
    "one record variable of bytes": "netcdf t { dimensions: t = UNLIMITED ; x = 3 ; variables: byte v(t, x) ; int f(x) ; "
    "data: v = 1, 2, 3, 4, 5, 6, 7, 8, 9 ; f = 1, 2, 3 ; }",
    "one record variable of shorts": "netcdf t { dimensions: t = UNLIMITED ; variables: short v(t) ; data: v = 1, 2, 3, 4, 5 ; }",
    "two record variables of bytes": "netcdf t { dimensions: t = UNLIMITED ; x = 3 ; variables: byte v(t, x) ; char w(t) ; "
    'data: v = 1, 2, 3, 4, 5, 6 ; w = "ab" ; }',
}


def without(meta, *keys):
    notes = {k: v for k, v in meta.get("zarrbits", {}).items() if k in ("maxshape", "hdf5_type")}
    attributes = {k: v for k, v in meta["attributes"].items() if k != "_nc_zarrbits"}
    return {**{k: v for k, v in meta.items() if k not in keys}, "zarrbits": notes, "attributes": attributes}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_a_file_becomes_the_store_of_its_netcdf4_twin(tmp_path, name, kind):
    check_file(tmp_path, FILES[name], kind)


def test_the_types_of_cdf5(tmp_path):
    check_file(tmp_path, CDF5, "64-bit data")


def parsed(path):
    return json.loads(path.read_text(encoding="utf-8"))  # NaN, too


def check_file(tmp_path, cdl, kind):
    source, twin = ncgen(tmp_path / "in.nc", cdl, kind), ncgen(tmp_path / "twin.nc", cdl, "nc4")
    convert(source, tmp_path / "out.zarr")
    convert(twin, tmp_path / "twin.zarr")
    have, wanted = (
        {p.parent.relative_to(tmp_path / s): parsed(p) for p in (tmp_path / s).rglob("zarr.json")}
        for s in ("out.zarr", "twin.zarr")
    )
    assert have.keys() == wanted.keys()
    keys = "codecs", "chunk_grid", "consolidated_metadata"  # values stay in big endian, in other chunks
    for path, meta in wanted.items():
        assert json.dumps(without(have[path], *keys), sort_keys=True) == json.dumps(without(meta, *keys), sort_keys=True)
    values = netcdf4_values(source, tmp_path / "copy.nc")
    store = Store(tmp_path / "out.zarr")
    assert set(values) == {str(p) for p in have if str(p) != "."}
    for variable, array in values.items():
        if array.dtype.kind == "S":
            meta = store.meta(variable)
            n = int(np.prod(meta["shape"]))
            chunks = sorted((tmp_path / "out.zarr" / variable).glob("c*"))
            assert (
                b"".join(p.read_bytes() for c in chunks for p in ([c] if c.is_file() else sorted(c.rglob("*"))) if p.is_file())
            )[:n] == array.tobytes()
        else:
            np.testing.assert_array_equal(store.read(variable), array, strict=False)
    report = verify(source, tmp_path / "out.zarr")
    assert report["exit_status"] == 0 and not report["findings"]
    run("check", source)
    run("check", tmp_path / "out.zarr")
    run("plan", source, tmp_path / "other.zarr")
    run("inspect", source)
    digests = [digest(f) for f in (source, twin, tmp_path / "out.zarr", tmp_path / "copy.nc")]
    assert digests[0] == digests[2]
    assert digests[0] == digests[1] == digests[3]
    run("export", tmp_path / "out.zarr", tmp_path / "back.nc")
    assert dump(tmp_path / "back.nc") == dump(source)
    run("export", source, tmp_path / "direct.nc")
    assert dump(tmp_path / "direct.nc") == dump(source)
    verify(source, tmp_path / "direct.nc")


def digest(name):
    """Of the values, by arrays."""
    return run("digest", name).stdout.replace(str(name), "")


def dump(path):
    return execute("ncdump", "-n", "t", path).stdout


@pytest.mark.parametrize("options", [["--chunk", "1,2,3"], ["--chunk", "1,1,4", "--shard", "2,2,4"], ["--compress", "zstd:3"]])
def test_other_chunks_have_the_same_values(tmp_path, options):
    source = ncgen(tmp_path / "in.nc", CLASSIC, "classic")
    convert(source, tmp_path / "out.zarr", *options)
    assert verify(source, tmp_path / "out.zarr")["exit_status"] == 0
    assert digest(source) == digest(tmp_path / "out.zarr")


def test_one_variable_of_a_file(tmp_path):
    source = ncgen(tmp_path / "in.nc", CLASSIC, "classic")
    convert(f"{source}:/temp", tmp_path / "temp.zarr")
    assert Store(tmp_path / "temp.zarr").read("").shape == (2, 3, 4)
    convert(source, tmp_path / "some.zarr", "--include", "/temp")
    assert Store(tmp_path / "some.zarr").has("temp") and not Store(tmp_path / "some.zarr").has("s")


def test_names_that_a_store_cannot_have_come_back(tmp_path):
    h = Header()
    x = h.dimension("x", 2)
    for k, name in enumerate(["zarr.json", "__a", ".zarrbits-x", "a b", "%41"]):
        h.variable(name, 4, [x], np.array([k, k + 1]))
    (tmp_path / "in.nc").write_bytes(h.bytes())
    convert(tmp_path / "in.nc", tmp_path / "out.zarr")
    assert verify(tmp_path / "in.nc", tmp_path / "out.zarr")["exit_status"] == 0
    run("export", tmp_path / "out.zarr", tmp_path / "back.h5", "--convention", "none", status=(0, 2, 3))


def test_verify_finds_a_changed_value(tmp_path):
    source = ncgen(tmp_path / "in.nc", CLASSIC, "classic")
    convert(source, tmp_path / "out.zarr")
    chunk = tmp_path / "out.zarr/lat/c/0"
    raw = bytearray(chunk.read_bytes())
    raw[2] ^= 1
    chunk.write_bytes(raw)
    report = verify(source, tmp_path / "out.zarr", status=1)
    assert [f["path"] for f in report["findings"] if f["outcome"] == "differs"] == ["/lat"]


def test_a_file_that_changes_is_noticed(tmp_path):
    source = ncgen(tmp_path / "in.nc", CLASSIC, "classic")
    convert(source, tmp_path / "out.zarr", "--partition", "0/2")
    with open(source, "ab") as f:
        f.write(b"\0\0\0\0")
    assert "changed" in refused("convert", source, tmp_path / "out.zarr", "--partition", "1/2")


def test_references_to_ranges_of_the_file(tmp_path):
    """netCDF-C wrote the records one after the other: a chunk of `v` is a record's part, and those of `time` are gathered."""
    values = ", ".join(map(str, range(3 * 200 * 100)))
    cdl = f"""netcdf t {{ dimensions: time = UNLIMITED ; y = 200 ; x = 100 ;
variables: int v(time, y, x) ; double time(time) ; short fixed(y, x) ; data: time = 1, 2, 3 ; v = {values} ; }}"""
    source, refs = ncgen(tmp_path / "t.nc", cdl, "classic"), tmp_path / "refs.json"
    convert("-q", "--virtual", source, refs)
    verify(source, refs)
    entries = json.loads(refs.read_text(encoding="utf-8"))["refs"]
    url, offset, size = entries["v/1.0.0"]
    assert url == f"file://{source}" and size == 80000 and offset - entries["v/0.0.0"][1] == 80008
    assert entries["fixed/0.0"][2] == 40000 and isinstance(entries["time/0"], str)
    record = np.frombuffer(source.read_bytes()[offset : offset + size], ">i4").reshape(200, 100)
    assert np.array_equal(record, netcdf4_values(source, tmp_path / "t4.nc")["v"][1])


@pytest.mark.parametrize("kind, dtype", [(1, "i1"), (3, "i2"), (4, "i4"), (10, "i8"), (7, "u1"), (11, "u8")])
def test_the_smallest_and_largest_numbers(tmp_path, kind, dtype):
    source, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    values = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    h = Header(5)
    h.variable("v", kind, [h.dimension("x", 2)], values, [("range", kind, values.tolist())])
    source.write_bytes(h.bytes())
    convert("-q", source, out)
    verify(source, out)
    store = Store(str(out))
    assert store.meta("v")["attributes"]["range"] == values.tolist() and (store.read("v") == values).all()
