# SPDX-License-Identifier: BSL-1.0
"""zarrbits.File beside h5py: the same values of every type and layout, and errors instead of what cannot be read.

ZARRBITS_CASES: files of random datasets. ZARRBITS_MUTATIONS: damaged copies of the file of the test. ZARRBITS_CORPUS: a folder of
HDF5 files, of which some are compared, or all with more than 10 cases."""

import concurrent.futures
import glob
import multiprocessing
import os
import pickle

import h5py
import numpy as np
import pytest

import zarrbits
from hdf5_peer import compare_files, same
from zarrbits import hdf5_library

try:
    hdf5_library.library()
except zarrbits.Error as e:
    pytest.skip(str(e), allow_module_level=True)

CASES = int(os.environ.get("ZARRBITS_CASES", 10))
MUTATIONS = int(os.environ.get("ZARRBITS_MUTATIONS", 40))
SEED = int(os.environ.get("ZARRBITS_SEED", 1))


@pytest.fixture
def random():
    return np.random.default_rng(SEED)


def numbers(shape, dtype="<f4"):
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


@pytest.fixture
def path(tmp_path):
    """A file with one dataset of each kind."""
    path = str(tmp_path / "in.h5")
    with h5py.File(path, "w") as f:
        for dtype in "<i1 <u1 <i2 >i2 <u4 >u4 <i8 >i8 <f2 >f2 <f4 >f4 <f8 >f8 <c8 >c16 S5 ?".split():
            f.create_dataset(f"types/{dtype}", data=numbers((7, 9), dtype), chunks=(3, 4), compression="gzip", shuffle=True)
        values = numbers((50, 60))
        for name, options in {
            "gzip": {"compression": "gzip"},
            "lzf": {"compression": "lzf", "shuffle": True},
            "sums": {"fletcher32": True},
            "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
            "scale": {"scaleoffset": 3},
            "none": {},
        }.items():
            f.create_dataset(f"filters/{name}", data=values, chunks=(16, 7), **options)
        f["layouts/contiguous"] = values
        f["layouts/scalar"] = 5.5
        f["layouts/empty"] = h5py.Empty("f4")
        f["layouts/nothing"] = np.zeros((0, 5), "i4")
        f.create_dataset("layouts/unwritten", (20, 20), ">i4", chunks=(7, 7), fillvalue=-3, compression="gzip")
        sparse = f.create_dataset("layouts/sparse", (100, 100), "f8", chunks=(9, 9), fillvalue=np.nan, compression="gzip")
        sparse[20:25, 30:60] = 7
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space, group = h5py.h5s.create_simple((6,)), f["layouts"]
        h5py.h5d.create(group.id, b"compact", h5py.h5t.STD_I32BE, space, compact).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype="i4")
        )
        masked = f.create_dataset("layouts/masked", (8,), "<i4", chunks=(4,), compression="gzip")
        masked[:4] = 1
        masked.id.write_direct_chunk((4,), np.arange(4, dtype="<i4").tobytes(), filter_mask=1)
        record = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "<i4", (2, 3))], align=True)
        f.create_dataset("odd/record", data=np.zeros(5, record), chunks=(2,), compression="gzip")
        f["odd/enum"] = np.array([1, 2, 1], h5py.enum_dtype({"x": 1, "y": 2}, "i2"))
        f.create_dataset("odd/texts", data=["a", "", "äö", "long" * 100], dtype=h5py.string_dtype(), chunks=(3,))
        f["odd/opaque"] = np.array([b"abc", b"de\0"], "V3")
        f["odd/times"] = np.array([1, 2, 3], "M8[s]").astype(h5py.opaque_dtype("M8[s]"))
        sequences = f.create_dataset("odd/sequences", (3,), h5py.vlen_dtype("<i4"))
        sequences[0], sequences[2] = [1, 2, 3], [4]
        f["odd/references"] = np.array([f["types"].ref, f["layouts/sparse"].ref, h5py.Reference()], h5py.ref_dtype)
        regions = f.create_dataset("odd/regions", (2,), h5py.regionref_dtype)
        points = h5py.h5s.create_simple((50, 60))
        points.select_elements(np.array([[40, 3], [1, 59], [20, 0]]))  # in an order of their own
        regions[1] = h5py.h5r.create(f["layouts/contiguous"].id, b".", h5py.h5r.DATASET_REGION, points)
        regions[0] = f["layouts/contiguous"].regionref[3:5, 6:9]
        mixed = np.dtype([("name", h5py.string_dtype()), ("n", "i4"), ("list", h5py.vlen_dtype("f4"))])
        rows = f.create_dataset("odd/mixed", (2,), mixed)
        rows[0], rows[1] = ("first", 1, np.array([1, 2], "f4")), ("", 2, np.array([3, 4, 5], "f4"))
        double_double = h5py.h5t.NATIVE_LDOUBLE.copy()
        double_double.set_fields(79, 64, 15, 4, 60)  # fewer bits than a long double, more than a double
        h5py.h5d.create(f["odd"].id, b"long", double_double, h5py.h5s.create_simple((2,))).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, 3], np.longdouble) / 3
        )
        twelve = h5py.h5t.STD_U16LE.copy()
        twelve.set_precision(12)
        chunked = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        chunked.set_chunk((4,))
        chunked.set_deflate(3)
        h5py.h5d.create(f["odd"].id, b"twelve", twelve, h5py.h5s.create_simple((10,)), chunked).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.arange(10, dtype="u2")
        )
        for name, pad in (("spaces", h5py.h5t.STR_SPACEPAD), ("zero", h5py.h5t.STR_NULLTERM)):
            text = h5py.h5t.C_S1.copy()
            text.set_size(6)
            text.set_strpad(pad)
            h5py.h5d.create(f["odd"].id, name.encode(), text, h5py.h5s.create_simple((3,)), None).write(
                h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"c d", b""], "S6")
            )
            pair = h5py.h5t.create(h5py.h5t.COMPOUND, 16)  # with gaps
            pair.insert(b"n", 1, h5py.h5t.STD_I16BE)
            pair.insert(b"text", 5, text)
            h5py.h5d.create(f["odd"].id, f"pair of {name}".encode(), pair, h5py.h5s.create_simple((4,)), chunked).write(
                h5py.h5s.ALL,
                h5py.h5s.ALL,
                np.array([(1, b"ab"), (2, b"c d"), (3, b""), (4, b"x")], [("n", "i2"), ("text", "S6")]),
            )
        f["soft"], f["hard"] = h5py.SoftLink("/layouts/scalar"), f["types"]
        f.attrs.update(
            {"one": 1, "list": [1.5, 2], "text": "ä", "fixed": np.bytes_("x"), "texts": ["a", "b"], "none": h5py.Empty("S1")}
        )
        f.attrs["ref"] = f["types"].ref
        f.attrs["yes"] = True
        f.attrs["record"] = np.zeros((), record)
    return path


