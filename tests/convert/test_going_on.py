# SPDX-License-Identifier: BSL-1.0
"""What a command leaves, and how it goes on: the same command again, shares, Ctrl-C, other options, wrong names.
And options that no dataset obeys."""

import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import harness
from harness import COMMAND, files, same
from kills import begin, end, has_units, slow_writes

LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "PALS_")
ALONE = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}


def run(*arguments, **how):
    """Standard error."""
    return harness.run(*arguments, env=ALONE, **how).stderr


def frames(path, count=300):
    with h5py.File(path, "w") as f:
        noise = np.random.default_rng(1).integers(0, 1 << 12, (count, 64, 64))
        f.create_dataset("movie/frames", data=noise.astype("u2"), chunks=(1, 64, 64))
        f.create_dataset("movie/time", data=np.arange(count, dtype="u8") * 1_000_003 + 0x17979, chunks=(min(50, count),))
        f.create_dataset("movie/temperature", data=np.linspace(20, 30, count), chunks=(min(50, count),))
        f.create_dataset("movie/steps", data=(np.arange(count) % 16 << 4).astype("u2"), chunks=(min(50, count),))
    return path


def cut_off(source, target, *options, signal_number=signal.SIGINT, **environment):
    """Begins a conversion and ends it when some of its chunks are there; what it said."""
    before = os.path.exists(target)
    for _ in range(20):
        p = begin("convert", source, target, "--threads", "1", *options, env=ALONE, **slow_writes(), **environment)
        while p.poll() is None and not has_units(target):
            time.sleep(0.001)
        p.send_signal(signal_number)
        said = end(p)[1]
        if not before and os.path.exists(os.path.join(target, "zarr.json")):  # it was faster, on a busy machine
            shutil.rmtree(target)
            continue
        if p.returncode == 0 and "--overwrite" in options:
            continue
        assert p.returncode == -signal_number, (p.returncode, said)
        return said
    raise AssertionError("it was always faster")


@pytest.fixture(name="case")
def case_of(tmp_path):
    """A source that takes a while, on a thread that is not alone; and its store."""
    source = os.path.join(tmp_path, "in.h5")
    with h5py.File(frames(source, 40), "a") as f:
        values = np.random.default_rng(2).integers(0, 1000, (300, 40000)).astype("i4")
        f.create_dataset("long", data=values, chunks=(4, 40000), compression="gzip", compression_opts=1)
    run("convert", "-q", source, os.path.join(tmp_path, "whole.zarr"))
    return source, os.path.join(tmp_path, "out.zarr"), os.path.join(tmp_path, "whole.zarr")


def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(case):
    source, out, whole = case
    said = cut_off(source, out)
    assert "interrupted: what is done is kept in" in said and "run the same command again to continue" in said, said
    assert not os.path.exists(os.path.join(out, "zarr.json"))
    shown = subprocess.run([COMMAND, "inspect", out], capture_output=True, text=True)
    assert (
        shown.returncode == 3
        and "is an unfinished store" in shown.stdout
        and "units made" in shown.stdout
        and f"zarrbits convert {source} {out}" in shown.stdout
    ), shown
    # other options, or another source: an error that names both commands, and destroys nothing
    before = files(out)
    for other, word in ((["--shard", "64M"], "--shard"), (["--codec", "packbits", "--bits", "12"], "--codec, --bits")):
        said = run("convert", source, out, *other, status=1)
        assert (
            "different options" in said
            and word in said
            and f"{source} {out} --threads 1" in said
            and other[0] + " " + other[1] in said
        ), said
        assert "replace it with" not in said and "start over" not in said
    copy = os.path.join(os.path.dirname(source), "other.h5")
    shutil.copy(source, copy)
    assert "a different source" in run("convert", copy, out, status=1)
    assert before == files(out)
    said = run("convert", source, out)
    assert "continuing the unfinished store" in said, said
    same(whole, out)


