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

BEGIN, END = "<!-- scripts/bench-convert: begin -->", "<!-- scripts/bench-convert: end -->"
short = 0.5  # seconds
two_processes = "zarrbits recode, 1 thread, two processes at once"
PAGE = pathlib.Path(__file__).parent.parent / "docs/performance.md"


def make_sources(folder, divisor):
    """Measured values: a slow curve and noise in the lower bits. Three files: compressed, uncompressed, and of small chunks."""
    rng = np.random.default_rng(1)

    def curve(shape):
        return (np.sin(np.arange(shape[0] * shape[1]) / 5000).astype("f4") * 100 + rng.normal(0, 0.01, shape[0] * shape[1]).astype("f4")).reshape(shape)

    rows = 7680 // divisor  # 240 MB in 960 chunks of 256 kB
    small = 512 // (2 if divisor > 1 else 1)  # a grid of 512 x 512 chunks
    sources = {}
    for name, shape, chunks, options in (("deflate", (rows, 8192), (64, 1024), {"compression": "gzip", "compression_opts": 4, "shuffle": True}),
                                         ("uncompressed", (rows, 8192), (64, 1024), {}),
                                         ("small chunks", (small * 16, small * 16), (16, 16), {})):
        path = folder / (name.replace(" ", "-") + ".h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("x", shape=shape, dtype="f4", chunks=chunks, **options)
            data = curve(shape)
            for i in range(0, shape[0], 1024):
                d[i:i + 1024] = data[i:i + 1024]
        sources[name] = path
    return sources


def times_of(command):
    """User and system seconds of a process and of those that it waited for, and elapsed seconds; None where it failed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    if done.returncode != 0:
        print(f"failed: {' '.join(map(str, command))}: {done.stderr.strip()[-300:]}")
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def ways(name, arguments, options_known):
    """Name of the way -> (command that makes `{out}` from `{in}`, how often at most)."""
    shard = 16  # chunks along each dimension: 4 x 16 MB of the first two, 256 KiB of small ones
    edge = {"small chunks": "256,256"}.get(name, "1024,8192")
    zarrbits = [arguments.command, "convert", "--quiet", "{in}", "{out}"]
    loop = [arguments.python, str(pathlib.Path(__file__).parent / "convert_loop.py"), "{in}", "{out}"]
    few = 1 if name == "small chunks" else 99
    all_ways = {"zarrbits": (zarrbits, 99)}
    if "--profile" in options_known:
        all_ways["zarrbits native"] = (zarrbits + ["--profile", "native"], 99)
    if "--shard" in options_known:
        all_ways["zarrbits native, shards"] = (zarrbits + ["--profile", "native", "--shard", edge], 99)
    if "--threads" in options_known and "--profile" in options_known and name == "deflate":
        all_ways["zarrbits recode, 1 thread"] = (zarrbits + ["--profile", "recode", "--threads", "1"], 99)
        all_ways["zarrbits recode, 2 threads"] = (zarrbits + ["--profile", "recode", "--threads", "2"], 99)
        # what two threads can reach on this machine, which may be two of one core
        one = shlex.join(zarrbits + ["--profile", "recode", "--threads", "1"])
        all_ways[two_processes] = (["sh", "-c", f"{one.replace('{out}', '{copy}')} & {one} && wait"], 99)
    if arguments.python:
        all_ways["loop, same codecs"] = (loop + ["same"], few)
        all_ways["loop, encoded again"] = (loop + ["again"], few)
        all_ways["loop, same codecs, shards"] = (loop + ["same", str(shard if name == "small chunks" else 8)], few)
    return all_ways


def measure(name, source, arguments, folder, options_known):
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
            stores[way] = (len(files), sum(p.stat().st_size for p in files))
        if times and way.startswith("zarrbits") and way != two_processes:
            copied = run("cp -r of " + way, ["cp", "-r", str(out), str(copy)])
            stores["cp -r of " + way] = stores[way]
            if copied:
                pairs.setdefault(way, []).append(copied[0] / times[0])
        for path in (out, copy):
            shutil.rmtree(path, ignore_errors=True)
        return times and times[0] < short

    for round_number in range(arguments.rounds):
        for way, (command, most) in ways(name, arguments, options_known).items():
            if round_number >= most:
                continue
            command = [c.replace("{in}", str(source)).replace("{out}", str(out)).replace("{copy}", str(copy)) for c in command]
            if once(way, command) and way.startswith("zarrbits"):
                for _ in range(3):
                    once(way, command)
    rows = []
    for way, times in samples.items():
        row = {"data": name, "way": way, "cpu": round(statistics.median(t[0] for t in times), 4), "elapsed": round(statistics.median(t[1] for t in times), 4),
               "samples": len(times), "files": stores[way][0], "bytes": stores[way][1]}
        if way in pairs:
            row["of_cp"] = round(statistics.median(pairs[way]), 4)  # of each and the `cp -r` that came next
        rows.append(row)
    return rows


def goals(rows):
    """(text, wanted, measured or None)"""
    cpu = {(r["data"], r["way"]): r["cpu"] for r in rows}
    elapsed = {(r["data"], r["way"]): r["elapsed"] for r in rows}

    def ratio(data, other, way, times=cpu):
        a, b = times.get((data, other)), times.get((data, way))
        return a / b if a and b else None

    found = []
    native, shards = "zarrbits native", "zarrbits native, shards"
    for data, way in (("deflate", native), ("deflate", shards), ("uncompressed", "zarrbits"), ("uncompressed", native), ("uncompressed", shards)):
        found.append((f"{data}: {way}, of `cp -r`", 0.8, next((r.get("of_cp") for r in rows if (r["data"], r["way"]) == (data, way)), None)))
    found.append(("deflate: native over the loop with the same codecs", 60, ratio("deflate", "loop, same codecs", native)))
    loops = [cpu[k] for k in cpu if k[0] == "small chunks" and k[1].startswith("loop")]
    fastest = min(loops) if loops else None
    ours = cpu.get(("small chunks", shards))
    found.append(("small chunks: native with shards over the fastest loop", 20, fastest / ours if fastest and ours else None))
    both = ratio("deflate", "zarrbits recode, 1 thread", two_processes, elapsed)
    text = "deflate: recode, elapsed: 2 threads over 1" + (f" (two processes at once reach {2 * both:.2f} here)" if both else "")
    found.append((text, 1.8, ratio("deflate", "zarrbits recode, 1 thread", "zarrbits recode, 2 threads", elapsed)))
    return found


def table(rows):
    lines = ["| data | way | CPU seconds | elapsed | files | MB | as fast as `cp -r` of it (CPU) |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        times = f"{r['of_cp']:.2f}" if "of_cp" in r else "-"
        lines.append(f"| {r['data']} | {r['way']} | {r['cpu']:.3g} | {r['elapsed']:.3g} | {r['files']} | {r['bytes'] / 1e6:.0f} | {times} |")
    lines += ["", "| goal | wanted | measured | |", "|---|---|---|---|"]
    for text, wanted, value in goals(rows):
        lines.append(f"| {text} | {wanted} | " + ("- | not measured |" if value is None else f"{value:.3g} | {'met' if value >= wanted else '**missed**'} |"))
    return "\n".join(lines)


def write_page(text, folder):
    page = PAGE.read_text()
    command = "scripts/bench-convert" + (f" --folder {folder}" if folder else "")
    section = (f"{BEGIN}\n## Conversion\n\n`{command}`: CPU seconds (user and system, all threads; median) and elapsed seconds to make a Zarr store from an HDF5 file: "
               "240 MB of float32 in 960 chunks, with shuffle and deflate and without, and 262,144 chunks of 1 KiB. The loops are h5py and zarr-python, "
               f"with the codecs of the source or with zarr-python's own; the ways of each data in turns (the loops on small chunks, which take a quarter of an hour, once). The last column is the median of pairs: a conversion and the `cp -r` after it.\n\n{text}\n{END}\n")
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END) + "\n", re.S)
    PAGE.write_text(pattern.sub(lambda _: section, page) if pattern.search(page) else page.rstrip("\n") + "\n\n" + section)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--folder")
    parser.add_argument("--only", action="append", help="one of the three sources")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-page", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 1
    usage = subprocess.run([arguments.command, "convert", "--help"], capture_output=True, text=True).stdout
    options_known = {o for o in ("--profile", "--shard", "--threads") if o in usage}
    for option in ("--profile", "--shard"):
        if option not in options_known:
            print(f"SKIPPED: {option}: this zarrbits has none")
    if not arguments.python:
        print("SKIPPED: the loops: there is no zarr-python")
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = pathlib.Path(temporary)
        for name, source in make_sources(folder, 8 if arguments.quick else 1).items():
            if not arguments.only or name in arguments.only:
                rows += measure(name, source, arguments, folder, options_known)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    text = table(rows)
    print(text)
    if not arguments.quick and not arguments.no_page and not arguments.only:
        write_page(text, arguments.folder)


if __name__ == "__main__":
    sys.exit(main())
