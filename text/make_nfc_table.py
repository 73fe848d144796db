#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes nfc_table.inc: Unicode's canonical decompositions and combining classes, for nfc.cpp, which computes Hangul. Run it
after Unicode has a new version that matters."""

import pathlib
import sys
import unicodedata


def decompositions():
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if not parts or parts[0].startswith("<"):
            continue
        first, second = (int(p, 16) for p in (parts + ["0"])[:2])
        composes = second != 0 and unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code)
        yield code, first, second, int(composes)


def combining_ranges():
    ranges = []
    for code in range(sys.maxunicode + 1):
        kind = unicodedata.combining(chr(code))
        if kind == 0:
            continue
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == kind:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, kind])
    return ranges


def rows(entries):
    texts = ["{" + ", ".join(f"0x{n:X}" if n > 9 else str(n) for n in entry) + "}," for entry in entries]
    line = ""
    for text in texts:
        if len(line) + len(text) > 128:
            yield "    " + line.rstrip()
            line = ""
        line += text + " "
    yield "    " + line.rstrip()


def table(kind, name, entries):
    return [f"constexpr {kind} {name}[] = {{", *rows(entries), "};"]


lines = [
    "// SPDX-License-Identifier: BSL-1.0",
    f"// Made by make_nfc_table.py from Unicode {unicodedata.unidata_version}.",
    "// clang-format off",
    *table("decomposition", "decompositions", decompositions()),
    *table("combining_range", "combining_ranges", combining_ranges()),
]
pathlib.Path(__file__).with_name("nfc_table.inc").write_text("\n".join(lines) + "\n")
