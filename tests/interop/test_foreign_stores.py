# SPDX-License-Identifier: BSL-1.0
"""Stores that zarr-python, numcodecs, xarray, netCDF-C and kerchunk wrote: what they read of them, convert and export keep."""

import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

from conftest import debian_python
from harness import convert, run, verify

zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
numcodecs = pytest.importorskip("numcodecs")
numcodecs_v3 = pytest.importorskip("numcodecs.zarr3")
pytestmark = pytest.mark.filterwarnings("ignore")

INTEGERS = np.array([5, 7, -3, 100, 100, 90, 0, 1, 2, 3, 30, -30], "<i4")
REALS = np.array([0.5, 1.25, -3, 100.123, 1e3, 7, 0, -0.0, 2, 3, 30.01, -30], "<f8")
FILTERS = {
    "delta": (INTEGERS, [numcodecs.Delta("<i4", "<i2")]),
    "delta, big": (INTEGERS.astype(">i8"), [numcodecs.Delta(">i8", ">i4")]),
    "delta of floats": (REALS.astype("<f4"), [numcodecs.Delta("<f4")]),
    "delta that overflows": (np.array([0, 255, 0, 128], "u1"), [numcodecs.Delta("u1")]),
    "times": (np.arange("2000-01-01", "2000-01-13", dtype="M8[D]"), [numcodecs.Delta("<i8", "<i2")]),
    "scale": (REALS, [numcodecs.FixedScaleOffset(offset=-100, scale=10, dtype="<f8", astype="u2")]),
    "scale, float32": (REALS.astype("<f4"), [numcodecs.FixedScaleOffset(offset=0.1, scale=3, dtype="<f4", astype="<f4")]),
    "scale, integers": (INTEGERS, [numcodecs.FixedScaleOffset(offset=-30, scale=1, dtype="<i4", astype="u1")]),
    "scale, int8": (REALS, [numcodecs.FixedScaleOffset(offset=0, scale=1.5, dtype="<f8", astype="i1")]),
    "quantize": (REALS, [numcodecs.Quantize(digits=1, dtype="<f8", astype="<f4")]),
    "astype": (REALS, [numcodecs.AsType(encode_dtype="<f4", decode_dtype="<f8")]),
    "astype, integers": (INTEGERS, [numcodecs.AsType(encode_dtype=">i2", decode_dtype="<i4")]),
    "bitround": (REALS.astype("<f4"), [numcodecs.BitRound(5)]),
    "two": (REALS, [numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f8", astype="<i4"), numcodecs.Delta("<i4", "<i2")]),
    "and bytes": (INTEGERS, [numcodecs.Delta("<i4", "<i2"), numcodecs.Shuffle(2), numcodecs.Fletcher32()]),
    "crc32c": (INTEGERS, [numcodecs.CRC32C()]),
    "crc32c in front": (INTEGERS, [numcodecs.CRC32C(location="start")]),
    "categories": (np.array(["a", "bé", "a", "", "x"], "<U3"), [numcodecs.Categorize(["a", "bé"], dtype="<U3")]),
    "objects": (np.array(["a", "bé", "a", "", "x"], object), [numcodecs.Categorize(["a", "bé"], dtype="|O")]),
}


def write_v2(folder, values, filters, chunk, order="C", compressor=None):
    """As Zarr v2's specification says, with numcodecs."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".zarray").write_text(
        json.dumps(
            {
                "zarr_format": 2,
                "shape": list(values.shape),
                "chunks": list(chunk),
                "dtype": values.dtype.str,
                "compressor": compressor and compressor.get_config(),
                "filters": [f.get_config() for f in filters],
                "fill_value": None,
                "order": order,
            }
        )
    )
    decoded = np.empty_like(values)
    for at in np.ndindex(*(-(-n // c) for n, c in zip(values.shape, chunk))):
        part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))
        padded = np.zeros(chunk, values.dtype)
        padded[tuple(slice(0, n) for n in values[part].shape)] = values[part]
        data = np.array(padded, order=order)
        for f in filters:
            data = f.encode(data)
        data = data.tobytes(order="A") if isinstance(data, np.ndarray) else bytes(data)
        (folder / ".".join(map(str, at))).write_bytes(compressor.encode(data) if compressor else data)
        for f in reversed(filters):
            data = f.decode(data)
        data = np.asarray(data)
        data = data if values.dtype == object else np.frombuffer(data.tobytes(order="A"), values.dtype)
        decoded[part] = data.reshape(chunk, order=order)[tuple(slice(0, n) for n in values[part].shape)]
    return decoded


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_zarr_v2(tmp_path, name, order):
    """numcodecs decodes the chunks that it wrote; what is read here, and by zarr-python from copies, is that."""
    values, filters = FILTERS[name]
    if order == "F":
        values = np.stack([values, values[::-1]]).astype(values.dtype)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/.zgroup").write_text('{"zarr_format": 2}')
    expected = write_v2(tmp_path / "in/a", values, filters, (5,) if order == "C" else (2, 3), order, numcodecs.Zlib(1))
    convert(tmp_path / "in", tmp_path / "copy.zarr", "-q")
    convert(tmp_path / "in", tmp_path / "other.zarr", "-q", "--chunk", "7" if order == "C" else "1x7")
    convert(tmp_path / "in", tmp_path / "shards.zarr", "-q", "--compress", "zstd:1", "--shard", "10" if order == "C" else "4x6")
    for store in ("copy.zarr", "other.zarr", "shards.zarr"):
        got = zarr.open_group(tmp_path / store, mode="r")["a"][...]
        np.testing.assert_array_equal(np.asarray(got, values.dtype), expected)
        assert np.asarray(got, values.dtype).tobytes() == expected.tobytes() or values.dtype == object
        assert verify(tmp_path / "in", tmp_path / store)["exit_status"] == 0
    if values.dtype.kind not in "M":
        run("export", tmp_path / "in", tmp_path / "out.h5", "-q")
        got = debian_python(
            "import h5py, sys; v = h5py.File(sys.argv[1])['a']; "
            "print((v.asstr()[...] if v.dtype.kind in 'OS' else v[...]).tolist())",
            tmp_path / "out.h5",
        )
        assert got.strip() == str(expected.tolist())


def test_fixed_length_text_with_vlen_utf8(tmp_path):
    """As zarr-python 3.0.0 to 3.0.2 wrote it in Zarr v2."""
    (tmp_path / "in/a").mkdir(parents=True)
    (tmp_path / "in/.zgroup").write_text('{"zarr_format": 2}')
    meta = {"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<U2", "compressor": None, "order": "C", "fill_value": ""}
    (tmp_path / "in/a/.zarray").write_text(json.dumps({**meta, "filters": [{"id": "vlen-utf8"}]}))
    (tmp_path / "in/a/0").write_bytes(bytes(numcodecs.VLenUTF8().encode(np.array(["a", "bé", ""], object))))
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q", "--chunk", "2")
    assert list(zarr.open_group(tmp_path / "out.zarr", mode="r")["a"][...]) == ["a", "bé", ""]


def test_shuffled_arrays_that_are_packed_or_rechunked(tmp_path):
    """zarr-python decodes every chunk of them."""
    group = zarr.create_group(tmp_path / "in")
    filters = [numcodecs_v3.Shuffle(elementsize=4)]
    for name, dtype in (("a", "i4"), ("b", "i2")):
        group.create_array(name, shape=(16,), chunks=(16,), dtype=dtype, compressors=filters)[...] = np.arange(16)
    for way in (["--chunk", 3], ["--chunk", 5, "--shard", 15], ["--checksum", "crc32c"]):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        convert(tmp_path / "in", tmp_path / "out", "-q", *way)
        for name in "ab":
            np.testing.assert_array_equal(zarr.open_group(tmp_path / "out", mode="r")[name][...], np.arange(16))


@pytest.mark.parametrize(
    "codecs",
    [
        ["shuffle", "shuffle"],
        ["blosc", "fletcher32"],
        ["fletcher32", "blosc"],
        ["shuffle", "zlib", "fletcher32"],
        ["zstd", "fletcher32"],
    ],
)
def test_export_of_orders_of_codecs(tmp_path, codecs):
    """Written by zarr-python, read by h5py; what is not HDF5's own order is encoded again."""
    make = {
        "shuffle": lambda: numcodecs_v3.Shuffle(elementsize=4),
        "blosc": lambda: zarr.codecs.BloscCodec(cname="lz4", typesize=4),
        "fletcher32": lambda: numcodecs_v3.Fletcher32(),
        "zlib": lambda: numcodecs_v3.Zlib(level=1),
        "zstd": lambda: zarr.codecs.ZstdCodec(level=1),
    }
    group = zarr.create_group(tmp_path / "in")
    values = np.arange(64, dtype="i4") % 9
    group.create_array("a", shape=(64,), chunks=(32,), dtype="i4", compressors=[make[c]() for c in codecs])[...] = values
    run("export", tmp_path / "in", tmp_path / "any.h5", "-q")  # readable with the plugins, which h5py's wheel does not have
    convert(tmp_path / "any.h5", tmp_path / "back.zarr", "-q")
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "back.zarr", mode="r")["a"][...], values)
    run("export", tmp_path / "in", tmp_path / "out.h5", "-q", "--filters", "standard")
    got = debian_python("import h5py, sys; print(h5py.File(sys.argv[1])['a'][...].tolist())", tmp_path / "out.h5")
    assert json.loads(got) == values.tolist()


