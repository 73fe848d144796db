# SPDX-License-Identifier: BSL-1.0
"""Unfinished stores: what others left is not trusted, and a run that fails removes only what it made."""

import fcntl
import json
import os
import shutil
import signal
import subprocess

import h5py
import numpy as np

from harness import COMMAND, convert, refused, same
from kills import has_units, journals, slow_writes
from targets import everything, run, small, write


def unfinished(folder, source, name="out.zarr"):
    target = os.path.join(folder, name)
    for share in ("0/2", "1/2"):
        convert(source, target, "--partition", share, "-q")
    return target


def test_a_journal_is_not_believed(folder):
    source, whole = small(os.path.join(folder, "in.h5")), os.path.join(folder, "whole.zarr")
    convert(source, whole, "-q")
    for n, (key, change) in enumerate(
        [
            ("a/d/c/7", os.remove),
            ("a/d/c/0", lambda p: os.truncate(p, 3)),
            ("a/d/c/29", lambda p: write(p, "x" * 41)),
            ("rows/values/c/0", os.remove),
            ("s/c/0", lambda p: os.truncate(p, 0)),
            ("a/d", shutil.rmtree),
        ]
    ):
        target = unfinished(folder, source, f"out{n}.zarr")
        change(os.path.join(target, key))
        said = refused("finalize", source, target)
        assert "/" + key.split("/c")[0].split("/values")[0] in said and "--resume" in said, said
        assert "zarr.json" not in os.listdir(target)
        assert "converted again" in run("convert", source, target, "--resume", "-q", status=0).stderr
        same(whole, target)


def test_another_source_of_the_same_name_size_and_time(folder):
    os.mkdir(os.path.join(folder, "1"))
    os.mkdir(os.path.join(folder, "2"))
    one, two = small(os.path.join(folder, "1", "in.h5")), small(os.path.join(folder, "2", "in.h5"), value=1)
    for large in (False, True):
        if large:
            for n, path in enumerate((one, two)):
                with h5py.File(path, "a") as f:
                    f["large"] = np.full(1 << 20, n, "u1")
                    f["large2"] = np.full(1 << 20, n, "u1")
        assert os.path.getsize(one) == os.path.getsize(two)
        for path in (one, two):
            os.utime(path, (10**9, 10**9))
        target = unfinished(folder, one, f"out{large}.zarr")
        assert "a different source" in refused("finalize", two, target)
        assert "a different source" in refused("convert", two, target, "--resume")
        run("finalize", one, target, "-q", status=0)


def test_what_a_partition_begun_otherwise_is_told(folder):
    source, target = small(os.path.join(folder, "in.h5")), os.path.join(folder, "out.zarr")
    run("convert", source, target, "-q", "--partition", "0/3", status=0)
    plan = os.path.join(target, ".zarrbits-unfinished", "plan")
    # another verb, and its own name
    said = refused("finalize", source, target, "--shard", "64M")
    assert 'begun by "zarrbits convert ' in said and 'this is "zarrbits finalize ' in said, said
    other = small(os.path.join(folder, "other.h5"))
    said = refused("convert", other, target, "--partition", "1/3")
    assert 'a different source: "in.h5", and this is "other.h5" (its name without the folder, its size and its time' in said, said
    # another time, as a copy has it: the work of the others is not for this one to remove
    state = os.stat(source)
    os.utime(source, (10**9, 10**9))
    for verb, options in (("convert", ["--partition", "1/3"]), ("finalize", [])):
        said = refused(verb, source, target, *options)
        assert "before its source changed, or this source is a copy with another time" in said and "--overwrite" not in said, said
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    with open(plan, encoding="utf-8") as f:
        text = f.read()
    with open(plan, "w", encoding="utf-8") as f:
        document = json.loads(text)
        f.write(json.dumps(dict(document, zarrbits="0.0.1")))
    said = refused("finalize", source, target)
    assert f"begun by zarrbits 0.0.1, and this is {document['zarrbits']}" in said, said


