# SPDX-License-Identifier: BSL-1.0
"""Chunks by the names of dimensions: `--chunk time:768`, `--chunk 't2m=time:768,lat:-1'`."""

import json
import pathlib

import h5py
import numpy as np
import pytest

from harness import convert, refused, run, same, verify

T, Y, X = 48, 6, 8


def make(path, first=0):
    with h5py.File(path, "w") as f:
        for name, n in (("time", T), ("lat", Y), ("lon", X)):
            start = first if name == "time" else 0
            f.create_dataset(
                name,
                data=np.arange(start, start + n, dtype="f8"),
                **({"chunks": (1,), "maxshape": (None,)} if name == "time" else {}),
            )
            f[name].make_scale(name)
        bounds = f.create_dataset("time_bnds", data=np.arange(2 * T, dtype="f8").reshape(T, 2) + first, chunks=(1, 2))
        bounds.dims[0].attach_scale(f["time"])
        for name in ("t2m", "deep/wind"):
            data = (np.arange(T * Y * X) + first).astype("f4").reshape(T, Y, X)
            d = f.create_dataset(name, data=data, chunks=(1, 3, 4), compression="gzip")
            for i, scale in enumerate(("time", "lat", "lon")):
                d.dims[i].attach_scale(f[scale])
        f.create_dataset("other", data=np.arange(20), chunks=(5,), compression="gzip")
    return str(path)


@pytest.fixture(params=["hdf5", "zarr", "zarr v2 names"])
def source(request, tmp_path):
    file = make(tmp_path / "in.h5")
    if request.param == "hdf5":
        return file
    convert(file, tmp_path / "in.zarr", "-q")
    if request.param == "zarr v2 names":  # of xarray, among the attributes
        for path in (tmp_path / "in.zarr").rglob("zarr.json"):
            node = json.loads(path.read_text())
            if "dimension_names" in node:
                node["attributes"]["_ARRAY_DIMENSIONS"] = node.pop("dimension_names")
            node.pop("consolidated_metadata", None)
            path.write_text(json.dumps(node))
    return str(tmp_path / "in.zarr")


def chunks(store):
    """{path: shape of chunks}, and the codecs of one that is not named."""
    found = {}
    for path in sorted(pathlib.Path(store).rglob("zarr.json")):
        node = json.loads(path.read_text())
        if node["node_type"] == "array":
            found[str(path.parent.relative_to(store))] = node["chunk_grid"]["configuration"]["chunk_shape"]
    return found


AS_IT_IS = {"time": [1], "lat": [Y], "lon": [X], "time_bnds": [1, 2], "t2m": [1, 3, 4], "deep/wind": [1, 3, 4], "other": [5]}
CASES = {
    ("time:24",): {"time": [24], "time_bnds": [24, 2], "t2m": [24, 3, 4], "deep/wind": [24, 3, 4]},
    ("t2m=time:24,lat:-1",): {"t2m": [24, 6, 4]},
    ("/deep=lon:-1",): {"deep/wind": [1, 3, 8]},
    ("t*=time:-1",): {"time": [48], "time_bnds": [48, 2], "t2m": [48, 3, 4]},
    ("lat:999",): {"t2m": [1, 6, 4], "deep/wind": [1, 6, 4]},
    ("time:24", "time:12"): {"time": [12], "time_bnds": [12, 2], "t2m": [12, 3, 4], "deep/wind": [12, 3, 4]},
    ("t2m=time:24", "time:12"): {"time": [12], "time_bnds": [12, 2], "t2m": [24, 3, 4], "deep/wind": [12, 3, 4]},
    ("2x6x8", "t2m=lon:2"): {"t2m": [2, 6, 2], "deep/wind": [2, 6, 8]},
}


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_only_named_dimensions_of_named_arrays_change(source, case, tmp_path):
    options = [word for value in case for word in ("--chunk", value)]
    convert(source, tmp_path / "out.zarr", "-q", *options)
    assert chunks(tmp_path / "out.zarr") == {**AS_IT_IS, **CASES[case]}
    assert verify(source, tmp_path / "out.zarr")["exit_status"] == 0
    planned = json.loads(run("plan", source, "--json", *options).stdout)["datasets"]
    assert {d["path"][1:]: d["chunk_shape"] for d in planned} == {**AS_IT_IS, **CASES[case]}
    for d in planned:
        assert ("; chunks of " in d["how"]) == (d["path"][1:] in CASES[case]), d


