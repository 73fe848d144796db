# SPDX-License-Identifier: BSL-1.0
"""Every call that writes in an append fails once: the store is then as before, or the sentence says to run it again,
and that makes the right one. Nothing is left beside references.

ZARRBITS_CASES: how many for each store, 12 by default; 0: all calls with all three errors. ZARRBITS_SEED: others."""

import errno
import os
import random
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "convert"))
from same_store import COMMAND  # noqa: E402

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def example(path, i):
    with h5py.File(path, "w") as f:
        for name in ("x", "g/y"):
            f.create_dataset(name, data=np.sort(np.random.default_rng(i).random(3000)) + i, chunks=(2000,), maxshape=(None,))


def contents(folder):
    return {
        os.path.relpath(os.path.join(at, n), folder): open(os.path.join(at, n), "rb").read()
        for at, _, names in os.walk(folder)
        for n in names
    }


@pytest.mark.parametrize("out", ["out.zarr", "out.json", "out.parquet"])
@pytest.mark.parametrize("sync", [[], ["--fsync"]], ids=["", "synced"])
def test_every_call_that_writes_fails_once(out, sync, folder):
    number, dice = int(os.environ.get("ZARRBITS_CASES", "12")), random.Random(int(os.environ.get("ZARRBITS_SEED", "18")))
    shim, watched, log = (os.path.join(folder, n) for n in ("fail.so", "watched", "log"))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, os.path.join(HERE, "fail_calls.c"), "-ldl"], check=True)
    files = [os.path.join(folder, f"{i}.h5") for i in range(2)]
    for i, file in enumerate(files):
        example(file, i)
    target = os.path.join(watched, out)

    def convert(*arguments, **fail):
        environment = (
            {**os.environ, "LD_PRELOAD": shim, "FAIL_UNDER": watched, **{k: str(v) for k, v in fail.items()}} if fail else None
        )
        return subprocess.run(
            [COMMAND, "convert", *arguments, target, "-q", "--threads", "2", *sync],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def prepare():
        shutil.rmtree(watched, ignore_errors=True)
        os.mkdir(watched)
        assert convert("--concat", "/**:0", files[0], *([] if out == "out.zarr" else ["--virtual"])).returncode == 0
        return contents(watched)

    def append(**fail):
        return convert("--append", "/**:0", files[1], **fail)

    prepare()
    open(log, "w").close()
    assert append(FAIL_LOG=log, FAIL_NTH=0).returncode == 0
    good, calls, results = contents(watched), os.path.getsize(log), {}
    assert calls > 10, calls
    cases = [(n, e) for n in range(1, calls + 1) for e in ERRORS]
    for n, error in dice.sample(cases, number) if 0 < number < len(cases) else cases:
        old = prepare()
        run = append(FAIL_NTH=n, FAIL_ERRNO=error)
        now = contents(watched)
        case = f"call {n} of {calls}, {errno.errorcode[error]}: exit {run.returncode}: {run.stderr}"
        outcome = "new" if now == good else "old" if now == old else "between"
        if run.returncode == 0:
            assert outcome == "new", case
        else:
            assert run.returncode == 1 and run.stderr.count("\n") == 1 and run.stderr.startswith("zarrbits: "), case
            metadata = {k for k in now if k.endswith("zarr.json") and ".zarrbits" not in k and now[k] != old[k]}
            assert outcome != "between" or (out == "out.zarr" and (not metadata or "run it again" in run.stderr)), (
                f"{case}{sorted(set(now) ^ set(old))}"
            )
        again = append()
        assert again.returncode == 0 and contents(watched) == good, f"{case}; then: {again.stderr}"
        results[outcome, run.returncode] = results.get((outcome, run.returncode), 0) + 1
    print(f"{calls} calls: {results}")
