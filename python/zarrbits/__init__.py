# SPDX-License-Identifier: BSL-1.0
"""The filters of zarrbits for h5py, in words, and Zarr's packbits codec for zarr-python:

    import h5py, zarrbits
    with h5py.File("camera.h5", "w") as f:
        f.create_dataset("mask", data=mask, chunks=(256, 256), **zarrbits.packbits())
        f.create_dataset("frames", data=frames, chunks=(1, 1024, 1024), **zarrbits.packbits(bits=12))

    import zarr, zarrbits
    zarr.create_array("frames.zarr", data=frames, chunks=(1, 1024, 1024), serializer=zarrbits.PackbitsCodec(last_bit=11))

    report = zarrbits.convert("in.h5", "out.zarr")          # and plan, verify, inspect, suggest, doctor: the command in a child process
    payload = zarrbits.pack(frames, last_bit=11)            # bytes of a chunk, and zarrbits.unpack(payload, "uint16", frames.size, last_bit=11)

From a wheel, which has the plugins, HDF5 finds them: `import zarrbits` completes HDF5_PLUGIN_PATH and tells a libhdf5 that is loaded already;
zarrbits.unregister() undoes it. Elsewhere set HDF5_PLUGIN_PATH. zarr-python finds the codec by itself. Each half needs its own library alone.
"""
import importlib
import operator

from .plugins import PLUGIN_PATH, register, unregister
from .whole import is_whole

__version__ = "0.1.0"
_LATER = {"PackbitsCodec": "zarr_codec", "pack": "packing", "unpack": "packing", "convert": "command", "plan": "command", "verify": "command",
          "inspect": "command", "suggest": "command", "doctor": "command", "Error": "command", "Report": "command", "Outcome": "command",
          "Plan": "command", "Verification": "command"}
__all__ = ["PACKBITS", "BYTES", "PLUGIN_PATH", "packbits", "byte_order", "register", "unregister", *_LATER]

PACKBITS, BYTES = 45429, 45438
_PADDING = {"none": 0, "first_byte": 1, "last_byte": 2}
_OUT_OF_RANGE = {"raw": 0, "truncate": 4, "report": 8}


def __getattr__(name):
    # not before it is asked for: the filters are for people without zarr-python, and without numpy, too
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    raise AttributeError(f"module 'zarrbits' has no attribute '{name}'")


def _filter(number, plugin, values):
    import h5py
    # h5py would take an optional filter that is not there, and store everything without it
    if not h5py.h5z.filter_avail(number):
        raise RuntimeError(f"zarrbits: HDF5 does not find {plugin} (filter {number}); set HDF5_PLUGIN_PATH to its folder before h5py is imported "
                           "(`zarrbits doctor` tells more)")
    return {"compression": number, "compression_opts": tuple(values)}


def packbits(bits=0, *, first_bit=0, padding_encoding="none", out_of_range="raw", msb_first=False):
    """Keyword arguments of create_dataset() that keep `bits` bits of each value, from `first_bit` on; 0: what the datatype says.

    out_of_range, of chunks with a value that does not fit: "raw" stores them as they are, "report" says so as well, "truncate" drops bits. With another
    filter than fletcher32 after it, such a value is an error with "raw" and "report".
    """
    for name, value, known in (("padding_encoding", padding_encoding, _PADDING), ("out_of_range", out_of_range, _OUT_OF_RANGE)):
        if value not in known:
            raise ValueError(f"zarrbits: {name} is {value!r}, but must be one of {', '.join(known)}")
    for name, value in (("bits", bits), ("first_bit", first_bit)):
        if not is_whole(value) or not 0 <= value <= 64:
            raise ValueError(f"zarrbits: {name} is {value!r}, but must be a whole number from 0 to 64")
    bits, first_bit = operator.index(bits), operator.index(first_bit)
    options = _PADDING[padding_encoding] | _OUT_OF_RANGE[out_of_range] | (16 if msb_first else 0)
    return _filter(PACKBITS, "libzarrbits_packbits.so", (bits, options, first_bit))


def byte_order(order):
    """Keyword arguments of create_dataset() for chunks in "little" or "big" endian, whatever the datatype's."""
    if order not in ("little", "big"):
        raise ValueError(f"zarrbits: the byte order is {order!r}, but must be little or big")
    return _filter(BYTES, "libzarrbits_bytes.so", (int(order == "big"),))


register()
