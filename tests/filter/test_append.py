# SPDX-License-Identifier: BSL-1.0
"""A dataset that was created yesterday is packed on, too, by a new process that does what docs/guide/hdf5.md says.
Each day is a process of its own."""

import os
import pathlib
import subprocess
import sys

import h5py
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHUNK = 512
YESTERDAY = f"""
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("camera", data=np.arange({2 * CHUNK}, dtype="u2") & 0xFFF, chunks=({CHUNK},), maxshape=(None,), compression=45429, compression_opts=(12,))
"""  # noqa: E501
APPEND = """
import numpy as np, sys
with h5py.File(sys.argv[1], "a") as f:
    d, n = f["camera"], f["camera"].shape[0]
    d.resize((2 * n,))
    d[n:] = np.arange(n, 2 * n).astype("u2") & 0xFFF
"""
pytestmark = pytest.mark.skipif(
    os.environ["ZARRBITS_PACKBITS_ID"] != "45429", reason="the helper knows the usual filter ids, and the plugins have others"
)


def run(*command):
    environment = {**os.environ, "HDF5_PLUGIN_PATH": os.environ["ZARRBITS_PLUGINS"], "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "x.h5")
    run(sys.executable, "-c", YESTERDAY, path)
    return path


def chunks(file):
    """(bytes, filter mask) of each chunk, after a look at the values."""
    with h5py.File(file) as f:
        d = f["camera"]
        assert d[:].tolist() == [i & 0xFFF for i in range(4 * CHUNK)]
        return [(i.size, i.filter_mask) for i in (d.id.get_chunk_info(n) for n in range(d.id.get_num_chunks()))]


PACKED, RAW = (CHUNK * 12 // 8, 0), (CHUNK * 2, 1)


@pytest.mark.parametrize(
    "imports", ["import zarrbits, h5py", "import h5py, zarrbits", "import h5py.h5z; assert h5py.h5z.filter_avail(45429)"]
)
def test_python_packs(file, imports):
    run(sys.executable, "-c", imports + APPEND, file)
    assert chunks(file) == [PACKED] * 4


def test_c_packs(file):
    run(os.environ["ZARRBITS_APPEND"], file, "load")
    assert chunks(file) == [PACKED] * 4


def test_without_that_hdf5_stores_the_chunks_raw(file):
    """The day on which this fails, HDF5 loads plugins when it writes, and docs/guide/hdf5.md may say less."""
    run(os.environ["ZARRBITS_APPEND"], file)
    assert chunks(file) == [PACKED, PACKED, RAW, RAW]
