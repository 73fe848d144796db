# SPDX-License-Identifier: BSL-1.0
"""A real file system that is full: conversions and appends into a tmpfs that is mounted for this test alone.
What does not fit ends with 1 and says so; the same command completes a conversion, and the store of an append is as before,
when there is room."""

import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from harness import contents, execute, run

WITHIN = ["unshare", "--map-root-user", "--mount"]
FORMS = (
    ["out.zarr"],
    ["out.zip"],
    ["out.zarr", "--shard", "64K"],
    ["out.zarr", "--fsync"],
    ["refs.json", "--virtual", "--inline", "0"],
    ["refs.parquet", "--virtual", "--inline", "0"],
)
SIZES = (16, 48, 96, 160, 240, 2000)  # KiB; a store takes some 250


def mount(disk, size, *options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}k", *options]), "none", disk], check=True)


def conversions(files, disk):
    failed = 0
    for target, *options in FORMS:
        for size in SIZES:
            mount(disk, size)
            done = run("convert", "-q", "--concat", "/**:0", "--allow-overlap", *files, f"{disk}/{target}", *options, status=None)
            if done.returncode == 0:
                run("verify", "--concat", "/**:0", *files, f"{disk}/{target}")
            else:
                failed += 1
                kept = "run the same command again to continue" in done.stderr
                assert done.returncode == 1 and "No space left" in done.stderr and bool(os.listdir(disk)) == kept, (
                    target,
                    size,
                    done.stderr,
                    os.listdir(disk),
                )
                assert not os.path.exists(f"{disk}/{target}/zarr.json")
                mount(disk, SIZES[-1], "remount")
                run("convert", "-q", "--concat", "/**:0", "--allow-overlap", *files, f"{disk}/{target}", *options)
                run("verify", "--concat", "/**:0", *files, f"{disk}/{target}")
            assert done.returncode == 0 or size < SIZES[-1], done.stderr
            subprocess.run(["umount", disk], check=True)
    return failed


def appends(files, disk):
    failed = 0
    for target, *options in FORMS:
        if target.endswith(".zip"):
            continue  # cannot be appended to
        mount(disk, 2000)
        run("convert", "-q", "--concat", "/**:0", "--allow-overlap", files[0], f"{disk}/{target}", *options)
        old = contents(disk)
        used = shutil.disk_usage(disk).used // 1024
        for more in (0, 8, 40, 80):
            mount(disk, used + more, "remount")
            done = run("convert", "-q", "--append", "/**:0", "--allow-overlap", files[1], f"{disk}/{target}", status=None)
            if done.returncode == 0:
                break
            failed += 1
            assert done.returncode == 1 and "No space left" in done.stderr, (target, more, done.stderr)
            assert contents(disk) == old or "again" in done.stderr, (
                target,
                more,
                done.stderr,
                sorted(contents(disk).keys() ^ old.keys()),
            )
        mount(disk, 2000, "remount")
        run("convert", "-q", "--append", "/**:0", "--allow-overlap", files[1], f"{disk}/{target}")
        run("verify", "--concat", "/**:0", *files, f"{disk}/{target}")
        subprocess.run(["umount", disk], check=True)
    return failed


def stores(store, disk):
    """A Zarr store as the source: of another one, whose scratch file is on the disk, too, and of a file."""
    failed = 0
    for target, *command in (
        ["out.zarr", "convert"],
        ["out.zip", "convert"],
        ["out.zarr", "convert", "--shard", "64K"],
        ["out.zarr", "convert", "--chunk", "700", "--compress", "none"],
        ["out.h5", "export"],
        ["out.h5", "export"],
    ):
        for size in SIZES:
            mount(disk, size)
            done = run(*command, "-q", store, f"{disk}/{target}", status=None)
            if done.returncode != 0:
                failed += 1
                assert done.returncode == 1 and "No space left" in done.stderr, (target, size, done.stderr)
                kept = "run the same command again to continue" in done.stderr
                assert bool(os.listdir(disk)) == kept and not os.path.exists(f"{disk}/{target}/zarr.json"), os.listdir(disk)
                mount(disk, SIZES[-1], "remount")
                run(*command, "-q", store, f"{disk}/{target}")
            run("verify", *([f"{disk}/{target}", store] if command[0] == "export" else [store, f"{disk}/{target}"]))
            subprocess.run(["umount", disk], check=True)
    return failed


def test_what_does_not_fit(folder):
    if subprocess.run([*WITHIN, "mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    files, disk = [f"{folder}/{i}.h5" for i in range(2)], f"{folder}/disk"
    for i, file in enumerate(files):
        with h5py.File(file, "w") as f:
            for name in (
                "x",
                "g/y",
            ):  # a shape of chunks that leaves the last one unfull, and text, which references cannot leave in the source
                f.create_dataset(name, data=np.random.default_rng(i).random(6000), chunks=(2500,), maxshape=(None,))
            f.create_dataset(
                "text", data=[c * 20 for c in "abcdefghij"] * 60, dtype=h5py.string_dtype(), chunks=(250,), maxshape=(None,)
            )
    os.mkdir(disk)
    path = os.pathsep.join(filter(None, sys.path))  # the harness's folder is in it
    done = execute(*WITHIN, sys.executable, __file__, disk, *files, PYTHONPATH=path)
    print(done.stdout)


if __name__ == "__main__":
    on_disk, *of_files = sys.argv[1:]
    run("convert", "-q", of_files[0], f"{of_files[0]}.zarr")
    what = (
        f"{conversions(of_files, on_disk)} conversions, {appends(of_files, on_disk)} appends, "
        f"{stores(f'{of_files[0]}.zarr', on_disk)} of stores that did not fit"
    )
    print(what)
    assert not what.startswith("0 ") and ", 0 " not in what, what
