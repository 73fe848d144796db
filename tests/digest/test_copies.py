# SPDX-License-Identifier: BSL-1.0
"""--digest of convert, export and repack: the report has the digests of the source and of what was written, which are equal."""

import json
import os
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, refused, run
from value_digests import array_digest, tree_digest


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=np.arange(1000.0).reshape(10, 100), chunks=(3, 40), compression="gzip", fletcher32=True)
        f.create_dataset("g/text", data=np.array(["a", "yö"], object), dtype=h5py.string_dtype())
    return tmp_path / "in.h5"


def expected(**noted):
    arrays = {
        "/v": array_digest(np.arange(1000.0).reshape(10, 100)),
        "/g/text": array_digest(np.array(["a", "yö"], object)),
    }
    return {
        "source": tree_digest(arrays),
        "target": tree_digest(arrays),
        "arrays": [{"path": path, "source": arrays[path], "target": arrays[path]} for path in sorted(arrays)],
        **noted,
    }


NOT_CHANGED = {"noted": False, "reason": "a store in one file, or of references, is not changed"}


@pytest.mark.parametrize("target", ["out.zarr", "out.zip", "refs.json"])
def test_convert_reports_the_digests_of_source_and_store(source, tmp_path, target):
    options = ["--virtual"] if target == "refs.json" else ["--chunk", "2"] if target == "out.zip" else []
    done = run("convert", "-q", "--digest", "--json", "--report", tmp_path / "r.json", source, tmp_path / target, *options)
    digests = json.loads(done.stdout)["digest"]
    assert digests == expected(**({"noted": True} if target == "out.zarr" else NOT_CHANGED))
    assert digests == json.loads((tmp_path / "r.json").read_text())["digest"]
    assert "digest" not in json.loads(run("convert", "-q", "--json", source, tmp_path / "plain.zarr").stdout)


def test_export_and_repack_report_the_digests(source, tmp_path):
    run("convert", "-q", source, tmp_path / "in.zarr")
    for command in (
        ["export", tmp_path / "in.zarr", tmp_path / "out.h5"],
        ["export", tmp_path / "in.zarr", tmp_path / "out.nc"],
        ["convert", tmp_path / "in.zarr", tmp_path / "again.h5"],
        ["repack", source, tmp_path / "repacked.h5", "--filter", "none"],
    ):
        noted = {} if command[0] == "repack" else {"noted": True}
        assert json.loads(run(*command, "-q", "--digest", "--json").stdout)["digest"] == expected(**noted), command


def test_netcdf_may_change_types(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["half"] = np.arange(5, dtype="f2")
        f["v"] = np.arange(5)
    run("convert", "-q", tmp_path / "in.h5", tmp_path / "in.zarr")
    done = run("export", "-q", "--digest", "--json", tmp_path / "in.zarr", tmp_path / "out.nc")
    half, v = json.loads(done.stdout)["digest"]["arrays"]
    assert half["source"] == array_digest(np.arange(5, dtype="f2")) != half["target"] and v["source"] == v["target"]


def test_what_the_report_names_may_differ(source, tmp_path):
    with h5py.File(source, "r+") as f:
        place = f["v"].id.get_chunk_info(2)
        layout = h5py.VirtualLayout((3,), "i4")
        layout[:] = h5py.VirtualSource(tmp_path / "missing.h5", "x", (3,))
        f.create_virtual_dataset("virtual", layout)
    data = bytearray(source.read_bytes())
    data[place.byte_offset + 20] ^= 1
    source.write_bytes(data)
    done = run("convert", "-q", "--digest", "--json", "--keep-going", source, tmp_path / "out.zarr", status=3)
    arrays = {a["path"]: (a["source"], a["target"]) for a in json.loads(done.stdout)["digest"]["arrays"]}
    assert arrays["/g/text"] == (array_digest(np.array(["a", "yö"], object)),) * 2 and "/v" not in arrays
    assert arrays.get("/virtual", (None,))[0] is None


def test_a_store_with_other_values_is_an_error(source, tmp_path):
    """A chunk changes after it was written: the command waits for somebody to read its report."""
    os.mkfifo(tmp_path / "report")
    out = tmp_path / "out.zarr"
    arguments = [COMMAND, "convert", "-q", "--digest", "--compress", "none", "--report", tmp_path / "report", source, out]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while len([p for p in out.rglob("v/c/*/*") if p.is_file()]) < 12 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        chunk = out / "v/c/1/1"
        data = bytearray(chunk.read_bytes())
        data[8] ^= 1
        chunk.write_bytes(data)
        (tmp_path / "report").read_text()  # now it goes on
        try:
            said = process.communicate(timeout=300)[1]
        finally:
            process.kill()
    assert process.returncode == 1 and 'the digest of array "/v"' in said and "compare both with `" not in said, said


def test_options_that_do_not_go_with_digest_are_refused(source, tmp_path):
    for options in (["--partition", "0/2"], ["--convention", "none"]):
        assert "--digest compares one source" in refused("convert", "--digest", *options, source, tmp_path / "out.zarr", status=2)
    for options in (["--in-place"], ["--check"]):
        assert "--digest compares the file" in refused("repack", "--digest", *options, source, status=2)
