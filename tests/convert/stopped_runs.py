# SPDX-License-Identifier: BSL-1.0
"""A process that is stopped (a closed lid, SIGSTOP) while another one takes its target over."""

import os
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND
from s3_conversion import environment, run


def stopped_and_replaced(server, first, second, copies=False, **variables):
    """The first command is stopped in the middle of its chunks until the second one has ended; returns both."""
    seen = []

    def slow(r, go):
        is_copy = any(n.lower().endswith("-copy-source") for n in r.headers)
        if r.kind in ("put", "part", "block", "copy") and "/c/" in r.key and not done and is_copy == copies:
            seen.append(r.key)
            time.sleep(0.05)
        return go()

    done = []
    server.fault = slow
    process = subprocess.Popen(
        [COMMAND, *first, "--endpoint", server.url],
        env=environment(ZARRBITS_S3_PATIENCE="1", **variables),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    limit = time.monotonic() + 30
    while len(seen) < 5 and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.01)
    assert len(seen) >= 5 and process.poll() is None
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(3)  # longer than the life of a lock, which is 2 s with this patience
    done.append(run(*second, "--endpoint", server.url, ZARRBITS_S3_PATIENCE="1", **variables))
    before = {k: o.body for k, o in server.objects.items()}
    os.killpg(process.pid, signal.SIGCONT)
    said = process.communicate(timeout=60)[1]
    assert {k: o.body for k, o in server.objects.items()} == before
    return process.returncode, said, done[0]


@pytest.fixture
def many_chunks():
    for name, factor in (("one.h5", 1), ("two.h5", 2)):
        with h5py.File(name, "w") as f:
            f.create_dataset("a", data=np.arange(40, dtype="i4") * factor, chunks=(1,))
    for name in ("one", "two"):
        assert run("convert", "-q", f"{name}.h5", f"{name}.zarr").returncode == 0
