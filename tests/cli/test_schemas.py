# SPDX-License-Identifier: BSL-1.0
"""What commands print as JSON is as docs/schema says: with every kind of object, and of each kind of run."""

import json
import os
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from harness import COMMAND, run

jsonschema = pytest.importorskip("jsonschema")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "schema")


def schema(name):
    with open(os.path.join(FOLDER, name + ".schema.json"), encoding="utf-8") as f:
        document = json.load(f)
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def valid(name, document):
    schema(name).validate(document)
    return document


def printed(name, *arguments, status=0):
    return valid(name, json.loads(run(*arguments, status=status).stdout))


def example(path):
    with h5py.File(path, "w", userblock_size=512) as f:
        f.create_dataset("g/deflate", data=np.arange(1000, dtype="i4").reshape(50, 20), chunks=(10, 20), compression="gzip")
        f.create_dataset("packable", data=np.arange(1000, dtype="u2"), chunks=(100,))
        f["text"] = "hello"
        f["table"] = np.zeros(3, [("a", "i4"), ("b", "f8")])
        f["nothing"] = h5py.Empty("f4")
        f["type"] = np.dtype("i2")
        f["soft"] = h5py.SoftLink("/g")
        f["g"].attrs["x"] = 1.5
        f["refs"] = np.array([f["g"].ref], h5py.ref_dtype)
        f["time"] = np.arange(50.0)
        f["time"].make_scale()
        f["g/deflate"].dims[0].attach_scale(f["time"])
    return path


def unpacked_example(path):
    """A chunk as our filter leaves it if a value does not fit in 12 bits; made without the filter."""
    with h5py.File(path, "w") as f:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((64,))
        dcpl.set_filter(
            int(os.environ["ZARRBITS_PACKBITS_ID"]),
            h5py.h5z.FLAG_OPTIONAL,
            (12, 0, 0, 0, 0x5A504201, 2, 1, 2 | 16 << 8, 64, 0, 96, 0x100),
        )
        d = h5py.h5d.create(f.id, b"x", h5py.h5t.STD_U16LE, h5py.h5s.create_simple((64,)), dcpl)
        d.write_direct_chunk((0,), np.full(64, 5000, "<u2").tobytes())
    return path


def test_report_of_each_kind_of_run(tmp_path):
    source = example(tmp_path / "in.h5")
    made = printed("report", "convert", "--json", "-q", source, tmp_path / "out.zarr", "--exclude", "/text")
    files = [os.path.join(d, n) for d, _, names in os.walk(tmp_path / "out.zarr") for n in names]
    assert made["files"] == len(files) and made["bytes"] == sum(map(os.path.getsize, files))
    assert made["source_bytes"] == os.path.getsize(source) and made["sources"] == [
        {"file": str(source), "bytes": os.path.getsize(source)}
    ]
    assert {"group", "dataset", "datatype", "attribute", "link", "user_block"} <= {o["kind"] for o in made["objects"]}
    stored = {o["path"]: o["store_bytes"] for o in made["objects"] if o["kind"] == "dataset" and "store_bytes" in o}
    assert stored["/packable"] == 2000 and 0 < stored["/g/deflate"] < 4000
    # finalize and a resumed run count what all runs wrote
    for share in ("0/2", "1/2"):
        run("convert", "-q", source, tmp_path / "shares.zarr", "--partition", share, "--exclude", "/text")
    joined = printed("report", "finalize", "--json", "-q", source, tmp_path / "shares.zarr")
    assert (joined["files"], joined["bytes"]) == (made["files"], made["bytes"])
    virtual = printed("report", "convert", "--json", "-q", "--virtual", source, tmp_path / "refs.json")
    assert virtual["referred"]["objects"] >= 15 and virtual["bytes"] < virtual["referred"]["bytes"] + 30000
    shutil.copy(source, tmp_path / "in2.h5")
    several = printed(
        "report",
        "convert",
        "--json",
        "-q",
        "--concat",
        "time",
        "--allow-overlap",
        "--different",
        "first",
        source,
        tmp_path / "in2.h5",
        tmp_path / "all.zarr",
        status=0,
    )
    assert [s["bytes"] for s in several["sources"]] == 2 * [os.path.getsize(source)]


