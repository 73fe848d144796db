# SPDX-License-Identifier: BSL-1.0
"""Files with aggregation variables of CF-1.13 (--cf-aggregation): section 2.8 of the conventions, followed here by hand with
h5py, leads to every value of the parts. What cannot be an aggregation variable keeps its values, with a note, or is refused; and
nothing takes such a variable for the scalar that it is in the file. tests/interop/test_cf_aggregation.py asks cfdm."""

import itertools
import json
import os
import pathlib
import urllib.parse

import h5py
import numpy as np
import pytest

from harness import convert, execute, refused, run, verify
from store import Store


def write(path, coordinates, variables, *, attributes=None, root=(), group="/"):
    """`variables`: name -> (names of dimensions, values)."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with h5py.File(path, "w", track_order=True) as f:
        f.attrs.update(root)
        for name, values in coordinates.items():
            f[name] = values
            f[name].make_scale(name)
            f[name].attrs["axis"] = name.upper()
        g = f.require_group(group)
        for name, (dims, values) in variables.items():
            d = g.create_dataset(name, data=values)
            d.attrs["long_name"] = f"the {name}"
            d.attrs.update((attributes or {}).get(name, {}))
            for i, dim in enumerate(dims):
                d.dims[i].attach_scale(f[dim])
    return str(path)


def tiles(folder, cuts, variables, *, missing=(), **how):
    """A file for each combination of parts. `cuts`: {"x": [3, 2]}; `variables`: name -> (names of dimensions, all values)."""
    paths = []
    edges = {name: np.concatenate([[0], np.cumsum(lengths)]) for name, lengths in cuts.items()}
    for place in itertools.product(*(range(len(c)) for c in cuts.values())):
        if place in missing:
            continue
        box = {n: slice(edges[n][i], edges[n][i + 1]) for n, i in zip(cuts, place)}
        coordinates = {n: np.arange(edges[n][-1])[box[n]] * 10.0 for n in cuts}
        part = {n: (dims, values[tuple(box[d] for d in dims)]) for n, (dims, values) in variables.items()}
        paths.append(write(folder / ("p" + "_".join(map(str, place)) + ".nc"), coordinates, part, **how))
    return paths


def number(lengths, seed=1):
    return np.random.default_rng(seed).random(lengths)


def in_scope(file, path, name):
    """The object that a name in an attribute of the variable at `path` means (section 2.7.1)."""
    if name.startswith("/"):
        return file[name]
    group = os.path.dirname(path)
    while name not in file[group] and group != "/":
        group = os.path.dirname(group)
    return file[group][name]


def attribute(d, name):
    value = d.attrs[name]
    return value.decode() if isinstance(value, bytes) else value


def canonical(d, shape):
    """A fragment, unpacked and with its missing values masked (section 2.8.2)."""
    values = np.ma.masked_array(d[...])
    for name in "_FillValue", "missing_value":
        if name in d.attrs:
            values = np.ma.masked_equal(values, np.ravel(d.attrs[name])[0])
    values = values * d.attrs.get("scale_factor", 1) if "scale_factor" in d.attrs else values
    values = values + d.attrs.get("add_offset", 0) if "add_offset" in d.attrs else values
    assert [n for n in values.shape if n != 1] == [n for n in shape if n != 1]
    return values.reshape(shape)


def aggregated(path, name):
    """The data of an aggregation variable (section 2.8.1)."""
    with h5py.File(path) as f:
        v = f[name]
        assert v.shape == () and "DIMENSION_LIST" not in v.attrs and "scale_factor" not in v.attrs
        dims = [in_scope(f, v.name, n) for n in attribute(v, "aggregated_dimensions").split()]
        assert all(d.attrs["CLASS"] == b"DIMENSION_SCALE" for d in dims)
        words = attribute(v, "aggregated_data").split()
        features = {k.rstrip(":"): in_scope(f, v.name, n) for k, n in zip(words[::2], words[1::2])}
        assert set(features) == {"map", "uris", "identifiers"}
        sizes = features["map"]
        missing = sizes.attrs["_FillValue"][0]
        lengths = [[int(n) for n in row if n != missing] for row in sizes[...]]
        assert sizes.shape == (len(dims), max(map(len, lengths)))
        assert [sum(row) for row in lengths] == [d.shape[0] for d in dims]
        uris = features["uris"]
        assert uris.shape == tuple(map(len, lengths))
        data = np.ma.masked_all([d.shape[0] for d in dims], v.dtype)
        for place in np.ndindex(*uris.shape):
            uri = uris[place].decode()
            target = urllib.parse.urljoin("file://" + urllib.parse.quote(str(pathlib.Path(path).resolve())), uri)
            shape = [row[i] for row, i in zip(lengths, place)]
            corner = [sum(row[:i]) for row, i in zip(lengths, place)]
            with h5py.File(urllib.parse.unquote(urllib.parse.urlsplit(target).path)) as fragment:
                part = canonical(fragment[features["identifiers"][()].decode()], shape)
            data[tuple(slice(a, a + n) for a, n in zip(corner, shape))] = part
        return data


def aggregate(target, *arguments, is_netcdf=True):
    """Returns the notes."""
    options = [] if "--concat-new" in arguments or "--concat" in arguments else ["--concat", "time,y,x"]
    done = run("convert", "-q", "--json", "--virtual", "--cf-aggregation", *options, *arguments, target)
    if is_netcdf:
        execute("ncdump", "-h", target)
    return json.loads(done.stdout)["notes"]


CUTS = {"time": [2, 3], "y": [4], "x": [1, 5, 2]}
LENGTHS = {n: sum(c) for n, c in CUTS.items()}
VARIABLES = {"tas": ("time", "y", "x"), "area": ("y", "x"), "mean": ("time",)}
VALUES = {n: (dims, number([LENGTHS[d] for d in dims])) for n, dims in VARIABLES.items()}


def test_tiles_of_uneven_lengths(tmp_path):
    paths = tiles(tmp_path / "a/in", CUTS, VALUES, root={"Conventions": "CF-1.8", "title": "tiles"})
    np.random.default_rng(1).shuffle(paths)
    assert aggregate(tmp_path / "a/all.nc", *paths) == []
    os.rename(tmp_path / "a", tmp_path / "b")  # names are relative
    out = tmp_path / "b/all.nc"
    for name, (_, values) in VALUES.items():
        np.testing.assert_array_equal(aggregated(out, name), values)
    with h5py.File(out) as f:
        for name, n in LENGTHS.items():
            np.testing.assert_array_equal(f[name], np.arange(n) * 10.0)
            assert f[name].attrs["axis"] == name.upper() and f[name].chunks is None
        assert f["tas"].attrs["long_name"] == "the tas" and f["tas"].dtype == "f8"
        assert attribute(f, "Conventions") == "CF-1.13" and f.attrs["title"] == "tiles"
        assert attribute(f["tas"], "aggregated_dimensions") == "time y x"
    # as netCDF sees it, the arrays of fragments have dimensions of their own
    header = execute("ncdump", "-h", out).stdout
    assert "double tas ;" in header and "double time(time) ;" in header and "phony" not in header
    assert "(f_time, f_y, f_x) ;" in header and "f_x = 3 ;" in header


def test_one_dimension(tmp_path):
    values = {"v": (("time", "x"), number((5, 3)).astype("f4")), "mask": (("x",), np.arange(3, dtype="i2"))}
    paths = tiles(tmp_path / "in", {"time": [1, 4], "x": [3]}, values)
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    for name, (_, whole) in values.items():
        np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", name), whole)
        assert aggregated(tmp_path / "all.nc", name).dtype == whole.dtype
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["x"], [0, 10, 20])


def test_variables_of_one_grid_share_their_fragments(tmp_path):
    values = {n: (("time", "x"), number((4, 3), i)) for i, n in enumerate("uvw")}
    paths = tiles(tmp_path / "in", {"time": [2, 2], "x": [3]}, values)
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    with h5py.File(tmp_path / "all.nc") as f:
        assert [n for n in f if n.startswith(("fragment_map", "fragment_uris"))] == ["fragment_map", "fragment_uris"]
    for name, (_, whole) in values.items():
        np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", name), whole)


def test_packed_values_are_unpacked_in_the_parts(tmp_path):
    """As the conventions say, so that the aggregation variable has the type and the missing values of unpacked ones."""
    stored = np.arange(12, dtype="i2").reshape(4, 3)
    packing = {
        "short": {"scale_factor": np.float32(0.5), "add_offset": np.float32(7), "_FillValue": np.array([5], "i2")},
        "double": {"scale_factor": 0.25, "missing_value": np.int16(3), "valid_range": np.array([0, 9], "i2")},
        "offset": {"add_offset": np.float32(1)},
    }
    values = {n: (("time", "x"), stored) for n in packing}
    paths = tiles(tmp_path / "in", {"time": [2, 2], "x": [3]}, values, attributes=packing)
    assert aggregate(tmp_path / "all.nc", "--concat", "time", *paths) == []
    whole = {
        "short": np.ma.masked_equal(stored, 5) * np.float32(0.5) + np.float32(7),
        "double": np.ma.masked_equal(stored, 3) * 0.25,
        "offset": np.ma.masked_array(stored + np.float32(1)),
    }
    for name, expected in whole.items():
        found = aggregated(tmp_path / "all.nc", name)
        np.testing.assert_array_equal(found.filled(-1), expected.filled(-1))
        assert found.dtype == ("f8" if name == "double" else "f4")
        with h5py.File(tmp_path / "all.nc") as f:
            assert set(f[name].attrs) == {"long_name", "_FillValue", "aggregated_dimensions", "aggregated_data"}
            assert np.isnan(f[name].attrs["_FillValue"][0]) and np.isnan(f[name][()])
            assert f[name].attrs["_FillValue"].dtype == f[name].dtype


def test_other_packing_is_refused(tmp_path):
    values = {"v": (("time", "x"), np.arange(6, dtype="i2").reshape(2, 3))}
    paths = [
        write(
            tmp_path / f"{k}.nc",
            {"time": [k * 2.0, k * 2.0 + 1], "x": [0.0, 1, 2]},
            values,
            attributes={"v": {"scale_factor": s}},
        )
        for k, s in enumerate([0.5, 0.25])
    ]
    said = refused("convert", "--virtual", "--cf-aggregation", "--concat", "time", *paths, tmp_path / "all.nc")
    assert "another scale_factor" in said and not (tmp_path / "all.nc").exists()


def test_gaps_keep_the_values(tmp_path):
    """An array of fragments has one for each place."""
    paths = tiles(tmp_path / "in", CUTS, VALUES, missing=[(1, 0, 1)])
    notes = aggregate(tmp_path / "all.nc", *paths)
    assert any('"/tas" is stored with its values' in n and "no file" in n for n in notes), notes
    with h5py.File(tmp_path / "all.nc") as f:
        expected = VALUES["tas"][1].copy()
        expected[2:, :, 1:6] = 0  # the fill value
        np.testing.assert_array_equal(f["tas"], expected)
        assert not f["tas"].is_virtual and [d.keys() for d in f["tas"].dims] == [["time"], ["y"], ["x"]]
    for name in "area", "mean":  # which other files have
        np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", name), VALUES[name][1])


def test_gaps_in_what_is_too_large_to_be_stored(tmp_path):
    paths = []
    for y, x in (0, 0), (0, 1), (1, 0):
        paths.append(write(tmp_path / f"{y}{x}.nc", {"y": np.arange(4000.0) + 4000 * y, "x": np.arange(9000.0) + 9000 * x}, {}))
        with h5py.File(paths[-1], "r+") as f:
            d = f.create_dataset("v", (4000, 9000), "f8", chunks=(100, 100))
            for i, name in enumerate("yx"):
                d.dims[i].attach_scale(f[name])
    said = refused("convert", "--virtual", "--cf-aggregation", "--concat", "y,x", *paths, tmp_path / "all.nc")
    assert '"/v" cannot be an aggregation variable: some of its parts are in no file' in said and "--cf-aggregation" in said
    assert not (tmp_path / "all.nc").exists()


def test_what_cannot_be_an_aggregation_variable_keeps_its_values(tmp_path):
    text = np.array([f"n{i}" for i in range(4)], object)
    values = {
        "text": (("time",), text),
        "short_text": (("time",), np.array([b"ab", b"cd", b"ef", b"gh"])),
        "flag": (("time",), np.array([True, False, True, True])),
        "half": (("time",), np.arange(4, dtype="f2")),
        "unsigned": (("time",), np.arange(4, dtype="i1")),
        "by_integer": (("time",), np.arange(4, dtype="i2")),
        "plain": (("time",), np.arange(4.0)),
    }
    attributes = {"unsigned": {"_Unsigned": "true"}, "by_integer": {"scale_factor": np.int16(2)}}
    paths = tiles(tmp_path / "in", {"time": [2, 2]}, values, attributes=attributes)
    for k, path in enumerate(paths):
        with h5py.File(path, "r+") as f:
            f["unnamed"] = np.arange(6.0).reshape(2, 3) + 6 * k
            f["unnamed"].dims[0].attach_scale(f["time"])
            f["a b"] = [0.0, 1]
            f["a b"].make_scale("a b")
            f["blank"] = np.ones((2, 2)) * k
            f["blank"].dims[0].attach_scale(f["time"])
            f["blank"].dims[1].attach_scale(f["a b"])
    notes = aggregate(tmp_path / "all.nc", "--concat", "time", *paths, is_netcdf=False)  # nor are the parts
    stored = [*set(values) - {"plain"}, "unnamed", "blank"]
    assert sorted(n.split('"')[1] for n in notes) == sorted("/" + n for n in stored), notes
    with h5py.File(tmp_path / "all.nc") as f:
        for name in stored:
            assert "aggregated_data" not in f[name].attrs and not f[name].is_virtual
        for name in set(values) - {"plain", "text"}:
            np.testing.assert_array_equal(f[name], values[name][1])
            assert f[name].dims[0].keys() == ["time"]
        assert [t.decode() for t in f["text"]] == list(text)
        np.testing.assert_array_equal(f["unnamed"], np.arange(12.0).reshape(4, 3))
        assert f["by_integer"].attrs["scale_factor"] == 2
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "plain"), np.arange(4.0))


def test_scalars_bounds_and_times_of_other_epochs(tmp_path):
    paths = []
    for k in range(3):
        time = np.arange(2.0)
        attributes = {n: {"units": f"days since 2000-01-0{1 + 2 * k}"} for n in ("forecast",)}
        path = write(
            tmp_path / f"{k}.nc",
            {"time": time, "x": [0.0, 1], "nv": [0.0, 1]},
            {
                "v": (("time", "x"), number((2, 2), k)),
                "forecast": (("time", "x"), np.arange(4.0).reshape(2, 2)),
                "bnds": (("time", "nv"), np.stack([time, time + 1], 1)),
                "x_bnds": (("x", "nv"), np.zeros((2, 2))),
            },
            attributes=attributes,
        )
        with h5py.File(path, "r+") as f:
            f["crs"] = np.int32(7)
            f["time"].attrs.update({"units": f"days since 2000-01-0{1 + 2 * k}", "bounds": "bnds"})
            f["x"].attrs["bounds"] = "x_bnds"
        paths.append(path)
    assert aggregate(tmp_path / "all.nc", "--concat", "time", *paths) == []
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "v"), np.concatenate([number((2, 2), k) for k in range(3)]))
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["time"], np.arange(6.0))
        np.testing.assert_array_equal(f["bnds"], np.stack([np.arange(6.0), np.arange(6.0) + 1], 1))
        np.testing.assert_array_equal(f["forecast"][:, 0], [0, 2, 2, 4, 4, 6])
        assert f["x_bnds"].shape == (2, 2) and f["crs"][()] == 7
        assert set(f["crs"].attrs) == set()


def test_groups(tmp_path):
    """Dimensions in the root group, and one that a name in the group hides."""
    values = {"v": (("time", "x"), number((4, 3)))}
    paths = tiles(tmp_path / "in", {"time": [2, 2], "x": [3]}, values, group="/model/run")
    for path in paths:
        with h5py.File(path, "r+") as f:
            f["model/x"] = np.int32(5)
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "/model/run/v"), values["v"][1])
    with h5py.File(tmp_path / "all.nc") as f:
        assert attribute(f["model/run/v"], "aggregated_dimensions") == "time /x"
        assert f["fragment_identifiers_v"][()] == b"/model/run/v"


def test_a_new_dimension(tmp_path):
    members = [number((2, 3), k) for k in range(3)]
    for k, values in enumerate(members):
        write(tmp_path / f"in/{k}.nc", {"y": [0.0, 1], "x": [0.0, 1, 2]}, {"v": (("y", "x"), values), "s": (("x",), values[0])})
    paths = sorted((tmp_path / "in").iterdir())
    aggregate(tmp_path / "all.nc", "--concat-new", "member", *paths)
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "v"), np.stack(members))
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "s"), np.stack([m[0] for m in members]))
    with h5py.File(tmp_path / "all.nc") as f:
        assert attribute(f["v"], "aggregated_dimensions") == "member y x" and f["x"].shape == (3,)


def test_names_that_are_taken(tmp_path):
    names = ["fragment_map", "fragment_uris", "f_time", "f_x", "i", "j", "fragment_identifiers_v"]
    values = {n: (("time", "x"), number((4, 3), i)) for i, n in enumerate(["v", *names])}
    paths = tiles(tmp_path / "in", {"time": [2, 2], "x": [3]}, values)
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    for name, (_, whole) in values.items():
        np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", name), whole)


def test_a_variable_with_the_name_of_a_dimension_that_is_not_its_coordinate(tmp_path):
    paths = tiles(tmp_path / "in", {"time": [2, 2], "x": [3]}, {"_nc4_non_coord_x": (("time", "x"), number((4, 3)))})
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    with h5py.File(tmp_path / "all.nc") as f:
        assert f["fragment_identifiers__nc4_non_coord_x"][()] == b"x"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "CF-1.13"),
        ("CF-1.7", "CF-1.13"),
        ("CF-1.13", "CF-1.13"),
        ("CF-1.20", "CF-1.20"),
        ("CF-2.0", "CF-2.0"),
        ("ACDD-1.3 CF-1.6", "ACDD-1.3 CF-1.13"),
        ("CF-1.6, ACDD-1.3", "CF-1.13, ACDD-1.3"),
        ("UGRID-1.0", "UGRID-1.0 CF-1.13"),
        ("UGRID-1.0, ACDD-1.3", "UGRID-1.0, ACDD-1.3, CF-1.13"),
        ("UGRID-CF-1.0", "UGRID-CF-1.0 CF-1.13"),
        ("CF-1.x", "CF-1.x"),
        (["CF-1.6", "ACDD-1.3"], "CF-1.13 ACDD-1.3"),
    ],
)
def test_the_conventions(tmp_path, before, after):
    root = {} if before is None else {"Conventions": before}
    paths = tiles(tmp_path / "in", {"time": [2, 2]}, {"v": (("time",), np.arange(4.0))}, root=root)
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    with h5py.File(tmp_path / "all.nc") as f:
        assert attribute(f, "Conventions") == after


def test_a_file_without_values_along_the_dimension(tmp_path):
    paths = tiles(tmp_path / "in", {"time": [2, 0, 2], "x": [3]}, {"v": (("time", "x"), number((4, 3)))})
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "v"), number((4, 3)))
    aggregate(tmp_path / "empty.nc", "--concat", "time", paths[1])
    with h5py.File(tmp_path / "empty.nc") as f:
        assert f["v"].shape == (0, 3) and "aggregated_data" not in f["v"].attrs


def test_netcdf3_sources(tmp_path):
    paths = []
    for k in range(2):
        text = f"""netcdf a {{ dimensions: time = UNLIMITED ; x = 3 ;
            variables: double time(time) ; short v(time, x) ; v:scale_factor = .5 ; float fixed(x) ;
            data: time = {2 * k}, {2 * k + 1} ; v = {", ".join(str(6 * k + i) for i in range(6))} ; fixed = 7, 8, 9 ; }}"""
        (tmp_path / "a.cdl").write_text(text, encoding="ascii")
        paths.append(str(tmp_path / f"{k}.nc"))
        execute("ncgen", "-k", "classic", "-o", paths[-1], tmp_path / "a.cdl")
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    with h5py.File(tmp_path / "all.nc") as f:
        np.testing.assert_array_equal(f["time"], np.arange(4.0))
        assert f["v"].dtype == "f8" and f["v"].shape == () and f["fixed"].dtype == ">f4"
        np.testing.assert_array_equal(f[attribute(f["v"], "aggregated_data").split()[1]], [[2, 2], [3, -1]])


def uris_of(path):
    with h5py.File(path) as f:
        words = attribute(f["v"], "aggregated_data").split()
        return [u.decode() for u in f[words[words.index("uris:") + 1]][...].ravel()]


def test_names_are_uris(tmp_path):
    values = {"v": (("time",), np.arange(2.0))}
    names = ["in/a b%20?#.nc", "in/c:d.nc"]
    for k, name in enumerate(names):
        write(tmp_path / name, {"time": [2.0 * k, 2.0 * k + 1]}, values)
    paths = [tmp_path / name for name in names]
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    assert uris_of(tmp_path / "all.nc") == ["in/a%20b%2520%3F%23.nc", "in/c:d.nc"]
    np.testing.assert_array_equal(aggregated(tmp_path / "all.nc", "v"), [0, 1, 0, 1])
    aggregate(tmp_path / "in/all.nc", "--concat", "time", *paths)
    assert uris_of(tmp_path / "in/all.nc")[1] == "./c:d.nc"  # not a scheme
    np.testing.assert_array_equal(aggregated(tmp_path / "in/all.nc", "v"), [0, 1, 0, 1])
    aggregate(tmp_path / "base.nc", "--concat", "time", *paths, "--base", "https://host/archive")
    assert uris_of(tmp_path / "base.nc") == ["https://host/archive/a%20b%2520%3F%23.nc", "https://host/archive/c:d.nc"]
    aggregate(tmp_path / "s3.nc", "--concat", "time", *paths, "--base", f"{tmp_path}=s3://bucket")
    assert uris_of(tmp_path / "s3.nc") == ["s3://bucket/in/a%20b%2520%3F%23.nc", "s3://bucket/in/c:d.nc"]
    aggregate(tmp_path / "again.nc", "--concat", "time", *paths, "--base", ".")
    assert uris_of(tmp_path / "again.nc") == uris_of(tmp_path / "all.nc")


@pytest.fixture(name="example")
def example_of(tmp_path):
    paths = tiles(tmp_path / "in", {"time": [2, 2], "x": [3]}, {"v": (("time", "x"), number((4, 3)))})
    aggregate(tmp_path / "all.nc", "--concat", "time", *paths)
    return tmp_path / "all.nc", paths


def test_the_scalar_is_never_taken_for_the_values(tmp_path, example):
    path, paths = example
    done = convert("-q", path, tmp_path / "out.zarr", "--report", tmp_path / "r.json", status=3)
    assert "CF aggregation variable" in done.stderr and "--concat" in done.stderr, done.stderr
    objects = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["objects"]
    assert [o["path"] for o in objects if o["outcome"] == "skipped" and o["kind"] == "dataset"] == ["/v"]
    assert not (tmp_path / "out.zarr/v").exists()
    np.testing.assert_array_equal(Store(str(tmp_path / "out.zarr")).read("time"), np.arange(4) * 10.0)
    found = verify(path, tmp_path / "out.zarr", status=1)["findings"]
    assert [(f["path"], f["outcome"]) for f in found] == [("/v", "missing")]
    convert("-q", "--concat", "time", *paths, tmp_path / "whole.zarr")
    found = verify(path, tmp_path / "whole.zarr", status=(1, 3))["findings"]
    assert ("/v", "unreadable") in [(f["path"], f["outcome"]) for f in found] and "aggregation variable" in str(found)
    assert "aggregation variable" in run("digest", path, status=(1, 3)).stderr
    assert "v" in run("plan", path, status=3).stdout


@pytest.mark.parametrize("how", [["--concat", "time"], ["--concat", "time,x"], ["--virtual", "--concat", "time"]])
def test_files_of_aggregation_variables_are_not_combined(tmp_path, example, how):
    path, _ = example
    with h5py.File(path, "r") as f, h5py.File(tmp_path / "later.nc", "w") as g:
        for name in f:
            f.copy(name, g)
        g["time"][...] += 100
    done = convert(
        "-q", *how, path, tmp_path / "later.nc", tmp_path / ("o.nc" if "--virtual" in how else "o.zarr"), status=(1, 3)
    )
    assert "CF aggregation variable" in done.stderr, done.stderr
    assert not (tmp_path / "o.zarr/v").exists() and not (tmp_path / "o.nc").exists()


def test_usage(tmp_path):
    paths = tiles(tmp_path / "in", {"time": [2, 2]}, {"v": (("time",), np.arange(4.0))})
    how = ["convert", "--concat", "time", *paths]
    for options in (
        ["--cf-aggregation", tmp_path / "all.nc"],
        ["--cf-aggregation", tmp_path / "all.zarr"],
        ["--cf-aggregation", "--virtual", tmp_path / "all.json"],
    ):
        assert "--cf-aggregation" in refused(*how, *options, status=2)
    assert "--cf-aggregation" in refused("convert", paths[0], "--virtual", "--cf-aggregation", tmp_path / "all.nc", status=2)
    said = refused(*how, "--virtual", "--base", "https://host", tmp_path / "all.nc", status=2)
    assert "--base" in said and "--cf-aggregation" in said
    said = refused(*how, "--virtual", "--cf-aggregation", "--base", "ftp://host", tmp_path / "all.nc", status=2)
    assert "--base" in said
    said = refused(
        *how, "--virtual", "--cf-aggregation", "--base", f"{tmp_path}/other=https://host", tmp_path / "all.nc", status=2
    )
    assert "--base" in said and not (tmp_path / "all.nc").exists()


# verify follows the aggregation variables


@pytest.mark.parametrize("kind", ["tiles", "packed", "members", "groups"])
def test_verify_compares_the_values_of_fragments(tmp_path, kind):
    how = ["--concat", "time,y,x"]
    if kind == "members":
        how = ["--concat-new", "member", "--concat", "x"]
        paths = [
            p for i in range(3) for p in tiles(tmp_path / f"r{i}", {"x": [2, 1]}, {"v": (("x",), number((3,), i).astype("f4"))})
        ]
    elif kind == "packed":
        raw = (number(list(LENGTHS.values())) * 1000).astype("i2")
        pack = {"scale_factor": 0.5, "add_offset": np.float32(3), "_FillValue": np.int16(-1)}
        paths = tiles(tmp_path / "in", CUTS, {"v": (tuple(LENGTHS), raw)}, attributes={"v": pack})
    else:
        group = {"group": "/model/run"} if kind == "groups" else {}
        paths = tiles(tmp_path / "in", CUTS, VALUES, **group)
    aggregate(tmp_path / "all.nc", *how, *paths)
    result = verify(*how, *paths, tmp_path / "all.nc", status=0)
    with h5py.File(paths[0]) as f:
        name = ("model/run/tas" if kind == "groups" else "tas") if "v" not in f else "v"
        rank = f[name].ndim
    assert result["findings"] == [] and result["only_in_store"] == [] and result["datasets"]["equal"] > rank
    # one value of one fragment, in a copy of the files that the aggregation does not name
    os.makedirs(tmp_path / "copy")
    changed = [str(tmp_path / "copy" / pathlib.Path(p).relative_to(tmp_path)) for p in paths]
    for a, b in zip(paths, changed):
        os.makedirs(os.path.dirname(b), exist_ok=True)
        pathlib.Path(b).write_bytes(pathlib.Path(a).read_bytes())
    with h5py.File(changed[-1], "r+") as f:
        place = tuple(n - 1 for n in f[name].shape)
        f[name][place] += 1
        end = f[name].shape
    found = [f for f in verify(*how, *changed, tmp_path / "all.nc", status=1)["findings"] if f["path"] == "/" + name]
    assert [f["outcome"] for f in found] == ["differs"], found
    last = [4, 3, 7] if kind in ("tiles", "packed", "groups") else [2, 2]
    assert found[0]["index"] == last and len(end) == len(place)


def rewrite(path, name, value):
    """An attribute of v, or the values of one of its features."""
    with h5py.File(path, "r+") as f:
        if name in f:
            attributes = dict(f[name].attrs) if name == "fragment_map" else {}
            del f[name]
            f[name] = value
            f[name].attrs.update({k: v for k, v in attributes.items() if k == "_FillValue"})
        else:
            f["v"].attrs[name] = value


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("aggregated_dimensions", "time", 'has 1 "aggregated_dimensions" in place of 2'),
        ("aggregated_dimensions", "time y", 'names the variable "y", which does not exist'),
        ("aggregated_dimensions", "x x", 'dimension "x" of another length than 4'),
        ("aggregated_dimensions", 5, "that is not a text"),
        ("aggregated_data", "map: fragment_map", "not one map, uris and identifiers each"),
        ("aggregated_data", "map: fragment_map uris: fragment_uris unique_values: time", "does not support"),
        ("aggregated_data", "map: no uris: fragment_uris identifiers: fragment_identifiers_v", 'variable "no"'),
        ("aggregated_data", "map: time uris: fragment_uris identifiers: fragment_identifiers_v", "not a table"),
        ("aggregated_data", "map: fragment_map uris: fragment_map identifiers: fragment_identifiers_v", "not a list of texts"),
        ("fragment_map", np.array([[2, 1], [3, -1]], "i4"), "fragments of 3"),
        ("fragment_map", np.array([[2, 2], [-3, 6]], "i4"), "-3 in place of a length"),
        ("fragment_map", np.array([[2**62, 2**62, 2**62, 2**62, 4], [3, -1, -1, -1, -1]], "i8"), "other numbers of uris"),
        ("fragment_map", np.array([[-1, 4], [3, -1]], "i4"), "4 in place of a length"),
        ("fragment_map", np.array([[1, 3], [3, -1]], "i4"), "has a part of the shape [1, 3]"),
        ("fragment_map", np.array([[4, -1], [3, -1]], "i4"), "other numbers of uris"),
        ("fragment_uris", [["in/p0_0.nc"], ["in/none.nc"]], "which does not exist"),
        ("fragment_uris", [["in/p0_0.nc"], ["ftp://host/p1_0.nc"]], "does not support"),
        ("fragment_uris", [["in/p0_0.nc"], ["in/%"]], "which is not a URI"),
        ("fragment_uris", [["in/p0_0.nc"], ["../outside.nc"]], "must not be read"),
        ("fragment_uris", [["in/p0_0.nc"], ["file:///etc/passwd"]], "must not be read"),
        ("fragment_uris", [["in/p0_0.nc"], ["https://127.0.0.1:9/p1_0.nc"]], "which does not exist"),
        ("fragment_uris", [["in/p1_0.nc"], ["in/p0_0.nc"]], "has another value at [0, 0]"),
        ("fragment_identifiers_v", "w", 'the variable "w"'),
        ("fragment_identifiers_v", "time", "a fragment of [2]"),
        ("fragment_identifiers_v", "", "which does not exist"),
    ],
)
def test_verify_has_a_sentence_for_what_leads_nowhere(tmp_path, example, name, value, reason):
    path, paths = example
    pathlib.Path(tmp_path.parent / "outside.nc").write_bytes(pathlib.Path(paths[0]).read_bytes())
    rewrite(path, name, value)
    found = verify("--concat", "time,x", *paths, path, status=1)["findings"]
    told = [f for f in found if f["path"] == "/v" and "attribute" not in f.get("kind", "")]
    assert len(told) == 1 and told[0]["outcome"] in ("differs", "unreadable"), found
    assert reason in told[0]["reason"]
