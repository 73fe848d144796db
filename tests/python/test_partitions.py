# SPDX-License-Identifier: BSL-1.0
"""zarrbits.convert(client=...): partitions by the workers of an executor, and what happens when one is killed."""

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import zarrbits
from harness import COMMAND, same
from kills import slow_writes
from zarrbits import command


def made(path, megabytes=8, seed=1):
    with h5py.File(path, "w") as f:
        values = np.random.default_rng(seed).integers(0, 255, megabytes << 20, dtype="u1")
        f.create_dataset("x", data=values, chunks=(1 << 16,), maxshape=(None,), compression="gzip", compression_opts=1)
    return path


def running(store):
    """The processes that have this store among their arguments, but not those that have ended and wait for their parent."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:  # it has ended
            continue
        if os.fsencode(store) in words and b"--" in words:
            found.append(int(pid))
    return found


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


def instead_of_the_command(folder, monkeypatch, code):
    """A command that runs `code` first, with `words` for its arguments, and `once(name)`, which is true a single time."""
    path = os.path.join(folder, "instead")
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            f"#!{sys.executable}\nimport os, signal, sys\nwords = sys.argv[1:]\n"
            "def once(name):\n    try:\n"
            f"        os.close(os.open(os.path.join({folder!r}, name), os.O_CREAT | os.O_EXCL))\n        return True\n"
            "    except FileExistsError:\n        return False\n"
            f"{code}\nos.execv({COMMAND!r}, [{COMMAND!r}, *words])\n"
        )
    os.chmod(path, 0o755)
    monkeypatch.setenv("ZARRBITS_COMMAND", path)


@pytest.mark.parametrize("executor", [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor])
def test_an_executor_makes_the_store_of_one_process(executor, folder, monkeypatch):
    monkeypatch.chdir(folder)
    made("in.h5")
    whole = zarrbits.convert("in.h5", "whole.zarr", compress="zstd:1")
    states = []
    with executor(2) as client:
        report = zarrbits.convert("in.h5", "out.zarr", compress="zstd:1", client=client, report="r.json", progress=states.append)
    same("whole.zarr", "out.zarr")
    assert report.counts == whole.counts and not report.lost and os.path.exists("r.json")
    assert len(states) == 8 and states[-1].done == states[-1].total >= 8 << 20  # four partitions for each worker
    assert [s.done for s in states] == sorted(s.done for s in states) and states[-1].objects_done == states[-1].objects


def test_many_files_and_options_of_workers(folder, monkeypatch):
    monkeypatch.chdir(folder)
    paths = [made(f"{i}.h5", 1, i) for i in range(3)]
    asked = os.path.join(folder, "asked")
    os.mkdir("data")
    instead_of_the_command(folder, monkeypatch, f"print(*words, file=open({asked!r}, 'a'))")
    with concurrent.futures.ThreadPoolExecutor(2) as client:
        options = {"concat": "x:0", "allow_overlap": True, "external": "data", "lock": False}
        report = zarrbits.convert(paths, "out.zarr", client=client, partitions=3, **options)
    assert report.sources == [os.path.join(folder, path) for path in paths]
    with open(asked, encoding="utf-8") as f:
        lines = f.read().splitlines()
    for i in range(3):
        (line,) = [line for line in lines if f"--partition={i}/3" in line]
        # a worker may be in another folder
        assert line.startswith("convert ") and line.endswith(f" {folder}/2.h5 {folder}/out.zarr")
        assert "--threads=1" in line and f"--external={folder}/data" in line and "--no-lock" in line
    assert lines[-1].startswith("finalize ") and len(lines) == 4 and "--no-lock" in lines[-1] and "--partition" not in lines[-1]
    assert zarrbits.verify(paths, "out.zarr", concat="x:0", allow_overlap=True).equal


def test_a_partition_whose_process_is_killed_is_tried_again(folder, monkeypatch):
    source, store = made(os.path.join(folder, "in.h5")), os.path.join(folder, "out.zarr")
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    instead_of_the_command(folder, monkeypatch, f"if '--partition=1/4' in words and once('killed'): {kill}")
    with concurrent.futures.ThreadPoolExecutor(2) as client:
        zarrbits.convert(source, store, client=client, partitions=4)
    assert os.path.exists(os.path.join(folder, "killed")) and zarrbits.verify(source, store).complete
    # and not for ever; the others are made, and the same call continues
    store = os.path.join(folder, "again.zarr")
    instead_of_the_command(folder, monkeypatch, f"if '--partition=1/4' in words: {kill}")
    with concurrent.futures.ThreadPoolExecutor(2) as client:
        with pytest.raises(
            zarrbits.Error,
            match=f'partition 1/4 of "{re.escape(source)}" failed: convert was ended by SIGKILL, .*the same call continues',
        ):
            zarrbits.convert(source, store, client=client, partitions=4)
    monkeypatch.undo()
    (unfinished,) = zarrbits.inspect(store).unfinished
    assert [s["index"] for s in unfinished["shares"] if s["done"]] == [0, 2, 3]
    with concurrent.futures.ThreadPoolExecutor(2) as client:
        zarrbits.convert(source, store, client=client, partitions=3)
    assert zarrbits.verify(source, store).complete


def test_a_partition_that_fails_names_its_file(folder):
    paths, store = [made(os.path.join(folder, f"{i}.h5"), 4, i) for i in range(3)], os.path.join(folder, "out.zarr")
    with h5py.File(paths[1]) as f:
        chunk = f["x"].id.get_chunk_info(40)
    with open(paths[1], "r+b") as f:
        f.seek(chunk.byte_offset)
        f.write(b"\xff" * chunk.size)
    with concurrent.futures.ProcessPoolExecutor(2) as client:
        with pytest.raises(zarrbits.Error) as caught:
            zarrbits.convert(paths, store, concat="x:0", allow_overlap=True, compress="zstd:1", client=client, partitions=4)
    error = caught.value
    assert error.code == "damaged_source" and error.file == paths[1] and error.object == "/x" and paths[1] in str(error)
    assert re.match(r"zarrbits: partition \d/4 of ", str(error)) and isinstance(error.__cause__, zarrbits.Error)
    # in a chunk that has values of two files
    options = {"concat": "x:0", "allow_overlap": True, "chunk": (6 << 20,)}
    with pytest.raises(zarrbits.Error, match=f'of "{re.escape(paths[1])}" to "{re.escape(paths[2])}" cannot be read'):
        zarrbits.convert(paths, os.path.join(folder, "large_chunks.zarr"), **options)


def test_what_no_partition_can_do_is_said_at_once(folder):
    source, store = made(os.path.join(folder, "in.h5"), 1), os.path.join(folder, "out.zarr")
    with concurrent.futures.ThreadPoolExecutor(1) as client:
        for options, message in (
            ({"threads": 0}, "^zarrbits: `threads` is 1 to 1024"),
            ({"overwrite": True}, "with `client`, no store is replaced"),
            ({"partition": "0/2"}, "leave out `partition`"),
            ({"partitions": 0}, "`partitions` is 0"),
        ):
            with pytest.raises(ValueError, match=message):
                zarrbits.convert(source, store, client=client, **options)
        with pytest.raises(FileNotFoundError, match="none.h5"):
            zarrbits.convert(os.path.join(folder, "none.h5"), store, client=client)
        zarrbits.convert(source, store, client=client)
        with pytest.raises(FileExistsError, match="^zarrbits: the target"):
            zarrbits.convert(source, store, client=client)
        assert zarrbits.convert(source, store, client=client, resume=True).objects == []
    with pytest.raises(zarrbits.Error, match='partition 0/4 of ".*in.h5" failed: cannot schedule new futures'):
        zarrbits.convert(source, os.path.join(folder, "other.zarr"), client=client)
    with pytest.raises(ValueError, match="`partitions` needs a `client`"):
        zarrbits.convert(source, store, partitions=3)
    with pytest.raises(TypeError, match="`client` is an Executor of concurrent.futures or a Client of dask.distributed, not str"):
        zarrbits.convert(source, store, client="tcp://127.0.0.1:8786")


def test_a_worker_that_is_killed_breaks_its_executor_and_not_the_store(folder, monkeypatch):
    source, store = made(os.path.join(folder, "in.h5")), os.path.join(folder, "out.zarr")
    # the parent of the command is the worker
    instead_of_the_command(folder, monkeypatch, "if '--partition=2/4' in words and once('x'): os.kill(os.getppid(), 9)")
    with concurrent.futures.ProcessPoolExecutor(2) as client:
        with pytest.raises(zarrbits.Error, match=f'of "{re.escape(source)}" failed: a worker died.*the same call continues'):
            zarrbits.convert(source, store, client=client, partitions=4)
    with concurrent.futures.ProcessPoolExecutor(2) as client:
        zarrbits.convert(source, store, client=client, partitions=4)
    assert zarrbits.verify(source, store).complete


def test_a_progress_function_that_raises_ends_it(folder):
    source, store = made(os.path.join(folder, "in.h5")), os.path.join(folder, "out.zarr")

    class Enough(BaseException):
        pass

    def stop(state):
        raise Enough

    with concurrent.futures.ThreadPoolExecutor(1) as client:
        with pytest.raises(Enough):
            zarrbits.convert(source, store, client=client, partitions=20, progress=stop)
    done = [s for s in zarrbits.inspect(store).unfinished[0]["shares"] if s["done"]]
    assert 1 <= len(done) <= 3  # the one that was running, and one that the executor had already taken


def test_the_command_ends_with_its_parent(folder):
    source, store = made(os.path.join(folder, "in.h5"), 48), os.path.join(folder, "out.zarr")
    script = "import sys, zarrbits; zarrbits.convert(sys.argv[1], sys.argv[2], compress='gzip:6', threads=1)"
    slow = dict(os.environ, **slow_writes())
    for thread in False, True:  # of the main thread, and of one of a pool
        if thread:
            script = script.replace("zarrbits.convert(", "concurrent.futures.ThreadPoolExecutor().submit(zarrbits.convert, ")
            script = script.replace("import ", "import concurrent.futures, ")
        parent = subprocess.Popen([sys.executable, "-c", script, source, store], env=slow)
        wait_until(lambda: os.path.exists(store) and len(running(store)) >= 2)
        time.sleep(0.5)  # the journal has begun
        assert parent.poll() is None
        parent.kill()
        parent.wait()
        wait_until(lambda: not running(store), 20)
        assert not os.path.exists(os.path.join(store, "zarr.json"))
    zarrbits.convert(source, store, compress="gzip:6")  # the same call continues
    assert zarrbits.verify(source, store).complete


def test_a_command_without_that_parent_ends(folder):
    """It was killed before the command had asked to be told."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    source, store = made(os.path.join(folder, "in.h5"), 1), os.path.join(folder, "out.zarr")
    words = [os.environ["ZARRBITS_COMMAND"], "convert", source, store]
    done = subprocess.run(words, env={**os.environ, "ZARRBITS_PARENT": str(gone.pid)}, capture_output=True)
    assert done.returncode == -signal.SIGTERM and not os.path.exists(store), done
    done = subprocess.run(words, env={**os.environ, "ZARRBITS_PARENT": str(os.getpid())}, capture_output=True)
    assert done.returncode == 0, done


ERRORS = [
    kind("zarrbits: no", 1, "busy", "a.h5", "/x")
    for kind in (zarrbits.Error, command.NotFound, command.Exists, command.Denied, command.WrongOption)
]


def fail(index):
    raise ERRORS[index]


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors_come_back_from_other_processes(index):
    error = ERRORS[index]
    with concurrent.futures.ProcessPoolExecutor(1) as executor:
        by_executor = executor.submit(fail, index).exception(timeout=60)
    with multiprocessing.Pool(1) as pool:
        with pytest.raises(zarrbits.Error) as by_pool:
            pool.apply_async(fail, (index,)).get(timeout=60)
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in [by_executor, by_pool.value, copy.copy(error), *copies]:
        assert type(other) is type(error) and str(other) == "zarrbits: no" and other.args == error.args
        assert (other.status, other.code, other.file, other.object) == (1, "busy", "a.h5", "/x")


def test_every_kind_of_error_is_tried_here():
    """One that somebody adds, too."""
    kinds, found = [zarrbits.Error], set()
    while kinds:
        found.add(kind := kinds.pop())
        kinds += kind.__subclasses__()
    assert found == {type(error) for error in ERRORS}
