# SPDX-License-Identifier: BSL-1.0
"""Shards that zarr-python writes, read by `zarrbits verify`:
every data type, byte order, codec and place of the index that may occur inside of one.
Shards of `zarrbits convert` with gaps in them, read by zarr-python and tensorstore."""

import json
import os
import subprocess
import warnings

import h5py
import numpy as np
import pytest
import tensorstore
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, VLenUTF8Codec, ZstdCodec

COMMAND = os.environ["ZARRBITS_COMMAND"]
CODECS = {
    "plain": [],
    "gzip": [GzipCodec(level=6)],
    "zstd": [ZstdCodec(level=3)],
    "blosc": [BloscCodec(typesize=4, cname="lz4", shuffle="shuffle")],
    "crc32c": [Crc32cCodec()],
    "gzip and crc32c": [GzipCodec(level=1), Crc32cCodec()],
}
SHAPE, SHARD, CHUNK = (50, 70), (20, 24), (5, 8)


def values_of(dtype):
    x = np.random.default_rng(3).normal(size=SHAPE) * 100
    x[10:30, 16:56] = 0  # whole chunks, and a whole shard, of the fill value
    if np.dtype(dtype).kind == "b":
        return x > 0
    return (x + 1j * x).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def verify(source, store):
    run = subprocess.run([COMMAND, "verify", "--json", source, store], capture_output=True, text=True)
    return run.returncode, json.loads(run.stdout)


@pytest.fixture()
def place(tmp_path):
    source, store = tmp_path / "in.h5", tmp_path / "out.zarr"
    zarr.create_group(store, zarr_format=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield source, store


def write(store, name, values, inner, **sharding):
    a = zarr.create_array(
        store / name,
        shape=values.shape,
        dtype=values.dtype,
        chunks=SHARD,
        fill_value=0,
        filters=None,
        compressors=None,
        serializer=ShardingCodec(chunk_shape=CHUNK, codecs=inner, **sharding),
    )
    a[...] = values


def test_types_codecs_and_both_places_of_the_index(place):
    source, store = place
    n = 0
    with h5py.File(source, "w") as f:
        for dtype in ("?", "i1", "u2", "i4", "f4", "f8", "c8"):
            for endian in ("little",) if np.dtype(dtype).itemsize == 1 else ("little", "big"):
                for codec, after in CODECS.items():
                    for where in ("start", "end"):
                        name, values = f"{np.dtype(dtype)} {endian} {codec} {where}", values_of(dtype)
                        first = BytesCodec(endian=None if np.dtype(dtype).itemsize == 1 else endian)
                        write(store, name, values, [first, *after], index_location=where)
                        f.create_dataset(name, data=values, chunks=CHUNK)
                        n += 1
    status, report = verify(source, store)
    assert (status, report["findings"], report["datasets"]["equal"]) == (0, [], n)
    assert report["elements"] == {"equal": n * 50 * 70, "unchecked": 0}
    # and it is looked at: the last byte of a chunk's data, or of a checksum
    path = store / "float64 big plain start" / "c/1/1"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    status, report = verify(source, store)
    assert (status, [f["path"] for f in report["findings"]]) == (1, ["/float64 big plain start"])


def test_transposed_chunks_strings_and_an_index_without_checksum(place):
    source, store = place
    with h5py.File(source, "w") as f:
        write(store, "transposed", values_of("i4"), [TransposeCodec(order=(1, 0)), BytesCodec()])
        f.create_dataset("transposed", data=values_of("i4"), chunks=CHUNK)
        write(store, "no checksum", values_of("i4"), [BytesCodec()], index_codecs=[BytesCodec()])
        f.create_dataset("no checksum", data=values_of("i4"), chunks=CHUNK)
        write(store, "big index", values_of("i4"), [BytesCodec()], index_codecs=[BytesCodec(endian="big"), Crc32cCodec()])
        f.create_dataset("big index", data=values_of("i4"), chunks=CHUNK)
        text = np.array([f"ü{i}" for i in range(30)], dtype=object)
        a = zarr.create_array(
            store / "text",
            shape=(30,),
            dtype="string",
            chunks=(10,),
            filters=None,
            compressors=None,
            serializer=ShardingCodec(chunk_shape=(5,), codecs=[VLenUTF8Codec(), GzipCodec(level=5)]),
        )
        a[...] = text
        f.create_dataset("text", data=text, dtype=h5py.string_dtype(), chunks=(5,))
    status, report = verify(source, store)
    assert (status, report["findings"], report["datasets"]["equal"]) == (0, [], 4)


def test_shards_inside_of_shards_are_refused_by_name(place):
    source, store = place
    with h5py.File(source, "w") as f:
        write(store, "nested", values_of("i4"), [ShardingCodec(chunk_shape=(5, 4))])
        f.create_dataset("nested", data=values_of("i4"), chunks=CHUNK)
    status, report = verify(source, store)
    assert (status, report["findings"][0]["outcome"]) == (3, "unchecked")
    assert "shards inside shards" in report["findings"][0]["reason"]


@pytest.mark.parametrize("profile", ["portable", "native"])
def test_chunks_that_are_aligned_after_a_gap(place, profile):
    source, store = place[0], place[1].with_name("shards.zarr")
    rng = np.random.default_rng(4)
    values = rng.random((512, 1024)).astype("f4")
    with h5py.File(source, "w") as f:
        f.create_dataset("plain", data=values, chunks=(64, 1024))
        f.create_dataset("contiguous", data=rng.random((700, 1024)))
        d = f.create_dataset("deflated", shape=values.shape, dtype="f4", chunks=(64, 1024), compression="gzip", shuffle=True)
        for i in rng.permutation(8):  # the file has them in another order
            d[i * 64 : i * 64 + 64] = values[i * 64 : i * 64 + 64]
        wanted = {name: f[name][...] for name in f}
    subprocess.run([COMMAND, "convert", "-q", "--profile", profile, "--shard", "256,1024", source, store], check=True)
    group = zarr.open_group(store, mode="r")
    for name, all_values in wanted.items():
        assert np.array_equal(group[name][...], all_values)
        assert np.array_equal(group[name][60:70, 3:9], all_values[60:70, 3:9])
    names = wanted if profile == "portable" else ["plain", "contiguous"]  # tensorstore knows no numcodecs.* codecs
    for name in names:
        array = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store / name)}}).result()
        assert np.array_equal(array.read().result(), wanted[name])
        assert np.array_equal(array[60:70, 3:9].read().result(), wanted[name][60:70, 3:9])
    assert verify(source, store)[0] == 0
    if profile == "native":  # there are gaps: else nothing was tested
        index = np.frombuffer((store / "deflated/c/0/0").read_bytes()[-4 * 16 - 4 : -4], "<u8").reshape(4, 2)
        assert index[0, 0] > 0 and np.any(index[1:, 0] > index[:-1].sum(axis=1))
