# SPDX-License-Identifier: BSL-1.0
"""What a run that fails, or that is told to end, leaves of its work:
all that the same command can go on with, and else nothing."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import time

import h5py
import numpy as np
import pytest

import s3_server
from harness import COMMAND, files, run, same
from kills import begin
from s3_conversion import environment

S3 = "s3://bucket/out.zarr"


@pytest.fixture(name="case")
def case_of(tmp_path):
    """A source of 40 datasets, and what a conversion without a fault makes of it."""
    source = tmp_path / "in.h5"
    with h5py.File(source, "w") as f:
        for k in range(40):
            f.create_dataset(
                f"d{k:02}",
                data=np.random.default_rng(k).integers(0, 1000, (20, 1000)).astype("i4"),
                chunks=(4, 1000),
                compression="gzip",
                compression_opts=1,
            )
    run("convert", "-q", source, tmp_path / "whole.zarr")
    return source, tmp_path / "out.zarr", tmp_path / "whole.zarr"


def damage(source, dataset):
    """Changes one chunk in place."""
    with h5py.File(source) as f:
        chunk = f[dataset].id.get_chunk_info(2)
    with open(source, "r+b") as f:
        f.seek(chunk.byte_offset)
        f.write(b"\xff" * chunk.size)


def units_left(store, **how):
    """Of an unfinished store."""
    done = subprocess.run([COMMAND, "inspect", str(store)], capture_output=True, text=True, timeout=600, **how)
    assert done.returncode == 3 and "is an unfinished store" in done.stdout, done
    return int(done.stdout.split(" units made")[0].split()[-3])


def test_a_damaged_chunk_costs_nothing_that_was_made_before(case):
    source, out, whole = case
    damage(source, "d37")
    said = run("convert", source, out, "--threads", "1", status=1).stderr
    assert said.count("\n") == 1 and 'dataset "/d37"' in said and "--keep-going" in said, said
    assert (
        "What is done is kept in" in said
        and "(37 of 40 units)" in said
        and said.rstrip().endswith("run the same command again to continue")
    ), said
    assert units_left(out) == 37 and not (out / "zarr.json").exists()
    made = {p: os.stat(os.path.join(out, p)).st_mtime_ns for p in files(out) if "/c/" in p and not p.startswith("d37")}
    assert len(made) == 37 * 5
    assert "of 40 units" in run("convert", source, out, status=1).stderr  # again: it is still damaged
    assert "units are already made" in run("convert", "--keep-going", source, out, status=3).stderr
    shutil.rmtree(whole)
    run("convert", "-q", "--keep-going", source, whole, status=3)
    same(whole, out)
    assert made == {p: os.stat(os.path.join(out, p)).st_mtime_ns for p in made}


def test_nothing_stays_where_nothing_is_done_or_nothing_is_of_use(case):
    source, out, _ = case
    for dataset in "d00", "d37":
        damage(source, dataset)
    # before the first chunk; before the first unit is whole
    assert "kept" not in run("convert", source, out, "--threads", "1", status=1).stderr and not out.exists()
    assert "kept" not in run("convert", source, out, "--include", "/d37", status=1).stderr and not out.exists()
    # stores in one file are made in one run
    for name in "out.zip", "refs.json":
        options = ["--virtual"] if name == "refs.json" else []
        target = out.parent / name
        done = run("convert", source, target, "--exclude", "/d00", *options, status=None)
        assert "kept" not in done.stderr and (done.returncode == 0 or not target.exists()), done
    assert not [n for n in os.listdir(out.parent) if "unfinished" in n]
    # the same command fails again, whatever happens
    with h5py.File(source, "a") as f:
        f["z"] = np.arange(1000)
    said = run(
        "convert",
        source,
        out,
        "--threads",
        "1",
        "--include",
        "/d1*",
        "--include",
        "/z",
        "--codec",
        "packbits",
        "--bits",
        "/z=3",
        status=1,
    ).stderr
    assert "does not fit" in said and "kept" not in said and not out.exists(), said


def test_an_error_after_overwrite(case):
    source, out, whole = case
    run("convert", "-q", source, out)
    damage(source, "d37")
    said = run("convert", source, out, "--overwrite", status=1).stderr
    assert "run the same command without --overwrite to continue" in said, said
    run("convert", "-q", source, out, "--keep-going", status=3)
    shutil.rmtree(whole)
    run("convert", "-q", source, whole, "--keep-going", status=3)
    same(whole, out)


def test_a_disk_that_is_full_is_emptied(case):
    source, out, whole = case
    with h5py.File(source, "a") as f:
        f.create_dataset("large", data=np.random.default_rng(0).integers(0, 1 << 30, 100_000))
    shutil.rmtree(whole)
    run("convert", "-q", source, whole)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    said = run("convert", source, out, status=1, preexec_fn=limited).stderr
    assert "cannot write" in said and "run the same command again to continue" in said, said
    assert units_left(out) >= 30
    run("convert", "-q", source, out)
    same(whole, out)


@pytest.fixture(name="s3")
def s3_of(case):
    if "without libcurl" in run("verify", case[0], S3, status=1, env=environment()).stderr:
        pytest.skip("this build has no S3")
    return case


def test_an_error_of_a_server(s3):
    source, _, whole = s3

    def forbidden(request, go_on):
        return s3_server.Answer(403) if request.kind == "put" and "/d37/c/" in request.key else go_on()

    with s3_server.Server(forbidden) as server:
        command = ["convert", source, S3, "--endpoint", server.url, "--threads", "1"]
        said = run(*command, status=1, env=environment()).stderr
        assert "403" in said and "run the same command again to continue" in said, said
        assert "out.zarr/zarr.json" not in server.objects
        time.sleep(2.5)  # a run that writes would have been heard of within ZARRBITS_S3_PATIENCE
        server.fault = None
        assert "continuing the unfinished store" in run(*command, env=environment()).stderr
        assert server.content("out.zarr") == {k: open(os.path.join(whole, k), "rb").read() for k in files(whole)}


@pytest.mark.parametrize("when", ["at first", "later"])
def test_ctrl_c_does_not_wait_for_a_server(s3, when):
    """One that takes a connection and answers nothing: from the beginning, or from the tenth chunk on."""
    silent = {"asked": 0}

    def mute(request, go_on):
        if when == "at first" or request.kind == "put" and "/d1" in request.key or silent["asked"]:
            silent["asked"] += 1
            time.sleep(20)
        return go_on()

    with s3_server.Server(mute) as server:
        p = begin("convert", s3[0], S3, "--endpoint", server.url, "--threads", "2", env=environment(ZARRBITS_S3_PATIENCE="60"))
        while p.poll() is None and not silent["asked"]:
            time.sleep(0.01)
        assert p.poll() is None, p.communicate()
        time.sleep(0.2)
        begun = time.monotonic()
        p.send_signal(signal.SIGINT)
        said = p.communicate(timeout=600)[1]
        spent = time.monotonic() - begun
        assert p.returncode == -signal.SIGINT and spent < 15, (
            p.returncode,
            spent,
            said,
        )  # about 2 on a machine that does nothing else
        assert "interrupted" in said and server.url in said, said


def test_ctrl_c_does_not_wait_for_a_machine_that_is_gone(s3):
    with socket.socket() as full:  # takes no connection: its queue is full
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        with socket.socket() as one, socket.socket() as two:
            for s in one, two:
                s.setblocking(False)
                s.connect_ex(place)
            url = f"http://127.0.0.1:{place[1]}"
            p = begin("convert", s3[0], S3, "--endpoint", url, env=environment(ZARRBITS_S3_PATIENCE="60"))
            time.sleep(1)
            begun = time.monotonic()
            p.send_signal(signal.SIGINT)
            said = p.communicate(timeout=600)[1]
            assert p.returncode == -signal.SIGINT and time.monotonic() - begun < 30, said
