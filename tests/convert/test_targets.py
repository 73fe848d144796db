# SPDX-License-Identifier: BSL-1.0
"""What a run writes, removes, or takes for its own: names, existing targets, two runs at once.
test_unfinished.py has unfinished stores."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, convert, refused, same
from kills import slow_writes
from store import Store
from targets import everything, run, small, write

PAIRS = int(os.environ.get("ZARRBITS_PAIRS", "2"))


# Names


def test_names_that_look_like_the_converters_own_are_data(folder):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        for group in ("", "g/"):
            for name in (".zarrbits-unfinished", ".ZARRBITS-unfinished", ".zarrbits-unfinished-2", ".zarrbits-0-0.tmp", "lock"):
                f[group + name + "/d"] = np.arange(3)
    for target in ("out.zarr", "out.zip"):
        target = os.path.join(folder, target)
        convert(source, target, "-q")
        run("verify", source, target, status=0)
    assert os.path.exists(os.path.join(folder, "out.zarr", "%2Ezarrbits-unfinished", "d", "c", "0"))
    partly = os.path.join(folder, "partly.zarr")
    convert(source, partly, "--partition", "0/2", "-q")
    convert(source, partly, "--resume", "-q")
    same(os.path.join(folder, "out.zarr"), partly)


def test_no_two_names_become_one_key(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    pairs = [b"x%FF", b"x\xff", b"x%25FF", b"100%", b"a%20b"]
    with h5py.File(source, "w") as f:
        for i, name in enumerate(pairs):
            f.id.links.create_soft(name, b"/" + name)
            kind = h5py.h5t.STD_I32LE.copy()
            kind.commit(f.id, b"type " + name)
        enum = h5py.h5t.enum_create(h5py.h5t.STD_I8LE)
        compound = h5py.h5t.create(h5py.h5t.COMPOUND, 4 * len(pairs))
        for i, name in enumerate(pairs):
            enum.enum_insert(name, i)
            compound.insert(name, 4 * i, h5py.h5t.STD_I32LE)
        space = h5py.h5s.create_simple((2,))
        h5py.h5d.create(f.id, b"enum", enum, space).write(h5py.h5s.ALL, h5py.h5s.ALL, np.zeros(2, "i1"), enum)
        h5py.h5d.create(f.id, b"compound", compound, space)
        h5py.h5a.create(f["enum"].id, b"values", compound, h5py.h5s.create(h5py.h5s.SCALAR))
        for name in pairs:
            h5py.h5a.create(f["enum"].id, name, h5py.h5t.STD_I32LE, h5py.h5s.create(h5py.h5s.SCALAR)).write(np.array(1, "i4"))
    report = json.loads(convert(source, target, "-q", "--json").stdout)
    store = Store(target)
    shown = {"x%25FF", "x%FF", "x%2525FF", "100%", "a%20b"}
    own = store.notes()
    assert set(own["links"]) == shown, own["links"]
    assert set(own["named_types"]) == {"type " + n for n in shown}
    assert own["links"]["x%FF"]["target"] == "/x%FF" and own["links"]["x%25FF"]["target"] == "/x%25FF"
    attributes = store.attributes("enum")
    assert set(store.notes("enum")["enum"]) == shown and set(attributes["values"]) == shown
    assert shown < set(attributes)
    assert sum(store.has(os.path.join("compound", n)) for n in os.listdir(os.path.join(target, "compound"))) == len(pairs)
    assert sorted(f["name"] for f in store.notes("compound")["hdf5_type"]["fields"]) == sorted(shown)
    assert len({o["path"] for o in report["objects"] if o["kind"] == "link"}) == len(pairs)
    run("verify", source, target, status=0)


def test_names_longer_than_a_file_system_holds(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    names = ["n" * 300, "n" * 301, "é" * 200, "\\" * 150, "n" * 255]
    with h5py.File(source, "w") as f:
        for i, name in enumerate(names):
            f["g/" + name] = np.full(3, i)
        mixed = np.dtype([(name, "i4") for name in names[:3]] + [("s", h5py.string_dtype())])
        f["members"] = np.array([(1, 2, 3, "x")], mixed)
    convert(source, target, "-q")
    verify = run("verify", source, target, status=0)
    assert "not in the source" not in verify.stdout, verify.stdout
    keys = Store(target).notes("g")["names"]
    assert sorted(keys.values()) == sorted(names[:4])
    assert all(re.fullmatch(r".*%~[0-9a-f]{32}", key) and len(key.encode()) <= 255 for key in keys), keys
    assert sorted(Store(target).notes("members")["names"].values()) == sorted(names[:3])
    for i, name in enumerate(names):  # another value is seen
        with h5py.File(source, "r+") as f:
            f["g/" + name][1] = 99
        assert run("verify", source, target).returncode == 1
        with h5py.File(source, "r+") as f:
            f["g/" + name][1] = i


def test_a_name_that_a_damaged_file_has_twice(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f["twinlink1"], f["twinlink2"] = h5py.SoftLink("/one"), h5py.SoftLink("/two")
        f.create_dataset("enum", (2,), h5py.enum_dtype({"twinenum1": 1, "twinenum2": 2}, "i1"))
        f["compound"] = np.zeros(2, [("twinpart1", "i4"), ("twinpart2", "i4")])
        f["good"] = np.arange(3)
    raw = open(source, "rb").read()
    for name in (b"twinlink", b"twinenum", b"twinpart"):
        assert raw.count(name + b"2") == 1
        raw = raw.replace(name + b"2", name + b"1")
    with open(source, "wb") as f:
        f.write(raw)
    said = convert(source, target, "-q", status=3).stderr
    assert 'two members named "twinenum1"' in said and "another link of this name" in said, said
    assert "compound" in said and not Store(target).has("compound") and Store(target).has("good")


# Targets that exist


def test_only_stores_are_overwritten(folder):
    source = small(os.path.join(folder, "in.h5"))
    node = '{"zarr_format": 3, "node_type": "group"}'
    for n, (name, text) in enumerate(
        [
            ("zarr.json", ""),
            ("zarr.json", "{}"),
            ("zarr.json", '{"zarr_format": 2, "node_type": "group"}'),
            ("zarr.json", '{"zarr_format": 3, "node_type": "boat"}'),
            ("zarr.json", "[" * 1000000),
            ("a/zarr.json", node),
            (".zarrbits-unfinished/x", ""),
            (".zarrbits-unfinished/plan", "{}"),
            (".zarrbits-unfinished/plan", "[" * 1000000),
            (".zarrbits-unfinished/removing", ""),
        ]
    ):
        target = os.path.join(folder, f"out{n}")
        write(os.path.join(target, "precious"), "data")
        write(os.path.join(target, name), text)
        before = everything(target)
        for how in (["--overwrite"], ["--resume"], ["--partition", "0/2"])[: 3 if n > 4 else 1]:
            assert "exists" in refused("convert", source, target, *how)
            assert everything(target) == before
    # links in a store go, what they lead to stays
    target, outside = os.path.join(folder, "out.zarr"), os.path.join(folder, "outside")
    write(os.path.join(outside, "precious"), "data")
    convert(source, target, "-q")
    for link in ("link", "a/link", "a/d/c/link"):
        os.symlink(outside, os.path.join(target, link))
    convert(source, target, "-q", "--overwrite")
    assert everything(outside) == ["precious"] and not os.path.lexists(os.path.join(target, "link"))
    os.symlink(outside, os.path.join(target, ".zarrbits-unfinished"))
    for how in (["--overwrite"], ["--resume"]):
        assert ".zarrbits-unfinished" in refused("convert", source, target, *how)
    os.remove(os.path.join(target, ".zarrbits-unfinished"))
    os.remove(os.path.join(target, "zarr.json"))
    write(os.path.join(folder, "node"), node)
    os.symlink(os.path.join(folder, "node"), os.path.join(target, "zarr.json"))
    assert "not a Zarr store" in refused("convert", source, target, "--overwrite")


def test_a_zip_is_written_to_a_new_file_alone(folder):
    source, target = small(os.path.join(folder, "in.h5")), os.path.join(folder, "out.zip")
    victim, beside = os.path.join(folder, "victim"), target + ".zarrbits-unfinished"
    for make in (os.symlink, os.link, lambda _, to: os.mkfifo(to), lambda _, to: os.mkdir(to)):
        write(victim, "precious")
        make(victim, beside)
        assert "in the way" in refused("convert", source, target)
        assert open(victim).read() == "precious" and not os.path.exists(target)
        os.rmdir(beside) if os.path.isdir(beside) else os.remove(beside)
    os.symlink(os.path.join(folder, "new"), beside)
    assert "in the way" in refused("convert", source, target)
    assert not os.path.exists(os.path.join(folder, "new"))


def test_a_report_is_never_written_over_source_or_store(folder):
    source, target, zipped = (
        small(os.path.join(folder, "in.h5")),
        os.path.join(folder, "out.zarr"),
        os.path.join(folder, "out.zip"),
    )
    before = open(source, "rb").read()
    os.link(source, os.path.join(folder, "hard"))
    os.symlink(source, os.path.join(folder, "soft"))
    for report in (source, os.path.join(folder, "hard"), os.path.join(folder, "soft"), os.path.join(folder, ".", "in.h5")):
        assert "is the source" in refused("convert", source, target, "--report", report)
        assert open(source, "rb").read() == before
    assert "is the source" in refused("convert", source + ":/a", target, "--report", source)
    for out, report in (
        (zipped, zipped),
        (zipped, zipped + ".zarrbits-unfinished"),
        (target, target),
        (target, target + "/zarr.json"),
        (target, target + "/a/r"),
    ):
        assert " the store" in refused("convert", source, out, "--report", report)
    convert(source, target, "-q")
    os.symlink(target, os.path.join(folder, "link"))
    assert "lies in the store" in refused(
        "convert", source, target, "--overwrite", "--report", os.path.join(folder, "link", "report")
    )
    # written before the store counts as whole: where it cannot be, there is none
    for out in (zipped, os.path.join(folder, "other.zarr")):
        assert "cannot write the report" in refused("convert", source, out, "--report", "/dev/full")
        assert not os.path.exists(os.path.join(out, "zarr.json")) and not os.path.exists(zipped)
    convert(source, os.path.join(folder, "other.zarr"), "-q")  # the chunks are there
    same(target, os.path.join(folder, "other.zarr"))
    os.mkdir(os.path.join(folder, "shares"))
    convert(source, os.path.join(folder, "shares"), "--partition", "0/2", "-q")
    refused("convert", source, os.path.join(folder, "shares"), "--resume", "-q", "--report", "/dev/full")
    assert not os.path.exists(os.path.join(folder, "shares", "zarr.json"))
    convert(source, os.path.join(folder, "shares"), "--resume", "-q")
    same(target, os.path.join(folder, "shares"))


# Two runs at once


def pair(*commands):
    """Starts commands at once; returns the exit status and sentence of each."""
    running = [
        subprocess.Popen([COMMAND, *map(str, c)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for c in commands
    ]
    said = [p.communicate(timeout=600)[1] for p in running]
    return [(p.returncode, s) for p, s in zip(running, said)]


def test_of_two_runs_into_one_target_one_says_no(folder):
    sources = [small(os.path.join(folder, f"in{i}.h5"), value=i, chunks=100) for i in (0, 1)]
    stores = {}
    for i in (0, 1):
        for kind in ("zarr", "zip"):
            stores[i, kind] = os.path.join(folder, f"whole{i}.{kind}")
            convert(sources[i], stores[i, kind], "-q")

    def matches(target, kind):
        """The sources of which this is the store."""
        found = []
        for i in (0, 1):
            try:
                if kind == "zip":
                    assert open(target, "rb").read() == open(stores[i, kind], "rb").read()
                else:
                    same(stores[i, kind], target)
                found.append(i)
            except AssertionError:
                pass
        return found

    both = 0
    for kind in ("zarr", "zip"):
        target = os.path.join(folder, "out." + kind)
        for n in range(PAIRS):
            for how in ([], ["--overwrite"], ["--overwrite"], ["--resume"]):
                if kind == "zip" and how == ["--resume"]:
                    continue
                first = how == ["--overwrite"] and n % 2 == 1
                if first:  # there is a store already
                    convert(sources[0], target, "-q")
                results = pair(*(("convert", s, target, "-q", *how) for s in sources))
                good = [i for i in (0, 1) if results[i][0] == 0]
                assert good, results
                for status, said in results:
                    assert (
                        status == 0 and said == "" or status == 1 and said.count("\n") == 1 and said.startswith("zarrbits: ")
                    ), results
                both += len(good) == 2
                assert len(good) == 1 or how == ["--overwrite"], results  # one after the other is no harm then
                assert matches(target, kind) and matches(target, kind)[0] in good, (kind, how, results)
                assert not [x for x in os.listdir(folder) if "unfinished" in x]
                shutil.rmtree(target) if kind == "zarr" else os.remove(target)
    print(f"of {PAIRS * 7} pairs, both succeeded one after the other in {both}")


PAUSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int unlinkat(int folder, const char* name, int flags) {  /* waits for a file once the lock is removed */
  int (*real)(int, const char*, int) = dlsym(RTLD_NEXT, "unlinkat");
  int result = real(folder, name, flags);
  while (strcmp(name, "lock") == 0 && access(getenv("GO_ON"), F_OK) != 0) usleep(1000);
  return result;
}
"""


@pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc")), reason="no compiler, or no LD_PRELOAD")
def test_a_run_that_ends_leaves_the_next_one_alone(folder):
    """The next one comes between the end of the first one's lock and that of its folder."""
    if b"Sanitizer" in open(COMMAND, "rb").read():
        pytest.skip("sanitizers want to be loaded first")
    first, second, target, library, go_on = (
        os.path.join(folder, n) for n in ("in1.h5", "in2.h5", "out.zarr", "pauses.so", "go_on")
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], input=PAUSES, text=True, check=True)
    small(first, value=1)
    convert(small(second, value=2, chunks=100), os.path.join(folder, "whole.zarr"), "-q")
    mark = os.path.join(target, ".zarrbits-unfinished")
    ending = subprocess.Popen([COMMAND, "convert", "-q", first, target], env=os.environ | {"LD_PRELOAD": library, "GO_ON": go_on})
    while not os.path.exists(os.path.join(target, "zarr.json")) or os.path.exists(os.path.join(mark, "lock")):
        assert ending.poll() is None
    following = subprocess.Popen(
        [COMMAND, "convert", "-q", "--overwrite", second, target], start_new_session=True, env=os.environ | slow_writes()
    )
    while not os.path.exists(os.path.join(mark, "lock")):
        assert following.poll() is None
    os.killpg(following.pid, signal.SIGSTOP)
    open(go_on, "w").close()
    assert ending.wait(timeout=600) == 0
    os.killpg(following.pid, signal.SIGCONT)
    assert following.wait(timeout=600) == 0
    same(os.path.join(folder, "whole.zarr"), target)


