# SPDX-License-Identifier: BSL-1.0
"""zarrbits repack: what is in the new file, as h5dump, h5diff and h5py see it; in place, kills, full disks, wrong options."""

import ctypes
import json
import os
import re
import resource
import shutil
import stat
import time

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

from file_differences import differences, h5diff
from harness import execute, refused, run
from kills import begin, kill

needs_h5dump = pytest.mark.skipif(not shutil.which("h5dump"), reason="h5dump is not installed")


def repack(*arguments, **how):
    """Its report."""
    done = run("repack", "--json", "-q", *arguments, **how)
    report = json.loads(done.stdout)
    assert report["exit_status"] == done.returncode
    return report


def dump(path):
    """h5dump's text, without the file's name and the addresses of objects."""
    text = execute("h5dump", "-p", path).stdout.split("\n", 1)[1]
    return re.sub(r"\b(OFFSET|SIZE) \d+.*|(DATASET|GROUP|DATATYPE) \d+", "", text)


def example(path):
    """One object of each kind that an HDF5 file can have."""
    record = np.dtype([("a", "i4"), ("b", ">f8"), ("s", "S3"), ("list", "f4", (2,))])
    with h5py.File(path, "w", userblock_size=1024) as f:
        f["big"] = np.arange(12, dtype=">i4").reshape(3, 4)
        f.create_dataset(
            "grows", data=np.arange(1000.0).reshape(10, 100), chunks=(4, 30), maxshape=(None, 200), compression="gzip"
        )
        f.create_dataset("filled", (10,), "i2", chunks=(3,), fillvalue=-7)[3:5] = 1
        f.create_dataset("unwritten", (10, 10), "f8", fillvalue=2.5)
        f["text"] = np.array(["x", "yö"], h5py.string_dtype())
        words = f.create_dataset("words", (50,), h5py.string_dtype(), chunks=(7,), compression="gzip")
        words[:20] = [f"word {i}" for i in range(20)]
        f["scalar"] = 3.5
        f["bool"] = np.array([True, False])
        f["nan"] = np.array([np.nan, -0.0], "f2")
        f["record"] = np.array([(1, 2.5, b"abc", (3, 4))], record)
        f["table"] = np.array([(1, "aa"), (2, "")], np.dtype([("a", "i4"), ("s", h5py.string_dtype())]))
        ragged = f.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
        ragged[0], ragged[2] = [1, 2, 3], [4]
        f["opaque"] = np.array([b"abc", b"de\0"], "V3")
        f["enum"] = np.array([1, 2]).astype(h5py.enum_dtype({"RED": 1, "GREEN": 2}, basetype="i2"))
        f["null"] = h5py.Empty("f4")
        f["type"] = record
        f["type"].attrs["unit"] = "m"
        f.create_dataset("typed", data=np.zeros(3, record), dtype=f["type"])
        f["typed"].attrs.create("also", np.zeros((), record), dtype=f["type"])
        ordered = f.create_group("ordered", track_order=True)
        for name in ("z", "a", "m"):
            ordered[name] = np.int8(1)
            ordered.attrs[name] = name
        f["names/a b"] = np.int8(1)
        f["names/ö"] = np.int8(2)
        f["names/soft"] = h5py.SoftLink("/big")
        f["names/lost"] = h5py.SoftLink("/nowhere")
        f["names/outside"] = h5py.ExternalLink("other.h5", "/x")
        f["names/hard"] = f["big"]
        f["names/cycle"] = f["names"]
        f["references"] = np.array([f["big"].ref, h5py.Reference(), f["names"].ref], h5py.ref_dtype)
        f["regions"] = np.array([f["big"].regionref[0:2, 1]], h5py.regionref_dtype)
        pairs = f.create_dataset("pairs", (2,), h5py.vlen_dtype(h5py.ref_dtype), chunks=(1,))
        pairs[0] = np.array([f["big"].ref, f["text"].ref], h5py.ref_dtype)
        f["big"].make_scale("big")
        f["grows"].dims[0].attach_scale(f["big"])
        f.attrs["reference"] = f["big"].ref
        f.attrs["empty"] = h5py.Empty("f8")
        f.attrs["words"] = np.array(["a", "bb"], h5py.string_dtype())
        f.attrs["null"] = h5py.Reference()
        compact = h5p.create(h5p.DATASET_CREATE)
        compact.set_layout(h5d.COMPACT)
        h5d.create(f.id, b"compact", h5t.STD_U16BE, h5s.create_simple((4,)), compact).write(
            h5s.ALL, h5s.ALL, np.arange(4, dtype=">u2")
        )
        for name in (b"/big", b"/names"):
            h5py.h5o.set_comment(f.id, b"a comment", obj_name=name)
    with open(path, "r+b") as f:
        f.write(b"in front of it")
    return path


