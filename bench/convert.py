# SPDX-License-Identifier: BSL-1.0
"""The converter beside its peers: CPU time (user + system, of the whole process and all its threads)
and elapsed time of each way, the ways taking turns."""

import argparse
import json
import pathlib
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py

from convert_sources import DATA, TREES, make_source

short = 0.5  # seconds
XARRAY = "import sys, xarray; xarray.open_dataset(sys.argv[1], engine='h5netcdf', phony_dims='sort').to_zarr(sys.argv[2])"
verify = "zarrbits verify"
two_processes = "zarrbits, 1 thread, two processes at once"
HERE = pathlib.Path(__file__).parent


def times_of(command):
    """User and system seconds of a process and of the processes that it waited for, and elapsed seconds; None if it failed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    if done.returncode != 0:
        print(f"failed: {' '.join(map(str, command))}: {done.stderr.strip()[-300:]}")
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def ways(name, arguments):
    """Name of the way -> (command that makes `{out}` from `{in}`, how often at most[, command before it]).
    A way that compares a store makes it first."""
    small = name.startswith("small")
    edge = {"small chunks": "256,256", "small deflate": "512,512"}.get(
        name, "1024,8192"
    )  # of a shard: 16 MB of the first two, 256 KiB and 1 MiB of small ones
    zarrbits = [arguments.command, "convert", "--quiet", "{in}", "{out}"]
    loop = [arguments.python, str(HERE / "convert_loop.py"), "{in}", "{out}"]
    few = 1 if small else 99
    copied = name in ("deflate", "uncompressed", "small chunks")
    all_ways = {"zarrbits": (zarrbits, 99)}
    if copied:
        all_ways["zarrbits native"] = (zarrbits + ["--profile", "native"], 99)
    if copied:
        all_ways["zarrbits native, shards"] = (zarrbits + ["--profile", "native", "--shard", edge], 99)
    if name == "small deflate":
        all_ways["zarrbits, shards"] = (zarrbits + ["--shard", edge], 99)
    if name == "deflate":
        all_ways["zarrbits --compress gzip:6"] = (zarrbits + ["--compress", "gzip:6"], 99)
        all_ways["zarrbits, 1 thread"] = (zarrbits + ["--threads", "1"], 99)
        all_ways["zarrbits, 2 threads"] = (zarrbits + ["--threads", "2"], 99)
        # what two threads can reach on this machine, which may be two of one core
        one = shlex.join(zarrbits + ["--threads", "1"])
        all_ways[two_processes] = (["sh", "-c", f"{one.replace('{out}', '{copy}')} & {one} && wait"], 99)
    if name == "deflate":
        all_ways[verify] = ([arguments.command, "verify", "{in}", "{out}"], 99, zarrbits)
    if arguments.python:
        all_ways["loop that encodes"] = (loop + ["again"], few)
        if name == "deflate":
            all_ways["loop, gzip 6"] = (loop + ["gzip"], 2)
            all_ways["xarray's to_zarr"] = ([arguments.python, "-c", XARRAY, "{in}", "{out}"], 3)
            all_ways["loop that compares"] = (
                [arguments.python, str(HERE / "convert_tree.py"), "compare", "{in}", "{out}"],
                3,
                zarrbits,
            )
        if name != "bitshuffle lz4":
            all_ways["loop, same codecs"] = (loop + ["same"], few)
            all_ways["loop, same codecs, shards"] = (loop + ["same", str(16 if small else 8)], few)
    return all_ways


def ways_of_trees(name, arguments):
    """The same, of whole files."""
    convert = [arguments.command, "convert", "--quiet", "{in}", "{out}"]
    all_ways = {"zarrbits": (convert, 99), verify: ([arguments.command, "verify", "{in}", "{out}"], 99, convert)}
    if arguments.python:
        tree = [arguments.python, str(HERE / "convert_tree.py")]
        few = 1 if name == "datasets" else 2
        all_ways["loop"] = (tree + ["copy", "{in}", "{out}"], few)
        if name != "table":  # its columns are arrays of their own
            all_ways["loop that compares"] = (tree + ["compare", "{in}", "{out}"], few, convert)
    return all_ways


def measure(name, source, arguments, folder):
    """Rounds in which every way has its turn; after each of ours follows `cp -r` of its store.
    A turn of a short way is several runs in a row:
    other users of the machine disturb short ways most."""
    samples, stores, pairs = {}, {}, {}
    out, copy = folder / "out.zarr", folder / "copy"

    def run(way, command):
        times = times_of(command)
        if times:
            samples.setdefault(way, []).append(times)
        return times

    def once(way, command):
        times = run(way, command)
        if times:
            files = [p for p in out.rglob("*") if p.is_file()]
            stores[way] = (len(files), sum(p.stat().st_size for p in files if p.name != "zarr.json"))
        if times and name not in TREES and way.startswith("zarrbits") and way not in (two_processes, verify):
            copied = run("cp -r of " + way, ["cp", "-r", str(out), str(copy)])
            stores["cp -r of " + way] = stores[way]
            if copied:
                pairs.setdefault(way, []).append(copied[0] / times[0])
        for path in (out, copy):
            shutil.rmtree(path, ignore_errors=True)
        return times and times[0] < short

    def filled_in(command):
        return [c.replace("{in}", str(source)).replace("{out}", str(out)).replace("{copy}", str(copy)) for c in command]

    for round_number in range(arguments.rounds):
        for way, (command, most, *before) in (ways_of_trees if name in TREES else ways)(name, arguments).items():
            if round_number >= most:
                continue
            if before:
                subprocess.run(filled_in(before[0]), check=True)
            if once(way, filled_in(command)) and not before and way.startswith("zarrbits"):
                for _ in range(3):
                    once(way, filled_in(command))
    if name in TREES:
        source_bytes = source.stat().st_size
    else:
        with h5py.File(source, "r") as f:
            source_bytes = f["x"].id.get_storage_size()
    rows = []
    for way, times in samples.items():
        row = {
            "data": name,
            "way": way,
            "cpu": round(statistics.median(t[0] for t in times), 4),
            "elapsed": round(statistics.median(t[1] for t in times), 4),
            "samples": len(times),
            "files": stores[way][0],
            "bytes": stores[way][1],
            "source_bytes": source_bytes,
        }
        if way in pairs:
            row["of_cp"] = round(statistics.median(pairs[way]), 4)  # of each and the `cp -r` that came next
        rows.append(row)
    return rows


def goals(rows):
    """Of one data: (text, wanted, measured or None)"""
    name = rows[0]["data"]
    row = {r["way"]: r for r in rows}

    def ratio(other, way, key="cpu"):
        return row[other][key] / row[way][key] if other in row and way in row else None

    def of_cp(way):
        return (f"{way}, of `cp -r`", 0.8, row.get(way, {}).get("of_cp"))

    again, native, shards = "loop that encodes", "zarrbits native", "zarrbits native, shards"
    smaller = (
        "the source's chunks over the store",
        1,
        row["zarrbits"]["source_bytes"] / row["zarrbits"]["bytes"] if row.get("zarrbits", {}).get("bytes") else None,
    )
    if name == "deflate":
        both = ratio("zarrbits, 1 thread", two_processes, "elapsed")
        text = "elapsed: 2 threads over 1" + (f" (two processes at once reach {2 * both:.2f} here)" if both else "")
        return [
            ("default over the loop", 4, ratio(again, "zarrbits")),
            smaller,
            ("default over xarray's to_zarr", 4, ratio("xarray's to_zarr", "zarrbits")),
            ("verify over a loop that compares", 2, ratio("loop that compares", verify)),
            ("`--compress gzip:6` over the loop with gzip 6", 2, ratio("loop, gzip 6", "zarrbits --compress gzip:6")),
            ("native over the loop with the same codecs", 60, ratio("loop, same codecs", native)),
            of_cp(native),
            of_cp(shards),
            (text, 1.8, ratio("zarrbits, 1 thread", "zarrbits, 2 threads", "elapsed")),
        ]
    if name == "deflate alone":
        return []  # each stream is inflated once, for gzip's CRC-32, which leaves no ratio to ask for
    if name == "bitshuffle lz4":
        return [("default over the loop", 5, ratio(again, "zarrbits")), smaller]
    if name == "small deflate":
        return [
            ("default with shards over the loop", 40, ratio(again, "zarrbits, shards")),
            ("default with shards over the loop with shards", 20, ratio("loop, same codecs, shards", "zarrbits, shards")),
        ]
    if name in TREES:
        return [("zarrbits over the loop", 5, ratio("loop", "zarrbits"))] + (
            [("verify over a loop that compares", 2, ratio("loop that compares", verify))] if name != "table" else []
        )
    if name == "uncompressed":
        return [of_cp("zarrbits"), of_cp(native), of_cp(shards)]
    loops = [r for r in row if r.startswith("loop")]
    fastest = min(loops, key=lambda r: row[r]["cpu"]) if loops else ""
    return [("native with shards over the fastest loop", 20, ratio(fastest, shards))]


def table(rows):
    if rows[0]["data"] in TREES:
        lines = ["| way | CPU seconds | elapsed |", "|---|---|---|"] + [
            f"| {r['way']} | {r['cpu']:.3g} | {r['elapsed']:.3g} |" for r in rows
        ]
        return "\n".join(lines + goal_lines(rows))
    lines = ["| way | CPU seconds | elapsed | files | MB | as fast as `cp -r` of it (CPU) |", "|---|---|---|---|---|---|"]
    for r in rows:
        times = f"{r['of_cp']:.2f}" if "of_cp" in r else "-"
        lines.append(f"| {r['way']} | {r['cpu']:.3g} | {r['elapsed']:.3g} | {r['files']} | {r['bytes'] / 1e6:.4g} | {times} |")
    return "\n".join(lines + goal_lines(rows))


def goal_lines(rows):
    lines = ["", "| goal | wanted | measured | |", "|---|---|---|---|"]
    if not goals(rows):
        return []
    for text, wanted, value in goals(rows):
        lines.append(
            f"| {text} | {wanted} | "
            + ("- | not measured |" if value is None else f"{value:.3g} | {'met' if value >= wanted else '**missed**'} |")
        )
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--folder")
    parser.add_argument("--only", action="append", choices=DATA | TREES, help="one of the sources; can be repeated")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 1
    if not arguments.python:
        print("SKIPPED: the loops: there is no zarr-python")
    everything = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = pathlib.Path(temporary)
        for name in arguments.only or DATA | TREES:
            source = folder / "in.h5"
            if not make_source(name, source, 8 if arguments.quick else 1, arguments.python):
                print(f"SKIPPED: {name}: its source could not be made")
                continue
            rows = measure(name, source, arguments, folder)
            source.unlink()
            everything += rows
            print(f"{name}: {(DATA | TREES)[name]}\n\n{table(rows)}\n", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
