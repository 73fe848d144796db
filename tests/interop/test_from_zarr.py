# SPDX-License-Identifier: BSL-1.0
"""Stores that zarr-python and xarray wrote, of Zarr v2 and v3, with other chunks, shards and codecs: their writers find the
same in what `zarrbits convert` makes of them."""

import os
import subprocess

import numpy as np
import pytest

zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
numcodecs = pytest.importorskip("numcodecs")
COMMAND = os.environ["ZARRBITS_COMMAND"]
pytestmark = pytest.mark.filterwarnings("ignore")


def run(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def convert(store, out, *options):
    run("convert", "-q", store, out, *options)


RNG = np.random.default_rng(3)
TYPES = {
    **{t: RNG.integers(0, 100, (11, 7)).astype(t) for t in ("i1", "u1", "<i2", ">i2", "<u4", ">u8", "<i8", "<f2", "<f4", ">f8")},
    "bool": RNG.integers(0, 2, (11, 7)).astype(bool),
    "complex": (RNG.random((11, 7)) + 1j).astype("<c8"),
    "bytes": np.array([b"a", b"bcd", b""] * 5, "S3"),
    "text": np.array(["a", "bcd", "é"] * 5, "<U3"),
    "time": np.arange("2000-01-01", "2000-01-13", dtype="M8[D]").astype("M8[ns]"),
    "raw": np.array([b"abc", b"de\0"] * 4, "V3"),
}
CODECS = {
    "none": {"compressors": None},
    "zlib": {"compressors": numcodecs.Zlib(3)},
    "blosc": {"compressors": numcodecs.Blosc("lz4", 5, 1)},
    "zstd": {"compressors": numcodecs.Zstd(3)},
    "gzip": {"compressors": numcodecs.GZip(2)},
    "bz2": {"compressors": numcodecs.BZ2(1)},
    "lz4": {"compressors": numcodecs.LZ4()},
    "shuffle": {"filters": [numcodecs.Shuffle(2)], "compressors": numcodecs.Zlib(1)},
    "fletcher32": {"filters": [numcodecs.Fletcher32()], "compressors": None},
}


def same(a, b):
    assert a.shape == b.shape
    np.testing.assert_array_equal(a[...], b[...])


@pytest.mark.parametrize("order", ["C", "F"])
def test_types_of_zarr_v2(tmp_path, order):
    old = zarr.create_group(tmp_path / "v2", zarr_format=2, attributes={"title": "x"})
    for name, values in TYPES.items():
        chunks = (4, 3)[: values.ndim]
        old.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, order=order)[...] = values
    words = old.create_array("words", shape=(9,), chunks=(4,), dtype=str)
    words[...] = np.array([f"é{i}" for i in range(9)], dtype=object)
    filled = old.create_array("filled", shape=(9, 3), chunks=(4, 3), dtype="f4", fill_value=np.nan)
    filled[5, 1] = 2
    zarr.consolidate_metadata(tmp_path / "v2")
    for name, options in {"same": [], "chunks": ["--chunk", "5x7"], "packed": ["--chunk", "3", "--compress", "zstd:1"]}.items():
        convert(tmp_path / "v2", tmp_path / name, *options)
        new = zarr.open_group(tmp_path / name, mode="r", zarr_format=3)
        assert dict(new.attrs) == {"title": "x"} and new.metadata.consolidated_metadata is not None
        assert set(dict(new.arrays())) == set(dict(old.arrays()))
        for key, array in old.arrays():
            same(new[key], array)
        run("verify", tmp_path / "v2", tmp_path / name)
    assert "Zarr v2" in subprocess.run([COMMAND, "inspect", tmp_path / "v2"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("codec", CODECS)
def test_codecs_of_zarr_v2(tmp_path, codec):
    values = np.arange(70, dtype="<i2").reshape(10, 7)
    old = zarr.create_array(tmp_path / "v2", shape=(10, 7), chunks=(4, 7), dtype="<i2", zarr_format=2, **CODECS[codec])
    old[...] = values
    convert(tmp_path / "v2", tmp_path / "same")
    same(zarr.open_array(tmp_path / "same", zarr_format=3), values)
    convert(tmp_path / "v2", tmp_path / "chunks", "--chunk", "3x3")  # encoded with the same codecs
    same(zarr.open_array(tmp_path / "chunks", zarr_format=3), values)
    convert(tmp_path / "v2", tmp_path / "portable", "--profile", "portable", "--shard", "4x14")
    new = zarr.open_array(tmp_path / "portable", zarr_format=3)
    same(new, values)
    assert new.shards == (4, 14)
    assert not any("numcodecs" in str(c) for c in new.metadata.to_dict()["codecs"])


def test_codecs_of_zarr_v3(tmp_path):
    values = np.arange(700, dtype="<f4").reshape(20, 35)
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

    ways = {
        "blosc": {"compressors": BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle")},
        "gzip, crc": {"compressors": [GzipCodec(level=1), Crc32cCodec()]},
        "transposed": {"filters": TransposeCodec(order=(1, 0)), "compressors": ZstdCodec(level=2)},
        "big endian": {"serializer": BytesCodec(endian="big"), "compressors": None},
        "shards": {"shards": (10, 14)},
    }
    for name, way in ways.items():
        old = zarr.create_array(tmp_path / name, shape=(20, 35), chunks=(5, 7), dtype="<f4", **way)
        old[3:, 2:] = values[3:, 2:]
        for i, options in enumerate((["--chunk", "6x8"], ["--shard", "8x10"], ["--checksum", "crc32c"], ["--shard", "none"])):
            convert(tmp_path / name, tmp_path / f"{name} {i}", *options)
            new = zarr.open_array(tmp_path / f"{name} {i}")
            same(new, old)
            if options[0] != "--checksum" and name != "shards":
                kept = new.metadata.to_dict()["codecs"]
                if kept[0]["name"] == "sharding_indexed":
                    kept = kept[0]["configuration"]["codecs"]
                assert kept == old.metadata.to_dict()["codecs"]


def dataset():
    time = np.arange("2000-01-01", "2000-01-21", dtype="M8[D]").astype("M8[ns]")
    t2 = RNG.random((20, 6, 5)).astype("f4")
    t2[3, 2] = np.nan
    return xr.Dataset(
        {
            "t2": (("time", "y", "x"), t2, {"units": "K"}),
            "n": (("y", "x"), np.arange(30, dtype="i2").reshape(6, 5)),
            "words": ("x", np.array(["a", "bb", "", "é", "x"], dtype=object)),
            "yes": ("x", np.array([True, False, True, True, False])),
            "scalar": ((), 5.0),
        },
        coords={"time": time, "x": np.arange(5.0)},
        attrs={"title": "T"},
    )


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_finds_them_identical(tmp_path, zarr_format):
    encoding = {
        "t2": {"chunks": (1, 6, 5), "dtype": "i2", "scale_factor": 1e-4, "_FillValue": -1},
        "n": {"_FillValue": -7},
        "scalar": {"_FillValue": np.nan},
    }
    dataset().to_zarr(tmp_path / "old", zarr_format=zarr_format, encoding=encoding)
    before = xr.open_zarr(tmp_path / "old").load()
    for name, options in {
        "same": [],
        "columns": ["--chunk", "20x1x1"],
        "shards": ["--shard", "1M", "--checksum", "crc32c"],
    }.items():
        convert(tmp_path / "old", tmp_path / name, *options)
        after = xr.open_zarr(tmp_path / name, zarr_format=3).load()
        xr.testing.assert_identical(before, after)
        assert after.t2.encoding["_FillValue"] == -1 and after.n.encoding["_FillValue"] == -7
        run("verify", tmp_path / "old", tmp_path / name)
    run("export", "-q", tmp_path / "old", tmp_path / "back.nc")
    xr.testing.assert_identical(before, xr.open_dataset(tmp_path / "back.nc", engine="h5netcdf").load())