def test_what_an_unfinished_store_says_leads_nowhere_else(folder):
    source = small(os.path.join(folder, "in.h5"))
    outside = os.path.join(folder, "outside")
    write(os.path.join(outside, "precious"), "data")
    n = 0

    def attempt(change, *, says, commands=("finalize", "convert")):
        nonlocal n
        n += 1
        target = unfinished(folder, source, f"out{n}.zarr")
        change(target)
        for command in commands:
            said = run(command, source, target, "-q", *(["--resume"] if command == "convert" else []))
            assert said.returncode == 1 and says in said.stderr and said.stderr.count("\n") == 1, said.stderr
            assert everything(outside) == ["precious"] and open(os.path.join(outside, "precious")).read() == "data"
            assert sorted(os.listdir(folder)) == sorted(["in.h5", "outside"] + [f"out{i + 1}.zarr" for i in range(n)])

    def in_journal(old, new):
        def change(target):
            done = 0
            for path in journals(target):
                text = open(path).read()
                done += text.count(old)
                with open(path, "w") as f:
                    f.write(text.replace(old, new))
            assert done

        return change

    for path in (
        "/../ESCAPED/values",
        "/rows/../../ESCAPED",
        "//rows/values",
        "/a/d",
        "rows/values",
        "/rows/\\u0000",
        "/rows/" + "x" * 300,
        "/rows//values",
    ):
        attempt(
            in_journal('"/rows/values"', f'"{path}"'),
            says="journal" if not path.startswith("/rows/") else "not a valid key in a store",
        )
    for bad in ("-1", "1e99", '"x"', "null", "[" * 200000, "18446744073709551616"):
        attempt(in_journal('"unit":0', f'"unit":{bad}'), says="missing", commands=["finalize"])
    attempt(lambda t: (write(journals(t)[0]), write(journals(t)[0] + "00000000")), says="of 200000000", commands=["finalize"])
    for plan in ("[" * 1000000, "{}", "", '{"options": 1, "zarrbits": 7}', '{"options": {}, "zarrbits": null, "source": {}}'):
        attempt(
            lambda t: write(os.path.join(t, ".zarrbits-unfinished", "plan"), plan), says="exists and is not an unfinished store"
        )

    def link_to_outside(key):
        def change(target):
            path = os.path.join(target, key)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
            os.symlink(outside, path)

        return change

    attempt(link_to_outside("a/d"), says="symbolic link")
    attempt(link_to_outside("a"), says="symbolic link")
    attempt(link_to_outside("rows"), says="symbolic link")
    attempt(link_to_outside(".zarrbits-unfinished"), says=".zarrbits-unfinished")

    def journal_elsewhere(how):
        def change(target):
            for path in journals(target):
                os.remove(path)
                how(os.path.join(outside, "precious"), path)

        return change

    attempt(journal_elsewhere(os.symlink), says="journal")
    attempt(journal_elsewhere(lambda _, to: os.mkfifo(to)), says="journal")


def test_a_run_that_crashes_touches_only_what_is_its_own(folder):
    source, many = small(os.path.join(folder, "in.h5")), os.path.join(folder, "many.h5")
    with h5py.File(many, "w") as f:
        for i in range(4000):
            f.create_group(f"g{i}")
    target = unfinished(folder, source)
    before = everything(target)
    for _ in range(3):
        parent = subprocess.Popen(
            [COMMAND, "convert", many, target, "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        child = None
        while child is None and parent.poll() is None:  # before it comes to the target
            listed = open(f"/proc/{parent.pid}/task/{parent.pid}/children").read().split()
            child = int(listed[0]) if listed else None
        os.kill(child, signal.SIGKILL)
        said = parent.communicate()[1]
        assert parent.returncode == 1, said
        assert everything(target) == before, said
    run("finalize", source, target, "-q", status=0)
    # its own it keeps, as after an error
    other = os.path.join(folder, "other.zarr")
    small(os.path.join(folder, "long.h5"), chunks=6000)
    for _ in range(20):
        parent = subprocess.Popen(
            [COMMAND, "convert", os.path.join(folder, "long.h5"), other, "-q", "--threads", "1"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **slow_writes()},
        )
        child = None
        while parent.poll() is None and not has_units(other):
            child = (open(f"/proc/{parent.pid}/task/{parent.pid}/children").read().split() or [child])[0]
        try:
            os.kill(int(child), signal.SIGSEGV)  # as libhdf5 crashes
        except ProcessLookupError:
            pass
        said = parent.communicate()[1]
        if parent.returncode != 0:
            break
        shutil.rmtree(other)  # it was faster, on a busy machine
    assert parent.returncode != 0, said
    assert not os.path.exists(os.path.join(other, "zarr.json"))
    if "Sanitizer" not in said:  # which makes an exit status of the signal
        assert "what is done is kept in" in said and "crashed" in said, said
    convert(os.path.join(folder, "long.h5"), other, "-q")
    assert subprocess.run([COMMAND, "verify", os.path.join(folder, "long.h5"), other], stdout=subprocess.DEVNULL).returncode == 0


def test_a_run_that_is_killed_as_it_ends(folder):
    """Of a whole store's mark only the lock is left, or nothing;
    a lock that is held, a journal and a plan are those of an unfinished store."""
    source, target = small(os.path.join(folder, "in.h5")), os.path.join(folder, "out.zarr")
    convert(source, target, "-q")
    copy, mark = os.path.join(folder, "copy.zarr"), os.path.join(target, ".zarrbits-unfinished")
    shutil.copytree(target, copy)
    for lock in False, True:
        os.mkdir(mark)
        if lock:
            write(os.path.join(mark, "lock"), "")
        assert "nothing is left to do" in run("convert", source, target, "--resume", status=0).stderr
        assert not os.path.exists(mark)
        same(copy, target)
    os.mkdir(mark)
    with open(os.path.join(mark, "lock"), "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        run("convert", source, target, "--resume", status=0)
        assert os.path.exists(os.path.join(mark, "lock"))
    write(os.path.join(mark, "plan"), "{}")
    assert "not an unfinished store" in refused("convert", source, target, "--resume")
    os.remove(os.path.join(mark, "plan"))
    write(os.path.join(mark, "journal-0-of-2"), "{}")  # the plan is removed first
    assert "nothing is left to do" in run("convert", source, target, "--resume", status=0).stderr
    assert not os.path.exists(mark)
    same(copy, target)
