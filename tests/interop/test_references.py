# SPDX-License-Identifier: BSL-1.0
"""References to the chunks of an HDF5 file (as kerchunk makes them),
read through fsspec and zarr-python with the numcodecs codec of the package."""

import json

import h5py
import numcodecs
import numpy as np
import pytest
import zarr

import zarrbits

RNG = np.random.default_rng(4)


def references(path, name):
    """Of one dataset: Zarr v2, with each chunk as [file, offset, size]."""
    with h5py.File(path) as f:
        d = f[name]
        codec = zarrbits.NumcodecsPackbits.of_dataset(d)
        dtype = np.dtype(d.dtype.str if d.dtype.kind != "b" else "|b1")
        array = {
            "zarr_format": 2,
            "shape": d.shape,
            "chunks": d.chunks,
            "dtype": dtype.str,
            "fill_value": None,
            "order": "C",
            "compressor": None,
            "filters": [codec.get_config()],
        }
        refs = {".zgroup": json.dumps({"zarr_format": 2}), "x/.zarray": json.dumps(array), "x/.zattrs": "{}"}
        for i in range(d.id.get_num_chunks()):
            chunk = d.id.get_chunk_info(i)
            key = ".".join(str(o // c) for o, c in zip(chunk.chunk_offset, d.chunks))
            refs[f"x/{key}"] = [str(path), chunk.byte_offset, chunk.size]
        return refs, d[()]


COLOURS = h5py.enum_dtype({"RED": 0, "GREEN": 3}, basetype="i1")
CASES = {
    "camera": (RNG.integers(0, 4096, (50, 70), dtype="u2"), (16, 32), zarrbits.packbits(bits=12)),
    "big_endian": (RNG.integers(0, 4096, (50, 70)).astype(">u2"), (16, 32), zarrbits.packbits(bits=12)),
    "mask": (RNG.random((50, 70)) > 0.5, (7, 9), zarrbits.packbits()),
    "counted": (RNG.random((50, 70)) > 0.5, (7, 9), zarrbits.packbits(padding_encoding="first_byte")),
    "signed": (RNG.integers(-16, 16, (50, 70), dtype="i4"), (13, 70), zarrbits.packbits(bits=5)),
    "high": (RNG.integers(0, 16, (50, 70), dtype="u2") << 12, (13, 7), zarrbits.packbits(bits=4, first_bit=12)),
    "all_bits": (RNG.integers(0, 256, (50, 70), dtype="u1"), (13, 7), zarrbits.packbits(bits=8)),
    "float": (RNG.random((50, 70)).astype("f4").view("u4") >> 8 << 8, (13, 7), zarrbits.packbits(bits=24, first_bit=8)),
}


@pytest.mark.parametrize("name", CASES)
def test_references_to_packed_chunks(tmp_path, name):
    values, chunks, options = CASES[name]
    if name == "float":
        values = values.view("f4")
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=values, chunks=chunks, **options)
    check(path, values)


def check(path, values):
    refs, by_h5py = references(path, "x")
    store = zarr.storage.FsspecStore.from_url(
        "reference://", storage_options={"fo": refs, "remote_protocol": "file"}, read_only=True
    )
    back = zarr.open_group(store, mode="r", zarr_format=2)["x"]
    assert np.array_equal(by_h5py, values) and back.dtype == values.dtype
    assert back[:].tobytes() == values.tobytes()
    assert np.array_equal(back[3:20, 5:40:3], values[3:20, 5:40:3])


def test_chunks_that_the_filter_left_unpacked(tmp_path):
    values = RNG.integers(0, 4096, (64, 32), dtype="u2")
    values[20, 20] = 60000
    with h5py.File(tmp_path / "in.h5", "w") as f:
        d = f.create_dataset("x", data=values, chunks=(16, 32), **zarrbits.packbits(bits=12))
        sizes = {d.id.get_chunk_info(i).size for i in range(4)}
    assert sizes == {16 * 32 * 2, 16 * 32 * 12 // 8}
    check(tmp_path / "in.h5", values)


def test_an_enumeration_that_is_unsigned_within_a_signed_type(tmp_path):
    values = RNG.integers(0, 2, (64, 32), dtype="i1") * 3
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("x", data=values, dtype=COLOURS, chunks=(16, 32), **zarrbits.packbits())
    assert values.max() == 3
    check(tmp_path / "in.h5", values)


def test_it_is_in_numcodecs_registry_and_comes_back():
    values = RNG.integers(-100, 100, 1000).astype(">i2")
    for options in ({"bits": 8}, {"bits": 9, "elements": 1000}, {"bits": 9, "padding_encoding": "last_byte"}, {}):
        codec = zarrbits.NumcodecsPackbits(">i2", **options)
        again = numcodecs.get_codec(codec.get_config())
        assert again == codec and type(again) is zarrbits.NumcodecsPackbits
        packed = again.encode(values)
        assert len(packed) <= values.nbytes and np.array_equal(again.decode(bytes(packed)), values)
        out = np.empty_like(values)
        again.decode(packed, out=out)
        assert np.array_equal(out, values)


def test_what_cannot_be_decoded_is_refused():
    for wrong, sentence in (
        (lambda: zarrbits.NumcodecsPackbits("u2", bits=3).decode(b"abc"), "pass elements"),
        (lambda: zarrbits.NumcodecsPackbits("u2", bits=12, elements=4).decode(b"abc"), "3 bytes where 4 elements"),
        (lambda: zarrbits.NumcodecsPackbits("u2", bits=12, padding_encoding="first_byte").decode(b""), "empty"),
        (
            lambda: zarrbits.NumcodecsPackbits("u2", bits=12, padding_encoding="first_byte").decode(b"\xff\x00"),
            "(count byte|bytes where)",
        ),
        (lambda: zarrbits.NumcodecsPackbits("u2", bits=17), "bits 0 to 15"),
        (lambda: zarrbits.NumcodecsPackbits("S3"), "not a number"),
        (lambda: zarrbits.NumcodecsPackbits.of_filter([12]), "not values that"),
        (lambda: zarrbits.NumcodecsPackbits.of_filter([12, 0, 0, 0, 0x5A504201, 2, 1, 3, 1, 0, 2, 0]), "not values that"),
        (
            lambda: zarrbits.NumcodecsPackbits.of_filter([1, 17, 0, 0, 0x5A504201, 1, 1, 1 | 1 << 18, 8, 0, 2, 0]),
            "numcodecs' own",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            wrong()


@pytest.mark.parametrize("form", ["refs.json", "fastparquet", "pyarrow"])
def test_virtual_stores_of_the_command(tmp_path, form):
    """`zarrbits convert --virtual`, opened by zarr-python and xarray through fsspec: what h5py reads.
    Of Parquet by each of its two readers."""
    import os
    import subprocess

    import xarray as xr

    if form != "refs.json":
        pytest.importorskip(form)
    out = tmp_path / (form if form == "refs.json" else "refs.parquet")
    values = RNG.integers(0, 1000, (40, 30)).astype("i4")
    paths = []
    for i in range(3):
        paths.append(tmp_path / f"d{i}.h5")
        with h5py.File(paths[-1], "w") as f:
            f["t"] = np.arange(10 * i, 10 * i + 10)
            f["t"].make_scale("t")
            f.create_dataset(
                "packed", data=values[10 * i : 10 * i + 10], chunks=(5, 30), compression="gzip", shuffle=True, fletcher32=True
            )
            f.create_dataset("plain", data=values[10 * i : 10 * i + 10])
            f.create_dataset("text", data=[f"row {k}" for k in range(10)], dtype=h5py.string_dtype())
            for name in ("packed", "plain", "text"):
                f[name].dims[0].attach_scale(f["t"])
    subprocess.run(
        [os.environ["ZARRBITS_COMMAND"], "convert", "-q", "--virtual", "--concat", "t", *map(str, paths), str(out)], check=True
    )
    import fsspec
    from fsspec.implementations.reference import LazyReferenceMapper

    fo = str(out) if form == "refs.json" else LazyReferenceMapper(str(out), engine=form)
    files = fsspec.filesystem("reference", fo=fo, remote_protocol="file", asynchronous=True, skip_instance_cache=True)
    store = zarr.storage.FsspecStore(files, read_only=True)
    group = zarr.open_group(store, mode="r")
    assert np.array_equal(group["packed"][:], values[:30]) and np.array_equal(group["plain"][:], values[:30])
    ds = xr.open_zarr(store, consolidated=False)
    assert ds.t.values.tolist() == list(range(30)) and ds.text.values.tolist() == [f"row {k}" for k in range(10)] * 3
    assert np.array_equal(ds.packed.sel(t=[3, 17]).values, values[[3, 17]])
