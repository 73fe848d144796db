# SPDX-License-Identifier: BSL-1.0
"""The same work in Python: numpy, and numcodecs where it is installed. Measured as harness.hpp says, with the same memcpy.

peers.py LIBRARY JSON [--quick] [--sizes=N,N]     LIBRARY: libzarrbits_bench_base.so
"""

import ctypes
import json
import statistics
import sys
import time

import numpy as np

try:
    import numcodecs
    from numcodecs import blosc
except ImportError:
    numcodecs = None

BATCH = 100e-6
AGREEMENT, TOLERANCE = 0.12, 1.25


def now():
    return time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) * 1e-9


def aligned(n):
    """n bytes at a 64-byte border, touched."""
    a = np.ones(n + 64, np.uint8)
    start = -a.ctypes.data % 64
    return a[start : start + n]


class Bench:
    def __init__(self, library, quick):
        self.memcpy = ctypes.CDLL(library).zarrbits_bench_memcpy
        self.memcpy.restype = ctypes.c_double
        self.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.quick, self.rows = quick, []

    def base(self, n, calls):
        return self.memcpy(self.to.ctypes.data, self.source.ctypes.data, n, calls) / calls

    def buffers(self, n):
        self.source, self.to = aligned(n), aligned(n)
        # the 4th fastest of 15: the very fastest may be a slip of the clock
        calls = max(1, int(BATCH / max(self.base(n, 2), 1e-7)))
        self.best = sorted(self.base(n, calls) for _ in range(15))[3]

    def measure(self, name, peer, n, call, **more):
        """`call()` is the work on n decoded bytes; its result is kept until the next call, as a user would keep it."""
        call()
        start = now()
        call()
        once = max(now() - start, 1e-7)
        calls = max(1, min(1000, int(BATCH / once)))
        base_calls = max(1, min(1000, int(BATCH / max(self.base(n, 2), 1e-7))))
        large = n >= 16 << 20
        wanted, at_most = ((3, 1.0) if self.quick else (7, 5.0)) if large else ((7, 0.1) if self.quick else (25, 0.5))
        kept, all_samples, begin = [], [], now()
        while len(kept) < wanted and (now() - begin < at_most or len(all_samples) < 3):
            before = self.base(n, base_calls)
            start = now()
            for _ in range(calls):
                result = call()
            seconds = (now() - start) / calls
            after = self.base(n, base_calls)
            faster, slower = sorted([before, after])
            sample = (slower / faster - 1, (before + after) / 2, seconds)
            all_samples.append(sample)
            if sample[0] <= AGREEMENT and slower <= TOLERANCE * self.best:
                kept.append(sample)
        del result
        if len(kept) < 3:
            kept = sorted(all_samples)[:3]
        gbps = statistics.median(n / seconds / 1e9 for _, _, seconds in kept)
        ratio = statistics.median(base / seconds for _, base, seconds in kept)
        self.rows.append(
            {"name": name, "peer": peer, "bytes": n, "gbps": float(f"{gbps:.4g}"), "ratio": float(f"{ratio:.4g}"), **more}
        )


def numpy_bits(bench, n, noise):
    mask = bench.source
    mask[:] = noise(n) & 1
    truth = mask.view(bool)
    for order, suffix in (("little", ""), ("big", "/msb")):
        bits = np.packbits(truth, bitorder=order)
        assert np.array_equal(np.unpackbits(bits, bitorder=order), mask)
        bench.measure("encode/bool" + suffix, "numpy.packbits", n, lambda: np.packbits(truth, bitorder=order))
        bench.measure("decode/bool" + suffix, "numpy.unpackbits", n, lambda: np.unpackbits(bits, bitorder=order))


def numpy_swaps(bench, n, noise):
    for size in (2, 4, 8):
        a = bench.source.view(f"u{size}")
        bench.source[:] = noise(n)
        out = aligned(n).view(f">u{size}")
        bench.measure(f"swap/{size}", "numpy byteswap", n, lambda: a.byteswap())
        bench.measure(f"swap/{size}", "numpy.copyto", n, lambda: np.copyto(out, a))
        own = out.view(f"u{size}")
        bench.measure(f"swap_inplace/{size}", "numpy byteswap", n, lambda: own.byteswap(True))


def numcodecs_bits(bench, n, noise):
    mask = bench.source
    mask[:] = noise(n) & 1
    truth = mask.view(bool)
    codec = numcodecs.PackBits()
    bits = codec.encode(truth)
    out = aligned(n).view(bool)
    bench.measure("encode/bool/msb", "numcodecs PackBits", n, lambda: codec.encode(truth))
    bench.measure("decode/bool/msb", "numcodecs PackBits", n, lambda: codec.decode(bits))
    assert np.array_equal(codec.decode(bits, out=out), truth)


def numcodecs_blosc(bench, n, noise):
    """What is most used to squeeze such data: bitshuffle and LZ4, in one thread, on noise in the bits that matter."""
    blosc.use_threads = False
    for name, width, kept in (("bool", 8, 1), ("8/4", 8, 4), ("16/12", 16, 12), ("32/20", 32, 20), ("64/40", 64, 40)):
        dtype = f"u{width // 8}"
        a = bench.source.view(dtype)
        bench.source[:] = noise(n)
        a &= np.array((1 << kept) - 1, dtype)
        codec = numcodecs.Blosc(cname="lz4", clevel=1, shuffle=numcodecs.Blosc.BITSHUFFLE)
        encoded = codec.encode(a)
        out = aligned(n).view(dtype)
        assert np.array_equal(np.frombuffer(codec.decode(encoded), dtype), a)
        stored = {"stored": float(f"{len(encoded) / n:.4g}")}
        bench.measure(f"encode/{name}", "blosc lz4 bitshuffle", n, lambda: codec.encode(a), **stored)
        bench.measure(f"decode/{name}", "blosc lz4 bitshuffle", n, lambda: codec.decode(encoded, out=out), **stored)


def main(measurements):
    library, target, *options = sys.argv[1:]
    sizes = [65536, 1 << 20, 64 << 20]
    for option in options:
        if option.startswith("--sizes="):
            sizes = [int(s) for s in option[8:].split(",")]
    bench = Bench(library, "--quick" in options)
    period = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    for n in sizes:
        bench.buffers(n)
        for measure in measurements:
            measure(bench, n, lambda count: np.resize(period, count))
    with open(target, "w") as f:
        json.dump(bench.rows, f, indent=1)


if __name__ == "__main__":
    if numcodecs is None:
        print("SKIPPED: numcodecs is not installed", file=sys.stderr)
    main([numpy_bits, numpy_swaps] + ([numcodecs_bits, numcodecs_blosc] if numcodecs else []))
