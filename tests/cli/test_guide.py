# SPDX-License-Identifier: BSL-1.0
"""The commands in the pages of docs/guide print what the pages show, apart from numbers: each block ```console is run, those of
a page one after another, in a folder with the files that the pages name. The commands in other blocks of all documents run, too;
those that need a server get as far as its name."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

import store
from harness import COMMAND, run

PAGES = sorted(pathlib.Path(__file__).resolve().parents[2].glob("docs/guide/*.md"))
BLOCKS = {p.stem: re.findall(r"^```console\n(.*?)^```", p.read_text(encoding="utf-8"), re.M | re.S) for p in PAGES}
HOURS = np.random.default_rng(3).normal(280, 10, (96, 40, 50)).astype("f4")  # four days


# other lines of the documents; those of README.md are in tests/convert/test_newcomers.py
DOCUMENTS = sorted(pathlib.Path(__file__).resolve().parents[2].glob("docs/*/*.md"))
LINES = {
    p.stem: re.findall(
        r"^(?: {4})?(zarrbits .*)$", re.sub(r"^```console\n.*?^```", "", p.read_text(encoding="utf-8"), flags=re.M | re.S), re.M
    )
    for p in DOCUMENTS
}
LINES = {
    page: [x for x in lines if re.match(r"zarrbits [a-z]+ .*[\w/]\.(h5|nc|zarr|json|parquet)\b", x) and "$" not in x]
    for page, lines in LINES.items()
}


def write_hours(path, first, count):
    with h5py.File(path, "w") as f:
        f["time"] = np.arange(first, first + count, dtype="i4")
        f["time"].attrs["units"] = "hours since 2020-01-01"
        f["time"].make_scale("time")
        d = f.create_dataset(
            "t2m",
            data=HOURS[first : first + count],
            chunks=(8, 40, 50),
            maxshape=(None, 40, 50),
            compression="gzip",
            shuffle=True,
        )
        d.dims[0].attach_scale(f["time"])


def write_files(folder):
    noise = np.random.default_rng(1)
    with h5py.File(folder / "camera.h5", "w") as f:
        f.attrs["instrument"] = "camera 2"
        values = noise.integers(0, 4096, (10, 256, 256)).astype("u2")
        f.create_dataset("frames", data=values, chunks=(1, 256, 256), compression="gzip").attrs["unit"] = "counts"
        f.create_dataset("mask", data=noise.random((256, 256)) > 0.9, chunks=(64, 256))
    for name in ("archive", "data", "elsewhere", "months", "runs", "tiles", "years"):
        (folder / name).mkdir()
    with h5py.File(folder / "tas.nc", "w") as f:
        f.attrs["variable_id"] = "tas"
        f.create_dataset("time", data=np.arange(120.0), chunks=(1,), maxshape=(None,)).attrs["bounds"] = "time_bnds"
        f.create_dataset("time_bnds", data=np.zeros((120, 2)), chunks=(1, 2), maxshape=(None, 2))
        f.create_dataset("tas", data=np.ones((120, 90, 180), "f4"), chunks=(1, 90, 180), compression="gzip", shuffle=True)
    with h5py.File(folder / "elsewhere/raw.h5", "w") as f:
        f["x"] = np.arange(4)
    with h5py.File(folder / "archive/linked.h5", "w") as f:
        f["y"], f["x"] = np.arange(3), h5py.ExternalLink("../elsewhere/raw.h5", "/x")
    for i in range(3):
        write_hours(folder / f"data/d{i + 1}.nc", 24 * i, 24)
        with h5py.File(folder / f"runs/r{i}.h5", "w") as f:
            f["image"] = np.full((3, 4), i)
    write_hours(folder / "tomorrow.nc", 72, 24)
    for first, count in ((0, 31), (31, 28), (59, 31)):
        write_hours(folder / f"months/{first:02}.nc", first, count)
    places = ["file,y,x"]
    for y, x in (0, 0), (0, 4), (4, 0), (4, 4):
        write_tile(folder / f"tiles/{y}{x}.nc", y, x)
        places.append(f"{y}{x}.nc,{y // 4},{x // 4}")
    (folder / "tiles/places.csv").write_text("\n".join(places) + "\n", encoding="utf-8")


def write_tile(path, y, x):
    with h5py.File(path, "w") as f:
        for name, first in ("y", y), ("x", x):
            f[name] = np.arange(first, first + 4.0)
            f[name].make_scale(name)
        f["time"] = np.arange(2.0)
        f["time"].make_scale("time")
        t2m = f.create_dataset("t2m", data=np.add.outer(np.arange(2), np.add.outer(f["y"][...], 10 * f["x"][...])), chunks=True)
        for i, name in enumerate(("time", "y", "x")):
            t2m.dims[i].attach_scale(f[name])


def without_numbers(text):
    """The words: sizes, counts and times depend on the libraries and the machine, and so does the width of columns."""
    text = re.sub(r"\d[\d.]*( ([KMG]i)?B\b)?", "#", text)
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def environment_in(folder):
    programs = folder / "programs"
    programs.mkdir()
    (programs / "zarrbits").write_text(f'#!/bin/sh\nexec {shlex.quote(COMMAND)} "$@"\n', encoding="utf-8")
    (programs / "zarrbits").chmod(0o755)
    places = os.pathsep.join([str(programs), os.path.dirname(sys.executable), os.environ["PATH"]])
    return os.environ | {"PATH": places, "HDF5_PLUGIN_PATH": os.environ.get("ZARRBITS_PLUGINS", "")}


def test_pages_have_blocks():
    assert {name for name, blocks in BLOCKS.items() if blocks} >= {
        "append",
        "cluster",
        "convert",
        "export",
        "many-files",
        "rectilinear",
        "tiles",
        "verify",
    }


@pytest.mark.parametrize("page", [name for name, blocks in BLOCKS.items() if blocks])
def test_commands_print_what_the_page_shows(page, tmp_path):
    if page == "hdf5" and ("ZARRBITS_PLUGINS" not in os.environ or os.environ.get("ZARRBITS_PACKBITS_ID", "45429") != "45429"):
        pytest.skip("this build has no HDF5 plugins for Python, or they have other filter ids")
    write_files(tmp_path)
    environment = environment_in(tmp_path)
    for block in BLOCKS[page]:
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=600,
            )
            assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}"
            printed = done.stdout.replace(str(tmp_path), "/home/me")
            assert without_numbers(printed) == without_numbers(shown), f"$ {command}\n{printed}"
    if page == "append":
        assert (store.Store(str(tmp_path / "all.zarr")).read("t2m") == HOURS).all()
        run("verify", "--concat", "time", "data/*.nc", "tomorrow.nc", "all.zarr", cwd=tmp_path)
    if page == "rectilinear":
        months = store.Store(str(tmp_path / "months.zarr"))
        assert months.meta("t2m")["chunk_grid"]["name"] == "rectilinear" and (months.read("t2m") == HOURS[:90]).all()
    if page == "many-files":
        assert store.Store(str(tmp_path / "runs.zarr")).meta("image")["shape"] == [3, 3, 4]
    if page == "tiles":
        for name in "map.zarr", "again.zarr", "placed.zarr":
            tiles = store.Store(str(tmp_path / name)).read("t2m")
            assert (tiles == np.add.outer(np.arange(2), np.add.outer(np.arange(8), 10 * np.arange(8)))).all()


@pytest.mark.parametrize("page", [name for name, lines in LINES.items() if lines])
def test_other_commands_run(page, tmp_path):
    write_files(tmp_path)
    shutil.copy(tmp_path / "camera.h5", tmp_path / "in.h5")
    shutil.copy(tmp_path / "tomorrow.nc", tmp_path / "in.nc")
    shutil.copytree(tmp_path / "data", tmp_path / "in")
    shutil.copytree(tmp_path / "data", tmp_path / "archives/data/2025")
    shutil.copytree(tmp_path / "data", tmp_path / "archives/data", dirs_exist_ok=True)
    (tmp_path / "archives/data/2026").mkdir()
    for part in sorted((tmp_path / "data").glob("*.nc")):
        subprocess.run([COMMAND, "convert", "-q", part, tmp_path / f"years/{part.stem}.zarr"], check=True)
    for store_name in ("in.zarr", "old.zarr"):
        run("convert", "-q", "in.h5", store_name, cwd=tmp_path)
    # nothing answers: a name that is wrong is a wrong usage, and one that is right a server that cannot be reached
    nowhere = {name: "http://127.0.0.1:1" for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY")}
    environment = (
        environment_in(tmp_path)
        | nowhere
        | {"ZARRBITS_S3_PATIENCE": "1", "SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    )
    environment |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "word", "AWS_REGION": "us-east-1"}
    for line in LINES[page]:
        command = re.sub(r"(?<!\w)/data\b", str(tmp_path / "archives/data"), line)
        needs_server = re.search(r"\b(s3|https?)://", re.sub(r"--base \S+", "", command))
        words = [w for w in shlex.split(command, comments=True) if not w.startswith("-")]
        if words[1] == "convert" and "--append" not in command and "--partition" not in command and not needs_server:
            shutil.rmtree(tmp_path / words[-1], ignore_errors=True)  # of a line before
            (tmp_path / words[-1]).unlink(missing_ok=True)
        if "/new.nc" in command:  # which is of today
            shutil.copy(tmp_path / "tomorrow.nc", tmp_path / "archives/data/2026/new.nc")
        partitions = re.search(r"--partition 0/(\d+)", command)
        for i in range(int(partitions[1]) if partitions else 1):
            done = subprocess.run(
                ["sh", "-c", command.replace("--partition 0/", f"--partition {i}/")],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=600,
            )
            if needs_server:
                assert done.returncode == 1 and "cannot be reached" in done.stderr, (line, done)
            else:
                assert done.returncode == 0, (line, done)
