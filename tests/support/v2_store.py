# SPDX-License-Identifier: BSL-1.0
"""A reader of Zarr v2 for tests, with the codecs of numcodecs and nothing of zarrbits."""

import json
import math
import pathlib

import numpy as np
import pytest

numcodecs = pytest.importorskip("numcodecs")


def object_of(folder, key):
    """What a store in a folder has under a key; None if absent."""
    path = pathlib.Path(folder) / key
    return path.read_bytes() if path.is_file() else None


def document(folder, key):
    return json.loads(object_of(folder, key))


def read_array(get, name, zeros=False):
    """The values of an array, whose objects `get` returns by their keys. A chunk that is missing is an error if no fill value
    says what it reads as, because zarr-python 2 then returns whatever is in the memory; unless `zeros`,
    as zarr-python 3 has it."""
    prefix = f"{name}/" if name else ""
    meta = json.loads(get(f"{prefix}.zarray"))
    assert meta["zarr_format"] == 2 and meta["order"] in "CF" and meta["dimension_separator"] == "."
    dtype = np.dtype([tuple(f) for f in meta["dtype"]] if isinstance(meta["dtype"], list) else meta["dtype"])
    shape, chunks = meta["shape"], meta["chunks"]
    out = np.zeros(shape, dtype)
    if meta["fill_value"] is not None:
        out[...] = meta["fill_value"]
    codecs = (meta["filters"] or []) + ([meta["compressor"]] if meta["compressor"] else [])
    codecs = [None if c == {"id": "fletcher32"} else numcodecs.get_codec(c) for c in codecs]  # numcodecs 0.11 lacks that one
    for at in np.ndindex(*(math.ceil(s / c) for s, c in zip(shape, chunks))):
        data = get(f"{prefix}{'.'.join(map(str, at)) or '0'}")
        if data is None:
            if meta["fill_value"] is None and not zeros:
                raise KeyError(f"chunk {at} of {name} is missing, and has no fill value")
            continue
        for codec in reversed(codecs):
            data = data[:-4] if codec is None else codec.decode(data)
        chunk = data if dtype.kind == "O" else np.frombuffer(data, dtype)
        chunk = chunk.reshape(chunks, order=meta["order"])
        place = tuple(slice(i * c, min((i + 1) * c, s)) for i, c, s in zip(at, chunks, shape))
        out[place] = chunk[tuple(slice(0, p.stop - p.start) for p in place)]
    return out


def read(folder, name):
    return read_array(lambda key: object_of(folder, key), name)
