# SPDX-License-Identifier: BSL-1.0
"""An operator's path, on real servers: many files to S3 as one store, a kill in the middle, the same command again,
and the check of it.
tests/convert/test_newcomers.py has the same with fewer files, and counts the requests."""

import os
import signal
import subprocess
import time

import h5py
import numpy as np

from s3_servers import BUCKET, COMMAND, client, environment

pytest_plugins = ["s3_servers"]  # its fixtures
FILES = int(os.environ.get("ZARRBITS_NEWCOMERS_FILES", "500"))
PREFIX = "archive/all.zarr"


def day(path, n):
    with h5py.File(path, "w") as f:
        f.create_dataset("time", data=np.arange(24.0) + 24 * n, maxshape=(None,), chunks=(24,))
        f["time"].make_scale("time")
        f.create_dataset(
            "temperature",
            data=np.random.default_rng(n).normal(280, 9, (24, 9)).astype("f4"),
            chunks=(24, 9),
            maxshape=(None, 9),
            compression="gzip",
        )
        f["temperature"].dims[0].attach_scale(f["time"])
    return path


def listed(endpoint, prefix):
    pages = client(endpoint).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return [o["Key"] for p in pages for o in p.get("Contents", [])]


def test_many_files_with_a_kill(server, tmp_path):
    _, endpoint = server
    files = [day(tmp_path / f"{n:03}.nc", n) for n in range(FILES)]
    patient = environment(ZARRBITS_S3_PATIENCE="5")
    command = [
        COMMAND,
        "convert",
        "--concat",
        "time",
        *map(str, files),
        f"s3://{BUCKET}/{PREFIX}",
        "--endpoint",
        endpoint,
        "--threads",
        "2",
    ]
    p = subprocess.Popen(command, env=patient, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
    # it runs for 20 ms at a time, so that no server is too fast for the kill
    while True:
        os.killpg(p.pid, signal.SIGSTOP)
        if any("/journal" in key for key in listed(endpoint, PREFIX + "/.zarrbits")):
            if len(listed(endpoint, PREFIX + "/temperature/c/")) > FILES // 10:
                break
        os.killpg(p.pid, signal.SIGCONT)
        time.sleep(0.02)
        assert p.poll() is None, "it was faster than the kill"
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()
    left = listed(endpoint, PREFIX)
    assert PREFIX + "/zarr.json" not in left
    told = subprocess.run(
        [COMMAND, "inspect", f"s3://{BUCKET}/{PREFIX}", "--endpoint", endpoint],
        env=patient,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (
        told.returncode == 3
        and "is an unfinished store" in told.stdout
        and "run the same command again to continue" in told.stdout
    ), told
    time.sleep(6)  # longer than a run that writes may be silent
    done = subprocess.run(command, env=patient, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode == 0 and "continuing the unfinished store" in done.stderr, done.stderr
    whole = listed(endpoint, PREFIX)
    assert not any("/.zarrbits" in key for key in whole)
    assert len([key for key in whole if "/temperature/c/" in key]) == FILES
    check = [COMMAND, "verify", "--concat", "time", *map(str, files), f"s3://{BUCKET}/{PREFIX}", "--endpoint", endpoint]
    done = subprocess.run(check, env=patient, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("OK: "), done
    # a chunk of one day becomes that of another: the check names it
    s3 = client(endpoint)
    other = s3.get_object(Bucket=BUCKET, Key=f"{PREFIX}/temperature/c/1/0")["Body"].read()
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}/temperature/c/{FILES // 2}/0", Body=other)
    done = subprocess.run(check, env=patient, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "FAILED: " in done.stdout and "/temperature" in done.stdout, done
