# SPDX-License-Identifier: BSL-1.0
"""Runs all benchmarks on one machine, one after the other, and keeps what each one printed as bench/results/NAME.json: the
command, the commit, the processor, how busy the machine was before, and the tables. bench/performance.py makes the page of these.

python3 bench/all.py [NAME]...      default: all; half an hour on an idle machine with two cores
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from page import cpu_model

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
COMMAND = "build/release/bin/zarrbits"
# name -> command line, from the root of the sources; the environments with the peers are those that the scripts make
BENCHMARKS = {
    "start": f"/usr/bin/python3 bench/start.py {COMMAND}",
    "hdf5_reader": "build/interop/venv/bin/python bench/hdf5_reader.py --size 256",
    "convert": "scripts/bench-convert --rounds 3 --only deflate --only table",
    "stores": f"build/bench/zarr/bin/python bench/stores.py {COMMAND} build/bench/zarr/bin/python --rounds 3",
    "repack": f"build/bench/repack/bin/python bench/repack.py {COMMAND} build/bench/repack/bin/python --rounds 3",
    "many": "scripts/bench-many --days 400 --tiles 400 --rounds 1",
    "packing": "scripts/bench --quick --json build/bench/packing.json",
    "zarr_codec": "build/interop/venv/bin/python bench/zarr_codec.py 64",
    "remote": "scripts/bench-remote --count",
}


def tables(text):
    """The Markdown tables of a text: what stands above each one, its columns and its rows."""
    result, rows, title = [], [], ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if rows:
            result.append({"title": title, "columns": rows[0], "rows": rows[2:]})
            rows = []
        title = line.strip() or title
    return result


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def measure(name):
    command = BENCHMARKS[name]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HDF5_PLUGIN_PATH": f"{ROOT / 'build/bench/plugins'}:/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins",
        "ZARRBITS_READER_LIBRARY": str(ROOT / "build/release/library/libzarrbits_reader.so"),
        "ZARRBITS_LIBRARY": str(ROOT / "build/release/library/libzarrbits.so"),
    }
    load, begun = os.getloadavg()[0], time.monotonic()
    words = shlex.split(command)
    done = subprocess.run(words, cwd=ROOT, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    if done.returncode not in (0, 1):  # 1: a goal was missed
        return f"exit status {done.returncode}"
    result = {
        "command": command,
        "commit": output_of("git", "rev-parse", "--short=8", "HEAD"),
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load_before": round(load, 2),
        "seconds": round(time.monotonic() - begun),
        "tables": tables(done.stdout),
    }
    if "--json" in words:
        result["rows"] = json.loads((ROOT / words[words.index("--json") + 1]).read_text())
    if ("rows" not in result and not result["tables"]) or not all(table["rows"] for table in result["tables"]):
        return "no figures"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help=", ".join(BENCHMARKS), metavar="NAME")
    failed = False
    for name in parser.parse_args().names or BENCHMARKS:
        print(f"## {name}: {BENCHMARKS[name]}\n", flush=True)
        if problem := measure(name):
            failed = True
            print(f"bench/all.py: {name} failed: {problem}", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
