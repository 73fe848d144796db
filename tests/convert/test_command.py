# SPDX-License-Identifier: BSL-1.0
"""`zarrbits convert` as a command: exit statuses, sentences, reports."""

import json
import os
import resource
import signal
import subprocess
import time

import h5py
import numpy as np

from harness import COMMAND, convert, run
from kills import slow_writes
from store import Store, strict


def example(folder, lossy=False):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f["x"] = np.arange(10)
        if lossy:
            f["rounded"] = np.array([1], np.longdouble) / 3
    return source, os.path.join(folder, "out.zarr")


def sentence(done):
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarrbits: "), done.stderr
    return lines[0]


def test_success_is_0_and_loss_is_3_unless_allowed(folder):
    source, target = example(folder)
    assert convert(source, target, "--quiet").stderr == ""
    source, target = example(folder, lossy=True)
    done = convert(source, target, "--overwrite", "--quiet", status=3)
    assert "/rounded" in sentence(done) and "lossy" in sentence(done)
    convert(source, target, "--overwrite", "--quiet", "--allow-lossy", status=0)


def test_usage_is_2(folder):
    source, target = example(folder)
    for args in (
        [],
        [source],
        [source, target, "--codec", "zip"],
        [source, target, "--bits", "12"],
        [source, target, "--nonsense"],
        [source, target, "--endpoint", "http://127.0.0.1:1"],
        [source, target, "--codec", "packbits", "--bits", "0"],
        [source, target, "--codec", "packbits", "--bits", "x"],
    ):
        sentence(convert(*args, status=2))
    assert not os.path.exists(target)
    assert "--report" in convert("--help").stdout