@needs_h5dump
@pytest.mark.parametrize(
    "options", [(), ("--layout", "cloud"), ("--layout", "cmip7"), ("--libver", "latest"), ("--filter", "deflate:1")]
)
def test_everything_stays(tmp_path, options):
    source, target = example(tmp_path / "in.h5"), tmp_path / "out.h5"
    report = repack(*options, source, target)
    assert all(f["met"] for f in report["findings"])
    if options in ((), ("--layout", "cmip7")):
        assert not [lines for lines in zip(dump(source).splitlines(), dump(target).splitlines()) if lines[0] != lines[1]]
    shutil.copy(source, tmp_path / "copy.h5")
    assert h5diff(source, target) == h5diff(source, tmp_path / "copy.h5")
    with h5py.File(source) as a, h5py.File(target) as b:
        assert not list(differences(a, b))
        assert list(b["ordered"]) == ["z", "a", "m"] == list(b["ordered"].attrs)
        assert b[b["references"][0]] == b["big"] and not b["references"][1] and b[b["references"][2]] == b["names"]
        assert b[b["pairs"][0][1]] == b["text"] and b[b.attrs["reference"]] == b["big"]
        np.testing.assert_array_equal(b["big"][b["regions"][0]], a["big"][a["regions"][0]])
        assert b["names/hard"] == b["big"] and b["names/cycle"] == b["names"]
        assert b["typed"].id.get_type().committed() and b["typed"].attrs.get_id("also").get_type().committed()
        assert b["grows"].dims[0]["big"] == b["big"]
        assert b["unwritten"].id.get_space_status() == h5d.SPACE_STATUS_NOT_ALLOCATED
        assert b["filled"].id.get_num_chunks() == 1
        assert b.userblock_size == 1024
    assert source.read_bytes()[:1024] == target.read_bytes()[:1024]