def test_stores_of_netcdf_c(tmp_path):
    """NCZarr has _FillValue as a number: xarray opens the source, and the copy of it."""
    if not shutil.which("ncgen"):
        pytest.skip("ncgen is missing")
    (tmp_path / "t.cdl").write_text(
        "netcdf t { dimensions: x=4; variables: float a(x); a:_FillValue=-9.f; a:valid_max=Infinityf; "
        "int b(x); b:_FillValue=7; double c(x); c:_FillValue=NaN; data: a=1,2,3,_; b=1,2,3,7; c=1,2,3,_; }"
    )
    subprocess.run(["ncgen", "-4", "-o", tmp_path / "t.nc", tmp_path / "t.cdl"], check=True)
    made = subprocess.run(["nccopy", tmp_path / "t.nc", f"file://{tmp_path}/n.zarr#mode=nczarr,file"], check=False)
    if made.returncode != 0:
        pytest.skip("this netCDF-C has no NCZarr")
    convert(tmp_path / "n.zarr", tmp_path / "out.zarr", "-q")
    source = xr.open_zarr(tmp_path / "n.zarr", consolidated=False).load()
    copy = xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load()
    for name in ("a", "b", "c"):
        np.testing.assert_array_equal(source[name], copy[name])
    assert np.isnan(copy["a"][3]) and copy["a"].attrs["valid_max"] == np.inf


