# SPDX-License-Identifier: BSL-1.0
"""The compiled core, libzarrbits.so (zarrbits/zarrbits_c.h) of this package or of zarrbits-plugins, through ctypes, which
releases the GIL.
Where there is none, or ZARRBITS_LIBRARY is "none", packing.py does the same in numpy; ZARRBITS_LIBRARY may name another one."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from typing import Any

import numpy as np

from .plugins import LIBRARY_PATH

OK, REFUSED_ELEMENT = 0, 1  # of zarrbits_result
_INTERFACE = 2


def _load() -> ctypes.CDLL | None:
    path = os.environ.get("ZARRBITS_LIBRARY") or LIBRARY_PATH
    if path == "none":
        return None
    try:
        library = ctypes.CDLL(path)
        if library.zarrbits_interface() != _INTERFACE:
            return None
    except (OSError, AttributeError):
        return None
    codec, size, memory, number, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p
    out, result = ctypes.POINTER(number), ctypes.c_int
    for name, returned, arguments in (
        ("make_codec", codec, [text, text, text, size]),
        ("free_codec", None, [codec]),
        ("encoded_range", result, [codec, number, number, number, out, out]),
        ("encode", result, [codec, memory, size, memory, size, out]),
        ("decode", result, [codec, memory, size, memory, size, out]),
        ("decode_range", result, [codec, number, number, memory, size, memory, size, out]),
    ):
        function = getattr(library, "zarrbits_" + name)
        function.restype, function.argtypes = returned, arguments
    return library


LIBRARY: Any = _load()
_BYTE = ctypes.c_char


def _address(array: Any) -> Any:
    """Where a contiguous array begins, as an argument of a call. numpy's own `array.ctypes` takes as long as a small call."""
    if array.flags.writeable:
        try:
            return ctypes.byref(_BYTE.from_buffer(array))
        except ValueError:  # times, which are not buffers, and arrays of no elements
            pass
    elif type(array.base) is bytes and len(array.base) == array.nbytes:  # all of what was read from a store
        return array.base
    return array.ctypes.data


class _Codec:
    """A codec of the core for a numpy type in this machine's byte order; arrays that it gets are contiguous."""

    _codec: Any = None

    def __init__(self, dtype: Any, padding_encoding: str, first_bit: int, bits: int) -> None:
        dtype = np.dtype(dtype)
        # times are whole numbers with a sign
        name = "bool" if dtype.kind == "b" else f"int{8 * dtype.itemsize}" if dtype.kind in "mM" else dtype.name
        configuration = {"padding_encoding": padding_encoding, "first_bit": first_bit, "last_bit": first_bit + bits - 1}
        reason = ctypes.create_string_buffer(500)
        self._codec = LIBRARY.zarrbits_make_codec(
            json.dumps({"name": "packbits", "configuration": configuration}).encode(), name.encode(), reason, len(reason)
        )
        if not self._codec:
            raise ValueError("packbits: " + reason.value.decode(errors="replace"))

    def __del__(self) -> None:
        if self._codec and LIBRARY:  # at the end of the process, modules may be gone
            LIBRARY.zarrbits_free_codec(self._codec)

    def encode(self, values: Any, payload: Any) -> tuple[int, int]:
        """(a zarrbits_result, the index of the element that is refused)."""
        element = ctypes.c_uint64()
        result = LIBRARY.zarrbits_encode(
            self._codec, _address(values), values.nbytes, _address(payload), payload.nbytes, ctypes.byref(element)
        )
        return result, element.value

    def decode(self, payload: Any, values: Any) -> int:
        return int(LIBRARY.zarrbits_decode(self._codec, _address(payload), payload.nbytes, _address(values), values.nbytes, None))

    def byte_range(self, elements: int, first: int, count: int) -> tuple[int, int]:
        """(offset, size) of the bytes that hold these elements."""
        offset, size = ctypes.c_uint64(), ctypes.c_uint64()
        if LIBRARY.zarrbits_encoded_range(self._codec, elements, first, count, ctypes.byref(offset), ctypes.byref(size)):
            raise ValueError(f"packbits: elements {first} to {first + count - 1} are not in a chunk of {elements}")
        return offset.value, size.value

    def decode_range(self, elements: int, first: int, part: Any, values: Any) -> int:
        return int(
            LIBRARY.zarrbits_decode_range(
                self._codec, elements, first, _address(part), part.nbytes, _address(values), values.nbytes, None
            )
        )


@functools.lru_cache(maxsize=256)
def codec(dtype: Any, padding_encoding: str, first_bit: int, bits: int) -> _Codec | None:
    """None where there is no library."""
    return _Codec(dtype, padding_encoding, first_bit, bits) if LIBRARY else None