def test_every_type_and_layout_is_read_as_h5py_reads_it(path, random):
    datasets, attributes, different, only_ours, only_theirs = compare_files(path, random, boxes=30)
    assert datasets > 35 and attributes > 8
    assert different == [] and only_ours == []
    assert only_theirs == []  # h5py may share its libhdf5 with us, which must not change it


def test_random_chunks_and_filters_are_read_as_h5py_reads_them(tmp_path, random):
    for case in range(CASES):
        path = str(tmp_path / f"{case}.h5")
        with h5py.File(path, "w", libver=str(random.choice(["earliest", "latest"]))) as f:
            for number in range(5):
                rank = int(random.integers(1, 5))
                shape = tuple(int(n) for n in random.integers(1, 40 if rank < 3 else 12, rank))
                options = {
                    "chunks": tuple(int(random.integers(1, n + 1)) for n in shape),
                    "compression": random.choice([None, "gzip", "lzf"]),
                    "shuffle": bool(random.integers(2)),
                    "fletcher32": bool(random.integers(2)),
                    "maxshape": random.choice([None, 1]) and (None,) * rank,
                }
                values = random.integers(0, 100, shape).astype(random.choice(["<i2", ">i4", "<f8", ">f4", "<u1"]))
                f.create_dataset(str(number), data=values, **options)
        _, _, different, only_ours, _ = compare_files(path, random)
        assert different == [] and only_ours == [], f"seed {SEED}, case {case}"


