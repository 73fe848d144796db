# SPDX-License-Identifier: BSL-1.0
"""Who reads what: the table of docs/reference/readers.md, each row made, converted, and given to each reader.

A reader that the table promises must return the values. Any other must refuse:
if it can read a row by now, the table has to say so.
"""

import json
import os
import subprocess
import warnings

import numpy as np
import pytest
import zarr

from conftest import HERE, run

h5py = pytest.importorskip("h5py")
SHAPE, CHUNKS = (7, 10), (4, 4)
RNG = np.random.default_rng(11)
OLD_ZARR = tuple(int(x) for x in zarr.__version__.split(".")[:2]) < (3, 3)
READERS = ("zarr-python", "tensorstore", "zarrs", "zarrita")
ALL = set(READERS)


def some(dtype):
    return RNG.integers(0, 100, SHAPE).astype(dtype)


def bfloat16():
    t = h5py.h5t.IEEE_F32LE.copy()
    t.set_fields(15, 7, 8, 0, 7)
    t.set_size(2)
    t.set_ebias(127)
    return t


def odd_type(f, name, memory, stored, values):
    d = h5py.h5d.create(f.id, name.encode(), stored, h5py.h5s.create_simple(values.shape))
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, memory)


STRINGS = np.array(["one", "", "dr\u00e4i"] * 4, object)
LATIN = np.array([b"caf\xe9", b"ok", b""] * 4, "S5")
STRUCT = np.array([(i, i / 4) for i in range(12)], [("a", "<i2"), ("b", "<f8")])
NESTED = np.array([((i, i / 4), i) for i in range(12)], [("s", [("a", "<i2"), ("b", "<f8")]), ("c", "<u4")])
WITH_TEXT = np.array([(b"ab", i) for i in range(12)], [("t", "S4"), ("n", "<i4")])
WITH_ARRAY = np.array([([i, i + 1], i) for i in range(12)], [("v", "<i2", (2,)), ("n", "<i4")])
OPAQUE = np.array([b"\0\1\2", b"abc"] * 3, "V3")
RAGGED = [np.arange(n, dtype="<i4") for n in (2, 0, 5, 1)]

# row -> (function that makes it in the file, {array in the store: values}, who reads it, who gives wrong values)
ROWS = {}


def row(name, make, values, readers, wrong=frozenset()):
    ROWS[name] = make, values if isinstance(values, dict) else {name: values}, readers, wrong


def plain(name, values, readers=ALL, **form):
    row(name, lambda f: f.create_dataset(name, data=values, **form), values, readers)


