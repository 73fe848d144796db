# SPDX-License-Identifier: BSL-1.0
"""Digests as docs/reference/digest.md has them, by numpy and hashlib alone."""

import hashlib
import json
import math
import struct

import numpy as np

P = 2**127 - 1


def point(lane, axis):
    text = f"zarrbits digest 1, lane {lane}, axis {axis}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little") % P


def type_name(dtype):
    if dtype.kind == "O":
        return "string"
    if dtype.names:
        return "struct{" + "".join(f"{len(n.encode())}:{n}={type_name(dtype[n])};" for n in dtype.names) + "}"
    return f"null_terminated_bytes[{dtype.itemsize}]" if dtype.kind == "S" else dtype.name


def canonical(values):
    """The bytes of the elements, one row of uint8 for each."""
    if values.dtype.kind == "O":
        texts = [text if isinstance(text, bytes) else text.encode() for text in values.reshape(-1)]
        hashes = b"".join(hashlib.sha256(text).digest() if text else bytes(32) for text in texts)
        return np.frombuffer(hashes, "u1").reshape(*values.shape, 32)
    little = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")))
    return np.frombuffer(little.tobytes(), "u1").reshape(*values.shape, little.dtype.itemsize)


def array_sums(values):
    """The sums of both lanes."""
    elements, shape = canonical(values), values.shape or (1,)
    rows = elements.reshape(*shape[:-1], shape[-1] * elements.shape[-1])
    sums = []
    for lane in (0, 1):
        x = [point(lane, axis) for axis in range(max(1, values.ndim))]
        total = 0
        for index in np.ndindex(rows.shape[:-1]):
            row = 0
            for word in reversed(np.frombuffer(rows[index].tobytes() + bytes(-rows.shape[-1] % 8), "<u8").tolist()):
                row = (row * x[-1] + word) % P
            for axis, i in enumerate(index):
                row = row * pow(x[axis], i, P) % P
            total = (total + row) % P
        sums.append(total)
    return sums


def array_digest(values, name=None):
    """The digest of a numpy array; objects are texts."""
    values = np.asarray(values)
    sums = [f"{total:032x}" for total in array_sums(values)]
    shape = "".join(f" {n}" for n in values.shape)
    text = f"zarrbits digest 1\ntype {name or type_name(values.dtype)}\nshape{shape}\nsum {sums[0]} {sums[1]}\n"
    return hashlib.sha256(text.encode()).hexdigest()


def lines_of(digests):
    return "".join(
        f"{digest} {len(path.encode())}:{path}\n" for path, digest in sorted(digests.items(), key=lambda d: d[0].encode())
    )


def tree_digest(digests, attributes=None):
    """Of the digests of arrays, by their paths, and of those of attributes."""
    text = "zarrbits digest 1 tree\n" + lines_of(digests) + ("" if attributes is None else "attributes\n" + lines_of(attributes))
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_attribute(value):
    """Numbers, texts, booleans and lists of these."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return int(value) if value == int(value) and abs(value) < 2**53 else {"float64": struct.pack(">d", value).hex()}
    return value


def attribute_digest(attributes):
    """Of the attributes of an object that count, as numpy's and Python's values."""
    plain = {name: [canonical_attribute(v) for v in np.asarray(value).ravel().tolist()] for name, value in attributes.items()}
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(f"zarrbits digest 1 attributes\n{text}\n".encode()).hexdigest()
