# SPDX-License-Identifier: BSL-1.0
"""Sixty mutations of a chunk, through h5py, for our filter and its peers: mutations.py

The chunk holds 4096 values of 12 bits in uint16. 30 mutations give it another length: cut, lengthened, replaced by noise
of any length. 30 change bytes and keep the length. Each is read in a process of its own. The table counts, for both kinds:
errors, right values, wrong values, crashes, processes that did not end within 2 seconds.
HDF5_PLUGIN_PATH is for ours, the package hdf5plugin for the peers.
"""

import os
import random
import resource
import signal
import sys
import tempfile
import time

import h5py
import hdf5plugin
import numpy as np

PACKBITS = 45429
values = (
    (np.arange(4096) // 8 * 5 % 4096 + np.random.default_rng(4).integers(0, 4, 4096)).clip(0, 4095).astype("u2")
)  # compresses a little

FILTERS = {
    "packbits, 12 bits": dict(compression=PACKBITS, compression_opts=(12,)),
    "packbits and fletcher32": dict(compression=PACKBITS, compression_opts=(12,), fletcher32=True),
    "fletcher32 alone": dict(fletcher32=True),
    "deflate": dict(compression="gzip"),
    "scale-offset": dict(scaleoffset=12),
    "bitshuffle, lz4": dict(**hdf5plugin.Bitshuffle()),
    "blosc, lz4": dict(**hdf5plugin.Blosc()),
    "blosc2": dict(**hdf5plugin.Blosc2()),
    "lz4": dict(**hdf5plugin.LZ4()),
    "zstd": dict(**hdf5plugin.Zstd()),
    "bzip2": dict(**hdf5plugin.BZip2()),
}


def mutated(chunk, k):
    r = random.Random(k)
    if k < 30:
        if k % 3 == 0:
            return chunk[: r.randrange(1, len(chunk))]
        if k % 3 == 1:
            return chunk + r.randbytes(r.choice([1, 2, 7, 1000, 60000]))
        size = r.choice([1, 2, 8, 16, 100, 4096, 8192, 70000])
        return r.randbytes(size if size != len(chunk) else size + 1)
    b = bytearray(chunk)
    for _ in range(r.choice([1, 2, 8, 64])):
        # half of them near the start, where formats have their headers
        b[r.randrange(min(32, len(b)) if r.random() < 0.5 else len(b))] = r.randrange(256)
    return bytes(b)


def outcome(path):
    """Reads the file in a child process."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        signal.alarm(2)
        try:
            with h5py.File(path, "r") as f:
                same = np.array_equal(f["x"][:], values)
            os._exit(10 if same else 11)
        except (OSError, RuntimeError, ValueError, MemoryError):
            os._exit(12)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "hang" if os.WTERMSIG(status) == signal.SIGALRM else "crash"
    return {10: "right", 11: "wrong", 12: "error"}.get(os.WEXITSTATUS(status), "crash")


KINDS = ["error", "right", "wrong", "crash", "hang"]


def run():
    print(f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}, hdf5plugin {hdf5plugin.version}")
    print(
        "| filter | "
        + " | ".join(f"{k}, other length" for k in KINDS)
        + " | "
        + " | ".join(f"{k}, changed bytes" for k in KINDS)
        + " |"
    )
    ours_failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.h5")
        for name, arguments in FILTERS.items():
            child = os.fork()  # a filter's threads would not survive a later fork
            if child == 0:
                with h5py.File(path, "w") as f:
                    f.create_dataset("x", data=values, chunks=values.shape, **arguments)
                os._exit(0)
            os.waitpid(child, 0)
            with h5py.File(path, "r") as f:
                mask, chunk = f["x"].id.read_direct_chunk((0,))
            assert mask == 0 and outcome(path) == "right", (name, mask)
            counts = [dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)]
            for k in range(60):
                with h5py.File(path, "w") as f:
                    f.create_dataset("x", values.shape, "u2", chunks=values.shape, **arguments).id.write_direct_chunk(
                        (0,), mutated(chunk, k)
                    )
                counts[k // 30][outcome(path)] += 1
            print(f"| {name} | " + " | ".join(str(c[k]) for c in counts for k in KINDS) + " |", flush=True)
            if name.startswith("packbits"):
                # HDF5's fletcher32, which comes first when a chunk is read, itself crashes on chunks of less than 4 bytes
                lost = counts[0]["crash"] if "fletcher32" in name else 0
                # a chunk as long as a raw one is taken for one: parallel HDF5 stores such without saying so in the filter mask
                raw = 0 if "fletcher32" in name else sum(len(mutated(chunk, k)) == values.nbytes for k in range(30))
                ours_failed |= (
                    counts[0]["error"] + lost + raw != 30
                    or counts[0]["wrong"] > raw
                    or counts[1]["crash"] + counts[1]["hang"] > 0
                    or ("fletcher32" in name and counts[1]["error"] != 30)
                )
    return ours_failed


started = time.time()
failed = run()
print(f"{time.time() - started:.0f} s")
sys.exit(failed)
