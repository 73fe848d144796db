# SPDX-License-Identifier: BSL-1.0
"""Compares the stores and reports of two ways to convert a file, byte for byte."""

import ctypes
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

COMMAND = os.environ["ZARRBITS_COMMAND"]


def run(*command, status=0, timeout=300, **how):
    """Standard error of a command that has to end with this status."""
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout, **how
    )
    assert done.returncode == status, f"{command}: exit {done.returncode}, not {status}: {done.stderr}"
    return done.stderr


def adopt_orphans():
    """Processes that lose their parent become children of this process, so that it need not wait for init to reap them."""
    PR_SET_CHILD_SUBREAPER = 36
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())


def journals(target):
    mark = os.path.join(target, ".zarrbits-unfinished")
    return [os.path.join(mark, name) for name in (os.listdir(mark) if os.path.isdir(mark) else []) if name.startswith("journal")]


def has_units(target):
    """Whether the journal of an unfinished store has a unit that is made."""
    try:
        return any('"dataset"' in open(journal, encoding="utf-8").read() for journal in journals(target))
    except FileNotFoundError:  # not yet, or no longer
        return False


SLOW_WRITES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define SLOW(name, parameters, arguments)                                          \\
  ssize_t name parameters {                                                        \\
    static ssize_t (*real) parameters;                                             \\
    if (!real) real = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name);              \\
    if (size >= 256) usleep(10000);                                                \\
    return real arguments;                                                         \\
  }
SLOW(write, (int fd, const void* bytes, size_t size), (fd, bytes, size))
SLOW(pwrite, (int fd, const void* bytes, size_t size, off_t at), (fd, bytes, size, at))
SLOW(pwrite64, (int fd, const void* bytes, size_t size, off_t at), (fd, bytes, size, at))
"""
_slow = tempfile.TemporaryDirectory(prefix="zarrbits-slow-")


def slow_writes():
    """Environment in which a command needs 10 ms for each chunk that it writes, so that it can be cut off in the middle,
    however fast the machine is. Nothing where that cannot be had, or where sanitizers want to be loaded first and make the
    command slow enough."""
    with open(COMMAND, "rb") as f:
        if not sys.platform.startswith("linux") or not shutil.which("cc") or b"Sanitizer" in f.read():
            return {}
    library = os.path.join(_slow.name, "slow_writes.so")
    if not os.path.exists(library):
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], input=SLOW_WRITES, text=True, check=True
        )
    return {"LD_PRELOAD": library}


def wait_for_group(pid):
    """Waits until no process of this group is left: a killed process holds its locks until it is gone."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            while os.waitpid(-pid, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.001)
    raise AssertionError("a process is left")


adopt_orphans()


def files(root):
    return sorted(os.path.relpath(os.path.join(folder, f), root) for folder, _, names in os.walk(root) for f in names)


def same(a, b):
    """Every file of one folder is in the other, with the same bytes."""
    left, right = files(a), files(b)
    assert left and left == right, sorted(set(left) ^ set(right))[:10]
    for name in left:
        assert filecmp.cmp(os.path.join(a, name), os.path.join(b, name), shallow=False), name


def report(path):
    with open(path, encoding="utf-8") as f:
        r = json.load(f)
    for differs in ("store", "started", "seconds"):
        del r[differs]
    return r


class Case:
    """A file, and the store and report of an undisturbed run on one thread."""

    def __init__(self, folder, example, *options):
        self.folder, self.options = folder, options
        self.source, self.whole, self.out = (os.path.join(folder, n) for n in ("in.h5", "whole.zarr", "out.zarr"))
        self.whole_report, self.out_report = os.path.join(folder, "whole.json"), os.path.join(folder, "out.json")
        example(self.source)
        run(COMMAND, "convert", self.source, self.whole, "--threads", 1, "--report", self.whole_report, *options)

    def matches(self):
        same(self.whole, self.out)
        assert report(self.whole_report) == report(self.out_report)

    def clear(self):
        shutil.rmtree(self.out)
        os.remove(self.out_report)
