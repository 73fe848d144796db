# SPDX-License-Identifier: BSL-1.0
"""Writes the seeds of the fuzzer: seeds.py FOLDER. The inputs' form is at the top of filter.cpp."""
import os
import struct
import sys

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
BYTES, REVERSE, OPTIONAL, REPAIR = 1, 2, 4, 8


def seed(name, flags, cd, chunk, spare=0):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(bytes([flags, len(cd), spare & 255, spare >> 8]) + struct.pack(f"<{len(cd)}I", *cd) + chunk)


def parameters(bits, size, elements, options=0, first=0, components=1, type_bits=None, flags=0):
    packed = (elements * components * bits + 7) // 8 + (options & 3 != 0)
    return [bits, options, first, 0, 0x5A504201, size * components, components, size | (type_bits or 8 * size) << 8 | flags << 16,
            elements, 0, packed, 1 << 16], packed


BIG, SIGNED, BOOL = 1, 2, 4
cases = {"bool": (1, 1, 50, 0, 0, 1, 1, BOOL), "bool_numcodecs": (1, 1, 50, 17, 0, 1, 1, BOOL), "camera": (12, 2, 33, 0), "camera_big": (12, 2, 33, 2, 0, 1, None, BIG),
         "offset": (8, 2, 20, 1, 4), "signed": (5, 4, 17, 2, 0, 1, None, SIGNED), "i12": (12, 2, 21, 0, 0, 1, 12, SIGNED), "wide": (53, 8, 9, 1, 11), "complex": (20, 4, 8, 0, 12, 2),
         "whole": (8, 1, 24, 1), "cut": (3, 1, 40, 4), "report": (7, 1, 40, 8)}
for name, case in cases.items():
    cd, packed = parameters(*case)
    decoded = cd[5] * cd[8]
    padding, count = cd[1] & 3, (-cd[8] * cd[6] * cd[0]) % 8
    body = bytes(packed - (padding != 0))
    chunk = {0: body, 1: bytes([count]) + body, 2: body + bytes([count])}[padding]
    seed(f"{name}_encode", OPTIONAL, cd, bytes(decoded))
    seed(f"{name}_decode", REVERSE, cd, chunk)
    seed(f"{name}_decode_in_place", REVERSE | REPAIR, cd, chunk, decoded)
    seed(f"{name}_encode_repaired", REPAIR, cd, bytes(range(decoded % 256)))
for size, big, memory in ((2, 1, 0), (4, 0, 1), (8, 1, 0), (3, 1, 0), (1, 0, 0)):
    for flags, name in ((BYTES, "encode"), (BYTES | REVERSE, "decode")):
        seed(f"bytes_{size}_{name}", flags, [big, 0x5A424501, size, memory, size * 12, 0, 1 << 16], bytes(range(size * 12)))
seed("empty", 0, [], b"")
seed("short_list", REVERSE, [12], bytes(24))
