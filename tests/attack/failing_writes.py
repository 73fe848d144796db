# SPDX-License-Identifier: BSL-1.0
"""Every call that writes fails once (ENOSPC, EIO, EACCES):
the run ends with a failure and no store that looks whole, or with the right one.

ZARRBITS_CASES: how many for each target and way, 3 by default; 0: all calls with all three errors. ZARRBITS_SEED: others."""

import errno
import os
import random
import shutil
import subprocess

import h5py
import numpy as np

from harness import run, same

HERE = os.path.dirname(os.path.abspath(__file__))

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
WAYS = {
    "directory": ("out.zarr", []),
    "synced": ("out.zarr", ["--fsync"]),
    "resumed": ("out.zarr", ["--resume"]),
    "shards": ("out.zarr", ["--shard", "4k"]),
    "replaced": ("out.zarr", ["--overwrite"]),
    "zip": ("out.zip", []),
    "zip, synced": ("out.zip", ["--fsync"]),
    "zip, replaced": ("out.zip", ["--overwrite"]),
}


def example(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("copied", data=np.random.default_rng(1).integers(0, 99, 60000).astype("i2"), chunks=(30000,))
        f.create_dataset("g/deflate", data=np.arange(400), chunks=(100,), compression="gzip")
        f["text"] = np.array(["a", "b"], dtype=h5py.string_dtype())
        rows = f.create_dataset("rows", (2,), h5py.vlen_dtype("i4"))
        rows[1] = [1, 2]


def test_every_call_that_writes_fails_once(folder):
    number, seed = int(os.environ.get("ZARRBITS_CASES", "3")), int(os.environ.get("ZARRBITS_SEED", "18"))
    dice, results = random.Random(seed), {"same store": 0, "no store": 0}
    shim, source, watched = (os.path.join(folder, n) for n in ("fail.so", "in.h5", "watched"))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, os.path.join(HERE, "fail_calls.c"), "-ldl"], check=True)
    example(source)

    def convert(target, options, **fail):
        environment = (
            {**os.environ, "LD_PRELOAD": shim, "FAIL_UNDER": watched, **{k: str(v) for k, v in fail.items()}} if fail else None
        )
        return run(
            "convert",
            source,
            target,
            "-q",
            "--threads",
            "2",
            "--report",
            os.path.join(watched, "report.json"),
            *options,
            status=None,
            timeout=600,
            env=environment,
        )

    for way, (name, options) in WAYS.items():
        good, target, log = os.path.join(folder, "good-" + name), os.path.join(watched, name), os.path.join(folder, "log")
        plain = [o for o in options if o not in ("--overwrite", "--resume")]

        def prepare():
            shutil.rmtree(watched, ignore_errors=True)
            os.mkdir(watched)
            if "--overwrite" in options:
                shutil.copytree(good, target) if os.path.isdir(good) else shutil.copy(good, target)
            if "--resume" in options:
                run("convert", source, target, "-q", "--partition", "0/2")

        def is_good():
            if os.path.isfile(good):
                return os.path.exists(target) and open(good, "rb").read() == open(target, "rb").read()
            try:
                same(good, target)
                return True
            except AssertionError:
                return False

        shutil.rmtree(watched, ignore_errors=True)
        os.mkdir(watched)
        shutil.rmtree(good) if os.path.isdir(good) else os.path.exists(good) and os.remove(good)
        assert convert(good, plain).returncode == 0
        prepare()
        open(log, "w").close()
        counted = convert(target, options, FAIL_LOG=log, FAIL_NTH=0)
        assert counted.returncode == 0 and is_good(), counted.stderr
        calls = os.path.getsize(log)
        assert calls > 10, calls
        cases = [(n, e) for n in range(1, calls + 1) for e in ERRORS]
        for n, error in dice.sample(cases, number) if 0 < number < len(cases) else cases:
            prepare()
            done = convert(target, options, FAIL_NTH=n, FAIL_ERRNO=error)
            case = f"{way}: call {n} of {calls}, {errno.errorcode[error]}: exit {done.returncode}: {done.stderr}"
            old = "replaced" in way and is_good()  # nothing had been touched yet
            if done.returncode == 0:
                assert is_good(), case
                results["same store"] += 1
            else:
                assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("zarrbits: "), case
                marked = os.path.exists(os.path.join(target, ".zarrbits-unfinished"))
                assert (
                    old or not os.path.exists(target)
                    if name.endswith(".zip")
                    else old or marked or not os.path.exists(os.path.join(target, "zarr.json"))
                ), case
                assert not marked or "--resume" not in options or not os.path.exists(os.path.join(target, "zarr.json")), case
                results["no store"] += 1
            again = convert(
                target,
                plain + (["--overwrite"] if os.path.exists(target) and (name.endswith(".zip") or os.listdir(target)) else []),
            )
            assert again.returncode == 0 and is_good(), f"{case}; then: {again.stderr}"
        print(f"{way}: {calls} calls", flush=True)
    print(f"seed {seed}: {sum(results.values())} runs: {results}")