def test_libhdf5_reads_only_what_nothing_here_decodes(path):
    with zarrbits.File(path) as g:
        for name in (*(f"filters/{n}" for n in g["filters"]), "layouts/contiguous", "layouts/sparse", "types/>f4", "odd/record"):
            g[name][...]
        statistics = g.statistics()
        assert statistics["libhdf5_values"] == 0
        assert statistics["decoded_chunks"] > 100 and statistics["empty_chunks"] > 100 and statistics["plain_bytes"] > 50 * 60 * 4
        g["odd/texts"][...]
        assert g.statistics()["libhdf5_values"] == 4


def test_small_boxes_of_a_chunk_decode_it_once(path):
    with zarrbits.File(path) as g:
        for i in range(10):
            g["filters/gzip"][i, :5]
        assert g.statistics()["decoded_chunks"] == 1 and g.statistics()["cached_chunks"] == 9


def test_indexing_is_h5pys(path):
    mask = np.zeros((50, 60), bool)
    mask[3:40:7, 2::9] = True
    with h5py.File(path) as f, zarrbits.File(path) as g:
        theirs, ours = f["filters/all"], g["filters/all"]
        numbers_and_slices = [(), ..., 3, -1, np.int64(4), slice(None, None, 3), (..., 5), (slice(5, 2), 3)]
        lists = [(slice(2, 40, 5), [0, 1, 59]), ([3, 4, 5, 49], slice(1, 3)), (np.array([1, 7, 44]), -1), np.array([], int)]
        masks = [mask, mask[:, 5], [True] * 25 + [False] * 25]
        for selection in (*numbers_and_slices, *lists, *masks):
            same(theirs[selection], ours[selection], f, g, str(selection))
        for wrong, error in (
            (50, IndexError),
            (slice(None, None, -1), ValueError),
            ([3, 3], TypeError),
            ([4, 1], TypeError),
            ((1, 2, 3), TypeError),
            ("x", (ValueError, IndexError)),
        ):
            for dataset in (theirs, ours):
                with pytest.raises((error if isinstance(error, tuple) else (error,)) + (ValueError, TypeError)):
                    dataset[wrong]
        assert g["odd/record"]["b"].dtype == ">f8" and list(g["odd/record"]["a", "b"].dtype.names) == ["a", "b"]
        out = np.zeros((5, 60), "f4")
        ours.read_direct(out, np.s_[5:10])
        assert (out == theirs[5:10]).all()
        out = np.zeros((10, 60), "f8")
        ours.read_direct(out, np.s_[5:10], np.s_[2:7])
        assert (out[2:7] == theirs[5:10]).all()
        assert (ours.astype("i2")[3] == theirs[3].astype("i2")).all() and list(g["odd/texts"].asstr()[:3]) == ["a", "", "äö"]


def test_objects_are_h5pys(path):
    with h5py.File(path) as f, zarrbits.File(path) as g:
        assert list(f) == list(g) and list(f["types"]) == list(g["types"]) and "types/<i1" in g and "x" not in g
        names = []
        g.visit(names.append)
        theirs = []
        f.visit(theirs.append)
        assert sorted(names) == sorted(theirs)
        assert g["soft"][()] == 5.5 and g["hard"] == g["types"] and g["types"].parent == g["/"]
        assert g[g["odd/references"][0]] == g["types"] and not g["odd/references"][2]
        assert g["layouts/sparse"].fillvalue != g["layouts/sparse"].fillvalue and g["layouts/unwritten"].fillvalue == -3
        for d in ("filters/all", "filters/lzf", "filters/scale", "layouts/contiguous"):
            for name in (
                "compression",
                "compression_opts",
                "shuffle",
                "fletcher32",
                "scaleoffset",
                "chunks",
                "maxshape",
                "size",
                "nbytes",
                "ndim",
            ):
                if name != "compression_opts" or d == "filters/all":
                    assert getattr(f[d], name) == getattr(g[d], name), (d, name)
        with pytest.raises(KeyError, match="cannot be opened"):
            g["types/none"]
        dataset = g["filters/gzip"]
    with pytest.raises(ValueError, match="closed"):
        dataset[0]
    with pytest.raises(ValueError, match="closed"):
        g["types"]
    with pytest.raises(FileNotFoundError):
        zarrbits.File(path + "x")
    with pytest.raises(zarrbits.Error, match="file signature not found"):
        zarrbits.File(__file__)


