# SPDX-License-Identifier: BSL-1.0
"""Files on a server, by HTTP: requests, bytes, elapsed time and CPU time (user + system, of the whole process and its threads) of
zarrbits and its peers. The server is that of the tests, on this machine; each request waits as long as a distant one would.

--small: files of a twentieth, for CI: the goals of requests and bytes hold there, too; times say little.
--count: one run of each, without a delay, and a table of requests and bytes alone, which are the same on a busy machine."""

import argparse
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/convert"))

from http_server import Server  # noqa: E402

OURS = ("zarrbits plan", "zarrbits --virtual", "zarrbits, native", "zarrbits")
CURL = "curl to a file"
TITLES = {
    "paged": "netCDF-4 in pages of 4 MiB (cloud-optimised)",
    "scattered": "{n} variables, metadata all over",
    "chunks": "{n} small chunks",
    "sparse": "{n} of 4,000 chunks written",
}


# Files


def noise(rng, shape):
    """Values of which deflate stores about three quarters."""
    return (rng.random(shape, dtype="f4") * 1000).astype("f4").round(2)


def netcdf(f):
    f.attrs["_NCProperties"] = np.bytes_("version=2,netcdf=4.9.2,hdf5=1.14.3")


def make_paged(path, small):
    """Four variables over time, lat and lon."""
    rng, times = np.random.default_rng(1), 8 if small else 56
    with h5py.File(path, "w", fs_strategy="page", fs_page_size=4 << 20, fs_persist=True) as f:
        netcdf(f)
        sizes = {"time": times, "lat": 361, "lon": 720} if not small else {"time": times, "lat": 181, "lon": 360}
        for i, (name, size) in enumerate(sizes.items()):
            f.create_dataset(name, data=np.linspace(0, 1, size))
            f[name].make_scale(name)
            f[name].attrs["_Netcdf4Dimid"] = i
        for name in ("t2m", "u10", "v10", "sp"):
            how = {"chunks": (1, *list(sizes.values())[1:]), "compression": "gzip", "compression_opts": 4, "shuffle": True}
            v = f.create_dataset(name, tuple(sizes.values()), "f4", **how)
            v.attrs["long_name"] = "a variable over time, latitude and longitude"
            for i, dimension in enumerate(sizes):
                v.dims[i].attach_scale(f[dimension])
            for i in range(times):
                v[i] = noise(rng, v.shape[1:])
    return 4


def make_scattered(path, small):
    """Each variable is written when those before are complete: its header, attributes and index of chunks lie between values."""
    rng, variables = np.random.default_rng(2), 20 if small else 400
    with h5py.File(path, "w") as f:
        for i in range(variables):
            v = f.create_dataset(f"v{i:03}", (8, 100, 100), "f4", chunks=(1, 100, 100), compression="gzip", shuffle=True)
            for j in range(12):
                v.attrs[f"attribute {j}"] = f"what it says of {i}: " + "x" * 60
            for j in range(8):
                v[j] = noise(rng, (100, 100))
    return variables


def make_chunks(path, small):
    rng, count = np.random.default_rng(3), 500 if small else 10_000
    with h5py.File(path, "w") as f:
        v = f.create_dataset("x", (count, 1024), "f4", chunks=(1, 1024), compression="gzip", shuffle=True)
        for first in range(0, count, 100):
            v[first : first + 100] = noise(rng, (100, 1024))
    return count


def make_sparse(path, small):
    """Most chunks of each variable were never written."""
    rng, every = np.random.default_rng(4), 40 if small else 4
    with h5py.File(path, "w") as f:
        for i in range(4):
            v = f.create_dataset(f"v{i}", (1000, 100, 100), "f4", chunks=(1, 100, 100), compression="gzip", shuffle=True)
            for j in range(0, 1000, every):
                v[j] = noise(rng, (100, 100))
    return 4 * len(range(0, 1000, every))


MAKE = {"paged": make_paged, "scattered": make_scattered, "chunks": make_chunks, "sparse": make_sparse}


# Peers: programs with the arguments WHAT URL OUT. What they print is the seconds that they took after their imports.

