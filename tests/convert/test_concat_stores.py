# SPDX-License-Identifier: BSL-1.0
"""Several Zarr stores joined along a dimension (`convert --concat`). What the store has is read as h5py reads its export, beside
the arrays that the parts were made of."""

import json
import shutil

import h5py
import numpy as np
import pytest

from harness import contents, convert, refused, report, run, same, verify

COUNTS = {"whole chunks": (20, 10, 30), "within chunks": (15, 7, 12), "single steps": (1, 1, 1)}


def make(path, first, count, units="days since 2000-01-01", shift=0, chunk=10, **attributes):
    """A part with `count` steps from `first` on, as HDF5 and as a store; returns its arrays."""
    random = np.random.default_rng(first)
    arrays = {
        "time": np.arange(first, first + count) - shift,
        "heat": random.random((count, 4, 6), "f4"),
        "level": random.integers(-99, 99, (3, count)).astype(">i2"),
        "name": np.array([f"step {i}" for i in range(first, first + count)], object),
        "mask": np.arange(24).reshape(4, 6) % 5 == 0,
    }
    with h5py.File(path.with_suffix(".h5"), "w") as f:
        for name, values in arrays.items():
            chunks = tuple(min(chunk, n) if n == count else n for n in values.shape)
            f.create_dataset(name, data=values, chunks=None if name == "mask" else chunks)
        f["time"].make_scale("time")
        f["time"].attrs.update({"units": units, **attributes})
        for name, axis in (("heat", 0), ("level", 1), ("name", 0)):
            f[name].dims[axis].attach_scale(f["time"])
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


def require_values(store, expected):
    target = store.with_suffix(".export.h5")
    run("export", "-q", store, target, "--overwrite")
    with h5py.File(target) as f:
        for name, values in expected.items():
            got = f[name].asstr()[...] if name == "name" else f[name][...]
            assert got.shape == values.shape and (got == values).all(), name


@pytest.mark.parametrize("counts", COUNTS.values(), ids=list(COUNTS))
@pytest.mark.parametrize("options", [[], ["--shard", "20x4x6"], ["--zarr-format", "2"], ["--profile", "recode"]], ids=" ".join)
def test_values_follow_each_other(tmp_path, counts, options):
    stores, expected = series(tmp_path, counts, *options)
    for name, again in {
        "plain": [],
        "chunks": ["--chunk", "7x2x6"],
        "shards": ["--shard", "64k"],
        "gzip": ["--compress", "gzip:1"],
        "v2": ["--zarr-format", "2"],
    }.items():
        store = tmp_path / f"{name}.zarr"
        convert("-q", "--concat", "time", *stores, store, *again)
        require_values(store, expected)
        verify("--concat", "time", *stores, store)


def test_chunks_that_fit_are_copied(tmp_path):
    stores, _ = series(tmp_path, COUNTS["whole chunks"])
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr", "--report", tmp_path / "report.json")
    got = contents(tmp_path / "all.zarr/heat/c")
    expected, first = {}, 0
    for store in stores:
        chunks = contents(store / "heat/c")
        expected |= {f"{int(k.split('/')[0]) + first}/{k.split('/', 1)[1]}": v for k, v in chunks.items()}
        first += len({k.split("/")[0] for k in chunks})
    assert got == expected and len(got) == 6
    objects = {o["path"]: o for o in report(tmp_path / "report.json")["objects"] if o["kind"] == "dataset"}
    assert {objects[f"/{n}"]["outcome"] for n in ("heat", "level", "name", "time")} == {"raw"}


def test_rectilinear_grids_keep_what_is_stored(tmp_path):
    stores, expected = series(tmp_path, COUNTS["within chunks"])
    store = tmp_path / "all.zarr"
    convert("-q", "--concat", "time", *stores, store, "--grid", "rectilinear")
    require_values(store, expected)
    node = json.loads((store / "heat/zarr.json").read_text())
    assert node["chunk_grid"]["configuration"]["chunk_shapes"][0] == [10, 5, 7, [10, 2]]
    assert (store / "heat/c/0/0/0").read_bytes() == (stores[0] / "heat/c/0/0/0").read_bytes()  # a whole chunk
    assert (store / "heat/c/3/0/0").read_bytes() == (stores[2] / "heat/c/0/0/0").read_bytes()
    assert (store / "heat/c/4/0/0").read_bytes() == (stores[2] / "heat/c/1/0/0").read_bytes()  # the last one of all
    verify("--concat", "time", *stores, store)


