# SPDX-License-Identifier: BSL-1.0
"""What the numbers of several files mean: bounds, times as floats, packed coordinates. The right values are numpy's;
tests/interop/test_concat_terms.py compares with xarray."""

import json
import os
import shutil

import h5py
import numpy as np
import pytest

from harness import convert, refused, run
from test_concat import here, joined, opened, verify  # noqa: F401  (here: each test in a folder of its own)


def write(name, time, bounds=None, named="bounds", bounds_attributes=(), dtype="f8", **attributes):
    """A file with times, their bounds and a variable."""
    with h5py.File(name, "w") as f:
        f["t"] = np.asarray(time, dtype)
        f["t"].attrs.update(attributes)
        f["t"].make_scale("t")
        if bounds is not None:
            if named:
                f["t"].attrs[named] = "t_bnds"
            b = f.create_dataset("t_bnds", data=np.asarray(bounds, dtype))
            b.attrs.update(bounds_attributes)
            b.dims[0].attach_scale(f["t"])
            f["nv"] = np.arange(b.shape[1], dtype="i4")
            f["nv"].make_scale("nv")
            b.dims[1].attach_scale(f["nv"])
        f["x"] = np.arange(len(time), dtype="i4")
        f["x"].dims[0].attach_scale(f["t"])
    return name


def pair(first):
    return [[first, first + 1], [first + 1, first + 2]]


A = dict(time=[0.5, 1.5], bounds=pair(0), units="days since 2000-01-01", calendar="noleap")
B = dict(time=[0.5, 1.5], bounds=pair(0), units="days since 2000-01-03", calendar="noleap")
RIGHT = [*pair(0), *pair(2)]


@pytest.mark.parametrize("way", ["concat", "append", "virtual"])
@pytest.mark.parametrize(
    "case",
    ["bounds", "climatology", "integers", "calendar is inherited", "only the second has units", "the second does not name them"],
)
def test_bounds_have_the_units_of_the_times(case, way):
    a, b = dict(A), dict(B)
    right = RIGHT
    if case == "climatology":
        a["named"] = b["named"] = "climatology"
    elif case == "integers":
        a |= dict(time=[0, 1], dtype="i4")
        b |= dict(time=[0, 1], dtype="i4")
    elif case == "calendar is inherited":  # 2000-02-29 is not a day of noleap
        b |= dict(units="days since 2000-03-01", bounds_attributes={"units": "days since 2000-03-01"})
        right = [*pair(0), *pair(59)]
    elif case == "only the second has units":
        b["bounds_attributes"] = {"units": "hours since 2000-01-03", "calendar": "365_day"}
        b["bounds"] = (np.array(pair(0)) * 24).tolist()
    elif case == "the second does not name them":
        b["named"] = None
    names = [write("a.h5", **a), write("b.h5", **b)]
    shutil.rmtree("out.zarr", ignore_errors=True)
    out = "out.zarr"
    if way == "append":
        convert("--concat", "t", names[0], out, "--compress", "gzip:1")
        convert("--append", "t", names[1], out)
    elif way == "concat":
        joined(names)
    else:
        out = "out.json"
        convert("--virtual", "--concat", "t", *names, out)
    if way != "virtual":
        made = opened(out)
        assert made.read("t_bnds").tolist() == right, made.read("t_bnds")
    result = verify(*names, out)
    assert result["elements"]["unchecked"] == 0 and result["attributes"]["differs"] == 0, result
    if way != "virtual":  # what was written before bounds were understood
        spoil("t_bnds", np.array([*pair(0), *b["bounds"]]))
        found = verify(*names, out, status=1)["findings"]
        assert [f["path"] for f in found if f["kind"] == "dataset"] == ["/t_bnds"], found


def spoil(at, values, out="out.zarr"):
    """Puts these values into an array, uncompressed and in one chunk."""
    path = f"{out}/{at}/zarr.json"
    with open(path) as f:
        meta = json.load(f)
    shutil.rmtree(f"{out}/{at}/c")
    meta["chunk_grid"]["configuration"]["chunk_shape"] = list(values.shape)
    meta["codecs"] = meta["codecs"][:1]
    with open(path, "w") as f:
        json.dump(meta, f)
    key = "/".join([f"{out}/{at}/c", *"0" * values.ndim])
    os.makedirs(os.path.dirname(key))
    values.astype(np.dtype(meta["data_type"]).newbyteorder("<")).tofile(key)


def instants(values, units):
    unit, _, epoch = units.partition(" since ")
    micro = np.asarray(values, "f8").astype("longdouble") * {"days": 86400_000_000, "hours": 3600_000_000}[unit]
    return np.datetime64(epoch, "us") + np.rint(micro).astype("i8").astype("m8[us]")


