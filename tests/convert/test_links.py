# SPDX-License-Identifier: BSL-1.0
"""--links: what soft links, links into other files and further hard links lead to, in the store and for `zarrbits verify`."""

import json
import os
import shutil

import h5py
import numpy as np

from harness import run
from store import Store

FRAMES = np.arange(600, dtype="i4").reshape(20, 30)


def to_store(source, *options, status=0):
    out = os.path.join(os.path.dirname(source), "out.zarr")
    run("convert", "-q", "--overwrite", source, out, "--report", out + ".json", *options, status=status)
    shared = "--external", "--links", "--include", "--exclude"
    where = [o for i, o in enumerate(options) if o in shared or (i and options[i - 1] in shared)]
    if "none" in options:
        where = ["--links", "keep"]
    run("verify", source, out, *where)
    with open(out + ".json", encoding="utf-8") as f:
        return Store(out), json.load(f)


def links(report):
    return {o["path"]: o for o in report["objects"] if o["kind"] == "link"}


def data_file(name):
    """As a detector writes it; everything in it refers to something."""
    with h5py.File(name, "w") as f:
        d = f.create_dataset("entry/data/data", data=FRAMES, chunks=(5, 30), compression="gzip", shuffle=True)
        f.create_dataset("entry/data/plain", data=FRAMES, chunks=(5, 30))
        f["entry/soft"] = h5py.SoftLink("/entry/data/data")
        f["entry/twin"] = d
        f["entry/back"] = f["entry"]
        f["entry/refs"] = np.array([d.ref, f["entry/data"].ref], h5py.ref_dtype)
        f["entry"].attrs["refers to"] = d.ref
        f["entry/text"] = np.array(["one", "two"], h5py.string_dtype())


def master_file(folder):
    os.mkdir(f"{folder}/data")
    data_file(f"{folder}/data/d1.h5")
    name = f"{folder}/in.h5"
    with h5py.File(name, "w") as f:
        f["entry/first"] = h5py.ExternalLink("data/d1.h5", "/entry/data/data")
        f["entry/whole"] = h5py.ExternalLink("data/d1.h5", "/entry")
    return name


def local_file(folder):
    name = f"{folder}/in.h5"
    with h5py.File(name, "w") as f:
        f.create_dataset("a/d", data=FRAMES, chunks=(5, 30), compression="gzip").attrs["unit"] = "m"
        f["a/twin"] = f["a/d"]
        f["b/soft"] = h5py.SoftLink("/a/d")
        f["b/group"] = h5py.SoftLink("/a")
        f["b/up"] = h5py.SoftLink("/")
        f["a/self"] = f["a"]
        f["nothing"] = h5py.SoftLink("/none")
    return name


def test_other_files_are_copied(folder):
    source = master_file(folder)
    for options in (
        [],
        ["--shard", "64M"],
        ["--profile", "native"],
        ["--compress", "zstd", "--chunk", "10,10"],
        ["--links", "copy"],
    ):
        store, report = to_store(source, *options)
        for node in "entry/first", "entry/whole/data/data", "entry/whole/data/plain", "entry/whole/soft", "entry/whole/twin":
            assert store.meta(node)["shape"] == [20, 30], node
        assert report["links"] == {"copied": 3, "kept": 1, "lost": 0}
        assert report["other_files"] == [os.path.realpath(f"{folder}/data/d1.h5")]
    store, report = to_store(source)
    assert (store.read("entry/whole/data/plain") == FRAMES).all()
    raw = {o["path"]: o.get("outcome") for o in report["objects"] if o["kind"] == "dataset"}
    assert raw["/entry/whole/data/plain"] == "raw"  # copied from the other file, chunk for chunk
    # references are to where their objects stand now
    assert store.read("entry/whole/refs").tolist() == ["/entry/first", "/entry/whole/data"]
    assert store.attributes("entry/whole")["refers to"] == "/entry/first"
    # that there are links is still told
    assert store.notes("entry")["links"]["first"] == {"kind": "external", "file": "data/d1.h5", "target": "/entry/data/data"}
    assert not store.has("entry/whole/back") and "points back" in links(report)["/entry/whole/back"]["reason"]
    assert "3 copied" in run("plan", source).stdout
    # with HDF5's own terms, as with keep, they are notes
    for options in ["--convention", "none"], ["--links", "keep"]:
        store, report = to_store(source, *options)
        assert not store.has("entry/first") and report["links"] == {"copied": 0, "kept": 2, "lost": 0}
    assert "--links copy" in run("convert", source, f"{folder}/keep.zarr", "--links", "keep").stderr