for dtype in ("<i1", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8", "<f4", ">f8"):
    plain("number_" + dtype[1:], some(dtype), chunks=CHUNKS)
plain("bool", some("<i4") > 50, chunks=CHUNKS)
plain("float16", some("<f2"), ALL, chunks=CHUNKS)
plain("complex64", (some("<f4") + 1j * some("<f4")).astype("<c8"), ALL - {"zarrita"}, chunks=CHUNKS)
plain("complex128", some("<f8") + 1j * some(">f8"), ALL - {"zarrita"})
plain("scalar", np.float64(2.5))
plain("gzip", some("<i4"), chunks=CHUNKS, compression="gzip")
plain("shuffle", some("<i4"), chunks=CHUNKS, compression="gzip", shuffle=True, fletcher32=True)
# of which the deflate stream is kept, in a buffer of blosc: zstd makes it larger
TIMES = np.cumsum(np.where(RNG.random(40000) < 0.02, 7200, 3600)).astype("<i8")
plain("kept_stream", TIMES, chunks=(20000,), compression="gzip", compression_opts=9, shuffle=True)
plain("lzf", some("<i4"), chunks=CHUNKS, compression="lzf")
plain("empty", np.zeros((0, 3), "<i4"), ALL - {"zarrita"})
row(
    "partly",
    lambda f: f.create_dataset("partly", (8, 8), "<i4", chunks=(4, 4), fillvalue=-7).__setitem__((slice(0, 2), 0), 1),
    np.array([[1] + 7 * [-7]] * 2 + [8 * [-7]] * 6, "<i4"),
    ALL,
)
row(
    "nan_fill", lambda f: f.create_dataset("nan_fill", (4,), "<f4", chunks=(4,), fillvalue=np.nan), np.full(4, np.nan, "<f4"), ALL
)


def fill_row(name, bits, dtype, readers, wrong):
    value = np.array([bits], "u" + dtype[-1]).view(dtype)
    row(name, lambda f: f.create_dataset(name, (3,), dtype, chunks=(3,), fillvalue=value[0]), np.repeat(value, 3), readers, wrong)


fill_row("fill_nan_payload", 0x7FC00001, "<f4", ALL - {"zarrita"}, {"zarrita"})
fill_row("fill_nan_sign", 0xFFF8000000000000, "<f8", ALL - {"zarrita"}, {"zarrita"})
fill_row("fill_float16_payload", 0x7E01, "<f2", {"tensorstore", "zarrs"}, {"zarr-python", "zarrita"})
fill_row("fill_largest", (1 << 64) - 1, "<u8", ALL - {"zarrita"}, {"zarrita"})
row(
    "enum",
    lambda f: f.create_dataset("enum", data=[1, 0, 1], dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, "<i2")),
    np.array([1, 0, 1], "<i2"),
    ALL,
)
row(
    "bfloat16",
    lambda f: odd_type(f, "bfloat16", None, bfloat16(), np.array([1.5, -2, 0.25])),
    np.array([1.5, -2, 0.25], "<f4"),
    ALL,
)
row("opaque", lambda f: f.create_dataset("opaque", data=OPAQUE), OPAQUE.view("u1").reshape(6, 3), ALL)
row(
    "array_type",
    lambda f: f.create_dataset("array_type", (2,), np.dtype(("<i4", (2, 3)))).__setitem__(
        Ellipsis, np.arange(12).reshape(2, 2, 3)
    ),
    np.arange(12, dtype="<i4").reshape(2, 2, 3),
    ALL,
)
row("strings", lambda f: f.create_dataset("strings", data=STRINGS, dtype=h5py.string_dtype()), STRINGS, ALL - {"tensorstore"})
row(
    "not_utf8",
    lambda f: f.create_dataset("not_utf8", data=LATIN),
    np.array([bytes(x) for x in LATIN], object),
    {"zarr-python", "zarrs"},
)
row(
    "references",
    lambda f: f.create_dataset("references", data=np.array([f["gzip"].ref, f["bool"].ref], h5py.ref_dtype)),
    np.array(["/gzip", "/bool"], object),
    ALL - {"tensorstore"},
)
row(
    "sequences",
    lambda f: f.create_dataset("sequences", (4,), h5py.vlen_dtype("<i4")).__setitem__(Ellipsis, np.array(RAGGED, object)),
    {"sequences/values": np.concatenate(RAGGED), "sequences/offsets": np.array([0, 2, 2, 7, 8])},
    ALL,
)
row(
    "members",
    lambda f: f.create_dataset("members", data=np.array([("a", 1), ("b", 2)], [("t", h5py.string_dtype()), ("n", "<i4")])),
    {"members/n": np.array([1, 2], "<i4")},
    ALL,
)
NEW_ZARR = set() if OLD_ZARR else {"zarr-python"}
plain("struct", STRUCT, NEW_ZARR | {"tensorstore"})
plain("struct_big", STRUCT.astype([("a", ">i2"), ("b", ">f8")]), NEW_ZARR | {"tensorstore"})  # zarr-python 3.2 misreads it
plain("struct_nested", NESTED, NEW_ZARR)
plain("struct_with_text", WITH_TEXT, NEW_ZARR)
plain("struct_with_array", WITH_ARRAY, NEW_ZARR)
# from a second store of the same file, inside of the first
row(
    "shards",
    lambda f: None,
    {"shards.zarr/" + name: ROWS[name][1][name] for name in ("number_i4", "number_f8", "bool", "gzip", "shuffle")},
    ALL,
)
row(
    "shards_of_strings",
    lambda f: f.create_dataset("shards_of_strings", data=STRINGS, dtype=h5py.string_dtype(), chunks=(3,)),
    {"shards.zarr/shards_of_strings": STRINGS},
    ALL - {"tensorstore"},
)
try:
    import hdf5plugin

    plain("zstd", some("<i4"), chunks=CHUNKS, **hdf5plugin.Zstd())
    plain("blosc", some("<i4"), chunks=CHUNKS, **hdf5plugin.Blosc("lz4", shuffle=hdf5plugin.Blosc.SHUFFLE))
except ImportError:  # then without these rows
    hdf5plugin = None


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    with h5py.File(folder / "in.h5", "w", libver=("earliest", "v110")) as f:
        for make, *_ in ROWS.values():
            make(f)
    run("convert", "--quiet", folder / "in.h5", folder / "out.zarr")
    run("convert", "--quiet", folder / "in.h5", folder / "out.zarr/shards.zarr", "--shard", "300")
    return folder / "out.zarr"


