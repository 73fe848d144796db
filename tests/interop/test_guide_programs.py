# SPDX-License-Identifier: BSL-1.0
"""The Python programs of docs/guide run as they stand there: those of a page one after another, each of which may use the names
and files of those before it."""

import re
import subprocess
import sys

import h5py
import numpy as np
import pytest

import harness
from conftest import ROOT

PAGES = {
    page.stem: re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    for page in ROOT.glob("docs/guide/*.md")
}
PAGES = {name: programs for name, programs in PAGES.items() if programs}


def write_files(folder, page):
    """Those that the page names, and does not make."""
    with h5py.File(folder / "in.h5", "w") as f:
        f.create_dataset("x", data=np.random.default_rng(1).integers(0, 255, 1 << 20, dtype="u1"), chunks=(1 << 16,))
        f["i"] = np.arange(1 << 20)
        f["i"].make_scale("i")
        f["x"].dims[0].attach_scale(f["i"])
    (folder / "data").mkdir()
    for day in (10, 9):
        with h5py.File(folder / f"data/d{day}.nc", "w") as f:
            f["time"], f["t2m"] = np.arange(24 * day, 24 * day + 24), np.full((24, 3), day, "f4")
            f["time"].attrs["units"] = "hours since 2026-01-01"
            f["time"].make_scale("time")
            f["t2m"].dims[0].attach_scale(f["time"])
    if page == "references":
        harness.run("convert", "--virtual", "in.h5", "refs.json", cwd=folder)
    if page == "check":
        harness.run("convert", "-q", "in.h5", "camera.zarr", cwd=folder)
    if page == "repack":
        with h5py.File(folder / "tas.nc", "w") as f:
            f.attrs["variable_id"] = "tas"
            f.create_dataset("time", data=np.arange(120.0), chunks=(1,), maxshape=(None,))
            f.create_dataset("tas", data=np.ones((120, 90, 180), "f4"), chunks=(1, 90, 180), compression="gzip")


def test_there_are_some():
    assert set(PAGES) >= {"hdf5", "python", "python-references", "references"}


def can_import(module, folder):
    """In a process of its own, as the programs run: the tests have other folders on their path."""
    return (
        subprocess.run([sys.executable, "-c", f"import {module}"], cwd=folder, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.parametrize("page", PAGES)
def test_programs_run(page, tmp_path):
    write_files(tmp_path, page)
    programs = PAGES[page]
    imports = {p: re.findall(r"(\w+)(?: as \w+)?", " ".join(re.findall(r"^import (.*)$", p, re.M))) for p in programs}
    missing = {module for module in set().union(*imports.values()) if not can_import(module, tmp_path)}
    complete = [p for p in programs if not missing.intersection(imports[p])]
    (tmp_path / "programs.py").write_text("\n".join(complete), encoding="utf-8")
    done = subprocess.run([sys.executable, "programs.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    if missing:
        pytest.skip(f"{len(complete)} of {len(programs)} programs of the page ran, the others need {', '.join(sorted(missing))}")
