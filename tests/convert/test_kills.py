# SPDX-License-Identifier: BSL-1.0
"""Signals at any moment, to the started process, to its child or to both, in every way to convert.
Afterwards there is no unfinished store that looks whole, no process, and nothing left over unless it is to be kept;
a resumed run makes the same store, byte for byte.

ZARRBITS_KILLS: how many; ZARRBITS_SEED: others.
"""

import collections
import filecmp
import os
import random
import resource
import shutil
import signal
import time

import h5py
import numpy as np

from harness import Case, convert, files, report, run, same
from kills import begin, end
from test_units import example

KILLS, SEED = int(os.environ.get("ZARRBITS_KILLS", "10")), int(os.environ.get("ZARRBITS_SEED", "5"))
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE]
MARK = ".zarrbits-unfinished"


def child_of(p):
    """The process that reads the file, once it is there."""
    while p.poll() is None:
        try:
            with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                for pid in f.read().split():
                    return int(pid)
        except OSError:
            pass
    return None


class Way:
    """One way to convert. `keeps`: finished work stays after a signal."""

    def __init__(self, folder, name, case, *options, keeps=False, before=(), target="out.zarr"):
        self.name, self.case, self.options, self.keeps, self.before = name, case, options, keeps, before
        self.target = os.path.join(folder, target)
        self.report = os.path.join(folder, "kill.json")

    def good(self):
        return self.case.whole if self.target.endswith(".zarr") else os.path.join(self.case.folder, "whole.zip")

    def amount(self):
        """The run's progress: the part of the final files that is there."""
        try:
            if self.target.endswith(".zip"):
                return os.path.getsize(self.target + MARK) / os.path.getsize(self.good())
            return sum(len(f) for _, _, f in os.walk(self.target)) / self.total
        except OSError:
            return 0

    def prepare(self, old):
        self.clear()
        self.total = len(files(self.good())) if not self.target.endswith(".zip") else 1
        if "--overwrite" in self.options:
            shutil.copytree(old, self.target)
        for args in self.before:
            convert(self.case.source, self.target, *args, *self.case.options)

    def command(self, *options):
        report_options = () if "--partition" in options else ("--report", self.report)
        finalizing = "finalize" in options
        return (
            *(("finalize",) if finalizing else ()),
            self.case.source,
            self.target,
            *(o for o in options if o != "finalize"),
            *(() if finalizing else self.case.options),
            *report_options,
            *(() if finalizing else ("--threads", "2")),
        )

    def clear(self):
        shutil.rmtree(self.target, ignore_errors=True)
        for path in (self.target, self.target + MARK, self.report):
            if os.path.isfile(path):
                os.remove(path)

    def is_good(self):
        if self.target.endswith(".zip"):
            return filecmp.cmp(self.target, self.good(), shallow=False)
        rest = [f for f in files(self.target) if not f.startswith(MARK)]
        return rest == files(self.good()) and all(
            filecmp.cmp(os.path.join(self.target, f), os.path.join(self.good(), f), shallow=False) for f in rest
        )

    def nodes_are_whole(self):
        """Arrays that a reader would find by their own metadata."""
        for folder, _, names in os.walk(self.target):
            if "zarr.json" in names:
                same(os.path.join(self.good(), os.path.relpath(folder, self.target)), folder)

    def finish(self, old_is_there, looks_whole):
        """Resumed as the documentation says, it becomes the same store."""
        # of a store that was whole already, and whose mark was being removed, the journal may be gone
        if not looks_whole and ("finalize" in self.options or "--partition" in self.options):
            if "--partition" in self.options:
                convert(*self.command(*self.options))
            run("finalize", *self.command("finalize")[1:])
        elif "finalize" in self.options:
            run(*self.command(*self.options))
        elif self.target.endswith(".zip"):
            convert(*self.command())
        elif old_is_there:
            convert(*self.command("--overwrite"))
        else:
            convert(*self.command(*self.options))  # the same command continues
        assert self.is_good()
        assert not os.path.exists(os.path.join(self.target, MARK)) and not os.path.exists(self.target + MARK)
        assert report(self.report) == report(self.case.whole_report)