def read_sum(dataset):
    return float(dataset[...].sum())


def test_pickles_threads_and_forks(path):
    with zarrbits.File(path) as g:
        dataset = g["filters/all"]
        expected = read_sum(dataset)
        copy = pickle.loads(pickle.dumps(dataset))
        assert read_sum(copy) == expected and pickle.loads(pickle.dumps(g))["soft"][()] == 5.5
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert set(pool.map(read_sum, [dataset, copy] * 50)) == {expected}
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as processes:
                assert processes.map(read_sum, [dataset] * 4) == [expected] * 4
        results = multiprocessing.get_context("fork").Queue()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # a fork while other threads read
            busy = [pool.submit(lambda: [read_sum(dataset) for _ in range(50)]) for _ in range(4)]
            children = [
                multiprocessing.get_context("fork").Process(target=lambda: results.put(read_sum(dataset))) for _ in range(4)
            ]
            for child in children:
                child.start()
            assert [results.get(timeout=600) for _ in children] == [expected] * 4
            for child in children:
                child.join()
            for b in busy:
                b.result()


def test_files_that_change_are_refused(path):
    with zarrbits.File(path) as g:
        dataset = g["layouts/contiguous"]
        dataset[0]
        with open(path, "r+b") as f:
            f.seek(0, os.SEEK_END)
            f.write(b"x")
        with pytest.raises(zarrbits.Error, match="changed since it was opened; open it again"):
            dataset[1]


def test_files_that_are_being_written_are_refused(path):
    with h5py.File(path, "r+"):
        with pytest.raises(zarrbits.Error, match="another process has it open for writing|open for writing"):
            zarrbits.File(path)


