# SPDX-License-Identifier: BSL-1.0
"""The recipe of docs/guide/python.md: Dask makes the shares of a store."""

import os
import pathlib
import re

import h5py
import numpy as np
import pytest

import zarrbits

try:
    import dask
except ImportError:
    dask = None
pytestmark = pytest.mark.skipif(dask is None, reason="dask is not installed: the recipe with dask.delayed did not run")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("scheduler", ["threads", "processes", "distributed"])
def test_shares_with_dask(scheduler, folder, monkeypatch):
    monkeypatch.chdir(folder)
    with h5py.File("in.h5", "w") as f:
        f.create_dataset("x", data=np.random.default_rng(1).integers(0, 255, 8 << 20, dtype="u1"), chunks=(1 << 16,))
    (recipe,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/python.md").read_text(encoding="utf-8"), re.S)
        if "dask.delayed" in block
    ]
    if scheduler == "distributed":
        distributed = pytest.importorskip(
            "distributed", reason="distributed is not installed: the recipe did not run on a LocalCluster"
        )
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster),
        ):
            exec(recipe, {})
    else:
        with dask.config.set(scheduler=scheduler):
            exec(recipe, {})
    assert os.path.exists("out.zarr/zarr.json") and zarrbits.verify("in.h5", "out.zarr").complete