def test_failures_are_1_and_leave_nothing(folder):
    source, target = example(folder)
    sentence(convert(os.path.join(folder, "no.h5"), target, status=1))
    sentence(convert(folder, target, status=1))
    sentence(convert(__file__, target, status=1))
    nobody = os.environ | {k: "" for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE")} | {"HOME": folder}
    assert "s3://bucket/in.h5" in sentence(convert("s3://bucket/in.h5", target, status=1, env=nobody))
    sentence(convert(source, os.path.join(folder, "no", "such", "out.zarr"), status=1))
    assert not os.path.exists(target)
    convert(source, target, "--quiet")
    before = Store(target).chunk("x/c/0")
    assert "--overwrite" in sentence(convert(source, target, status=1))
    assert Store(target).chunk("x/c/0") == before


def selected(source, target, *args, verified=0):
    """Converts and verifies. Returns the datasets in the store, and the report's paths of objects that were not selected."""
    # scales make it netCDF, which has copies of what links lead to
    done = convert(source, target, "--overwrite", "--quiet", "--json", "--convention", "none", *args)
    assert done.stderr == ""
    verify = run("verify", source, target, *args, status=None)
    assert verify.returncode == verified, verify.stdout + verify.stderr
    objects = strict(done.stdout)["objects"]
    assert all(o["outcome"] == "skipped" for o in objects if o.get("selected") is False)
    nodes = {"/" + os.path.relpath(where, target) for where, _, files in os.walk(target) if "zarr.json" in files}
    return (
        {n for n in nodes if strict(open(target + n + "/zarr.json").read())["node_type"] == "array"},
        {o["path"] for o in objects if o.get("selected") is False},
    )


def test_selection_by_patterns(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        for name in ("a/run0/t", "a/run0/raw", "a/run1/t", "a/run1/raw", "b/t", "b/raw", "t"):
            f[name] = np.arange(4)
        f["b/again"] = f["a/run1"]
        f["refs"] = np.array([f["b/raw"].ref, f["t"].ref], h5py.ref_dtype)
        f["time"] = np.arange(4)
        f["time"].make_scale()
        f["t"].dims[0].attach_scale(f["time"])
    assert selected(source, target, "--include", "t") == (
        {"/a/run0/t", "/a/run1/t", "/b/t", "/t"},
        {"/a/run0/raw", "/a/run1/raw", "/b/raw", "/b/again", "/refs", "/time"},
    )
    assert Store(target).meta("t")["dimension_names"] == ["time"]  # its scale is left out, the name stays
    assert selected(source, target, "--include", "/a", "--exclude", "**/raw") == (
        {"/a/run0/t", "/a/run1/t"},
        {"/a/run0/raw", "/a/run1/raw", "/b", "/refs", "/t", "/time"},
    )
    assert selected(source, target, "--include=/refs") == ({"/refs"}, {"/a", "/b", "/t", "/time"})
    assert list(Store(target).read("refs")) == ["/b/raw", "/t"]
    # a further hard link brings its object, under the path that the report knows it by
    assert selected(source, target, "--include", "/b/again") == (
        {"/a/run1/t", "/a/run1/raw"},
        {"/a/run0", "/b/t", "/b/raw", "/refs", "/t", "/time"},
    )
    # /a/run1 is left out as one of its paths, and might have been wanted as the other
    assert selected(source, target, "--exclude", "/a", "--exclude", "raw", verified=3) == (
        {"/b/t", "/t", "/refs", "/time"},
        {"/a", "/b/raw"},
    )


def test_one_object_as_source(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f["a/b"] = np.arange(4)
        f["a/c/d"] = np.arange(5)
        f["again"] = f["a/b"]
    assert selected(source + ":/a/b", target) == ({"/."}, {"/"})
    assert Store(target).meta("")["shape"] == [4] and Store(target).chunk("c/0")
    assert selected(source + ":/a", target) == ({"/b", "/c/d"}, {"/"})
    assert selected(source + ":/a", target, "--exclude", "/a/c") == ({"/b"}, {"/", "/a/c"})
    with h5py.File(source + ":", "w") as f:
        f["x"] = 1
    os.mkdir(source + ":x")
    os.rename(source + ":", source + ":x/b")  # a file with that very name wins
    assert selected(source + ":x/b", target) == ({"/x"}, set())


def test_a_selection_of_nothing_is_an_error_and_leaves_what_was_there(folder):
    source, target = example(folder)
    convert(source, target, "--quiet")
    assert "/nothing" in sentence(convert(source, target, "--overwrite", "--include", "/nothing", status=1))
    assert "**/y" in sentence(convert(source, target, "--overwrite", "--exclude", "**/y", status=1))
    assert "/y" in sentence(convert(source + ":/y", target, "--overwrite", status=1))
    assert "pattern" in sentence(convert(source, target, "--overwrite", "--include", "[x", status=2))
    assert Store(target).has("x")


def test_json_is_the_report(folder):
    source, target = example(folder)
    report = os.path.join(folder, "r.json")
    done = convert(source, target, "--json", "--quiet", "--report", report)
    with open(report, encoding="utf-8") as f:
        assert strict(done.stdout) == strict(f.read())
    assert {o["path"] for o in strict(done.stdout)["objects"]} == {"/", "/x"}


def test_a_table_is_printed_unless_quiet(folder):
    source, target = example(folder)
    done = convert(source, target)
    assert "raw" in done.stderr and "\r" not in done.stderr  # no progress bar but on a terminal


def test_a_value_that_does_not_fit_is_named(folder):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f["camera"] = np.array([1, 2, 5000], "u2")
    text = sentence(convert(source, os.path.join(folder, "out.zarr"), "--codec", "packbits", "--bits", "camera=12", status=1))
    assert "/camera" in text and "0x1388" in text and "index [2]" in text, text


def test_bits_of_some_datasets(folder):
    """--bits PATTERN=N: the last pattern that matches counts, else the number for all; other datasets are not packed."""
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        for name in "a/x", "a/y", "b=c", "rest":
            f[name] = np.arange(100, dtype="u2")

    def kept(*options):
        convert(source, target, "--overwrite", "-q", "--codec", "packbits", *options)
        found = {}
        for name in "a/x", "a/y", "b=c", "rest":
            with open(os.path.join(target, name, "zarr.json"), encoding="utf-8") as f:
                [codec] = json.load(f)["codecs"]
            found[name] = codec["configuration"]["last_bit"] + 1 if codec["name"] == "packbits" else None
        return found

    assert kept("--bits", "/a=12") == {"a/x": 12, "a/y": 12, "b=c": None, "rest": None}
    assert kept("--bits", "10", "--bits", "y=7", "--bits", "b=c=8") == {"a/x": 10, "a/y": 7, "b=c": 8, "rest": 10}
    assert kept("--bits", "y=7", "--bits", "/a=9", "--bits=11") == {"a/x": 9, "a/y": 9, "b=c": 11, "rest": 11}
    assert '--bits "zz" matches no dataset' in sentence(
        convert(source, target, "--overwrite", "--codec", "packbits", "--bits", "zz=12", status=1)
    )
    for bad in ("--bits", "3", "--bits", "4"), ("--bits", "a="), ("--bits", "a=65"), ("--bits", "[=3"):
        convert(source, target, "--codec", "packbits", *bad, status=2)


def test_a_file_on_which_libhdf5_runs_for_ever_is_an_error(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("x", (2,), h5py.vlen_dtype("i4"))[0] = [1, 2]  # zarrbits itself reads strings
    with open(source, "r+b") as f:
        heap = f.read().index(b"GCOL")
        f.seek(heap + 16)
        f.write(bytes(16))  # free space of no length, after which libhdf5 looks at the same place again
    os.environ["ZARRBITS_STALLED_AFTER"] = "1"
    try:
        text = sentence(convert(source, target, "--quiet", status=1))
    finally:
        del os.environ["ZARRBITS_STALLED_AFTER"]
    assert "gave up at object" in text and "/x" in text and "damaged" not in text, text
    assert not os.path.exists(target)


def readers(source, store):
    """All commands that read an HDF5 file."""
    return (
        ["convert", source, os.path.join(os.path.dirname(source), "new.zarr")],
        ["finalize", source, store],
        ["plan", source],
        ["verify", source, store],
        ["inspect", source],
        ["suggest", source],
        ["doctor", source],
    )


def test_what_is_no_regular_file_is_refused_at_once(folder):
    whole, store = example(folder)
    convert(whole, store, "--quiet")
    pipe = os.path.join(folder, "pipe.h5")
    os.mkfifo(pipe)
    for source in (pipe, "/dev/zero", folder):
        for command in readers(source, store):
            if command[0] == "inspect" and source == folder:
                continue
            done = run(*command, status=None, timeout=600)
            text = sentence(done)
            # a folder may be a Zarr store
            said = "not a regular file" in text or (source == folder and "is not a Zarr v3 store" in text)
            assert done.returncode == 1 and said and source in text, (command, text)


def test_a_crash_of_libhdf5_is_a_sentence_of_every_command(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f["d"] = np.arange(4)
    convert(source, store, "--quiet")
    os.remove(source)
    with h5py.File(source, "w") as f:  # sequences of sequences of ...: libhdf5 calls itself until its stack is full
        deep = h5py.h5t.NATIVE_INT8
        for _ in range(3500):
            deep = h5py.h5t.vlen_create(deep)
        h5py.h5d.create(f.id, b"d", deep, h5py.h5s.create_simple((4,)))

    def small():
        return resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))

    crash = os.environ | {"ASAN_OPTIONS": "handle_segv=0"}  # else the sanitizer tells it, on many lines
    done = run("verify", source, store, status=None, env=crash, preexec_fn=small)
    text = sentence(done)
    assert done.returncode == 1 and done.stdout == "" and "crashed" in text and 'object "/' in text, text


def test_what_does_not_go_on_without_work_is_given_up(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset(
            "x", data=np.random.default_rng(0).integers(0, 99, (2000, 2000)), chunks=(20, 20), compression="gzip", shuffle=True
        )
    process = subprocess.Popen(
        [COMMAND, "convert", source, store, "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ZARRBITS_SILENT_AFTER": "1"} | slow_writes(),
    )
    while not os.path.exists(os.path.join(store, "x", "c")) and process.poll() is None:
        time.sleep(0.001)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
        os.kill(int(f.read().split()[0]), signal.SIGSTOP)  # as one that waits for a dead mount
    text = process.communicate(timeout=600)[1]
    assert process.returncode == 1 and text.count("\n") == 1 and "no progress" in text and "ZARRBITS_SILENT_AFTER" in text, text
    assert not os.path.exists(store)


def test_a_killed_run_leaves_no_store(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset(
            "x", data=np.random.default_rng(0).integers(0, 99, (2000, 2000)), chunks=(20, 20), compression="gzip", shuffle=True
        )
    process = subprocess.Popen([COMMAND, "convert", source, target, "--quiet"], env=os.environ | slow_writes())
    while not os.path.exists(os.path.join(target, "x", "c")) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.3)
    assert not os.path.exists(os.path.join(target, "zarr.json")) and not os.path.exists(os.path.join(target, "x", "zarr.json"))
    convert(source, target, "--overwrite", "--quiet")
    assert Store(target).has("x")


def test_links_into_other_files_are_told_before_the_run(folder):
    source = os.path.join(folder, "master.h5")
    with h5py.File(source, "w") as f:
        f["data_1"], f["data_2"] = h5py.ExternalLink("data_1.h5", "/d"), h5py.ExternalLink("data_2.h5", "/d")
    done = convert(source, os.path.join(folder, "out.zarr"), "--links", "keep")
    assert f'warning: "{source}" has 2 links into other files ("data_1.h5" and others)' in done.stderr, done.stderr
    done = convert(source, os.path.join(folder, "2.zarr"), status=3)
    assert f'warning: "{source}" has 2 links whose targets cannot be copied' in done.stderr and "data_1.h5" in done.stderr, (
        done.stderr
    )


def test_a_plan_tells_what_convert_then_does(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("plain", data=np.arange(1000), chunks=(100,))
        f.create_dataset("deflate", data=np.arange(1000), chunks=(100,), compression="gzip")
        f.create_dataset("shuffled", data=np.arange(1000), chunks=(100,), compression="gzip", shuffle=True)
        f.create_dataset("sparse", (1000,), "i4", chunks=(10,))[500] = 1
        f.create_dataset("g/rows", (3,), h5py.vlen_dtype("i4"))
    done = run("plan", source, "--json")
    planned = {d["path"]: d for d in strict(done.stdout)["datasets"]}
    assert not os.path.exists(target)
    convert(source, target, "--report", os.path.join(folder, "r.json"))
    with open(os.path.join(folder, "r.json")) as f:
        done = {o["path"]: o for o in strict(f.read())["objects"] if o["kind"] == "dataset"}
    assert planned.keys() == done.keys()
    for path, d in planned.items():
        assert d["outcome"] == done[path]["outcome"], path
        if "codecs" in d:
            with open(target + path + "/zarr.json") as f:
                assert d["codecs"] == json.load(f)["codecs"], path
            files = sum(len(names) for _, _, names in os.walk(target + path))
            assert d["objects"] == files, path
            assert sum(u["count"] for u in d["units"]) == {"/sparse": 100}.get(path, 10), path
    assert planned["/plain"]["store_bytes"] == 8000
    table = run("plan", source, status=None)
    assert table.returncode == 0 and "/shuffled" in table.stdout and "recoded" in table.stdout
