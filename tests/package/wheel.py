#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The wheel in fresh virtual environments, as its user has it: no variable set, nothing of the checkout.

    tests/package/wheel.py zarrbits-*.whl PYTHON [h5py==3.12 zarr==3.1 ...] [-- PYTHON ...]
"""
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import {imports}
import os, subprocess, sys, h5py, numpy as np, zarrbits
camera, mask = np.random.default_rng(1).integers(0, 4096, (20, 200, 300)).astype("u2"), np.eye(300) > 0
with h5py.File("in.h5", "w") as f:
    f.create_dataset("camera", data=camera, chunks=(1, 200, 300), compression=45429, compression_opts=(12,))
    f.create_dataset("mask", data=mask, chunks=(100, 300), compression=45429)
with h5py.File("in.h5") as f:
    assert (f["camera"][:] == camera).all() and f["camera"].id.get_storage_size() == camera.nbytes * 3 // 4
report = zarrbits.convert("in.h5", "out.zarr")
assert not report.lost and zarrbits.verify("in.h5", "out.zarr").equal
command = os.path.join(os.path.dirname(sys.executable), "zarrbits")
assert subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.split()[1] == zarrbits.__version__
assert zarrbits.pack(mask).tobytes() == np.packbits(mask, bitorder="little").tobytes()
child = "import h5py; f = h5py.File('in.h5'); print(f['mask'][7, 7], 'zarrbits' in __import__('sys').modules)"
assert subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.split() == ["True", "False"]
if {zarr}:
    import zarr
    root = zarr.open("out.zarr", mode="r")
    assert (root["camera"][:] == camera).all() and (root["camera"][3, 10:20, 5:9] == camera[3, 10:20, 5:9]).all() and (root["mask"][:] == mask).all()
assert zarrbits.library.LIBRARY
print("right:", sys.version.split()[0], h5py.version.hdf5_version)
"""


def environment(folder, python, wheel, packages):
    subprocess.run([python, "-m", "venv", folder], check=True)
    subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel, *packages], check=True)
    return f"{folder}/bin/python"


def main(wheel, *groups):
    wheel, done = os.path.abspath(wheel), 0
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ZARRBITS", "HDF5", "PYTHON"))}
    for python, *packages in groups:
        with tempfile.TemporaryDirectory(prefix="zarrbits-wheel-") as folder:
            mine = environment(f"{folder}/venv", python, wheel, packages)
            has = lambda name: any(p.split("=")[0].split(">")[0] == name for p in packages)
            orders = ["zarrbits", "h5py"] + [f"{n}, zarrbits" for n in ("netCDF4", "tables", "hdf5plugin") if has(n)]
            for imports in orders:
                subprocess.run([mine, "-W", "ignore", "-c", PROGRAM.format(imports=imports, zarr=has("zarr"))], cwd=folder, env=clean, check=True)
                subprocess.run(["rm", "-rf", f"{folder}/in.h5", f"{folder}/out.zarr"], check=True)
                done += 1
    print(f"{done} programs are right")


groups = [[]]
for word in sys.argv[2:]:
    groups.append([]) if word == "--" else groups[-1].append(word)
main(sys.argv[1], *groups)