def test_shares_at_once_make_one_store(folder):
    source, whole = small(os.path.join(folder, "in.h5"), chunks=2000), os.path.join(folder, "whole.zarr")
    convert(source, whole, "-q")
    target = os.path.join(folder, "out.zarr")
    for _ in range(2):
        results = pair(
            *(("convert", source, target, "-q", "--partition", f"{i}/4") for i in (0, 1, 2, 3, 0)),
        )
        assert all(status == 0 for status, _ in results), results
        others = pair(
            ("convert", source, target, "-q", "--partition", "1/4"), ("convert", source, target, "-q", "--partition", "2/4")
        )
        assert all(status == 0 for status, _ in others), others
        run("finalize", source, target, "-q", status=0)
        same(whole, target)
        shutil.rmtree(target)


def test_a_lock_of_a_killed_run_holds_nobody_up(folder):
    source, target = small(os.path.join(folder, "in.h5"), chunks=6000), os.path.join(folder, "out.zarr")
    for name, how in (("out.zarr", "--overwrite"), ("out.zarr", "--resume"), ("out.zip", "--overwrite")):
        target = os.path.join(folder, name)
        parent = subprocess.Popen(
            [COMMAND, "convert", source, target, "-q"], start_new_session=True, env=os.environ | slow_writes()
        )
        sign = os.path.join(target, ".zarrbits-unfinished", "plan") if name == "out.zarr" else target + ".zarrbits-unfinished"
        while not (os.path.exists(sign) and os.path.getsize(sign)):  # there is something in it: it is locked by now
            assert parent.poll() is None
        os.killpg(parent.pid, signal.SIGSTOP)  # or it is done before the other begins
        running = run("convert", source, target, "-q", how)
        assert running.returncode == 1 and "another conversion" in running.stderr, running.stderr
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        for _ in range(100):  # the kernel lets go
            again = run("convert", source, target, "-q", how)
            if "another conversion" not in again.stderr:
                break
            time.sleep(0.01)
        assert again.returncode == 0, again.stderr
        run("verify", source, target, status=0)
        shutil.rmtree(target) if name == "out.zarr" else os.remove(target)


