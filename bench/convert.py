# SPDX-License-Identifier: BSL-1.0
"""The converter beside its peers: CPU time (user + system, of the whole process and all its threads) and elapsed time of each way, the ways taking turns."""
import argparse
import json
import pathlib
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

BEGIN, END = "<!-- scripts/bench-convert {}: begin -->", "<!-- scripts/bench-convert {}: end -->"  # of each data
short = 0.5  # seconds
two_processes = "zarrbits, 1 thread, two processes at once"
HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "docs/performance.md"
GZIP = {"compression": "gzip", "compression_opts": 4}
DATA = {
    "deflate": "240 MB of float32 in 960 chunks, shuffle and deflate 4",
    "deflate alone": "the same, deflate 4 without shuffle",
    "bitshuffle lz4": "134 MB of uint32, counts as of an X-ray detector, in 32 chunks, bitshuffle with LZ4",
    "small deflate": "65,536 chunks of 4 KiB of float32, shuffle and deflate 4",
    "uncompressed": "240 MB of float32 in 960 chunks",
    "small chunks": "262,144 chunks of 1 KiB of float32",
}


def make_source(name, path, divisor, python):
    """Measured values: a slow curve and noise in the lower bits; counts. False where it cannot be made."""
    if name == "bitshuffle lz4":
        return bool(python) and subprocess.run([python, str(HERE / "convert_counts.py"), str(path), str(32 // divisor)]).returncode == 0
    rng = np.random.default_rng(1)
    rows = 7680 // divisor
    small = 512 // (2 if divisor > 1 else 1)  # a grid of 512 x 512 chunks
    shape, chunks, options = {
        "deflate": ((rows, 8192), (64, 1024), GZIP | {"shuffle": True}),
        "deflate alone": ((rows, 8192), (64, 1024), GZIP),
        "small deflate": ((small * 16, small * 16), (32, 32), GZIP | {"shuffle": True}),
        "uncompressed": ((rows, 8192), (64, 1024), {}),
        "small chunks": ((small * 16, small * 16), (16, 16), {}),
    }[name]
    n = shape[0] * shape[1]
    data = (np.sin(np.arange(n) / 5000).astype("f4") * 100 + rng.normal(0, 0.01, n).astype("f4")).reshape(shape)
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("x", shape=shape, dtype="f4", chunks=chunks, **options)
        for i in range(0, shape[0], 1024):
            d[i:i + 1024] = data[i:i + 1024]
    return True


def times_of(command):
    """User and system seconds of a process and of those that it waited for, and elapsed seconds; None where it failed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    if done.returncode != 0:
        print(f"failed: {' '.join(map(str, command))}: {done.stderr.strip()[-300:]}")
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def ways(name, arguments):
    """Name of the way -> (command that makes `{out}` from `{in}`, how often at most)."""
    small = name.startswith("small")
    edge = {"small chunks": "256,256", "small deflate": "512,512"}.get(name, "1024,8192")  # of a shard: 16 MB of the first two, 256 KiB and 1 MiB of small ones
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
    if arguments.python:
        all_ways["loop, encoded again"] = (loop + ["again"], few)
        if name == "deflate":
            all_ways["loop, gzip 6"] = (loop + ["gzip"], 2)
        if name != "bitshuffle lz4":
            all_ways["loop, same codecs"] = (loop + ["same"], few)
            all_ways["loop, same codecs, shards"] = (loop + ["same", str(16 if small else 8)], few)
    return all_ways


def measure(name, source, arguments, folder):
    """Rounds in which every way has its turn; after each of ours `cp -r` of what it made. A turn of a short way is several in a row: they are what
    a machine that is shared with others disturbs most."""
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
        if times and way.startswith("zarrbits") and way != two_processes:
            copied = run("cp -r of " + way, ["cp", "-r", str(out), str(copy)])
            stores["cp -r of " + way] = stores[way]
            if copied:
                pairs.setdefault(way, []).append(copied[0] / times[0])
        for path in (out, copy):
            shutil.rmtree(path, ignore_errors=True)
        return times and times[0] < short

    for round_number in range(arguments.rounds):
        for way, (command, most) in ways(name, arguments).items():
            if round_number >= most:
                continue
            command = [c.replace("{in}", str(source)).replace("{out}", str(out)).replace("{copy}", str(copy)) for c in command]
            if once(way, command) and way.startswith("zarrbits"):
                for _ in range(3):
                    once(way, command)
    with h5py.File(source, "r") as f:
        source_bytes = f["x"].id.get_storage_size()
    rows = []
    for way, times in samples.items():
        row = {"data": name, "way": way, "cpu": round(statistics.median(t[0] for t in times), 4), "elapsed": round(statistics.median(t[1] for t in times), 4),
               "samples": len(times), "files": stores[way][0], "bytes": stores[way][1], "source_bytes": source_bytes}
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

    again, native, shards = "loop, encoded again", "zarrbits native", "zarrbits native, shards"
    smaller = ("the source's chunks over the store", 1, row["zarrbits"]["source_bytes"] / row["zarrbits"]["bytes"] if "source_bytes" in row.get("zarrbits", {}) else None)
    if name == "deflate":
        both = ratio("zarrbits, 1 thread", two_processes, "elapsed")
        text = "elapsed: 2 threads over 1" + (f" (two processes at once reach {2 * both:.2f} here)" if both else "")
        return [("default over the loop", 4, ratio(again, "zarrbits")), smaller,
                ("`--compress gzip:6` over the loop with gzip 6", 2, ratio("loop, gzip 6", "zarrbits --compress gzip:6")),
                ("native over the loop with the same codecs", 60, ratio("loop, same codecs", native)), of_cp(native), of_cp(shards),
                (text, 1.8, ratio("zarrbits, 1 thread", "zarrbits, 2 threads", "elapsed"))]
    if name == "deflate alone":
        return [("default over the loop", 6, ratio(again, "zarrbits"))]
    if name == "bitshuffle lz4":
        return [("default over the loop", 5, ratio(again, "zarrbits")), smaller]
    if name == "small deflate":
        return [("default with shards over the loop", 40, ratio(again, "zarrbits, shards")),
                ("default with shards over the loop with shards", 20, ratio("loop, same codecs, shards", "zarrbits, shards"))]
    if name == "uncompressed":
        return [of_cp("zarrbits"), of_cp(native), of_cp(shards)]
    loops = [r for r in row if r.startswith("loop")]
    fastest = min(loops, key=lambda r: row[r]["cpu"]) if loops else ""
    return [("native with shards over the fastest loop", 20, ratio(fastest, shards))]


def table(rows):
    lines = ["| way | CPU seconds | elapsed | files | MB | as fast as `cp -r` of it (CPU) |", "|---|---|---|---|---|---|"]
    for r in rows:
        times = f"{r['of_cp']:.2f}" if "of_cp" in r else "-"
        lines.append(f"| {r['way']} | {r['cpu']:.3g} | {r['elapsed']:.3g} | {r['files']} | {r['bytes'] / 1e6:.4g} | {times} |")
    lines += ["", "| goal | wanted | measured | |", "|---|---|---|---|"]
    for text, wanted, value in goals(rows):
        lines.append(f"| {text} | {wanted} | " + ("- | not measured |" if value is None else f"{value:.3g} | {'met' if value >= wanted else '**missed**'} |"))
    return "\n".join(lines)


def write_page(rows):
    """The part of this data alone; what follows the last of these parts stays."""
    name = rows[0]["data"]
    page, begin, end = PAGE.read_text(), BEGIN.format(name), END.format(name)
    source = f" {rows[0]['source_bytes'] / 1e6:.4g} MB stored." if "source_bytes" in rows[0] else ""
    section = f"{begin}\n### Source: {name}\n\n{DATA[name][0].upper() + DATA[name][1:]}.{source}\n\n{table(rows)}\n{end}\n"
    pattern = re.compile(re.escape(begin) + ".*" + re.escape(end) + "\n", re.S)
    PAGE.write_text(pattern.sub(lambda _: section, page) if pattern.search(page) else page.rstrip("\n") + "\n\n" + section)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--folder")
    parser.add_argument("--only", action="append", choices=DATA, help="one of the sources; may be given again")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-page", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 1
    if not arguments.python:
        print("SKIPPED: the loops: there is no zarr-python")
    everything = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = pathlib.Path(temporary)
        for name in arguments.only or DATA:
            source = folder / "in.h5"
            if not make_source(name, source, 8 if arguments.quick else 1, arguments.python):
                print(f"SKIPPED: {name}: its source could not be made")
                continue
            rows = measure(name, source, arguments, folder)
            source.unlink()
            everything += rows
            print(f"{name}: {DATA[name]}\n\n{table(rows)}\n", flush=True)
            if not arguments.quick and not arguments.no_page:
                write_page(rows)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
