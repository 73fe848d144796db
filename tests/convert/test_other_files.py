# SPDX-License-Identifier: BSL-1.0
"""Other files that an HDF5 file names, and that libhdf5 would read: those in its own folder are read and listed;
others are named and not read."""

import gzip
import json
import os

import h5py
import numpy as np
import pytest

from harness import convert, refused, run
from store import Store

SECRET = b"SECRET-0123456789"
SIZE = len(SECRET)


class Case:
    """Two folders: `inside` has the source, `outside` a secret, as raw bytes and as HDF5."""

    def __init__(self, folder):
        self.inside, self.outside = os.path.join(folder, "inside"), os.path.join(folder, "outside")
        os.mkdir(self.inside)
        os.mkdir(self.outside)
        self.source, self.store = os.path.join(self.inside, "in.h5"), os.path.join(folder, "out.zarr")
        self.raw, self.h5 = os.path.join(self.outside, "raw"), os.path.join(self.outside, "s.h5")
        with open(self.raw, "wb") as f:
            f.write(SECRET)
        with h5py.File(self.h5, "w") as f:
            f["d"] = np.frombuffer(SECRET, "u1")

    def convert(self, *options, status=0):
        report = self.store + ".json"
        done = run(
            "convert",
            "-q",
            "--overwrite",
            self.source,
            self.store,
            "--report",
            report,
            *options,
            status=status,
            cwd=self.inside,
        )
        with open(report, encoding="utf-8") as f:
            return json.load(f), done.stderr

    def leaked(self):
        return any(
            SECRET[:8] in open(os.path.join(at, name), "rb").read() for at, _, names in os.walk(self.store) for name in names
        )

    def refused(self, file, *options, dataset="/d"):
        """With no command does the source's dataset reach the file."""
        report, errors = self.convert(*options, status=3)
        assert not self.leaked(), self.store
        [entry] = [o for o in report["objects"] if o["path"] == dataset and o["kind"] == "dataset"]
        real = os.path.realpath(file)
        assert [r["file"] for r in report["refused_files"]] == [real], report
        assert real in entry["reason"] and real in errors, (entry, errors)
        assert real not in report.get("other_files", [])
        plan = json.loads(run("plan", "--json", self.source, *options, status=3, cwd=self.inside).stdout)
        assert [r["file"] for r in plan["refused_files"]] == [real]
        assert real in run("plan", self.source, *options, status=3, cwd=self.inside).stdout
        suggestion = run("suggest", "--all", self.source, *options, cwd=self.inside).stdout
        assert "SECRET" not in suggestion
        assert run("verify", self.source, self.store, *options, status=1, cwd=self.inside).stdout.count("d ")
        run("inspect", self.source, cwd=self.inside)
        return entry

    def allowed(self, file, *options):
        report, _ = self.convert(*options)
        assert report["other_files"] == [os.path.realpath(file)] and "refused_files" not in report, report
        assert self.leaked()
        plan = json.loads(run("plan", "--json", self.source, *options, cwd=self.inside).stdout)
        assert plan["other_files"] == [os.path.realpath(file)]
        run("verify", self.source, self.store, *options, cwd=self.inside)


def test_a_file_that_a_driver_made_several_of(folder):
    """The sentence names the driver."""
    for libver in "earliest", "latest":
        with h5py.File(os.path.join(folder, "family%d.h5"), "w", driver="family", memb_size=4096, libver=libver) as f:
            f["d"] = np.arange(5000)
        with h5py.File(os.path.join(folder, "split"), "w", driver="split", libver=libver) as f:
            f["d"] = np.arange(5000)
        for name, driver in ("family0.h5", "family"), ("split-m.h5", "split or multi"):
            for command in "inspect", "plan":
                errors = run(command, os.path.join(folder, name), status=1).stderr
                assert f"driver {driver} divides" in errors and "h5repack" in errors, errors


def external(f, name, file, size=SIZE):
    f.create_dataset(name, (size,), "u1", external=[(file, 0, size)])


def virtual(f, name, file, dataset="d", size=SIZE):
    layout = h5py.VirtualLayout((size,), "u1")
    layout[:] = h5py.VirtualSource(file, dataset, (size,))
    f.create_virtual_dataset(name, layout, fillvalue=7)


