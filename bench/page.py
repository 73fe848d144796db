# SPDX-License-Identifier: BSL-1.0
"""The tables of one run as a page, performance.md, and their plot, performance.svg."""

import datetime

import plot
from goals import KIB64, MIB, MIB64, out_of_reach

SIZES = (KIB64, MIB, MIB64)

INTRODUCTION = """# Performance

This page shows how fast zarrbits is beside memcpy and its peers; the commands below measure it on your machine.
Written by `scripts/bench` on {date}. CPU: {cpu}. Kernels that it has: {tables}.

    scripts/bench                      # all of this page: twenty minutes
    scripts/bench --quick --json FILE  # a look, two minutes

Every cell is **GB/s of decoded bytes (ratio to memcpy)**: one thread, its CPU time, reused buffers.
Each sample is taken between two samples of glibc's memcpy of as many decoded bytes, between aligned buffers in huge pages.
It counts only if these two agree, and if a loop in registers shows that nobody else uses the core.
Cells are medians of samples, and then of several processes.
Data is noise in the bits that are kept, zero elsewhere.
Encode is checked: it finds every element that would lose a bit.

The machine may have been shared with others, and all ratios are of one run.
Between two runs on a busy machine, half of the ratios changed by less than 2 %, nine of ten by less than 15 %, single ones by up to 40 %; GB/s change with the clock too.
On other CPUs the ratios differ, mostly because memcpy does: here it copies {memcpy}.
"""


def cpu_model():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def size_text(n):
    return f"{n >> 20} MiB" if n >= MIB else f"{n >> 10} KiB"


def cell(row):
    if not row:
        return "-"
    ratio = f"{row['ratio']:.2f}" if row["ratio"] >= 0.095 else f"{row['ratio']:.2g}"
    return f"{row['gbps']:.3g} ({ratio})"


def table(head, lines):
    return (
        "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(line) + " |" for line in lines)])
        + "\n"
    )


def kernels(rows):
    """The named cases: all sizes on the best kernels, 64 KiB on the others."""
    names = [
        name
        for (name, who, size) in rows.rows
        if who == rows.best and size == MIB64 and name.split("/")[0] in ("swap", "swap_inplace", "encode", "decode")
    ]
    others = [t for t in rows.tables if t != rows.best]
    head = ["case", *(f"{rows.best}, {size_text(s)}" for s in SIZES), *(f"{t}, 64 KiB" for t in reversed(others))]
    lines = [
        [name, *(cell(rows.get(name, rows.best, s)) for s in SIZES), *(cell(rows.get(name, t, KIB64)) for t in reversed(others))]
        for name in names
    ]
    return (
        "## Kernels\n\n`encode/16/12`: uint16, 12 bits kept; `first2`: from bit 2 on; `truncate`: not checked; `msb`: most significant bit first, as numcodecs has it.\n\n"
        + table(head, lines)
        + "\n![GB/s over the bits kept](performance.svg)\n"
    )


def peers(rows, every_row):
    seen = list(
        dict.fromkeys(
            (r["name"], r["peer"])
            for r in every_row
            if "peer" in r and r["name"] != "memcpy" and not r["name"].startswith(("hdf5", "limit"))
        )
    )
    seen.sort(key=lambda s: s[0])
    lines, last = [], None
    for name, who in seen:
        if name != last:
            lines.append([name, f"**zarrbits, {rows.best}**", *(cell(rows.get(name, rows.best, s)) for s in SIZES), ""])
            last = name
        stored = next((r["stored"] for r in every_row if r["name"] == name and r.get("peer") == who and "stored" in r), None)
        lines.append(["", who, *(cell(rows.get(name, who, s)) for s in SIZES), f"{stored:.3f}" if stored else ""])
    return (
        "## Peers, in the same run\n\nPython's peers allocate their result at every call (numpy.copyto does not), as is usual there; at 64 MiB most of the time is the system's allocation. blosc runs in one "
        "thread. zarrs allocates its result too, and was not run at 64 MiB. *stored*: encoded size over decoded size, if it is not simply the number of bits.\n\n"
        + table(["case", "by", *map(size_text, SIZES), "stored"], lines)
    )


def streams(rows):
    cases = ["swap/4", "bool", "numcodecs", "8/4", "16/12", "32/20", "64/40"]
    ways = [
        ("encode_chunk", "chunk/encode"),
        ("decode_chunk", "chunk/decode"),
        ("plain push(), write", "push/encode"),
        ("plain push(), read", "push/decode"),
        ("copy, compose, array_sink", "compose/encode"),
        ("push() over Boost's own buffers", "push/boost/encode"),
        ("encoder::step over encode_chunk", "step/encode"),
        ("decoder::step over decode_chunk", "step/decode"),
    ]
    lines = []
    for case in cases:
        found = [rows.get(f"{way}/{case}", rows.best, MIB) for _, way in ways]
        lines.append([case, *(cell(r) for r in found[:5]), *(f"{r['ratio']:.2f}" if r else "-" for r in found[5:])])
    return (
        "## Streams, 1 MiB\n\nBoost's chains copy twice more, from the stream into its buffer and from the filter to the device. The last three columns are not ratios to memcpy: one is the ratio to the same "
        "filter with Boost's default buffer of 128 bytes, two are ratios of `step()` in pieces of 64 KiB to one call.\n\n"
        + table(["codec", *(title for title, _ in ways)], lines)
    )