CLOCK = "import time; begin = time.monotonic()\n"
TELL = "\nprint(time.monotonic() - begin)\n"
H5PY = """
def walk(f):
    '''All metadata: attributes, and where the chunks are.'''
    def visit(name, o):
        dict(o.attrs)
        if isinstance(o, h5py.Dataset) and o.chunks:
            where = []
            o.id.chunk_iter(where.append) if hasattr(o.id, "chunk_iter") else o.id.get_num_chunks()
    f.visititems(visit)

def copy(f, out):
    '''All values, a step along the first dimension at a time; to Zarr, where there is an `out`.'''
    for name, d in f.items():
        step = max(1, (d.chunks or d.shape)[0], 100 if d.chunks and d.size // d.shape[0] < 5000 else 1)
        a = out and out.create_array(name, shape=d.shape, dtype=d.dtype, chunks=d.chunks or "auto")
        for i in range(0, d.shape[0], step):
            values = d[i : i + step]
            if out:
                a[i : i + step] = values
        if out:
            a.attrs.update({k: v for k, v in d.attrs.items() if isinstance(v, str)})

what, url, target = sys.argv[1:]
with opened(url) as f:
    walk(f) if what == "plan" else copy(f, zarr and zarr.open_group(target, mode="w"))
"""
FSSPEC = (
    """
import sys, fsspec, h5py, zarr
"""
    + CLOCK
    + """
def opened(url):
    return h5py.File(fsspec.filesystem("http").open(url{how}), "r")
"""
    + H5PY
    + TELL
)
H5NETCDF = (
    """
import sys, fsspec, xarray as xr
"""
    + CLOCK
    + """
what, url, out = sys.argv[1:]
with fsspec.filesystem("http").open(url) as file:
    ds = xr.open_dataset(file, engine="h5netcdf", decode_cf=False, phony_dims="access", chunks=None)
    if what == "convert":
        for v in ds.variables.values():
            v.encoding = {}
        ds.to_zarr(out, zarr_format=3, consolidated=False)
"""
    + TELL
)
ROS3 = (
    """
import sys, h5py
"""
    + CLOCK
    + """
zarr = None
def opened(url):
    return h5py.File(url, "r", driver="ros3")
"""
    + H5PY
    + TELL
)
VIRTUALIZARR = (
    """
import sys, xarray as xr
from obstore.store import HTTPStore
from virtualizarr import open_virtual_dataset
from virtualizarr.parsers import HDFParser
try:
    from obspec_utils.registry import ObjectStoreRegistry
except ImportError:
    from virtualizarr.registry import ObjectStoreRegistry
"""
    + CLOCK
    + """
what, url, out = sys.argv[1:]
server = url.rpartition("/")[0]
registry = ObjectStoreRegistry({server: HTTPStore.from_url(server, client_options={"allow_http": True})})
if what == "convert":
    ds = xr.open_zarr(HDFParser()(url=url, registry=registry), consolidated=False, zarr_format=3, decode_cf=False, chunks=None)
    for v in ds.variables.values():
        v.encoding = {}
    ds.to_zarr(out, zarr_format=3, consolidated=False)
else:
    ds = open_virtual_dataset(url, registry=registry, parser=HDFParser(), loadable_variables=[], decode_times=False)
    if what == "virtual":
        ds.vz.to_kerchunk(out, format="json")
"""
    + TELL
)
KERCHUNK = (
    """
import sys, json
from kerchunk.hdf import SingleHdf5ToZarr
"""
    + CLOCK
    + """
what, url, out = sys.argv[1:]
json.dump(SingleHdf5ToZarr(url, inline_threshold=0).translate(), open(out, "w"))
"""
    + TELL
)


def has(python, modules):
    return python and subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode == 0