def test_arrays_that_are_not_named_are_copied(source, tmp_path):
    document = json.loads(convert(source, tmp_path / "out.zarr", "-q", "--json", "--chunk", "t2m=time:24").stdout)
    outcomes = {o["path"]: o["outcome"] for o in document["objects"] if o["kind"] == "dataset"}
    assert outcomes["/t2m"] == "recoded"
    assert {o for path, o in outcomes.items() if path != "/t2m"} <= {"raw", "rewrapped"}


def test_partitions_and_a_run_that_is_continued_have_the_same_chunks(source, tmp_path):
    options = ["--chunk", "t2m=time:24,lat:-1", "--chunk", "time:12"]
    convert(source, tmp_path / "one.zarr", "-q", *options)
    for i in range(3):
        convert(source, tmp_path / "many.zarr", "-q", "--partition", f"{i}/3", *options)
    said = refused("finalize", source, tmp_path / "many.zarr", "-q", "--chunk", "time:12")
    assert "different options: --chunk" in said, said
    run("finalize", source, tmp_path / "many.zarr", "-q")
    same(tmp_path / "one.zarr", tmp_path / "many.zarr")


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_a_name_that_no_array_has_is_an_error(kind, tmp_path):
    source = make(tmp_path / "in.h5")
    if kind == "zarr":
        convert(source, tmp_path / "in.zarr", "-q")
        source = tmp_path / "in.zarr"
    for verb, target in (("plan", []), ("convert", [tmp_path / "out.zarr"])):
        said = refused(verb, source, *target, "--chunk", "tme:24")
        assert '--chunk names the dimension "tme", which no array has: the dimensions are lat, lon, ' in said and "time" in said
        said = refused(verb, source, *target, "--chunk", "t2m=time:24,level:1")
        assert '"level", which no array that "t2m" matches has: the dimensions are lat, lon, time' in said
        assert '--chunk "t3m" matches no array' in refused(verb, source, *target, "--chunk", "t3m=time:24")
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize(
    "text", ["time=768", "t2m=100x200", "time:", ":5", "time:0", "time:-2", "time:5,", "=time:5", "time:5,lat", "a=b"]
)
def test_what_is_not_a_form_of_chunk_is_wrong_usage(text, tmp_path):
    assert "--chunk is" in refused("plan", make(tmp_path / "in.h5"), "--chunk", text, status=2)


def test_joined_files_and_a_new_dimension(tmp_path):
    files = [make(tmp_path / f"{i}.h5", i * T) for i in range(2)]
    convert("--concat", "time", *files, tmp_path / "out.zarr", "-q", "--chunk", "time:32", "--chunk", "t2m=lat:-1,time:-1")
    assert chunks(tmp_path / "out.zarr") == {
        **AS_IT_IS,
        "time": [32],
        "time_bnds": [32, 2],
        "deep/wind": [32, 3, 4],
        "t2m": [96, 6, 4],
    }
    assert verify("--concat", "time", *files, tmp_path / "out.zarr")["exit_status"] == 0


def test_references_to_what_keeps_its_chunks(tmp_path):
    source = make(tmp_path / "in.h5")
    document = json.loads(
        convert("--virtual", source, tmp_path / "refs.json", "-q", "--json", "--chunk", "time_bnds=time:-1").stdout
    )
    outcomes = {o["path"]: o["outcome"] for o in document["objects"] if o["kind"] == "dataset"}
    assert outcomes["/t2m"] == "raw" and outcomes["/time_bnds"] == "recoded"
