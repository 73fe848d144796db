# SPDX-License-Identifier: BSL-1.0
"""`packbits` for zarr-python, which finds it by itself (entry point zarr.codecs) once this package is installed:

    zarr.open_array("camera.zarr")                                          # reads it
    zarr.create_array("mask.zarr", shape=(4096, 4096), chunks=(512, 512), dtype="bool", serializer=zarrbits.PackbitsCodec())
    zarr.create_array("camera.zarr", data=frames, chunks=(1, 1024, 1024), serializer=zarrbits.PackbitsCodec(last_bit=11))
"""
from dataclasses import dataclass
import math

from zarr.abc.codec import ArrayBytesCodec

from . import packing

@dataclass(frozen=True)
class PackbitsCodec(ArrayBytesCodec):
    """Keeps bits first_bit to last_bit of each component: all by default. padding_encoding: "none", "first_byte" or "last_byte"."""

    is_fixed_size = True

    padding_encoding: str
    first_bit: int | None
    last_bit: int | None

    def __init__(self, *, padding_encoding=None, first_bit=None, last_bit=None):
        configuration = {"padding_encoding": padding_encoding, "first_bit": first_bit, "last_bit": last_bit}
        padding, first, last = packing.read_configuration(configuration)
        object.__setattr__(self, "padding_encoding", padding)
        object.__setattr__(self, "first_bit", first)
        object.__setattr__(self, "last_bit", last)

    @classmethod
    def from_dict(cls, data):
        unknown = set(data) - {"name", "configuration", "must_understand"}
        if data.get("name") != "packbits" or unknown:
            raise ValueError(f"packbits: the codec is {data!r}, but must be an object with \"name\": \"packbits\" and \"configuration\"")
        configuration = data.get("configuration", {})
        if not isinstance(configuration, dict):
            raise ValueError(f"packbits: \"configuration\" is {configuration!r}, but must be an object")
        padding, first, last = packing.read_configuration(configuration)
        return cls(padding_encoding=padding, first_bit=first, last_bit=last)

    def to_dict(self):
        configuration = {}
        if self.padding_encoding != "none":
            configuration["padding_encoding"] = self.padding_encoding
        if self.first_bit:
            configuration["first_bit"] = self.first_bit
        if self.last_bit is not None:
            configuration["last_bit"] = self.last_bit
        return {"name": "packbits", "configuration": configuration} if configuration else {"name": "packbits"}

    def validate(self, *, shape, dtype, chunk_grid):
        packing.kept_bits(dtype.to_native_dtype(), self.first_bit, self.last_bit)

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        dtype = chunk_spec.dtype.to_native_dtype()
        return packing.packed_size(dtype, input_byte_length // dtype.itemsize, self.padding_encoding, self.first_bit, self.last_bit)

    def _encode_sync(self, chunk_array, chunk_spec):
        packed = packing.pack(chunk_array.as_numpy_array(), self.padding_encoding, self.first_bit, self.last_bit)
        return chunk_spec.prototype.buffer.from_array_like(packed)

    def _decode_sync(self, chunk_bytes, chunk_spec):
        values = packing.unpack(chunk_bytes.as_numpy_array(), chunk_spec.dtype.to_native_dtype(), math.prod(chunk_spec.shape),
                                self.padding_encoding, self.first_bit, self.last_bit)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(values.reshape(chunk_spec.shape))

    async def _encode_single(self, chunk_array, chunk_spec):
        return self._encode_sync(chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes, chunk_spec):
        return self._decode_sync(chunk_bytes, chunk_spec)
