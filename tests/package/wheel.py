#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The wheel in fresh virtual environments, as its user has it: no variable set, nothing of the checkout.

tests/package/wheel.py zarrbits-*.whl PYTHON [h5py==3.12 zarr==3.1 ...] [-- PYTHON ...]
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

VENV = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "venv")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wheel_program.py")


# the three at the top of the page, and those of references, which go on from one another
PAGE = os.path.join(os.path.dirname(PROGRAM), "..", "..", "docs", "python.md")
with open(PAGE, encoding="utf-8") as page:
    SECTIONS = page.read().split("\n## ")
EXAMPLES, REFERENCES = (
    re.findall(r"```python\n(.*?)```", next(s for s in SECTIONS if s.startswith(begin)), re.S)
    for begin in ("# zarrbits", "Stores of references")
)
assert len(EXAMPLES) == 3 and len(REFERENCES) == 2
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("ZARRBITS", "HDF5", "PYTHON"))}


def name_of(package):
    return re.match(r"[\w-]+", package)[0]


def environment(folder, python, wheel, packages):
    """None if the registry cannot be reached, which is not tested here."""
    done = subprocess.run([VENV, folder, python, "--only-binary", ":all:", "numpy", *packages], capture_output=True, text=True)
    if done.returncode:
        print(
            done.stdout.strip()[-300:],
            f"\nSKIPPED: the wheel beside {' '.join(packages)}: they could not be installed",
            flush=True,
        )
        return None
    subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel], check=True)
    return f"{folder}/bin/python"


def check(wheel, python, packages):
    """The number of programs that succeeded."""
    with tempfile.TemporaryDirectory(prefix="zarrbits-wheel-") as folder:
        mine = environment(f"{folder}/venv", python, wheel, packages)
        if mine is None:
            return 0
        names = [name_of(p) for p in packages]
        orders = [("zarrbits",), ("h5py",)]
        orders += [o for n in ("netCDF4", "tables", "hdf5plugin") if n in names for o in ((n, "zarrbits"), ("zarrbits", n))]
        for imports in orders:
            subprocess.run([mine, "-W", "ignore", PROGRAM, *imports], cwd=folder, env=CLEAN, check=True)
            subprocess.run(["rm", "-rf", f"{folder}/in.h5", f"{folder}/out.zarr"], check=True)
        done = len(orders)
        examples = EXAMPLES * ("zarr" in names) + REFERENCES[:1] * ("fsspec" in names) + REFERENCES[1:] * ("icechunk" in names)
        for example in examples:
            # zarr-python 3.1 warns of codecs named numcodecs.*
            subprocess.run(
                [
                    mine,
                    "-W",
                    "error",
                    "-W",
                    "ignore::FutureWarning",
                    "-W",
                    "ignore::DeprecationWarning",
                    "-W",
                    "ignore:Numcodecs codecs are not",
                    "-c",
                    example,
                ],
                cwd=folder,
                env=CLEAN,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            done += 1
        return done


def main(wheel, *groups):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # most of it is waiting for the registry
        done = list(pool.map(lambda g: check(os.path.abspath(wheel), g[0], g[1:]), groups))
    print(f"{sum(done)} programs are right, in {len(groups)} environments")
    if not all(done):
        print(f"SKIPPED: {done.count(0)} environments")


groups = [[]]
for word in sys.argv[2:]:
    groups.append([]) if word == "--" else groups[-1].append(word)
main(sys.argv[1], *groups)
