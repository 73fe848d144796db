# SPDX-License-Identifier: BSL-1.0
"""How reports show themselves, which names the package offers, and what it logs."""

import concurrent.futures
import logging
import os
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest

import zarrbits
from zarrbits import report as reports


def made(folder, name="in.h5", first=0):
    path = os.path.join(folder, name)
    with h5py.File(path, "w") as f:
        x = f.create_dataset("x", data=np.arange(first, first + 64).reshape(8, 8), chunks=(4, 8), maxshape=(None, 8))
        x.attrs["part"] = first
        f["y"] = np.arange(10)
        f["link"] = h5py.SoftLink("/x")
    return path


def words(shown, name):
    (line,) = [line for line in str(shown).splitlines() if line.split()[:1] == [name]]
    return line.split()


def test_all_names_are_completed(folder):
    missing = (
        "import zarrbits; print(sorted(set(zarrbits.__all__) - set(dir(zarrbits))), [n for n in dir(zarrbits) if n[0] != '_'])"
    )
    said = subprocess.run([sys.executable, "-c", missing], capture_output=True, text=True, check=True).stdout
    assert said == f"[] {sorted(zarrbits.__all__)}\n"
    assert {"__version__", "__all__", "__doc__"} <= set(dir(zarrbits))
    # each offered name exists, or the package of others that it needs does
    for name in zarrbits.__all__:
        try:
            assert getattr(zarrbits, name) is not None
        except ImportError as e:
            assert e.name and e.name.partition(".")[0] in ("zarr", "icechunk"), (name, e)


def test_the_plan_says_bounds_totals_and_notes(folder):
    paths = [made(folder, f"{i}.h5", i * 64) for i in range(2)]
    plan = zarrbits.plan(paths[0])
    assert words(plan, "/x")[:9] == ["/x", "raw", "3", "512", "B", "512", "B", "512", "B"] and "<=" not in str(plan)
    total = words(plan, "all")  # the estimate has the metadata, too
    assert total[:4] == ["all", "6", "592", "B"] and total[5:] == ["KiB", "592", "B"] and plan.notes == ["links: 1 kept as notes"]
    plan = zarrbits.plan(paths[0], compress="zstd:3")
    line = words(plan, "/y")
    assert line[:5] == ["/y", "recoded", "2", "80", "B"] and line[6:10] == ["B", "<=", "143", "B"]  # as zstd bounds it
    assert words(plan, "all")[6:] == ["<=", "783", "B"] and "&lt;= 783 B" in plan._repr_html_()
    said = subprocess.run(
        [os.environ["ZARRBITS_COMMAND"], "plan", "--compress", "zstd:3", paths[0]], capture_output=True, text=True
    )
    assert "6 files or objects at most, 592 B to at most 783 B" in said.stdout
    plan = zarrbits.plan(paths, concat="x:0")
    (note,) = [note for note in plan.notes if "part" in note]
    assert note.startswith(f'"{paths[1]}": ') and note in str(plan) and paths[1] in plan._repr_html_()


