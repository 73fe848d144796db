# SPDX-License-Identifier: BSL-1.0
"""Real files, as references and as native copies: zarr-python reads the same from both.
The copies are judged against h5py elsewhere.

For every twenty-fourth file, or as ZARRBITS_CORPUS_EVERY says; ZARRBITS_CORPUS says where they are."""

import os
import subprocess
import warnings

import numpy as np
import pytest
import zarr

import zarrbits

CORPUS = os.environ.get("ZARRBITS_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
LARGEST = 1 << 24  # elements that are read of an array


def arrays(node, path=""):
    if isinstance(node, zarr.Array):
        return {path: node}
    found = {}
    for name, child in node.members():
        found.update(arrays(child, f"{path}/{name}"))
    return found


def values(array):
    """Its values, or the kind of error: what one cannot read, the other cannot, either."""
    try:
        return np.asarray(
            array[tuple(slice(0, max(1, int(LARGEST ** (1 / array.ndim)))) for _ in range(array.ndim))]
            if array.size > LARGEST
            else array[...]
        )
    except Exception as e:  # noqa: BLE001
        return type(e).__name__


def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str)
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and (list(a.ravel()) == list(b.ravel()) if a.dtype.hasobject or a.dtype.kind == "T" else a.tobytes() == b.tobytes())
    )


def test_references_and_copies_read_alike(tmp_path):
    command, every = os.environ["ZARRBITS_COMMAND"], int(os.environ.get("ZARRBITS_CORPUS_EVERY", "24"))
    files = sorted(os.path.join(root, name) for root, _, names in os.walk(CORPUS) for name in names)[::every]
    compared = unread = 0
    for i, path in enumerate(files):
        copy, form = tmp_path / f"{i}.zarr", tmp_path / f"{i}{('.json', '.parquet')[i % 2]}"
        for target, how in ((copy, ["--profile", "native"]), (form, ["--virtual"])):
            done = subprocess.run(
                [command, "convert", "-q", path, str(target), *how], capture_output=True, text=True, timeout=600
            )
            if "would be one array" in done.stderr:
                form = tmp_path / f"{i}.json"
                done = subprocess.run(
                    [command, "convert", "-q", path, str(form), *how], capture_output=True, text=True, timeout=600
                )
        if done.returncode not in (0, 3) or not (copy / "zarr.json").exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                copied = arrays(zarr.open(copy, mode="r"))
            except Exception as e:  # noqa: BLE001  (a data type that zarr-python lacks)
                unread += 1
                with pytest.raises(type(e)):
                    arrays(zarr.open(zarrbits.open_references(form, external=CORPUS), mode="r"))
                continue
            referred = arrays(zarr.open(zarrbits.open_references(form, external=CORPUS), mode="r"))
            assert copied.keys() == referred.keys(), path
            for name, array in copied.items():
                assert same(values(array), values(referred[name])), (path, name)
                compared += 1
    print(compared, "arrays of", len(files), "files; of", unread, "zarr-python opens neither")
    assert compared >= 30, compared
