# SPDX-License-Identifier: BSL-1.0
"""What the tests with random HDF5 files share: datasets, attributes and links, what h5py reads of them in the terms of a store,
and the comparison. cases.py has the cases with their seeds."""

import base64
import ctypes
import itertools
import json
import os

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from harness import run
from store import Store

# --- types: what HDF5 has, and what becomes of it in a store


def numbers(dtype):
    """Any bits, and many that compress."""
    dtype = np.dtype(dtype)

    def make(rng, shape):
        count = int(np.prod(shape, dtype=int))
        raw = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).reshape(shape)
        return raw.copy() if rng.random() < 0.3 else (rng.integers(0, 100, shape) * rng.integers(0, 2, shape)).astype(dtype)

    return make


def few(*values, dtype=None):
    def make(rng, shape):
        out = np.empty(shape, dtype or np.array(values).dtype)
        for at in np.ndindex(*shape):
            out[at] = values[rng.integers(len(values))]
        return out

    return make


def records(dtype):
    def make(rng, shape):
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            field = dtype[name]
            base, inner = field.subdtype or (field, ())
            out[name] = (
                records(base)(rng, shape)
                if base.names
                else few(b"", b"abc", b"x")(rng, (*shape, *inner))
                if base.kind == "S"
                else numbers(base)(rng, (*shape, *inner))
            )
        return out

    return make


def sequences(rng, shape):
    out = np.empty(shape, object)
    for at in np.ndindex(*shape):
        out[at] = rng.integers(-9, 9, rng.integers(0, 6)).astype("i4")
    return out


def texts(values):
    """Strings as bytes, whichever of its two types of strings the store has chosen."""
    raw = [v.encode() if isinstance(v, str) else bytes(v) for v in values.ravel().tolist()]
    out = np.empty(len(raw), object)
    out[:] = raw
    return out.reshape(values.shape)


class Type:
    def __init__(self, h5, make, want=lambda v: v, has_size=True):
        self.h5 = h5 if isinstance(h5, h5t.TypeID) else h5t.py_create(np.dtype(h5), logical=True)
        self.dtype = self.h5.dtype  # in memory
        self.make, self.want = make, want
        self.has_size = has_size  # filters that need the size of an element can be used
        self.number = isinstance(self.h5, (h5t.TypeIntegerID, h5t.TypeFloatID))


def padded_text(padding):
    kind = h5t.C_S1.copy()
    kind.set_size(4)
    kind.set_strpad(padding)
    return kind


def narrow(base, bits, offset):
    kind = base.copy()
    kind.set_precision(bits)
    kind.set_offset(offset)
    return kind


PAIR = np.dtype([("a", "<i2"), ("b", "<f8")])
DEEP = np.dtype([("k", "<u4"), ("s", "S3"), ("in", PAIR), ("list", "<i2", (3,))])
GAPS = np.dtype([("a", ">i2"), ("b", "<f8"), ("c", "u1")], align=True)
TYPES = {
    d: Type(d, numbers(d))
    for d in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", ">u8", "<f2", "<f4", ">f4", "<f8", ">f8")
}
TYPES |= {
    "complex": Type("<c16", numbers("<c16")),
    "big complex": Type(">c8", numbers(">c8")),
    "bool": Type("?", few(False, True)),
    "enum": Type(h5py.enum_dtype({"A": 0, "B": 7}, ">i2"), few(0, 7, dtype=h5py.enum_dtype({"A": 0, "B": 7}, ">i2"))),
    "bits": Type(h5t.STD_B16LE, numbers("<u2")),
    "12 bits": Type(narrow(h5t.STD_I32LE, 12, 3), few(-2048, 0, 2047, 5, dtype="i4")),
    "S5": Type("S5", few(b"", b"abcde", b"a", "é".encode())),
    "latin": Type("S3", few(b"\xe9", b"", b"ab")),
    "space": Type(padded_text(h5t.STR_SPACEPAD), few(b"", b"ab", b"abcd")),
    "terminated": Type(padded_text(h5t.STR_NULLTERM), few(b"", b"ab", b"abc")),
    "text": Type(h5py.string_dtype(), few("", "x", "größe", "y" * 300, dtype=object), has_size=False),
    "opaque": Type("V3", few(b"abc", b"\0\1\2", dtype="V3"), lambda v: np.frombuffer(v.tobytes(), "u1").reshape(*v.shape, 3)),
    "times": Type(
        h5py.opaque_dtype("<M8[us]"),
        few(*np.array(["2020-01-01", "NaT", "1969-12-31T23"], "M8[us]"), dtype=h5py.opaque_dtype("<M8[us]")),
    ),
    "array": Type(np.dtype(("<i4", (2, 3))), lambda rng, shape: numbers("<i4")(rng, (*shape, 2, 3))),
    "pair": Type(PAIR, records(PAIR)),
    "deep": Type(DEEP, records(DEEP)),
    "gaps": Type(GAPS, records(GAPS)),
    "sequence": Type(h5py.vlen_dtype("<i4"), sequences, has_size=False),
}
for _name in ("S5", "latin", "space", "terminated", "text"):
    TYPES[_name].want = texts


