# SPDX-License-Identifier: BSL-1.0
"""zarrbits.convert() and its like: what they give for the command's report, and its sentences as errors."""
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import zarrbits


def made(folder):
    path = os.path.join(folder, "in.h5")
    with h5py.File(path, "w") as f:
        f["camera"] = np.arange(64, dtype="u2").reshape(8, 8)
        f.create_dataset("chunked", data=np.arange(64, dtype="u2"), chunks=(8,))
        f["link"] = h5py.SoftLink("/camera")
    return path


def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except zarrbits.Error as e:
        return e
    raise AssertionError("accepted")


def test_convert_plan_and_verify(folder):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    plan = zarrbits.plan(source)
    assert plan.complete and sorted(d["path"] for d in plan.datasets) == ["/camera", "/chunked"] and "/camera" in plan._repr_html_()
    assert not os.path.exists(store)
    report = zarrbits.convert(source, store, shard=(64,), threads=1, consolidate=True, include=["/camera", "/chunked"])
    assert report.store == store and not report.lost and report.document["exit_status"] == 0 and sum(report.counts.values()) >= 3
    assert {o.path for o in report.objects if o.kind == "dataset"} == {"/camera", "/chunked"}
    checked = zarrbits.verify(source, store)
    assert checked.equal and checked.document["datasets"]["equal"] == 2 and "datasets" in checked._repr_html_()
    (chunk,) = [os.path.join(d, n) for d, _, names in os.walk(os.path.join(store, "camera")) for n in names if n != "zarr.json"][:1]
    with open(chunk, "r+b") as f:
        f.write(b"\xff\xff")
    assert not zarrbits.verify(source, store).equal


def test_inspect_suggest_and_doctor(folder):
    source = made(folder)
    assert {n["path"] for n in zarrbits.inspect(source)["trees"][0]["nodes"]} >= {"/camera", "/chunked"}
    assert {d["path"] for d in zarrbits.suggest(source)["datasets"]} == {"/chunked", "/camera"} or zarrbits.suggest(source)["left_out"]
    assert "plugins" in zarrbits.doctor()


def test_the_commands_sentences_are_errors(folder):
    source = made(folder)
    missing = refused(zarrbits.convert, os.path.join(folder, "none.h5"), os.path.join(folder, "x.zarr"))
    assert "No such file" in str(missing) and missing.status == 1
    assert refused(zarrbits.plan, source, no_such_option=3).status == 2
    # a name that begins like an option is a name
    assert "cannot open" in str(refused(zarrbits.convert, "--version", os.path.join(folder, "y.zarr")))
    assert refused(zarrbits.verify, source, os.path.join(folder, "none.zarr")).status == 1


def test_lost_objects_are_listed(folder):
    source = os.path.join(folder, "lossy.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("whole", data=np.arange(3))
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4,))
        properties.set_filter(40000, h5py.h5z.FLAG_OPTIONAL)
        h5py.h5d.create(f.id, b"unknown", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((4,)), properties).write_direct_chunk((0,), b"1234")
    report = zarrbits.convert(source, os.path.join(folder, "lossy.zarr"))
    assert [(o.path, o.outcome) for o in report.lost] == [("/unknown", "skipped")] and "40000" in report.lost[0].reason
    assert report.document["exit_status"] == 3 and "/unknown" in report._repr_html_() and not zarrbits.plan(source).complete


def test_python_m_zarrbits_is_the_command(folder):
    said = subprocess.run([sys.executable, "-m", "zarrbits", "--version"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stdout == f"zarrbits {zarrbits.__version__}\n", said
    assert subprocess.run([sys.executable, "-m", "zarrbits", "plan", "/none.h5"], capture_output=True, timeout=60).returncode == 1


def test_an_interrupt_ends_the_command_and_leaves_no_store(folder):
    source, store = os.path.join(folder, "large.h5"), os.path.join(folder, "large.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=np.random.default_rng(1).integers(0, 255, 48 << 20, dtype="u1"), chunks=(1 << 16,))
    script = "import sys, zarrbits; zarrbits.convert(sys.argv[1], sys.argv[2], compress='blosc:zstd:9', threads=1)"
    child = subprocess.Popen([sys.executable, "-c", script, source, store], stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60
    while not os.path.exists(store) and child.poll() is None and time.monotonic() < until:
        time.sleep(.01)
    child.send_signal(signal.SIGINT)  # to Python alone
    error = child.communicate(timeout=60)[1]
    assert child.returncode != 0 and b"KeyboardInterrupt" in error, (child.returncode, error)
    assert not os.path.exists(os.path.join(store, "zarr.json"))
