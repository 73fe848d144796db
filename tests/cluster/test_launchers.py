# SPDX-License-Identifier: BSL-1.0
"""One conversion by several processes, started as sites start them: mpirun, srun, a Slurm array.
Any number of them makes the same store and report as one process, byte for byte;
a rank that fails names its unit, the others finish, and --resume makes the rest.

scripts/ci/cluster runs it. What cannot be started here is skipped, loudly.
"""

import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, Case, execute, files, run, same
from slurm_node import NotHere, SlurmNode

MPI = os.environ.get("ZARRBITS_MPI", "")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
needs_mpi = pytest.mark.skipif(not MPI, reason="zarrbits-mpi was not built")


def example(path):
    noise = np.random.default_rng(5)
    steps = np.cumsum(noise.integers(-3, 4, (4000, 64)), axis=0).astype("i4")
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=steps, chunks=(1, 64), compression="gzip")
        f.create_dataset("shuffled", data=steps[:600], chunks=(20, 30), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("contiguous", data=np.tile(steps, (1, 30)))
        f.create_dataset("g/bool", data=steps > 0, chunks=(25, 64), compression="gzip")
        f["g/text"] = np.array([f"é{i}" for i in range(500)], dtype=h5py.string_dtype())
        f.create_dataset("g/sparse", (1000, 1000), "u2", chunks=(10, 10), fillvalue=7)[500, 500] = 1
        for i in range(30):
            f.create_dataset(f"many/d{i}", data=steps[i * 10 : i * 10 + 10], compression="lzf")


@pytest.fixture(scope="module", name="folder")
def shared_folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("launchers"))


@pytest.fixture(scope="module")
def case(folder):
    return Case(folder, example)


@pytest.fixture(scope="module")
def sharded(folder):
    place = os.path.join(folder, "shards")
    os.makedirs(place)
    return Case(place, example, "--shard", "40k")


@needs_mpi
def test_mpi_with_shards(sharded):
    test_mpi(sharded)


@needs_mpi
def test_mpi(case):
    for ranks in (1, 2, 3):
        text = execute(
            *MPIRUN, "-n", ranks, MPI, "convert", case.source, case.out, "--report", case.out_report, *case.options
        ).stderr
        assert "HDF5-DIAG" not in text, text
        case.matches()
        case.clear()
        print(f"mpi: {ranks} ranks{' ' if case.options else ''}{' '.join(case.options)}: byte-identical to one process")


@needs_mpi
def test_what_mpi_refuses(case):
    text = execute(*MPIRUN, "-n", 2, MPI, "convert", case.source, case.whole, status=1).stderr
    assert "exists" in text and text.count("zarrbits:") == 1, text
    text = execute(*MPIRUN, "-n", 2, MPI, "convert", case.source, case.out, "--no-such-option", status=2).stderr
    assert text.count("zarrbits:") == 1, text


def damage(case):
    """A copy of the source with one chunk that does not inflate, and the same file whole again."""
    broken = os.path.join(case.folder, "broken.h5")
    shutil.copy2(case.source, broken)
    with h5py.File(broken) as f:
        chunk = f["deflate"].id.get_chunk_info(1234)
    with open(broken, "r+b") as f:
        f.seek(chunk.byte_offset)
        good = f.read(chunk.size)
        f.seek(chunk.byte_offset)
        f.write(b"\xff" * chunk.size)
    return broken, chunk.byte_offset, good


