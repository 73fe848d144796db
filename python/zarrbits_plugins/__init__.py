# SPDX-License-Identifier: BSL-1.0
"""The HDF5 filters of zarrbits, without anything else of it:

    import h5py, zarrbits_plugins
    with h5py.File("camera.h5", "w") as f:
        f.create_dataset("mask", data=mask, chunks=(256, 256), compression=zarrbits_plugins.PACKBITS)
        options = {"compression": zarrbits_plugins.PACKBITS, "compression_opts": (12,)}
        f.create_dataset("frames", data=frames, chunks=(1, 1024, 1024), **options)

The import has h5py's HDF5 load the filters, and those of netCDF4 and PyTables if these are imported later; register() also has
those that were there before.
PLUGIN_PATH is the folder of the plugins, for HDF5_PLUGIN_PATH of other programs; LIBRARY_PATH is libzarrbits, the codecs behind
a C ABI, for ctypes. `zarrbits` has words for the filters' options, and the codecs for zarr-python and numcodecs.
"""

from . import plugins
from .plugins import BYTES, LIBRARY_PATH, PACKBITS, PLUGIN_PATH, register, unregister

__all__ = ["BYTES", "LIBRARY_PATH", "PACKBITS", "PLUGIN_PATH", "register", "unregister"]

plugins.prepare()