def test_plan_verify_inspect_suggest_doctor(tmp_path):
    source, store = example(tmp_path / "in.h5"), tmp_path / "out.zarr"
    printed("plan", "plan", "--json", source)
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["x"] = np.zeros(20000)
    assert "compressed" in printed("plan", "plan", "--json", tmp_path / "plain.h5")["datasets"][0]
    run("convert", "-q", source, store)
    assert (
        printed("verify", "verify", "--json", source, store)["datasets"]["equal"] == 8
    )  # /soft is a copy of /g, as netCDF's readers see it
    with open(store / "packable" / "c" / "3", "r+b") as f:
        f.write(b"\xff")
    assert printed("verify", "verify", "--json", source, store, status=1)["findings"][0]["index"] == [300]
    trees = printed("inspect", "inspect", "--json", "--attributes", source, store)["trees"]
    assert [t["format"] for t in trees] == ["HDF5", "Zarr v3"]
    run("convert", "-q", source, tmp_path / "begun.zarr", "--partition", "0/2")
    unpacked = printed("inspect", "inspect", "--json", unpacked_example(tmp_path / "unpacked.h5"))["trees"][0]["nodes"]
    assert unpacked[1]["unpacked_chunks"] == 1
    [begun] = printed("inspect", "inspect", "--json", tmp_path / "begun.zarr", status=3)["unfinished"]
    assert begun["share_count"] == 2 and begun["missing"] == [1] and 0 < begun["units_done"] < begun["units"]
    found = printed("suggest", "suggest", "--json", source)
    assert [d["convert"] for d in found["datasets"] if d["path"] == "/packable"] == ["--codec packbits --bits /packable=10"]
    for name in (source, store):
        assert printed("suggest-chunks", "suggest", "--chunks", "--json", name)["for"] == "both"
    printed("export", "export", "--json", "-q", store, tmp_path / "back.h5")
    printed("repack", "repack", "--json", "-q", "--chunk", "/packable=100", source, tmp_path / "repacked.h5")
    run("convert", "-q", "--virtual", source, tmp_path / "refs.json")
    assert printed("rename", "rename", "--json", tmp_path / "refs.json", tmp_path, "s3://bucket")["files"] == 1
    printed("digest", "digest", "--json", source)
    assert printed("digest", "digest", "--attributes", "--json", source)["attributes"]
    assert printed("report", "convert", "-q", "--digest", "--json", source, tmp_path / "noted.zarr")["digest"]["noted"]
    assert not printed("report", "convert", "-q", "--digest", "--json", source, tmp_path / "noted.zip")["digest"]["noted"]
    assert printed("check", "check", "--json", "-q", tmp_path / "noted.zarr")["digest"]
    assert printed("export", "export", "--digest", "--json", "-q", store, tmp_path / "noted.h5")["digest"]["noted"]
    printed("repack-check", "repack", "--check", "--json", tmp_path / "repacked.h5")
    assert printed("check", "check", "--json", "-q", source)["format"] == "HDF5"
    (store / "stray").write_bytes(b"")
    assert printed("check", "check", "--json", "-q", store, status=3)["findings"][0]["rule"] == "key"
    os.remove(store / "stray")
    printed("doctor", "doctor", "--json", source, status=run_status("doctor", "--json", source))


def run_status(*arguments):
    return run(*arguments, status=None).returncode


def test_log_lines(tmp_path):
    source = example(tmp_path / "in.h5")
    environment = {
        **os.environ,
        "ZARRBITS_PROGRESS_SECONDS": "0.000001",
        "SLURM_ARRAY_TASK_ID": "0",
        "SLURM_ARRAY_TASK_COUNT": "2",
    }
    done = subprocess.run(
        [COMMAND, "convert", "--log-format", "json", source, tmp_path / "out.zarr"],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done
    lines = [valid("log", json.loads(line)) for line in done.stderr.splitlines()]
    assert {line["level"] for line in lines} == {"info", "progress"} and any(
        "--partition slurm" in line.get("message", "") for line in lines
    )
    again = subprocess.run(
        [COMMAND, "convert", "--log-format", "json", source, tmp_path / "out.zarr"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    [line] = again.stderr.splitlines()
    assert (
        again.returncode == 1
        and valid("log", json.loads(line))["level"] == "error"
        and "complete store" in json.loads(line)["message"]
    )


def test_a_schema_refuses_what_is_not_so():
    report = {
        "version": 1,
        "converter": "x",
        "source": "a",
        "store": "b",
        "profile": "portable",
        "convention": "none",
        "links": {"copied": 0, "kept": 0, "lost": 0},
        "seconds": 0,
        "source_bytes": 1,
        "files": 1,
        "bytes": 1,
        "objects": [],
        "summary": dict.fromkeys(("raw", "rewrapped", "recoded", "mapped", "skipped", "lossy"), 0),
        "sources": [],
    }
    valid("report", report)
    for change in ({"bytes": -1}, {"bytes": "1"}, {"profile": "other"}, {"unknown": 1}, {"objects": [{"path": "/"}]}):
        with pytest.raises(jsonschema.ValidationError):
            valid("report", {**report, **change})


def test_the_reference_lists_every_key_of_the_report():
    with open(os.path.join(FOLDER, "..", "reference", "report.md"), encoding="utf-8") as f:
        _, of_report, of_object = f.read().split("\n| key of ")
    with open(os.path.join(FOLDER, "report.schema.json"), encoding="utf-8") as f:
        properties = json.load(f)["properties"]
    for table, keys in ((of_report, properties), (of_object, properties["objects"]["items"]["properties"])):
        rows = [line.split("|")[1] for line in table.split("\n\n")[0].splitlines() if line.startswith("| `")]
        assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == set(keys)