def hdf5(rows, every_row):
    out = [
        "## HDF5, 64 MiB through H5Dwrite and H5Dread\n\nIn memory (core driver), no chunk cache, chunks of 1 and 4 MiB. The no-op filter returns at once: it shows what HDF5 itself costs with any filter. "
        "*n-bit as used*: memory type uint16 or uint8, file type of reduced precision, HDF5 converts. *alone*: both of reduced precision.\n"
    ]
    for kind, title in (
        ("bool", "Random bools"),
        ("8/4", "4 bits in uint8, noise"),
        ("16/12", "12 bits in uint16, noise"),
        ("swap/4", "uint32 to big endian"),
        ("mask", "A mask of discs"),
    ):
        whos = list(
            dict.fromkeys(
                r.get("peer") or r["kernels"]
                for r in every_row
                if r["name"] in (f"hdf5/1MiB/write/{kind}", f"hdf5/4MiB/write/{kind}")
            )
        )
        lines = []
        for who in whos:
            found = [rows.get(f"hdf5/{c}/{d}/{kind}", who, MIB64) for c in ("1MiB", "4MiB") for d in ("write", "read")]
            stored = next((r["stored"] for r in found if r and "stored" in r), None)
            label = f"**zarrbits, {who}**" if who == rows.best else who
            lines.append([label, *map(cell, found), f"{stored:.3f}" if stored else "-"])
        noop = [rows.get(f"hdf5_noop/{c}/{d}/{kind}", rows.best, MIB64) for c in ("1MiB", "4MiB") for d in ("write", "read")]
        if any(noop):
            lines.append(["zarrbits over the no-op filter", *(f"{r['ratio']:.2f}" if r else "-" for r in noop), ""])
        if lines:
            out.append(
                f"### {title}\n\n"
                + table(["filter", "write, 1 MiB", "read, 1 MiB", "write, 4 MiB", "read, 4 MiB", "stored"], lines)
            )
    return "\n".join(out)


def limits(rows):
    lines = []
    for what in ("read", "write", "copy"):
        lines.append([f"limit/{what}", *(cell(rows.get(f"limit/{what}", "plain loop", s)) for s in SIZES)])
    return (
        "## What the machine allows\n\nA loop of vector instructions that only reads, only writes, or copies. A kernel's time is at least that of reading its input and that of writing its output, so that "
        "1 / (share read / limit/read + share written / limit/write) bounds its ratio; for a copy this gives what limit/copy measures. memcpy at 64 KiB may be faster than any loop: glibc uses the "
        "CPU's string instruction there, which writes whole lines without reading them first. The last column of the goals says where a goal is above this bound.\n\n"
        + table(["loop", *map(size_text, SIZES)], lines)
    )


def goal_table(rows, evaluated):
    lines = []
    for goal in evaluated:
        what, who, wanted, reached, slowest = goal
        verdict = "not on this CPU" if reached is None else "met" if reached >= wanted else "**missed**"
        bound = out_of_reach(rows, goal) if verdict == "**missed**" else None
        lines.append(
            [
                what,
                who,
                f"{wanted:g}",
                f"{reached:.3g}" if reached is not None else "-",
                verdict,
                slowest or "",
                f"{bound:.2f}" if bound else "",
            ]
        )
    met = sum(reached is not None and reached >= wanted for _, _, wanted, reached, _ in evaluated)
    measured = sum(reached is not None for _, _, _, reached, _ in evaluated)
    beyond = sum(line[-1] != "" for line in lines)
    above = f"; of those missed, {beyond} are above what this machine's memory allows" if met < measured else ""
    return (
        f"## Goals\n\nThe goals are what prototypes reached on two CPUs (AMD Zen 3, an Intel with AVX-512); on CPUs whose memcpy is faster compared with arithmetic, the ratios are lower. The row is the "
        f"slowest of those that a goal covers. Met here: {met} of {measured}{above}.\n\n"
        + table(["goal", "kernels", "goal", "reached", "", "row", "allowed at most"], lines)
    )


def write(folder, rows, every_row, evaluated):
    memcpy = ", ".join(f"{rows.get('memcpy', 'memcpy', s)['gbps']:.3g} GB/s at {size_text(s)}" for s in SIZES)
    introduction = INTRODUCTION.format(
        date=datetime.date.today().isoformat(), cpu=cpu_model(), tables=", ".join(rows.tables), memcpy=memcpy
    )
    parts = [
        introduction,
        limits(rows),
        kernels(rows),
        streams(rows),
        hdf5(rows, every_row),
        peers(rows, every_row),
        goal_table(rows, evaluated),
    ]
    (folder / "performance.md").write_text("\n".join(parts))
    (folder / "performance.svg").write_text(plot.svg(rows))
