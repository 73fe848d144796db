# SPDX-License-Identifier: BSL-1.0
"""Digests of a source that several runs read, each a share of it, are those of one run."""

import json

import h5py
import numpy as np
import pytest

from harness import convert, refused, run
from value_digests import array_digest


def one_run(name, *options):
    report = json.loads(run("digest", "--json", "-q", name, *options, status=(0, 3)).stdout)
    return report["digest"], report["arrays"]


def partitions(name, count, folder, *options):
    """The reports of all shares, in files."""
    files = []
    for index in range(count):
        done = run("digest", "--json", "-q", "--partition", f"{index}/{count}", name, *options, status=(0, 3))
        files.append(folder / f"{count}-{index}.json")
        files[-1].write_text(done.stdout)
    return files


def added(files):
    report = json.loads(run("digest", "--add", "--json", *files, status=(0, 3)).stdout)
    return report["digest"], report["arrays"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("partitions") / "in.h5"
    rng = np.random.default_rng(57)
    with h5py.File(path, "w") as f:
        f.create_dataset("big", data=rng.standard_normal((200, 300)), chunks=(16, 70), compression="gzip")
        f.create_dataset("filled", (400, 100), "i2", chunks=(30, 30), fillvalue=-7)[50:170, 20:90] = 5
        f.create_dataset("contiguous", data=rng.integers(0, 255, (1000, 1000), "u1"))
        words = f.create_dataset("words", (90,), h5py.string_dtype(), chunks=(7,), fillvalue="none")
        words[10:50] = [f"word {i}" for i in range(40)]
        ragged = f.create_dataset("ragged", (20,), h5py.vlen_dtype("i4"), chunks=(3,))
        for i in range(15):
            ragged[i] = np.arange(i)
        f["latin"] = np.array([b"\xe4", b"ab"], "S2")
        f["scalar"] = 3.5
        f["null"] = h5py.Empty("f4")
        f.create_dataset("empty", (0, 3), "f4", maxshape=(None, 3), chunks=(1, 3))
        f.create_dataset("unwritten", (10, 10), "f8", fillvalue=2.5)
    return path


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_shares_of_a_file_add_up(source, tmp_path, count):
    files = partitions(source, count, tmp_path)
    assert added(files) == added(reversed(files)) == one_run(source)
    with h5py.File(source) as f:
        assert {a["path"]: a["digest"] for a in added(files)[1]}["/big"] == array_digest(f["big"][...])


@pytest.mark.parametrize("options", [[], ["--shard", "64K"], ["--codec", "packbits"]], ids=" ".join)
def test_shares_of_a_store_add_up(source, tmp_path, options):
    convert(source, tmp_path / "out.zarr", *options)
    for count in (1, 3, 8):
        files = partitions(tmp_path / "out.zarr", count, tmp_path)
        assert added(files) == one_run(source)
        assert all(json.loads(file.read_text())["digest"] is None for file in files)


def test_shares_divide_the_work(source, tmp_path):
    """No share alone has all that the sums need."""
    convert(source, tmp_path / "out.zarr")
    for name, options in ((source, []), (tmp_path / "out.zarr", ["--include", "/big"])):
        parts = [json.loads(file.read_text())["arrays"] for file in partitions(name, 3, tmp_path, *options)]
        sums = [{a["path"]: a["sums"] for a in part if a["sums"] != ["0" * 32] * 2} for part in parts]
        assert all(sums) and sums[0] != sums[1] != sums[2]


def test_any_nan_and_patterns_add_up(source, tmp_path):
    options = ["--nan", "any", "--include", "/big", "--include", "/filled"]
    assert added(partitions(source, 2, tmp_path, *options)) == one_run(source, *options)


def test_an_array_without_a_digest_has_none_of_all_shares(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["good"] = np.arange(3)
        layout = h5py.VirtualLayout((3,), "i4")
        layout[:] = h5py.VirtualSource(tmp_path / "missing.h5", "x", (3,))
        f.create_virtual_dataset("bad", layout)
    assert added(partitions(tmp_path / "in.h5", 3, tmp_path)) == one_run(tmp_path / "in.h5")
    assert one_run(tmp_path / "in.h5")[0] is None


def not_added(*files):
    return refused("digest", "--add", *files, status=(1, 2))


def changed(file, change):
    report = json.loads(file.read_text())
    change(report)
    other = file.with_name("changed.json")
    other.write_text(json.dumps(report))
    return other


def test_what_does_not_add_up_is_refused(source, tmp_path):
    files = partitions(source, 3, tmp_path)

    def array(report, **values):
        next(a for a in report["arrays"] if a["path"] == "/contiguous").update(values)

    assert "that of partition 1/3 is missing" in not_added(files[0], files[2])
    assert "is of partition 2/3, too" in not_added(*files, files[2])
    holder = next(f for f in files if "/contiguous" in f.read_text())
    others = [f for f in files if f != holder]
    again = holder.with_name("again.json")
    twice = changed(holder, lambda r: r["partition"].update(index=(r["partition"]["index"] + 1) % 3))
    twice.rename(again)
    third = next(f for f in others if json.loads(f.read_text())["partition"] != json.loads(again.read_text())["partition"])
    for change in (
        lambda r: array(r, shape=[1000, 999]),
        lambda r: array(r, data_type="int8"),
        lambda r: array(r, fill_sums=["0" * 31 + "1"] * 2),
    ):
        assert 'fill value of "/contiguous" is not that of' in not_added(changed(holder, change), again, third)
    for change in (
        lambda r: r.update(source="other.h5"),
        lambda r: r["partition"].update(include=["/big"]),
        lambda r: r["partition"].update(exclude=["/big"]),
        lambda r: r["partition"].update(count=4),
    ):
        assert "of one source and the same options" in not_added(*others, changed(holder, change))
    for sums in (["0"], ["0" * 32], ["g" * 32] * 2, ["7" + "f" * 31] * 2, ["0" * 32] * 3):
        assert "a sum in it is damaged" in not_added(*others, changed(holder, lambda r: array(r, sums=sums)))
    for content in ("", "[]", "{}", '{"partition": 1}', '{"partition": {"index": 3, "count": 3}}', "[" * 100000):
        (tmp_path / "bad.json").write_text(content)
        assert "is not the report of a partition" in not_added(tmp_path / "bad.json")
    assert "cannot open" in not_added(tmp_path / "none.json")


def test_options_that_do_not_go_together_are_refused(source):
    assert "use --json" in refused("digest", "--partition", "0/2", source, status=2)
    assert "shares are numbered from 0" in refused("digest", "--json", "--partition", "2/2", source, status=2)
    assert "about one name" in refused("digest", "--json", "--partition", "0/2", source, source, status=2)
    assert "remove --add" in refused("digest", "--json", "--add", "--partition", "0/2", source, status=2)
    assert "remove --nan" in refused("digest", "--add", "--nan", "any", source, status=2)
