# SPDX-License-Identifier: BSL-1.0
"""netCDF-3 files that are joined become the store that netCDF-4 files with their content become; netCDF-C (ncgen, nccopy) says
what that content is.

ZARRBITS_MUTATIONS: damaged files, 25 by default. ZARRBITS_SEED: others."""

import json
import os

import h5py
import numpy as np
import pytest

from harness import convert, execute, refused, run, same, verify
from netcdf3_bytes import DOUBLE, FLOAT, INT, Header
from netcdf3_files import KINDS, ncgen, netcdf4_values
from store import Store

CDL = """netcdf t {
dimensions: time = UNLIMITED ; lat = 3 ; n = 5 ; unused = 7 ;
variables:
  double time(time) ; time:units = "days since 2000-01-01" ;
  float temp(time, lat) ; temp:_FillValue = -999.f ; temp:valid_range = -10.f, 50.f ; temp:long_name = "näme" ;
  short s(lat) ; s:scale_factor = 0.5 ; s:flags = 1s, 2s ; s:none = "" ;
  byte b(time, n) ; char lines(time, n) ; char c0 ; int i0(time) ; float lat(lat) ; int n(lat) ;
  :title = "hello" ; :num = 3 ; :list = 1., 2. ;
data:
  time = %(time)s ; temp = %(temp)s ; s = 1, 2, 3 ; b = 1, 2, -1, 3, 4 ; lines = "one" ; c0 = "q" ; i0 = %(time)s ;
  lat = 1, 2, 3 ; n = 7, 8, 9 ;
}"""
TYPES = """netcdf t { dimensions: r = UNLIMITED ; x = 3 ;
variables: ubyte ub(r, x) ; ub:_FillValue = 7ub ; ushort us(r) ; us:a = 65535us, 1us ; uint ui(x) ; int l(r, x) ; double r(r) ;
  uint64 ul(r) ; ul:a = 18446744073709551615ull ; ul:b = 1ll ;
data: ub = 1, 2, 3, 4, 5, 6 ; us = 65535, 2 ; ui = 4294967295, 1 ; l = 1, 2, 3, 4, 5, -2147483646 ; r = %s, %s ;
  ul = 18446744073709551615, 1 ; }"""


def series(first, steps):
    time = ", ".join(str(first + i) for i in range(steps))
    return CDL % {"time": time, "temp": ", ".join(str(3 * first + i) for i in range(3 * steps))}