def test_links_inside_of_the_file(folder):
    source = local_file(folder)
    store, report = to_store(source)
    assert not store.has("a/twin") and not store.has("b/soft") and report["links"] == {"copied": 0, "kept": 6, "lost": 0}
    store, report = to_store(source, "--links", "copy", status=3)
    for node in "a/d", "a/twin", "b/soft", "b/group/d", "b/group/twin":
        assert store.meta(node)["shape"] == [20, 30] and store.attributes(node)["unit"] == "m", node
    told = links(report)
    for path in "/a/self", "/b/up", "/b/group/self":
        assert "points back" in told[path]["reason"] and not told[path].get("lossy"), path
    assert told["/nothing"]["lossy"] and told["/nothing"]["outcome"] == "mapped"
    assert store.notes()["links"]["nothing"] == {"kind": "soft", "target": "/none"}
    said = run("convert", source, f"{folder}/2.zarr", "--links", "copy", "--report", f"{folder}/r.json", status=3).stderr
    assert "/nothing" in said and "back to a group" in said
    assert "/nothing" in run("plan", source, "--links", "copy", status=3).stdout
    refused = run("convert", source, f"{folder}/3.zarr", "--links", "refuse", status=1).stderr
    assert "--links is refuse" in refused and not os.path.exists(f"{folder}/3.zarr")
    run("convert", source, f"{folder}/3.zarr", "--links", "refuse", "--include", "/a/d")
    run("plan", source, "--links", "perhaps", status=2)


def test_what_is_missing_or_not_to_be_read(folder):
    source = master_file(folder)
    os.mkdir(f"{folder}/inside")
    inside = f"{folder}/inside/in.h5"
    os.mkfifo(f"{folder}/inside/pipe.h5")
    with open(f"{folder}/inside/text.h5", "w") as f:
        f.write("no HDF5 file\n")
    with h5py.File(inside, "w") as f:
        f["absent file"] = h5py.ExternalLink("absent.h5", "/d")
        f["absent object"] = h5py.ExternalLink("in.h5", "/none")
        f["outside"] = h5py.ExternalLink("../data/d1.h5", "/entry")
        f["passwd"] = h5py.ExternalLink("/etc/passwd", "/")
        f["pipe"] = h5py.ExternalLink("pipe.h5", "/")
        f["text"] = h5py.ExternalLink("text.h5", "/")
    store, report = to_store(inside, status=3)
    told = links(report)
    assert len(told) == 6 and all(o["lossy"] for o in told.values()) and report["links"]["lost"] == 6
    assert "absent.h5" in told["/absent file"]["reason"] and "outside the source's folder" in told["/outside"]["reason"]
    assert "not a regular file" in told["/pipe"]["reason"]
    refused = {r["file"] for r in report["refused_files"]}
    assert refused == {os.path.realpath(p) for p in (f"{folder}/data/d1.h5", "/etc/passwd", f"{folder}/inside/pipe.h5")}
    plan = json.loads(run("plan", "--json", inside, status=3).stdout)
    assert {d["path"] for d in plan["datasets"] if d["outcome"] == "skipped"} == set(told) and plan["links"]["lost"] == 6
    store, report = to_store(inside, "--external", f"{folder}/data", status=3)
    assert store.has("outside/data/data") and report["links"]["copied"] == 2
    # who may read it is asked again
    assert "outside the source's folder" in run("verify", inside, store.path, status=1).stdout
    assert source


def test_verify_compares_copies(folder):
    source = master_file(folder)
    store, _ = to_store(source)
    at = store.path

    def broken(change, *words):
        shutil.rmtree(f"{folder}/broken", ignore_errors=True)
        shutil.copytree(at, f"{folder}/broken")
        change(f"{folder}/broken")
        said = run("verify", source, f"{folder}/broken", status=1).stdout
        assert all(word in said for word in words), said

    def flip(root):
        with open(f"{root}/entry/whole/data/plain/c/1/0", "r+b") as f:
            f.write(b"\x7f")

    def rename(root):
        name = f"{root}/entry/whole/zarr.json"
        with open(name, encoding="utf-8") as f:
            text = f.read()
        with open(name, "w", encoding="utf-8") as f:
            f.write(text.replace('"/entry/first"', '"/entry/whole/text"'))

    broken(flip, "/entry/whole/data/plain differs at [5, 0]")
    broken(rename, "refers to")
    broken(lambda root: shutil.rmtree(f"{root}/entry/whole/data/plain"), "missing: /entry/whole/data/plain")
    # a note in the place of a copy is not taken for one
    shutil.rmtree(f"{folder}/broken/entry/first")
    shutil.copytree(f"{at}/entry/whole/data/plain", f"{folder}/broken/entry/whole/data/plain")
    said = run("verify", source, f"{folder}/broken", status=3).stdout
    assert 'unchecked: /entry has a link "first"' in said and "--links keep" in said, said
    run("verify", source, f"{folder}/broken", "--links", "keep")
    said = run("verify", source, f"{folder}/broken", "--links", "copy", status=1).stdout
    assert 'missing: /entry has a link "first"' in said, said
    with h5py.File(f"{folder}/data/d1.h5", "r+") as f:
        f["entry/data/data"][3, 4] = -1
    said = run("verify", source, at, status=1).stdout
    assert "/entry/first differs at [3, 4]" in said and "/entry/whole/soft differs at [3, 4]" in said


