# SPDX-License-Identifier: BSL-1.0
"""The packbits format, by the compiled core (library.py), or in numpy where there is none, whole arrays at a time:

    pack(numpy.array([1, 2, 3], "u2"), bits=12)                            # b'\\x01 \\x00\\x03\\x00'
    unpack(b"\\x01 \\x00\\x03\\x00", "u2", 3, bits=12)                        # array([1, 2, 3], dtype=uint16)

unpack_range() decodes some elements of a chunk from their bytes alone.

Bits run from the least significant end. In numpy: 8 elements of b bits are exactly b bytes,
so that the work is done on the columns of two tables, one with 8 elements and one with b bytes in each row.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from . import library
from .whole import is_whole

_PADDING = {
    "none": "none",
    "first_byte": "first_byte",
    "last_byte": "last_byte",
    "start_byte": "first_byte",
    "end_byte": "last_byte",
}
_SPELLINGS = {
    "padding_encoding": ("padding_encoding",),
    "first_bit": ("first_bit", "start_bit"),
    "last_bit": ("last_bit", "end_bit"),
}
Array = Any  # of numpy: its own types differ between its versions
_BLOCK = 1 << 16  # elements at a time, a multiple of 8: what is held beside the chunk and the payload stays small


def read_configuration(configuration: dict[str, Any]) -> tuple[str, int | None, int | None]:
    """(padding_encoding, first_bit, last_bit) of the codec's JSON, None for the default of a bit;
    older spellings are read, too."""
    for key in configuration:
        if not any(key in spellings for spellings in _SPELLINGS.values()):
            raise ValueError(f'packbits: unknown key "{key}" in the configuration; the keys are {", ".join(_SPELLINGS)}')
    given: dict[str, Any] = {}
    for name, spellings in _SPELLINGS.items():
        # null is as good as absent
        values = [configuration[s] for s in spellings if configuration.get(s) is not None]
        if len(values) == 2 and values[0] != values[1]:
            raise ValueError(
                f'packbits: "{spellings[0]}" is {values[0]!r} and its older spelling "{spellings[1]}" is '
                f"{values[1]!r}; use one of them"
            )
        given[name] = values[0] if values else None
    padding = "none" if given["padding_encoding"] is None else given["padding_encoding"]
    if not isinstance(padding, str) or padding not in _PADDING:
        raise ValueError(f'packbits: "padding_encoding" is {padding!r}, but must be "none", "first_byte" or "last_byte"')
    for name in ("first_bit", "last_bit"):
        value = given[name]
        # 11.0 is not an integer: other readers refuse it
        if value is not None and not is_whole(value):
            raise ValueError(f'packbits: "{name}" is {value!r}, but must be a whole number')
    first, last = (None if given[name] is None else operator.index(given[name]) for name in ("first_bit", "last_bit"))
    if last is not None and last < (first or 0):
        raise ValueError(
            f'packbits: "last_bit" is {last} and "first_bit" is {first or 0}, so that no bit is left; last_bit is inclusive'
        )
    return _PADDING[padding], first or None, last


def component_type(dtype: Any) -> tuple[Any, int, int, bool] | None:
    """(unsigned type that holds one component, its bits, components of an element, whether the sign is extended);
    None if packbits does not take it."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.dtype("<u1"), 1, 1, False
    if dtype.kind not in "iufcmM" or dtype.itemsize > 16 or (dtype.kind in "f" and dtype.itemsize > 8):
        return None
    components = 2 if dtype.kind == "c" else 1
    size = dtype.itemsize // components
    return np.dtype(f"<u{size}"), 8 * size, components, dtype.kind in "imM"


def _component(dtype: Any) -> tuple[Any, int, int, bool]:
    about = component_type(dtype)
    if about is None:
        raise ValueError(
            f"packbits: data type {np.dtype(dtype)} is not a number, and packbits takes bool, integers, floats and "
            'complex numbers; use "bytes"'
        )
    return about