@pytest.mark.parametrize("units", ["days", "hours"])
@pytest.mark.parametrize("later", ["2020-01-01", "1990-01-02"])
def test_floating_times_keep_their_instants(units, later):
    """float32 becomes float64 where the epoch is another; with one epoch it stays."""
    step = {"days": 1 / 144, "hours": 1 / 6}[units]
    steps = np.arange(200)
    first, second = f"{units} since 1990-01-01", f"{units} since {later}"
    begin = 0 if later == "2020-01-01" else 200
    names = [
        write("a.h5", steps * step, units=first, dtype="f4"),
        write("b.h5", (begin + steps) * step, units=second, dtype="f4"),
    ]
    report = joined(names)
    got = opened("out.zarr").read("t")
    want = np.concatenate([instants(h5py.File(n)["t"][:], u) for n, u in zip(names, (first, second))])
    assert got.dtype == "f8" and (instants(got, first) == want).all(), np.abs(instants(got, first) - want).max()
    assert any("floats of 64 bits" in note and "epoch" in note for note in report["sources"][0]["notes"]), report["sources"]
    assert verify(*names, "out.zarr")["elements"]["unchecked"] == 0
    joined([names[0], write("c.h5", (500 + steps) * step, units=first, dtype="f4")])
    assert opened("out.zarr").read("t").dtype == "f4"


@pytest.mark.parametrize("way", ["out.zarr", "out.json"])
def test_whole_times_of_epochs_of_their_own(way):
    """One time step a file, as xarray writes it: an integer 0 since its own time. Whole numbers of the first file's units cannot
    tell the others."""
    names = [write(f"t{h}.h5", [0], units=f"days since 2000-01-01 {h:02}:00:00", dtype="i8") for h in (0, 6, 12, 18, 24 - 1)]
    plan = json.loads(run("plan", "--concat", "t", *names, "--json").stdout)
    report = joined(names) if way == "out.zarr" else None
    if way == "out.zarr":
        assert opened(way).read("t").dtype == "f8" and opened(way).read("t").tolist() == [0, 0.25, 0.5, 0.75, 23 / 24]
    else:
        convert("--virtual", "--concat", "t", *names, way)
    for sources in (plan["sources"], report["sources"] if report else plan["sources"]):
        assert any("floats of 64 bits" in note and "epoch" in note for note in sources[1]["notes"]), sources
    assert verify(*names, way)["elements"]["unchecked"] == 0
    # whole days stay integers
    names = [write(f"d{d}.h5", [0], units=f"days since 2000-01-{d:02}", dtype="i8") for d in (1, 2, 5)]
    joined(names)
    assert opened("out.zarr").read("t").dtype == "i8" and opened("out.zarr").read("t").tolist() == [0, 1, 4]
    # the type of a store's array is what it is
    part = write("p.h5", [0], units="days since 2000-01-06 06:00:00", dtype="i8")
    for verb in ("plan", "convert"):
        assert "make the store again from all files" in run(verb, "--append", "t", part, "out.zarr", status=1).stderr


def test_rounded_times_are_found():
    names = [
        write("a.h5", np.arange(6) / 144, units="days since 1990-01-01"),
        write("b.h5", np.arange(6) / 144, units="days since 2020-01-01"),
    ]
    joined(names)
    got = opened("out.zarr").read("t")
    rounded = got.astype("f4").astype("f8")
    assert (rounded != got).any()
    spoil("t", rounded)
    assert "/t" in {f["path"] for f in verify(*names, "out.zarr", status=1)["findings"]}


def test_times_that_no_float_holds_are_refused():
    names = [
        write("a.h5", [0, 1], units="days since 0001-01-01"),
        write("b.h5", [1e6 / 3, 1e6 / 3 + 1], units="days since 1990-01-01"),
    ]
    text = joined(names, status=1)
    assert (
        '"/t" of "b.h5" cannot be joined' in text
        and "64 bits cannot hold to the microsecond" in text
        and "cannot be read" not in text
    ), text
    whole = [
        write("a.h5", [0, 1], units="days since 1990-01-01", dtype="i4"),
        write("b.h5", [5, 6], units="hours since 1991-01-01", dtype="i4"),
    ]
    text = joined(whole, status=1)
    assert (
        '"/t" of "b.h5" cannot be joined: its value 5 is not a whole number of units' in text and "cannot be read" not in text
    ), text


def test_a_float32_store_grows_where_it_holds_the_times():
    names = [
        write("a.h5", [0, 1], units="days since 1990-01-01", dtype="f4"),
        write("b.h5", [0, 1.5], units="days since 2020-01-01", dtype="f4"),
        write("c.h5", [100 + 1 / 144], units="days since 2020-01-01", dtype="f4"),
    ]
    joined(names[:1])
    convert("--append", "t", names[1], "out.zarr")
    assert opened("out.zarr").read("t").tolist() == [0, 1, 10957, 10958.5] and opened("out.zarr").read("t").dtype == "f4"
    text = convert("--append", "t", names[2], "out.zarr", status=1).stderr
    assert "32 bits cannot hold to the microsecond in the encoding of the store" in text, text
    assert verify(*names[:2], "out.zarr")["elements"]["unchecked"] == 0


