# SPDX-License-Identifier: BSL-1.0
"""Several Zarr stores as one HDF5 file (`convert --concat`, `export --concat`): its values, as h5py reads them, are those of the
files that the stores were made of. tests/interop/test_concat_stores.py compares such files with what xarray joins."""

import json
import shutil

import h5py
import numpy as np
import pytest

import zarrbits
from harness import convert, refused, run, verify

COUNTS = {"whole chunks": (20, 10, 30), "within chunks": (15, 7, 12), "single steps": (1, 1, 1), "one has some": (0, 7, 0)}
FIRST_YEAR = "days since 2000-01-01"


def make(path, first, count, units=FIRST_YEAR, shift=0, dtype="i4", packing=None):
    """A part with `count` steps from `first` on, as HDF5 and as a store; returns its arrays."""
    random = np.random.default_rng(first)
    arrays = {
        "time": np.arange(first, first + count, dtype=dtype) - shift,
        "heat": random.random((count, 4, 6), "f4"),
        "level": random.integers(-99, 99, (3, count)).astype(">i2"),
        "name": np.array([f"step {i}" for i in range(first, first + count)], object),
        "mask": np.arange(24, dtype="u1").reshape(4, 6),
    }
    with h5py.File(path.with_suffix(".h5"), "w") as f:
        for name, values in arrays.items():
            axis = {"level": 1, "mask": None}.get(name, 0)
            chunks = tuple(10 if d == axis else n for d, n in enumerate(values.shape)) if axis is not None else None
            limits = tuple(None if d == axis else n for d, n in enumerate(values.shape))
            filters = {"compression": "gzip", "shuffle": True} if name == "heat" else {}
            # beyond the edge, chunks have a value that no other epoch can express
            fill = {"fillvalue": np.iinfo(dtype).min + 1} if name == "time" else {}
            kind = h5py.string_dtype() if name == "name" else values.dtype
            f.create_dataset(name, data=values, dtype=kind, chunks=chunks, maxshape=limits, **filters, **fill)
        f["time"].make_scale("time")
        f["time"].attrs["units"] = units
        for name, axis in (("heat", 0), ("level", 1), ("name", 0)):
            f[name].dims[axis].attach_scale(f["time"])
        if packing:
            f["level"].attrs.update(packing)
        f.attrs["history"] = f"part from {first}"
    return arrays


def joined(parts):
    axes = {"level": 1}
    return {
        name: values if name == "mask" else np.concatenate([p[name] for p in parts], axes.get(name, 0))
        for name, values in parts[0].items()
    }


def series(folder, counts, *options, **how):
    """The stores of parts, and their arrays together."""
    parts, stores, first = [], [], 0
    for k, count in enumerate(counts):
        path = folder / f"part{k}.h5"
        parts.append(make(path, first, count, **how))
        stores.append(folder / f"part{k}.zarr")
        convert("-q", path, stores[-1], *options)
        first += count
    return stores, joined(parts)


def require_values(file, expected):
    with h5py.File(file) as f:
        assert set(f) == set(expected)
        for name, values in expected.items():
            got = f[name].asstr()[...] if name == "name" else f[name][...]
            assert got.shape == values.shape and (got == values).all(), name


@pytest.mark.parametrize("counts", COUNTS.values(), ids=list(COUNTS))
@pytest.mark.parametrize(
    "options", [[], ["--shard", "20x4x6"], ["--zarr-format", "2"], ["--profile", "recode", "--compress", "zstd:3"]], ids=" ".join
)
def test_values_follow_each_other(tmp_path, counts, options):
    stores, expected = series(tmp_path, counts, *options)
    for name, more in {"one.h5": ["--threads", "1"], "many.h5": ["--threads", "4"], "any.h5": ["--filters", "any"]}.items():
        convert("-q", "--concat", "time", *stores, tmp_path / name, *more)
    require_values(tmp_path / "one.h5", expected)
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "many.h5").read_bytes()
    with h5py.File(tmp_path / "one.h5") as f:
        assert f["heat"].dims[0][0] == f["time"] and f.attrs["history"] == "part from 0"
        assert f["time"].attrs["units"] == FIRST_YEAR and f["heat"].maxshape == (None, 4, 6)
    # as a store is joined from these
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr")
    for name in ("one.h5", "any.h5"):
        verify(tmp_path / "all.zarr", tmp_path / name)


