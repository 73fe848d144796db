# SPDX-License-Identifier: BSL-1.0
"""The digest that convert --digest and export --digest note at the root: check compares it, and no copy has it."""

import json
import shutil

import h5py
import numpy as np
import pytest

from harness import contents, run, verify
from value_digests import array_digest, tree_digest

VALUES = np.arange(1000.0).reshape(10, 100)
NOTE = f"zarrbits digest 1: {tree_digest({'/v': array_digest(VALUES), '/g/w': array_digest(np.arange(5))})}"


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(3, 40), compression="gzip")
        f["g/w"] = np.arange(5)
        f.attrs["title"] = "mine"
    return tmp_path / "in.h5"


@pytest.fixture
def store(source, tmp_path):
    run("convert", "-q", "--digest", "--compress", "none", source, tmp_path / "in.zarr")
    return tmp_path / "in.zarr"


def root(store):
    return json.loads((store / "zarr.json").read_text())


def note_of(store):
    attributes = root(store)["attributes"]
    return {**attributes.get("zarrbits", {}), **attributes.get("_nc_zarrbits", {})}.get("digest")


def check(name, *options, status=0):
    report = json.loads(run("check", "-q", "--json", *options, name, status=status).stdout)
    return report, [(f["severity"], f["reason"]) for f in report["findings"]]


def change_value(store):
    chunk = store / "v/c/1/1"
    data = bytearray(chunk.read_bytes())
    data[8] ^= 1
    chunk.write_bytes(data)


def test_the_root_of_a_store_notes_its_digest(store, source, tmp_path):
    assert note_of(store) == NOTE
    assert not [p for p in store.iterdir() if p.name.startswith(".")]
    run("convert", "-q", "--compress", "none", source, tmp_path / "plain.zarr")
    assert note_of(tmp_path / "plain.zarr") is None
    with_note, without = contents(store), contents(tmp_path / "plain.zarr")
    assert {k for k in with_note if with_note[k] != without[k]} == {"zarr.json"} and with_note.keys() == without.keys()
    assert root(store)["attributes"]["title"] == "mine"


def test_check_compares_the_note(store):
    report, findings = check(store)
    assert report["digest"] == NOTE[-64:] and not findings
    assert run("check", store).stdout.splitlines()[-1].endswith(", digest as noted")
    change_value(store)
    report, findings = check(store, status=3)
    ((severity, reason),) = findings
    assert severity == "problem" and NOTE[-64:] in reason and report["digest"] != NOTE[-64:] and report["digest"] in reason


def test_a_check_that_does_not_read_all_says_that_it_does_not_compare(store):
    change_value(store)
    for options in (["--metadata"], ["--sample", "50%"], ["--partition", "0/2"]):
        report, findings = check(store, *options)
        assert [severity for severity, _ in findings] == ["notice"] and "not compared" in findings[0][1], options
        assert "digest" not in report
    assert check(store, "--partition", "1/2")[1] == []


def test_an_unknown_form_cannot_be_checked(store):
    (store / "zarr.json").write_text((store / "zarr.json").read_text().replace("zarrbits digest 1: ", "zarrbits digest 9: "))
    assert [severity for severity, _ in check(store, status=3)[1]] == ["unchecked"]
    (store / "zarr.json").write_text((store / "zarr.json").read_text().replace("zarrbits digest 9: ", "zarrbits digest 1: x"))
    assert [severity for severity, _ in check(store, status=3)[1]] == ["unchecked"]


def test_damage_is_reported_once(store):
    (store / "v/c/0/0").write_bytes(b"oops")
    report, _ = check(store, status=3)
    assert [f["rule"] for f in report["findings"]] == ["chunk"]


