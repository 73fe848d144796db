# SPDX-License-Identifier: BSL-1.0
"""Random stores that zarr-python writes, of Zarr v2 and v3: types, ranks 0 to 5, chunks, shards, codecs, filters, fill values,
attributes, groups."""

import numcodecs
import numpy as np
import zarr
import zarr.codecs

RECORD = np.dtype([("a", "<i2"), ("b", "<f8"), ("in", [("c", "u1"), ("d", "<f4")])])
FLAT = np.dtype([("n", "<i4"), ("s", "S3"), ("yes", "?")])
TYPES = ["i1", "u1", "<i2", "<u2", ">i4", "<u4", "<i8", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8", "?", "<c8", "<c16", ">c16"]
TYPES += ["S1", "S5", "<U1", "<U3", "M8[s]", "M8[ns]", "M8[D]", "M8[Y]", "m8[ms]", "m8[s]", "V4", "string", RECORD, FLAT]
LENGTHS = [0, 1, 2, 3, 4, 5, 7]
ATTRIBUTES = {
    "units": ["m", "days since 2000-01-01", "é"],
    "flag": [True, [True, False], None],
    "valid_range": [[0, 100], [-1, 300], [0.5, 2]],
    "missing_value": [-9, 1e30, "x"],
    "list": [[1, 2], [], ["a", "é"], [1, 2.5], [[1, 2], [3, 4]], [1, "a"], [[1], [2, 3]]],
    "table": [{"a": 1, "b": {"c": [1]}}, {}],
    "NAME": ["mine"],
    "big": [2**63, -(2**63), 2**64 - 1, 1e300],
    "coordinates": ["x y"],
    "text": ["", "a\nb", "long " * 50],
}


def values_of(dice, dtype, shape):
    rng = np.random.default_rng(dice.getrandbits(30))
    if dtype == "string":
        words = np.array(["", "a", "é", "long text"], dtype=object)
        return words[rng.integers(0, 4, shape)] if shape else np.array("text", dtype=object)
    dtype = np.dtype(dtype)
    if dtype.kind in "SU":
        return np.asarray(rng.integers(0, 10**4, shape)).astype(dtype)
    if dtype.names:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            out[name] = values_of(dice, dtype[name], shape)
        return out
    if dtype.kind == "V":
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        return np.frombuffer(rng.integers(0, 2, size, dtype="u1").tobytes(), dtype).reshape(shape)
    out = np.asarray(rng.integers(0, 100, shape)).astype(dtype)
    if dtype.kind in "fcMm" and out.size and dice.random() < 0.3:
        out[rng.random(shape) < 0.2] = np.nan if dtype.kind in "fc" else "NaT"
    return out


def fill_of(dice, dtype):
    """One that zarr-python can write into metadata; None: its own default."""
    if dtype == "string":
        return dice.choice(["", "f", "é"])
    dtype = np.dtype(dtype)
    some = {
        "b": [False, True],
        "i": [-1, 1],
        "u": [1, 2],
        "f": [1, np.nan, np.inf, -0.0, 0.1],
        "c": [1, complex(np.nan, 2)],
        "S": [b"f", b""],
        "U": ["f", "é"],
        "M": ["NaT", 5],
        "m": ["NaT", 7],
    }.get(dtype.kind)
    if not some:
        return None
    value = dice.choice(some)
    return dtype.type(value, np.datetime_data(dtype)[0]) if dtype.kind in "Mm" else value


def codecs_of_v3(dice, dtype, shape):
    """Keywords of create_array()."""
    more = {}
    compressors = dice.choice(
        [
            "auto",
            None,
            [zarr.codecs.GzipCodec(level=3)],
            [zarr.codecs.ZstdCodec(level=2, checksum=dice.random() < 0.5)],
            [
                zarr.codecs.BloscCodec(
                    cname=dice.choice(["lz4", "zlib", "zstd", "blosclz", "lz4hc"]), shuffle=dice.choice(["shuffle", "noshuffle"])
                )
            ],
            [zarr.codecs.Crc32cCodec()],
            [zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()],
            [zarr.codecs.Zlib(level=4)],
            [zarr.codecs.BZ2(level=1)],
            [zarr.codecs.LZ4()],
        ]
    )
    if compressors != "auto":
        more["compressors"] = compressors
    if dtype == "string":
        return more
    kind = np.dtype(dtype).kind
    if shape and dice.random() < 0.3:
        more["filters"] = [zarr.codecs.TransposeCodec(order=tuple(dice.sample(range(len(shape)), len(shape))))]
    if kind in "iufc" and np.dtype(dtype).itemsize > 1 and dice.random() < 0.4:
        more["serializer"] = zarr.codecs.BytesCodec(endian=dice.choice(["big", "little"]))
        if compressors in ("auto", None) and dice.random() < 0.5:
            more["compressors"] = [zarr.codecs.Shuffle(elementsize=np.dtype(dtype).itemsize), zarr.codecs.Zlib(level=1)]
    return more


def codecs_of_v2(dice, dtype, shape):
    more = {"order": dice.choice("CF")}
    compressors = dice.choice(
        [
            "auto",
            None,
            numcodecs.Zlib(level=1),
            numcodecs.GZip(level=1),
            numcodecs.Zstd(level=1),
            numcodecs.BZ2(level=1),
            numcodecs.LZ4(),
            numcodecs.Blosc(cname=dice.choice(["lz4", "zlib", "zstd", "blosclz"]), shuffle=dice.choice([0, 1, 2])),
        ]
    )
    if compressors != "auto":
        more["compressors"] = compressors
    if dtype == "string" or dice.random() < 0.6:
        return more
    dtype = np.dtype(dtype)
    filters = []
    if dtype.kind in "iu" and dice.random() < 0.5:
        filters.append(numcodecs.Delta(dtype.str))
    if dtype.kind in "iufMm" and dtype.itemsize > 1:
        filters.append(numcodecs.Shuffle(dtype.itemsize))
    if dtype.kind in "iuf":
        filters += dice.choice([[], [numcodecs.Fletcher32()], [numcodecs.CRC32C()]])
    if filters:
        more["filters"] = filters
    return more


def chunks_and_shards(dice, version, shape):
    if not shape or dice.random() < 0.3:
        return {}
    chunk = tuple(dice.randint(1, max(1, n + (dice.random() < 0.1))) for n in shape)
    if version == 2 or dice.random() < 0.6:
        return {"chunks": chunk}
    return {"chunks": chunk, "shards": tuple(c * dice.randint(1, 3) for c in chunk)}


def names_of(dice, shape):
    names = [dice.choice([f"n{n}", f"n{n}", "x", None]) for n in shape]
    return [name if name is None or name not in names[:d] else f"{name}_{d}" for d, name in enumerate(names)]  # each once


def attributes(dice):
    return {name: dice.choice(ATTRIBUTES[name]) for name in dice.sample(sorted(ATTRIBUTES), dice.choice([0, 0, 1, 2, 3]))}


def make_store(dice, path):
    """Writes one; the values of its arrays as zarr-python reads them, by their paths."""
    version = dice.choice([2, 3, 3])
    root, arrays = zarr.create_group(path, zarr_format=version, attributes=attributes(dice)), {}
    groups = [root]
    for name in dice.sample(["g", "h", "n2"], dice.choice([0, 0, 1, 2])):
        parent = dice.choice(groups)
        groups.append(parent.create_group(name, attributes=attributes(dice)))
    for i in range(dice.randint(1, 5)):
        rank = dice.choice([0, 1, 1, 2, 2, 3, 4, 5])
        dtype, shape = dice.choice(TYPES), tuple(dice.choice(LENGTHS if rank < 4 else LENGTHS[1:4]) for _ in range(rank))
        if version == 2 and dtype == "string":
            dtype = "<U3"
        names = names_of(dice, shape)
        more = {"dimension_names": names} if version == 3 and dice.random() < 0.9 else {}
        more |= chunks_and_shards(dice, version, shape)
        more |= codecs_of_v3(dice, dtype, shape) if version == 3 else codecs_of_v2(dice, dtype, shape)
        if dice.random() < 0.4 and (fill := fill_of(dice, dtype)) is not None:
            more["fill_value"] = fill
        if dice.random() < 0.2:
            separator = dice.choice("./")
            more["chunk_key_encoding"] = (
                {"name": "v2", "separator": separator}
                if version == 2
                else {"name": dice.choice(["default", "v2"]), "configuration": {"separator": separator}}
            )
        name = dice.choice([f"v{i}", f"v{i}", *filter(None, names[:1])])  # some are coordinates
        group = dice.choice(groups)
        if name in group:
            continue
        array = group.create_array(name, shape=shape, dtype=str if dtype == "string" else dtype, **more)
        if dice.random() < 0.7:
            array[...] = values_of(dice, dtype, shape)
        elif shape and shape[0] > 1:
            array[:1] = values_of(dice, dtype, (1, *shape[1:]))
        if version == 2 and dice.random() < 0.5:
            array.attrs["_ARRAY_DIMENSIONS"] = [name or f"unnamed{d}" for d, name in enumerate(names)]
        array.attrs.update(attributes(dice))
        arrays[array.path] = np.asarray(array[...], None if dtype == "string" else array.dtype)
    if dice.random() < 0.3:
        zarr.consolidate_metadata(path)
    return arrays