def test_the_plan_says_what_would_save_space_and_what_joins_well(folder):
    path = os.path.join(folder, "in.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("zeros", data=np.zeros(1 << 20, "u2"), chunks=(1 << 16,))
    (note,) = zarrbits.plan(path).notes
    assert note.startswith('compress="blosc:zstd:1:shuffle" would save about 2.0 MiB of ') and note.endswith(
        'by a sample of the values of "/zeros"'
    )
    files = [os.path.join(folder, f"{i}.h5") for i in range(3)]
    for file in files:
        with h5py.File(file, "w") as f:
            values = np.random.default_rng(1).integers(0, 1000, 3 << 16)
            f.create_dataset("v", data=values, chunks=(1 << 17,), maxshape=(None,), compression="gzip")
    document = zarrbits.plan(files, concat="v:0", allow_overlap=True).document
    notes = zarrbits.Plan(True, document["datasets"], document).notes
    assert any("a regular grid keeps" in note and "a rectilinear grid" in note for note in notes) == any(
        "grids" in d for d in document["datasets"]
    )


def test_a_plan_of_everything():
    """Whatever the command may say has a line."""
    grid = {
        "used": "regular",
        "suggested": "rectilinear",
        "regular": {"chunks": 10, "copied": 1},
        "rectilinear": {"chunks": 1, "copied": 1},
    }
    sources = [
        {"file": "a", "notes": []},
        {"file": "b", "notes": ["differs"]},
        {"file": "c", "notes": ["differs"]},
        {"file": "d", "notes": ["is damaged; see --keep-going"], "left_out": True},
    ]
    document = {
        "convention": "netcdf",
        "datasets": [{"path": "/x", "outcome": "recoded", "store_bytes": 5, "grids": grid}],
        "other_files": ["e"],
        "refused_files": [{"file": "f", "reason": "use --external"}],
        "links": {"copied": 1, "kept": 0, "lost": 2},
        "sources": sources,
    }
    assert zarrbits.Plan(False, document["datasets"], document).notes == [
        '"/x": a regular grid keeps 1 of 10 chunks, a rectilinear grid keeps 1 of 1 chunk; '
        'grid="rectilinear" encodes less than half as much again',
        "convention netcdf",
        'left out "d": is damaged; see `keep_going=True`',
        '"b" and 1 more: differs',
        "links: 1 copied, 2 whose targets cannot be copied",
        'reads also "e"',
        "not read: use `external`",
    ]


def test_inspect_shows_chunks_shards_and_unfinished_stores(folder):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    zarrbits.convert(source, store, partition="1/3")
    seen = zarrbits.inspect(store)
    assert seen.unfinished[0]["name"] == store and repr(seen) == f"<zarrbits.Inspection: {store} (unfinished)>"
    for shown in str(seen), seen._repr_html_():
        assert "is an unfinished store" in shown and "of 2 units made" in shown and "partitions 0, 2 of 3 are missing" in shown
        assert "finalize() completes it" in shown
    zarrbits.convert(source, store, resume=True)
    sharded = os.path.join(folder, "sharded.zarr")
    zarrbits.convert(source, sharded, shard=(8, 8))
    assert words(zarrbits.inspect(source), "/x")[2:5] == ["8x8", "int64", "4x8"]
    assert words(zarrbits.inspect(source), "/y")[4] == "contiguous" and words(zarrbits.inspect(store), "/y")[4] == "10"
    assert words(zarrbits.inspect(sharded), "/x")[4:7] == ["4x8", "in", "8x8"]


def test_a_report_names_all_files(folder):
    paths, store = [made(folder, f"{i}.h5", i * 64) for i in range(5)], os.path.join(folder, "out.zarr")
    report = zarrbits.convert(paths, store, concat="x:0")
    assert report.sources == paths and report.source == paths[0]
    assert str(report).startswith(", ".join(paths[:3]) + f" and 2 more to {store} in ")
    assert repr(report).startswith(f"<zarrbits.Report: {', '.join(paths[:3])} and 2 more to {store}, ")
    store = os.path.join(folder, "partitions.zarr")
    assert zarrbits.convert(paths, store, concat="x:0", partition="0/2").sources == paths
    assert zarrbits.convert(paths, store, concat="x:0", partition="1/2").sources == paths
    assert zarrbits.finalize(paths, store, concat="x:0").sources == paths
    assert zarrbits.finalize(paths, store, concat="x:0").objects == []  # complete already


@pytest.mark.parametrize("cf_aggregation", [False, True])
def test_a_file_that_names_parts_in_others(folder, cf_aggregation):
    paths = []
    for k in range(2):
        paths.append(os.path.join(folder, f"{k}.nc"))
        with h5py.File(paths[-1], "w") as f:
            f["t"] = [k]
            f["t"].make_scale("t")
            f["x"] = [7.0 + k]
            f["x"].dims[0].attach_scale(f["t"])
            f["text"] = [f"part {k}"]
            f["text"].dims[0].attach_scale(f["t"])
    store = os.path.join(folder, "all.nc")
    report = zarrbits.convert(paths, store, virtual=True, concat="t", cf_aggregation=cf_aggregation)
    assert (report.sources, report.source, report.store, report.objects, report.lost) == (paths, paths[0], store, [], [])
    assert [p["place"] for p in report.document["files"]] == [[{"dimension": "/t", "first": k, "count": 1}] for k in range(2)]
    assert len(report.document["notes"]) == cf_aggregation and store in repr(report) and store in str(report)
    with h5py.File(store) as f:
        assert f["x"].is_virtual != cf_aggregation and ("aggregated_data" in f["x"].attrs) == cf_aggregation


def test_all_have_a_short_repr_and_can_be_sent(folder):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    with h5py.File(source, "r+") as f:
        for i in range(300):
            f[f"many/{i}"] = i
    made_of = {
        zarrbits.Plan: zarrbits.plan(source),
        zarrbits.Report: zarrbits.convert(source, store),
        zarrbits.Verification: zarrbits.verify(source, store),
        zarrbits.Inspection: zarrbits.inspect(store),
        zarrbits.Export: zarrbits.export_store(store, os.path.join(folder, "back.h5")),
        zarrbits.LayoutCheck: zarrbits.check_layout(source),
        zarrbits.Digest: zarrbits.digest(source),
        zarrbits.Check: zarrbits.check(store),
        zarrbits.Repack: zarrbits.repack(source, os.path.join(folder, "repacked.h5")),
        zarrbits.Suggestions: zarrbits.suggest(source),
        zarrbits.Diagnosis: zarrbits.doctor(),
    }
    assert set(made_of) == set(reports._Shown.__subclasses__())
    for kind, report in made_of.items():
        assert repr(report).startswith(f"<zarrbits.{kind.__name__}: ") and len(repr(report)) < 300, repr(report)
        again = pickle.loads(pickle.dumps(report))
        assert again == report and str(again) == str(report)
    assert "304 objects" in repr(made_of[zarrbits.Report]) or "objects" in repr(made_of[zarrbits.Report])


def test_the_package_logs(folder, caplog):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    with caplog.at_level(logging.DEBUG, "zarrbits"):
        zarrbits.convert(source, store)
        with concurrent.futures.ThreadPoolExecutor(1) as client:
            zarrbits.convert(source, os.path.join(folder, "other.zarr"), client=client, partitions=2)
        with pytest.raises(zarrbits.Error):
            zarrbits.convert(
                source, store, headers={"Authorization": "Bearer word"}, storage_options={"key": "a", "secret": "word"}
            )
    assert {r.name for r in caplog.records} == {"zarrbits"} and "word" not in caplog.text
    said = [(r.levelname, r.getMessage()) for r in caplog.records]
    assert said[0][0] == "DEBUG" and said[0][1].endswith(f"-- {source} {store}") and " convert --json " in said[0][1]
    assert said[-1][0] == "INFO" and f'zarrbits convert of "{source}" and 1 more: exit status 1 after ' in said[-1][1]
    assert ("INFO", f'partition 1/2 of "{source}" is done') in said


def test_warnings_are_logged_too_and_nothing_is_printed_unasked(folder):
    script = """
import logging, sys, warnings, zarrbits
from zarrbits import command
if len(sys.argv) > 3: logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
zarrbits.convert(sys.argv[1], sys.argv[2], memory="32M", compress="zstd:1", allow_expansion=True)
"""
    source = os.path.join(folder, "wide.h5")
    with h5py.File(source, "w") as f:
        options = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        f.create_dataset("x", data=np.zeros(40 << 20, "u1"), chunks=(40 << 20,), **options)
    for asked in [], ["asked"]:
        store = os.path.join(folder, f"out{len(asked)}.zarr")
        words = [sys.executable, "-W", "ignore", "-c", script, source, store, *asked]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
        assert said.startswith("WARNING zarrbits ") and "memory" in said if asked else said == "", said
