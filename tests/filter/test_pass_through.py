# SPDX-License-Identifier: BSL-1.0
"""Datasets whose chunks the filters leave as they are, because nothing resolved their parameters:
variable length, and where the plugin was not found."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

PACKBITS, BYTES = int(os.environ["ZARRBITS_PACKBITS_ID"]), int(os.environ["ZARRBITS_BYTES_ID"])
rng = np.random.default_rng(7)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t.h5")


def test_variable_length_passes_through_and_can_be_written_after_reopening(path):
    words = ["a", "bc", "", "d" * 100]
    with h5py.File(path, "w") as file:
        for number in (PACKBITS, BYTES):
            file.create_dataset(
                f"words{number}",
                data=words,
                dtype=h5py.string_dtype(),
                chunks=(2,),
                maxshape=(None,),
                compression=number,
                compression_opts=(1,),
            )
            lists = file.create_dataset(
                f"lists{number}", (2,), dtype=h5py.vlen_dtype("i4"), chunks=(2,), maxshape=(None,), compression=number
            )
            lists[0], lists[1] = [1, 2], [3]
    for turn in range(2):
        with h5py.File(path, "r+") as again:
            for number in (PACKBITS, BYTES):
                d = again[f"words{number}"]
                d.resize((4 + turn + 1,))
                d[4 + turn] = f"new{turn}"
                assert list(d.asstr()[:]) == words + [f"new{i}" for i in range(turn + 1)]
                again[f"lists{number}"].resize((3,))
                again[f"lists{number}"][2] = [7, 8, 9]
    with h5py.File(path, "r") as again:
        assert again[f"lists{PACKBITS}"][2].tolist() == [7, 8, 9] and again[f"lists{BYTES}"][0].tolist() == [1, 2]


def test_what_was_created_without_the_plugin_can_be_written_with_it(path, folder):
    """A C program with H5Z_FLAG_OPTIONAL, or one that forgot HDF5_PLUGIN_PATH:
    its chunks stay as they are, and the next writer's too."""
    v = rng.integers(0, 4096, 128).astype("u2")
    program = """if 1:
        import h5py, sys, numpy as np
        with h5py.File(sys.argv[1], "w") as f:
            for number in map(int, sys.argv[2:]):
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                dcpl.set_chunk((64,)); dcpl.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (1,))
                d = h5py.h5d.create(f.id, b"d%d" % number, h5py.h5t.STD_U16LE, h5py.h5s.create_simple((128,)), dcpl)
                h5py.Dataset(d)[:64] = np.arange(64)
        """
    run = subprocess.run(
        [sys.executable, "-c", program, path, str(PACKBITS), str(BYTES)],
        env={**os.environ, "HDF5_PLUGIN_PATH": folder},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run
    for number in (PACKBITS, BYTES):
        assert h5py.h5z.filter_avail(number)
        with h5py.File(path, "r+") as again:
            again[f"d{number}"][64:] = v[64:]
            again[f"d{number}"][10] = v[10]
        with h5py.File(path, "r") as again:
            wanted = np.concatenate([np.arange(64, dtype="u2"), v[64:]])
            wanted[10] = v[10]
            assert np.array_equal(again[f"d{number}"][:], wanted)
            assert again[f"d{number}"].id.read_direct_chunk((64,)) == (0, v[64:].tobytes())
