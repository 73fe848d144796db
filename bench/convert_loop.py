# SPDX-License-Identifier: BSL-1.0
"""What people write today to get from HDF5 to Zarr: a loop over chunks.
Run as a process of its own, so that its CPU time is known.

convert_loop.py IN.h5 OUT.zarr same|again|gzip [CHUNKS OF A SHARD ALONG EACH DIMENSION]
"""

import itertools
import sys
import warnings

import h5py
import zarr

try:
    import hdf5plugin  # noqa: F401  (its filters are registered)
except ImportError:
    pass

warnings.filterwarnings("ignore")
source, target, codecs = sys.argv[1:4]
shard = int(sys.argv[4]) if len(sys.argv) > 4 else 0

with h5py.File(source, "r") as f:
    d = f["x"]
    options = {}
    if codecs == "same":  # the codecs that the source has, under their names in Zarr
        compressors = []
        if d.shuffle:
            compressors.append({"name": "numcodecs.shuffle", "configuration": {"elementsize": d.dtype.itemsize}})
        if d.compression == "gzip":
            compressors.append({"name": "numcodecs.zlib", "configuration": {"level": d.compression_opts}})
        options["compressors"] = compressors or None
    if codecs == "gzip":
        options["compressors"] = [{"name": "gzip", "configuration": {"level": 6}}]
    if shard:
        options["shards"] = tuple(c * shard for c in d.chunks)
    a = zarr.create_array(target, shape=d.shape, chunks=d.chunks, dtype=d.dtype, **options)
    step = options.get("shards", d.chunks)
    for first in itertools.product(*(range(0, n, s) for n, s in zip(d.shape, step))):
        block = tuple(slice(i, i + s) for i, s in zip(first, step))
        a[block] = d[block]