def ways(arguments):
    """{task: {name: command with {url} and {out}}}"""
    zarrbits = [arguments.command, "convert", "--quiet", "{url}", "{out}"]
    tasks = {
        "plan": {"zarrbits plan": [arguments.command, "plan", "--json", "{url}"]},
        "virtual": {"zarrbits --virtual": [*zarrbits[:-1], "{out}.json", "--virtual"]},
        "convert": {"zarrbits, native": [*zarrbits, "--profile", "native"], "zarrbits": zarrbits},
    }
    python, skipped = [arguments.python, "-W", "ignore", "-c"], []
    if has(arguments.python, "fsspec, aiohttp, h5py, zarr"):
        for name, how in (("", ""), (", blocks of 4 MiB", ", cache_type='blockcache', block_size=4 << 20")):
            for task in ("plan", "convert"):
                program = FSSPEC.replace("{how}", how)
                tasks[task]["h5py over fsspec" + name] = [*python, program, task, "{url}", "{out}"]
    else:
        skipped.append("h5py over fsspec")
    if has(arguments.python, "h5netcdf, fsspec, aiohttp, xarray, zarr"):
        for task in ("plan", "convert"):
            tasks[task]["h5netcdf over fsspec"] = [*python, H5NETCDF, task, "{url}", "{out}"]
    else:
        skipped.append("h5netcdf over fsspec")
    if has(arguments.python, "virtualizarr, obstore, xarray"):
        for task in tasks:
            out = "{out}.json" if task == "virtual" else "{out}"
            tasks[task]["VirtualiZarr, obstore"] = [*python, VIRTUALIZARR, task, "{url}", out]
    else:
        skipped.append("VirtualiZarr")
    if has(arguments.python, "kerchunk.hdf, aiohttp"):
        tasks["virtual"]["kerchunk"] = [*python, KERCHUNK, "virtual", "{url}", "{out}.json"]
    else:
        skipped.append("kerchunk")
    ros3 = "h5py, sys; sys.exit('ros3' not in h5py.registered_drivers())"
    for candidate in dict.fromkeys((arguments.python, sys.executable, "/usr/bin/python3")):
        if has(candidate, ros3):
            tasks["plan"]["h5py, ros3"] = [candidate, "-c", ROS3, "plan", "{url}", "{out}"]
            tasks["convert"]["h5py, ros3 (reads only)"] = [candidate, "-c", ROS3, "convert", "{url}", "{out}"]
            break
    else:
        skipped.append("h5py over ros3")
    if shutil.which("curl"):
        tasks["convert"][CURL] = ["curl", "--silent", "--fail", "--output", "{out}", "{url}"]
    else:
        skipped.append("curl")
    for name in skipped:
        print(f"SKIPPED: {name}: {arguments.python or 'there is no --python, and that'} does not have it", file=sys.stderr)
    return tasks


# Measurements


def remove(path):
    for one in path.parent.glob(path.name + "*"):
        shutil.rmtree(one) if one.is_dir() else one.unlink()