def test_other_files_are_read_only_if_they_are_allowed(path, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with h5py.File(elsewhere / "other.h5", "w") as f:
        f.create_dataset("a", data=numbers((20,)), chunks=(5,), compression="gzip")
    with h5py.File(tmp_path / "near.h5", "w") as f:
        f["b"] = 3
    inner = tmp_path / "inner"
    inner.mkdir()
    with h5py.File(inner / "links.h5", "w") as f:
        f["far"] = h5py.ExternalLink(str(elsewhere / "other.h5"), "/a")
    with h5py.File(tmp_path / "links.h5", "w") as f:
        f["near"] = h5py.ExternalLink("near.h5", "/b")
    with zarrbits.File(tmp_path / "links.h5") as g:
        assert g["near"][()] == 3
    with zarrbits.File(inner / "links.h5") as g, pytest.raises(zarrbits.Error, match="lies in another file"):
        g["far"]
    with zarrbits.File(inner / "links.h5", external=[elsewhere]) as g:
        assert (g["far"][::2] == numbers((20,))[::2]).all()


def test_damaged_files_end_in_exceptions(path, tmp_path, random):
    """In processes of their own, whose end would tell a crash. Values of fixed size: libhdf5 reads the others, and its version
    1.10 crashes on damaged heaps (docs/guide/python-hdf5.md)."""
    with h5py.File(path) as f, h5py.File(tmp_path / "fixed.h5", "w") as copy:
        for name in ("types", "filters", "layouts"):
            f.copy(name, copy)
        copy.attrs.update({"one": 1, "list": [1.5, 2], "fixed": np.bytes_("x")})
    content = bytearray(open(tmp_path / "fixed.h5", "rb").read())
    paths = []
    for case in range(MUTATIONS):
        damaged = bytearray(content)
        for _ in range(int(random.integers(1, 30))):
            damaged[int(random.integers(len(damaged)))] = int(random.integers(256))
        if case % 5 == 0:
            del damaged[int(random.integers(len(damaged))) :]
        paths.append(str(tmp_path / f"damaged{case}.h5"))
        open(paths[-1], "wb").write(damaged)
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for damaged, outcome in zip(paths, pool.map(read_whole_file, paths)):
            assert isinstance(outcome, int), damaged


def test_a_damaged_root_group_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as f:
        f["a"] = 1
    content = path.read_bytes()
    path.write_bytes(content.replace(b"OHDR", b"OHDX", 1))
    with pytest.raises((OSError, RuntimeError)), h5py.File(path) as f:
        list(f)
    with pytest.raises(zarrbits.Error, match="the file is damaged") as refusal:
        zarrbits.File(path)
    assert refusal.value.code == "damaged_source" and not isinstance(refusal.value, KeyError)


def test_empty_virtual_datasets_have_empty_boxes(tmp_path):
    """libhdf5 cannot read some: its mapping has no bounds."""
    path = tmp_path / "x.h5"
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    unlimited = h5py.h5s.UNLIMITED
    file_space = h5py.h5s.create_simple((0, 4, 4), (unlimited, 4, 4))
    file_space.select_hyperslab((0, 0, 0), (unlimited, 1, 1), stride=(1, 1, 1), block=(1, 4, 4))
    source = h5py.h5s.create_simple((1, 4, 4))
    properties.set_virtual(file_space, b"absent_%b.h5", b"/d", source)
    with h5py.File(path, "w", libver="latest") as f:
        h5py.h5d.create(f.id, b"v", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((0, 4, 4), (unlimited, 4, 4)), properties)
    with zarrbits.File(path) as g:
        assert g["v"].shape == (0, 4, 4)
        assert g["v"][...].shape == (0, 4, 4) and g["v"][:, 2, [1, 3]].shape == (0, 2) and g["v"][:, ::2, 1].shape == (0, 2)


def read_whole_file(path):
    """The number of exceptions of reading all of it."""
    failures = 0
    try:
        g = zarrbits.File(path)
    except (zarrbits.Error, KeyError):
        return 1
    pending, visited = ["/"], 0
    while pending and visited < 500:
        name = pending.pop()
        visited += 1
        try:
            found = g[name]
            if isinstance(found, zarrbits.hdf5_file.Group):
                pending += [name.rstrip("/") + "/" + n for n in found]
            elif isinstance(found, zarrbits.hdf5_file.Dataset) and (found.size or 0) * max(found.dtype.itemsize, 1) < 1 << 24:
                found[()]
                if found.shape:
                    found[tuple(slice(0, n, 2) for n in found.shape)]
        except (zarrbits.Error, KeyError, TypeError, ValueError, MemoryError):
            failures += 1
        try:
            for key in g[name].attrs:
                try:
                    g[name].attrs[key]
                except (zarrbits.Error, OSError, TypeError, ValueError):
                    failures += 1
        except (zarrbits.Error, KeyError):
            failures += 1
    return failures


@pytest.mark.skipif("ZARRBITS_CORPUS" not in os.environ, reason="ZARRBITS_CORPUS is not set")
def test_files_of_the_corpus_are_read_as_h5py_reads_them(random):
    folder = os.environ["ZARRBITS_CORPUS"]
    paths = sorted(p for p in glob.glob(folder + "/**/*", recursive=True) if os.path.isfile(p) and h5py.is_hdf5(p))
    if CASES <= 10:
        paths = paths[:: max(1, len(paths) // 25)]
    wrong, read = [], 0
    for path in paths:
        try:
            h5py.File(path).close()
        except OSError:
            continue
        try:
            datasets, _, different, only_ours, _ = compare_files(path, random, boxes=20 if CASES > 10 else 5)
        except zarrbits.Error as e:
            wrong.append(f"{path}: {e}")
            continue
        read += datasets
        wrong += [f"{path}: {w}" for w in different + only_ours]
    print(f"{len(paths)} files, {read} datasets")
    assert wrong == []
