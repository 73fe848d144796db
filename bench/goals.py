# SPDX-License-Identifier: BSL-1.0
"""The goals of the figures. Ratios are to memcpy at 64 KiB in one thread, unless the goal says something else."""

KIB64, MIB, MIB64 = 65536, 1 << 20, 64 << 20

SWAPS = ["swap/2", "swap/4", "swap/8", "swap/complex64", "swap/complex128"]
IN_PLACE = ["swap_inplace/2", "swap_inplace/4", "swap_inplace/8"]


def fields(direction, width, ks=None):
    return [f"{direction}/{width}/{k}" for k in (ks or range(1, width))]


# (what, rows of which the slowest counts, goal of avx2, goal of avx512)
KERNELS = [
    ("swap 2, 4, 8 and complex", SWAPS, 0.90, None),
    ("swap in place", IN_PLACE, 1.08, None),
    ("encode bool", ["encode/bool"], 1.55, 2.1),
    ("encode bool, most significant bit first", ["encode/bool/msb"], 1.28, 1.8),
    ("decode bool", ["decode/bool"], 1.05, None),
    ("encode 8 to 2", ["encode/8/2"], 1.3, None),
    ("decode 8 to 2", ["decode/8/2"], 0.95, None),
    ("encode 8 to 4", ["encode/8/4"], 1.25, None),
    ("decode 8 to 4", ["decode/8/4"], 0.95, None),
    ("decode 8 to 4, signed", ["decode/8/4/signed"], 0.90, None),
    ("encode 8 to 6", ["encode/8/6"], 0.85, 0.90),
    ("decode 8 to 6", ["decode/8/6"], 0.62, 0.92),
    ("decode 8 to 6, signed", ["decode/8/6/signed"], 0.55, None),
    ("encode 8 to any k", fields("encode", 8), 0.6, 0.8),
    ("decode 8 to any k", fields("decode", 8), 0.55, 0.93),
    ("encode 16 to 12", ["encode/16/12"], 0.86, 0.88),
    ("decode 16 to 12", ["decode/16/12"], 0.84, 0.9),
    ("encode 16 to 10 from bit 2", ["encode/16/10/first2"], 0.69, 0.75),
    ("decode 16 to 10 from bit 2", ["decode/16/10/first2"], 0.85, 0.87),
    ("encode 16 to 14", ["encode/16/14"], 0.66, 0.77),
    ("decode 16 to 14", ["decode/16/14"], 0.64, 0.86),
    ("encode 16 to 11", ["encode/16/11"], 0.47, 0.88),
    ("decode 16 to 11", ["decode/16/11"], 0.63, 0.88),
    ("encode 32 to 20", ["encode/32/20"], 0.7, 0.93),
    ("decode 32 to 20", ["decode/32/20"], 0.82, 0.86),
    ("encode 32 to 23", ["encode/32/23"], 0.43, 0.95),
    ("decode 32 to 23", ["decode/32/23"], 0.86, 0.88),
    ("encode 32 to 24", ["encode/32/24"], 0.95, 0.94),
    ("decode 32 to 24", ["decode/32/24"], 0.87, 0.93),
    ("encode 64 to 40", ["encode/64/40"], 0.7, 1.02),
    ("decode 64 to 40", ["decode/64/40"], 0.88, 0.88),
    ("decode 64 to 40, signed", ["decode/64/40/signed"], 0.7, None),
    ("encode 64 to 53", ["encode/64/53"], 0.4, 0.84),
    ("decode 64 to 53", ["decode/64/53"], 0.7, 0.84),
]

PORTABLE = [
    ("8 to any k, portable", fields("encode", 8) + fields("decode", 8), 0.07),
    ("16, 32, 64 to any k, portable", [n for w in (16, 32, 64) for d in ("encode", "decode") for n in fields(d, w)], 0.10),
    ("bool, portable", ["encode/bool", "encode/bool/msb", "decode/bool", "decode/bool/msb"], 0.2),
]

NAMED = {8: (2, 4, 5, 6), 16: (11, 12, 14), 32: (20, 23, 24), 64: (40, 53)}
SMALL = ["encode/bool", "encode/bool/msb", "decode/bool", "decode/bool/msb"] + [
    f"{d}/8/{k}" for d in ("encode", "decode") for k in (2, 4)
]
LARGE = (
    SWAPS
    + IN_PLACE
    + [f"{d}/{w}/{k}" for w, ks in NAMED.items() for k in ks for d in ("encode", "decode") if f"{d}/{w}/{k}" not in SMALL]
)
STREAMED = ["swap/4", "bool", "8/4", "16/12", "32/20", "64/40"]


