# SPDX-License-Identifier: BSL-1.0
"""README's first steps with HDF5 from Python: its own lines, and what it says of them.
tests/convert/test_newcomers.py has the section after that."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

COMMAND = os.environ["ZARRBITS_COMMAND"]
ENVIRONMENT = os.environ | {"HDF5_PLUGIN_PATH": os.environ["ZARRBITS_PLUGINS"]}
README = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.split("### HDF5, from Python", 1)[1].split("\n### ", 1)[0]


def run(*command, **how):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=ENVIRONMENT, timeout=600, **how)
    assert done.returncode == 0, done
    return done.stdout


def stored_bytes(path):
    with h5py.File(path) as f:
        return {name: f[name].id.get_storage_size() for name in ("mask", "camera")}


def test_first_steps(tmp_path):
    [program] = re.findall(r"```python\n(.*?)```", SECTION, re.S)
    run(sys.executable, "-c", program, cwd=tmp_path)
    assert stored_bytes(tmp_path / "packed.h5") == {"mask": 125_000, "camera": 1_500_000}  # 1 bit of 8, and 12 of 16
    # what was written is what is read, by a program that knows of no plugin but the folder
    equal = (
        "import h5py, sys; a, b = (h5py.File(n) for n in sys.argv[1:]); sys.exit(not all((a[n][()] == b[n][()]).all() "
        "for n in a))"
    )
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("camera", data=np.arange(60_000, dtype="u2").reshape(300, 200) % 4096, chunks=(30, 200))
        f.create_dataset("mask", data=np.arange(60_000).reshape(300, 200) % 3 == 0, chunks=(30, 200))
    if not shutil.which("h5repack"):
        pytest.skip("the rest of it: there is no h5repack")
    [line] = re.findall(r"`(h5repack .*?)`", SECTION)
    run("bash", "-c", line, cwd=tmp_path)
    assert stored_bytes(tmp_path / "out.h5") == {"mask": 7500, "camera": 90_000}
    run(sys.executable, "-c", equal, "in.h5", "out.h5", cwd=tmp_path)
    # and on to Zarr, where the packed chunks are the same bytes
    run(COMMAND, "convert", "packed.h5", "out.zarr", "--report", "report.json", cwd=tmp_path)
    assert run(COMMAND, "verify", "packed.h5", "out.zarr", cwd=tmp_path).splitlines()[-1].startswith("OK: ")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["exit_status"] == 0
    assert (tmp_path / "out.zarr" / "camera" / "c" / "0" / "0").stat().st_size == 150_000