def as_bytes(values):
    """Native order, so that only the values count; text as its UTF-8."""
    values = np.asarray(values)
    if values.dtype.kind in "OUT":
        return [x if isinstance(x, bytes) else str(x).encode() for x in values.ravel().tolist()]
    if values.dtype.names:
        return [as_bytes(values[n]) for n in values.dtype.names]
    return values.astype(values.dtype.newbyteorder("=")).tobytes()


def by_zarr_python(store, name, values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = zarr.open_array(store / name, mode="r")[...]
    got = np.asarray(got)
    if got.dtype.names and values.dtype.names:
        # array fields are raw bytes
        raw = any(got.dtype[n].kind == "V" and not got.dtype[n].names for n in got.dtype.names)
        got = got.view(values.dtype) if raw and got.dtype.itemsize == values.dtype.itemsize else got
    return got


def by_tensorstore(store, name, values):
    tensorstore = pytest.importorskip("tensorstore")

    def read(field):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store / name)}} | field
        return tensorstore.open(spec, open=True).result().read().result()

    if not values.dtype.names:
        return read({})
    out = np.empty(values.shape, values.dtype)
    for n in values.dtype.names:
        part = read({"field": n})
        out[n] = part.view(values.dtype[n].base).reshape(out[n].shape) if values.dtype[n].subdtype else part
    return out


def by_zarrs(store, name, values, zarrs):
    got = zarrs.ask("read", path=str(store / name))
    if got is None:
        raise ValueError(zarrs.refused)
    if values.dtype.kind != "O":
        return np.frombuffer(got, values.dtype.newbyteorder("=")).reshape(values.shape)
    texts = []
    while got:
        size = int.from_bytes(got[:8], "little")
        texts.append(got[8 : 8 + size])
        got = got[8 + size :]
    return np.array(texts, object)


@pytest.fixture(scope="module")
def zarrita(store):
    folder = os.environ.get("ZARRBITS_ZARRITA")
    if not folder:
        pytest.skip("zarrita is not installed (ZARRBITS_ZARRITA is not set)")
    names = [n for _, arrays, *_ in ROWS.values() for n in arrays]
    # node looks for packages beside the script
    script = os.path.join(folder, "read.mjs")
    with open(HERE / "zarrita/read.mjs", encoding="utf-8") as f, open(script, "w", encoding="utf-8") as g:
        g.write(f.read())
    out = subprocess.run(["node", script, str(store), *names], capture_output=True, text=True, timeout=600)
    assert out.returncode == 0, out.stderr
    return dict(zip(names, map(json.loads, out.stdout.splitlines())))


def by_zarrita(values, answer):
    if "refused" in answer:
        raise ValueError(answer["refused"])
    assert tuple(answer["shape"]) == values.shape
    if values.dtype.kind == "O":
        return np.array(answer["values"], object)
    if values.dtype.kind in "iu":
        return np.array([int(v) for v in answer["values"]]).astype(values.dtype).reshape(values.shape)
    return (
        np.array([float(v) if not isinstance(v, bool) else v for v in answer["values"]])
        .astype(values.dtype)
        .reshape(values.shape)
    )


def node_major():
    return int(subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip("v\n").split(".")[0])


def test_streams_are_kept(store):
    """Or the row says nothing: the third byte of a buffer of blosc has the compressor inside, and zlib is 3."""
    for chunk in ("0", "1"):
        assert (store / "kept_stream/c" / chunk).read_bytes()[2] >> 5 == 3


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ROWS)
def test_row(store, name, reader, request):
    _, arrays, readers, wrong = ROWS[name]
    for array, values in arrays.items():
        values = np.asarray(values)
        if reader == "zarrs":
            peer = request.getfixturevalue("zarrs")

            def read():
                return by_zarrs(store, array, values, peer)
        elif reader == "zarrita":
            answers = request.getfixturevalue("zarrita")
            if name in ("float16", "fill_float16_payload") and node_major() < 24:
                pytest.skip("zarrita reads float16 from node 24 on")

            def read():
                return by_zarrita(values, answers[array])
        else:

            def read():
                return {"zarr-python": by_zarr_python, "tensorstore": by_tensorstore}[reader](store, array, values)

        if reader in readers:
            got = read()
            assert np.shape(got) == values.shape and as_bytes(got) == as_bytes(values), f"{array} by {reader}"
            continue
        try:
            got = read()
        except Exception:  # whatever it says: it refuses
            continue
        assert as_bytes(got) != as_bytes(values), (
            f"{reader} reads {name} by now: the table of docs/reference/readers.md can say so"
        )
        assert reader in wrong, f"{reader} gives wrong values for {name}: the document has to say so"
