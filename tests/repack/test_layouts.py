# SPDX-License-Identifier: BSL-1.0
"""The rules of zarrbits repack's layouts: --check, and files that follow them afterwards."""

import json
import re

import h5py
import numpy as np
import pytest
from h5py import h5z

from harness import run

MIB = 1 << 20


def check(path, layout):
    """Which rules are met: {"index": True, ...}; only those that decide."""
    done = run("repack", "--check", "--json", "--layout", layout, path, status=(0, 3))
    report = json.loads(done.stdout)
    assert report["conforms"] == (done.returncode == 0) and report["exit_status"] == done.returncode
    return {f["rule"]: f["met"] for f in report["findings"] if f["required"]}


def repack(layout, source, target, *options):
    return json.loads(run("repack", "--json", "-q", "--layout", layout, *options, source, target).stdout)


def first_value(f):
    """The address of the first chunk."""
    offsets = []

    def visit(_, item):
        if isinstance(item, h5py.Dataset) and item.chunks:
            offsets.extend(item.id.get_chunk_info(i).byte_offset for i in range(item.id.get_num_chunks()))

    f.visititems(visit)
    return min(offsets)


def metadata_places(path):
    """Where the signatures of libhdf5's metadata are. Values have none by chance: these are of few bits."""
    return [
        m.start()
        for m in re.finditer(
            rb"TREE|SNOD|OHDR|OCHK|HEAP|FRHP|FHDB|FHIB|BTHD|BTLF|BTIN|FADB|FAHD|EAHD|EAIB|EADB", path.read_bytes()
        )
    ]


def archive(path, steps=60, plane=(90, 180), chunk=1, time_chunk=1, bounds=True, unlimited=True, **how):
    with h5py.File(path, "w") as f:
        f.attrs["variable_id"] = "tas"
        size = None if unlimited else steps
        t = f.create_dataset(
            "time", data=np.arange(steps) * 1.0, **({"chunks": (time_chunk,), "maxshape": (size,)} if time_chunk else {})
        )
        if bounds:
            t.attrs["bounds"] = "time_bnds"
            f.create_dataset("time_bnds", data=np.zeros((steps, 2)), chunks=(1, 2), maxshape=(size, 2))
        f.create_dataset("lat", data=np.arange(plane[0]) * 1.0)
        d = f.create_dataset("tas", (steps, *plane), "f4", chunks=(chunk, *plane), maxshape=(size, *plane), **how)
        for i in range(steps):
            d[i] = i
    return path


@pytest.mark.parametrize("layout", ["asis", "cloud", "cmip7"])
@pytest.mark.parametrize("how", [{}, {"compression": "gzip", "shuffle": True}])
def test_metadata_come_first(tmp_path, layout, how):
    source, target = archive(tmp_path / "in.nc", 300, (20, 30), **how), tmp_path / "out.nc"
    with h5py.File(source) as f:
        assert max(metadata_places(source)) > first_value(f)
    assert not all(check(source, layout).values())
    report = repack(layout, source, target)
    assert all(check(target, layout).values())
    with h5py.File(target) as f:
        assert max(metadata_places(target)) < first_value(f)
        assert report["metadata_bytes"] == max(metadata_places(target))
        np.testing.assert_array_equal(f["tas"][:, 0, 0], np.arange(300))


@pytest.mark.parametrize(
    "options",
    [["--layout", "cmip7"], ["--layout", "cloud"], [], ["--chunk", "/tas=-1x30x30"], ["--chunk", "/tas=-1x1x1"]],
    ids=" ".join,
)
def test_a_plan_says_what_becomes_of_the_file(tmp_path, options):
    """And writes nothing. The values differ from chunk to chunk, so that a sample is not all of them."""
    source, target = archive(tmp_path / "in.nc", 300, (60, 90), compression="gzip", shuffle=True), tmp_path / "out.nc"
    with h5py.File(source, "a") as f:
        f["tas"][...] = np.random.default_rng(3).integers(0, 1 + np.arange(300)[:, None, None], (300, 60, 90))
    before = source.read_bytes()
    planned = json.loads(run("plan", source, target, "--json", *options).stdout)
    assert json.loads(run("repack", "--dry-run", "--json", *options, source, target).stdout).keys() == planned.keys()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.nc"] and source.read_bytes() == before
    written = json.loads(run("repack", "--json", "-q", *options, source, target).stdout)
    keys = ("path", "outcome", "reason", "chunk", "source_chunk", "filters", "source_filters", "chunks", "source_bytes")
    assert [{k: d.get(k) for k in keys} for d in planned["datasets"]] == [
        {k: d.get(k) for k in keys} for d in written["datasets"]
    ]
    assert planned["seconds"] > 0 and planned["objects"] == written["objects"]
    assert planned["bytes"] == pytest.approx(written["bytes"], rel=0.25)
    printed = run("plan", source, target, *options).stdout
    assert "to read and encode it here" in printed and ("/tas" in printed) == any(
        d["path"] == "/tas" and d["outcome"] == "recoded" for d in written["datasets"]
    )


def test_a_plan_of_a_file_that_conforms(tmp_path):
    source = archive(tmp_path / "in.nc", 100)
    run("repack", "--layout", "cmip7", "--in-place", "-q", source)
    assert "nothing would change" in run("repack", "--dry-run", "--in-place", "--layout", "cmip7", source).stdout
    assert "--check excludes --dry-run" in run("repack", "--dry-run", "--check", source, status=2).stderr


