# SPDX-License-Identifier: BSL-1.0
"""`packbits` for zarr-python, which finds it by itself (entry point zarr.codecs) once this package is installed:

zarr.open_array("camera.zarr")                                          # reads it
zarr.create_array("mask.zarr", shape=(4096, 4096), chunks=(512, 512), dtype="bool", serializer=zarrbits.PackbitsCodec())
zarr.create_array("camera.zarr", data=frames, chunks=(1, 1024, 1024), serializer=zarrbits.PackbitsCodec(last_bit=11))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
from zarr.abc.store import RangeByteRequest
from zarr.storage import StorePath

from . import packing


def taken_by(selection: Any, shape: tuple[int, ...]) -> list[range] | None:
    """The indices that a selection takes of each dimension, as ranges that ascend;
    None where it has something else than numbers and slices, or is empty."""
    selection = selection if isinstance(selection, tuple) else (selection,)
    if len(selection) != len(shape):
        return None
    taken = []
    for s, length in zip(selection, shape):
        if isinstance(s, slice):
            taken.append(range(length)[s])
        elif isinstance(s, (int, np.integer)) and not isinstance(s, bool) and 0 <= s < length:
            taken.append(range(int(s), int(s) + 1))
        else:
            return None
    return taken if all(len(t) > 0 and t.step > 0 for t in taken) else None


@dataclass(frozen=True)
class Part:
    """The elements of a chunk from the first to the last of a selection, and where their bytes are."""

    selection: tuple[Any, ...]
    taken: list[range]
    shape: tuple[int, ...]
    first: int
    count: int
    offset: int
    size: int

    def select(self, values: Any) -> Any:
        """The selection, of these elements alone."""
        strides = [values.itemsize * math.prod(self.shape[d + 1 :]) for d in range(len(self.shape))]
        # the box around the selection lies within them, with the strides of the chunk
        box = np.lib.stride_tricks.as_strided(values, [t[-1] - t[0] + 1 for t in self.taken], strides, writeable=False)
        return box[tuple(slice(None, None, t.step) if isinstance(s, slice) else 0 for s, t in zip(self.selection, self.taken))]


@dataclass(frozen=True)
class PackbitsCodec(ArrayBytesCodecPartialDecodeMixin, ArrayBytesCodec):
    """Keeps bits first_bit to last_bit of each component: all by default. padding_encoding:
    "none", "first_byte" or "last_byte"."""

    is_fixed_size = True

    padding_encoding: str
    first_bit: int | None
    last_bit: int | None

    def __init__(self, *, padding_encoding: str | None = None, first_bit: int | None = None, last_bit: int | None = None) -> None:
        configuration = {"padding_encoding": padding_encoding, "first_bit": first_bit, "last_bit": last_bit}
        padding, first, last = packing.read_configuration(configuration)
        object.__setattr__(self, "padding_encoding", padding)
        object.__setattr__(self, "first_bit", first)
        object.__setattr__(self, "last_bit", last)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PackbitsCodec:
        unknown = set(data) - {"name", "configuration", "must_understand"}
        if data.get("name") != "packbits" or unknown:
            raise ValueError(
                f'packbits: the codec is {data!r}, but must be an object with "name": "packbits" and "configuration"'
            )
        configuration = data.get("configuration", {})
        if not isinstance(configuration, dict):
            raise ValueError(f'packbits: "configuration" is {configuration!r}, but must be an object')
        padding, first, last = packing.read_configuration(configuration)
        return cls(padding_encoding=padding, first_bit=first, last_bit=last)

    def to_dict(self) -> dict[str, Any]:
        configuration: dict[str, Any] = {}
        if self.padding_encoding != "none":
            configuration["padding_encoding"] = self.padding_encoding
        if self.first_bit:
            configuration["first_bit"] = self.first_bit
        if self.last_bit is not None:
            configuration["last_bit"] = self.last_bit
        return {"name": "packbits", "configuration": configuration} if configuration else {"name": "packbits"}

    def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
        packing.kept_bits(dtype.to_native_dtype(), self.first_bit, self.last_bit)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        dtype = chunk_spec.dtype.to_native_dtype()
        return packing.packed_size(
            dtype, input_byte_length // dtype.itemsize, self.padding_encoding, self.first_bit, self.last_bit
        )

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        packed = packing.pack(chunk_array.as_numpy_array(), self.padding_encoding, self.first_bit, self.last_bit)
        return chunk_spec.prototype.buffer.from_array_like(packed)

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        values = packing.unpack(
            chunk_bytes.as_numpy_array(),
            chunk_spec.dtype.to_native_dtype(),
            math.prod(chunk_spec.shape),
            self.padding_encoding,
            self.first_bit,
            self.last_bit,
        )
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(values.reshape(chunk_spec.shape))

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return self._encode_sync(chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return self._decode_sync(chunk_bytes, chunk_spec)

    def _part(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Part | None:
        """What to read for a selection; None: the whole chunk."""
        # zarr-python 3.1 reads no parts of the chunks within a shard
        taken = taken_by(selection, chunk_spec.shape) if isinstance(byte_getter, StorePath) and chunk_spec.shape else None
        if taken is None:
            return None
        dtype, shape, options = (
            chunk_spec.dtype.to_native_dtype(),
            chunk_spec.shape,
            (self.padding_encoding, self.first_bit, self.last_bit),
        )
        first, last = (int(np.ravel_multi_index([t[end] for t in taken], shape)) for end in (0, -1))
        elements, count = math.prod(shape), last - first + 1
        at = packing.byte_range(dtype, elements, first, count, *options) if count < elements else None
        return at and Part(selection if isinstance(selection, tuple) else (selection,), taken, shape, first, count, *at)

    def _decode_part(self, chunk_bytes: Any, part: Part | None, selection: Any, chunk_spec: Any) -> Any:
        if chunk_bytes is None:
            return None
        if part is None:
            return self._decode_sync(chunk_bytes, chunk_spec)[selection]
        values = packing.unpack_range(
            chunk_bytes.as_numpy_array(),
            chunk_spec.dtype.to_native_dtype(),
            math.prod(part.shape),
            part.first,
            part.count,
            self.padding_encoding,
            self.first_bit,
            self.last_bit,
        )
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(part.select(values))

    def _decode_partial_sync(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        part = self._part(byte_getter, selection, chunk_spec)
        wanted = part and RangeByteRequest(part.offset, part.offset + part.size)
        return self._decode_part(
            byte_getter.get_sync(prototype=chunk_spec.prototype, byte_range=wanted), part, selection, chunk_spec
        )

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        part = self._part(byte_getter, selection, chunk_spec)
        wanted = part and RangeByteRequest(part.offset, part.offset + part.size)
        return self._decode_part(
            await byte_getter.get(prototype=chunk_spec.prototype, byte_range=wanted), part, selection, chunk_spec
        )
