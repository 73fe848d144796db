# SPDX-License-Identifier: BSL-1.0
"""Values of HDF5 in numpy, as h5py has them: data types of the library's JSON, and packed values.

docs/reference/hdf5-types.md describes both."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

import numpy as np

Json = dict[str, Any]


def text_of(value: Any) -> str:
    """A text of JSON, whose bytes are in base64 where they are not UTF-8."""
    if isinstance(value, str):
        return value
    return base64.b64decode(value["base64"]).decode("utf-8", "surrogateescape")


class Reference:
    """A reference to an object: f[reference] is the object. False if it leads nowhere."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return self.name is not None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.name!r}>" if self else f"<{type(self).__name__} (null)>"


class RegionReference(Reference):
    """A reference to a part of a dataset. selection: "blocks" (first and last corners), "points", or "selection" ("all")."""

    def __init__(self, name: str | None, selection: Json | None = None) -> None:
        super().__init__(name)
        self.selection = selection or {}

    __hash__ = Reference.__hash__


class Empty:
    """A dataset, or an attribute, with a type and without a value."""

    shape = None
    size = None

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empty) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype!r})"


def is_packed(described: Json) -> bool:
    """Whether values are of variable length, or references."""
    kind = described["kind"]
    if kind in ("text", "sequence", "reference", "region"):
        return True
    if kind == "compound":
        return any(is_packed(member["type"]) for member in described["members"])
    return kind == "array" and is_packed(described["base"])


def _number(described: Json, kind: str) -> Any:
    return np.dtype(f"{'>' if described['order'] == 'big' else '<'}{kind}{described['size']}")


def _compound(described: Json) -> Any:
    members = described["members"]
    layout: Any = {
        "names": [text_of(member["name"]) for member in members],
        "formats": [dtype_of(member["type"]) for member in members],
    }
    if "size" in described:
        layout |= {"offsets": [member["offset"] for member in members], "itemsize": described["size"]}
    return np.dtype(layout)


def _opaque(described: Json) -> Any:
    tag = text_of(described.get("tag", ""))
    if tag.startswith("NUMPY:"):  # h5py.opaque_dtype
        try:
            dtype = np.dtype(tag[len("NUMPY:") :])
            if dtype.itemsize == described["size"] and not dtype.hasobject:
                return dtype
        except TypeError:
            pass
    return np.dtype(f"V{described['size']}")


def dtype_of(described: Json) -> Any:
    """The numpy data type of the library's description, with h5py's metadata."""
    kind = described["kind"]
    if kind == "int":
        return _number(described, "i" if described["signed"] else "u")
    if kind == "float":
        return _number(described, "f")
    if kind == "complex":
        return _number(described, "c")
    if kind == "bool":
        return np.dtype(bool)
    if kind == "enum":
        names = {text_of(name): value for name, value in described["names"]}
        return np.dtype(dtype_of(described["base"]), metadata={"enum": names})
    if kind == "string":
        return np.dtype(f"S{described['size']}", metadata={"h5py_encoding": "utf-8" if described["utf8"] else "ascii"})
    if kind == "opaque":
        return _opaque(described)
    if kind == "compound":
        return _compound(described)
    if kind == "array":
        return np.dtype((dtype_of(described["base"]), tuple(described["shape"])))
    if kind == "text":
        return np.dtype("O", metadata={"vlen": str if described["utf8"] else bytes})
    if kind == "sequence":
        return np.dtype("O", metadata={"vlen": dtype_of(described["base"])})
    if kind in ("reference", "region"):
        return np.dtype("O", metadata={"ref": Reference if kind == "reference" else RegionReference})
    raise TypeError(f"zarrbits: the datatype is {text_of(described['reason'])}; use h5py")


class _Packed:
    """Reads packed values one after the other."""

    def __init__(self, packed: bytes) -> None:
        self.packed, self.position = packed, 0

    def length(self) -> int:
        (n,) = struct.unpack_from("<Q", self.packed, self.position)
        self.position += 8
        return int(n)

    def text(self) -> bytes:
        n = self.length()
        self.position += n
        return self.packed[self.position - n : self.position]

    def numbers(self, dtype: Any, count: int) -> Any:
        values = np.frombuffer(self.packed, dtype, count, self.position).copy()
        self.position += count * dtype.itemsize
        return values

    def array(self, described: Json, count: int) -> Any:
        """`count` values as an array of one dimension (more for array types)."""
        dtype = dtype_of(described)
        if not is_packed(described):
            return self.numbers(dtype, count)
        values = np.empty(count, dtype)
        if described["kind"] == "array":
            flat = values.reshape((count, math.prod(described["shape"])))
            for row in flat:
                row[:] = self.array(described["base"], len(row))
            return values
        for i in range(count):
            values[i] = self.value(described)
        return values

    def value(self, described: Json) -> Any:
        kind = described["kind"]
        if kind == "text":
            return self.text()
        if kind == "sequence":
            return self.array(described["base"], self.length())
        if kind in ("reference", "region"):
            target = json.loads(self.text())
            name = None if target is None else text_of(target.pop("path"))
            return Reference(name) if kind == "reference" else RegionReference(name, target)
        if kind == "compound":
            records = np.empty(1, dtype_of(described))
            for member in described["members"]:  # an array is assigned to an element, or it would be broadcast
                records[text_of(member["name"])][0] = self.value(member["type"])
            return records[0]
        return self.array(described, 1)[0]


def unpack(described: Json, packed: bytes, shape: tuple[int, ...]) -> Any:
    """An array of packed values."""
    values = _Packed(packed).array(described, math.prod(shape))
    return values.reshape(shape + values.shape[1:])
