# SPDX-License-Identifier: BSL-1.0
"""A store that is appended to is identical, for xarray, to one that was made of all files. docs/guide/append.md."""

import json
import os
import shutil

import numpy as np
import pytest

from conftest import run
from test_concat import CASES, files, xr

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS = {
    "portable": [],
    "native": ["--profile", "native"],
    "shards": ["--profile", "native", "--shard", "64,18,36"],
    "shards of compressed": ["--compress", "zstd", "--shard", "1M"],
    "checksum": ["--checksum", "crc32c"],
    "consolidated": ["--consolidate"],
    "other chunks": ["--chunk", "5,18,36"],
}


def opened(store, **how):
    return xr.open_zarr(store, **{"consolidated": False, **how}).load()


def joined(paths):
    return xr.open_mfdataset(
        paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals", join="outer"
    ).load()


def append(*paths, status=0, more=()):
    return run("convert", "--append", "time", *paths, "--quiet", *more, status=status)


def state(folder):
    return {
        os.path.relpath(os.path.join(at, name), folder): open(os.path.join(at, name), "rb").read()
        for at, _, names in os.walk(folder)
        for name in names
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "case", [c for c in CASES if c not in ("packing that differs", "packing in float32 that differs", "types that differ")]
)
def test_file_by_file(case, way, tmp_path):
    paths = files(tmp_path, **CASES[case])
    store = tmp_path / "out.zarr"
    run("convert", "--concat", "time", paths[0], store, "--quiet", *WAYS[way])
    if case == "packing that is shifted, and floats":  # the array is of integers
        append(paths[1], store)
        before = state(store)
        append(paths[2], store, status=1)
        assert state(store) == before
        paths = paths[:2]
    for path in paths[1:]:
        append(path, store)
        assert not (store / ".zarrbits-append").exists()
    want = joined(paths)
    xr.testing.assert_identical(want, opened(store))
    if way == "consolidated":
        xr.testing.assert_identical(want, opened(store, consolidated=True))
    result = json.loads(run("verify", "--json", "--concat", "time", *paths, store))
    assert result["elements"]["unchecked"] == 0 and result["attributes"]["differs"] == 0, result
    before = state(store)
    append(*paths, store)
    assert state(store) == before
    notes = json.loads((store / "zarr.json").read_text())["attributes"]["_nc_zarrbits"]["sources"]
    assert [n["file"] for n in notes] == [p.name for p in paths] and [n["first"] for n in notes] == list(
        np.cumsum([0, *CASES[case]["lengths"]])[: len(paths)]
    )


def test_several_at_once(tmp_path):
    paths = files(tmp_path, [10, 7, 24, 3, 9])
    store = tmp_path / "out.zarr"
    run("convert", "--concat", "time", *paths[:2], store, "--quiet")
    report = json.loads(append(*paths, store, more=["--json"]))
    assert [s["notes"] for s in report["sources"]] == [["it is already in the store"]] * 2 + [[]] * 3
    assert [s["first"] for s in report["sources"]] == [0, 10, 17, 41, 44]
    xr.testing.assert_identical(joined(paths), opened(store))


def test_consolidated_from_now_on(tmp_path):
    paths = files(tmp_path, [10, 7])
    store = tmp_path / "out.zarr"
    run("convert", "--concat", "time", paths[0], store, "--quiet")
    append(paths[1], store, more=["--consolidate"])
    xr.testing.assert_identical(joined(paths), opened(store, consolidated=True))


def test_what_was_unpacked_takes_packed_files(tmp_path):
    paths = files(tmp_path, **CASES["packing that differs"])
    store = tmp_path / "out.zarr"
    run("convert", "--concat", "time", *paths[:2], store, "--quiet")
    append(paths[2], store)
    xr.testing.assert_identical(joined(paths), opened(store))