def test_times_of_other_epochs(tmp_path):
    parts = [make(tmp_path / "a.h5", 0, 12), make(tmp_path / "b.h5", 12, 12, "days since 2000-01-13", 12)]
    expected = joined(parts)
    expected["time"] = np.arange(24)
    for name in "ab":
        convert("-q", tmp_path / f"{name}.h5", tmp_path / f"{name}.zarr")
    stores = [tmp_path / "a.zarr", tmp_path / "b.zarr"]
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr", "--report", tmp_path / "report.json")
    require_values(tmp_path / "all.zarr", expected)
    verify("--concat", "time", *stores, tmp_path / "all.zarr")
    notes = report(tmp_path / "report.json")["sources"][1]["notes"]
    assert '"/time": its values are converted to the encoding of the first store' in notes
    # a chunk of fill values only is not stored: of the second part it means its first day
    shutil.rmtree(tmp_path / "b.zarr/time/c")
    convert("-q", "--concat", "time", *stores, tmp_path / "again.zarr", "--allow-overlap")
    expected["time"] = np.concatenate([np.arange(12), np.full(12, 12)])
    require_values(tmp_path / "again.zarr", expected)
    verify("--concat", "time", "--allow-overlap", *stores, tmp_path / "again.zarr")


def test_fill_values_that_the_first_store_cannot_have(tmp_path):
    """Hours since noon are days since midnight if none is left over; the fill value 0 is not, and no chunk has it."""
    make(tmp_path / "a.h5", 0, 2)
    make(tmp_path / "b.h5", 2, 2, "hours since 2000-01-02 12:00", -10)  # 12 and 13
    with h5py.File(tmp_path / "b.h5", "r+") as f:
        f["time"][...] = [12, 36]
    for name in "ab":
        convert("-q", tmp_path / f"{name}.h5", tmp_path / f"{name}.zarr")
    stores = [tmp_path / "a.zarr", tmp_path / "b.zarr"]
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr", "--exclude", "/name")
    require_values(tmp_path / "all.zarr", {"time": np.arange(4)})
    shutil.rmtree(tmp_path / "b.zarr/time/c")
    line = refused("convert", "--concat", "time", "--allow-overlap", *stores, tmp_path / "x.zarr")
    assert '"/time" cannot be joined: of its fill value' in line and "not a whole number of units" in line, line


def test_order(tmp_path):
    stores, expected = series(tmp_path, (10, 10, 10))
    assert "change direction" in refused("convert", "--concat", "time", stores[1], stores[0], stores[2], tmp_path / "x.zarr")
    for order in ("name", "value"):
        store = tmp_path / f"{order}.zarr"
        convert("-q", "--concat", "time", "--order", order, *stores[::-1], store)
        require_values(store, expected)
        verify("--concat", "time", "--order", order, *stores[::-1], store)


def test_an_axis_by_its_number(tmp_path):
    stores, expected = series(tmp_path, (10, 5))
    options = ["--concat", "/heat:0", "--include", "/heat"]
    convert("-q", *options, *stores, tmp_path / "all.zarr")
    require_values(tmp_path / "all.zarr", {"heat": expected["heat"]})
    verify(*options, *stores, tmp_path / "all.zarr")
    assert "has no axis 3" in refused("convert", "--concat", "/heat:3", *stores, tmp_path / "x.zarr")


def test_references_to_the_chunks_of_stores(tmp_path):
    stores, expected = series(tmp_path, COUNTS["whole chunks"])
    convert("-q", "--virtual", "--concat", "time", *stores, tmp_path / "all.json", "--report", tmp_path / "report.json")
    done = json.loads((tmp_path / "report.json").read_text())
    assert done["referred"]["objects"] > 10, done["referred"]
    verify("--concat", "time", *stores, tmp_path / "all.json")
    convert("-q", tmp_path / "all.json", tmp_path / "copy.zarr")
    require_values(tmp_path / "copy.zarr", expected)


def test_arrays_that_a_store_does_not_have(tmp_path):
    stores, expected = series(tmp_path, (10, 10, 10))
    shutil.rmtree(stores[1] / "level")
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr", "--report", tmp_path / "report.json")
    expected["level"][:, 10:20] = 0
    require_values(tmp_path / "all.zarr", expected)
    assert 'it has no "/level": its part reads as the fill value' in report(tmp_path / "report.json")["sources"][1]["notes"]
    line = refused("convert", "--concat", "time", stores[1], stores[0], tmp_path / "x.zarr", "--allow-overlap")
    assert '"/level" is in' in line and "the first; put a store first that has everything" in line


def test_arrays_without_the_dimension(tmp_path):
    stores, expected = series(tmp_path, (10, 10))
    with h5py.File(tmp_path / "part1.h5", "r+") as f:
        f["mask"][0, 0] = False
    convert("-q", "--overwrite", tmp_path / "part1.h5", stores[1])
    line = refused("convert", "--concat", "time", *stores, tmp_path / "x.zarr")
    assert '"/mask" of' in line and "is not joined, and their values differ" in line
    convert("-q", "--concat", "time", "--different", "first", *stores, tmp_path / "first.zarr")
    require_values(tmp_path / "first.zarr", expected)
    verify("--concat", "time", "--different", "first", *stores, tmp_path / "first.zarr")
    verify("--concat", "time", *stores, tmp_path / "first.zarr", status=1)
    convert("-q", "--concat", "time", "--different", "skip", *stores, tmp_path / "skip.zarr")
    assert not (tmp_path / "skip.zarr/mask").exists()