def packed(name, values, scale, offset=0, fill=None, dtype="i2", kind="f8", **attributes):
    stored = np.rint((np.asarray(values, "f8") - offset) / scale)
    with h5py.File(name, "w") as f:
        f["t"] = stored.astype(dtype)
        f["t"].attrs["scale_factor"] = np.dtype(kind).type(scale)
        f["t"].attrs["add_offset"] = np.dtype(kind).type(offset)
        if fill is not None:
            f["t"].attrs["_FillValue"] = np.dtype(dtype).type(fill)
        f["t"].attrs.update(attributes)
        f["t"].make_scale("t")
        f["x"] = np.arange(len(values), dtype="i4")
        f["x"].dims[0].attach_scale(f["t"])
    return name


def firsts(report):
    return [s["file"] for s in report["sources"]]


def test_files_are_ordered_by_values_of_any_filter():
    """Their order is computed by convert and by verify, and libhdf5 itself does not have LZF."""
    for n, name in enumerate(("b.h5", "c.h5", "a.h5")):
        with h5py.File(name, "w") as f:
            f.create_dataset("time", data=np.arange(50.0) + 50 * n, chunks=(50,), compression="lzf", shuffle=True)
            f["time"].make_scale("time")
            f["rows"] = np.arange(50) + 50 * n
            f["rows"].dims[0].attach_scale(f["time"])
    files = ["a.h5", "b.h5", "c.h5", "--order", "value"]
    convert("--concat", "time", *files[:3], "ordered.zarr", *files[3:])
    assert (opened("ordered.zarr").read("rows") == np.arange(150)).all()
    run("verify", "--concat", "time", *files[:3], "ordered.zarr", *files[3:], HDF5_PLUGIN_PATH="")


def test_order_and_direction_are_those_of_the_values():
    late, early = packed("late.h5", [100, 110], 10, 0), packed("early.h5", [10, 11], 0.1, 0)
    assert firsts(joined([late, early], "--order", "value")) == ["early.h5", "late.h5"]
    assert "change direction" in joined([late, early], status=1)
    # packed times, with a missing one in front
    units = dict(units="days since 2000-01-01")
    a = packed("a.h5", [30, 40], 10, fill=-9, **units)
    b = packed("b.h5", [5, 6], 0.5, fill=-9, **units)
    with h5py.File(b, "r+") as f:
        f["t"][0] = -9
    assert firsts(joined([a, b], "--order", "value")) == ["b.h5", "a.h5"]
    # negative numbers are the larger ones
    u, v = (
        packed("u.h5", [-56, -55], 1, _Unsigned="true", dtype="i1"),
        packed("v.h5", [100, 120], 1, _Unsigned="true", dtype="i1"),
    )
    assert firsts(joined([u, v], "--order", "value")) == ["v.h5", "u.h5"]
    assert verify(u, v, "out.zarr", "--order", "value")["elements"]["unchecked"] == 0


@pytest.mark.parametrize("kind", ["f2", "longdouble", ">f4", "u1", ">i8"])
def test_factors_of_any_type_of_number(kind):
    """A factor of another type of number is used as such."""
    a, b = packed("a.h5", [2, 4], 2, kind="f8"), packed("b.h5", [8, 16], 4, kind=kind)
    joined([a, b])
    made = opened("out.zarr")
    assert made.read("t").tolist() == [2, 4, 8, 16] and "scale_factor" not in made.attributes("t")
    assert verify(a, b, "out.zarr")["elements"]["unchecked"] == 0


def test_factors_that_cannot_be_read_are_refused_by_name():
    tenth = np.longdouble(1) / 10

    def factor(value):
        def change(f):
            del f["t"].attrs["scale_factor"]
            f["t"].attrs["scale_factor"] = value

        return change

    names = [packed("a.h5", [1, 2], 0.1), packed("b.h5", [3, 4], 0.1)]
    for value in (tenth, "0.1", [0.1, 0.2], np.array([("x", 1)], [("a", "S1"), ("b", "i4")])):
        names[1] = packed("b.h5", [3, 4], 0.1)
        with h5py.File("b.h5", "r+") as f:
            factor(value)(f)
        text = joined(names, "--allow-overlap", status=1)
        assert "b.h5" in text and "scale_factor" in text and "not a single number" in text, (value, text)
        assert "scale_factor" in joined(names, status=1)
        assert "scale_factor" in joined(names, "--order", "value", status=1)
    # the same in both files is not a difference
    for name in names:
        with h5py.File(name, "r+") as f:
            factor([0.1, 0.2])(f)
    joined(names, "--allow-overlap")
    # the largest integers are not those of an int64
    for name, fill in zip(names, (2**64 - 1, 2**64 - 2)):
        with h5py.File(name, "w") as f:
            f["t"] = np.arange(2, dtype="u8")
            f["t"].attrs["_FillValue"] = np.uint64(fill)
            f["t"].make_scale("t")
    assert "_FillValue" in joined(names, "--allow-overlap", status=1)


