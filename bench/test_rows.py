# SPDX-License-Identifier: BSL-1.0
"""Checks that the rows that scripts/bench promises are there, for every kernel table; speed is not checked.

test_rows.py bench_kernels
"""

import json
import subprocess
import sys
import tempfile

import goals

# ours by name; one of the many k stands for all of a container
FILTER = "/(swap|swap_inplace)/|/bool|/(8/2|8/4|16/12|32/20|64/40)(/|$)|/16/10/first2"
NAMES = [
    *goals.SWAPS,
    *goals.IN_PLACE,
    *"""encode/bool encode/bool/msb decode/bool encode/8/2 decode/8/4 decode/8/4/signed encode/16/12 encode/16/12/truncate
    decode/16/12/signed encode/16/10/first2 decode/16/10/first2 encode/32/20 decode/64/40 checked/16/12""".split(),
]

with tempfile.NamedTemporaryFile(suffix=".json") as target:
    subprocess.run([sys.argv[1], "--quick", "--sizes=65536", f"--benchmark_filter={FILTER}", "--json", target.name], check=True)
    rows = json.load(target)

tables = {r["kernels"] for r in rows}
assert "portable" in tables, tables
for table in tables:
    found = {r["name"]: r for r in rows if r["kernels"] == table}
    for name in NAMES:
        assert name in found, f"no row {name} of {table}"
        assert found[name]["bytes"] == 65536 and found[name]["gbps"] > 0 and found[name]["ratio"] > 0, found[name]

# every goal that is met or missed by such rows has them
evaluated = goals.evaluate(goals.Rows(rows))
for what, table, _, reached, _ in evaluated:
    if what in ("encode bool", "encode 16 to 12", "swap in place") and table in tables:
        assert reached is not None, f"no figure for the goal {what} of {table}"
print(f"{len(rows)} rows, kernels: {', '.join(sorted(tables))}")
