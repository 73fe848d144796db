# SPDX-License-Identifier: BSL-1.0
"""Runs of the command that are cut off in the middle, with all their processes; and a reader that looks at a store meanwhile."""

import collections
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from harness import COMMAND


def adopt_orphans():
    """Processes that lose their parent become children of this process, so that it need not wait for init to reap them."""
    PR_SET_CHILD_SUBREAPER = 36
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())


adopt_orphans()


def begin(*arguments, env=None, **variables):
    """zarrbits under way, the first process of a group of its own. What it says on standard error can be read from it."""
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**(os.environ if env is None else env), **variables},
    )


def end(process):
    """Its exit status and what it said; soon after, no process of its group may be left."""
    said = process.communicate(timeout=600)[1]
    wait_for_group(process.pid)
    return process.returncode, said


def kill(process):
    """Kills all processes of a run that has not ended; then none of them is left. What it said."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return end(process)[1]


def kill_after(seconds, *arguments, begun=None):
    """Kills a run so long after its start, or after this file has come."""
    process = begin(*arguments)
    while begun and process.poll() is None and not os.path.exists(begun):
        time.sleep(0.001)
    time.sleep(seconds)
    kill(process)


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


KILLED_AT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void count(void) {
  static int calls = 0;
  const char* last = getenv("KILLED_AT");
  if (last && ++calls == atoi(last)) kill(0, SIGKILL);
}
#define CUT(name, parameters, arguments)                             \\
  int name parameters {                                              \\
    static int (*real) parameters;                                   \\
    if (!real) real = (int (*) parameters)dlsym(RTLD_NEXT, #name);   \\
    count();                                                         \\
    return real arguments;                                           \\
  }
CUT(unlink, (const char* path), (path))
CUT(unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
CUT(rmdir, (const char* path), (path))
CUT(remove, (const char* path), (path))
CUT(rename, (const char* from, const char* to), (from, to))
CUT(renameat, (int from_folder, const char* from, int to_folder, const char* to), (from_folder, from, to_folder, to))
"""


def killed_before_call(number):
    """Environment in which begin() is killed, with its group, before its call of this number, from 1, that renames or removes
    a file. None where that cannot be had."""
    with open(COMMAND, "rb") as f:
        if not sys.platform.startswith("linux") or not shutil.which("cc") or b"Sanitizer" in f.read():
            return None
    library = os.path.join(_slow.name, "killed_at.so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], input=KILLED_AT, text=True, check=True)
    return {"LD_PRELOAD": library, "KILLED_AT": str(number)}


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


class Reader(threading.Thread):
    """Calls `look` again and again: what it returns is counted in `seen`, and nothing may be wrong with what it sees.

    with Reader(look) as reader:
        ...                          # a store comes to be
        with reader.paused:
            shutil.rmtree(store)     # by the test: no reader has to stand that
    """

    def __init__(self, look):
        super().__init__()
        self.look, self.seen, self.wrong = look, collections.Counter(), []
        self.stop, self.paused = threading.Event(), threading.Lock()

    def run(self):
        while not self.stop.is_set() and not self.wrong:
            with self.paused:
                try:
                    self.seen[self.look()] += 1
                except Exception as e:  # noqa: BLE001  (whatever it is, a reader must not see it)
                    self.wrong.append("".join(traceback.format_exception(e)))
            time.sleep(0.001)  # else the lock is taken again before another thread can have it

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, error, *_):
        self.stop.set()
        self.join()
        if error is None:
            assert not self.wrong and self.seen, self.wrong