def test_names_of_hdf5_files_are_no_stores(folder):
    source, store = small(os.path.join(folder, "in.h5")), os.path.join(folder, "in.zarr")
    convert(source, store, "-q")
    for name in ("copy.nc", "copy.h5"):  # as repack does
        target = os.path.join(folder, name)
        run("convert", source, target, "-q", status=0)
        assert h5py.is_hdf5(target)
        run("verify", source, target, status=0)
    assert "a file is written to a local disk" in refused("convert", source, "s3://bucket/out.h5ad", status=2)
    target = os.path.join(folder, "none.h5")
    sentence = refused("convert", source, target, "--shard", "1M", "--threads", "2", status=2)
    assert f'"{target}" is an HDF5 file, which "zarrbits repack" writes, and that does not have --shard;' in sentence
    assert 'has a dimension "x"' in refused("convert", source, source, target, "--concat", "x")
    assert not os.path.exists(target)
    for name in ("out.h5", "out.nc"):
        target = os.path.join(folder, name)
        run("convert", store, target, "-q", status=0)
        assert h5py.is_hdf5(target)
        run("verify", store, target, status=0)
        sentence = refused("convert", store, os.path.join(folder, "new.h5"), "--resume", "--bits", "auto", status=2)
        assert '"zarrbits export" writes, and that does not have --bits, --resume;' in sentence


def test_reports_on_hdf5_files(folder):
    source, store, report = small(os.path.join(folder, "in.h5")), os.path.join(folder, "in.zarr"), os.path.join(folder, "r.json")
    convert(source, store, "-q")
    for start in (source, store):
        target = os.path.join(folder, "out.h5")
        printed = run("convert", start, target, "-q", "--overwrite", "--json", "--report", report, status=0).stdout
        with open(report) as f:
            assert json.load(f) == json.loads(printed)
        assert "is the file that is written" in refused("convert", start, target, "--overwrite", "--report", target)
        assert "use a name such as report.json" in refused(
            "convert", start, target, "--overwrite", "--report", "r.html", status=2
        )
