# SPDX-License-Identifier: BSL-1.0
"""packbits for numcodecs, and so for Zarr v2 and for references to the chunks of HDF5 files (kerchunk's),
under the id "zarrbits.packbits":

    with h5py.File("camera.h5") as f:
        filters = [zarrbits.NumcodecsPackbits.of_dataset(f["frames"]).get_config()]      # for the dataset's .zarray

numcodecs finds it by itself once this package is installed. numcodecs' own "packbits" is another format, of booleans alone.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ndarray_copy

from . import packing

_FILTER, _LAYOUT = 45429, 0x5A504201  # what the HDF5 plugin writes into a file: filter/packbits.hpp
_PADDING = ("none", "first_byte", "last_byte")


class NumcodecsPackbits(Codec):  # type: ignore[misc]  # numcodecs has no types
    """Keeps `bits` bits of each number from `first_bit` on.

    dtype: of the elements of a chunk, with their byte order; elements: how many a chunk has.
    Without it, an array is decoded only where its size says how many there are: 8 bits and more, or a count byte.
    A chunk of as many bytes as its elements have is one that the HDF5 filter left unpacked, and comes as it is.
    """

    codec_id = "zarrbits.packbits"

    def __init__(
        self,
        dtype: Any,
        *,
        bits: int | None = None,
        first_bit: int = 0,
        padding_encoding: str = "none",
        elements: int | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype).str
        last = packing.last_bit_of(first_bit, None, bits)
        self.padding_encoding = packing.read_configuration(
            {"padding_encoding": padding_encoding, "first_bit": first_bit, "last_bit": last}
        )[0]
        self.first_bit, self.bits = packing.kept_bits(self.dtype, first_bit, last)
        if elements is not None and operator.index(elements) < 0:
            raise ValueError(f"packbits: elements is {elements}, but must not be less than 0")
        self.elements = None if elements is None else operator.index(elements)

    @classmethod
    def of_dataset(cls, dataset: Any) -> NumcodecsPackbits:
        """What decodes the chunks of h5py's dataset. ValueError where the filter is another one,
        or does what this codec does not."""
        properties = dataset.id.get_create_plist()
        for index in range(properties.get_nfilters()):
            number, _, values, _ = properties.get_filter(index)
            if number == _FILTER:
                return cls.of_filter(values)
        raise ValueError(f"packbits: {dataset.name} does not have the filter {_FILTER}")

    @classmethod
    def of_filter(cls, values: Any) -> NumcodecsPackbits:
        """Of the values that the HDF5 filter has in a file (cd_values)."""
        values = [int(v) for v in values]
        if len(values) < 12 or values[4] != _LAYOUT:
            raise ValueError(f"packbits: the filter's values {values} are not values that it writes into a file")
        bits, options, first_bit, component = values[0], values[1], values[2], values[7]
        size, precision = component & 0xFF, component >> 8 & 0xFF
        if options & 16:
            raise ValueError(
                "packbits: the most significant bit comes first; use numcodecs' own PackBits where there is a count byte, too"
            )
        if options & 3 == 3 or size not in (1, 2, 4, 8) or values[6] < 1 or not 1 <= bits <= 8 * size:
            raise ValueError(f"packbits: the filter's values {values} are not values that it writes into a file")
        if component >> 19 & 3:
            raise ValueError(
                "packbits: chunks have more than their values, because of the filters before or after (a checksum, "
                "or what fills them up to one "
                "size), which this codec does not take"
            )
        is_bool, is_signed = bool(component >> 18 & 1), bool(component >> 17 & 1)
        if not is_bool and precision != 8 * size and first_bit > 0:
            raise ValueError(
                f"packbits: the datatype has {precision} of {8 * size} bits, from bit {first_bit} on, which only "
                "HDF5 moves where numbers have them"
            )
        # as whole numbers: the array's own data type says what the bytes are
        dtype = "|b1" if is_bool else f"{'>' if component >> 16 & 1 else '<'}{'i' if is_signed else 'u'}{size}"
        return cls(
            dtype,
            bits=bits,
            first_bit=first_bit,
            padding_encoding=_PADDING[options & 3],
            elements=(values[8] | values[9] << 32) * values[6],
        )

    def get_config(self) -> dict[str, Any]:
        config = {
            "id": self.codec_id,
            "dtype": self.dtype,
            "bits": self.bits,
            "first_bit": self.first_bit,
            "padding_encoding": self.padding_encoding,
        }
        return config if self.elements is None else {**config, "elements": self.elements}

    def encode(self, buf: Any) -> Any:
        values = np.asarray(buf) if isinstance(buf, np.ndarray) else np.frombuffer(buf, np.uint8)
        values = np.ascontiguousarray(values).reshape(-1).view(self.dtype)
        return packing.pack(values, self.padding_encoding, self.first_bit, bits=self.bits)

    def _count(self, payload: Any) -> int:
        if self.elements is not None:
            return self.elements
        components = 2 if np.dtype(self.dtype).kind == "c" else 1
        bits = self.bits * components
        if self.padding_encoding != "none":
            if payload.size < 1:
                raise ValueError("packbits: the chunk is empty, without its count byte")
            return (8 * (int(payload.size) - 1) - int(payload[0 if self.padding_encoding == "first_byte" else -1])) // bits
        if bits < 8:
            raise ValueError(
                f"packbits: {payload.size} bytes do not say how many elements of {bits} bits they hold; pass elements"
            )
        return 8 * int(payload.size) // bits

    def decode(self, buf: Any, out: Any = None) -> Any:
        payload = ensure_contiguous_ndarray(buf).reshape(-1).view(np.uint8)
        dtype, count = np.dtype(self.dtype), self._count(payload)
        packed = packing.packed_size(dtype, count, self.padding_encoding, self.first_bit, self.first_bit + self.bits - 1)
        if self.elements is not None and payload.size == count * dtype.itemsize and payload.size != packed:
            values = payload.view(dtype)
        else:
            values = packing.unpack(payload, dtype, count, self.padding_encoding, self.first_bit, bits=self.bits)
        return values if out is None else ndarray_copy(values, out)
