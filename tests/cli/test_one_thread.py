# SPDX-License-Identifier: BSL-1.0
"""No two threads are in libhdf5 at the same time, in any job of the command: Debian's libhdf5 has a lock of its own, which
hides that; the wheel's has none, and crashes."""

import pathlib
import re
import subprocess

import h5py
import numpy as np
import pytest

import harness
from harness import COMMAND

SUPPORT = pathlib.Path(__file__).parents[1] / "support"
THREADS = ("--threads", "4")
# with floating-point arguments, or any number of arguments
OTHERS = {"H5Epush1", "H5Epush2"} | {f"H5P{verb}et_{what}" for verb in "sg" for what in ("cache", "chunk_cache", "btree_ratios")}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A call that runs the command, and fails where it calls libhdf5 in two threads at once."""
    libraries = subprocess.run(["ldd", COMMAND], capture_output=True, text=True, check=True).stdout
    library = re.search(r"=> (\S*/libhdf5\S*)", libraries)
    assert library, f"{COMMAND} has no shared libhdf5"
    symbols = subprocess.run(["nm", "-D", "--defined-only", library[1]], capture_output=True, text=True, check=True).stdout
    functions = set(re.findall(r" T (H5[A-Z]+[a-z]\w*)", symbols)) - OTHERS
    assert {"H5Fopen", "H5Idec_ref", "H5Eset_auto2"} < functions
    folder = tmp_path_factory.mktemp("one_thread")
    (folder / "functions.inc").write_text("".join(f"FUNCTION({name})\n" for name in sorted(functions)))
    checker = folder / "one_thread.so"
    harness.execute("cc", "-shared", "-fPIC", "-O1", "-I", folder, "-o", checker, SUPPORT / "one_thread.c", "-ldl")

    def run(*arguments, **how):
        return harness.run(*arguments, LD_PRELOAD=checker, ONE_THREAD_DELAY="100", **how)

    return run


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A file with what is read in different ways: chunks past libhdf5 and by it, text, sequences, parts of other files."""
    path = tmp_path_factory.mktemp("source") / "in.h5"
    random = np.random.default_rng(5)
    numbers = random.integers(0, 500, (120, 90))
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=numbers.astype("<f4"), chunks=(8, 9), compression="gzip", shuffle=True)
        f.create_dataset("plain", data=numbers.astype(">i4"), chunks=(8, 9), fletcher32=True)
        f.create_dataset("contiguous", data=numbers.astype("<i2"))
        f.create_dataset("texts", data=[f"text {i}" for i in range(900)], dtype=h5py.string_dtype(), chunks=(10,))
        sequences = f.create_dataset("sequences", (300,), h5py.vlen_dtype("<i4"), chunks=(10,))
        sequences[:] = [np.arange(i % 7, dtype="<i4") for i in range(300)]
        pairs = np.zeros(900, [("number", "<i4"), ("name", h5py.string_dtype())])
        pairs["name"] = "x"
        f.create_dataset("pairs", data=pairs, chunks=(30,))
        f.create_dataset("nbit", data=numbers.astype("<i4"), chunks=(8, 9), scaleoffset=0)
        f["deflate"].attrs["texts"] = ["a", "b"]
        layout = h5py.VirtualLayout((240, 90), "<f4")
        layout[:120] = h5py.VirtualSource(path, "deflate", (120, 90))
        layout[120:] = h5py.VirtualSource(path, "deflate", (120, 90))
        f.create_virtual_dataset("virtual", layout)
    return path


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    for day in range(4):
        with h5py.File(folder / f"d{day}.nc", "w") as f:
            f.create_dataset("time", data=np.arange(30) + 30.0 * day).make_scale("time")
            f.create_dataset("t", data=np.arange(3000, dtype="<f4").reshape(30, 100), chunks=(7, 10), compression="gzip")
            f.create_dataset("name", data=[f"{i}" for i in range(30)], dtype=h5py.string_dtype(), chunks=(4,))
            for name in ("t", "name"):
                f[name].dims[0].attach_scale(f["time"])
    return sorted(folder.iterdir())


WAYS = {
    "portable": (),
    "native": ("--profile", "native"),
    "shards": ("--profile", "native", "--shard", "8K"),
    "recode": ("--profile", "recode", "--compress", "zstd:1", "--chunk", "20x20"),
    "packed": ("--codec", "packbits", "--bits", "9"),
    "v2": ("--zarr-format", "2"),
}


@pytest.mark.parametrize("way", WAYS)
def test_convert_and_verify(run, source, tmp_path, way):
    store = tmp_path / "out.zarr"
    run("convert", *THREADS, *WAYS[way], source, store, status=(0, 3))
    run("verify", *THREADS, source, store, status=(0, 3))


def test_references(run, source, tmp_path):
    store = tmp_path / "out.json"
    run("convert", *THREADS, "--virtual", source, store, status=(0, 3))
    run("verify", *THREADS, source, store, status=(0, 3))
    run("convert", *THREADS, "--external", source.parent, store, tmp_path / "copy.zarr", status=(0, 3))


def test_file_to_file(run, source, tmp_path):
    run("repack", *THREADS, "--filter", "deflate:1", source, tmp_path / "filtered.h5")
    run("repack", *THREADS, "--filter", "none", "--chunk", "/deflate=20x20", source, tmp_path / "chunks.h5")
    for name in ("filtered.h5", "chunks.h5"):
        run("verify", *THREADS, source, tmp_path / name)
    run("check", *THREADS, source)
    run("digest", *THREADS, source)


def test_back_to_a_file(run, source, tmp_path):
    run("convert", *THREADS, source, tmp_path / "out.zarr", status=(0, 3))
    run("convert", *THREADS, "--chunk", "10x10", tmp_path / "out.zarr", tmp_path / "other.zarr", status=(0, 3))
    for store in ("out.zarr", "other.zarr"):
        target = tmp_path / store.replace("zarr", "h5")
        run("export", *THREADS, tmp_path / store, target, status=(0, 3))
        run("verify", *THREADS, target, tmp_path / store, status=(0, 3))
        run("check", *THREADS, tmp_path / store)


def test_many_files(run, days, tmp_path):
    run("convert", *THREADS, "--virtual", "--concat", "time", *days, tmp_path / "all.nc")
    run("convert", *THREADS, "--external", "all", tmp_path / "all.nc", tmp_path / "copy.zarr")
    for options, store in (((), "all.zarr"), (("--grid", "rectilinear"), "uneven.zarr"), (("--virtual",), "all.json")):
        run("convert", *THREADS, "--concat", "time", *options, *days[:3], tmp_path / store)
        run("verify", *THREADS, "--concat", "time", *days[:3], tmp_path / store)
    run("convert", *THREADS, "--append", "time", days[3], tmp_path / "all.zarr")
    run("verify", *THREADS, "--concat", "time", *days, tmp_path / "all.zarr")