def test_verify_finds_what_differs(tmp_path):
    stores, _ = series(tmp_path, (10, 20, 10), "--compress", "none")
    convert("-q", "--concat", "time", *stores, tmp_path / "all.zarr")
    chunk = tmp_path / "all.zarr/heat/c/2/0/0"
    data = bytearray(chunk.read_bytes())
    data[400] ^= 1
    chunk.write_bytes(data)
    done = verify("--concat", "time", *stores, tmp_path / "all.zarr", status=1)
    findings = [f for f in done["findings"] if f["outcome"] == "differs"]
    assert [f["path"] for f in findings] == ["/heat"] and "part1.zarr" in findings[0]["reason"]
    assert findings[0]["index"] == [14, 0, 4]  # of the part: 400 bytes are 100 elements of 24 a step, from its step 10 on
    data[400] ^= 1
    chunk.write_bytes(data)
    done = verify("--concat", "time", *stores[:2], tmp_path / "all.zarr", status=1)
    assert {f["path"] for f in done["findings"] if "along the dimension" in f["reason"]} == {"/heat", "/level", "/name", "/time"}


def test_a_damaged_chunk_is_named_where_it_is(tmp_path):
    stores, _ = series(tmp_path, (10, 10), "--profile", "recode")
    chunk = stores[1] / "heat/c/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:9])
    line = refused("convert", "--concat", "time", *stores, tmp_path / "x.zarr", "--chunk", "heat=time:5")
    assert f'chunk 0/0/0 of "/heat" in "{stores[1]}" is damaged' in line, line


def test_shares_and_resumed_runs(tmp_path):
    stores, _ = series(tmp_path, COUNTS["within chunks"])
    options = ["--chunk", "heat=time:7", "--exclude", "/name"]
    convert("-q", "--concat", "time", *stores, tmp_path / "one.zarr", *options)
    for share in range(3):
        convert("-q", "--concat", "time", *stores, tmp_path / "shares.zarr", "--partition", f"{share}/3", *options)
    run("finalize", "-q", "--concat", "time", *stores, tmp_path / "shares.zarr")
    same(tmp_path / "one.zarr", tmp_path / "shares.zarr")
    convert("-q", "--concat", "time", *stores, tmp_path / "resumed.zarr", "--partition", "1/3", *options)
    chunk = stores[1] / "heat/c/0/0/0"
    chunk.write_bytes(chunk.read_bytes())  # another time, and so another state
    line = refused("convert", "--concat", "time", *stores, tmp_path / "resumed.zarr", "--resume")
    assert "changed" in line or "another" in line, line


def test_what_is_refused(tmp_path):
    stores, _ = series(tmp_path, (10, 10))
    target = tmp_path / "x.zarr"
    assert "joined with Zarr stores" in refused("convert", "--concat", "time", stores[0], tmp_path / "part1.h5", target, status=2)
    assert "--append" in refused("convert", "--append", "time", *stores, target, status=2)
    assert "--concat-new" in refused("convert", "--concat-new", "run", *stores, target, status=2)
    assert 'has a dimension "day"' in refused("convert", "--concat", "day", *stores, target)
    convert("-q", stores[1], tmp_path / "other.zarr", "--chunk", "10x2x6")
    assert "one dimension at a time" in refused("convert", "--concat", "time,y", *stores, target, status=2)
    line = refused("convert", "--concat", "time", stores[0], tmp_path / "other.zarr", target)
    assert "their chunks are 10x4x6 and 10x2x6" in line and "--chunk" in line
    node = json.loads((stores[1] / "heat/zarr.json").read_text())
    (stores[1] / "heat/zarr.json").write_text(json.dumps(node | {"shape": [10, 4, 5]}))
    assert "they have 6 and 5 elements" in refused("convert", "--concat", "time", *stores, target)
    (stores[1] / "zarr.json").write_text("{")
    line = refused("convert", "--concat", "time", *stores, target)
    assert "1 store of 2 cannot be joined" in line and "keep_going" not in line and "--keep-going" in line
    convert("-q", "--concat", "time", *stores, target, "--keep-going", status=3)
    assert not list(tmp_path.glob("x.zarr/.zarrbits*"))


def test_a_store_that_is_left_out_leaves_no_part(tmp_path):
    """The last of its arrays cannot be read; those before it can."""
    stores, _ = series(tmp_path, (10, 10, 10))
    (stores[1] / "time/zarr.json").write_text("{")
    assert "1 store of 3 cannot be joined" in refused("convert", "--concat", "time", *stores, tmp_path / "x.zarr")
    store = tmp_path / "all.zarr"
    convert("-q", "--concat", "time", "--keep-going", *stores, store, status=3)
    first, last = (np.random.default_rng(n).random((10, 4, 6), "f4") for n in (0, 20))
    require_values(store, {"heat": np.concatenate([first, last]), "time": np.r_[0:10, 20:30]})
    verify("--concat", "time", stores[0], stores[2], store)
    (stores[2] / "level/zarr.json").write_text("{")
    done = verify("--concat", "time", stores[0], stores[2], store, status=1)
    assert {f["outcome"] for f in done["findings"]} == {"unreadable"} and "/level" in {f["path"] for f in done["findings"]}
