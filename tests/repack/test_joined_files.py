# SPDX-License-Identifier: BSL-1.0
"""Several HDF5 files as one with their values (--concat time IN.nc ... OUT.nc): what h5py has of the files, side by side.

ZARRBITS_CASES: random files, 12 by default. ZARRBITS_SEED: others.
"""

import itertools
import json
import os

import h5py
import numpy as np
import pytest
from h5py import h5s, h5t, h5z

import zarrbits
from harness import convert, refused, run

CASES, SEED = int(os.environ.get("ZARRBITS_CASES", "12")), int(os.environ.get("ZARRBITS_SEED", "1"))


def write(path, times, variables, units="days since 2000-01-01"):
    """`variables`: name -> (values, first dimension time; options of create_dataset)."""
    with h5py.File(path, "w", track_order=True) as f:
        f.attrs["title"] = path.name
        time = f.create_dataset("time", data=np.asarray(times, "f8"), maxshape=(None,), chunks=(4,))
        time.make_scale("time")
        time.attrs["units"] = units
        for name, (values, options) in variables.items():
            d = f.create_dataset(name, data=values, **options)
            d.attrs["long_name"] = name
            d.dims[0].attach_scale(time)
    return path


def months(folder, lengths, values_of, **options):
    """A file for each length, in which values_of(all times) has the values of v."""
    paths, first = [], 0
    for i, n in enumerate(lengths):
        values = values_of(np.arange(first, first + n))
        paths.append(write(folder / f"m{i}.nc", range(first, first + n), {"v": (values, options)}))
        first += n
    return paths


def grid(times):
    return (times[:, None] * 100 + np.arange(6)).astype("i4")


def join(*arguments, verified=True):
    """Joins, and compares with what verify makes of the sources; the report."""
    names = [a for a in arguments if a != "-q"]
    report = json.loads(convert("-q", "--json", *names).stdout)
    if verified:
        run("verify", "-q", *names)
    return report


def side_by_side(paths, name, axis=0):
    values = []
    for p in paths:
        with h5py.File(p) as f:
            values.append(f[name][...])
    return np.concatenate(values, axis)


def stored_chunks(dataset):
    """(filter mask, bytes) of each chunk, by its offset."""
    count = dataset.id.get_num_chunks()
    offsets = [dataset.id.get_chunk_info(i).chunk_offset for i in range(count)]
    return {offset: dataset.id.read_direct_chunk(offset) for offset in offsets}


DEFLATED = {
    "maxshape": (None, 6),
    "chunks": (2, 3),
    "compression": "gzip",
    "compression_opts": 5,
    "shuffle": True,
    "fillvalue": -9,
}


def test_chunks_on_the_grid_of_the_whole_are_copied_as_they_are(tmp_path):
    paths = months(tmp_path, [4, 6, 3], grid, **DEFLATED)
    with h5py.File(paths[1], "r+") as f:  # bytes that no encoder here makes, without the last filter
        raw = np.frombuffer(grid(np.arange(6, 8))[:, 3:].tobytes(), "u1").reshape(-1, 4).T.tobytes()
        f["v"].id.write_direct_chunk((2, 3), raw, 0b10)
    report = join("--concat", "time", *paths, tmp_path / "all.nc")
    expected = {}
    for path, first in zip(paths, (0, 4, 10)):
        with h5py.File(path) as f:
            expected |= {(o[0] + first, o[1]): chunk for o, chunk in stored_chunks(f["v"]).items()}
    with h5py.File(tmp_path / "all.nc") as f, h5py.File(paths[0]) as first:
        assert stored_chunks(f["v"]) == expected
        assert any(mask == 0b10 for mask, _ in expected.values())
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))
        assert f["v"].maxshape == (None, 6) and f["time"].maxshape == (None,) and f["v"].chunks == (2, 3)
        assert f["v"].compression_opts == 5 and f["v"].shuffle and f["v"].fillvalue == -9
        assert f["v"].attrs["long_name"] == "v" and f.attrs["title"] == "m0.nc"
        assert f["v"].dims[0].keys() == ["time"] and f["time"].attrs["units"] == first["time"].attrs["units"]
        assert f["v"].id.get_create_plist().get_filter(0) == first["v"].id.get_create_plist().get_filter(0)
    assert report["copied_chunks"] >= len(expected) and [p["file"] for p in report["files"]] == [str(p) for p in paths]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunk", [(3, 4), (5, 6), (1, 1), (16, 4)])
