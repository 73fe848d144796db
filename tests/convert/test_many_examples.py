# SPDX-License-Identifier: BSL-1.0
"""Runs the commands of docs/many.md, line by line, on files of that form."""

import pathlib
import re
import shlex

import h5py
import numpy as np

import store
from harness import run

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/many.md"
VALUES = np.random.default_rng(3).normal(280, 10, (96, 4, 5)).astype("f4")


def day(path, i):
    write(path, 24 * i, 24)


def write(path, first, count):
    with h5py.File(path, "w") as f:
        f["time"] = np.arange(first, first + count, dtype="i4")
        f["time"].attrs["units"] = "hours since 2020-01-01"
        f["time"].make_scale("time")
        d = f.create_dataset(
            "t2m", data=VALUES[first : first + count], chunks=(8, 4, 5), maxshape=(None, 4, 5), compression="gzip", shuffle=True
        )
        d.dims[0].attach_scale(f["time"])


def test_every_command_of_the_page_runs(tmp_path):
    for folder in ("data", "runs", "months"):
        (tmp_path / folder).mkdir()
    for i in range(3):
        day(tmp_path / f"data/d{i + 8}.nc", i)
    day(tmp_path / "tomorrow.nc", 3)
    for first, count in ((0, 31), (31, 28), (59, 31)):
        write(tmp_path / f"months/{first:02}.nc", first, count)
    for i in range(3):
        with h5py.File(tmp_path / f"runs/r{i}.h5", "w") as f:
            f["image"] = np.full((3, 4), i)
    commands = re.findall(r"^    (zarrbits .*?)(?: +#.*)?$", PAGE.read_text(), re.M)
    assert len(commands) >= 5 and {c.split()[1] for c in commands} == {"convert", "verify", "plan"}
    for command in commands:
        if "s3://" in command:  # test_s3_append.py runs it
            continue
        said = run(*shlex.split(command)[1:], cwd=tmp_path).stdout
        assert " plan " not in command or "--grid rectilinear would more than halve" in said, said
    assert store.Store(str(tmp_path / "out.zarr")).meta("t2m")["shape"] == [96, 4, 5]
    assert store.Store(str(tmp_path / "months.zarr")).meta("t2m")["chunk_grid"]["name"] == "rectilinear"
    assert (store.Store(str(tmp_path / "months.zarr")).read("t2m") == VALUES[:90]).all()
    assert store.Store(str(tmp_path / "runs.zarr")).meta("image")["shape"] == [3, 3, 4]
    run("verify", "--concat", "time", "data/*.nc", "tomorrow.nc", "out.zarr", cwd=tmp_path)