def test_a_group_without_its_parents(tmp_path):
    group = zarr.create_group(tmp_path / "in")
    group.create_array("foo/bar/baz", shape=(4,), dtype="i4")[...] = np.arange(4)
    for parent in ("foo", "foo/bar"):
        os.remove(tmp_path / "in" / parent / "zarr.json")
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "in", mode="r")["foo/bar/baz"][...], np.arange(4))
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q", "--chunk", 3)
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "out.zarr", mode="r")["foo/bar/baz"][...], np.arange(4))


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_references_of_kerchunk(tmp_path, form):
    pytest.importorskip("kerchunk")
    from kerchunk.hdf import SingleHdf5ToZarr

    debian_python(
        "import h5py, numpy as np, sys\nwith h5py.File(sys.argv[1], 'w') as f:\n"
        "  f.create_dataset('a', data=np.arange(60.).reshape(6, 10), chunks=(4, 5), compression='gzip')\n"
        "  f.create_dataset('g/b', data=np.arange(5, dtype='i2'))",
        tmp_path / "in.h5",
    )
    references = SingleHdf5ToZarr(str(tmp_path / "in.h5")).translate()
    name = tmp_path / ("r.json" if form == "json" else "r.parq")
    if form == "json":
        name.write_text(json.dumps(references))
    else:
        from kerchunk.df import refs_to_dataframe

        refs_to_dataframe(references, str(name))
    convert(name, tmp_path / "out.zarr", "-q", "--external", tmp_path)
    got = zarr.open_group(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(got["a"][...], np.arange(60.0).reshape(6, 10))
    np.testing.assert_array_equal(got["g/b"][...], np.arange(5))