class LinkClass(ctypes.Structure):
    """libhdf5's H5L_class_t."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("comment", ctypes.c_char_p),
        *((name, ctypes.c_void_p) for name in ("create", "move", "copy")),
        ("traverse", ctypes.CFUNCTYPE(ctypes.c_int64)),
        *((name, ctypes.c_void_p) for name in ("delete", "query")),
    ]


def test_links_of_user_defined_classes(tmp_path):
    """h5py makes none, but its libhdf5 does."""
    source, target, value = tmp_path / "in.h5", tmp_path / "out.h5", b"the value of it\0\1"
    with open("/proc/self/maps", encoding="utf-8") as maps:
        [path] = {line.split()[-1] for line in maps if re.search(r"/libhdf5(_serial)?\b[^/]*\.so", line) and "_hl" not in line}
    libhdf5 = ctypes.CDLL(path)
    version = int(h5py.version.hdf5_version_tuple >= (1, 12))  # H5L_LINK_CLASS_T_VERS
    link_class = LinkClass(version, 200, b"a class", None, None, None, ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: -1), None, None)
    assert libhdf5.H5Lregister(ctypes.byref(link_class)) >= 0
    with h5py.File(source, "w") as f:
        group = f.create_group("g")
        words = (
            ctypes.c_int64(group.id.id),
            b"link",
            200,
            value,
            ctypes.c_size_t(len(value)),
            ctypes.c_int64(0),
            ctypes.c_int64(0),
        )
        assert libhdf5.H5Lcreate_ud(*words) >= 0
    assert libhdf5.H5Lunregister(200) >= 0
    repack(source, target)
    assert source.read_bytes().count(value) == target.read_bytes().count(value) == 1
    run("verify", source, target)


def filters_of(dataset):
    p = dataset.id.get_create_plist()
    return [p.get_filter(i)[0:1] + tuple(p.get_filter(i)[2]) for i in range(p.get_nfilters())]


@pytest.mark.parametrize("shape", [(4,), (64, 7), (5, 50, 3)])
@pytest.mark.parametrize("filter_name", ["none", "deflate:6", "zstd:3", None])
def test_other_chunks_and_filters(tmp_path, shape, filter_name):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    extent = {1: (1000,), 2: (200, 33), 3: (20, 60, 10)}[len(shape)]
    rng = np.random.default_rng(3)
    with h5py.File(source, "w") as f:
        for name, dtype, how in [
            ("deflated", ">i4", {"compression": "gzip", "shuffle": True, "fletcher32": True}),
            ("plain", "f8", {}),
            ("lzf", "u2", {"compression": "lzf"}),
        ]:
            d = f.create_dataset(
                name,
                extent,
                dtype,
                chunks=tuple(max(1, n // 6) for n in extent),
                maxshape=(None,) * len(extent),
                fillvalue=9,
                **how,
            )
            first = tuple(slice(n // 3) for n in extent)
            d[first] = rng.integers(0, 100, d[first].shape)
        f.create_dataset("contiguous", data=rng.integers(0, 99, extent))
    options = ["--chunk", "/*=" + "x".join(map(str, shape))]
    if filter_name:
        options += ["--filter", filter_name]
    if filter_name is None:
        options += ["--filter", "lzf=none"]  # nothing here encodes it
    report = repack(*options, source, target)
    expected = {
        "none": [],
        "deflate:6": [(h5z.FILTER_SHUFFLE,), (h5z.FILTER_DEFLATE, 6)],
        "zstd:3": [(h5z.FILTER_SHUFFLE,), (32015, 3)],
    }
    assert {d["outcome"] for d in report["datasets"]} == {"recoded"}
    with h5py.File(source) as a, h5py.File(target) as b:
        for name in a:
            limit = tuple(min(s, e) if m is not None else s for s, e, m in zip(shape, extent, b[name].maxshape))
            assert b[name].chunks == limit
            assert b[name].dtype == a[name].dtype and b[name].fillvalue == a[name].fillvalue
            if filter_name:
                assert [f[:1] if f[0] == h5z.FILTER_SHUFFLE else f for f in filters_of(b[name])] == expected[filter_name]
            if filter_name != "zstd:3":
                np.testing.assert_array_equal(a[name][...], b[name][...])
        if filter_name is None:
            assert filters_of(b["deflated"]) == filters_of(a["deflated"])
        # chunks that nothing was written to are still not there
        assert (
            b["plain"].id.get_num_chunks() < np.prod([-(-e // c) for e, c in zip(extent, b["plain"].chunks)]) or len(shape) == 1
        )
    if filter_name == "zstd:3":  # read by our own decoder
        back = tmp_path / "back.h5"
        repack("--filter", "none", target, back)
        with h5py.File(source) as a, h5py.File(back) as b:
            for name in a:
                np.testing.assert_array_equal(a[name][...], b[name][...])


@pytest.mark.parametrize("compressible", [True, False])
def test_the_fastest_level_that_makes_nothing_larger(tmp_path, compressible):
    source, target, thorough = tmp_path / "in.h5", tmp_path / "out.h5", tmp_path / "thorough.h5"
    rng = np.random.default_rng(5)
    words = rng.integers(0, 256, (200, 40), "u1")
    values = words[rng.integers(0, 200, 25_600)].reshape(1000, 1024) if compressible else rng.normal(size=(1000, 1024))
    with h5py.File(source, "w") as f:
        f.create_dataset("v", data=values, chunks=(40, 1024), compression="gzip", compression_opts=9)
    repack("--chunk", "v=20x1024", source, target)
    repack("--chunk", "v=20x1024", "--filter", "deflate:9", source, thorough)
    with h5py.File(source) as a, h5py.File(target) as b, h5py.File(thorough) as c:
        np.testing.assert_array_equal(a["v"][...], b["v"][...])
        assert filters_of(b["v"]) == [(h5z.FILTER_DEFLATE, 9)]
        assert compressible or b["v"].id.get_storage_size() <= a["v"].id.get_storage_size()
        # repetitions are not all in one of the smaller chunks, so the first level would make them larger
        same = [b["v"].id.read_direct_chunk((i, 0)) == c["v"].id.read_direct_chunk((i, 0)) for i in range(0, 1000, 20)]
        assert same == [compressible] * 50


def test_chunks_of_unknown_filters_are_copied(tmp_path):
    """Their bytes, their masks and the parameters of their filters."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    rng = np.random.default_rng(1)
    chunks = [rng.bytes(n) for n in (5, 4000, 17)]
    with h5py.File(source, "w") as f:
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((10,))
        p.set_filter(307, h5z.FLAG_OPTIONAL, (9, 8, 7))
        p.set_filter(30000, h5z.FLAG_OPTIONAL, (1, 2))
        d = h5d.create(f.id, b"d", h5t.STD_I32LE, h5s.create_simple((50,)), p)
        for i, (bytes_of_chunk, mask) in enumerate(zip(chunks, (0, 2, 3))):
            d.write_direct_chunk((20 * i,), bytes_of_chunk, mask)
    repack(source, target)
    with h5py.File(source) as a, h5py.File(target) as b:
        assert [a["d"].id.get_create_plist().get_filter(1)] == [b["d"].id.get_create_plist().get_filter(1)]
        assert filters_of(a["d"]) == filters_of(b["d"]) == [(307, 9, 8, 7), (30000, 1, 2)]
        for i, bytes_of_chunk in enumerate(chunks):
            assert b["d"].id.read_direct_chunk((20 * i,)) == (a["d"].id.read_direct_chunk((20 * i,))[0], bytes_of_chunk)
        assert b["d"].id.get_num_chunks() == 3
    assert "there is no decoder of filter" in refused("repack", "--chunk", "d=5", source, tmp_path / "other.h5")
    assert not (tmp_path / "other.h5").exists()