def test_chunks_that_fit_are_copied(tmp_path):
    stores, _ = series(tmp_path, COUNTS["whole chunks"], "--profile", "native")
    convert("-q", "--concat", "time", *stores, tmp_path / "all.h5", "--report", tmp_path / "report.json")
    done = json.loads((tmp_path / "report.json").read_text())
    outcomes = {o["path"]: o["outcome"] for o in done["objects"] if o["kind"] == "dataset"}
    assert outcomes["/heat"] == "raw" and [(s["first"], s["count"]) for s in done["sources"]] == [(0, 20), (20, 10), (30, 30)]
    with h5py.File(tmp_path / "all.h5") as f, h5py.File(tmp_path / "part1.h5") as part:
        assert f["heat"].id.read_direct_chunk((20, 0, 0)) == part["heat"].id.read_direct_chunk((0, 0, 0))
    # one store has other codecs: its chunks are encoded with the filters of the others
    convert("-q", "--overwrite", tmp_path / "part1.h5", stores[1], "--compress", "none", "--profile", "recode")
    convert("-q", "--concat", "time", *stores, tmp_path / "again.h5")
    with h5py.File(tmp_path / "all.h5") as f, h5py.File(tmp_path / "again.h5") as again:
        assert (f["heat"][...] == again["heat"][...]).all() and again["heat"].compression == "gzip" and again["heat"].shuffle
        assert f["heat"].id.read_direct_chunk((0, 0, 0)) == again["heat"].id.read_direct_chunk((0, 0, 0))


def test_values_in_other_terms(tmp_path):
    """Other epochs, number types and packing; chunks reach beyond the edge, where they have values that no other epoch can
    express."""
    terms = [
        {"packing": {"scale_factor": 0.5, "add_offset": 1.0, "_FillValue": np.int16(-999)}},
        {
            "packing": {"scale_factor": 0.25, "add_offset": 0.5, "_FillValue": np.int16(-998)},
            "units": "days since 2000-01-05",
            "shift": 4,
        },
        {"dtype": "i8", "units": "hours since 2000-01-09", "packing": {"_FillValue": np.int16(-997)}},
    ]
    parts = []
    for k, how in enumerate(terms):
        part = make(tmp_path / f"p{k}.h5", 4 * k, 4, **how)
        if k == 2:
            part["time"][:] = 24 * np.arange(4)
            with h5py.File(tmp_path / "p2.h5", "r+") as f:
                f["time"][...] = part["time"]
        packing = how["packing"]
        part["level"] = part["level"] * packing.get("scale_factor", 1) + packing.get("add_offset", 0)
        part["time"] = np.arange(4 * k, 4 * k + 4)
        parts.append(part)
        convert("-q", tmp_path / f"p{k}.h5", tmp_path / f"p{k}.zarr")
    stores = [tmp_path / f"p{k}.zarr" for k in range(3)]
    for name in ("all.h5", "all.nc"):
        convert("-q", "--concat", "time", *stores, tmp_path / name, "--exclude", "/name")
        expected = joined(parts)
        del expected["name"]
        with h5py.File(tmp_path / name) as f:
            for variable in ("time", "heat", "level"):
                assert np.allclose(f[variable][...], expected[variable], rtol=1e-12 if variable != "level" else 1e-6), variable
            assert f["level"].dtype.kind == "f" and "scale_factor" not in f["level"].attrs
            fill = f["time"].attrs.get("_FillValue")
            assert fill is None or fill.dtype == f["time"].dtype
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr")  # with the same elements beyond the edge
    verify("--concat", "time", *stores, tmp_path / "all.zarr")


def test_only_one_store_has_values_and_other_terms(tmp_path):
    """An epoch and a length of chunks that the first one, which is empty, does not have."""
    make(tmp_path / "a.h5", 0, 0)
    part = make(tmp_path / "b.h5", 4, 4, "days since 2000-01-05", 4)
    convert("-q", tmp_path / "a.h5", tmp_path / "a.zarr", "--chunk", "time:3")
    convert("-q", tmp_path / "b.h5", tmp_path / "b.zarr", "--shard", "1M")
    stores = [tmp_path / "a.zarr", tmp_path / "b.zarr"]
    expected = part | {"time": np.arange(4, 8)}
    convert("-q", "--concat", "time", *stores, tmp_path / "all.h5")
    require_values(tmp_path / "all.h5", expected)
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr")
    run("export", "-q", tmp_path / "all.zarr", tmp_path / "from-zarr.h5")
    require_values(tmp_path / "from-zarr.h5", expected)