def test_other_chunks_are_encoded(tmp_path, chunk, threads):
    paths = months(tmp_path, [4, 5, 1, 3], grid, **DEFLATED | {"chunks": chunk})
    report = join("--concat", "time", *paths, tmp_path / "all.nc", "--threads", threads)
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))
        assert f["v"].chunks == chunk and f["v"].compression == "gzip"
    assert report["encoded_chunks"] == {(3, 4): 8, (5, 6): 2, (1, 1): 0, (16, 4): 2}[chunk] + 2  # and two of the time


def test_chunks_of_other_shapes_and_filters(tmp_path):
    """The first file decides, or the first that has chunks."""
    forms = [{}, DEFLATED, {"maxshape": (None, 6), "chunks": (1, 6), "compression": "lzf", "fillvalue": -9}, DEFLATED]
    forms[0] = {"fillvalue": -9}
    paths = [
        write(tmp_path / f"m{i}.nc", range(4 * i, 4 * i + 4), {"v": (grid(np.arange(4 * i, 4 * i + 4)), form)})
        for i, form in enumerate(forms)
    ]
    join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f, h5py.File(paths[3]) as last:
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))
        assert f["v"].chunks == (2, 3) and f["v"].maxshape == (None, 6)
        assert stored_chunks(f["v"])[14, 3] == stored_chunks(last["v"])[2, 3]


def test_byte_orders(tmp_path):
    paths = [
        write(tmp_path / f"m{i}.nc", [2 * i, 2 * i + 1], {"v": (grid(np.arange(2 * i, 2 * i + 2)).astype(t), DEFLATED)})
        for i, t in enumerate(("<i4", ">i4", "<i4"))
    ]
    report = join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        assert f["v"].dtype == "<i4"
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))
    assert report["encoded_chunks"] >= 2


def test_contiguous_datasets_stay_so(tmp_path):
    paths = months(tmp_path, [4, 1, 3], grid)
    join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        assert f["v"].chunks is None and f["v"].maxshape == (8, 6)
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))


def test_strings_and_compounds(tmp_path):
    record = np.dtype([("a", "i2"), ("b", "f8", (2,)), ("c", "S3")])
    text = h5py.string_dtype()
    paths = []
    for i, (first, n) in enumerate([(0, 3), (3, 4), (7, 1)]):
        records = np.zeros(n, record)
        records["a"], records["c"] = range(first, first + n), b"xyz"
        words = np.array([f"wort {k} ü" * k for k in range(first, first + n)], dtype=object)
        lists = np.empty(n, dtype=object)
        lists[:] = [np.arange(k, dtype="i4") for k in range(first, first + n)]
        chunked = {"maxshape": (None,), "chunks": (2,), "compression": "gzip"}
        variables = {
            "records": (records, chunked),
            "words": (words, {"dtype": text} | chunked),
            "plain": (words, {"dtype": text}),
            "lists": (lists, {"dtype": h5py.vlen_dtype("i4"), "maxshape": (None,), "chunks": (2,)}),
        }
        paths.append(write(tmp_path / f"m{i}.nc", range(first, first + n), variables))
    join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        for name in ("records", "words", "plain"):
            np.testing.assert_array_equal(f[name][...], side_by_side(paths, name))
        assert [list(v) for v in f["lists"]] == [list(range(k)) for k in range(8)]
        assert f["words"].chunks == (2,) and f["plain"].chunks is None


