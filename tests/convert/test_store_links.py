# SPDX-License-Identifier: BSL-1.0
"""Symbolic links in a directory store may lead to any file of whoever converts it. They are followed within the store, into what
git-annex keeps for the repository that the store is in, and where the user allows it; no other bytes get into a new store."""

import os
import pathlib

import numpy as np
import pytest

from harness import convert, refused, run, same, verify
from test_foreign_stores import array, group

FOUR = np.arange(4, dtype="i4")
SECRET = b"PASSWORD"  # as long as a chunk


def store(folder):
    group(folder)
    array(folder / "a", FOUR, 2)
    array(folder / "b", FOUR, 2)
    return folder


def to_secret(folder, chunk):
    """A chunk is a link to a file outside."""
    (folder / "secret").write_bytes(SECRET)
    link(chunk, folder / "secret")


def without_links(folder):
    """What convert makes of the store."""
    convert(store(folder / "plain"), folder / "plain.zarr", "-q", "--overwrite")
    return folder / "plain.zarr"


def link(path, target):
    os.remove(path)
    os.symlink(target, path)


def no_secret(folder, but="secret"):
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file() and not path.is_symlink() and path.name != but:
            assert SECRET not in path.read_bytes(), path


WAYS = {
    "copy": ["out.zarr"],
    "zip": ["out.zip"],
    "shard": ["out.zarr", "--shard", "4"],
    "compress": ["out.zarr", "--compress", "gzip:1"],
    "chunk": ["out.zarr", "--chunk", "3"],
    "export": ["out.h5"],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("relative", [False, True])
def test_a_chunk_outside_of_the_store(tmp_path, way, relative):
    source = store(tmp_path / "in")
    to_secret(tmp_path, source / "a/c/1")
    if relative:
        link(source / "a/c/1", "../../../secret")
    target, *options = WAYS[way]
    verb, allow = "export" if way == "export" else "convert", "--external"
    said = refused(verb, source, tmp_path / target, "-q", *options)
    assert "c/1" in said and "secret" in said and allow in said, said
    no_secret(tmp_path)
    done = run(verb, source, tmp_path / target, "-q", "--keep-going", *options, status=3)
    assert "secret" in done.stderr
    no_secret(tmp_path)
    for folder in (tmp_path, "all"):
        run(verb, source, tmp_path / target, "-q", "--overwrite", allow, folder, *options)
        verify(source, tmp_path / target, "--external", folder)


def test_folders_and_metadata_outside_of_the_store(tmp_path):
    other = store(tmp_path / "other")
    for name, place in (("chunks", "a/c"), ("array", "a"), ("metadata", "a/zarr.json")):
        source = store(tmp_path / f"{name}.zarr")
        os.rename(source / place, tmp_path / f"{name}.was")
        os.symlink(other / place, source / place)
        target = tmp_path / f"{name}.out.zarr"
        if name == "chunks":
            assert "other" in refused("convert", source, target, "-q")
            assert "other" in refused("export", source, tmp_path / f"{name}.h5", "-q")
        else:  # it is left out, and named
            assert "other" in convert(source, target, "-q", status=3).stderr
            assert "other" in run("export", source, tmp_path / f"{name}.h5", "-q", status=3).stderr
            assert "other" in run("inspect", "--json", source, status=3).stdout if name == "metadata" else True
        convert(source, target, "-q", "--overwrite", "--external", other)
        verify(source, target, "--external", other)


def test_verify_reads_no_link_that_leads_outside(tmp_path):
    source = store(tmp_path / "in")
    convert(source, tmp_path / "out.zarr", "-q")
    to_secret(tmp_path, tmp_path / "out.zarr/a/c/1")
    found = verify(source, tmp_path / "out.zarr", status=1)["findings"]
    assert [f["path"] for f in found] == ["/a"] and "secret" in found[0]["reason"] and "store_value" not in found[0], found
    found = verify(tmp_path / "out.zarr", source, status=1)["findings"]
    assert [f["path"] for f in found] == ["/a"] and "secret" in found[0]["reason"], found


def test_links_within_the_store_and_the_store_itself(tmp_path):
    source = store(tmp_path / "in")
    link(source / "a/c/1", "../../b/c/1")
    link(source / "b/c/0", (source / "a/c/0").absolute())
    os.symlink(source, tmp_path / "linked")
    for name in (source, tmp_path / "linked"):
        convert(name, tmp_path / "out.zarr", "-q", "--overwrite")
        same(tmp_path / "out.zarr", without_links(tmp_path))
        run("export", name, tmp_path / "out.h5", "-q", "--overwrite")
        verify(name, tmp_path / "out.h5")


def annexed(path, objects):
    """What git-annex does with a file: a link to it, by its key, in ".git/annex/objects" of the repository."""
    key = "SHA256E-s8--" + path.name
    place = objects / "Xq" / "7K" / key / key
    place.parent.mkdir(parents=True, exist_ok=True)
    os.rename(path, place)
    os.symlink(os.path.relpath(place, path.parent), path)


@pytest.mark.parametrize("repository", [".", "in", "sub"])
def test_repositories_of_git_annex(tmp_path, repository):
    """The store is in a repository, or is one; or the repository is one of another's, whose .git is a link to there."""
    top = tmp_path / "top"
    source = store(top / ("sub/in" if repository == "sub" else "in"))
    git = top / repository / ".git"
    objects = git / "annex/objects"
    if repository == "sub":
        objects = top / ".git/modules/sub/annex/objects"
        objects.mkdir(parents=True)
        os.symlink("../.git/modules/sub", git)
    for path in ("a/c/0", "a/c/1", "b/zarr.json"):
        annexed(source / path, objects)
    convert(source, tmp_path / "out.zarr", "-q")
    same(tmp_path / "out.zarr", without_links(tmp_path))
    run("export", source, tmp_path / "out.h5", "-q")


def test_a_repository_that_lies(tmp_path):
    """Whoever made the store may have made the repository, too."""
    source = store(tmp_path / "top/in")
    (tmp_path / "top/.git/annex").mkdir(parents=True)
    os.symlink(tmp_path, tmp_path / "top/.git/annex/objects")
    to_secret(tmp_path, source / "a/c/1")
    assert "secret" in refused("convert", source, tmp_path / "out.zarr", "-q")
    no_secret(tmp_path)


def test_references_lead_to_what_is_beside_them_or_allowed(tmp_path):
    """--external all means any file."""
    import json

    (tmp_path / "refs").mkdir()
    (tmp_path / "other").mkdir()
    for place in ("refs", "other"):
        (tmp_path / place / "data").write_bytes(FOUR.tobytes())
    zarray = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "compressor": None, "filters": None}
    zarray.update({"fill_value": 0, "order": "C"})
    for name, chunk in (("near", ["data", 0, 16]), ("far", [str(tmp_path / "other/data"), 0, 16])):
        refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(zarray), "a/0": chunk}
        (tmp_path / "refs" / f"{name}.json").write_text(json.dumps({"version": 1, "refs": refs}))
    for name, allow in (("near", []), ("far", ["all"]), ("far", [tmp_path / "other"])):
        source, target = tmp_path / "refs" / f"{name}.json", tmp_path / f"{name}{len(allow)}.zarr"
        convert(source, target, "-q", "--overwrite", *[w for a in allow for w in ("--external", a)])
        assert (target / "a/c/0").read_bytes() == FOUR.tobytes()
        verify(source, target, *[w for a in allow for w in ("--external", a)])
        run("export", source, tmp_path / "out.h5", "-q", "--overwrite", *[w for a in allow for w in ("--external", a)])
    assert "other" in refused("convert", tmp_path / "refs/far.json", tmp_path / "no.zarr", "-q")
    assert "other" in refused("export", tmp_path / "refs/far.json", tmp_path / "no.h5", "-q")
