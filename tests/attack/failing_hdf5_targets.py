# SPDX-License-Identifier: BSL-1.0
"""Every call that writes fails once (ENOSPC, EIO, EACCES) while an HDF5 file is made by repack, by export, or of several files:
the run ends with a failure, and what had the file's name before has it still, or with the right file. Nothing else is left.

ZARRBITS_CASES: how many for each way, 4 by default; 0: all calls with all three errors. ZARRBITS_SEED: others."""

import errno
import os
import random
import shutil
import subprocess

import h5py
import numpy as np

from harness import run

HERE = os.path.dirname(os.path.abspath(__file__))

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
COLUMNS = "--chunk", "/rows=400x8", "--memory", "16M"  # their values go through a scratch file
WAYS = {
    "repack": ("in.h5", "repack", ["--chunk", "/deflate=50x20"]),
    "repack, synced": ("in.h5", "repack", ["--layout", "cloud", "--fsync"]),
    "repack, replaced": ("in.h5", "repack", ["--layout", "cmip7", "--overwrite"]),
    "repack in place": (None, "repack", ["--layout", "cloud", "--in-place"]),
    "repack in place, synced": (None, "repack", ["--chunk", "/deflate=50x20", "--in-place", "--fsync"]),
    "repack with a scratch file": ("in.h5", "repack", COLUMNS),
    "joined": ("[io][nl]*.h5", "convert", ["--concat-new", "run"]),
    "joined, synced, replaced": ("[io][nl]*.h5", "convert", ["--concat-new", "run", "--fsync", "--overwrite"]),
    "export": ("in.zarr", "export", []),
    "export, synced": ("in.zarr", "export", ["--fsync"]),
    "export, replaced": ("in.zarr", "export", ["--overwrite"]),
}


def example(path, seed=1):
    dice = np.random.default_rng(seed)
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=dice.integers(0, 99, (400, 60)), chunks=(20, 60), compression="gzip")
        words = [f"word {i}" for i in range(500)]
        f.create_dataset("words", data=words, dtype=h5py.string_dtype(), chunks=(50,), compression="gzip")
        f["text"] = np.array(["a", "b"], dtype=h5py.string_dtype())
        rows = f.create_dataset("g/ragged", (2,), h5py.vlen_dtype("i4"))
        rows[1] = [1, 2]
        f["g"].attrs["title"] = "rows"
        f.create_dataset("rows", data=dice.random((400, 16000), "f4"), chunks=(1, 16000))


def content(path):
    with open(path, "rb") as f:
        return f.read()


def test_every_call_that_writes_fails_once(tmp_path):
    number, seed = int(os.environ.get("ZARRBITS_CASES", "4")), int(os.environ.get("ZARRBITS_SEED", "18"))
    dice, results = random.Random(seed), {"the file": 0, "what was there": 0}
    shim, log, good, watched = (tmp_path / n for n in ("fail.so", "log", "good.h5", "watched"))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, os.path.join(HERE, "fail_calls.c"), "-ldl"], check=True)
    example(tmp_path / "in.h5")
    example(tmp_path / "old.h5", 2)
    run(
        "convert", "-q", "--allow-lossy", "--include", "/deflate", "--include", "/words", tmp_path / "in.h5", tmp_path / "in.zarr"
    )
    target = watched / "out.h5"

    def write(to, source, verb, options, **fail):
        names = [tmp_path / source, to] if source else [to]
        return run(
            verb,
            "-q",
            "--threads",
            "2",
            *options,
            *names,
            status=None,
            timeout=600,
            env={**os.environ, "LD_PRELOAD": str(shim), "FAIL_UNDER": str(watched), **{k: str(v) for k, v in fail.items()}},
        )

    for name, (source, verb, options) in WAYS.items():
        old = tmp_path / "in.h5" if source is None else tmp_path / "old.h5" if "--overwrite" in options else None

        def prepare():
            shutil.rmtree(watched, ignore_errors=True)
            watched.mkdir()
            if old:
                shutil.copy(old, target)

        prepare()
        log.write_bytes(b"")
        done = write(target, source, verb, options, FAIL_LOG=log, FAIL_NTH=0)
        assert done.returncode == 0, done.stderr
        calls, right = log.stat().st_size, content(target)
        assert calls > 10 and os.listdir(watched) == ["out.h5"]
        if source:
            good.unlink(missing_ok=True)
            write(good, source, verb, options)
            assert content(good) == right, f"{name}: another run makes another file"
        cases = [(n, e) for n in range(1, calls + 1) for e in ERRORS]
        for n, error in dice.sample(cases, number) if 0 < number < len(cases) else cases:
            prepare()
            done = write(target, source, verb, options, FAIL_NTH=n, FAIL_ERRNO=error)
            case = f"{name}: call {n} of {calls}, {errno.errorcode[error]}: exit {done.returncode}: {done.stderr}"
            if done.returncode == 0:
                assert content(target) == right, case
                results["the file"] += 1
            else:
                assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("zarrbits: "), case
                assert content(target) == content(old) if old else not target.exists(), case
                results["what was there"] += 1
            left = [entry for entry in os.listdir(watched) if entry != "out.h5"]
            assert not left, (left, case)
        print(f"{name}: {calls} calls", flush=True)
    print(f"seed {seed}: {sum(results.values())} runs: {results}")
    assert results["what was there"] > results["the file"]