# --- datasets


def fill_with(create, kind, value):
    """h5py 3.7 takes the pointer to a text of fixed length for the text, and has no fill values of array types."""
    assert (
        ctypes.CDLL(h5p.__file__).H5Pset_fill_value(
            ctypes.c_int64(create.id), ctypes.c_int64(kind.id), ctypes.c_void_p(value.ctypes.data)
        )
        >= 0
    )


class Dataset:
    """One of a random type, shape and layout, of which a part is written. `values` is what h5py reads afterwards."""

    def __init__(self, group, name, dice, kinds=tuple(TYPES), ranks=(0, 1, 1, 2, 2, 3, 4), plain=0.3, filters=True):
        rng = np.random.default_rng(dice.getrandbits(32))
        self.kind = dice.choice(kinds)
        kind = TYPES[self.kind]
        rank = dice.choice(ranks)
        most = (1, 40, 12, 7, 5)[rank]
        shape = tuple(0 if dice.random() < 0.03 else dice.randint(1, most) for _ in range(rank))
        create = h5p.create(h5p.DATASET_CREATE)
        self.layout = "contiguous" if rank == 0 or dice.random() < plain else "chunked"
        if self.layout == "contiguous" and dice.random() < 0.3 and int(np.prod(shape)) * kind.h5.get_size() < 60000:
            self.layout = "compact"
        self.layout = "contiguous" if 0 in shape and self.layout == "compact" else self.layout
        self.chunk = None
        limits = shape
        if self.layout == "chunked":
            self.chunk = tuple(
                dice.randint(1, max(1, n)) if dice.random() < 0.9 else max(1, n) + dice.randint(0, 3) for n in shape
            )
            limits = tuple(h5s.UNLIMITED if dice.random() < 0.3 or c > n else n for n, c in zip(shape, self.chunk))
            create.set_chunk(self.chunk)
            self.filters = self.add_filters(create, kind, dice) if filters else []
        else:
            create.set_layout(h5d.COMPACT if self.layout == "compact" else h5d.CONTIGUOUS)
            self.filters = []
        self.fill = dice.random() < 0.5 and self.kind != "sequence"
        if self.fill:
            if self.kind == "text":
                create.set_fill_value(np.array(dice.choice(["none", "leer", "größe"]).encode(), h5py.string_dtype()))
            elif self.kind in ("12 bits", "bits"):
                create.set_fill_value(np.array(kind.make(rng, ()), kind.dtype))
            else:
                fill_with(create, kind.h5, np.ascontiguousarray(kind.make(rng, ()), None if self.kind == "array" else kind.dtype))
        create.set_alloc_time(
            dice.choice([h5d.ALLOC_TIME_DEFAULT, h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR])
            if self.layout != "compact"
            else h5d.ALLOC_TIME_DEFAULT
        )
        # HDF5 refuses NEVER for what is of variable length
        self.defined = dice.random() < 0.8 or not kind.has_size or self.layout == "compact"
        create.set_fill_time(dice.choice([h5d.FILL_TIME_IFSET, h5d.FILL_TIME_ALLOC]) if self.defined else h5d.FILL_TIME_NEVER)
        self.written = np.zeros(shape, bool)
        self.rank = rank
        space = h5s.create_simple(shape, limits) if rank else h5s.create(h5s.SCALAR)
        made = h5d.create(group.id, name.encode() if isinstance(name, str) else name, kind.h5, space, create)
        self.object, self.shape = h5py.Dataset(made), shape
        if rank and 0 not in shape:
            for _ in range(dice.choice([0, 1, 1, 2, 3])):  # boxes, so that some chunks stay unwritten
                box = (
                    tuple(slice(*sorted(dice.sample(range(n + 1), 2))) for n in shape)
                    if dice.random() < 0.5
                    else tuple(slice(0, n) for n in shape)
                )
                self.write(box, kind.make(rng, tuple(s.stop - s.start for s in box)))
        elif not rank and dice.random() < 0.8:
            self.write((), kind.make(rng, ()))
        self.cached = self.object[()] if "lzf" in self.filters else None  # from the chunk cache

    def write(self, box, values):
        self.written[box] = True
        if self.kind == "sequence":  # h5py takes an array of one sequence for the sequence
            for at in np.ndindex(*values.shape):
                self.object[tuple(s.start + i for s, i in zip(box, at))] = values[at]
        else:
            self.object[box] = values

    @staticmethod
    def add_filters(create, kind, dice):
        """Some of Debian's HDF5, in an order in which each gets what it can take: nbit and scaleoffset want whole chunks."""
        used = []
        if kind.number and dice.random() < 0.2:
            used.append(
                "nbit"
                if dice.random() < 0.5 or isinstance(kind.h5, h5t.TypeFloatID) or kind.h5.get_precision() % 8
                else "scaleoffset"
            )
        others = ["shuffle", "gzip", "fletcher32", "lzf"] if kind.has_size else ["shuffle", "gzip"]
        used += dice.sample(others, min(len(others), dice.choice([0, 1, 1, 2, 2, 3])))
        for f in used:
            {
                "nbit": lambda: create.set_filter(5, h5py.h5z.FLAG_OPTIONAL, ()),
                "scaleoffset": lambda: create.set_scaleoffset(h5py.h5z.SO_INT, 0),
                "shuffle": create.set_shuffle,
                "gzip": lambda: create.set_deflate(dice.randint(0, 9)),
                "fletcher32": create.set_fletcher32,
                "lzf": lambda: create.set_filter(32000, h5py.h5z.FLAG_OPTIONAL, ()),
            }[f]()
        return used

    def __repr__(self):
        return f"{self.kind} {self.shape} {self.layout} {self.chunk} {self.filters}"


