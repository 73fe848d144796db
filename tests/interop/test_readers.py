# SPDX-License-Identifier: BSL-1.0
"""Common readers open a store of a file with many types, and read the values that h5py reads."""

import json

import h5py
import numpy as np
import pytest
import xarray
import zarr

from conftest import run

tensorstore = pytest.importorskip("tensorstore")

SHAPE, CHUNKS = (37, 23), (16, 10)
NUMBERS = [
    "|i1",
    "|u1",
    "<i2",
    ">i2",
    "<u2",
    ">u2",
    "<i4",
    ">i4",
    "<u4",
    "<i8",
    ">i8",
    "<u8",
    ">u8",
    "<f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c16",
]


def numbers(dtype):
    rng = np.random.default_rng(len(dtype) + ord(dtype[1]))
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, SHAPE, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)
    values = rng.normal(size=SHAPE).astype("f8" if dtype.kind == "f" else "c16")
    values[0, :3] = np.nan, np.inf, -0.0
    return values.astype(dtype)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """(source file, its store, path -> values)"""
    folder = tmp_path_factory.mktemp("readers")
    expected = {}
    with h5py.File(folder / "in.h5", "w", libver=("earliest", "v110")) as f:
        for i, dtype in enumerate(NUMBERS):
            name = f"numbers/{dtype[1:]}_{'big' if dtype[0] == '>' else 'little'}"
            expected[name] = numbers(dtype)
            # one of the storage forms each: chunked, deflate, contiguous, deflate with shuffle and fletcher32
            form = [
                {"chunks": CHUNKS},
                {"chunks": CHUNKS, "compression": "gzip"},
                {},
                {"chunks": CHUNKS, "compression": "gzip", "shuffle": True, "fletcher32": True},
            ][i % 4]
            f.create_dataset(name, data=expected[name], **form)
        expected["mask"] = numbers("|u1") > 99
        f.create_dataset("mask", data=expected["mask"], chunks=CHUNKS)
        expected["scalar"] = np.float64(2.5)
        f["scalar"] = 2.5
        expected["partly"] = np.full((64, 64), -7, "<i4")
        expected["partly"][:10, :10] = 1
        f.create_dataset("partly", (64, 64), "<i4", chunks=(16, 16), fillvalue=-7)[:10, :10] = 1
        f.create_dataset("text", data=np.array(["one", "two", "dr\u00e4i"], object), dtype=h5py.string_dtype())
        f.attrs["title"] = "many types"
        f["mask"].attrs["valid_range"] = np.array([0, 1], "u1")
    run("convert", "--quiet", folder / "in.h5", folder / "out.zarr")
    return folder / "in.h5", folder / "out.zarr", expected


def same(got, values):
    got, values = np.asarray(got), np.asarray(values)
    return got.shape == values.shape and got.astype(values.dtype).tobytes() == values.tobytes()


def test_zarr_python_reads_every_array(stores):
    _, store, expected = stores
    group = zarr.open_group(store, mode="r", zarr_format=3)
    assert group.attrs["title"] == "many types"
    assert list(group["mask"].attrs["valid_range"]) == [0, 1]
    for name, values in expected.items():
        assert same(group[name][...], values), name
        assert group[name].dtype.newbyteorder("=") == np.asarray(values).dtype.newbyteorder("="), name
    assert list(group["text"][...]) == ["one", "two", "dr\u00e4i"]


def test_tensorstore_reads_every_array(stores):
    _, store, expected = stores
    for name, values in expected.items():
        array = tensorstore.open(
            {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store / name)}}, open=True
        ).result()
        assert same(array.read().result(), values), name


def test_zarrs_reads_every_array(stores, zarrs):
    _, store, expected = stores
    read = 0
    for name, values in expected.items():
        codecs = [c["name"] for c in json.loads((store / name / "zarr.json").read_text())["codecs"]]
        if not set(codecs) <= {"bytes", "gzip"}:
            continue  # its program was built without the others
        got = zarrs.ask("read", path=str(store / name))
        values = np.asarray(values)
        assert got == values.astype(values.dtype.newbyteorder("=")).tobytes(), f"{name}: {zarrs.refused}"
        read += 1
    assert read >= 15


def test_big_endian_stays_big_endian(stores):
    _, store, _ = stores
    for name in ("numbers/i4_big", "numbers/f8_big", "numbers/c16_big"):
        first = json.loads((store / name / "zarr.json").read_text())["codecs"][0]
        assert first == {"name": "bytes", "configuration": {"endian": "big"}}, name


def test_verify_agrees(stores):
    source, store, _ = stores
    run("verify", source, store)


def test_xarray_opens_a_netcdf_like_file(tmp_path):
    """Dimension scales become dimension_names, so that xarray finds its coordinates."""
    source, store = tmp_path / "grid.h5", tmp_path / "grid.zarr"
    temperature = np.random.default_rng(8).normal(280, 5, (4, 6, 8)).astype("<f4")
    temperature[0, 0, 0] = -999
    axes = {"time": np.arange(4, dtype="<i4"), "lat": np.linspace(-50, 50, 6), "lon": np.linspace(0, 350, 8)}
    with h5py.File(source, "w", libver=("earliest", "v110")) as f:
        for name, values in axes.items():
            f[name] = values
            f[name].make_scale(name)
        f["time"].attrs["units"] = "days since 2000-01-01"
        d = f.create_dataset("temperature", data=temperature, chunks=(2, 3, 4), compression="gzip")
        for i, name in enumerate(axes):
            d.dims[i].attach_scale(f[name])
        d.attrs["units"] = "K"
        d.attrs["_FillValue"] = np.array([-999], "<f4")
        f.attrs["Conventions"] = "CF-1.8"
    run("convert", "--quiet", source, store)
    with xarray.open_dataset(store, engine="zarr", consolidated=False) as data:
        assert data.attrs["Conventions"] == "CF-1.8"
        assert data["temperature"].dims == ("time", "lat", "lon")
        assert data["temperature"].attrs["units"] == "K"
        assert np.isnan(data["temperature"].values[0, 0, 0])
        assert np.array_equal(data["temperature"].values.ravel()[1:], temperature.ravel()[1:])
        assert np.array_equal(data["lat"].values, axes["lat"])
        assert str(data["time"].values[1])[:10] == "2000-01-02"
