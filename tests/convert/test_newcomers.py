# SPDX-License-Identifier: BSL-1.0
"""The first days of newcomers, as scripts: the README's commands, an archive to S3 with a kill, a file a day appended,
and a check a day."""

import collections
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import s3_server
from harness import run
from s3_conversion import environment

COMMAND = os.environ["ZARRBITS_COMMAND"]
README = pathlib.Path(__file__).parents[2] / "README.md"
S3_FILES = int(os.environ.get("ZARRBITS_NEWCOMERS_FILES", "24"))


def tile(path, y, x):
    with h5py.File(path, "w") as f:
        for name, values in ("time", [0.0]), ("y", np.arange(y, y + 3.0)), ("x", np.arange(x, x + 3.0)):
            f[name] = values
            f[name].make_scale(name)
        d = f.create_dataset("height", data=np.full((1, 3, 3), y + x, "f4"), chunks=True)
        for i, name in enumerate(("time", "y", "x")):
            d.dims[i].attach_scale(f[name])


def day(path, n):
    """A file of a day as netCDF-4 has it: 24 hours of temperature on a small grid."""
    with h5py.File(path, "w") as f:
        f.attrs["_NCProperties"] = "version=2,hdf5=1.10.8"
        f.attrs["history"] = f"day {n}"
        for name, values, unit in (
            ("time", np.arange(24.0) + 24 * n, "hours since 2026-01-01"),
            ("lat", np.linspace(-80, 80, 9), "degrees_north"),
        ):
            f.create_dataset(
                name, data=values, maxshape=(None,) if name == "time" else None, chunks=(24,) if name == "time" else None
            )
            f[name].make_scale(name)
            f[name].attrs["units"] = unit
        d = f.create_dataset(
            "temperature",
            data=np.random.default_rng(n).normal(280, 9, (24, 9)).astype("f4"),
            chunks=(24, 9),
            maxshape=(None, 9),
            compression="gzip",
            shuffle=True,
        )
        d.dims[0].attach_scale(f["time"])
        d.dims[1].attach_scale(f["lat"])
    return path


def test_readme_to_the_first_stores(tmp_path):
    """Each line of the README's section, as it stands there."""
    section = README.read_text(encoding="utf-8").split("### HDF5 to Zarr", 1)[1]
    lines = re.search(r"```sh\n(.*?)```", section, re.S)[1].splitlines()
    assert len(lines) >= 6 and all(line.startswith("zarrbits ") for line in lines), lines
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["camera"] = np.arange(4000, dtype="u2").reshape(40, 100)
        f["time"] = np.arange(40, dtype="u8") + 0x1797900000
        f["mask"] = np.arange(40) % 3 == 0
    (tmp_path / "frame.raw").write_bytes(np.arange(1000, dtype="u2").tobytes())
    (tmp_path / "data").mkdir()
    for n in range(3):
        day(tmp_path / "data" / f"{n}.nc", n)
    (tmp_path / "tiles").mkdir()
    for y, x in (0, 0), (0, 3), (3, 0), (3, 3):
        tile(tmp_path / f"tiles/{y}{x}.nc", y, x)
    day(tmp_path / "tomorrow.nc", 3)
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line.replace("zarrbits", shlex.quote(COMMAND), 1)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=600,
        )
        assert done.returncode == 0, (line, done)
        if " verify " in line:
            assert done.stdout.splitlines()[-1].startswith("OK: "), done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["exit_status"] == 0
    packed = json.loads((tmp_path / "packed.zarr" / "camera" / "zarr.json").read_text())["codecs"][0]
    assert packed["name"] == "packbits" and packed["configuration"]["last_bit"] == 11
    assert json.loads((tmp_path / "all.zarr" / "temperature" / "zarr.json").read_text())["shape"] == [96, 9]
    assert (tmp_path / "frame.bits").stat().st_size == 1500


