# SPDX-License-Identifier: BSL-1.0
"""zarrbits.convert() makes of every source what the command makes, in every target, and verify() and finalize() take them."""

import pytest

import zarrbits
from harness import run
from pairs import PAIRS, SOURCES, TARGETS, is_equal, joins, make_source

KEYWORDS = {
    "Zarr": {},
    "shards": {"shard": "12x20x30"},
    "other chunks": {"chunk": "7x20x11"},
    "Zarr v2": {"zarr_format": 2},
    "zip": {},
    "references": {"virtual": True},
    "Parquet": {"virtual": True},
    "HDF5": {},
}


@pytest.fixture(name="sources", scope="module")
def all_sources(tmp_path_factory):
    return {kind: make_source(kind, tmp_path_factory.mktemp("source")) for kind in SOURCES}


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{s} to {t}" for s, t in PAIRS])
def test_a_call_makes_what_the_command_makes(source, target, sources, tmp_path):
    names, (name, options) = sources[source], TARGETS[target]
    folder = tmp_path / "made"
    folder.mkdir()
    run("convert", "-q", *joins(names), *options, *names, folder / name)
    folder.rename(tmp_path / "expected")
    folder.mkdir()
    given, joined = (names[0], {}) if len(names) == 1 else (names, {"concat": "time"})
    report = zarrbits.convert(given, folder / name, **joined, **KEYWORDS[target])
    assert is_equal(folder, tmp_path / "expected")
    assert not report.lost
    if (source, target) != ("stores", "HDF5"):
        assert zarrbits.verify(given, folder / name, **joined).equal
