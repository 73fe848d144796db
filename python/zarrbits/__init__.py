# SPDX-License-Identifier: BSL-1.0
"""The filters of zarrbits for h5py, in words, and Zarr's packbits codec for zarr-python:

    import h5py, zarrbits
    with h5py.File("camera.h5", "w") as f:
        f.create_dataset("mask", data=mask, chunks=(256, 256), **zarrbits.packbits())
        f.create_dataset("frames", data=frames, chunks=(1, 1024, 1024), **zarrbits.packbits(bits=12))

    import zarr, zarrbits
    zarr.create_array("frames.zarr", data=frames, chunks=(1, 1024, 1024), serializer=zarrbits.PackbitsCodec(last_bit=11))

    zarrbits.write(f["frames"], frames)                     # f["frames"][...] = frames, packed in several threads
    frames = zarrbits.read(f["frames"])                     # and f["frames"][...]

    zarrbits.File("in.h5")["group/temperature"][0, ::2]     # as h5py's, decoded in several threads, every filter
    xarray.open_dataset("in.nc", engine="zarrbits")         # the same for netCDF

    report = zarrbits.convert("in.h5", "out.zarr")          # and finalize, plan, verify, inspect, suggest, doctor,
                                                            # export_store: the command in a child process
    zarr.open_group(zarrbits.open_references("refs.json"))  # a store of references
    zarrbits.to_icechunk("refs.json", "repository")         # makes a commit of it
    payload = zarrbits.pack(frames, bits=12)                # bytes of a chunk
    zarrbits.unpack(payload, "uint16", frames.shape, bits=12)

`import zarrbits` has h5py's HDF5 load the filters, and those of netCDF4 and PyTables if these are imported later:
what is appended to packed datasets is packed as well. If they were imported before, call zarrbits.register() while no other
thread uses them. From a wheel, which has the plugins, HDF5 finds them; elsewhere set HDF5_PLUGIN_PATH.
zarr-python finds the codec by itself, and does nothing else. Each half needs its own library alone.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zarrbits_codecs import plugins
from zarrbits_codecs.plugins import BYTES, PACKBITS, PLUGIN_PATH, register, unregister
from zarrbits_codecs.whole import is_whole

if TYPE_CHECKING:
    from zarrbits_codecs.numcodecs_codec import NumcodecsPackbits
    from zarrbits_codecs.packing import pack, unpack
    from zarrbits_codecs.zarr_codec import PackbitsCodec

    from .calls import (
        add_digests,
        check,
        check_layout,
        convert,
        digest,
        doctor,
        export_store,
        finalize,
        inspect,
        plan,
        rename_references,
        repack,
        suggest,
        verify,
    )
    from .command import Error
    from .hdf5_file import File
    from .hdf5_rows import read, write
    from .icechunk_store import to_icechunk
    from .progress import Progress
    from .references import open_references
    from .report import (
        Check,
        Diagnosis,
        Digest,
        Export,
        Inspection,
        LayoutCheck,
        Outcome,
        Plan,
        ReasonCode,
        Repack,
        Report,
        Suggestions,
        Verification,
    )

__version__ = "0.2.0"
_LATER = {
    "PackbitsCodec": "zarrbits_codecs.zarr_codec",
    "NumcodecsPackbits": "zarrbits_codecs.numcodecs_codec",
    "write": "zarrbits.hdf5_rows",
    "read": "zarrbits.hdf5_rows",
    "pack": "zarrbits_codecs.packing",
    "unpack": "zarrbits_codecs.packing",
    "convert": "zarrbits.calls",
    "finalize": "zarrbits.calls",
    "export_store": "zarrbits.calls",
    "repack": "zarrbits.calls",
    "rename_references": "zarrbits.calls",
    "digest": "zarrbits.calls",
    "add_digests": "zarrbits.calls",
    "check": "zarrbits.calls",
    "check_layout": "zarrbits.calls",
    "plan": "zarrbits.calls",
    "verify": "zarrbits.calls",
    "inspect": "zarrbits.calls",
    "suggest": "zarrbits.calls",
    "doctor": "zarrbits.calls",
    "Error": "zarrbits.command",
    "File": "zarrbits.hdf5_file",
    "Progress": "zarrbits.progress",
    "Report": "zarrbits.report",
    "Export": "zarrbits.report",
    "Outcome": "zarrbits.report",
    "ReasonCode": "zarrbits.report",
    "Repack": "zarrbits.report",
    "Digest": "zarrbits.report",
    "LayoutCheck": "zarrbits.report",
    "Check": "zarrbits.report",
    "Plan": "zarrbits.report",
    "Verification": "zarrbits.report",
    "Inspection": "zarrbits.report",
    "Suggestions": "zarrbits.report",
    "Diagnosis": "zarrbits.report",
    "open_references": "zarrbits.references",
    "to_icechunk": "zarrbits.icechunk_store",
}
__all__ = [
    "PACKBITS",
    "BYTES",
    "PLUGIN_PATH",
    "packbits",
    "byte_order",
    "register",
    "unregister",
    "write",
    "read",
    "pack",
    "unpack",
    "convert",
    "finalize",
    "export_store",
    "repack",
    "digest",
    "add_digests",
    "check_layout",
    "check",
    "plan",
    "verify",
    "inspect",
    "suggest",
    "doctor",
    "Error",
    "File",
    "Progress",
    "Report",
    "Export",
    "Repack",
    "Digest",
    "LayoutCheck",
    "Check",
    "Outcome",
    "ReasonCode",
    "Plan",
    "Verification",
    "Inspection",
    "Suggestions",
    "Diagnosis",
    "PackbitsCodec",
    "NumcodecsPackbits",
    "open_references",
    "to_icechunk",
    "rename_references",
]

_PADDING = {"none": 0, "first_byte": 1, "last_byte": 2}
_OUT_OF_RANGE = {"raw": 0, "truncate": 4, "report": 8, "error": 12}


if not TYPE_CHECKING:  # it would make every name one of the package

    def __getattr__(name):
        # not before it is asked for: the filters are for people without zarr-python, and without numpy, too
        if name in _LATER:
            return getattr(importlib.import_module(_LATER[name]), name)
        raise AttributeError(f"module 'zarrbits' has no attribute '{name}'")

    def __dir__():
        # for the completion of names; what the module uses itself is not offered
        return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def _filter(number: int, plugin: str, values: Sequence[int]) -> dict[str, Any]:
    import h5py

    # h5py would take an optional filter that is not there, and store everything without it
    if not h5py.h5z.filter_avail(number):
        raise RuntimeError(
            f"zarrbits: HDF5 does not find {plugin} (filter {number}); set HDF5_PLUGIN_PATH to its folder "
            "before h5py is imported (`zarrbits doctor` explains why)"
        )
    return {"compression": number, "compression_opts": tuple(values)}


def packbits(
    bits: int = 0, *, first_bit: int = 0, padding_encoding: str = "none", out_of_range: str = "raw", msb_first: bool = False
) -> dict[str, Any]:
    """Keyword arguments of create_dataset() that keep `bits` bits of each value, from `first_bit` on; 0: what the datatype says.

    out_of_range, of chunks with a value that does not fit: "raw" stores them as they are, "report" says so as well,
    "truncate" drops bits; with "error" the write fails, at the latest when the file is closed, and HDF5 may then end the process.
    """
    for name, word, known in (("padding_encoding", padding_encoding, _PADDING), ("out_of_range", out_of_range, _OUT_OF_RANGE)):
        if word not in known:
            raise ValueError(f"zarrbits: {name} is {word!r}, but must be one of {', '.join(known)}")
    for name, value in (("bits", bits), ("first_bit", first_bit)):
        if not is_whole(value) or not 0 <= value <= 64:
            raise ValueError(f"zarrbits: {name} is {value!r}, but must be a whole number from 0 to 64")
    bits, first_bit = operator.index(bits), operator.index(first_bit)
    options = _PADDING[padding_encoding] | _OUT_OF_RANGE[out_of_range] | (16 if msb_first else 0)
    return _filter(PACKBITS, "libzarrbits_packbits.so", (bits, options, first_bit))


def byte_order(order: str) -> dict[str, Any]:
    """Keyword arguments of create_dataset() for chunks in "little" or "big" endian, whatever the datatype's."""
    if order not in ("little", "big"):
        raise ValueError(f"zarrbits: the byte order is {order!r}, but must be little or big")
    return _filter(BYTES, "libzarrbits_bytes.so", (int(order == "big"),))


plugins.prepare()