def test_selection(folder):
    source = master_file(folder)
    store, _ = to_store(source, "--include", "/entry/whole/data/plain")
    assert store.has("entry/whole/data/plain") and not store.has("entry/first") and not store.has("entry/whole/text")
    run("verify", source, store.path, "--include", "/entry/whole/data/plain")
    store, _ = to_store(source, "--exclude", "/entry/whole/data")
    assert store.has("entry/whole/text") and not store.has("entry/whole/data")
    run("verify", source, store.path, "--exclude", "/entry/whole/data")
    out = f"{folder}/part.zarr"
    run("convert", "-q", source + ":/entry/whole/data", out, status=1)  # it lies in another file
    run("convert", "-q", source + ":/entry", out)
    assert Store(out).has("whole/data/plain")
    run("verify", source + ":/entry", out)


def test_parts_and_plans_know_it(folder):
    source = local_file(folder)
    out = f"{folder}/shared.zarr"
    for i in 0, 1:
        run("convert", "-q", source, out, "--partition", f"{i}/2", "--links", "copy")
    assert "--links" in run("convert", "-q", "--resume", source, out, "--links", "keep", status=1).stderr
    run("finalize", "-q", source, out, status=3)
    assert Store(out).has("b/group/twin")
    run("verify", source, out)
    run("convert", "-q", source, out, "--resume")


def test_files_that_link_to_each_other(folder):
    for here, there in ("in", "other"), ("other", "in"):
        with h5py.File(f"{folder}/{here}.h5", "w") as f:
            f["g/d"] = FRAMES
            f["g/next"] = h5py.ExternalLink(f"{there}.h5", "/g")
            f["g/all"] = h5py.ExternalLink(f"{there}.h5", "/")
    store, report = to_store(f"{folder}/in.h5")
    assert store.has("g/next/d") and store.has("g/all/g/d") and report["links"]["lost"] == 0
    assert not store.has("g/next/next")
    # two links to each next group: 2^30 paths
    with h5py.File(f"{folder}/many.h5", "w") as f:
        g = f
        for _ in range(30):
            below = g.create_group("a")
            g["b"] = below
            g = below
    plan = json.loads(run("plan", "--json", f"{folder}/many.h5", "--links", "copy", status=3).stdout)
    assert plan["groups"] == 100_031 and any("100000 objects" in d["reason"] for d in plan["datasets"])


def test_readers_that_see_links(folder):
    # xarray shows a variable for each of its links
    with h5py.File(f"{folder}/in.nc", "w", track_order=True) as f:
        f.attrs["_NCProperties"] = "version=2,hdf5=1.10.8"
        f["x"] = np.arange(3)
        f["x"].make_scale("x")
        f["v"] = np.arange(3.0)
        f["v"].dims[0].attach_scale(f["x"])
        f["twin"] = f["v"]
        f["soft"] = h5py.SoftLink("/v")
    store, report = to_store(f"{folder}/in.nc")
    assert report["convention"] == "netcdf" and report["links"]["copied"] == 2
    for name in "v", "twin", "soft":
        assert store.read(name).tolist() == [0, 1, 2] and store.meta(name)["dimension_names"] == ["x"]
    # NWB's reader has links of its own, but none into other files that are HDF5
    data_file(f"{folder}/d1.h5")
    with h5py.File(f"{folder}/in.nwb", "w") as f:
        f.attrs["nwb_version"] = f.attrs["neurodata_type"] = "x"
        f["d"] = FRAMES
        f["soft"] = h5py.SoftLink("/d")
        f["other"] = h5py.ExternalLink("d1.h5", "/entry/data/data")
    store, report = to_store(f"{folder}/in.nwb")
    assert store.has("other") and not store.has("soft") and report["links"] == {"copied": 1, "kept": 1, "lost": 0}
    assert [link["name"] for link in store.attributes()["_LINKS"]] == ["soft"]