def series(path, steps=12, dtype="f4"):
    """A file that does not follow the layout cmip7."""
    with h5py.File(path, "w") as f:
        f.attrs["variable_id"] = "tas"
        rng = np.random.default_rng(0)
        t = f.create_dataset("time", data=np.arange(steps, dtype="f8"), chunks=(1,), maxshape=(None,))
        t.attrs["bounds"] = "time_bnds"
        f.create_dataset("time_bnds", data=np.zeros((steps, 2)), chunks=(1, 2), maxshape=(None, 2))
        f.create_dataset(
            "tas", data=rng.normal(280, 9, (steps, 90, 180)).astype(dtype), chunks=(1, 90, 180), compression="gzip", shuffle=True
        )
    return path


def test_the_file_is_the_same_for_any_number_of_threads(tmp_path):
    source = series(tmp_path / "in.nc", 100)
    files = []
    for n in (1, 2, 5):
        files.append(tmp_path / f"{n}.nc")
        repack("--layout", "cmip7", "--threads", n, source, files[-1])
    assert len({f.read_bytes() for f in files}) == 1


def test_in_place(tmp_path):
    source, link, copy = series(tmp_path / "in.nc"), tmp_path / "link.nc", tmp_path / "copy.nc"
    shutil.copy(source, copy)
    os.chmod(source, 0o640)
    os.utime(source, (1e9, 1.1e9))
    link.symlink_to("in.nc")
    assert run("repack", "--check", "-q", "--layout", "cmip7", source, status=3)
    report = repack("--layout", "cmip7", "--in-place", link)
    assert not report["unchanged"] and link.is_symlink()
    assert stat.S_IMODE(source.stat().st_mode) == 0o640 and source.stat().st_mtime == 1.1e9
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.nc", "in.nc", "link.nc"]
    assert h5diff(copy, source) == []
    before = source.stat()
    assert repack("--layout", "cmip7", "--in-place", source)["unchanged"]
    assert (source.stat().st_ino, source.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    # a wish is one, also of a file that follows the rules
    assert not repack("--layout", "cmip7", "--in-place", "--filter", "deflate:9", source)["unchanged"]
    os.link(copy, tmp_path / "other name.nc")
    assert "2 names (hard links)" in refused("repack", "--in-place", "--layout", "cmip7", copy)


def test_many_files_one_after_another(tmp_path):
    files = [series(tmp_path / f"{i}.nc") for i in range(4)]
    files[1].write_bytes(files[1].read_bytes()[:9000])
    damaged = files[1].read_bytes()
    done = run("repack", "--in-place", "--layout", "cmip7", "--json", "-q", *files, status=1)
    reports = json.loads(done.stdout)
    assert [r["unchanged"] for r in reports] == [False] * 3
    assert done.stderr.count("zarrbits: ") == 1 and "1.nc" in done.stderr
    assert (files[1].read_bytes() == damaged) is True
    # each process its share
    for share in ("0/2", "1/2"):
        run("repack", "--check", "-q", "--layout", "cmip7", "--partition", share, files[0], files[2], files[3])


def test_convert_writes_hdf5_files(tmp_path):
    source, copy, store, back = (tmp_path / name for name in ("in.h5", "copy.nc", "x.zarr", "back.h5"))
    example(source)
    run("convert", "-q", "--chunk", "grows=5x100", source, copy)
    with h5py.File(source) as a, h5py.File(copy) as b:
        assert not list(differences(a, b))
        assert b["grows"].chunks == (5, 100)
    run("convert", "-q", source, store, "--allow-lossy")
    run("convert", "-q", store, back, "--page-size", "512")
    with h5py.File(source) as a, h5py.File(back) as b:
        np.testing.assert_array_equal(a["grows"][...], b["grows"][...])
        assert b.id.get_create_plist().get_file_space_page_size() == 512
    assert '"zarrbits repack" writes' in refused("convert", "--shard", "1M", source, tmp_path / "no.h5", status=2)
    assert "has a user block of 1.0 KiB" in refused("convert", store, tmp_path / "no.h5", "--page-size", "8K")
    assert '"zarrbits export" writes' in refused("convert", "--shard", "1M", store, tmp_path / "no.h5", status=2)


def test_kills_leave_the_source_and_nothing_else(tmp_path):
    source = series(tmp_path / "in.nc", 400, "f8")
    content = source.read_bytes()
    for i in range(int(os.environ.get("ZARRBITS_KILLS", "3"))):
        process = begin("repack", "--in-place", "--layout", "cmip7", source)
        time.sleep(0.05 + 0.1 * i)
        kill(process)
        if source.read_bytes() != content:  # it was faster
            break
    run("repack", "-q", "--in-place", "--layout", "cmip7", source)  # what a kill left is removed by the next run
    assert [p.name for p in tmp_path.iterdir()] == ["in.nc"]
    (tmp_path / "copy.nc").write_bytes(content)
    assert h5diff(tmp_path / "copy.nc", source) == []


def test_a_full_disk(tmp_path):
    source = series(tmp_path / "in.nc", 60)
    content = source.read_bytes()

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    for arguments in (("--in-place", source), (source, tmp_path / "out.nc")):
        done = run("repack", "-q", "--layout", "cmip7", *arguments, status=(1, -25), preexec_fn=small_files)
        assert done.returncode == -25 or "cannot write" in done.stderr
        is_same = source.read_bytes() == content
        assert is_same and [p.name for p in tmp_path.iterdir()] == ["in.nc"]


def test_damaged_chunks(tmp_path):
    source = series(tmp_path / "in.nc")
    with h5py.File(source) as f:
        place = f["tas"].id.get_chunk_info(5).byte_offset
    with open(source, "r+b") as f:
        f.seek(place + 3000)
        f.write(b"\xff" * 50)
    sentence = refused("repack", "--layout", "cmip7", source, tmp_path / "out.nc")
    assert '"/tas": chunk 5/0/0' in sentence and "is damaged" in sentence and not (tmp_path / "out.nc").exists()
    repack(source, tmp_path / "out.nc")  # chunks that are copied stay as they are
    with h5py.File(source) as a, h5py.File(tmp_path / "out.nc") as b:
        assert a["tas"].id.read_direct_chunk((5, 0, 0)) == b["tas"].id.read_direct_chunk((5, 0, 0))


def test_groups_of_many_links(tmp_path):
    """Their links are in a heap, whose address libhdf5 gives with the properties of the group."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver=("v108", "v108") if h5py.version.hdf5_version_tuple >= (1, 10, 2) else "earliest") as f:
        for i in range(40):
            f[f"many/{i}"] = i
            f["many"].attrs[str(i)] = i
    repack(source, target)
    assert run("verify", source, target)


def test_files_beside_the_source(tmp_path):
    source, elsewhere = tmp_path / "in.h5", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with h5py.File(source, "w") as f:
        f["link"] = h5py.ExternalLink("other.h5", "/x")
    assert "warning" not in run("repack", "-q", source, tmp_path / "out.h5").stderr
    assert "look for in its own folder" in run("repack", "-q", source, elsewhere / "out.h5").stderr


def test_wrong_options(tmp_path):
    source, target = series(tmp_path / "in.nc"), tmp_path / "out.nc"
    for arguments, status, sentence in [
        ((source,), 2, "name the file to repack and the file to write, not 1 file"),
        ((source, source), 1, "exists"),
        ((source, source, "--overwrite"), 1, "is also the target"),
        ((source, target, "--layout", "cmip6"), 2, "--layout is asis, cloud or cmip7"),
        ((source, target, "--chunk", "tas=4x4"), 1, "has 3 dimensions"),
        ((source, target, "--chunk", "nothing=4"), 1, "which no dataset"),
        ((source, target, "--chunk", "4x4x4x"), 2, "which is not a pattern and a shape"),
        ((source, target, "--chunk", "tas=0x1x1"), 2, "which is not a pattern and a shape"),
        ((source, target, "--filter", "deflate:10"), 2, "which is not one of none"),
        ((source, target, "--filter", "gzip"), 2, "which is not one of none"),
        ((source, target, "--chunk-bytes", "1M"), 2, "is 4 MiB to 2 GiB"),
        ((source, target, "--page-size", "100"), 2, "512 bytes to 1 GiB"),
        ((source, target, "--partition", "0/2"), 2, "--partition is for"),
        ((source, "--check", "--in-place"), 2, "not both"),
        (("s3://b/k", "--in-place"), 2, "on a server"),
        ((source, "s3://b/k"), 2, "a local disk"),
        ((tmp_path / "missing.nc", target), 1, "missing.nc"),
        ((tmp_path / "missing.nc", "--in-place"), 1, "does not exist"),
        ((source, tmp_path / "no" / "out.nc"), 1, "cannot create"),
    ]:
        assert sentence in refused("repack", *arguments, status=status), arguments
        assert [p.name for p in tmp_path.iterdir()] == ["in.nc"]
    with h5py.File(tmp_path / "words.h5", "w") as f:
        f.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype(), chunks=(1,))
    assert "variable length" in refused("repack", "--filter", "words=deflate", tmp_path / "words.h5", tmp_path / "out.h5")
    (tmp_path / "text.nc").write_text("no file of HDF5")
    assert "not an HDF5 file" in refused("repack", "--overwrite", source, tmp_path / "text.nc")


def test_planes_to_columns_through_a_scratch_file(tmp_path):
    """A chunk of the source has values of all columns, and the memory a few of them: each chunk is decoded once all the same."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    rng = np.random.default_rng(4)
    with h5py.File(source, "w") as f:
        d = f.create_dataset("v", (150, 512, 500), "f4", chunks=(1, 512, 500), compression="gzip", fillvalue=-1)
        for i in range(0, 150, 3):  # the other chunks were never written
            d[i] = rng.integers(0, 9, (512, 500))
        f["v"].attrs["units"] = "K"
    how = ("--memory", "32M", "--chunk", "v=150x16x16", source, target)
    sentence = refused("repack", "--scratch", tmp_path / "none", *how)
    assert "cannot create a scratch file" in sentence and "--scratch" in sentence
    report = repack(*how)
    assert report["datasets"][0]["chunk"] == [150, 16, 16] and sorted(tmp_path.iterdir()) == [source, target]
    run("verify", source, target)
    values = h5py.File(target)["v"]
    assert values[1].min() == values[1].max() == -1 and values[0].max() == 8
    with h5py.File(source) as f:
        np.testing.assert_array_equal(f["v"][::7], values[::7])
    once = repack("--memory", "32M", "--chunk", "v=150x16x16", "--threads", 1, source, tmp_path / "one.h5")
    assert once["bytes"] == report["bytes"] and (tmp_path / "one.h5").read_bytes() == target.read_bytes()


def test_memory_is_bounded(tmp_path):
    source = series(tmp_path / "in.nc", 60)
    with h5py.File(source, "r+") as f:
        f.create_dataset("long", (40_000_000,), "f8", chunks=(20_000_000,), compression="gzip")[:10] = 1
    assert "increase --memory" in refused("repack", "--memory", "64M", "--chunk", "long=100", source, tmp_path / "out.nc")
    repack("--memory", "64M", "--layout", "cmip7", source, tmp_path / "out.nc")


def test_filters_that_have_the_length_of_a_chunk(tmp_path):
    values = np.random.default_rng(3).integers(0, 9, (40, 50)).astype("f8")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("lzf", data=values, chunks=(20, 50), compression="lzf")
    repack("--chunk", "/lzf=40x50", tmp_path / "in.h5", tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as f:
        np.testing.assert_array_equal(f["lzf"], values)
        assert f["lzf"].id.get_create_plist().get_filter(0)[2][2] == 40 * 50 * 8
    run("verify", tmp_path / "in.h5", tmp_path / "out.h5")
    # as programs write it that leave the parameter as it was
    with h5py.File(tmp_path / "in.h5") as f, h5py.File(tmp_path / "left.h5", "w") as left:
        properties = f["lzf"].id.get_create_plist()
        properties.set_chunk((40, 50))
        d = h5d.create(left.id, b"lzf", h5t.IEEE_F64LE, h5s.create_simple((40, 50)), properties)
        with h5py.File(tmp_path / "out.h5") as out:
            d.write_direct_chunk((0, 0), out["lzf"].id.read_direct_chunk((0, 0))[1])
        number = d.get_create_plist().get_filter(0)[2][2]
    with open(tmp_path / "left.h5", "r+b") as f:
        data = f.read().replace((16000).to_bytes(4, "little"), (8000).to_bytes(4, "little"))
        f.seek(0)
        f.write(data)
    assert number == 16000
    run("verify", tmp_path / "in.h5", tmp_path / "left.h5")
