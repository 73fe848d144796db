# SPDX-License-Identifier: BSL-1.0
"""A store as the source that somebody writes to: what is made is of one state of it, or the run ends. The sizes of its objects do
not change here."""

import json
import os
import pathlib
import shutil
import zipfile

import h5py
import numpy as np
import pytest

from harness import COMMAND, convert, refused, run, same
from kills import begin, end, slow_writes

SHAPE, CHUNK = (400, 100), (4, 100)


def values(number):
    return (np.arange(np.prod(SHAPE)).reshape(SHAPE) + 10**6 * number).astype("i4")


def write(path, number):
    """A store of which every chunk is `number`'s, in a way that changes the values alone."""
    with h5py.File(f"{path}.h5", "w") as f:
        f.create_dataset("a", data=values(number), chunks=CHUNK)
        f.create_dataset("b", data=values(number + 1), chunks=CHUNK)
    convert(f"{path}.h5", path, "-q", "--overwrite")


@pytest.fixture(name="source")
def source_of(tmp_path):
    write(tmp_path / "in.zarr", 0)
    write(tmp_path / "other.zarr", 5)
    return tmp_path / "in.zarr"


def change(store, key):
    """A chunk gets other values of the same size."""
    data = bytearray((store / key).read_bytes())
    data[0] ^= 1
    (store / key).write_bytes(data)


WAYS = {
    "as it is": [],
    "shards": ["--shard", "40x100"],
    "recode": ["--compress", "zstd:3"],
    "other chunks": ["--chunk", "13x50"],
}


@pytest.mark.parametrize("way", WAYS)
def test_values_that_change_between_shares_are_not_mixed(source, tmp_path, way):
    out = tmp_path / "out.zarr"
    convert(source, out, "-q", "--partition", "0/2", *WAYS[way])
    change(source, "b/c/99/0")
    assert "before its source changed" in refused("convert", source, out, "--partition", "1/2", *WAYS[way])
    assert "before its source changed" in refused("convert", source, out, "--resume")
    assert "before its source changed" in refused("convert", source, out, *WAYS[way])


def test_values_that_change_before_finalize_are_noticed(source, tmp_path):
    out = tmp_path / "out.zarr"
    for share in range(2):
        convert(source, out, "-q", "--partition", f"{share}/2")
    change(source, "a/c/0/0")
    assert "before its source changed" in refused("finalize", source, out)


def test_the_same_bytes_in_an_archive_are_the_same_store(source, tmp_path):
    def archive(store):
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as z:
            for path in sorted(pathlib.Path(store).rglob("*")):
                if path.is_file():
                    z.write(path, path.relative_to(store))

    out = tmp_path / "out.zarr"
    archive(source)
    convert(tmp_path / "in.zip", out, "-q", "--partition", "0/2")
    archive(source)
    convert(tmp_path / "in.zip", out, "-q", "--partition", "1/2")
    change(source, "b/c/99/0")
    archive(source)
    assert "before its source changed" in refused("finalize", tmp_path / "in.zip", out)


def test_a_file_that_references_lead_to_is_part_of_the_source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("a", data=values(0), chunks=CHUNK)
    convert(tmp_path / "in.h5", tmp_path / "in.json", "-q", "--virtual")
    # as other programs write them, without the state of the file
    document = json.loads((tmp_path / "in.json").read_text(encoding="utf-8"))
    refs = {k: v for k, v in document["refs"].items() if not k.endswith(("/.zarray", ".zattrs", ".zgroup"))}
    (tmp_path / "in.json").write_text(json.dumps({"version": 1, "refs": refs}), encoding="utf-8")
    out = tmp_path / "out.zarr"
    options = ["--external", tmp_path]
    convert(tmp_path / "in.json", out, "-q", "--partition", "0/2", *options)
    with h5py.File(tmp_path / "in.h5", "r+") as f:
        f["a"][399] = 7
    assert "before its source changed" in refused("convert", tmp_path / "in.json", out, "--partition", "1/2", *options)


def stopped_at(process, folder):
    """Waits until the first chunk is made."""
    while process.poll() is None and not any(folder.rglob("c/*")):
        pass


@pytest.mark.parametrize("how", ["in place", "replaced", "removed"])
@pytest.mark.parametrize("way", WAYS)
def test_values_that_change_during_a_run_end_it(source, tmp_path, way, how):
    out = tmp_path / "out.zarr"
    process = begin("convert", source, out, "-q", "--threads", "1", *WAYS[way], **slow_writes())
    stopped_at(process, out)
    for number in range(50, 100):
        chunk = source / f"b/c/{number}/0"
        if how == "in place":
            change(source, f"b/c/{number}/0")
        elif how == "replaced":
            shutil.copyfile(tmp_path / f"other.zarr/b/c/{number}/0", tmp_path / "new")
            os.replace(tmp_path / "new", chunk)
        else:
            os.remove(chunk)
    status, said = end(process)
    if status == 0:  # it was faster, on a busy machine
        pytest.skip("the run was over")
    assert status == 1 and "was changed while it was converted" in said, said
    assert "to continue" not in said
    assert not (out / "zarr.json").exists()


def test_a_store_that_changes_during_an_export_makes_no_file(source, tmp_path):
    process = begin("export", source, tmp_path / "out.h5", "-q", **slow_writes())
    while process.poll() is None and not any(p.name.startswith("out.h5") for p in tmp_path.iterdir()):
        pass
    change(source, "b/c/99/0")
    status, said = end(process)
    if status == 0:  # it was faster, on a busy machine
        pytest.skip("the export was over")
    assert status == 1 and "was changed while it was exported" in said, said
    assert not any(p.name.startswith("out.h5") for p in tmp_path.iterdir())
    run("export", source, tmp_path / "out.h5", "-q")


def test_a_store_that_nobody_writes_to_is_converted(source, tmp_path):
    for number, way in enumerate(WAYS.values()):
        convert(source, tmp_path / f"{number}.zarr", "-q", *way)
    same(source, tmp_path / "0.zarr")
    assert COMMAND and run("verify", source, tmp_path / "3.zarr", status=0)