def test_consolidated_metadata_stay_right(source, tmp_path):
    store = tmp_path / "c.zarr"
    run("convert", "-q", "--digest", "--consolidate", source, store)
    assert note_of(store) == NOTE and "consolidated_metadata" in root(store) and not check(store)[1]
    run("convert", "-q", source, tmp_path / "group.zarr")  # a store with a note within another one
    shutil.copytree(store, tmp_path / "group.zarr/inner")
    outer = root(tmp_path / "group.zarr")
    nodes = {
        str(p.parent.relative_to(tmp_path / "group.zarr")): json.loads(p.read_text())
        for p in (tmp_path / "group.zarr").rglob("zarr.json")
        if p.parent.name != "group.zarr"
    }
    outer["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": nodes}
    (tmp_path / "group.zarr/zarr.json").write_text(json.dumps(outer))
    assert not check(tmp_path / "group.zarr")[1]
    assert check(f"{tmp_path}/group.zarr:/inner")[0]["digest"] == NOTE[-64:]


def test_an_array_at_the_root(source, tmp_path):
    run("convert", "-q", "--digest", f"{source}:/v", tmp_path / "v.zarr")
    report, findings = check(tmp_path / "v.zarr")
    assert report["digest"] == tree_digest({"/": array_digest(VALUES)}) and not findings


def test_copies_do_not_have_it(store, source, tmp_path):
    for options in ([], ["--exclude", "/g"], ["--chunk", "2"], ["--shard", "1M"]):
        copy = tmp_path / f"copy{len(options)}.zarr"
        run("convert", "-q", "--overwrite", *options, store, copy)
        assert note_of(copy) is None and "mine" == root(copy)["attributes"]["title"]
        assert "digest" not in check(copy)[0]
        verify(store, copy, *options[:2] if options[:1] == ["--exclude"] else [])
        verify(copy, store) if not options else None
    run("convert", "-q", "--digest", store, tmp_path / "again.zarr")
    assert note_of(tmp_path / "again.zarr") == NOTE
    verify(store, tmp_path / "again.zarr")
    verify(source, store)


def test_an_exported_file_notes_its_digest(store, tmp_path):
    for name in "out.h5", "out.nc":
        out = tmp_path / name
        run("export", "-q", "--digest", store, out)
        with h5py.File(out) as f:
            assert f.attrs["zarrbits_digest"].decode() == NOTE and f.attrs["title"] in ("mine", b"mine")
        report, findings = check(out)
        assert report["digest"] == NOTE[-64:] and not findings
        run("convert", "-q", out, tmp_path / f"{name}.zarr")
        assert "zarrbits_digest" not in root(tmp_path / f"{name}.zarr")["attributes"]
        verify(out, tmp_path / f"{name}.zarr")
        run("repack", "-q", "--filter", "none", out, tmp_path / f"again-{name}")
        assert check(tmp_path / f"again-{name}")[0]["digest"] == NOTE[-64:]
        run("export", "-q", store, tmp_path / f"plain-{name}")
        with h5py.File(tmp_path / f"plain-{name}") as f:
            assert list(f.attrs) == ["title"]
        with h5py.File(out, "r+") as f:
            f["v"][3, 3] = -1
        assert [severity for severity, _ in check(out, status=3)[1]] == ["problem"]


def test_another_attribute_of_that_name_is_an_attribute(source, tmp_path):
    with h5py.File(source, "r+") as f:
        f.attrs["zarrbits_digest"] = "of mine"
    run("convert", "-q", "--digest", source, tmp_path / "out.zarr")
    assert root(tmp_path / "out.zarr")["attributes"]["zarrbits_digest"] == "of mine" and note_of(tmp_path / "out.zarr") == NOTE
    verify(source, tmp_path / "out.zarr")
    assert "digest" not in check(source)[0]


def test_a_store_that_grows_drops_it(tmp_path):
    for i in range(2):
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            f.create_dataset("v", data=np.full((3, 4), i), maxshape=(None, 4), chunks=(3, 4))
            f["v"].dims[0].label = "t"
    store = tmp_path / "out.zarr"
    run("convert", "-q", "--digest", tmp_path / "0.h5", store)
    assert note_of(store)
    run("convert", "-q", "--append", "t", tmp_path / "1.h5", store)
    assert note_of(store) is None and not check(store)[1]
    assert json.loads((store / "v/zarr.json").read_text())["shape"] == [6, 4]
