#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What a user of zarrbits-plugins does, in the current folder: plugin_program.py [LIBHDF5 ...]

With h5py, where there is one. The libraries are loaded as another package would, one before and the others after the import.
"""

import ctypes
import importlib.util
import os
import platform
import subprocess
import sys

first = [ctypes.CDLL(path) for path in sys.argv[1:2]]
for library in first:
    library.H5open()
    assert library.H5Zfilter_avail(45429) == 0  # nothing but the import makes it find them
import zarrbits_plugins

assert (zarrbits_plugins.PACKBITS, zarrbits_plugins.BYTES) == (45429, 45438)
later = [ctypes.CDLL(path) for path in sys.argv[2:]]
zarrbits_plugins.register()
for library in (*first, *later):
    library.H5open()
    assert library.H5Zfilter_avail(45429) > 0 and library.H5Zfilter_avail(45438) > 0

# the codec: 12 of 16 bits
core = ctypes.CDLL(zarrbits_plugins.LIBRARY_PATH)
core.zarrbits_make_codec.restype = ctypes.c_void_p
reason = ctypes.create_string_buffer(500)
json = b'{"name": "packbits", "configuration": {"last_bit": 11}}'
codec = ctypes.c_void_p(core.zarrbits_make_codec(json, b"uint16", reason, ctypes.c_size_t(len(reason))))
assert codec.value, reason.value
values, chunk, back = (ctypes.c_uint16 * 4)(1, 2, 0xABC, 4095), (ctypes.c_uint8 * 6)(), (ctypes.c_uint16 * 4)()
assert core.zarrbits_encode(codec, values, ctypes.c_size_t(8), chunk, ctypes.c_size_t(6), None) == 0
assert bytes(chunk).hex() == "012000bcfaff"
assert core.zarrbits_decode(codec, chunk, ctypes.c_size_t(6), back, ctypes.c_size_t(8), None) == 0 and list(back) == list(values)

said = [f"libhdf5 {len(first) + len(later)} of 2 by ctypes"] if first else []
if importlib.util.find_spec("h5py"):
    import h5py
    import numpy as np

    camera = np.random.default_rng(1).integers(0, 4096, (4, 20, 300)).astype("u2")
    with h5py.File("in.h5", "w") as f:
        f.create_dataset(
            "camera", data=camera, chunks=(1, 20, 300), compression=zarrbits_plugins.PACKBITS, compression_opts=(12,)
        )
        f.create_dataset("big", data=camera, chunks=(1, 20, 300), compression=zarrbits_plugins.BYTES, compression_opts=(1,))
    with h5py.File("in.h5", "a") as f:
        f["camera"][2] = camera[3]  # it stays packed
    with h5py.File("in.h5") as f:
        camera[2] = camera[3]
        assert (f["camera"][:] == camera).all() and f["camera"].id.get_storage_size() == camera.nbytes * 3 // 4
        assert f["camera"].id.read_direct_chunk((0, 0, 0))[1][:3] == bytes(
            (camera[0, 0, 0] & 255, camera[0, 0, 0] >> 8 | (camera[0, 0, 1] & 15) << 4, camera[0, 0, 1] >> 4)
        )
        assert f["big"].id.read_direct_chunk((0, 0, 0))[1] == camera[0].astype(">u2").tobytes()
    said.append(f"h5py with libhdf5 {h5py.version.hdf5_version}")
    if "ZARRBITS_NO_CHILDREN" not in os.environ:  # an emulator starts no program of the emulated machine
        child = "import h5py; f = h5py.File('in.h5'); print(f['camera'].size, 'zarrbits_plugins' in __import__('sys').modules)"
        done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(camera.size), "False"], done
print("right: Python", sys.version.split()[0], "on", platform.system(), platform.machine() + ":", ", ".join(said) or "the codec")
