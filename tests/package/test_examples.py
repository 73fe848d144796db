# SPDX-License-Identifier: BSL-1.0
"""examples/convert.cpp, which needs a file; the other examples are tests by themselves."""

import os
import subprocess

import h5py
import numpy as np

EXAMPLE = os.environ["ZARRBITS_EXAMPLE_CONVERT"]


def run(*arguments):
    return subprocess.run([EXAMPLE, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def test_a_file_is_converted_and_compared(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["camera"] = np.arange(4000, dtype="u2").reshape(40, 100)
    done = run(tmp_path / "in.h5", tmp_path / "out.zarr")
    assert done.returncode == 0 and done.stderr == "", done
    assert "4000 elements were compared" in done.stdout and (tmp_path / "out.zarr" / "camera" / "zarr.json").exists(), done


def test_an_error_has_a_code(tmp_path):
    missing = run(tmp_path / "none.h5", tmp_path / "out.zarr")
    assert missing.returncode == 66 and "none.h5" in missing.stderr and not (tmp_path / "out.zarr").exists(), missing
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["x"] = 1
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a").write_text("of somebody else")
    there = run(tmp_path / "in.h5", tmp_path / "there")
    assert there.returncode == 73 and "exists" in there.stderr, there
    assert run().returncode == 2
