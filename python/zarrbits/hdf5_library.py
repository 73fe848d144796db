# SPDX-License-Identifier: BSL-1.0
"""libzarrbits_reader.so (zarrbits/hdf5_file.h) through ctypes, which releases the GIL. It has a libhdf5 of its own in wheels."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import Any

from zarrbits_codecs.plugins import compiled

from .command import Denied, Error, NotFound
from .words import in_python

_INTERFACE = 1
_NOT_FOUND, _DENIED = 34, 36  # of zarrbits::errc
_NAMES = {
    32: "invalid_option",
    34: "not_found",
    36: "permission_denied",
    38: "io_failed",
    39: "damaged_source",
    41: "unsupported",
    42: "refused",
    43: "changed",
    44: "busy",
    48: "server_failed",
}


@functools.lru_cache(maxsize=1)
def library() -> Any:
    """The library; raises Error where this package was built without it."""
    path = os.environ.get("ZARRBITS_READER_LIBRARY") or compiled("libzarrbits_reader.so")
    try:
        loaded = ctypes.CDLL(path)
        if loaded.zarrbits_hdf5_interface() != _INTERFACE:
            raise OSError("it is of another version")
    except (OSError, AttributeError) as e:
        raise Error(
            f"zarrbits: {path} cannot be loaded: {e}; install the package zarrbits from a wheel", 1, "unsupported"
        ) from None
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    for name, result, arguments in (
        ("error", text, []),
        ("error_code", ctypes.c_int, []),
        ("open", pointer, [text, text]),
        ("close", None, [pointer]),
        ("describe", pointer, [pointer, text, pointer]),
        ("attributes", pointer, [pointer, text, pointer]),
        ("free", None, [pointer]),
        ("open_dataset", pointer, [pointer, text]),
        ("close_dataset", None, [pointer]),
        ("read", ctypes.c_int, [pointer, size, pointer, pointer, pointer, pointer, size]),
        ("read_packed", pointer, [pointer, size, pointer, pointer, pointer, pointer]),
        ("statistics", None, [pointer, pointer]),
        ("has_decoders", ctypes.c_int, [pointer, size]),
        ("has_encoders", ctypes.c_int, [pointer, size]),
        ("decode_chunk", ctypes.c_int, [pointer, size, ctypes.c_uint, text, size, pointer, size]),
        ("encode_chunk", pointer, [pointer, size, pointer, size, pointer]),
    ):
        function = getattr(loaded, "zarrbits_hdf5_" + name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _failure() -> Error:
    number = library().zarrbits_hdf5_error_code()
    sentence = "zarrbits: " + in_python(library().zarrbits_hdf5_error().decode(errors="replace"))
    kind = NotFound if number == _NOT_FOUND else Denied if number == _DENIED else Error
    return kind(sentence, 1, _NAMES.get(number, ""))


def _bytes_of(function: Any, *arguments: Any) -> bytes:
    size = ctypes.c_size_t()
    pointer = function(*arguments, ctypes.byref(size))
    if not pointer:
        raise _failure()
    try:
        return ctypes.string_at(pointer, size.value)
    finally:
        library().zarrbits_hdf5_free(pointer)


_BYTE = ctypes.c_char


def address_of(array: Any) -> Any:
    """Where a contiguous array begins, as an argument of a call. numpy's own `array.ctypes` takes as long as a small call."""
    try:
        return ctypes.byref(_BYTE.from_buffer(array))
    except (ValueError, BufferError):  # times, which are not buffers
        return array.ctypes.data


class OpenFile:
    """An open file of the library. It is closed when nobody uses it any longer; a child process never closes its parent's."""

    def __init__(self, path: str, options: str) -> None:
        self.process = os.getpid()
        self.pointer = library().zarrbits_hdf5_open(os.fsencode(path), options.encode())
        if not self.pointer:
            raise _failure()

    def __del__(self) -> None:
        if getattr(self, "pointer", None) and self.process == os.getpid():
            library().zarrbits_hdf5_close(self.pointer)

    def describe(self, path: bytes) -> bytes:
        return _bytes_of(library().zarrbits_hdf5_describe, self.pointer, path)

    def attributes(self, path: bytes) -> bytes:
        return _bytes_of(library().zarrbits_hdf5_attributes, self.pointer, path)

    def statistics(self) -> list[int]:
        numbers = (ctypes.c_uint64 * 5)()
        library().zarrbits_hdf5_statistics(self.pointer, numbers)
        return list(numbers)


class OpenDataset:
    """A dataset of an open file."""

    def __init__(self, file: OpenFile, path: bytes) -> None:
        self.process = file.process
        self._read = library().zarrbits_hdf5_read
        self._whole: tuple[Any, ...] | None = None  # the arguments that select all of it
        self.pointer = library().zarrbits_hdf5_open_dataset(file.pointer, path)
        if not self.pointer:
            raise _failure()

    def __del__(self) -> None:
        if getattr(self, "pointer", None) and self.process == os.getpid():
            library().zarrbits_hdf5_close_dataset(self.pointer)

    def read(self, first: Sequence[int], count: Sequence[int], step: Sequence[int], address: int, size: int) -> None:
        """Into memory, in C order."""
        rank = len(first)
        numbers = ctypes.c_uint64 * rank
        if self._read(self.pointer, rank, numbers(*first), numbers(*count), numbers(*step), address, size):
            raise _failure()

    def read_whole(self, shape: Sequence[int], address: Any, size: int) -> None:
        """All of it: a call for a few values costs little more than the library's own work."""
        if self._whole is None:
            numbers = ctypes.c_uint64 * len(shape)
            self._whole = len(shape), numbers(), numbers(*shape), None
        if self._read(self.pointer, *self._whole, address, size):
            raise _failure()

    def read_packed(self, first: Sequence[int], count: Sequence[int], step: Sequence[int]) -> bytes:
        rank = len(first)
        numbers = ctypes.c_uint64 * rank
        return _bytes_of(
            library().zarrbits_hdf5_read_packed, self.pointer, rank, numbers(*first), numbers(*count), numbers(*step)
        )


class Pipeline:
    """The filters of a dataset, each a number and its parameters, for chunks that another libhdf5 reads and writes."""

    def __init__(self, filters: Sequence[tuple[int, Sequence[int]]]) -> None:
        numbers = [n for number, values in filters for n in (number, len(values), *values)]
        self._filters = (ctypes.c_uint * len(numbers))(*numbers), len(numbers)

    def can_decode(self) -> bool:
        return bool(library().zarrbits_hdf5_has_decoders(*self._filters))

    def can_encode(self) -> bool:
        return bool(library().zarrbits_hdf5_has_encoders(*self._filters))

    def decode(self, stored: bytes, mask: int, address: int, size: int) -> None:
        """Into memory."""
        if library().zarrbits_hdf5_decode_chunk(*self._filters, mask, stored, len(stored), address, size):
            raise _failure()

    def encode(self, address: int, size: int) -> bytes:
        return _bytes_of(library().zarrbits_hdf5_encode_chunk, *self._filters, address, size)