def run(command, limit):
    """(elapsed, elapsed after Python's imports, CPU) in seconds, or why there is no such."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, env=environment)
    except subprocess.TimeoutExpired:
        return f"> {limit:.0f} s"
    elapsed, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        print(f"failed: {' '.join(command)[-300:]}: {done.stderr.strip()[-600:]}", file=sys.stderr)
        return "failed"
    working = float(done.stdout.split()[-1]) if "-c" in command else elapsed
    return elapsed, working, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(server, path, net, tasks, arguments, given_up):
    """Rows of one file and one kind of network, the ways taking turns. `given_up`: the ways that took too long, and with which
    delay; with this one or a longer one, they are not run again."""
    url, out, found = f"{server.url}/{path.name}", path.parent / "out", {}
    server.delay, server.rate = net["delay"] / 1000, net["rate"]
    for _ in range(arguments.rounds):
        for task, by_name in tasks.items():
            for name, command in by_name.items():
                if net["delay"] >= given_up.get((task, name), math.inf):
                    found.setdefault((task, name), []).append((f"> {arguments.limit:.0f} s", 0, 0))
                    continue
                remove(out)
                server.requests.clear()
                took = run([c.replace("{url}", url).replace("{out}", str(out)) for c in command], arguments.limit)
                found.setdefault((task, name), []).append((took, len(server.requests), server.sent))
                if isinstance(took, str) and took.startswith(">"):
                    given_up[task, name] = min(net["delay"], given_up.get((task, name), math.inf))
                if task == "convert" and name in OURS and net == NETS[0] and not isinstance(took, str):
                    subprocess.run([arguments.command, "verify", str(path), str(out)], check=True, stdout=subprocess.DEVNULL)
    remove(out)
    rows = []
    for (task, name), samples in found.items():
        good = [s for s in samples if not isinstance(s[0], str)]
        row = {"task": task, "way": name, **net}
        if good:
            row |= {
                "elapsed": statistics.median(s[0][0] for s in good),
                "working": statistics.median(s[0][1] for s in good),
                "cpu": statistics.median(s[0][2] for s in good),
                "requests": statistics.median(s[1] for s in good),
                "bytes": statistics.median(s[2] for s in good),
            }
        else:
            row["why"] = samples[0][0]
        rows.append(row)
    return rows


# A delay in ms, and bytes a second (None: as fast as this machine is)
NETS = [{"delay": 0, "rate": None}, {"delay": 20, "rate": None}, {"delay": 80, "rate": None}, {"delay": 20, "rate": 50e6}]


def shown(net):
    return f"{net['delay']} ms" + (f", {net['rate'] / 1e6:.0f} MB/s" if net["rate"] else "")


def seconds(row):
    return f"{row['elapsed']:.2f}" + (f" ({row['working']:.2f})" if row["working"] != row["elapsed"] else "")


def table(title, size, rows, nets):
    """The elapsed time with each network, in parentheses without the imports of Python; requests, bytes and CPU are those of the
    first."""
    lines = [f"### {title}, {size / 1e6:.0f} MB", ""]
    lines += ["| | | requests | MB read | CPU s | " + " | ".join(f"s, {shown(n)}" for n in nets) + " |"]
    lines += ["|---|---|---|---|---|" + "---|" * len(nets)]
    for task, name in dict.fromkeys((r["task"], r["way"]) for r in rows):
        mine = [
            next(r for r in rows if (r["task"], r["way"]) == (task, name) and r["delay"] == n["delay"] and r["rate"] == n["rate"])
            for n in nets
        ]
        first = next((r for r in mine if "cpu" in r), None)
        what = [f"{first['requests']:.0f}", f"{first['bytes'] / 1e6:.1f}", f"{first['cpu']:.2f}"] if first else ["", "", ""]
        times = [seconds(r) if "elapsed" in r else r["why"] for r in mine]
        lines.append("| " + " | ".join([task, name, *what, *times]) + " |")
    return [*lines, ""]


def count_table(results):
    """Requests and MB of each way, with a column for each file."""
    names = list(results)
    lines = ["| | | " + " | ".join(f"{n}, {results[n]['size'] / 1e6:.0f} MB" for n in names) + " |"]
    lines += ["|---|---|" + "---|" * len(names)]
    for task, way in dict.fromkeys((r["task"], r["way"]) for n in names for r in results[n]["rows"] if r["way"] != CURL):
        cells = []
        for n in names:
            row = next(r for r in results[n]["rows"] if (r["task"], r["way"]) == (task, way))
            cells.append(f"{row['requests']:,.0f}, {row['bytes'] / 1e6:.1f}" if "requests" in row else row["why"])
        lines.append("| " + " | ".join([task, way, *cells]) + " |")
    return [*lines, ""]


def goals(results):
    """[(goal, at most, reached or None, reached without the imports of the peer or None)]"""
    nets, out = next(iter(results.values()))["nets"], []
    slow = max((n for n in nets if not n["rate"]), key=lambda n: n["delay"])

    def rows(name, task, net):
        of_net = [r for r in results[name]["rows"] if r["task"] == task and {k: r[k] for k in net} == net]
        return {r["way"]: r for r in of_net if "cpu" in r}

    def of_best(name, task, way, peers):
        """Our time, of the shortest of theirs: of the whole process, and without imports."""
        all_of = rows(name, task, slow)
        theirs = [r for w, r in all_of.items() if peers(w)]
        if way not in all_of or not theirs:
            return None, None
        return tuple(all_of[way]["elapsed"] / min(r[key] for r in theirs) for key in ("elapsed", "working"))

    if "paged" in results:
        plans = [rows("paged", "plan", n).get("zarrbits plan") for n in nets]
        most = None if None in plans else max(r["requests"] for r in plans)
        out.append(("paged: requests of `plan`", 4, most, None))
    for name, result in results.items():
        read = [r["bytes"] / result["size"] for r in result["rows"] if r["way"] in OURS and "bytes" in r]
        out.append((f"{name}: bytes read, of the file", 1.05, max(read, default=None), None))
    for name in results:
        for way in ("zarrbits, native", "zarrbits"):
            text = f"{name}, {shown(slow)}: elapsed of {way}, of the best peer's"
            out.append((text, 0.25, *of_best(name, "convert", way, lambda w: w not in (*OURS, CURL))))
    for name in results:
        text = f"{name}, {shown(slow)}: elapsed of `--virtual`, of VirtualiZarr's"
        out.append((text, 0.5, *of_best(name, "virtual", "zarrbits --virtual", lambda w: w.startswith("VirtualiZarr"))))
    if "paged" in results:
        first = rows("paged", "convert", nets[0])
        both = [first[w]["cpu"] for w in ("zarrbits, native", CURL) if w in first]
        out.append(("paged: CPU of a copy, of curl's to a file", 1.5, both[0] / both[1] if len(both) == 2 else None, None))
    return out


def goal_table(found):
    lines = ["| goal | at most | reached | | without the peer's imports |", "|---|---|---|---|---|"]
    for text, wanted, reached, working in found:
        verdict = "not measured" if reached is None else "met" if reached <= wanted else "**missed**"
        numbers = ["" if n is None else f"{n:.3g}" for n in (reached, working)]
        lines.append(f"| {text} | {wanted:g} | {numbers[0]} | {verdict} | {numbers[1]} |")
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", required=True, help="zarrbits")
    parser.add_argument("--python", help="that has fsspec, aiohttp, h5py, zarr, xarray, virtualizarr and kerchunk")
    parser.add_argument("--small", action="store_true", help="a twentieth of the data, delays of 0 and 20 ms")
    parser.add_argument("--count", action="store_true", help="requests and bytes alone, in one round")
    parser.add_argument("--only", choices=MAKE, action="append", help="this file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a way is given up")
    parser.add_argument("--folder", help="where the files are made (1 GB)")
    parser.add_argument("--json", help="also writes the figures to this file")
    parser.add_argument("--check", action="store_true", help="exit status 1 where a goal of requests or bytes is missed")
    arguments = parser.parse_args()
    nets, tasks, results = NETS[:1] if arguments.count else NETS[:2] if arguments.small else NETS, ways(arguments), {}
    if arguments.count:
        arguments.rounds = 1
    lines = []
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="zarrbits-remote-") as folder:
        folder = pathlib.Path(folder)
        for name in arguments.only or MAKE:
            path = folder / f"{name}.h5"  # at .nc, verify wants the types of netCDF
            count = MAKE[name](path, arguments.small)
            with Server() as server:
                server.put(path.name, path.read_bytes())
                rows, given_up = [], {}
                for net in nets:
                    rows += measure(server, path, net, tasks, arguments, given_up)
                size = path.stat().st_size
            results[name] = {"size": size, "nets": nets, "rows": rows}
            path.unlink()
            lines = count_table(results) if arguments.count else lines + table(TITLES[name].format(n=count), size, rows, nets)
            print("\n".join(lines), file=sys.stderr, flush=True)
    found = goals(results)
    lines = lines if arguments.count else [*goal_table(found), *lines]
    print("\n".join(lines))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"files": results, "goals": found}, indent=1))
    missed = [text for text, wanted, reached, _ in found if reached is None or reached > wanted]
    counted = [text for text in missed if "requests" in text or "bytes" in text]
    sys.exit(1 if arguments.check and counted else 0)


main()
