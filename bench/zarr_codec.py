#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Reading and writing through zarr-python from memory, by codec: packbits (compiled, and in numpy), bytes, and numcodecs' blosc.
Prints a table.

    pip install build/wheel/dist/*.whl zarr && bench/zarr_codec.py [MIB]

Each figure is the best of several runs; GB are those of the array, which is uint16 with 12 bits used, in chunks of 1 MiB.
"""

import sys
import time

import numpy as np
import zarr

import zarrbits
from zarrbits_codecs import library, packing

MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 128
ROWS, COLUMNS = 512, 1024  # of a chunk: 1 MiB
frames = np.random.default_rng(1).integers(0, 4096, (MIB * ROWS, COLUMNS), dtype="u2")


def best(function, seconds=2.0):
    least, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until or least == float("inf"):
        started = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - started)
    return least


def array(serializer, compressors):
    return zarr.create_array(
        {}, shape=frames.shape, chunks=(ROWS, COLUMNS), dtype="u2", serializer=serializer, compressors=compressors
    )


def by_numpy(function):
    """`function` without the compiled core."""
    kept, library.LIBRARY = library.LIBRARY, None
    library.codec.cache_clear()
    try:
        return function()
    finally:
        library.LIBRARY = kept
        library.codec.cache_clear()


assert library.LIBRARY, "the compiled core is not installed"
chunk = frames[:ROWS]
payload = packing.pack(chunk, bits=12)
out = []
coded = {}
for name, way in (("compiled", lambda f: f()), ("numpy", by_numpy)):
    coded[name] = [
        way(lambda: best(lambda: packing.pack(chunk, bits=12))),
        way(lambda: best(lambda: packing.unpack(payload, "u2", chunk.size, bits=12))),
    ]
    out.append((f"packbits, the codec alone, {name}", *(chunk.nbytes / t / 1e9 for t in coded[name]), None))

some = (chunk.size // 2, chunk.size // 100)
offset, size = packing.byte_range("u2", chunk.size, *some, last_bit=11)
part = payload[offset : offset + size]
share = best(lambda: packing.unpack_range(part, "u2", chunk.size, *some, last_bit=11)) / coded["compiled"][1]
out[0] = (*out[0][:3], share)
read = {}
for name, serializer, compressors in (
    ("bytes", "auto", None),
    ("packbits, last_bit 11", zarrbits.PackbitsCodec(last_bit=11), None),
    ("blosc, lz4 5, shuffle", "auto", zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")),
):
    a = array(serializer, compressors)

    def write(a=a):
        a[:] = frames

    wrote = best(write)
    assert (a[:ROWS] == chunk).all()
    read[name] = best(lambda a=a: a[:])
    five = slice(ROWS // 2, ROWS // 2 + 5)  # 1 % of a chunk
    part, whole = best(lambda a=a: a[five, :]), best(lambda a=a: a[:ROWS, :])
    out.append((name, frames.nbytes / wrote / 1e9, frames.nbytes / read[name] / 1e9, part / whole))

print(f"zarr-python {zarr.__version__}, {MIB} MiB in memory, chunks of 1 MiB\n")
print("| codec | write, GB/s | read, GB/s | 1 % of a chunk, as a share of the chunk's time |\n|---|---|---|---|")
for name, w, r, part in out:
    print(f"| {name} | {w:.2f} | {r:.2f} | {'' if part is None else f'{100 * part:.0f} %'} |")
print("\ncompiled beside numpy:", *(f"{n / c:.0f} times" for c, n in zip(coded["compiled"], coded["numpy"])))
print(f"an array of packbits is read at {read['bytes'] / read['packbits, last_bit 11']:.2f} of the speed of bytes")
