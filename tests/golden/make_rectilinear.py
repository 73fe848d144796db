#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes rectilinear.json: arrays with rectilinear chunk grids, as zarr-python writes them, for the reader of zarrbits. Run it by
hand:

    python3 -m venv v && v/bin/pip install zarr
    v/bin/python tests/golden/make_rectilinear.py > tests/golden/rectilinear.json

Each array has int16 values 0, 1, 2, ... in C order, and its fill value in the chunks that `left_out` names by their first
elements.
"""

import json
import pathlib
import tempfile

import numpy as np
import zarr

zarr.config.set({"array.rectilinear_chunks": True})
ARRAYS = {  # shape, chunks, more
    "runs": ((31, 4), ([10, 10, 10, 1], 3), {}),
    "both": ((9, 7), ([4, 4, 1], [2, 5]), {}),
    "longer": ((10,), ([4, 4, 4, 4],), {"made_with": (16,)}),  # the last chunks reach over the edge, or lie beyond it
    "turned": ((5, 6), ([2, 3], [1, 5]), {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]}),
    "packed": ((25,), ([8, 8, 8, 1],), {"compressors": [zarr.codecs.GzipCodec(level=5), zarr.codecs.Crc32cCodec()]}),
    "gaps": ((12,), ([5, 5, 2],), {"left_out": [5]}),
}

out = {}
with tempfile.TemporaryDirectory() as folder:
    for name, (shape, chunks, more) in ARRAYS.items():
        left_out, made_with = more.pop("left_out", []), more.pop("made_with", shape)
        values = np.arange(np.prod(shape), dtype="i2").reshape(shape)
        for first in left_out:
            values[first : first + 5] = -5
        a = zarr.create_array(
            f"{folder}/{name}", shape=made_with, chunks=chunks, dtype="int16", fill_value=-5, **({"compressors": None} | more)
        )
        a.resize(shape)
        a[...] = values
        files = sorted(p for p in pathlib.Path(folder, name).rglob("*") if p.is_file())
        out[name] = {
            "left_out": left_out,
            "zarr.json": json.loads(pathlib.Path(folder, name, "zarr.json").read_text()),
            "objects": {str(p.relative_to(f"{folder}/{name}")): p.read_bytes().hex() for p in files if p.name != "zarr.json"},
        }
print(json.dumps({"made_by": f"zarr-python {zarr.__version__}: make_rectilinear.py", "arrays": out}, indent=1))