@needs_mpi
def test_mpi_rank_that_fails(case):
    broken, offset, good = damage(case)
    stamp = os.stat(broken)
    text = execute(*MPIRUN, "-n", 3, MPI, "convert", broken, case.out, status=1).stderr
    assert "rank" in text and "unit" in text and "deflate" in text and "--resume" in text, text
    assert not os.path.exists(os.path.join(case.out, "zarr.json"))
    done = len(files(case.out))
    assert done > len(files(case.whole)) / 2, "the others have not finished"
    with open(broken, "r+b") as f:
        f.seek(offset)
        f.write(good)
    os.utime(broken, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # the same file, as far as can be told
    execute(*MPIRUN, "-n", 2, MPI, "convert", broken, case.out, "--resume", "--report", case.out_report)
    same(case.whole, case.out)
    shutil.rmtree(case.out)
    print("mpi: a rank failed, the others finished, --resume made the rest: byte-identical")


def processes_of(store):
    """Those of zarrbits-mpi that write this store: ranks, and the children that read for them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[0] == MPI.encode() and store.encode() in words:
            found.append(int(pid))
    return found


@needs_mpi
def test_mpi_that_is_ended(case):
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        job = subprocess.Popen(
            [*MPIRUN, "-n", "2", MPI, "convert", case.source, case.out, "--resume"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while job.poll() is None and not os.path.exists(os.path.join(case.out, "deflate", "c")):
            time.sleep(0.001)
        if signal_number == signal.SIGKILL:  # a rank, as the system does where memory is short: mpirun ends the others
            os.kill(processes_of(case.out)[0], signal_number)
        else:
            job.send_signal(signal_number)
        assert job.wait(timeout=600) != 0
        for _ in range(100):
            if not processes_of(case.out):
                break
            time.sleep(0.1)
        assert not processes_of(case.out), "a process is left"
        assert not os.path.exists(os.path.join(case.out, "zarr.json"))
        execute(*MPIRUN, "-n", 2, MPI, "convert", case.source, case.out, "--resume", "--report", case.out_report)
        case.matches()
        case.clear()
    print("mpi: SIGTERM to mpirun, SIGKILL to a rank: no process is left, --resume made the rest: byte-identical")


@needs_mpi
def test_mpirun_of_the_plain_command(case):
    text = execute(*MPIRUN, "-n", 3, COMMAND, "convert", case.source, case.out, "--partition", "mpi").stderr
    assert text.count("Open MPI") == 3, text
    run("finalize", case.source, case.out, "--report", case.out_report)
    case.matches()
    case.clear()
    print("mpirun: 3 shares and finalize: byte-identical to one process")


def test_slurm(case, folder):
    try:
        with SlurmNode(os.path.join(folder, "slurm")) as slurm:
            done = slurm.run("srun", "-n", "2", COMMAND, "convert", case.source, case.out, "--partition", "slurm")
            assert done.returncode == 0 and done.stderr.count("srun") == 2, done.stderr
            run("finalize", case.source, case.out, "--report", case.out_report)
            case.matches()
            case.clear()
            print("slurm: srun with 2 tasks and finalize: byte-identical to one process")

            script = os.path.join(folder, "job.sh")
            with open(script, "w") as f:
                f.write(f'#!/bin/sh\nexec "{COMMAND}" convert "{case.source}" "{case.out}" --partition slurm\n')
            done = slurm.run("sbatch", "--wait", "--array=3-5", "-o", os.path.join(folder, "array-%a.txt"), script)
            texts = [open(os.path.join(folder, f"array-{i}.txt")).read() for i in (3, 4, 5)]
            assert done.returncode == 0 and all("Slurm array" in t for t in texts), (done.stderr, texts)
            run("finalize", case.source, case.out, "--report", case.out_report)
            case.matches()
            case.clear()
            print("slurm: an array of 3 tasks, from 3 on, and finalize: byte-identical to one process")

            # a batch script of two tasks without srun is one process, and does it all
            done = slurm.run("sbatch", "--wait", "-n", "2", "-o", os.path.join(folder, "one.txt"), script)
            assert done.returncode == 0, open(os.path.join(folder, "one.txt")).read()
            same(case.whole, case.out)
            print("slurm: a batch script without srun: one process")
            shutil.rmtree(case.out)
    except NotHere as why:
        pytest.skip(f"slurm: {why}")