def kept_bits(dtype: Any, first_bit: int | None = None, last_bit: int | None = None) -> tuple[int, int]:
    """(first_bit, number of kept bits) of a component; ValueError where the type has no such bits."""
    return _kept_bits(np.dtype(dtype), first_bit, last_bit)


@functools.lru_cache(maxsize=256, typed=True)  # for each slice of a chunk
def _kept_bits(dtype: Any, first_bit: int | None, last_bit: int | None) -> tuple[int, int]:
    bits = _component(dtype)[1]
    first = 0 if first_bit is None else operator.index(first_bit)
    last = bits - 1 if last_bit is None else operator.index(last_bit)
    for name, value in (("first_bit", first), ("last_bit", last)):
        if not 0 <= value < bits:
            raise ValueError(f'packbits: "{name}" is {value}, but {np.dtype(dtype)} has bits 0 to {bits - 1}')
    if last < first:
        raise ValueError(
            f'packbits: "last_bit" is {last} and "first_bit" is {first}, so that no bit is left; last_bit is inclusive'
        )
    return first, last - first + 1


def packed_size(
    dtype: Any, elements: int, padding_encoding: str = "none", first_bit: int | None = None, last_bit: int | None = None
) -> int:
    """Bytes of a payload; Python's integers do not overflow."""
    _, bits = kept_bits(dtype, first_bit, last_bit)
    return (elements * _component(dtype)[2] * bits + 7) // 8 + (padding_encoding != "none")


def last_bit_of(first_bit: int | None, last_bit: int | None, bits: int | None) -> int | None:
    if bits is None:
        return last_bit
    if last_bit is not None:
        raise ValueError("packbits: bits and last_bit say the same; use one of them")
    if not is_whole(bits) or bits < 1:
        raise ValueError(f"packbits: bits is {bits!r}, but must be a whole number of at least 1")
    return (first_bit or 0) + operator.index(bits) - 1


