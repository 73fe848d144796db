# SPDX-License-Identifier: BSL-1.0
"""Files with what makes references hard (virtual_peers.py). Ours read as the files do, through zarr-python and through Icechunk.
What other makers of references make of the same file is a table in docs/reference/readers.md:
a peer that changes, for better or worse, fails here."""

import re
from importlib.metadata import version

import h5py
import numpy as np
import pytest
import zarr

import zarrbits
from conftest import ROOT, run
from test_virtual_stores import repository_of

xr = pytest.importorskip("xarray")
pytest.importorskip("icechunk")
pytest.importorskip("kerchunk")
pytest.importorskip("virtualizarr")
import virtual_peers as peers

pytestmark = pytest.mark.filterwarnings("ignore")

# What each does: "right"; "wrong", other values and no error; "error", when values are read;
# "left out", the variable is not there; "refuses" to refer
DOES = {
    # what: (kerchunk, VirtualiZarr)
    "plain": ("right", "right"),
    "filter mask": ("left out", "error"),
    "unfiltered edge chunks": ("error", "error"),
    "LZ4": ("left out", "refuses"),
    "bitshuffle": ("left out", "refuses"),
    "scale-offset": ("left out", "refuses"),
    "strings": ("right", "right"),
    "big-endian": ("right", "right"),
    "empty chunks": ("right", "right"),
    "files along time": ("right", "right"),
    "packing that differs": ("wrong", "wrong"),
    "uneven lengths": ("wrong", "refuses"),
    "fill values that differ": ("wrong", "wrong"),
}


def of_one(store):
    return np.asarray(zarr.open_group(store, mode="r")["v"][...])


def of_many(store):
    return xr.open_zarr(store, consolidated=False).v.load().values


def case(name, folder):
    """The files, what is right, and how to read it: a dataset as it is stored, files as xarray joins them."""
    if name in peers.ONE:
        peers.ONE[name](folder / "in.nc")
        with h5py.File(folder / "in.nc") as f:
            return [str(folder / "in.nc")], f["v"].asstr()[()] if name == "strings" else f["v"][()], of_one
    peers.MANY[name](folder)
    paths = peers.paths_in(folder)
    return (
        paths,
        xr.open_mfdataset(paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals")
        .v.load()
        .values,
        of_many,
    )


def equal(got, want):
    floats = np.issubdtype(np.asarray(want).dtype, np.floating)
    return got.shape == want.shape and np.array_equal(got, want, equal_nan=floats)


@pytest.mark.parametrize("name", DOES)
def test_ours_are_right(name, tmp_path):
    paths, want, read = case(name, tmp_path)
    many = ["--concat", "time"] if len(paths) > 1 else []
    run("convert", "-q", "--virtual", *many, *paths, tmp_path / "refs.json")
    assert equal(read(zarrbits.open_references(tmp_path / "refs.json")), want)
    zarrbits.to_icechunk(tmp_path / "refs.json", tmp_path / "repository")
    assert equal(read(repository_of(tmp_path / "repository")[0].readonly_session("main").store), want)


def outcome(make, paths, want, read, folder):
    try:
        store = make(paths, folder)
    except Exception:
        return "refuses"
    try:
        return "right" if equal(read(store), want) else "wrong"
    except (KeyError, AttributeError):
        return "left out"
    except Exception:
        return "error"


@pytest.mark.parametrize("name", DOES)
@pytest.mark.parametrize("peer", peers.PEERS)
def test_what_others_do(name, peer, tmp_path):
    paths, want, read = case(name, tmp_path)
    does = outcome(peers.PEERS[peer], paths, want, read, tmp_path)
    known = DOES[name][list(peers.PEERS).index(peer)]
    assert does == known, (
        f'{peer} has changed: "{name}" was {known}, and is {does}; DOES above and docs/reference/readers.md have to say so'
    )


def test_the_table_in_the_documents():
    """It has a row for each file, says what DOES says, and the versions that are installed here,
    but for what comes behind the second number."""
    text = (
        (ROOT / "docs/reference/readers.md")
        .read_text(encoding="utf-8")
        .partition("## What other makers of references do")[2]
        .partition("\n#")[0]
    )
    rows = [[c.strip().strip("*") for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    assert {r[0]: tuple(c.split(",")[0] for c in r[2:4]) for r in rows[1:]} == DOES
    assert all(r[1] == "right" for r in rows[1:])  # ours
    for name, column in (("kerchunk", 2), ("virtualizarr", 3)):
        assert rows[0][column].lower().split() == [name, re.match(r"\d+\.\d+", version(name))[0]], (
            f"{name} is {version(name)} now: look at the table again"
        )