def test_one_file_is_named_once():
    for name in ("a.h5", "b.h5"):
        with h5py.File(name, "w") as f:
            f.create_dataset("v", (2,), h5py.vlen_dtype("i4"))
    text = convert("--concat", "/v:0", "a.h5", "b.h5", "out.zarr", status=1).stderr
    assert text.count("a.h5") == 1 and "sequences" in text and "--exclude" in text, text


@pytest.mark.parametrize("how", ["fill in the second", "factor that is NaN"])
def test_no_false_alarm(how):
    for i, name in enumerate(["a.h5", "b.h5"]):
        with h5py.File(name, "w") as f:
            f["t"] = np.arange(3, dtype="i8") + 3 * i
            f["t"].make_scale("t")
            v = f.create_dataset("v", data=np.arange(3, dtype="f8") + i, fillvalue=-9.0 if i and how[0] == "f" else None)
            if how == "factor that is NaN":
                v.attrs["scale_factor"] = np.nan
            elif i:
                v.attrs["_FillValue"] = -9.0
                v[1] = -9
            v.dims[0].attach_scale(f["t"])
    joined(["a.h5", "b.h5"])
    result = verify("a.h5", "b.h5", "out.zarr")
    assert result["elements"]["unchecked"] == 0 and not result["findings"], result
    with h5py.File("b.h5", "r+") as f:
        f["v"][2] += 1
    if how != "factor that is NaN":  # all of its values are missing
        assert verify("a.h5", "b.h5", "out.zarr", status=1)["findings"]


def test_summaries_begin_with_what_changes_values_or_sizes(folder):
    names = [os.path.join(folder, f"{i}.nc") for i in range(3)]
    for i, name in enumerate(names):
        with h5py.File(name, "w") as f:
            f.attrs["Conventions"], f.attrs["history"] = "CF-1.8", f"made {i}"
            f["time"] = np.array([i], "f8")
            f["time"].make_scale("time")
            f["t2m"] = np.array([i], "i2")
            f["t2m"].attrs["scale_factor"] = 0.1 * (i + 1)
            if i != 1:
                f["flag"] = np.array([i], "i1")
            for variable in {"t2m", "flag"} & set(f):
                f[variable].dims[0].attach_scale(f["time"])
    changes = [
        f'"{names[0]}" and 2 files more: "/t2m": stored unpacked, as floats of 64 bits',
        f'"{names[1]}": it has no "/flag": its part reads as the fill value',
    ]
    lines = convert("--concat", "time", *names, os.path.join(folder, "all.zarr")).stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("3 files joined, with "))
    assert all(line.startswith(wanted) for line, wanted in zip(lines[at + 1 :], changes)) and "history" not in "".join(lines)
    lines = run("plan", "--concat", "time", *names).stdout.splitlines()
    notes = [line for line in lines if line.startswith('"')]
    assert len(notes) == 3 and all(line.startswith(wanted) for line, wanted in zip(notes, changes)) and "history" in notes[2]


@pytest.mark.parametrize(
    "first, second",
    [
        (("days since 2000-01-01", [0, 1], "i4"), ("hours since 2000-01-01", [48, 49], "i4")),
        (("seconds since 2000-01-01", [0, 1], "i2"), ("days since 2000-01-01", [1, 2], "i2")),
    ],
)
def test_a_plan_fails_where_the_run_would(folder, first, second):
    """Times that do not fit into the first file's units end both, with the same sentence; and so does an append."""
    names = []
    for i, (units, values, dtype) in enumerate((first, second)):
        names.append(os.path.join(folder, f"t{i}.h5"))
        with h5py.File(names[-1], "w") as f:
            f.create_dataset("time", data=np.array(values, dtype), maxshape=(None,), chunks=(2,))
            f["time"].attrs["units"] = units
            f["time"].make_scale("time")
    store = os.path.join(folder, "out.zarr")
    said = refused("convert", "--concat", "time", *names, store)
    assert "cannot be joined: its value" in said
    assert refused("plan", "--concat", "time", *names) == said
    convert("--concat", "time", names[0], store, "-q")
    assert refused("plan", "--append", "time", names[1], store) == refused("convert", "--append", "time", names[1], store)