def test_texts_that_no_file_has_written(tmp_path):
    """They read as in their own file, also if the first one has another fill value."""
    paths = []
    for i, fill in enumerate(("first", "second")):
        paths.append(write(tmp_path / f"m{i}.nc", [2 * i, 2 * i + 1], {}))
        with h5py.File(paths[-1], "r+") as f:
            for name, chunks in ("chunked", (2,)), ("contiguous", None):
                d = f.create_dataset(name, (2,), h5py.string_dtype(), fillvalue=fill, chunks=chunks)
                d.dims[0].attach_scale(f["time"])
    join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        for name in ("chunked", "contiguous"):
            assert f[name].asstr()[...].tolist() == ["first", "first", "second", "second"]


def test_times_of_other_epochs(tmp_path):
    """They get that of the first file, and stay unlimited."""
    a = write(tmp_path / "a.nc", [0, 1], {"v": (grid(np.arange(2)), DEFLATED)})
    b = write(tmp_path / "b.nc", [1, 2], {"v": (grid(np.arange(2, 4)), DEFLATED)}, units="days since 2000-01-02")
    join("--concat", "time", a, b, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        assert f["time"][...].tolist() == [0, 1, 2, 3] and f["time"].maxshape == (None,)
        np.testing.assert_array_equal(f["v"][...], side_by_side([a, b], "v"))


def test_a_new_dimension(tmp_path):
    """Before all others; a chunk of a file is a chunk of the whole. Scalars become a list."""
    paths = []
    for i in range(3):
        paths.append(write(tmp_path / f"r{i}.nc", range(5), {"v": (grid(np.arange(5) + 10 * i), DEFLATED)}))
        with h5py.File(paths[-1], "r+") as f:
            f["depth"] = i * 1.5
            f.create_dataset("name", data=f"run {i}", dtype=h5py.string_dtype())
    join("--concat-new", "run", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        assert f["v"].shape == (3, 5, 6) and f["v"].chunks == (1, 2, 3) and f["v"].maxshape == (3, None, 6)
        assert f["depth"][...].tolist() == [0, 1.5, 3] and f["time"].shape == (5,)
        assert f["name"].asstr()[...].tolist() == ["run 0", "run 1", "run 2"]
        assert [f["v"].dims[i][0].name for i in range(2)] == ["/run", "/time"]
        for i, p in enumerate(paths):
            with h5py.File(p) as one:
                np.testing.assert_array_equal(f["v"][i], one["v"][...])
                for offset, chunk in stored_chunks(one["v"]).items():
                    assert stored_chunks(f["v"])[(i, *offset)] == chunk


def tile(path, y, x, chunk):
    with h5py.File(path, "w") as f:
        for name, values in (("y", y), ("x", x)):
            f[name] = np.asarray(values, "f8")
            f[name].make_scale(name)
        v = f.create_dataset("v", data=np.add.outer(np.asarray(y) * 100.0, x), chunks=chunk, fillvalue=-1)
        v.dims[0].attach_scale(f["y"])
        v.dims[1].attach_scale(f["x"])
    return path


@pytest.mark.parametrize("chunk", [(2, 3), (2, 2), None])
def test_two_dimensions(tmp_path, chunk):
    """A tile that no file has reads as the fill value, and takes no room."""
    ys, xs = [range(4), range(4, 6), range(6, 9)], [range(3), range(3, 9)]
    paths = [
        tile(tmp_path / f"t{i}{k}.nc", y, x, chunk)
        for (i, y), (k, x) in itertools.product(enumerate(ys), enumerate(xs))
        if (i, k) != (1, 0)
    ]
    done = convert("--concat", "y,x", *paths, tmp_path / "all.nc")
    assert 'note: 1 of the 6 parts of "/v" is in no file' in done.stderr
    run("verify", "-q", "--concat", "y,x", *paths, tmp_path / "all.nc")
    expected = np.add.outer(np.arange(9) * 100.0, np.arange(9))
    expected[4:6, :3] = -1
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["v"][...], expected)
        assert f["v"].chunks == chunk
        if chunk == (2, 3):
            assert set(stored_chunks(f["v"])) == set(itertools.product(range(0, 9, 2), range(0, 9, 3))) - {(4, 0)}
        if chunk:
            assert f["v"].maxshape == (9, 9)


def test_what_no_file_has_written_stays_so(tmp_path):
    paths = months(tmp_path, [4, 4, 4], grid, **DEFLATED)
    with h5py.File(paths[1], "r+") as f:
        del f["v"]
        v = f.create_dataset("v", (4, 6), "i4", **DEFLATED)
        v.attrs["long_name"] = "v"
        v.dims[0].attach_scale(f["time"])
        v[2:, 3:] = 7
    join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))
        assert len(stored_chunks(f["v"])) == 4 + 1 + 4


