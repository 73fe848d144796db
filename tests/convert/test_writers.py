# SPDX-License-Identifier: BSL-1.0
"""Sources to which another process writes, or wrote until it was killed: h5py in a process of its own."""

import os
import shutil
import subprocess
import sys

import h5py
import numpy as np

import harness
from harness import COMMAND
from store import Store

WRITER = """
import os, sys, time, h5py
path, how = sys.argv[1:]
if how == "append":
    f = h5py.File(path, "r+")
else:
    f = h5py.File(path, "w", libver="latest")
    d = f.create_dataset("d", (1000,), maxshape=(None,), chunks=(100,), dtype="<i4")
    d[:] = 1
    f["rest"] = [1, 2, 3]
    for i in range(800):  # for a report of more than 64 KiB
        f["rest"].attrs["a name" * 20 + str(i)] = i
    if how == "swmr":
        f.swmr_mode = True
f.flush()
print("ready", flush=True)
n = 1000
for line in sys.stdin:
    if line == "grow\\n":
        n += 100
        d.resize((n,))
        d[n - 100:] = n
        d.flush()
        print("grown", flush=True)
    elif line == "close\\n":
        f.close()
        print("closed", flush=True)
"""
READERS = "convert", "plan", "verify", "inspect", "suggest", "doctor"


class Writer:
    """A process that has the file open; how: append, new, swmr."""

    def __init__(self, path, how):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def do(self, what, answer):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == answer + "\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Waiting:
    """A conversion that has made all but the last step: its report goes to a pipe, which takes less than the whole at once."""

    def __init__(self, folder, source, store, *options):
        self.pipe = os.path.join(folder, "report")
        os.mkfifo(self.pipe)
        self.process = subprocess.Popen(
            [COMMAND, "convert", source, store, "-q", "--report", self.pipe, *options], stderr=subprocess.PIPE, text=True
        )
        self.report = open(self.pipe, encoding="utf-8")

    def end(self):
        self.report.read()
        self.errors = self.process.communicate(timeout=600)[1]
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.report.close()
        self.process.kill()
        self.process.communicate()
        os.remove(self.pipe)


def run(command, source, store, *options, env=None):
    other = os.path.join(os.path.dirname(source), "other.zarr")  # for verify, which opens its store first
    os.makedirs(other, exist_ok=True)
    with open(os.path.join(other, "zarr.json"), "w", encoding="ascii") as f:
        f.write('{"zarr_format": 3, "node_type": "group"}')
    files = {"convert": [source, store], "verify": [source, other]}.get(command, [source])
    return harness.run(command, *files, *options, status=None, timeout=600, **(env or {}))


def verified(source, store):
    return subprocess.run([COMMAND, "verify", source, store], capture_output=True).returncode == 0


def refused(command, source, store, *options, env=None):
    done = run(command, source, store, *options, env=env)
    assert done.returncode == 1, (command, done.returncode, done.stderr)
    [line] = done.stderr.splitlines()
    assert source in line, line
    if command == "convert":
        assert not os.path.exists(store)
    return line


def ends(command):
    """No message about the source: verify is given another store, doctor may find no plugins."""
    return {"verify": (1,), "doctor": (0, 1)}.get(command, (0,))