def read_again(path, made):
    """The datasets of {(parent, name): Dataset} with their values, as h5py reads them from a file that it has closed.
    HDF5 keeps the filter mask of a chunk that is written again with the same size, and may then be unable to read it, or take
    bytes for those of LZF that are not; some others it only reads from a file that is open for writing. Such datasets are
    removed."""
    lost = []
    with h5py.File(path) as f:
        for (parent, name), d in made.items():
            try:
                d.values = f[parent][name][()]
            except OSError:
                lost.append((parent, name))
                continue
            if d.cached is not None and d.cached[d.written].tobytes() != d.values[d.written].tobytes():
                lost.append((parent, name))
    with h5py.File(path, "r+") as f:
        for parent, name in lost:
            del f[parent][name]
            del made[parent, name]
    return made


def bits(values):
    """Equal for equal values of a struct or a number, in whatever byte order and with whatever gaps."""
    if values.dtype.names:
        return [bits(values[n]) for n in values.dtype.names]
    if values.dtype.kind in "SV":
        return values.tobytes() if values.dtype.kind == "V" else values.astype(object).tolist()
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def same_bits(got, want):
    if want.dtype.names:
        return got.dtype.names == want.dtype.names and all(same_bits(got[n], want[n]) for n in want.dtype.names)
    if got.dtype.kind == "V" and want.dtype.kind != "V":  # arrays in structs are raw bytes in the byte order of the struct
        return got.tobytes() == want.tobytes()
    return bits(got) == bits(np.asarray(want))


