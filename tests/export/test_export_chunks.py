# SPDX-License-Identifier: BSL-1.0
"""Which chunks are copied, and that the copies are what HDF5's filters take. The chunks are those of other implementations
(tests/golden/chunks.json), of Python's zlib, gzip and bz2, and of libhdf5."""

import base64
import gzip
import json
import os
import struct
import zlib

import h5py
import numpy as np
import pytest

from harness import convert, refused, run, verify
from test_export import array, group, node

with open(os.path.join(os.path.dirname(os.environ["ZARRBITS_GOLDEN"]), "chunks.json"), encoding="utf-8") as golden:
    GOLDEN = json.load(golden)["zarr"]
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
IDS = {
    "gzip": 1,
    "zstd": 32015,
    "blosc": 32001,
    "numcodecs.zlib": 1,
    "numcodecs.bz2": 307,
    "numcodecs.lz4": 32004,
    "numcodecs.shuffle": 2,
    "numcodecs.fletcher32": 3,
}


def exported(folder, *options, status=0):
    """The file, and the report's entries by path, of the store in the folder."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    done = run("export", store, back, "-q", "--json", "--overwrite", *(options or ["--filters", "any"]), status=status)
    return back, {o["path"]: o for o in json.loads(done.stdout)["objects"] if o["kind"] == "dataset"}


def raw(path, name, at=(0,)):
    with h5py.File(path) as f:
        return f[name].id.read_direct_chunk(at)[1]


def filters(path, name):
    with h5py.File(path) as f:
        plist = f[name].id.get_create_plist()
        return [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]


def put(folder, name, dtype, codecs, chunk, elements):
    """An array of one chunk."""
    data = np.zeros(elements, dtype)
    array(
        os.path.join(folder, "s.zarr", name),
        data,
        (elements,),
        [LITTLE if data.itemsize > 1 else {"name": "bytes"}, *codecs],
        chunks=False,
    )
    os.makedirs(os.path.join(folder, "s.zarr", name, "c"))
    with open(os.path.join(folder, "s.zarr", name, "c", "0"), "wb") as f:
        f.write(chunk)


@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_chunks_of_other_implementations(folder, number):
    case = GOLDEN[number]
    chunk, values = base64.b64decode(case["chunk"]), base64.b64decode(case["values"])
    dtype, names = np.dtype(case["type"]), [c["name"] for c in case["codecs"]]
    if any(n not in IDS for n in names):
        pytest.skip(f"{names} are not codecs of chunks of numbers")
    group(os.path.join(folder, "s.zarr"))
    put(folder, "x", dtype, case["codecs"], chunk, len(values) // dtype.itemsize)
    back, objects = exported(folder)
    assert filters(back, "x") == [IDS[n] for n in names]
    have = raw(back, "x")
    if names == ["gzip"]:
        assert zlib.decompress(have) == values and have[2:-4] == chunk[-len(have) - 2 : -8][-len(have[2:-4]) :]
        assert objects["/x"]["outcome"] == "rewrapped"
    elif names == ["numcodecs.lz4"]:
        # a block as long as its content would be taken for the content
        block = values if len(chunk) - 4 == len(values) else chunk[4:]
        assert have == struct.pack(">QII", len(values), len(values), len(block)) + block
    else:
        assert have == chunk and objects["/x"]["outcome"] == "raw"
    # the same with what every libhdf5 has
    back, _ = exported(folder, "--filters", "standard")
    with h5py.File(back) as f:
        assert f["x"][()].tobytes() == values
    assert set(filters(back, "x")) <= {1, 2, 3}


def test_gzip_headers_and_members(folder):
    values = np.arange(4000, dtype="<u2").tobytes()
    plain = gzip.compress(values)
    named = plain[:3] + b"\x1c" + plain[4:10] + b"\x03\x00abc" + b"name\0" + b"comment\0" + plain[10:]
    two = gzip.compress(values[:1000]) + gzip.compress(values[1000:])
    store = os.path.join(folder, "s.zarr")
    group(store)
    for name, chunk in {"plain": plain, "named": named, "two": two}.items():
        put(folder, name, "<u2", [{"name": "gzip", "configuration": {"level": 5}}], chunk, 4000)
    back, _ = exported(folder)
    for name in ("plain", "named", "two"):
        assert zlib.decompress(raw(back, name)) == values, name
    assert raw(back, "plain")[2:-4] == plain[10:-8] == raw(back, "named")[2:-4]


@pytest.mark.parametrize("how", ["short", "long", "checksum", "cut"])
@pytest.mark.parametrize("codec", ["none", "gzip", "numcodecs.zlib", "numcodecs.bz2"])
def test_a_damaged_chunk_never_gets_into_the_file(folder, codec, how):
    """HDF5 before 2.2 gives readers of a short chunk what lies in memory after it."""
    import bz2

    n = {"short": 999, "long": 1001}.get(how, 1000)
    make = {"none": bytes, "gzip": gzip.compress, "numcodecs.zlib": zlib.compress, "numcodecs.bz2": bz2.compress}[codec]
    chunk = bytearray(make(np.arange(n, dtype="<u2").tobytes()))
    if how == "checksum" and codec == "none":
        pytest.skip("no codec has a checksum")
    if how == "checksum":
        chunk[-6] ^= 1
    if how == "cut":
        chunk = chunk[:-3]
    group(os.path.join(folder, "s.zarr"))
    # of two chunks, because a single one without compression is not a chunk in the file
    put(folder, "x", "<u2", [] if codec == "none" else [{"name": codec, "configuration": {"level": 5}}], bytes(chunk), 1000)
    with open(os.path.join(folder, "s.zarr/x/zarr.json"), encoding="utf-8") as f:
        document = json.load(f)
    node(os.path.join(folder, "s.zarr/x"), {**document, "shape": [1500]})
    said = refused("export", "-q", os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5"))
    assert 's.zarr" is damaged: "/x": chunk 0: ' in said and "--keep-going" in said
    assert not os.path.exists(os.path.join(folder, "b.h5"))
    back, objects = exported(folder, "--keep-going", status=3)
    assert objects["/x"]["lost_chunks"] == [[0]]
    with h5py.File(back) as f:
        assert f["x"].id.get_num_chunks() == 0


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def test_crc32c_is_checked_and_dropped(folder):
    values = np.arange(6, dtype="<u2").tobytes()
    chunk = values + crc32c(values)
    group(os.path.join(folder, "s.zarr"))
    put(folder, "x", "<u2", [{"name": "crc32c"}], chunk, 6)
    back, objects = exported(folder)
    assert raw(back, "x") == values and objects["/x"]["outcome"] == "rewrapped" and filters(back, "x") == []
    packed = gzip.compress(values * 99)
    put(
        folder,
        "packed",
        "<u2",
        [{"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}],
        packed + crc32c(packed),
        594,
    )
    back, objects = exported(folder)
    assert raw(back, "packed")[2:-4] == packed[10:-8] and objects["/packed"]["outcome"] == "rewrapped"
    put_damaged = os.path.join(folder, "s.zarr/x/c/0")
    with open(put_damaged, "wb") as f:
        f.write(b"\1" + chunk[1:])
    assert "crc32c" in refused("export", "--overwrite", "-q", os.path.join(folder, "s.zarr"), back)


def test_filters_of_libhdf5_come_back_unchanged(folder):
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "b.h5"))
    data = np.random.default_rng(2).integers(0, 99, (40, 50)).astype(">i4")
    with h5py.File(source, "w") as f:
        f.create_dataset("deflate", data=data, chunks=(8, 50), compression="gzip")
        f.create_dataset("shuffled", data=data, chunks=(8, 50), compression="gzip", shuffle=True)
        f.create_dataset("checked", data=data, chunks=(8, 50), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("bare", data=data, chunks=(7, 11))
    convert("--profile", "native", source, store, "-q")
    run("export", store, back, "-q")
    with h5py.File(source) as a, h5py.File(back) as b:
        for name in a:
            assert filters(source, name) == filters(back, name) and a[name].chunks == b[name].chunks
            for i in range(a[name].id.get_num_chunks()):
                at = a[name].id.get_chunk_info(i).chunk_offset
                assert a[name].id.read_direct_chunk(at) == b[name].id.read_direct_chunk(at), (name, at)
            assert np.array_equal(b[name][()], data) and b[name].dtype == data.dtype


def test_shards_are_opened_and_missing_chunks_stay_missing(folder):
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "b.h5"))
    with h5py.File(source, "w") as f:
        d = f.create_dataset("x", (1000,), "<f8", chunks=(10,), maxshape=(None,), compression="gzip", fillvalue=-1)
        d[15:300] = np.arange(285)
        d[900:] = 7
    convert("--shard", "160", source, store, "-q")
    run("export", store, back, "-q")
    with h5py.File(source) as a, h5py.File(back) as b:
        assert b["x"].id.get_num_chunks() == a["x"].id.get_num_chunks() == 39 and b["x"].chunks == (10,)
        assert np.array_equal(a["x"][()], b["x"][()]) and b["x"].maxshape == (None,)
    assert verify(back, store)["exit_status"] == 0


def test_packed_bits_stay_packed(folder):
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "b.h5"))
    with h5py.File(source, "w") as f:
        f.create_dataset("camera", data=np.arange(4000, dtype="<u2"), chunks=(1000,))
        f.create_dataset("signed", data=np.arange(-30, 30, dtype="<i2"), chunks=(7,))
        f.create_dataset("mask", data=np.arange(100) % 3 == 0, chunks=(9,))
    convert("--codec", "packbits", "--bits", "12", source, store, "-q")
    run("export", store, back, "-q", "--filters", "any")
    assert filters(back, "camera") == filters(back, "mask") == [int(os.environ["ZARRBITS_PACKBITS_ID"])]
    assert len(raw(back, "camera")) == 1500 and len(raw(back, "mask")) == 2
    assert verify(back, store)["exit_status"] == 0  # decoded by the filter's own decoder, and compared
    run("export", store, back, "-q", "--overwrite")  # what every libhdf5 reads
    assert filters(back, "camera") == [2, 1]
    with h5py.File(back) as f:
        assert np.array_equal(f["camera"][()], np.arange(4000)) and f["mask"][()].tolist() == [i % 3 == 0 for i in range(100)]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5, 1)])
def test_small_shapes(folder, shape):
    group(os.path.join(folder, "s.zarr"))
    data = np.full(shape, 3, "<i4")
    array(os.path.join(folder, "s.zarr/x"), data, tuple(max(n, 1) for n in shape), chunks=0 not in shape)
    back, _ = exported(folder)
    with h5py.File(back) as f:
        assert f["x"].shape == shape and np.array_equal(f["x"][()], data)


def test_a_chunk_larger_than_the_array(folder):
    group(os.path.join(folder, "s.zarr"))
    codec = {"name": "gzip", "configuration": {"level": 1}}
    put(folder, "x", "<i4", [codec], gzip.compress(np.arange(100, dtype="<i4").tobytes()), 100)
    with open(os.path.join(folder, "s.zarr/x/zarr.json"), encoding="utf-8") as f:
        document = json.load(f)
    node(os.path.join(folder, "s.zarr/x"), {**document, "shape": [30]})
    back, objects = exported(folder)
    with h5py.File(back) as f:
        assert np.array_equal(f["x"][()], np.arange(30)) and f["x"].chunks == (100,)
    assert objects["/x"]["outcome"] == "rewrapped"


def test_the_file_is_the_same_for_any_number_of_threads(folder):
    group(os.path.join(folder, "s.zarr"))
    array(os.path.join(folder, "s.zarr/x"), np.arange(100000).reshape(1000, 100), (3, 100))
    with open(os.path.join(folder, "s.zarr/x/zarr.json"), encoding="utf-8") as f:
        document = json.load(f)
    document["codecs"].insert(0, {"name": "transpose", "configuration": {"order": [0, 1]}})
    node(os.path.join(folder, "s.zarr/x"), document)
    seen = set()
    for threads in (1, 2, 7):
        back, _ = exported(folder, "--threads", threads)
        with open(back, "rb") as f:
            seen.add(f.read())
    assert len(seen) == 1


def shuffled(values):
    return values.view("u1").reshape(-1, values.itemsize).T.tobytes()


def blosc_of(stream, bytes_of_values, value, **changes):
    """A buffer of Blosc 1 with one block that is not split: https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst"""
    fields = {"flags": 0x71, "typesize": value, "size": bytes_of_values, "block": bytes_of_values, "all": 24 + len(stream)}
    fields |= {"start": 20, **changes}
    return (
        struct.pack("<BBBBIIII", 2, 1, *(fields[n] for n in ("flags", "typesize", "size", "block", "all", "start")))
        + struct.pack("<I", fields.get("length", len(stream)))
        + stream
    )


def blosc_codec(**changes):
    return [{"name": "blosc", "configuration": {"cname": "zlib", "clevel": 6, "shuffle": "shuffle", "typesize": 4, **changes}}]


def test_deflate_in_a_buffer_of_blosc(folder):
    numcodecs = pytest.importorskip("numcodecs")
    values = np.cumsum(np.arange(20000) % 7, dtype="<i4")
    stream = zlib.compress(shuffled(values), 6)
    buffer = blosc_of(stream, values.nbytes, 4)
    assert numcodecs.Blosc().decode(buffer) == values.tobytes()
    store = os.path.join(folder, "s.zarr")
    group(store)
    put(folder, "one", "<i4", blosc_codec(), buffer, 20000)
    put(folder, "summed", "<i4", [*blosc_codec(), {"name": "crc32c"}], buffer + crc32c(buffer), 20000)
    put(folder, "many", "<i4", blosc_codec(), numcodecs.Blosc("zlib", 6, 1, 4096).encode(values), 20000)
    put(folder, "bytes", "<i4", blosc_codec(shuffle="noshuffle"), numcodecs.Blosc("zlib", 6, 0).encode(values), 20000)
    put(folder, "short", "<i4", blosc_codec(typesize=2), numcodecs.Blosc("zlib", 6, 1).encode(values.view("<i2")), 20000)
    back, objects = exported(folder, "--filters", "standard")
    with h5py.File(back) as f:
        for name in ("one", "summed", "many", "bytes", "short"):
            assert np.array_equal(f[name][()], values) and filters(back, name) == [2, 1], name
    assert raw(back, "one") == raw(back, "summed") == stream
    outcomes = {path: o["outcome"] for path, o in objects.items()}
    assert outcomes == {
        "/one": "rewrapped",
        "/summed": "rewrapped",
        "/many": "recoded",
        "/bytes": "recoded",
        "/short": "recoded",
    }
    # with all filters, the buffer itself is copied
    back, objects = exported(folder)
    assert raw(back, "one") == buffer and filters(back, "one") == [32001] and objects["/one"]["outcome"] == "raw"


@pytest.mark.parametrize(
    "what", ["size", "block", "all", "start", "length", "flags", "typesize", "short stream", "long stream", "no stream", "noise"]
)
def test_damaged_buffers_of_blosc_are_not_copied(folder, what):
    """No bytes come into a file of which a reader would make other values, or none."""
    values = np.cumsum(np.arange(20000) % 7, dtype="<i4")
    stream = zlib.compress(shuffled(values), 6)
    content = {
        "short stream": zlib.compress(shuffled(values)[:-100], 6),
        "long stream": zlib.compress(shuffled(values) + b"more", 6),
        "no stream": b"",
        "noise": b"\x78\x9c" + stream[9:],
    }.get(what, stream)
    changes = {"size": 79996, "block": 4096, "all": 30, "start": 24, "length": 7, "flags": 0x61, "typesize": 8}
    buffer = blosc_of(content, values.nbytes, 4, **({what: changes[what]} if what in changes else {}))
    group(os.path.join(folder, "s.zarr"))
    put(folder, "x", "<i4", blosc_codec(), buffer, 20000)
    done = run("export", os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5"), "--filters", "standard", status=None)
    if done.returncode == 0:  # with another block size, another type size or without a shuffle it is a buffer, of other values
        assert what in ("typesize", "flags"), what
        with h5py.File(os.path.join(folder, "b.h5")) as f:
            assert f["x"][()].tobytes() == pytest.importorskip("numcodecs").Blosc().decode(buffer)
    else:
        assert done.returncode == 1 and "/x" in done.stderr, done


def test_what_convert_keeps_comes_back(folder):
    """Noise in the upper bytes: zstd would be longer than the file's deflate, which convert leaves in a buffer of Blosc."""
    noise = np.random.default_rng(2).integers(0, 1 << 30, 4000).astype("<i4") & 0x3FFF00FF
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "b.h5"))
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=noise, chunks=(1000,), compression="gzip", shuffle=True)
        f.create_dataset("steps", data=np.arange(4000, dtype="<i4"), chunks=(1000,), compression="gzip", shuffle=True)
    convert("-q", source, store)
    run("export", "-q", store, back)
    kept = 0
    with h5py.File(source) as a, h5py.File(back) as b:
        for name in ("x", "steps"):
            assert np.array_equal(a[name][()], b[name][()])
            kept += sum(raw(source, name, (i,)) == raw(back, name, (i,)) for i in range(0, 4000, 1000))
    assert kept > 0, "convert keeps no deflate any more"