def test_cmip7_changes_what_its_rules_name(tmp_path):
    source, target = archive(tmp_path / "in.nc", 100), tmp_path / "out.nc"
    assert check(source, "cmip7") == {"index": False, "time_chunks": False, "bounds_chunks": False, "data_chunks": False}
    report = repack("cmip7", source, target)
    changed = {d["path"]: (d["chunk"], d["reason"], d["filters"]) for d in report["datasets"] if d["outcome"] == "recoded"}
    rows = 4 * MIB // (90 * 180 * 4)
    filters = "shuffle, deflate, fletcher32"
    assert changed == {
        "/time": ([100], "time_chunks", filters),
        "/time_bnds": ([100, 2], "bounds_chunks", filters),
        "/tas": ([rows, 90, 180], "data_chunks", filters),
    }
    with h5py.File(target) as f:
        assert f["tas"].maxshape == (None, 90, 180) and f["tas"].compression_opts == 4 and f["tas"].fletcher32
        assert f["lat"].chunks is None
    # the size of the data's chunks can be larger, and is not made smaller again
    repack("cmip7", target, tmp_path / "larger.nc", "--chunk-bytes", "6M")
    repack("cmip7", tmp_path / "larger.nc", tmp_path / "again.nc")
    for name in ("larger.nc", "again.nc"):
        with h5py.File(tmp_path / name) as f:
            assert f["tas"].chunks == (6 * MIB // (90 * 180 * 4), 90, 180)


@pytest.mark.parametrize(
    "shape, chunk, expected",
    [
        ((12, 400, 800), (1, 20, 800), (12, 110, 800)),  # all steps are too few
        ((3, 4, 100_000), (1, 1, 1000), (3, 4, 87382)),
        ((2000, 30, 30), (7, 30, 30), (1165, 30, 30)),
        ((5, 1024, 1024), (1, 1024, 1024), None),  # 4 MiB already
        ((20, 1000, 1000), (1, 1000, 1000), None),  # one more row is more than 4 MiB
    ],
)
def test_chunks_grow_along_the_first_dimension(tmp_path, shape, chunk, expected):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    with h5py.File(source, "w") as f:
        f.attrs["variable_id"] = "v"
        f.create_dataset("time", data=np.arange(shape[0]), chunks=(shape[0],))
        d = f.create_dataset("v", shape, "f4", chunks=chunk)
        d[0, 0, 0], d[-1, -1, -1] = 1, 2
    assert check(source, "cmip7")["data_chunks"] == (expected is None)
    report = repack("cmip7", source, target)
    assert [d["chunk"] for d in report["datasets"] if d["path"] == "/v"] == [list(expected or chunk)]
    assert check(target, "cmip7")["data_chunks"]
    with h5py.File(target) as f:
        assert (f["v"][0, 0, 0], f["v"][-1, -1, -1], f["v"][1, 1, 1]) == (1, 2, 0)


@pytest.mark.parametrize("time_chunk, steps, met", [(None, 9, None), (16, 9, True), (4, 9, False), (4, 4, True)])
def test_times_in_one_chunk(tmp_path, time_chunk, steps, met):
    source = archive(tmp_path / "in.nc", steps, time_chunk=time_chunk, bounds=False)
    found = check(source, "cmip7")
    assert found["time_chunks"] == (met is not False)
    # as the archives' program does, the data of a file whose times are not in chunks are not looked at
    assert ("data_chunks" in found) == (time_chunk is not None)


def test_files_without_what_the_rules_name(tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    with h5py.File(source, "w") as f:
        f.attrs["variable_id"] = "missing"
        f["time/of"] = 1
        f.create_dataset("x", (1000, 10), "f8", chunks=(1, 10))[:] = np.ones((1000, 10))
    assert check(source, "cmip7") == {"index": False}
    assert {d["outcome"] for d in repack("cmip7", source, target)["datasets"]} == {"copied"}
    assert check(target, "cmip7") == {"index": True}
    with h5py.File(tmp_path / "empty.h5", "w"):
        pass
    for layout in ("asis", "cmip7"):
        assert all(check(tmp_path / "empty.h5", layout).values())
        repack(layout, tmp_path / "empty.h5", tmp_path / f"{layout}.h5")


def test_cloud(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("small", (4000, 300), "f8", chunks=(1, 300), compression="gzip")[:] = np.ones((4000, 300))
        f.create_dataset("large", (40, 1000, 1000), "f4", chunks=(10, 1000, 1000), compression="gzip")[:20] = np.full(
            (20, 1000, 1000), 2, "f4"
        )
        f.create_dataset("words", data=["a"] * 5000, dtype=h5py.string_dtype(), chunks=(10,))
        f.create_dataset("right", (60, 1000, 100), "f8", chunks=(8, 1000, 100))[:] = np.full((60, 1000, 100), 3.0)
    repack("cloud", source, target)
    assert check(target, "cloud") == {"metadata": True, "metadata_bytes": True, "pages": True, "chunk_bytes": True}
    with h5py.File(target) as f, h5py.File(source) as old:
        chunks = {name: f[name].chunks for name in f}
        assert chunks == {"small": (1747, 300), "large": (4, 1000, 1000), "words": (10,), "right": (8, 1000, 100)}
        assert f.id.get_create_plist().get_file_space_strategy()[0] == h5py.h5f.FSPACE_STRATEGY_PAGE
        for name in f:
            assert (f[name][...] == old[name][...]).all(), name
        assert f["small"].id.get_create_plist().get_filter(0)[0] == h5z.FILTER_DEFLATE