def test_the_options_of_joins(tmp_path):
    stores, expected = series(tmp_path, (10, 10, 10))
    target = tmp_path / "all.h5"
    assert "change direction" in refused("convert", "--concat", "time", *stores[::-1], target)
    run("export", "-q", "--concat", "time", "--order", "value", *stores[::-1], target)
    require_values(target, expected)
    convert("-q", "--overwrite", "--concat", "time", tmp_path / "part*.zarr", target, "--include", "/heat", "--include", "/time")
    require_values(target, {"heat": expected["heat"], "time": expected["time"]})
    with h5py.File(tmp_path / "part1.h5", "r+") as f:
        f["mask"][0, 0] = 9
    convert("-q", "--overwrite", tmp_path / "part1.h5", stores[1])
    line = refused("convert", "--concat", "time", "--overwrite", *stores, target)
    assert '"/mask" of' in line and "is not joined, and their values differ" in line
    convert("-q", "--overwrite", "--concat", "time", "--different", "first", *stores, target)
    require_values(target, expected)
    convert("-q", "--overwrite", "--concat", "time", "--different", "skip", *stores, target)
    del expected["mask"]
    require_values(target, expected)
    shutil.rmtree(stores[1] / "level")
    convert("-q", "--overwrite", "--concat", "time", "--different", "skip", *stores, target, "--report", tmp_path / "r.json")
    expected["level"][:, 10:20] = 0
    require_values(target, expected)
    assert (
        'it has no "/level": its part reads as the fill value'
        in json.loads((tmp_path / "r.json").read_text())["sources"][1]["notes"]
    )


def test_damage(tmp_path):
    stores, expected = series(tmp_path, (10, 10, 10))
    target, chunk = tmp_path / "all.h5", stores[1] / "heat/c/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:9])
    line = refused("convert", "--concat", "time", *stores, target)
    assert (
        f'zarrbits: a store is damaged: "/heat": chunk 0/0/0 in "{stores[1]}":' in line
        and "--keep-going" in line
        and not target.exists()
    ), line
    convert("-q", "--concat", "time", "--keep-going", *stores, target, status=3)
    expected["heat"][10:20] = 0
    require_values(target, expected)
    (stores[1] / "time/zarr.json").write_text("{")
    assert "1 store of 3 cannot be joined" in refused("convert", "--concat", "time", "--overwrite", *stores, target)
    done = convert("-q", "--concat", "time", "--keep-going", "--overwrite", *stores, target, status=3)
    assert f'left out "{stores[1]}"' in done.stderr
    require_values(
        target, {n: np.delete(v, slice(10, 20), 1 if n == "level" else 0) if n != "mask" else v for n, v in expected.items()}
    )


def test_what_is_refused(tmp_path):
    stores, _ = series(tmp_path, (10, 10))
    target = tmp_path / "all.h5"
    for options, sentence in (
        (["--concat-new", "run"], "that does not have --concat-new"),
        (["--append", "time"], "that does not have --append"),
        (["--concat", "time", "--shard", "1M"], "that does not have --shard"),
        (["--concat", "time", "--digest"], "--digest compares one store with the file"),
        (["--concat", "time,y"], "one dimension at a time"),
        (["--concat", "day"], 'has a dimension "day"'),
    ):
        assert sentence in refused("convert", *options, *stores, target, status=1 if "day" in options else 2)
    assert "is not a Zarr store" in refused("convert", "--concat", "time", stores[0], tmp_path / "part1.h5", target, status=2)
    assert "lies in the store" in refused("convert", "--concat", "time", *stores, stores[1] / "x.h5")
    assert not target.exists() and not list(tmp_path.glob("*.zarrbits*"))
    convert("-q", "--concat", "time", *stores, target)
    assert "is compared with one other file or store" in refused("verify", "--concat", "time", *stores, target, status=2)


def test_from_python(tmp_path):
    stores, expected = series(tmp_path, (10, 5))
    done = zarrbits.convert(stores, tmp_path / "all.h5", concat="time")
    require_values(tmp_path / "all.h5", expected)
    assert done.sources == [str(s) for s in stores] and done.lost == [] and done.store == str(tmp_path / "all.h5")
    again = zarrbits.export_store(stores, tmp_path / "again.h5", concat="time", order="name")
    assert (tmp_path / "again.h5").read_bytes() == (tmp_path / "all.h5").read_bytes() and again.store == str(stores[0])
    assert again.document["sources"] == done.document["sources"]
    (stores[1] / "time/zarr.json").write_text("{")
    for call in (zarrbits.convert, zarrbits.export_store):
        with pytest.warns(UserWarning, match="is left out"):
            lossy = call(stores, tmp_path / "all.h5", concat="time", keep_going=True, overwrite=True)
        assert [(o.path, o.kind) for o in lossy.lost] == [(str(stores[1]), "file")]