class Rows:
    """Rows by name, who did the work, and size."""

    def __init__(self, rows):
        self.rows = {(r["name"], r.get("kernels") or r.get("peer"), r["bytes"]): r for r in rows}
        self.tables = list(dict.fromkeys(r["kernels"] for r in rows if "kernels" in r and r["name"] == "swap/2"))
        self.best = self.tables[-1] if self.tables else None

    def get(self, name, who, size):
        return self.rows.get((name, who, size))

    def slowest(self, names, who, size):
        """(ratio, name) of the slowest, or None where a row is missing."""
        found = [self.get(n, who, size) for n in names]
        if not found or None in found:
            return None
        return min((r["ratio"], r["name"]) for r in found)

    def bound(self, name, size=KIB64):
        """The ratio that limit/read and limit/write allow the kernel of this name:
        it reads its input, and then writes its output."""
        read, write = (self.get(f"limit/{what}", "plain loop", size) for what in ("read", "write"))
        kind, *rest = name.split("/")
        if not read or not write or kind not in ("encode", "decode", "swap"):
            return None
        encoded = 1.0 if kind == "swap" else 1 / 8 if rest[0] == "bool" else int(rest[1]) / int(rest[0])
        into, out_of = (1.0, encoded) if kind != "decode" else (encoded, 1.0)
        return 1 / (into / read["ratio"] + out_of / write["ratio"])


def worst(values):
    values = list(values)
    return None if not values or None in values else min(values)


def out_of_reach(rows, goal):
    """The bound of a goal of a kernel at 64 KiB that this machine's memory does not allow, whatever the code is, or None."""
    what, _, wanted, _, slowest = goal
    bound = rows.bound(slowest) if slowest and not what.startswith("64 MiB") else None
    return bound if bound and bound < wanted else None


def evaluate(rows):
    """[(what, table, goal, reached or None, the row that was slowest)]"""
    out = []

    def add(what, table, goal, result):
        out.append((what, table, goal, result and result[0], result and result[1]))

    for column, table in enumerate(["avx2", "avx512"]):
        for what, names, *goals in KERNELS:
            if goals[column] is not None:
                add(what, table, goals[column], rows.slowest(names, table, KIB64))
    for what, names, goal in PORTABLE:
        add(what, "portable", goal, rows.slowest(names, "portable", KIB64))
    for table in ("avx2", "avx512"):
        add("64 MiB: bool, 2 and 4 bits", table, 1.0, rows.slowest(SMALL, table, MIB64))
        add("64 MiB: everything else", table, 0.85, rows.slowest(LARGE, table, MIB64))
        add(
            "checked encode over truncating encode",
            table,
            0.95,
            rows.slowest([f"checked/{w}/{k}" for w, ks in NAMED.items() for k in ks], table, KIB64),
        )
    best = rows.best
    for direction in ("encode", "decode"):
        add(
            f"{direction} in pieces of 64 KiB over one piece, 1 MiB",
            best,
            0.9,
            rows.slowest([f"step/{direction}/{n}" for n in STREAMED], best, MIB),
        )
    add(
        "plain push() over Boost's default buffers, 1 MiB",
        best,
        2.0,
        rows.slowest([f"push/boost/encode/{n}" for n in STREAMED], best, MIB),
    )
    add(
        "bio::copy through compose() into array_sink, 1 MiB",
        best,
        0.8,
        rows.slowest([f"compose/encode/{n}" for n in STREAMED], best, MIB),
    )
    return out


def evaluate_hdf5(rows):
    out, best = [], rows.best
    chunks = [c for c in ("1MiB", "4MiB") if rows.get(f"hdf5/{c}/write/bool", best, MIB64)]
    if not chunks:
        return out
    both = ("write", "read")

    def add(what, goal, results):
        result = worst(results)
        out.append((what, best, goal, result and result[0], result and result[1]))

    def over(kind, peer, directions=both):
        for c in chunks:
            for d in directions:
                name = f"hdf5/{c}/{d}/{kind}"
                ours, theirs = rows.get(name, best, MIB64), rows.get(name, peer, MIB64)
                yield ours and theirs and (ours["gbps"] / theirs["gbps"], name)

    def noop(kinds):
        for c in chunks:
            for d in both:
                for k in kinds:
                    r = rows.get(f"hdf5_noop/{c}/{d}/{k}", best, MIB64)
                    if r:
                        yield r["ratio"], r["name"]

    add("HDF5: k bits over a no-op filter", 0.85, noop(["8/4", "16/12"]))
    add("HDF5: bool over a no-op filter", 1.2, noop(["bool"]))
    add("HDF5: 12 bits over n-bit as used", 60, over("16/12", "n-bit as used"))
    add("HDF5: bool over n-bit as used", 60, over("bool", "n-bit as used"))
    add("HDF5: 12 bits over the n-bit filter alone", 15, over("16/12", "n-bit filter alone"))
    add("HDF5: bool over the n-bit filter alone", 30, over("bool", "n-bit filter alone"))
    add("HDF5: bool over blosc lz4 with bitshuffle", 2, over("bool", "blosc lz4 bitshuffle"))
    add("HDF5: 12 bits over blosc lz4 with bitshuffle, write", 2, over("16/12", "blosc lz4 bitshuffle", ["write"]))
    add("HDF5: 12 bits over blosc lz4 with bitshuffle, read", 1.8, over("16/12", "blosc lz4 bitshuffle", ["read"]))
    return out
