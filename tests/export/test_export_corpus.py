# SPDX-License-Identifier: BSL-1.0
"""Files of others to Zarr and back: h5diff finds nothing that it does not find between a file and its copy, verify agrees, and
h5py sees the same types, limits, attributes and links. ZARRBITS_CORPUS says where the files are; ZARRBITS_CASES=all asks for
all of them."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import h5py
import pytest

from file_differences import differences, h5diff
from harness import COMMAND

CORPUS = os.environ.get("ZARRBITS_CORPUS")
pytestmark = [
    pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set"),
    pytest.mark.skipif(not shutil.which("h5diff"), reason="h5diff is not installed"),
]
# What docs/reference/exported.md says that a store does not have.
EXPLAINED = {
    "comp_complex_scalar.h5": "gaps in compounds of named types",
    "nest_comp_scalar.h5": "gaps in compounds of named types",
    "comp_complex.h5": "gaps in compounds of named types",
    "ref_tst_compounds.nc": "gaps in compounds of named types",
    "ref_tst_compounds3.nc": "gaps in compounds of named types",
    "ref_tst_h_compounds.h5": "gaps in compounds of named types",
    "ref_hdf5_compat3.nc": "gaps in compounds of named types",
    "isssue-523.hdf5": "the byte order of an enumeration in a named type",
    "t_unsupported.h5": "padding bytes of long double",
    "float.h5": "padding bytes of long double",
    "tldouble.h5": "padding bytes of long double",
    "tstring-at.h5": "zeros at the end of texts that end with blanks",
    "f97183065853.h5": "zeros at the end of texts that end with blanks",
    "dim_scales.hdf5": "several scales of a dimension",
    "swath_wrong_dim_rp.nc": "fewer records than the dimension has",
    "tlayouto.h5": "an array of more than 4 EiB",
}


def sample():
    files = sorted(p for p in pathlib.Path(CORPUS or "/nonexistent").rglob("*") if p.is_file() and h5py.is_hdf5(p))
    return files if os.environ.get("ZARRBITS_CASES") == "all" else files[::17]


def command(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("profile", ["portable", "native"])
def test_files_of_others_come_back(folder, profile):
    store, back, copy = (os.path.join(folder, n) for n in ("s.zarr", "back.h5", "copy.h5"))
    equal, lossy, explained, wrong = 0, 0, 0, []
    for source in sample():
        shutil.rmtree(store, ignore_errors=True)
        done = command("convert", "-q", "--json", "--keep-going", "--profile", profile, source, store)
        if done.returncode not in (0, 3):
            continue  # there is no store
        report = json.loads(done.stdout)
        loses = [o for o in report["objects"] if o.get("lossy") or o["outcome"] == "skipped"]
        made = command("export", "-q", "--overwrite", store, back)
        if source.name in EXPLAINED or loses:
            explained += source.name in EXPLAINED
            lossy += source.name not in EXPLAINED
            assert made.returncode in (0, 1, 3) and not re.search("crash|assert", made.stderr), (source, made.stderr)
            continue
        shutil.copy(source, copy)
        found = h5diff(source, back) if made.returncode == 0 else [made.stderr]
        if found:
            usual = h5diff(source, copy)
            found = [line for line in found if line not in usual]
        if not found:
            found = [] if command("verify", back, store).returncode == 0 else ["verify"]
        if not found:
            try:
                with h5py.File(source) as a, h5py.File(back) as b:
                    found = list(differences(a, b))
            except (OSError, RuntimeError, TypeError, ValueError, KeyError, SystemError):  # what h5py itself cannot read
                pass
        if found:
            wrong.append((str(source), found[:3]))
        equal += not found
    print(f"{profile}: {equal} files are equal, {lossy} are lossy by the report, {explained} explained, {len(wrong)} wrong")
    assert not wrong, "\n".join(map(str, wrong))
    assert equal >= 20
