# SPDX-License-Identifier: BSL-1.0
"""Every call that writes in an append fails once: the store is then as before, or the sentence says to run it again,
and that makes the right one. Nothing is left beside references.

ZARRBITS_CASES: how many for each store, 12 by default; 0: all calls with all three errors. ZARRBITS_SEED: others."""

import errno
import os
import random
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from harness import contents, run

HERE = os.path.dirname(os.path.abspath(__file__))

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def example(path, i):
    with h5py.File(path, "w") as f:
        for name in ("x", "g/y"):
            f.create_dataset(name, data=np.sort(np.random.default_rng(i).random(3000)) + i, chunks=(2000,), maxshape=(None,))


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
        return run("convert", *arguments, target, "-q", "--threads", "2", *sync, status=None, timeout=600, env=environment)

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
        done = append(FAIL_NTH=n, FAIL_ERRNO=error)
        now = contents(watched)
        case = f"call {n} of {calls}, {errno.errorcode[error]}: exit {done.returncode}: {done.stderr}"
        outcome = "new" if now == good else "old" if now == old else "between"
        if done.returncode == 0:
            assert outcome == "new", case
        else:
            assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("zarrbits: "), case
            metadata = {k for k in now if k.endswith("zarr.json") and ".zarrbits" not in k and now[k] != old[k]}
            assert outcome != "between" or (out == "out.zarr" and (not metadata or "run it again" in done.stderr)), (
                f"{case}{sorted(set(now) ^ set(old))}"
            )
        again = append()
        assert again.returncode == 0 and contents(watched) == good, f"{case}; then: {again.stderr}"
        results[outcome, done.returncode] = results.get((outcome, done.returncode), 0) + 1
    print(f"{calls} calls: {results}")
