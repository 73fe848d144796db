# SPDX-License-Identifier: BSL-1.0
"""`zarrbits convert` as a command: exit statuses, sentences, reports."""
import json
import os
import signal
import subprocess
import time

import h5py
import numpy as np

from store import COMMAND, Store, convert, run_tests, strict


def example(folder, lossy=False):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f["x"] = np.arange(10)
        if lossy:
            f["rounded"] = np.array([1], np.longdouble) / 3
    return source, os.path.join(folder, "out.zarr")


def sentence(run):
    lines = run.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarrbits: "), run.stderr
    return lines[0]


def test_success_is_0_and_loss_is_3_unless_allowed(folder):
    source, target = example(folder)
    assert convert(source, target, "--quiet").stderr == ""
    source, target = example(folder, lossy=True)
    run = convert(source, target, "--overwrite", "--quiet", status=3)
    assert "/rounded" in sentence(run) and "lossy" in sentence(run)
    convert(source, target, "--overwrite", "--quiet", "--allow-lossy", status=0)


def test_usage_is_2(folder):
    source, target = example(folder)
    for args in ([], [source], [source, target, "--codec", "zip"], [source, target, "--bits", "12"], [source, target, "--nonsense"],
                 [source, target, "--codec", "packbits", "--bits", "0"], [source, target, "--codec", "packbits", "--bits", "x"]):
        sentence(convert(*args, status=2))
    assert not os.path.exists(target)
    assert "--report" in convert("--help").stdout


def test_failures_are_1_and_leave_nothing(folder):
    source, target = example(folder)
    sentence(convert(os.path.join(folder, "no.h5"), target, status=1))
    sentence(convert(folder, target, status=1))
    sentence(convert(__file__, target, status=1))
    sentence(convert(source, os.path.join(folder, "no", "such", "out.zarr"), status=1))
    assert not os.path.exists(target)
    convert(source, target, "--quiet")
    before = Store(target).chunk("x/c/0")
    assert "--overwrite" in sentence(convert(source, target, status=1))
    assert Store(target).chunk("x/c/0") == before


def test_json_is_the_report(folder):
    source, target = example(folder)
    report = os.path.join(folder, "r.json")
    run = convert(source, target, "--json", "--quiet", "--report", report)
    with open(report, encoding="utf-8") as f:
        assert strict(run.stdout) == strict(f.read())
    assert {o["path"] for o in strict(run.stdout)["objects"]} == {"/", "/x"}


def test_a_table_is_printed_unless_quiet(folder):
    source, target = example(folder)
    run = convert(source, target)
    assert "raw" in run.stderr and "\r" not in run.stderr     # no progress bar but on a terminal


def test_a_value_that_does_not_fit_is_named(folder):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f["camera"] = np.array([1, 2, 5000], "u2")
    text = sentence(convert(source, os.path.join(folder, "out.zarr"), "--codec", "packbits", "--bits", "12", status=1))
    assert "/camera" in text and "0x1388" in text and "index [2]" in text, text


def test_a_killed_run_leaves_no_store(folder):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=np.random.default_rng(0).integers(0, 99, (2000, 2000)), chunks=(20, 20), compression="gzip", shuffle=True)
    run = subprocess.Popen([COMMAND, "convert", source, target, "--quiet"])
    while not os.path.exists(os.path.join(target, "x", "c")) and run.poll() is None:
        time.sleep(0.001)
    run.send_signal(signal.SIGKILL)
    run.wait()
    time.sleep(0.3)
    assert not os.path.exists(os.path.join(target, "zarr.json")) and not os.path.exists(os.path.join(target, "x", "zarr.json"))
    convert(source, target, "--overwrite", "--quiet")
    assert Store(target).has("x")


if __name__ == "__main__":
    run_tests(globals())