def differences(store, node, d):
    """What is not as h5py reads it, in words; nothing if all is."""
    kind, values = d.kind, d.values
    if kind == "sequence":
        flat = list(values.ravel()) if isinstance(values, np.ndarray) and values.dtype == object else [values]
        flat = [np.asarray(v, "i4") for v in flat]
        got, offsets = store.read(f"{node}/values"), store.read(f"{node}/offsets")
        lengths = [0, *itertools.accumulate(len(v) for v in flat)]
        return (
            ""
            if offsets.tolist() == lengths and got.tolist() == [x for v in flat for x in v.tolist()]
            else f"{got} {offsets}, not {flat}"
        )
    got, want = store.read(node), np.asarray(values)
    if kind == "text" and want.dtype.kind != "O":
        want = want.astype(object)
    want = TYPES[kind].want(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if not d.defined:  # with FILL_TIME_NEVER, what was never written has no value
        got, want = got[d.written], want[d.written]
    if want.dtype == object:
        got = texts(got)
        return "" if got.tolist() == want.tolist() else f"{got.tolist()}, not {want.tolist()}"
    if kind == "12 bits":
        want = want.astype(got.dtype)
    if kind == "times":
        got, want = got.view("<i8"), want.view("<i8")
    if got.dtype.kind != want.dtype.kind or (got.dtype.itemsize != want.dtype.itemsize and not want.dtype.names):
        return f"type {got.dtype}, not {want.dtype}"
    return "" if same_bits(got, want) else f"{got.ravel()[:40]}, not {want.ravel()[:40]}"


# --- attributes: a value, and its JSON


def as_json(value):
    if isinstance(value, np.ndarray):
        return [as_json(v) for v in value]
    if isinstance(value, (np.floating, float)):
        v = float(value)
        return v if np.isfinite(v) else "NaN" if np.isnan(v) else "Infinity" if v > 0 else "-Infinity"
    if isinstance(value, np.complexfloating):
        return [as_json(value.real), as_json(value.imag)]
    if isinstance(value, np.void):
        return (
            {n: as_json(value[n]) for n in value.dtype.names}
            if value.dtype.names
            else {"base64": base64.b64encode(value.tobytes()).decode()}
        )
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return None if isinstance(value, h5py.Empty) else value.item() if isinstance(value, np.generic) else value


ATTRIBUTES = [
    np.float32(0.1),
    np.float64(-0.0),
    np.int64(-(2**63)),
    np.uint64(2**64 - 1),
    np.array([np.nan, np.inf, -np.inf, 1]),
    np.array([[1, 2], [3, 4]], ">i2"),
    np.bool_(True),
    np.complex64(1 - 2j),
    h5py.Empty("f4"),
    "größe",
    "",
    b"bytes",
    np.bytes_(b"\xff"),
    np.array([b"ab", b""], "S3"),
    np.zeros((0, 2), "i4"),
    np.array([(1, 2.5)], PAIR),
    np.void(b"abc"),
    np.array(["a", "é", ""], object),
]
NAMES = [
    "a",
    "b c",
    "größe",
    ".x",
    "..x",
    "__y",
    "zarr.json",
    "ZARR.JSON",
    "c",
    "a\\b",
    "x\ny",
    "a%41",
    "%",
    ".zgroup",
    ".zarray",
    ".zattrs",
    ".zmetadata",
    "nul\x7f",
    "long" * 70,
    "...",
    "a:b",
    "~",
    "values",
    "offsets",
    "0",
    "-1",
    " ",
    "c0",
    b"\xff\xfe",
    b"a\x80",
]


def add_attributes(target, dice):
    out = {}
    for name in dice.sample(["a", "b c", "größe", "units", "x\ny", "%41", "__z", ".d"], dice.choice([0, 0, 1, 2, 3])):
        value = dice.choice(ATTRIBUTES)
        if isinstance(value, np.ndarray) and value.dtype == object:
            target.attrs.create(name, value, dtype=h5py.string_dtype())
        else:
            target.attrs[name] = value
        out[name] = as_json(value)
    return out


# --- conversions


OPTIONS = [
    [],
    ["--profile", "native"],
    ["--profile", "recode"],
    ["--compress", "none"],
    ["--compress", "gzip:1"],
    ["--compress", "zstd:3"],
    ["--compress", "blosc:zstd:1"],
    ["--compress", "blosc:lz4:5:bitshuffle"],
]


SHAPES = {1: ["3,", "100,"], 2: ["4,5", "6,6"], 3: ["2,3,4", "6,6,6"], 4: ["2,2,2,2"]}


def options(dice, datasets):
    """The form of a store of these datasets."""
    shapes = sorted(s for rank in {d.rank for d in datasets if d.kind != "sequence"} for s in SHAPES.get(rank, []))
    out = [*dice.choice(OPTIONS)]
    for more, chance in (
        (["--checksum", "crc32c"], 0.2),
        (["--consolidate"], 0.1),
        (["--threads", str(dice.randint(1, 3))], 0.3),
        (["--fsync"], 0.05),
        (["--shard", dice.choice(["1K", "64M", *shapes])], 0.2),
        (["--memory", "16M"], 0.1),
        (["--chunk", dice.choice(shapes or [""])], 0.15 if shapes and "native" not in out else 0),
    ):
        if dice.random() < chance:
            out += more
    return out


def command(folder, *arguments, **how):
    return run(*arguments, cwd=folder, **how)


def materialise(references, folder):
    """A store of references as a folder of files: what a reader of them does."""
    with open(references, encoding="utf-8") as f:
        refs = json.load(f)["refs"]
    for key, value in refs.items():
        path = os.path.join(folder, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(value, list):
            with open(value[0].removeprefix("file://"), "rb") as f:
                f.seek(value[1] if len(value) > 1 else 0)
                data = f.read(value[2] if len(value) > 1 else -1)
        elif isinstance(value, dict):
            data = json.dumps(value).encode()
        else:
            data = base64.b64decode(value[7:]) if value.startswith("base64:") else value.encode()
        with open(path, "wb") as f:
            f.write(data)
    return Store(folder)
