# SPDX-License-Identifier: BSL-1.0
"""The recipes of docs/guide for Dask: its workers make the partitions of a store."""

import os
import pathlib
import re
import threading
import time

import h5py
import numpy as np
import pytest

import zarrbits
from kills import slow_writes

dask = pytest.importorskip("dask", reason="dask is not installed: its workers made no store")
distributed = pytest.importorskip("distributed", reason="distributed is not installed: its workers made no store")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def recipe(page, words):
    """The block of Python with these words."""
    text = (ROOT / "docs/guide" / page).read_text(encoding="utf-8")
    (found,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if words in block]
    return found


def made(path, megabytes):
    with h5py.File(path, "w") as f:
        values = np.random.default_rng(1).integers(0, 255, megabytes << 20, dtype="u1")
        f.create_dataset("x", data=values, chunks=(1 << 16,))


@pytest.fixture
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("scheduler", ["threads", "processes", "distributed"])
def test_partitions_with_delayed(scheduler, folder, monkeypatch, request):
    monkeypatch.chdir(folder)
    made("in.h5", 8)
    if scheduler == "distributed":
        request.getfixturevalue("cluster")
    with dask.config.set({} if scheduler == "distributed" else {"scheduler": scheduler}):
        exec(recipe("python.md", "dask.delayed"), {})
    assert os.path.exists("out.zarr/zarr.json") and zarrbits.verify("in.h5", "out.zarr").complete


def test_the_recipe_with_a_client(folder, monkeypatch):
    monkeypatch.chdir(folder)
    made("in.h5", 8)
    exec(
        recipe("cluster.md", "LocalCluster").replace("LocalCluster(", "LocalCluster(dashboard_address=None, "),
        {"__name__": "__main__"},
    )
    assert zarrbits.verify("in.h5", "out.zarr").complete


def test_a_worker_that_is_killed_costs_its_partition_alone(folder, monkeypatch, request):
    monkeypatch.chdir(folder)
    made("in.h5", 32)
    for name, value in slow_writes().items():
        monkeypatch.setenv(name, value)
    client = request.getfixturevalue("cluster")  # its workers have these variables
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    pids, killed = list(client.run(os.getpid).values()), []

    def kill():
        until = time.monotonic() + 60
        while not os.path.exists("out.zarr") and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.5)  # its partition has begun
        os.kill(pids[0], 9)
        killed.append(pids[0])

    thread = threading.Thread(target=kill)
    thread.start()
    states = []
    report = zarrbits.convert("in.h5", "out.zarr", client=client, partitions=6, progress=states.append)
    thread.join()
    assert killed and states[-1].done == states[-1].total and not report.lost
    assert zarrbits.verify("in.h5", "out.zarr").complete


def test_an_error_arrives_with_its_code(folder, monkeypatch, cluster):
    monkeypatch.chdir(folder)
    with pytest.raises(FileNotFoundError) as caught:
        zarrbits.convert("none.h5", "out.zarr", client=cluster)
    assert (caught.value.code, caught.value.file) == ("not_found", os.path.join(folder, "none.h5"))
    with pytest.raises(zarrbits.Error) as caught:  # also of a call that is submitted by hand
        cluster.submit(zarrbits.plan, os.path.join(folder, "none.h5")).result()
    assert caught.value.code == "not_found"