def whole(source, store, *options):
    done = run("convert", source, store, "--overwrite", "-q", *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_file_that_is_open_for_writing_is_refused(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    for libver in "earliest", "latest":
        with h5py.File(source, "w", libver=libver) as f:
            f["d"] = np.arange(10)
        with Writer(source, "append") as writer:
            for command in READERS:
                line = refused(command, source, store)
                assert "another process has it open for writing" in line and "h5clear" not in line, line
            refused("convert", source, store, "--resume")
            writer.do("close", "closed")
            whole(source, store)
            for command in READERS[1:]:
                done = run(command, source, store)
                assert "writing" not in done.stderr and done.returncode in ends(command), (command, done.stderr)
        subprocess.run(["rm", "-r", store], check=True)


def test_without_a_lock_it_is_read(folder):
    """--no-lock, and libhdf5's own variable; a file of HDF5 1.8's format has no mark."""
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w", libver="earliest") as f:
        f["d"] = np.arange(10)
    with Writer(source, "append"):
        for command in READERS:
            done = run(command, source, store, "--no-lock")
            assert "writing" not in done.stderr and done.returncode in ends(command), (command, done.stderr)
        os.rename(store, store + "1")
        assert run("convert", source, store, env={"HDF5_USE_FILE_LOCKING": "FALSE"}).returncode == 0
    # with a mark, libhdf5 itself refuses; nobody knows whether the writer lives
    with Writer(source, "new"):
        os.rename(store, store + "2")
        for line in (
            refused("convert", source, store, "--no-lock"),
            refused("convert", source, store, env={"HDF5_USE_FILE_LOCKING": "FALSE"}),
        ):
            assert "marked as open for writing" in line and "h5clear" not in line, line


def test_mounts_without_locks(folder):
    """Mounts without locks are no obstacle, unless the environment requires locks; there nobody can notice a writer."""
    if os.environ.get("ZARRBITS_SANITIZED") or not shutil.which("cc"):
        return
    source, store, library = (os.path.join(folder, name) for name in ("in.h5", "out.zarr", "no_locks.so"))
    code = "#include <errno.h>\nint flock(int fd, int how) { errno = ENOSYS; return -1; }"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=code, text=True, check=True)
    without = {"LD_PRELOAD": library}
    with h5py.File(source, "w") as f:
        f["d"] = np.arange(10)
    done = run("convert", source, store, env=without)
    assert done.returncode == 0, done.stderr
    os.rename(store, store + "1")
    assert "does not support locks" in refused("convert", source, store, env=without | {"HDF5_USE_FILE_LOCKING": "TRUE"})
    with Writer(source, "new"):
        line = refused("convert", source, store, env=without)
        assert "marked as open for writing" in line and "h5clear" not in line, line


def test_readers_share_their_locks_and_keep_writers_away(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("d", data=np.arange(1000, dtype="<i4"), chunks=(100,))
        for i in range(800):
            f["d"].attrs["a name" * 20 + str(i)] = i
    with h5py.File(source, "r"):
        whole(source, store)
    with Waiting(folder, source, store + "2") as waiting:
        again = subprocess.run(
            [sys.executable, "-c", "import sys, h5py; h5py.File(sys.argv[1], 'r+')", source], capture_output=True, text=True
        )
        assert "unable to lock file" in again.stderr, again.stderr
        assert waiting.end() == 0


def test_the_mark_of_a_killed_writer(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    for before in b"", b"user" * 256:
        with Writer(source, "new"):
            pass
        with open(source, "rb") as f:
            data = f.read()
        with open(source, "wb") as f:
            f.write(before + data)
        for command in READERS:
            line = refused(command, source, store)
            assert "marked as open for writing" in line and "h5clear -s" in line, line
    with open(source, "wb") as f:
        f.write(data)
    if subprocess.run(["sh", "-c", "command -v h5clear"], stdout=subprocess.DEVNULL).returncode == 0:
        subprocess.run(["h5clear", "-s", source], check=True)
        whole(source, store)
        assert (Store(store).read("d") == 1).all()


def test_swmr(folder):
    """From a file that a SWMR writer has open, the store gets what is in the file; if it grows meanwhile, there is no store."""
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with Writer(source, "swmr") as writer:
        for n in 1000, 1100:
            assert "SWMR" in whole(source, store)
            values = Store(store).read("d")
            assert values.shape == (n,) and (values[:1000] == 1).all() and (values[1000:] == n).all()
            assert verified(source, store)
            for command in "plan", "inspect", "suggest":
                assert run(command, source, store).returncode == 0
            writer.do("grow", "grown")
    whole(source, store)  # and where it was killed


def test_a_source_that_changes(folder):
    """Its size or its time, until the root's zarr.json is written."""
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with Writer(source, "swmr") as writer:
        for options in [], ["--resume"], ["--no-lock"]:
            with Waiting(folder, source, store, *options) as waiting:
                writer.do("grow", "grown")
                assert waiting.end() == 1
                assert "changed while it was read" in waiting.errors, waiting.errors
            assert not os.path.exists(os.path.join(store, "zarr.json"))
            subprocess.run(["rm", "-rf", store], check=True)
        with Waiting(folder, source, store) as waiting:
            os.utime(source)
            assert waiting.end() == 1


def test_other_files_that_are_written_to(folder):
    """The source of a virtual dataset: a missing one would read as the fill value."""
    source, other, store = (os.path.join(folder, name) for name in ("in.h5", "other.h5", "out.zarr"))
    with h5py.File(source, "w") as f:
        layout = h5py.VirtualLayout((1000,), "<i4")
        layout[:] = h5py.VirtualSource("other.h5", "d", (1000,))
        f.create_virtual_dataset("v", layout, fillvalue=7)
    with h5py.File(other, "w") as f:
        f["d"] = np.arange(1000, dtype="<i4")
    whole(source, store + ".before")
    with Writer(other, "new"):
        made = store + ".before"
        for command in (
            ["convert", source, store],
            ["plan", source],
            ["verify", source, made],
            ["inspect", source],
            ["suggest", source],
        ):
            done = subprocess.run([COMMAND, *command], capture_output=True, text=True, timeout=600)
            assert done.returncode == 1, (command, done)
            [line] = done.stderr.splitlines()
            assert other in line and "another process has it open for writing" in line, line
        assert not os.path.exists(store)
    with Writer(other, "swmr"):  # libhdf5 does not open it as a SWMR reader
        done = run("convert", source, store)
        assert done.returncode == 3 and 'other.h5" is marked as open for writing' in done.stderr, done.stderr
        assert not os.path.exists(os.path.join(store, "v"))
