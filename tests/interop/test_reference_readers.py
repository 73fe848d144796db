# SPDX-License-Identifier: BSL-1.0
"""Who reads references: the table of docs/reference/readers.md ("Who reads references"), each cell made by opening them.
xarray has to find what it finds in the HDF5 file; a reader that has learnt a row, or forgotten one, fails here."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import warnings

import h5py
import hdf5plugin
import numpy as np
import pytest
import zarr

import zarrbits
from conftest import HERE, ROOT, run
from test_virtual_stores import group_of
from virtual_peers import VALUES, dataset, empty_chunks, filter_mask

xr = pytest.importorskip("xarray")
pytest.importorskip("kerchunk")
pytest.importorskip("virtualizarr")
pytest.importorskip("icechunk")
pytestmark = pytest.mark.filterwarnings("ignore")
HOW = {"chunks": (8, 30)}


def never_written(path):
    """Chunks that read as a value that no attribute names."""
    with h5py.File(dataset(path), "r+") as f:
        del f["v"]
        d = f.create_dataset("v", VALUES.shape, "i2", chunks=(5, 30), fillvalue=-7)
        d[5:10] = VALUES[5:10]
        for i, name in enumerate("yx"):
            d.dims[i].attach_scale(f[name])


def missing_values(path):
    with h5py.File(dataset(path, VALUES.astype("f4"), **HOW), "r+") as f:
        f["v"].attrs["_FillValue"] = VALUES[0, 0].astype("f4")


STRUCT = np.zeros((3, 4), [("a", "<i2"), ("b", "<f8")])
STRUCT["a"], STRUCT["b"] = VALUES[:3, :4], 0.5
TEXT = np.array([[f"{y} é {x}" for x in range(4)] for y in range(3)], object)
ROWS = {
    "no filter": lambda path: dataset(path, **HOW),
    "shuffle and deflate": lambda path: dataset(path, compression="gzip", shuffle=True, **HOW),
    "the same, and fletcher32": lambda path: dataset(path, compression="gzip", shuffle=True, fletcher32=True, **HOW),
    "Zstandard": lambda path: dataset(path, **hdf5plugin.Zstd(), **HOW),
    "Blosc": lambda path: dataset(path, **hdf5plugin.Blosc("lz4"), **HOW),
    "LZ4": lambda path: dataset(path, **hdf5plugin.LZ4(), **HOW),
    "bzip2": lambda path: dataset(path, **hdf5plugin.BZip2(), **HOW),
    "LZF": lambda path: dataset(path, compression="lzf", **HOW),
    "packbits": lambda path: dataset(path, VALUES & 0x7FF, **HOW, **zarrbits.packbits(bits=12)),
    "big-endian": lambda path: dataset(path, VALUES.astype(">i2"), compression="gzip", **HOW),
    "complex": lambda path: dataset(path, (VALUES + 1j).astype("c8"), **HOW),
    "strings": lambda path: dataset(path, TEXT, chunks=(2, 4), dtype=h5py.string_dtype()),
    "struct": lambda path: dataset(path, STRUCT),
    "filter mask": filter_mask,
    "missing values": missing_values,
    "chunks never written": never_written,
    "the same, of zeros": lambda path: empty_chunks_of_zeros(path),
}


def empty_chunks_of_zeros(path):
    empty_chunks(path)
    with h5py.File(path, "r+") as f:
        del f["v"]
        d = f.create_dataset("v", VALUES.shape, "i2", chunks=(5, 30), compression="gzip")
        d[5:10] = VALUES[5:10]
        for i, name in enumerate("yx"):
            d.dims[i].attach_scale(f[name])


def opened(path):
    return xr.open_dataset(path, engine="h5netcdf").load()


def by_fsspec(refs):
    store = zarr.storage.FsspecStore.from_url(
        "reference://", storage_options={"fo": str(refs), "remote_protocol": "file"}, read_only=True
    )
    return xr.open_zarr(store, consolidated=False, zarr_format=3, chunks=None)


def by_kerchunk(refs):
    """(Without dask, whose arrays of structs xarray does not compare. Of Parquet, fsspec looks for the protocol in the rows of
    whatever comes first, also if that is not an array.)"""
    return xr.open_dataset(
        str(refs),
        engine="kerchunk",
        storage_options={"remote_protocol": "file"},
        open_dataset_options={"chunks": None},
    )


def by_package(refs):
    return xr.open_zarr(zarrbits.open_references(refs), consolidated=False, chunks=None)


def by_icechunk(refs):
    zarrbits.to_icechunk(refs, f"{refs}.repository")
    return xr.open_zarr(group_of(f"{refs}.repository").store, consolidated=False, chunks=None)


def by_virtualizarr(refs):
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import KerchunkJSONParser

    store = KerchunkJSONParser()(f"file://{refs}", ObjectStoreRegistry({"file://": LocalStore()}))
    return xr.open_zarr(store, consolidated=False, zarr_format=3, chunks=None)


def by_gdal(refs, dtype, form="json"):
    done = subprocess.run(
        [sys.executable, HERE / "gdal_reader.py", f'ZARR:"/vsikerchunk_{form}_ref/{{{refs}}}"', "v", dtype.name],
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        raise ValueError(done.stderr)
    shape, data = done.stdout.split("\n")[:2]
    return np.frombuffer(bytes.fromhex(data), dtype).reshape([int(n) for n in shape.split()])


# the column of the table: form of the references, whose metadata they have, and the reader
READERS = {
    'xarray, `engine="kerchunk"`': ("json", "both", by_kerchunk),
    "the same, of Parquet": ("parquet", "both", by_kerchunk),
    "fsspec, xarray": ("json", "both", by_fsspec),
    "`open_references`": ("json", "both", by_package),
    "`to_icechunk`": ("json", "both", by_icechunk),
    "VirtualiZarr, of `--zarr-format 3`": ("json", "3", by_virtualizarr),
    "GDAL 3.12": ("json", "both", by_gdal),
}


def table():
    text = (ROOT / "docs/reference/readers.md").read_text(encoding="utf-8")
    lines = re.search(r"\n## Who reads references\n.*?\n(\|.*?)\n\n", text, re.S).group(1).splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    assert cells[0][1:] == list(READERS), cells[0]
    return {row[0]: dict(zip(READERS, row[1:])) for row in cells[2:]}


def outcome(make, refs, path):
    """ "yes", "-": an error, "left out": there is no such variable, or "wrong"."""
    want = opened(path)
    try:
        if make is by_gdal and want.v.dtype.kind not in "iufc":
            return "not tried"
        if make is by_gdal:
            return "yes" if np.array_equal(by_gdal(refs, want.v.dtype.newbyteorder("=")), h5py.File(path)["v"][()]) else "wrong"
        got = make(refs).load()
    except Exception as e:
        print(type(e).__name__, str(e)[:500])
        return "-"
    if "v" not in got:
        return "left out"
    try:
        xr.testing.assert_identical(want, got)
        return "yes"
    except AssertionError as e:
        print(e)
        return "wrong"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ROWS)
def test_row(tmp_path, name, reader):
    form, chosen, make = READERS[reader]
    if make is by_gdal and importlib.util.find_spec("rasterio") is None:
        pytest.skip("there is no GDAL (rasterio)")
    ROWS[name](tmp_path / "in.nc")
    refs = tmp_path / f"refs.{form}"
    run("convert", "-q", "--virtual", "--convention", "netcdf", "--zarr-format", chosen, tmp_path / "in.nc", refs)
    does = outcome(make, refs, tmp_path / "in.nc")
    if os.environ.get("ZARRBITS_PRINT_TABLE"):
        print(f"CELL|{name}|{reader}|{does}")
        return
    known = table()[name][reader]
    assert does == known, f'{reader}, {name}: the table in docs/reference/readers.md says "{known}", and it is "{does}"'


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_references_that_are_renamed(tmp_path, form):
    """The sources move, and every reader finds them where they are; all else is what it was."""
    here, there, refs = tmp_path / "here", tmp_path / "there", tmp_path / f"refs.{form}"
    here.mkdir()
    dataset(here / "in.nc", compression="gzip", shuffle=True, **HOW)
    with h5py.File(here / "in.nc", "r+") as f:
        f["v"].id.write_direct_chunk((0, 0), VALUES[:8].tobytes(), 3)  # which is copied
    run("convert", "-q", "--virtual", "--convention", "netcdf", "--inline", "300", here / "in.nc", refs)
    here.rename(there)
    assert zarrbits.rename_references(refs, f"file://{here}", f"file://{there}") == 1
    assert sorted(os.listdir(tmp_path)) == [refs.name, f"{refs.name}.data", "there"]
    want = opened(there / "in.nc")
    for make in by_fsspec, by_kerchunk, by_package:
        xr.testing.assert_identical(want, make(refs).load())
    run("verify", there / "in.nc", refs)
    with pytest.raises(zarrbits.Error, match="no reference of"):
        zarrbits.rename_references(refs, f"file://{here}", "s3://bucket")


def columns_of(folder):
    """What pyarrow and fastparquet find in each Parquet file of a folder."""
    fastparquet, parquet = pytest.importorskip("fastparquet"), pytest.importorskip("pyarrow.parquet")
    found = {}
    for path in sorted(folder.rglob("*.parq")):
        rows = parquet.read_table(path).to_pydict()
        other = fastparquet.ParquetFile(str(path)).to_pandas()
        for name in rows.keys() & {"offset", "size"}:
            assert other[name].dtype == "int64" and other[name].tolist() == rows[name]
        assert list(other.columns) == list(rows)
        found[str(path.relative_to(folder))] = rows
    return found


def test_parquet_that_is_renamed_is_as_if_it_was_made_so(tmp_path):
    """Many sources, and rows with bytes of their own and with nothing."""
    from numpy.random import default_rng

    noise = default_rng(4).integers(0, 100, (300, 6)).astype("i2")
    for month in range(300):
        with h5py.File(tmp_path / f"é{month:03}.h5", "w") as f:
            f.create_dataset("v", data=noise[month : month + 1], chunks=(1, 2), maxshape=(None, 6), compression="gzip")
            d = f.create_dataset("w", (1, 6), "i4", chunks=(1, 2), maxshape=(None, 6), compression="gzip")
            if month % 3:
                d[:, :4] = month
            f.create_dataset("text", data=[f"é{month}"], dtype=h5py.string_dtype(), maxshape=(None,), chunks=(1,))
            for name in "v", "w", "text":
                f[name].dims[0].label = "t"
    join = ["-q", "--virtual", "--concat", "t", "--order", "given", *sorted(tmp_path.glob("*.h5"))]
    run("convert", *join, tmp_path / "refs.parquet")
    run("convert", *join, tmp_path / "told.parquet", "--base", f"{tmp_path}=https://host/a")
    assert zarrbits.rename_references(tmp_path / "refs.parquet", f"file://{tmp_path}", "https://host/a") == 300
    renamed, told = columns_of(tmp_path / "refs.parquet"), columns_of(tmp_path / "told.parquet")
    assert renamed == told and any(p and "%C3%A9" in p for rows in told.values() for p in rows.get("path", []))
    with open(tmp_path / "refs.parquet/.zmetadata") as a, open(tmp_path / "told.parquet/.zmetadata") as b:
        assert json.load(a) == json.load(b)


def test_what_of_parquet_cannot_be_renamed_stays(tmp_path):
    """A part that is damaged: an error, and nothing is changed."""
    dataset(tmp_path / "in.nc", compression="gzip", **HOW)
    run("convert", "-q", "--virtual", tmp_path / "in.nc", tmp_path / "refs.parquet")
    part = tmp_path / "refs.parquet/v/refs.0.parq"
    part.write_bytes(part.read_bytes()[:-9])
    before = {p: p.read_bytes() for p in (tmp_path / "refs.parquet").rglob("*") if p.is_file()}
    with pytest.raises(zarrbits.Error, match="refs.0.parq.*make the references again"):
        zarrbits.rename_references(tmp_path / "refs.parquet", f"file://{tmp_path}", "s3://bucket")
    assert before == {p: p.read_bytes() for p in (tmp_path / "refs.parquet").rglob("*") if p.is_file()}
    assert sorted(os.listdir(tmp_path)) == ["in.nc", "refs.parquet"]


def test_gdal_without_its_driver_for_parquet(tmp_path):
    pytest.importorskip("rasterio")
    ROWS["missing values"](tmp_path / "in.nc")
    run("convert", "-q", "--virtual", "--convention", "netcdf", tmp_path / "in.nc", tmp_path / "refs.parquet")
    try:
        got = by_gdal(tmp_path / "refs.parquet", np.dtype("f4"), "parquet")
    except ValueError:
        return
    assert not np.array_equal(got, VALUES), "it reads them by now: docs/reference/readers.md can say so"


def test_virtualizarr_and_both(tmp_path):
    ROWS["no filter"](tmp_path / "in.nc")
    run("convert", "-q", "--virtual", tmp_path / "in.nc", tmp_path / "refs.json")
    with pytest.raises(ValueError, match="as a chunk key"):
        by_virtualizarr(tmp_path / "refs.json")


def test_one_file_for_all(tmp_path):
    """zarr-python warns where two formats are beside each other, and takes v3; open_references() does not."""
    ROWS["shuffle and deflate"](tmp_path / "in.nc")
    run("convert", "-q", "--virtual", tmp_path / "in.nc", tmp_path / "refs.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert zarr.open_group(zarrbits.open_references(tmp_path / "refs.json"), mode="r").metadata.zarr_format == 3
    run("convert", "-q", "--virtual", "--zarr-format", "2", tmp_path / "in.nc", tmp_path / "refs2.json")
    assert zarr.open_group(zarrbits.open_references(tmp_path / "refs2.json"), mode="r").metadata.zarr_format == 2
    with pytest.raises(zarrbits.Error, match="only the metadata of Zarr v2"):
        zarrbits.to_icechunk(tmp_path / "refs2.json", tmp_path / "repository")