def test_a_run_that_goes_on_and_fails_keeps_what_was_there(case):
    source, out, whole = case
    cut_off(source, out)
    before = set(files(out))
    kept = os.path.join(os.path.dirname(source), "kept.h5")
    shutil.copy2(source, kept)
    with open(source, "r+b") as f:
        f.truncate(os.path.getsize(source) // 2)
    run("convert", source, out, status=1)
    assert before <= set(files(out))
    os.replace(kept, source)
    run("convert", "-q", source, out)
    same(whole, out)


def test_sigterm_after_overwrite_and_before_anything_is_done(case):
    source, out, whole = case
    run("convert", "-q", source, out)
    said = cut_off(source, out, "--overwrite", signal_number=signal.SIGTERM)
    assert "without --overwrite" in said, said
    run("convert", "-q", source, out)
    same(whole, out)
    # a store in one file is made in one run: nothing is kept
    archive = out.replace(".zarr", ".zip")
    p = begin("convert", source, archive, env=ALONE, **slow_writes())
    while p.poll() is None and not os.path.exists(archive + ".zarrbits-unfinished"):
        time.sleep(0.001)
    p.send_signal(signal.SIGINT)
    assert "kept" not in p.communicate(timeout=600)[1] and p.returncode == -signal.SIGINT
    assert not os.path.exists(archive) and not os.path.exists(archive + ".zarrbits-unfinished")


def test_an_array_of_files_is_not_an_array_of_shares(case, tmp_path):
    source, out, whole = case
    array = {"SLURM_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_COUNT": "16"}
    said = run("convert", source, out, **array)
    assert "--partition slurm" in said and "the whole file" in said, said
    same(whole, out)
    assert run("convert", "-q", source, tmp_path / "quiet.zarr", **array) == ""
    same(whole, os.path.join(tmp_path, "quiet.zarr"))
    assert "--partition mpi" in run("convert", source, tmp_path / "rank.zarr", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="4")
    for rank in range(4):
        said = run(
            "convert",
            source,
            tmp_path / "shares.zarr",
            "--partition",
            "mpi",
            OMPI_COMM_WORLD_RANK=str(rank),
            OMPI_COMM_WORLD_SIZE="4",
        )
        assert f"share {rank} of 4 (Open MPI)" in said, said
    run("finalize", "-q", source, tmp_path / "shares.zarr")
    same(whole, os.path.join(tmp_path, "shares.zarr"))
    for wanted in ("slurm", "mpi"):
        assert "not started by" in run("convert", source, tmp_path / "none.zarr", "--partition", wanted, status=2)
    run("convert", "-q", source, tmp_path / "one.zarr", "--partition", "slurm", SLURM_JOB_ID="1")  # a job of one task
    same(whole, os.path.join(tmp_path, "one.zarr"))


def test_shares_that_come_late_or_twice(case, tmp_path):
    source, out, whole = case
    for share in range(4):
        run("convert", "-q", source, out, "--partition", f"{share}/4")
    sizes = [0] * 4
    for name in os.listdir(os.path.join(out, ".zarrbits-unfinished")):
        if name.startswith("journal-"):
            with open(os.path.join(out, ".zarrbits-unfinished", name), encoding="utf-8") as f:
                sizes[int(name.split("-")[1])] = sum(
                    a["bytes"] + 65536 * sum(a["counts"]) for line in f if '"dataset"' in line for a in json.loads(line)["arrays"]
                )
    assert max(sizes) < 1.5 * min(sizes), sizes  # alike: an object costs about as much as 64 KiB
    run("convert", "-q", source, out, "--partition", "2/4")  # requeued
    run("finalize", "-q", source, out)
    same(whole, out)
    said = run("finalize", source, out)
    assert "is complete and was made from this source" in said and "nothing is left" in said, said
    said = run("convert", source, out, "--partition", "2/4", status=1)  # requeued too late
    assert "nothing is left to do" in said and "overwrite" not in said, said
    typo = tmp_path / "typo.zarr"
    said = run("finalize", source, typo, status=1)
    assert "no unfinished store" in said and not typo.exists(), said
    assert "is a complete store" in run("convert", source, out, status=1)
    same(whole, out)


def test_bits_that_do_not_fit_leave_a_dataset_as_it_is(tmp_path):
    source = frames(tmp_path / "camera.h5")
    run("convert", "-q", source, tmp_path / "plain.zarr")

    def codecs(store, node):
        with open(tmp_path / store / node / "zarr.json", encoding="utf-8") as f:
            return [
                (c["name"], (c.get("configuration") or {}).get("first_bit"), (c.get("configuration") or {}).get("last_bit"))
                for c in json.load(f)["codecs"]
            ]

    def converted(name, *options):
        run("convert", "-q", source, tmp_path / name, "--codec", "packbits", *options)
        assert (
            "OK: "
            in subprocess.run([COMMAND, "verify", source, tmp_path / name], capture_output=True, text=True, check=True).stdout
        )
        return {node: codecs(name, "movie/" + node) for node in ("frames", "time", "temperature", "steps")}

    twelve = converted("12.zarr", "--bits", "12")
    assert twelve["frames"][0][0] == twelve["steps"][0][0] == "packbits" and twelve["frames"][0][2] == 11
    assert twelve["time"] == codecs("plain.zarr", "movie/time") and twelve["temperature"] == codecs(
        "plain.zarr", "movie/temperature"
    )
    same(os.path.join(tmp_path, "plain.zarr", "movie", "time"), os.path.join(tmp_path, "12.zarr", "movie", "time"))
    ranged = converted("range.zarr", "--bits", "steps=4-7")
    assert ranged["steps"][0] == ("packbits", 4, 7) and ranged["frames"][0][0] == "bytes"
    auto = converted("auto.zarr", "--bits", "auto")
    assert (
        auto["frames"][0][2] == 11
        and auto["steps"][0] == ("packbits", 4, 7)
        and auto["time"][0][0] == "packbits"
        and auto["temperature"][0][0] == "bytes"
    )
    assert converted("both.zarr", "--bits", "auto", "--bits", "frames=13")["frames"][0][2] == 12  # what is given by name wins
    said = run("convert", source, tmp_path / "x.zarr", "--codec", "packbits", "--bits", "/movie/time=12", status=1)
    assert "/movie/time" in said and "does not fit" in said and "--bits" in said, said
    for options, word in (
        (["--bits", "temperature=12"], "no dataset of integers"),
        (["--bits", "nowhere=3"], "matches no dataset"),
    ):
        assert word in run("convert", source, tmp_path / "x.zarr", "--codec", "packbits", *options, status=1)
    for bad in ("0", "65", "5-3", "0-64", "0-3", "x=", "x=70", "x=3-"):
        run("convert", source, tmp_path / "x.zarr", "--codec", "packbits", "--bits", bad, status=2)
    assert not (tmp_path / "x.zarr").exists()


def test_suggest_tells_the_convert_line(tmp_path):
    source = frames(tmp_path / "it's a camera.h5")
    said = subprocess.run([COMMAND, "suggest", source], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    [line] = [line for line in said.splitlines() if "zarrbits convert" in line and line.count("--bits") > 1]
    subprocess.run(["bash", "-c", line.strip().replace("zarrbits", COMMAND, 1)], check=True, cwd=tmp_path, capture_output=True)
    with open(tmp_path / "packed.zarr" / "movie" / "frames" / "zarr.json", encoding="utf-8") as f:
        assert json.load(f)["codecs"][0]["configuration"]["last_bit"] == 11


@pytest.mark.parametrize(
    "options, word",
    [
        (["--chunk", "1,512"], "1 and 3"),
        (["--chunk", "8x8x8x8"], "8x8x8x8"),
        (["--shard", "100x100"], "--shard"),
        (["--memory", "1"], "16.0 MiB"),
        (["--memory", "15M"], "--memory"),
        (["--include", "/movie/time", "--chunk", "1x8x8"], "have 1;"),
    ],
)
def test_an_option_that_no_dataset_obeys(tmp_path, options, word):
    source = frames(tmp_path / "in.h5", 10)
    said = run("convert", source, tmp_path / "out.zarr", *options, status=2 if "--memory" in options else 1)
    assert word in said and said.count("\n") == 1 and not (tmp_path / "out.zarr").exists(), said
    if "--memory" not in options:
        assert word in run("plan", source, *options, status=1)


def test_shapes_with_x(tmp_path):
    source = frames(tmp_path / "in.h5", 10)
    for name, shape in ("comma.zarr", "2,32,64"), ("x.zarr", "2x32x64"):
        run("convert", "-q", source, tmp_path / name, "--chunk", shape)
    same(os.path.join(tmp_path, "comma.zarr"), os.path.join(tmp_path, "x.zarr"))