def unknown(path, first, n, chunk=2):
    """A file with chunks of a filter that nothing here has."""
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk((chunk,))
    p.set_filter(30000, h5z.FLAG_OPTIONAL, (1, 2))
    with h5py.File(path, "w") as f:
        f["time"] = np.arange(first, first + n, dtype="f8")
        f["time"].make_scale("time")
        h5py.h5d.create(f.id, b"d", h5t.NATIVE_INT32, h5s.create_simple((n,)), p)
        for i in range(0, n, chunk):
            f["d"].id.write_direct_chunk((i,), b"any bytes %d" % (first + i), 0)
        f["d"].dims[0].attach_scale(f["time"])
    return path


def test_chunks_of_unknown_filters(tmp_path):
    """They are copied, if all are chunks of the whole."""
    a, b, c = (unknown(tmp_path / f"{k}.h5", first, n) for k, first, n in (("a", 0, 4), ("b", 4, 3), ("c", 7, 4)))
    join("--concat", "time", a, b, tmp_path / "all.h5", verified=False)
    with h5py.File(tmp_path / "all.h5") as f:
        assert stored_chunks(f["d"]) == {(i,): (0, b"any bytes %d" % i) for i in (0, 2, 4, 6)}
        assert f["d"].id.get_create_plist().get_filter(0)[:3] == (30000, h5z.FLAG_OPTIONAL, (1, 2))
    sentence = refused("convert", "-q", "--concat", "time", a, b, c, tmp_path / "no.h5")
    assert '"/d": there is no decoder of filter 30000' in sentence and "virtual datasets" in sentence
    assert not (tmp_path / "no.h5").exists()


def test_a_damaged_chunk_is_named(tmp_path):
    paths = months(tmp_path, [3, 4, 3], grid, **DEFLATED)
    with h5py.File(paths[1], "r+") as f:
        f["v"].id.write_direct_chunk((2, 3), b"no deflate", 0)
    sentence = refused("convert", "-q", "--concat", "time", *paths, tmp_path / "all.nc")
    assert f'"/v": chunk 1/1 of "{paths[1]}"' in sentence and "get that file again, or leave it out" in sentence
    assert sorted(os.listdir(tmp_path)) == ["m0.nc", "m1.nc", "m2.nc"]


def test_a_truncated_file_is_named(tmp_path):
    paths = months(tmp_path, [4, 4], grid, **DEFLATED)
    os.truncate(paths[1], os.path.getsize(paths[1]) - 100)
    assert str(paths[1]) in refused("convert", "-q", "--concat", "time", *paths, tmp_path / "all.nc")
    assert not (tmp_path / "all.nc").exists()


