# SPDX-License-Identifier: BSL-1.0
"""Files of others, repacked: h5dump and verify find nothing else.
ZARRBITS_CORPUS says where the files are; ZARRBITS_CASES=all asks for all of them."""

import os
import pathlib
import re
import shutil
import subprocess

import h5py
import pytest

from harness import COMMAND

CORPUS = os.environ.get("ZARRBITS_CORPUS")
pytestmark = [
    pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set"),
    pytest.mark.skipif(not shutil.which("h5dump"), reason="h5dump is not installed"),
]


# differences that are meant
DIFFERENT = {
    "swath_wrong_dim_rp.nc": "a reference to no object becomes null",
    "elink.h5": "a link to a file relative to its own folder",
    "test_file2.hdf5": "a link to a file relative to its own folder",
}


def sample():
    files = sorted(p for p in pathlib.Path(CORPUS or "/nonexistent").rglob("*") if p.is_file() and h5py.is_hdf5(p))
    return files if os.environ.get("ZARRBITS_CASES") == "all" else files[5::13]


def dump(path):
    """h5dump's exit status and text, without the file's name and the addresses of objects."""
    try:
        done = subprocess.run(["h5dump", path], capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return None
    addresses = rb'\b(DATASET|GROUP|DATATYPE) (\d+:)?\d+ |"/?#\d+(:\d+)?"'
    return done.returncode, re.sub(addresses, b"", done.stdout.partition(b"\n")[2])


def is_whole(path):
    """False if other files have a part of its values or links, which it names relative to its own folder."""
    parts = []

    def visit(name):
        link = f.get(name, getlink=True)
        parts.append(isinstance(link, h5py.ExternalLink))
        if isinstance(link, h5py.HardLink) and f.get(name, getclass=True) is h5py.Dataset:
            parts.append(f[name].is_virtual or f[name].external is not None)

    try:
        with h5py.File(path) as f:
            f.visit(visit)
            for name in f:
                visit(name)
    except (OSError, RuntimeError, TypeError, ValueError, KeyError):  # what h5py itself cannot read
        pass
    return not any(parts)


@pytest.mark.parametrize("layout", ["asis", "cmip7", "cloud"])
def test_h5dump_prints_the_same(tmp_path, layout):
    target = tmp_path / "out.h5"
    equal, refused, wrong = 0, 0, []
    for source in sample():
        if source.name in DIFFERENT:
            continue
        done = subprocess.run(
            [COMMAND, "repack", "-q", "--overwrite", "--layout", layout, source, target],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode not in (0, 3):
            sentence = done.stderr.strip()
            assert done.returncode == 1 and sentence.startswith("zarrbits: ") and "\n" not in sentence, (source, sentence)
            refused += 1
            continue
        checked = subprocess.run([COMMAND, "repack", "--check", "--layout", layout, target], capture_output=True, check=False)
        if checked.returncode != done.returncode:
            wrong.append((str(source), checked.stdout.decode()))
        # what h5dump cannot read, it prints a part of
        if is_whole(source) and (printed := dump(source)) is not None and printed[0] == 0 and printed != dump(target):
            wrong.append((str(source), "h5dump"))
        verified = subprocess.run([COMMAND, "verify", source, target], capture_output=True, text=True, check=False)
        if is_whole(source) and verified.returncode not in (0, 3) and "cannot" not in verified.stderr + verified.stdout:
            wrong.append((str(source), verified.stdout[-500:]))
        equal += 1
    print(f"{layout}: {equal} files are equal, {refused} refused, {len(wrong)} wrong")
    assert not wrong, "\n".join(map(str, wrong))
    assert equal >= 20
