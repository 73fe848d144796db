# SPDX-License-Identifier: BSL-1.0
"""Every profile and compression of the converter, read by zarr-python and compared with h5py, and by `zarrbits verify`."""
import json
import os
import subprocess
import warnings

import h5py
import numpy as np
import pytest
import zarr

COMMAND = os.environ.get("ZARRBITS_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="ZARRBITS_COMMAND names no command")
WAYS = [["--profile", "portable"], ["--profile", "native"], ["--profile", "recode"], *(["--compress", how] for how in (
    "none", "gzip", "zstd:3", "blosc:zstd:5", "blosc:lz4:5:bitshuffle", "blosc:lz4hc:9:noshuffle", "blosc:zlib"))]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("profiles") / "in.h5")
    x = (np.random.default_rng(0).normal(size=(130, 90)) * 1000).astype("i4")
    grid = {"chunks": (40, 30)}
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=x, compression=4, **grid)
        f.create_dataset("shuffle", data=x, compression=4, shuffle=True, **grid)
        f.create_dataset("big", data=x.astype(">f8"), compression=4, shuffle=True, fletcher32=True, **grid)
        f.create_dataset("odd", data=x.astype("i1"), fletcher32=True, chunks=(7, 3))
        f.create_dataset("plain", data=x, **grid)
        f["contiguous"] = x.astype("f4")
        f.create_dataset("bool", data=x > 0, compression=4, shuffle=True, **grid)
        f.create_dataset("complex", data=(x[:20] + 1j).astype("c16"), chunks=(10, 30), compression=4, shuffle=True)
        masked = f.create_dataset("masked", data=x, compression=4, shuffle=True, fletcher32=True, **grid)
        masked.id.write_direct_chunk((0, 0), x[:40, :30].tobytes(), filter_mask=7)
    return path


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_values_are_equal(source, way, tmp_path):
    store = str(tmp_path / "out.zarr")
    run = subprocess.run([COMMAND, "convert", source, store, "--quiet", "--json", *way], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["profile"] == (way[1] if way[0] == "--profile" else "recode")
    assert subprocess.run([COMMAND, "verify", source, store]).returncode == 0
    with h5py.File(source) as f, warnings.catch_warnings():
        warnings.simplefilter("ignore")     # zarr-python warns of every codec of numcodecs
        for name in f:
            assert np.array_equal(zarr.open_array(os.path.join(store, name), mode="r")[...], f[name][...]), name