def attack(way, old, dice, count):
    way.prepare(old)
    whom, what = dice.choice(["parent", "child", "group"]), dice.choice([*ENDING, *ENDING, signal.SIGKILL])
    # at once, while chunks are made (which is what takes the time), or when nearly all is there
    when = dice.choice([0, dice.random(), dice.random(), dice.random(), 1 - dice.random() / 20])
    command = way.command(*way.options)
    p = begin(*command if command[0] == "finalize" else ("convert", *command))
    child = child_of(p) if when > 0 or whom == "child" else None
    if "--overwrite" in way.options:  # the old store goes first
        while p.poll() is None and not os.path.exists(os.path.join(way.target, MARK)) and when > 0:
            pass
    while p.poll() is None and way.amount() < when:
        time.sleep(0.001)
    try:
        if whom == "parent":
            p.send_signal(what)
        elif whom == "group":
            os.killpg(p.pid, what)
        elif child:
            os.kill(child, what)
    except ProcessLookupError:
        pass
    status, said = end(p)
    trace = f"{way.name}: {what.name} to {whom} at {when:.2f}, exit {status}: {said}"
    try:
        if what == signal.SIGKILL and whom == "child" and status == 1:
            assert said.splitlines()[-1].count("ended from outside") == 1, said
        else:
            assert status in (0, -what), status
        exists = os.path.lexists(way.target)
        unfinished = os.path.exists(os.path.join(way.target, MARK)) or os.path.exists(way.target + MARK)
        looks_whole = exists and (way.target.endswith(".zip") or os.path.exists(os.path.join(way.target, "zarr.json")))
        old_is_there = (
            looks_whole
            and "--overwrite" in way.options
            and [f for f in files(way.target) if not f.startswith(MARK)] == files(old)
        )
        if old_is_there:
            assert all(
                filecmp.cmp(os.path.join(old, f), os.path.join(way.target, f), shallow=False) for f in files(old)
            )  # it had not begun
        elif looks_whole:
            assert way.is_good(), "it looks whole and is not"
        elif exists and not way.target.endswith(".zip"):
            way.nodes_are_whole()
        if status == 0 and "--partition" not in way.options:
            assert looks_whole and not unfinished
        if status != 0 and not looks_whole and not way.keeps and not (what == signal.SIGKILL and whom != "child"):
            assert not exists and not unfinished, "something is left"
        if way.before:
            assert exists, "what other shares made is gone"
        count[
            "whole"
            if looks_whole and not old_is_there
            else "old"
            if old_is_there
            else "unfinished"
            if exists or unfinished
            else "nothing"
        ] += 1
        count[what.name] += 1
        count["to " + whom] += 1
        if not looks_whole or unfinished or old_is_there or way.keeps:
            if looks_whole and not old_is_there and not unfinished:
                return
            way.finish(old_is_there or "--overwrite" in way.options and exists, looks_whole)
    except BaseException:
        print(trace, flush=True)
        raise


def test_kills_at_any_moment(memory_folder):
    folder = memory_folder
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dice = random.Random(SEED)
    count = collections.Counter()
    started = time.monotonic()
    plain, sharded, old = (os.path.join(folder, n) for n in ("plain", "sharded", "old"))
    os.mkdir(plain), os.mkdir(sharded), os.mkdir(old)
    cases = (
        Case(plain, lambda path: example(path, chunks=60)),
        Case(sharded, lambda path: example(path, chunks=60), "--shard", "20k"),
    )
    convert(cases[0].source, os.path.join(plain, "whole.zip"))
    with h5py.File(os.path.join(old, "old.h5"), "w") as f:
        f.create_dataset("deflate", data=np.zeros((50, 64), "i4"), chunks=(10, 64))
        f.create_dataset("older/x", data=np.arange(500), chunks=(5,))
    convert(os.path.join(old, "old.h5"), os.path.join(old, "old.zarr"))
    ways = [
        Way(folder, "directory", cases[0], keeps=True),
        Way(folder, "zip", cases[0], target="out.zip"),
        Way(folder, "shard", cases[1], keeps=True),
        Way(folder, "resume", cases[0], "--resume", keeps=True),
        Way(folder, "overwrite", cases[0], "--overwrite", keeps=True),
        Way(folder, "partition", cases[0], "--partition", "0/2", keeps=True, before=[("--partition", "1/2")]),
        Way(folder, "finalize", cases[1], "finalize", keeps=True, before=[("--partition", "0/2"), ("--partition", "1/2")]),
    ]
    for i in range(KILLS):
        attack(ways[i % len(ways)], os.path.join(old, "old.zarr"), dice, count)
    print(
        f"{KILLS} kills (seed {SEED}) in {time.monotonic() - started:.1f} s:",
        ", ".join(f"{k} {n}" for k, n in sorted(count.items())),
    )
    assert KILLS < 50 or count["unfinished"] + count["nothing"] >= KILLS // 2, "the runs end before they can be killed"