def test_an_archive_to_s3_with_a_kill(tmp_path):
    if "without libcurl" in run("verify", README, "s3://bucket/x", status=None, env=environment()).stderr:
        pytest.skip("this build has no S3")
    files = [day(tmp_path / f"{n:03}.nc", n) for n in range(S3_FILES)]

    def slow(request, go_on):
        time.sleep(0.01)
        return go_on()

    with s3_server.Server(slow) as server:
        command = [
            COMMAND,
            "convert",
            "--concat",
            "time",
            *map(str, files),
            "s3://bucket/all.zarr",
            "--endpoint",
            server.url,
            "--threads",
            "2",
        ]
        p = subprocess.Popen(
            command, env=environment(), stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, start_new_session=True
        )
        while p.poll() is None and not any("/journal" in k for k in server.content("all.zarr")):
            time.sleep(0.001)
        assert p.poll() is None, p.communicate()
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        assert "all.zarr/zarr.json" not in server.objects
        time.sleep(2.5)  # a run that writes would have been heard of within ZARRBITS_S3_PATIENCE
        server.fault = None
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
        assert done.returncode == 0 and "continuing the unfinished store" in done.stderr, done
        objects = server.content("all.zarr")
        assert not any(k.startswith(".zarrbits") for k in objects)
        # the check of a day: one listing, and each object once
        server.requests.clear()
        run("verify", "--concat", "time", *files, "s3://bucket/all.zarr", "--endpoint", server.url, env=environment())
        asked = collections.Counter(r.kind for r in server.requests)
        assert len(server.requests) <= len(objects) + 2, (asked, len(objects))
        # a store of one file, and what is in it
        server.requests.clear()
        assert "temperature" in run("inspect", "s3://bucket/all.zarr", "--endpoint", server.url, env=environment()).stdout
        assert len(server.requests) <= len(objects) + 4
    with s3_server.Server() as server:
        run("convert", "-q", files[0], "s3://bucket/one.zarr", "--endpoint", server.url, env=environment())
        server.requests.clear()
        run("verify", files[0], "s3://bucket/one.zarr", "--endpoint", server.url, env=environment())
        assert len(server.requests) <= len(server.content("one.zarr")) + 2


def test_a_file_a_day(tmp_path):
    archive = tmp_path / "all.zarr"
    run("convert", "-q", "--concat", "time", day(tmp_path / "day0.nc", 0), archive)
    assert "consolidated_metadata" in json.loads((archive / "zarr.json").read_text())
    for n in range(1, 5):
        today = day(tmp_path / f"day{n}.nc", n)
        assert "new" not in run("convert", "--append", "time", today, archive).stderr.splitlines()[-1]
        said = run("convert", "--append", "time", today, archive).stderr  # cron ran it twice
        assert "already: nothing was appended" in said and "ratio" not in said, said
        said = run("verify", "--concat", "time", today, archive, "--part").stdout
        assert said.splitlines()[-1].startswith("OK: ") and "datasets: 3 equal" in said, said
    assert (
        run("verify", "--concat", "time", *(tmp_path / f"day{n}.nc" for n in range(5)), archive)
        .stdout.splitlines()[-1]
        .startswith("OK: ")
    )
    # one value of one day differs: the check of that day finds it, and that of another day does not read it
    chunk = archive / "temperature" / "c" / "2" / "0"
    other = archive / "temperature" / "c" / "1" / "0"
    chunk.write_bytes(other.read_bytes())
    assert "FAILED: " in run("verify", "--concat", "time", tmp_path / "day2.nc", archive, "--part", status=1).stdout
    run("verify", "--concat", "time", tmp_path / "day3.nc", archive, "--part")
    said = run("verify", "--concat", "time", day(tmp_path / "day9.nc", 9), archive, "--part", status=1).stderr
    assert "does not list" in said and "day9.nc" in said, said
    assert "--part" in run("verify", tmp_path / "day3.nc", archive, "--part", status=2).stderr


def test_notes_of_many_files_are_told_once(tmp_path):
    files = [day(tmp_path / f"{n}.nc", n) for n in range(5)]
    said = run("plan", "--concat", "time", *files).stdout
    assert said.count("history") == 1 and "3 files more" in said, said


def test_references_over_years(tmp_path):
    for year, n in (("2025", 0), ("2026", 1)):
        (tmp_path / year).mkdir()
        day(tmp_path / year / "a.nc", n)
    said = run("convert", "--virtual", "--concat", "time", tmp_path / "2025" / "a.nc", tmp_path / "refs.json").stderr
    assert "are referred to" in said and "ratio" not in said.splitlines()[-1], said
    (tmp_path / "2026" / "a.nc").rename(tmp_path / "2026" / "b.nc")
    said = run("convert", "--virtual", "--append", "time", tmp_path / "2026" / "b.nc", tmp_path / "refs.json", status=1).stderr
    assert "--external" in said, said
    run(
        "convert",
        "-q",
        "--virtual",
        "--append",
        "time",
        tmp_path / "2026" / "b.nc",
        tmp_path / "refs.json",
        "--external",
        tmp_path / "2025",
    )