@pytest.mark.parametrize("how", ["plain", "shards", "blosc", "none", "consolidated"])
def test_stores_of_xarray(how, tmp_path):
    """The other files can be appended to a store that xarray wrote of the first."""
    import zarr

    # a netCDF file has integers where xarray has booleans, and its stores have these
    paths = files(tmp_path, [24, 20, 7], change=lambda i, ds: ds.drop_vars("wet"))
    store = tmp_path / "out.zarr"
    encoding = {
        "plain": {},
        "consolidated": {},
        "shards": {"chunks": (8, 9, 36), "shards": (32, 18, 36)},
        "none": {"compressors": ()},
        "blosc": {"compressors": zarr.codecs.BloscCodec(cname="lz4", clevel=3, shuffle="bitshuffle")},
    }[how]
    first = xr.open_dataset(paths[0]).load().drop_encoding()
    first["station"] = first["station"].astype(object)  # else of a fixed length
    first.to_zarr(
        store,
        zarr_format=3,
        consolidated=how == "consolidated",
        encoding={"t2m": encoding, "time": {"units": "hours since 2000-01-01", "dtype": "i8"}},
    )
    append(paths[1], store)
    append(paths[2], store)
    want, got = joined(paths), opened(store, consolidated=how == "consolidated")
    xr.testing.assert_identical(want, got)
    before = state(store)
    append(*paths[1:], store)
    assert state(store) == before


def test_stores_of_xarray_whose_dimensions_have_no_coordinates(tmp_path):
    """netCDF has a dimension scale for them, and xarray's store has nothing."""
    days = []
    for i in range(4):
        days.append(
            xr.Dataset(
                {
                    "v": (("time", "y", "x"), np.full((2, 3, 4), i, "f4")),
                    "crs": ((), np.array(b"", "S1"), {"grid_mapping_name": "latitude_longitude"}),
                },
                {"time": ("time", [2 * i, 2 * i + 1], {"units": "days since 2000-01-01"})},
            )
        )
        days[i].to_netcdf(tmp_path / f"{i}.nc", unlimited_dims=["time"])
    store = tmp_path / "out.zarr"
    xr.open_dataset(tmp_path / "0.nc").drop_vars("crs").drop_encoding().to_zarr(
        store,
        zarr_format=3,
        consolidated=False,
        encoding={"time": {"units": "days since 2000-01-01", "dtype": "i8"}},
    )
    for i in range(1, 4):
        append(tmp_path / f"{i}.nc", store, more=["--exclude", "crs"])
    want = xr.concat([xr.open_dataset(tmp_path / f"{i}.nc").drop_vars("crs") for i in range(4)], "time")
    np.testing.assert_array_equal(opened(store).v, want.v)
    np.testing.assert_array_equal(opened(store).time, want.time)


def test_refused(tmp_path):
    """Whatever is wrong, the store stays as it is."""
    paths = files(tmp_path, [24, 20, 7])
    store = tmp_path / "out.zarr"
    run("convert", "--concat", "time", *paths[:2], store, "--quiet")
    before = state(store)
    shutil.copy(paths[0], tmp_path / "again.nc")
    append(tmp_path / "again.nc", store, status=1)  # its times are in the store
    os.utime(paths[1])
    append(paths[1], paths[2], store, status=1)
    append(tmp_path / "none.nc", store, status=1)
    append(paths[2], tmp_path / "none.zarr", status=1)
    append(paths[2], store, status=2, more=["--chunk", "3,3,3"])
    assert state(store) == before
    other = xr.open_dataset(paths[2])
    for name, ds in {
        "shape": other.isel(lat=slice(9)),
        "mask": other.assign(mask=other.mask + 1),
        "more": other.assign(more=other.t2m),
        "less": other.drop_vars("t2m"),
    }.items():
        ds.drop_encoding().to_netcdf(tmp_path / f"{name}.nc", unlimited_dims=["time"])
        append(tmp_path / f"{name}.nc", store, status=1)
        assert state(store) == before, name
    append(paths[2], store)