def pair(tmp_path, name, cdl, kind):
    """The same as netCDF-3 and as netCDF-4."""
    for folder in "34":
        (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
    return ncgen(tmp_path / "3" / name, cdl, kind), ncgen(tmp_path / "4" / name, cdl, "nc4")


def attributes(store):
    result = {}
    for path in sorted(store.rglob("zarr.json")):
        meta = json.loads(path.read_text(encoding="utf-8"))
        notes = meta["attributes"].pop("_nc_zarrbits", {})
        kept = {k: notes[k] for k in ("maxshape", "hdf5_type", "dimensions", "names") if k in notes}
        dimensions = kept.get("dimensions", {})  # netCDF-C has them between the variables
        kept["order"] = [n for n in notes.get("order", []) if n not in dimensions]
        keys = "attributes", "shape", "data_type", "fill_value", "dimension_names", "node_type"
        result[str(path.parent.relative_to(store))] = [*(meta.get(k) for k in keys), kept]
    return result


def check(tmp_path, pairs, *how):
    """The stores of both kinds are equal, and each to its own files."""
    stores = []
    for k, files in zip("34", zip(*pairs)):
        stores.append(tmp_path / f"{k}.zarr")
        convert("-q", *how, *files, stores[-1])
        report = verify(*how, *files, stores[-1])
        assert report["exit_status"] == 0 and not report["findings"]
    three, four = map(attributes, stores)
    assert json.dumps(three, sort_keys=True) == json.dumps(four, sort_keys=True)
    for name, meta in three.items():
        if meta[5] == "array" and "bytes" not in str(meta[2]):
            np.testing.assert_array_equal(Store(stores[0]).read(name), Store(stores[1]).read(name), strict=False)
    digests = [run("digest", s).stdout.replace(str(s), "") for s in stores]
    assert digests[0] == digests[1]
    return Store(stores[0])


@pytest.mark.parametrize("kind", KINDS)
def test_records_as_those_of_the_netcdf4_twins(tmp_path, kind):
    pairs = [pair(tmp_path, f"{i}.nc", series(first, steps), kind) for i, (first, steps) in enumerate([(0, 2), (2, 3), (5, 1)])]
    store = check(tmp_path, pairs, "--concat", "time")
    np.testing.assert_array_equal(store.read("time"), np.arange(6))
    np.testing.assert_array_equal(store.read("temp"), np.arange(18).reshape(6, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_other_ways_to_join(tmp_path, kind):
    pairs = [pair(tmp_path, f"{i}.nc", series(2 * i, 2), kind) for i in range(3)]
    (tmp_path / "s").mkdir()
    check(tmp_path / "s", pairs, "--concat", "time", "--order", "value")
    (tmp_path / "n").mkdir()
    check(tmp_path / "n", pairs, "--concat-new", "run", "--exclude", "/time")
    (tmp_path / "m").mkdir()
    check(tmp_path / "m", [(pairs[0][0], pairs[0][1]), (pairs[1][1], pairs[1][0]), pairs[2]], "--concat", "time")


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_with_copies(tmp_path, kind):
    """An HDF5 file that has all values, also of a netCDF-3 and a netCDF-4 file."""
    pairs = [pair(tmp_path, f"{i}.nc", series(2 * i, 2), kind) for i in range(3)]
    for name, files in ("three.nc", [a for a, _ in pairs]), ("both.nc", [pairs[0][0], pairs[1][1], pairs[2][0]]):
        convert("-q", "--concat", "time", *files, tmp_path / name)
        assert not verify("--concat", "time", *files, tmp_path / name)["findings"]
        assert "time = UNLIMITED ; // (6 currently)" in execute("ncdump", "-h", tmp_path / name).stdout
        with h5py.File(tmp_path / name) as f:
            for variable in "time", "temp", "b", "lines", "i0", "s", "lat":
                parts = []
                for _, part in pairs:
                    with h5py.File(part) as p:
                        parts.append(p[variable][...])
                expected = parts[0] if variable in ("s", "lat") else np.concatenate(parts)
                np.testing.assert_array_equal(f[variable][...], expected)
            assert f["temp"].maxshape == (None, 3)


def test_the_types_of_cdf5(tmp_path):
    pairs = [pair(tmp_path, f"{i}.nc", TYPES % (2 * i, 2 * i + 1), "64-bit data") for i in range(2)]
    check(tmp_path, pairs, "--concat", "r")


@pytest.mark.parametrize("kind", KINDS)
def test_tiles_and_members(tmp_path, kind):
    cdl = "netcdf t {{ dimensions: y = 2 ; x = {n} ; variables: int y(y) ; double x(x) ; float v(y, x) ; short area(y, x) ; "
    cdl += 'int level ; v:units = "K" ; data: y = {y} ; x = {x} ; v = {v} ; area = {v} ; level = 4 ; }}'
    pairs = []
    for i, (y, x) in enumerate([("0, 1", "1, 2"), ("2, 3", "1, 2"), ("0, 1", "4, 5, 6"), ("2, 3", "4, 5, 6")]):
        n = x.count(",") + 1
        values = ", ".join(str(10 * i + k) for k in range(2 * n))
        pairs.append(pair(tmp_path, f"{i}.nc", cdl.format(n=n, y=y, x=x, v=values), kind))
    store = check(tmp_path, pairs, "--concat", "y,x")
    assert store.read("v").shape == (4, 5) and store.read("v")[2, 3] == 31
    (tmp_path / "m").mkdir()
    check(tmp_path / "m", [(a, b) if i % 2 else (b, a) for i, (a, b) in enumerate(pairs)], "--concat", "y,x")
    message = refused("convert", "--virtual", "--concat", "y,x", *(a for a, _ in pairs), tmp_path / "all.nc")
    assert "netCDF-3" in message and "nccopy" in message


def test_members_of_parts(tmp_path):
    pairs = [pair(tmp_path, f"r{k}/{i}.nc", series(2 * i, 2), "64-bit offset") for k in range(2) for i in range(2)]
    check(tmp_path, pairs, "--concat-new", "member", "--concat", "time")


def large_records(path, first, records):
    h = Header(2, records)
    t, x = h.dimension("t", 0), h.dimension("x", 20_000)
    values = np.arange(records * 20_000).reshape(records, 20_000) + first * 20_000
    h.variable("large", INT, [t, x], values)
    h.variable("t", DOUBLE, [t], np.arange(first, first + records))
    h.variable("small", FLOAT, [t], np.arange(first, first + records))
    path.write_bytes(h.bytes())
    return path


def test_references_lead_to_the_records(tmp_path):
    files = [large_records(tmp_path / f"{i}.nc", 3 * i, 3) for i in range(3)]
    convert("-q", "--virtual", "--concat", "t", *files, tmp_path / "all.json")
    references = json.loads((tmp_path / "all.json").read_text())["refs"]
    for i in range(9):
        name, offset, size = references[f"large/c/{i}/0" if f"large/c/{i}/0" in references else f"large/{i}.0"]
        with open(tmp_path / name.removeprefix("file://").rpartition("/")[2], "rb") as f:
            f.seek(offset)
            np.testing.assert_array_equal(np.frombuffer(f.read(size), ">i4"), np.arange(20_000) + i * 20_000)
    assert verify("--concat", "t", *files, tmp_path / "all.json")["exit_status"] == 0


def test_files_are_appended(tmp_path):
    pairs = [pair(tmp_path, f"{i}.nc", series(2 * i, 2), "classic") for i in range(3)]
    files = [a for a, _ in pairs]
    convert("-q", "--concat", "time", *files[:2], tmp_path / "grown.zarr")
    convert("-q", "--append", "time", files[2], tmp_path / "grown.zarr")
    np.testing.assert_array_equal(Store(tmp_path / "grown.zarr").read("temp"), np.arange(18).reshape(6, 3))
    assert verify("--concat", "time", *files, tmp_path / "grown.zarr")["exit_status"] == 0


def test_work_is_divided(tmp_path):
    files = [large_records(tmp_path / f"{i}.nc", 3 * i, 3) for i in range(3)]
    convert("-q", "--concat", "t", *files, tmp_path / "whole.zarr")
    for i in range(2):
        convert("-q", "--concat", "t", *files, tmp_path / "parts.zarr", "--partition", f"{i}/2")
    run("finalize", "-q", "--concat", "t", *files, tmp_path / "parts.zarr")
    same(tmp_path / "whole.zarr", tmp_path / "parts.zarr")


def test_values_are_those_that_netcdf_c_reads(tmp_path):
    files = [large_records(tmp_path / f"{i}.nc", 3 * i, n) for i, n in enumerate([3, 0, 2])]
    convert("-q", "--concat", "t", "--allow-overlap", *files, tmp_path / "out.zarr")
    expected = [netcdf4_values(f, tmp_path / f"copy{i}.nc") for i, f in enumerate(files)]
    for name in ("large", "t", "small"):
        np.testing.assert_array_equal(Store(tmp_path / "out.zarr").read(name), np.concatenate([e[name] for e in expected]))


def damaged(tmp_path, change):
    h = Header(1, 2)
    dims = [h.dimension("t", 0), *(h.dimension(f"d{k}", 1) for k in range(33))]
    h.variable("t", DOUBLE, dims[:1], np.arange(2))
    change(h, dims)
    (tmp_path / "bad.nc").write_bytes(h.bytes())
    return tmp_path / "bad.nc"


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda h, d: h.variable("a/b", INT, d[:1], np.arange(2)), "not one that netCDF-4 allows"),
        (lambda h, d: h.variable("v", INT, d, [bytes(4), bytes(4)]), "has 34 dimensions"),
        (lambda h, d: h.variable("v", INT, d[1:2], np.arange(1), begin=4), "begins within the header"),
        (lambda h, d: h.variable("v", INT, d[1:2], np.arange(1), begin=1 << 20), "truncated"),
        (lambda h, d: h.variable("t", INT, d[:1], np.arange(2)), "have the name"),
    ],
)
def test_what_hdf5_cannot_have_is_refused(tmp_path, change, reason):
    bad = damaged(tmp_path, change)
    good = damaged_free(tmp_path)
    for files in ([bad, good], [good, bad]):
        message = refused("convert", "--concat", "t", *files, tmp_path / "out.zarr")
        assert reason in message and str(bad) in message


def test_damaged_headers_are_errors(tmp_path):
    """Or other values; never a crash."""
    dice = np.random.default_rng(int(os.environ.get("ZARRBITS_SEED", "58")))
    good, other = (ncgen(tmp_path / f"{i}.nc", series(2 * i, 2), KINDS[i + 1]) for i in range(2))
    raw = good.read_bytes()
    for i in range(int(os.environ.get("ZARRBITS_MUTATIONS", "25"))):
        changed = bytearray(raw)
        for at in dice.integers(4, len(raw), dice.integers(1, 4)):
            changed[at] = dice.choice([0, 1, 0x2F, 0x7F, 0x80, 0xFF, int(dice.integers(256))])
        (tmp_path / "bad.nc").write_bytes(changed[: len(changed) - int(dice.integers(0, 3))])
        done = run("convert", "--concat", "time", tmp_path / "bad.nc", other, tmp_path / f"{i}.zarr", status=(0, 1, 2, 3))
        assert "crash" not in done.stderr


def damaged_free(tmp_path):
    h = Header(1, 2)
    h.variable("t", DOUBLE, [h.dimension("t", 0)], np.arange(2))
    (tmp_path / "good.nc").write_bytes(h.bytes())
    return tmp_path / "good.nc"
