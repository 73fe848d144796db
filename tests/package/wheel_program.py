#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What a user of the wheel does, in the current folder, after importing packages in this order:
wheel_program.py [netCDF4 zarrbits ...]"""

import importlib
import importlib.util
import os
import subprocess
import sys

for name in sys.argv[1:]:
    importlib.import_module(name)
import h5py
import numpy as np

import zarrbits

if sys.argv[1] in ("netCDF4", "tables"):  # a libhdf5 that was there before: another thread could be in it
    zarrbits.register()
assert not any(v in os.environ for v in ("ZARRBITS_COMMAND", "ZARRBITS_LIBRARY"))
camera, mask = np.random.default_rng(1).integers(0, 4096, (20, 200, 300)).astype("u2"), np.eye(300) > 0
with h5py.File("in.h5", "w") as f:
    f.create_dataset("camera", data=camera, chunks=(1, 200, 300), compression=45429, compression_opts=(12,))
    f.create_dataset("mask", data=mask, chunks=(100, 300), compression=45429)
with h5py.File("in.h5") as f:
    assert (f["camera"][:] == camera).all() and f["camera"].id.get_storage_size() == camera.nbytes * 3 // 4
report = zarrbits.convert("in.h5", "out.zarr")
assert not report.lost and zarrbits.verify("in.h5", "out.zarr").equal
command = os.path.join(os.path.dirname(sys.executable), "zarrbits")
assert (
    subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.split()[1] == zarrbits.__version__
)
assert (
    zarrbits.pack(mask).tobytes() == np.packbits(mask, bitorder="little").tobytes()
    and importlib.import_module("zarrbits_codecs.library").LIBRARY
)
# the fast kernels are in it, whichever compiler made it: a name that this processor lacks is an error
if "avx2" in (open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""):
    check = "import numpy, zarrbits; print(zarrbits.pack(numpy.arange(9, dtype='u2'), bits=12).size)"
    done = subprocess.run(
        [sys.executable, "-c", check], env=dict(os.environ, ZARRBITS_KERNELS="avx2"), capture_output=True, text=True
    )
    assert done.stdout == "14\n", done.stderr
child = "import h5py; f = h5py.File('in.h5'); print(f['mask'][7, 7], 'zarrbits' in __import__('sys').modules)"
assert subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.split() == ["True", "False"]
if importlib.util.find_spec("zarr"):
    import zarr

    root = zarr.open("out.zarr", mode="r")
    assert (
        (root["camera"][:] == camera).all()
        and (root["camera"][3, 10:20, 5:9] == camera[3, 10:20, 5:9]).all()
        and (root["mask"][:] == mask).all()
    )
if "netCDF4" in sys.modules:
    with sys.modules["netCDF4"].Dataset("in.h5") as d:
        assert (d["camera"][:] == camera).all()
if "tables" in sys.modules:
    with sys.modules["tables"].open_file("in.h5") as t:
        assert (t.root.camera[:] == camera).all()
print("right:", sys.version.split()[0], h5py.version.hdf5_version, *sys.argv[1:])