def test_existing_targets(tmp_path):
    paths = months(tmp_path, [4, 4], grid, **DEFLATED)
    join("--concat", "time", *paths, tmp_path / "all.nc")
    assert "exists" in refused("convert", "-q", "--concat", "time", *paths[::-1], tmp_path / "all.nc")
    before = (tmp_path / "all.nc").read_bytes()
    convert("-q", "--overwrite", "--concat", "time", *paths, tmp_path / "all.nc")
    assert (tmp_path / "all.nc").read_bytes() == before  # a join is the same each time
    (tmp_path / "text.nc").write_text("no HDF5 file", encoding="utf-8")
    refused("convert", "-q", "--overwrite", "--concat", "time", *paths, tmp_path / "text.nc")
    assert (tmp_path / "text.nc").read_text(encoding="utf-8") == "no HDF5 file"


def test_what_a_joined_file_cannot_have_is_one_sentence(tmp_path):
    paths = months(tmp_path, [4, 4], grid, **DEFLATED)

    def sentence(*options):
        return refused("convert", "-q", "--concat", "time", *options, *paths, tmp_path / "no.nc", status=2)

    assert "cannot have --include, --compress" in sentence("--include", "v", "--compress", "zstd")
    assert "cannot have --digest" in sentence("--digest")
    assert "cannot have --layout; join the files without" in sentence("--layout", "cloud")
    assert "--allow-overlap is for OUT.zarr and OUT.json" in sentence("--allow-overlap")
    assert "--cf-aggregation requires --virtual" in sentence("--cf-aggregation")
    assert "too little" in sentence("--memory", "1M")
    assert "has no plan" in refused("plan", "--concat", "time", *paths, tmp_path / "no.nc", status=2)
    assert not (tmp_path / "no.nc").exists()


def test_from_python(tmp_path):
    paths = months(tmp_path, [4, 3], grid, **DEFLATED)
    done = zarrbits.convert(paths, tmp_path / "all.nc", concat="time", progress=False)
    assert [s["file"] for s in done.document["sources"]] == [str(p) for p in paths] and not done.lost
    assert done.document["copied_chunks"] > 0
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"))
    assert zarrbits.verify(paths, tmp_path / "all.nc", concat="time").equal
    with pytest.raises(zarrbits.Error, match="cannot have `layout`"):
        zarrbits.convert(paths, tmp_path / "no.nc", concat="time", layout="cloud")


def test_verify_compares_each_value(tmp_path):
    paths = months(tmp_path, [4, 4], grid, **DEFLATED)
    join("--concat", "time", *paths, tmp_path / "all.nc")
    with h5py.File(tmp_path / "all.nc", "r+") as f:
        f["v"][5, 2] += 1
    assert "/v" in run("verify", "-q", "--concat", "time", *paths, tmp_path / "all.nc", status=1).stdout


def test_random_files(tmp_path):
    random = np.random.default_rng(SEED)
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        shape = tuple(random.integers(1, 9, 2))
        paths, first = [], 0
        chunk = (int(random.integers(1, 7)), int(random.integers(1, shape[0] + 1)), int(random.integers(1, shape[1] + 1)))
        for i in range(random.integers(2, 7)):
            n = int(random.integers(1, 12)) if random.random() < 0.5 else chunk[0] * int(random.integers(1, 3))
            other = tuple(min(c + int(random.integers(0, 2)), s) for c, s in zip(chunk, (99, *shape)))
            options = {
                "chunks": random.choice([0, 1, 2]) and (other if random.random() < 0.3 else chunk) or None,
                "fillvalue": 3,
            }
            if options["chunks"]:
                options["maxshape"] = (None, *map(int, shape))
                options["compression"] = random.choice(["gzip", "lzf", None])
                options["shuffle"] = bool(random.integers(0, 2))
            values = random.integers(0, 9, (n, *shape)).astype("i2")
            paths.append(write(folder / f"m{i}.nc", range(first, first + n), {"v": (values, options)}))
            first += n
        join("--concat", "time", *paths, folder / "all.nc", "--memory", "16M")
        with h5py.File(folder / "all.nc") as f:
            np.testing.assert_array_equal(f["v"][...], side_by_side(paths, "v"), f"case {case}, seed {SEED}")