def pack(
    values: Any,
    padding_encoding: str = "none",
    first_bit: int | None = None,
    last_bit: int | None = None,
    *,
    bits: int | None = None,
) -> Array:
    """The payload of an array, as a uint8 array. A value that would not come back from unpack() is an error that names it.

    bits: how many to keep of each number, from first_bit on, in place of last_bit."""
    values = np.asarray(values)
    last_bit = last_bit_of(first_bit, last_bit, bits)
    first, bits = kept_bits(values.dtype, first_bit, last_bit)
    unsigned, _, components, signed = _component(values.dtype)
    if core := library.codec(values.dtype.newbyteorder("="), padding_encoding, first, bits):
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        payload = np.empty(packed_size(values.dtype, values.size, padding_encoding, first, first + bits - 1), np.uint8)
        result, element = core.encode(native, payload)
        if result == library.REFUSED_ELEMENT:
            _refuse(values, element, first, bits)
        if result != library.OK:
            raise ValueError(f"packbits: {values.size} elements of {values.dtype} are too many for one chunk")
        return payload
    # as unsigned integers, in their own byte order: floats are never touched as numbers, which keeps the payloads of NaNs
    parts = np.ascontiguousarray(values).reshape(-1).view(unsigned.newbyteorder(values.dtype.byteorder))
    size = (parts.size * bits + 7) // 8
    payload = np.empty(size + (padding_encoding != "none"), np.uint8)
    body = payload[1:] if padding_encoding == "first_byte" else payload[:size]
    for start in range(0, parts.size, _BLOCK):
        part = parts[start : start + _BLOCK].astype(unsigned)
        kept = part >> unsigned.type(first)
        if bits < 8 * unsigned.itemsize:
            kept &= unsigned.type((1 << bits) - 1)
        differs = _put_back(kept, unsigned, first, bits, signed) != part
        if differs.any():
            _refuse(values, (start + int(differs.argmax())) // components, first, bits)
        packed = _columns_to_bytes(kept, bits)
        at = start * bits // 8
        body[at : at + packed.size] = packed
    if padding_encoding != "none":
        payload[0 if padding_encoding == "first_byte" else -1] = 8 * size - parts.size * bits
    return payload


def unpack(
    payload: Any,
    dtype: Any,
    elements: int | tuple[int, ...],
    padding_encoding: str = "none",
    first_bit: int | None = None,
    last_bit: int | None = None,
    *,
    bits: int | None = None,
) -> Array:
    """The array of this many elements, of one dimension; or of this shape, where `elements` is one."""
    if isinstance(elements, tuple):
        return unpack(payload, dtype, math.prod(elements), padding_encoding, first_bit, last_bit, bits=bits).reshape(elements)
    dtype, last_bit = np.dtype(dtype), last_bit_of(first_bit, last_bit, bits)
    first, bits = kept_bits(dtype, first_bit, last_bit)
    unsigned, _, components, signed = _component(dtype)
    payload = np.frombuffer(payload, np.uint8) if not isinstance(payload, np.ndarray) else payload.reshape(-1).view(np.uint8)
    count = elements * components
    size = (count * bits + 7) // 8
    expected = packed_size(dtype, elements, padding_encoding, first, first + bits - 1)
    if payload.size != expected:
        raise ValueError(
            f"packbits: the chunk has {payload.size} bytes where {elements} elements of {dtype} with {bits} bits kept"
            f"{'' if padding_encoding == 'none' else ' and a count byte'} are {expected}; it is damaged, or not "
            "what the metadata says"
        )
    core = library.codec(dtype.newbyteorder("="), padding_encoding, first, bits)
    body = payload
    if padding_encoding != "none":
        told = int(payload[0 if padding_encoding == "first_byte" else -1])
        if told != 8 * size - count * bits:
            raise ValueError(
                f"packbits: the count byte says {told} bits of padding where {elements} elements leave "
                f"{8 * size - count * bits}; "
                "the chunk is damaged, or has another number of elements"
            )
        body = payload[1:] if padding_encoding == "first_byte" else payload[:-1]
    if core:
        values = np.empty(elements, dtype.newbyteorder("="))
        if core.decode(np.ascontiguousarray(payload), values) != library.OK:
            raise ValueError(
                f"packbits: the chunk does not hold {elements} elements of {dtype}; it is damaged, or not what the metadata says"
            )
        return values.astype(dtype, copy=False)
    values = np.empty(count, unsigned)
    for start in range(0, count, _BLOCK):
        length = min(_BLOCK, count - start)
        at = start * bits // 8
        kept = _bytes_to_columns(body[at : at + (length * bits + 7) // 8], unsigned, length, bits)
        values[start : start + length] = _put_back(kept, unsigned, first, bits, signed)
    if dtype.kind == "b":
        return values.view(bool)
    return (
        values.view(dtype.newbyteorder("<")).astype(dtype, copy=False)
        if dtype.byteorder != ">"
        else values.byteswap().view(dtype)
    )


def byte_range(
    dtype: Any,
    elements: int,
    first_element: int,
    count: int,
    padding_encoding: str = "none",
    first_bit: int | None = None,
    last_bit: int | None = None,
) -> tuple[int, int] | None:
    """(offset, size) of the bytes of a payload of `elements` that hold `count` of them;
    None where only whole payloads can be decoded."""
    first, bits = kept_bits(dtype, first_bit, last_bit)
    core = library.codec(np.dtype(dtype).newbyteorder("="), padding_encoding, first, bits)
    return core.byte_range(elements, first_element, count) if core else None


def unpack_range(
    part: Any,
    dtype: Any,
    elements: int,
    first_element: int,
    count: int,
    padding_encoding: str = "none",
    first_bit: int | None = None,
    last_bit: int | None = None,
) -> Array:
    """`count` elements from `first_element` on of a payload of `elements`, from the bytes of byte_range() alone."""
    dtype = np.dtype(dtype)
    native = dtype if dtype.isnative else dtype.newbyteorder("=")
    first, bits = _kept_bits(dtype, first_bit, last_bit)
    if not isinstance(part, np.ndarray):
        part = np.frombuffer(part, np.uint8)
    elif part.ndim != 1 or part.dtype != np.uint8 or not part.flags.c_contiguous:
        part = np.ascontiguousarray(part.reshape(-1).view(np.uint8))
    core = library.codec(native, padding_encoding, first, bits)
    values = np.empty(count, native)
    if core is None:
        raise RuntimeError("packbits: without the compiled core only whole chunks can be decoded")
    if core.decode_range(elements, first_element, part, values) != library.OK:
        raise ValueError(
            f"packbits: {part.size} bytes are not those of elements {first_element} to {first_element + count - 1} "
            f"of a chunk of {elements} of "
            f"{dtype}; it is damaged, or not what the metadata says"
        )
    return values if native is dtype else values.astype(dtype)


def _put_back(kept: Array, unsigned: Any, first: int, bits: int, signed: bool) -> Array:
    """The kept bits at first_bit; below is 0, above the sign or 0."""
    above = 8 * unsigned.itemsize - bits
    if signed and above:
        integer = np.dtype(f"<i{unsigned.itemsize}")
        kept = ((kept << unsigned.type(above)).view(integer) >> integer.type(above)).view(unsigned)
    return kept << unsigned.type(first) if first else kept


def _columns_to_bytes(kept: Array, bits: int) -> Array:
    """Elements of `bits` bits, the rest of each 0, one after the other."""
    if bits == 1:
        return np.packbits(kept.astype(np.uint8, copy=False), bitorder="little")
    if bits == 8 * kept.itemsize:
        return kept.view(np.uint8)
    size = (kept.size * bits + 7) // 8
    rows = -(-kept.size // 8)
    table = np.zeros((rows, 8), kept.dtype)
    table.reshape(-1)[: kept.size] = kept
    packed = np.zeros((rows, bits), np.uint8)
    for column, byte, shift in _overlaps(bits):
        # the cast keeps the low 8 bits; what is above them belongs to the next byte
        part = table[:, column] >> kept.dtype.type(shift) if shift >= 0 else table[:, column] << kept.dtype.type(-shift)
        packed[:, byte] |= part.astype(np.uint8)
    return packed.reshape(-1)[:size]


def _bytes_to_columns(packed: Array, unsigned: Any, count: int, bits: int) -> Array:
    """The reverse; bits of padding are ignored."""
    if bits == 1:
        return np.unpackbits(packed, count=count, bitorder="little").astype(unsigned)
    if bits == 8 * unsigned.itemsize:
        return np.frombuffer(packed.tobytes(), unsigned)
    rows = -(-count // 8)
    table = np.zeros((rows, bits), np.uint8)
    table.reshape(-1)[: packed.size] = packed
    kept = np.zeros((rows, 8), unsigned)
    for column, byte, shift in _overlaps(bits):
        part = table[:, byte].astype(unsigned)
        kept[:, column] |= part << unsigned.type(shift) if shift >= 0 else part >> unsigned.type(-shift)
    kept &= unsigned.type((1 << bits) - 1)
    return kept.reshape(-1)[:count]


def _overlaps(bits: int) -> Iterator[tuple[int, int, int]]:
    """(element, byte, bit of the element that is the lowest of the byte) for all pairs, of 8 elements and `bits` bytes,
    that share bits."""
    for column in range(8):
        for byte in range(column * bits // 8, (column * bits + bits - 1) // 8 + 1):
            yield column, byte, 8 * byte - column * bits


def _refuse(values: Array, element: int, first: int, bits: int) -> NoReturn:
    index = f"element {[int(i) for i in np.unravel_index(element, values.shape)]}" if values.ndim else "the value"
    value = values.reshape(-1)[element]
    if values.dtype.kind == "b":
        byte = int(values.reshape(-1)[element : element + 1].view(np.uint8)[0])
        raise ValueError(f"packbits: {index} is the byte {byte}, but a bool is 0 or 1; correct it")
    raise ValueError(
        f"packbits: {index} is {value}, which does not fit in bits {first} to {first + bits - 1} of {values.dtype.name}; "
        "keep more bits, or round or cut the values before they are written"
    )