def test_raw_files_of_other_folders_are_not_read_unless_allowed(folder):
    for i, name in enumerate(("{outside}/raw", "../outside/raw", "link")):
        os.mkdir(os.path.join(folder, str(i)))
        case = Case(os.path.join(folder, str(i)))
        os.symlink(case.raw, os.path.join(case.inside, "link"))
        with h5py.File(case.source, "w") as f:
            external(f, "d", name.format(outside=case.outside))
            f["d"].attrs["kept"] = 1
        entry = case.refused(case.raw)
        assert entry["outcome"] == "skipped" and "--external" in entry["reason"]
        assert Store(case.store).notes()["skipped"]["d"]["attributes"] == {"kept": 1}
        case.allowed(case.raw, "--external", case.outside)
        case.allowed(case.raw, "--external", case.inside, "--external", "all")
    done = run("convert", case.source, case.store, "--external", case.raw, status=2)
    assert "not a folder" in done.stderr


@pytest.mark.parametrize(
    "words, status",
    [
        (["convert", "in.h5", "out.zarr"], 3),
        (["convert", "--concat", "t", "whole.h5", "in.h5", "out.zarr"], 3),
        (["convert", "--concat", "t", "whole.h5", "in.h5", "out.h5"], 1),
        (["convert", "in.h5", "out.json", "--virtual"], 3),
        (["plan", "--json", "in.h5"], 3),
        (["digest", "in.h5"], 3),
        (["check", "in.h5"], 3),
        (["suggest", "--all", "in.h5"], 0),
        (["verify", "in.h5", "in.h5"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_command_names_the_raw_file_that_is_missing(folder, words, status):
    for i, name in enumerate(("whole", "in")):
        with h5py.File(os.path.join(folder, name + ".h5"), "w") as f:
            f["t"] = np.arange(2) + 2 * i
            f["t"].make_scale("t")
            f.create_dataset("d", (2,), "i4", external=[(os.path.join(folder, name + ".raw"), 0, 8)])[:] = [1, 2]
            f["d"].dims[0].attach_scale(f["t"])
    os.remove(os.path.join(folder, "in.raw"))
    done = run(*words, status=status, cwd=folder)
    sentence = f'its external file "{folder}/in.raw" cannot be opened: No such file or directory'
    assert sentence in (done.stdout + done.stderr).replace('\\"', '"')


def test_raw_files_of_the_own_folder_are_read_and_listed(folder):
    case = Case(folder)
    os.mkdir(os.path.join(case.inside, "below"))
    raw = os.path.join(case.inside, "below", "raw")
    os.rename(case.raw, raw)
    with h5py.File(case.source, "w") as f:
        external(f, "d", "below/raw")
    case.allowed(raw)


def test_what_is_no_regular_file_is_never_opened(folder):
    case = Case(folder)
    os.mkfifo(os.path.join(case.inside, "pipe"))
    for file, make in (
        ("pipe", external),
        ("/dev/zero", external),
        (os.path.join(case.inside, "pipe"), virtual),
        ("/dev/zero", virtual),
    ):
        with h5py.File(case.source, "w") as f:
            make(f, "d", file)
        for options in ([], ["--external", "all"]):
            assert "not a regular file" in case.refused(os.path.join(case.inside, file), *options)["reason"]


def test_sources_of_virtual_datasets(folder):
    case = Case(folder)
    for name in (case.h5, "../outside/s.h5", "link.h5"):
        if name == "link.h5":
            os.symlink(case.h5, os.path.join(case.inside, name))
        with h5py.File(case.source, "w") as f:
            virtual(f, "d", name)
        entry = case.refused(case.h5)
        assert entry["outcome"] != "skipped" and entry["lossy"] and "1 source " in entry["reason"]
        case.allowed(case.h5, "--external", case.outside)


def test_a_file_of_the_same_name_beside_the_source_is_taken_as_libhdf5_does(folder):
    case = Case(folder)
    beside = os.path.join(case.inside, "s.h5")
    with open(case.h5, "rb") as f, open(beside, "wb") as g:
        g.write(f.read())
    with h5py.File(case.source, "w") as f:
        virtual(f, "d", case.h5)
    case.allowed(beside)


def test_sources_of_sources(folder):
    case = Case(folder)
    inner = os.path.join(case.inside, "inner.h5")
    with h5py.File(inner, "w") as f:
        external(f, "raw", case.raw)
        virtual(f, "virtual", case.h5)
        f["out"] = h5py.ExternalLink(case.h5, "/")
    for name, file in (("raw", case.raw), ("virtual", case.h5), ("out/d", case.h5)):
        with h5py.File(case.source, "w") as f:
            virtual(f, "d", "inner.h5", name)
        report, _ = case.convert(status=3)
        assert not case.leaked() and [r["file"] for r in report["refused_files"]] == [file]
        assert report["other_files"] == [inner]
        report, _ = case.convert("--external", case.outside)
        assert case.leaked() and sorted(report["other_files"]) == sorted([inner, file])


def test_a_virtual_dataset_has_the_chunks_and_compression_of_its_sources(folder):
    """As a detector's master file: else a few kilobytes become as many megabytes as there are zeros in the frames."""
    source, out = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    frames = np.zeros((4, 256, 256), "u4")
    frames[:, 10, 20] = np.arange(4)
    with h5py.File(source, "w") as f:
        stack = h5py.VirtualLayout((3, 4, 256, 256), "u4")
        rows = h5py.VirtualLayout((12, 256, 256), "u4")
        flat = h5py.VirtualLayout((256, 256), "u4")
        for i in range(3):
            with h5py.File(os.path.join(folder, f"data{i}.h5"), "w") as data:
                data.create_dataset("d", data=frames + i, chunks=(1, 256, 256), compression="gzip", shuffle=True)
            there = h5py.VirtualSource(f"data{i}.h5", "d", frames.shape)
            stack[i], rows[4 * i : 4 * i + 4] = there, there
        flat[:] = h5py.VirtualSource("data0.h5", "d", frames.shape)[1]
        f.create_virtual_dataset("stack", stack)
        f.create_virtual_dataset("rows", rows)
        f.create_virtual_dataset("flat", flat)
    run("convert", "-q", source, out)
    run("verify", source, out)
    for name, chunk in ("stack", [1, 1, 256, 256]), ("rows", [1, 256, 256]), ("flat", [256, 256]):
        meta = Store(out).meta(name)
        assert meta["chunk_grid"]["configuration"]["chunk_shape"] == chunk, meta
        assert meta["codecs"][-1]["name"] == "blosc" and meta["codecs"][-1]["configuration"]["shuffle"] == "shuffle", meta
    size = sum(os.path.getsize(os.path.join(at, n)) for at, _, names in os.walk(out) for n in names)
    assert size < 100_000, size  # of 6.5 MB


def test_attributes_of_a_skipped_dataset_are_compared(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        d = f.create_dataset("g/d", (4,), "f4", external=[(case.raw, 0, 16)])
        d.attrs["unit"], d.attrs["_FillValue"], d.attrs["n"] = "m", np.float32(-1), np.arange(3)
    case.convert(status=3)

    def counts():
        return json.loads(run("verify", "--json", case.source, case.store, status=1).stdout)["attributes"]

    assert counts()["equal"] == 3 and counts()["differs"] == 0
    name = os.path.join(case.store, "g", "zarr.json")
    with open(name, encoding="utf-8") as f:
        text = f.read()
    assert '"unit": "m"' in text
    with open(name, "w", encoding="utf-8") as f:
        f.write(text.replace('"unit": "m"', '"unit": "km"'))
    assert counts()["equal"] == 2 and counts()["differs"] == 1


def test_external_links_lead_to_no_other_file(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        f["out"] = h5py.ExternalLink(case.h5, "/")
        virtual(f, "d", ".", "out/d")
    case.refused(case.h5)
    done = run("convert", case.source + ":/out/d", case.store + "2", status=1)
    assert "outside" in done.stderr and "--external" in done.stderr


def test_a_source_behind_a_symbolic_link(folder):
    case = Case(folder)
    other = os.path.join(folder, "links")
    os.mkdir(other)
    beside = os.path.join(case.inside, "s.h5")
    os.rename(case.h5, beside)
    with h5py.File(case.source, "w") as f:
        virtual(f, "d", "s.h5")
    os.symlink(case.source, os.path.join(other, "in.h5"))
    case.source = os.path.join(other, "in.h5")
    case.allowed(beside)


def test_a_source_that_is_the_file_itself_by_name(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        f["part"] = np.arange(8, dtype="u1")
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space = h5py.h5s.create_simple((8,))
        properties.set_virtual(space, b"in.h5", b"part", space)
        h5py.h5d.create(f.id, b"d", h5py.h5t.STD_U8LE, space, properties)
    report, _ = case.convert()
    assert Store(case.store).read("d").tolist() == list(range(8)) and "other_files" not in report
    run("verify", case.source, case.store)


def test_numbered_sources(folder):
    case = Case(folder)
    for i in range(3):
        with h5py.File(os.path.join(case.inside, f"n{i}.h5"), "w") as f:
            f["d"] = np.full(4, i + 1, "u1")
    os.symlink(case.h5, os.path.join(case.inside, "n3.h5"))
    with h5py.File(case.source, "w") as f:
        space = h5py.h5s.create_simple((8,), (h5py.h5s.UNLIMITED,))
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (4,), (4,))
        properties.set_virtual(space, b"n%b.h5", b"d", h5py.h5s.create_simple((4,)))
        h5py.h5d.create(f.id, b"d", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((8,), (h5py.h5s.UNLIMITED,)), properties)
    report, _ = case.convert()
    assert Store(case.store).read("d").tolist() == [1] * 4 + [2] * 4 + [3] * 4
    assert [os.path.basename(n) for n in report["other_files"]] == ["n0.h5", "n1.h5", "n2.h5"] and not case.leaked()


def test_a_virtual_dataset_of_itself_is_skipped(folder):
    case = Case(folder)
    other = os.path.join(case.inside, "other.h5")
    for sources in ((".", "d"), ("other.h5", "d")):
        with h5py.File(other, "w") as f:
            virtual(f, "d", "in.h5")
        with h5py.File(case.source, "w") as f:
            virtual(f, "d", *sources)
            f["whole"] = 1
        report, _ = case.convert(status=3)
        [entry] = [o for o in report["objects"] if o["path"] == "/d"]
        assert entry["outcome"] == "skipped" and "of itself" in entry["reason"]
        assert Store(case.store).read("whole") == 1
        run("verify", case.source, case.store, status=1)
        assert "of itself" in run("inspect", case.source, status=3).stdout
        run("suggest", case.source)


def test_resumed_and_shared_runs_list_the_same(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        virtual(f, "d", case.h5)
    for i in range(2):
        run("convert", "-q", case.source, case.store, "--partition", f"{i}/2", "--external", "all")
    report = case.store + ".json"
    run("finalize", "-q", case.source, case.store, "--external", "all", "--report", report)
    with open(report, encoding="utf-8") as f:
        assert json.load(f)["other_files"] == [case.h5]


def test_what_is_not_hdf5_is_named(folder):
    source = os.path.join(folder, "in.nc")
    for content, words in (
        (b"CDF\x01" + bytes(20), "its header is damaged"),
        (b"\x0e\x03\x13\x01" + bytes(100), "an HDF4 file"),
        (b"\n <!DOCTYPE html>\n<html>", "an HTML page"),
        (b"<HTML>", "an HTML page"),
        (b"<?xml version='1.0'?><Error/>", "an XML document"),
        (gzip.compress(b"abc"), 'compressed with gzip; decompress it: "gunzip NAME"'),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "a pointer of Git LFS"),
        (b"", "it is empty"),
        (b"plain text", "check that it is an HDF5 file"),
    ):
        with open(source, "wb") as f:
            f.write(content)
        for command in (["convert", source, os.path.join(folder, "out.zarr")], ["plan", source], ["inspect", source]):
            assert words in refused(*command), (command, content)
    with h5py.File(source, "w", userblock_size=512) as f:
        f["a"] = [1]
    with open(source, "r+b") as f:
        f.write(b"<!DOCTYPE html>")  # its user block
    convert(source, os.path.join(folder, "out.zarr"), "-q")
