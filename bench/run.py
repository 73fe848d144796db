# SPDX-License-Identifier: BSL-1.0
"""Runs the benchmark programs of a build, several times each, and takes medians. scripts/bench calls it; see there."""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import goals
import page

ROOT = Path(__file__).resolve().parent.parent
DEBIAN_PLUGINS = "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins"


def merge(runs):
    """Rows of several runs of one program: medians, in the order of the first."""
    by_key = collections.defaultdict(list)
    for rows in runs:
        for r in rows:
            by_key[r["name"], r.get("kernels"), r.get("peer"), r["bytes"]].append(r)
    merged = []
    for same in by_key.values():
        same = [
            r for r in same if not r.pop("disturbed", False)
        ] or same  # drop samples that other users of the machine disturbed
        row = dict(same[0])
        for figure in ("gbps", "ratio"):
            row[figure] = float(f"{statistics.median(r[figure] for r in same):.4g}")
        merged.append(row)
    return merged


def run(command, times, environment=None, may_fail=False):
    """`may_fail`: a peer that is missing or broken does not stop the rest."""
    runs = []
    for _ in range(times):
        with tempfile.NamedTemporaryFile(suffix=".json") as target:
            command_line = [c.replace("{json}", target.name) for c in command]
            try:
                failed = subprocess.run(command_line, env={**os.environ, **(environment or {})}).returncode != 0
            except OSError as e:
                print(e)
                failed = True
            if failed and may_fail:
                print(f"SKIPPED: {command_line[0]} failed")
                return []
            if failed:
                sys.exit(f"scripts/bench: {command_line[0]} failed")
            runs.append(json.load(target))
    return merge(runs)


def measure(binaries, quick, hdf5, zarrs, arrow):
    def program(name):
        return str(binaries / "bin" / f"bench_{name}")

    flags = ["--quick"] if quick else []
    small, large = ["--sizes=65536,1048576"], ["--sizes=67108864"]

    def ours(name, times):
        # 64 MiB is the same in every process: it lies in no cache
        rows = run([program(name), "--json", "{json}", *flags, *small], times)
        return rows + run([program(name), "--json", "{json}", *flags, *large], 1 if quick else 2)

    def say(what):
        print(f"measuring {what}", flush=True)

    say("the kernels")
    rows = ours("kernels", 3 if quick else 5)
    say("streams")
    rows += ours("streams", 1 if quick else 3)
    say("peers")
    rows += ours("peers", 1 if quick else 3)
    library = str(binaries / "bin" / "libzarrbits_bench_base.so")
    rows += run(["/usr/bin/python3", str(ROOT / "bench/peers.py"), library, "{json}", *flags], 1 if quick else 3, may_fail=True)
    if arrow:
        rows += run([arrow, str(ROOT / "bench/peers_arrow.py"), library, "{json}", *flags], 1 if quick else 3, may_fail=True)
    if zarrs:
        rows += run([zarrs, "{json}", *flags], 1 if quick else 3, may_fail=True)
    if hdf5:
        say("the HDF5 filters")
        path = f"{binaries / 'plugins'}" + (f":{DEBIAN_PLUGINS}" if os.path.isdir(DEBIAN_PLUGINS) else "")
        rows += run([program("hdf5"), "--json", "{json}", *flags], 1, {"HDF5_PLUGIN_PATH": path})
    return add_memcpy(rows)


def add_memcpy(rows):
    """The base as rows of its own: what most of the others were compared with."""
    speeds = collections.defaultdict(list)
    for r in rows:
        if "base" not in r and r["ratio"] > 0.05 and "kernels" in r:
            speeds[r["bytes"]].append(r["gbps"] / r["ratio"])
    return [
        {"name": "memcpy", "peer": "memcpy", "bytes": n, "gbps": float(f"{statistics.median(v):.4g}"), "ratio": 1.0}
        for n, v in speeds.items()
    ] + rows


def size_text(n):
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB"


def print_rows(rows):
    print(f"{'name':34} {'by':26} {'size':>7} {'GB/s':>8}  ratio")
    for r in rows:
        note = f"  to {r['base']}" if "base" in r else ""
        stored = f"  stored as {r['stored']:.3f}" if "stored" in r else ""
        print(
            f"{r['name']:34} {r.get('kernels') or r['peer']:26} {size_text(r['bytes']):>7} {r['gbps']:8.4g}  "
            f"{r['ratio']:.3g}{note}{stored}"
        )


def print_goals(rows, evaluated):
    met = measured = unreachable = 0
    print(f"{'goal':58} {'kernels':9} {'goal':>5} {'reached':>8}")
    for what, table, goal, reached, slowest in evaluated:
        if reached is None:
            print(f"{what:58} {table:9} {goal:5g} {'-':>8}  not measured: not on this CPU, or left out")
            continue
        good = reached >= goal
        met += good
        measured += 1
        bound = None if good else goals.out_of_reach(rows, (what, table, goal, reached, slowest))
        unreachable += bound is not None
        limit = f", of {bound:.2f} that this machine's memory allows" if bound else ""
        print(f"{what:58} {table:9} {goal:5g} {reached:8.3g}  {'met' if good else 'MISSED'} ({slowest}{limit})")
    if measured < len(evaluated):
        print(f"goals not measured here: {len(evaluated) - measured}")
    if unreachable:
        print(f"missed goals above what a loop that reads the input and writes the output reaches on this machine: {unreachable}")
    print(f"goals met: {met} of {measured}")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--quick", action="store_true", help="fewer samples; writes no performance.md")
    parser.add_argument("--hdf5", action="store_true", help="the HDF5 filters too (always without --quick)")
    parser.add_argument("--json", metavar="FILE", help="the rows: name, kernels or peer, bytes, gbps, ratio")
    parser.add_argument("--rows", metavar="FILE", help="measures nothing, takes the rows from such a file")
    parser.add_argument("--build", metavar="FOLDER", default=str(ROOT / "build/bench"), help="what to run (default: build/bench)")
    parser.add_argument("--zarrs", metavar="PROGRAM", help="bench/zarrs, where it could be built")
    parser.add_argument("--arrow", metavar="PYTHON", help="a Python that has pyarrow")
    arguments = parser.parse_args()

    if arguments.rows:
        with open(arguments.rows) as f:
            rows = json.load(f)
    else:
        rows = measure(
            Path(arguments.build), arguments.quick, arguments.hdf5 or not arguments.quick, arguments.zarrs, arguments.arrow
        )
    if arguments.json:
        with open(arguments.json, "w") as f:
            f.write("[\n" + ",\n".join(" " + json.dumps(r) for r in rows) + "\n]\n")
    by_name = goals.Rows(rows)
    evaluated = goals.evaluate(by_name) + goals.evaluate_hdf5(by_name)
    print_rows(rows)
    print()
    if not arguments.quick:
        page.write(ROOT / "build/bench", by_name, rows, evaluated)
        print("wrote build/bench/performance.md and build/bench/performance.svg")
    print_goals(by_name, evaluated)


if __name__ == "__main__":
    main()
