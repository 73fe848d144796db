# SPDX-License-Identifier: BSL-1.0
"""References that readers of Zarr v2 read, too: the metadata of both, whose chunks have one key each."""

import base64
import json
import os

import h5py
import numpy as np
import pytest

import v2_store
from harness import run

RNG = np.random.default_rng(9)
VALUES = RNG.integers(0, 1000, (20, 30)).astype("i4")
STRUCT = np.array([(i, i / 4) for i in range(12)], [("a", "<i2"), ("b", "<f8")])


def source(name):
    with h5py.File(name, "w", libver=("earliest", "v110")) as f:
        f.attrs["title"] = "références"
        how = {"chunks": (8, 30), "compression": "gzip", "shuffle": True}
        f.create_dataset("g/native", data=VALUES, **how)
        f.create_dataset("g/summed", data=VALUES, fletcher32=True, **how)
        f.create_dataset("big", data=VALUES.astype(">f4"), chunks=(8, 30))
        f.create_dataset("whole", data=VALUES)
        f.create_dataset("truth", data=VALUES > 500, chunks=(8, 30))
        f.create_dataset("lzf", data=VALUES, chunks=(8, 30), compression="lzf")
        f.create_dataset("struct", data=STRUCT)
        f.create_dataset("complex", data=VALUES.astype("c8"))
        f.create_dataset("text", data=["one", "", "drei"] * 4, dtype=h5py.string_dtype(), chunks=(5,))
        f["number"] = 2.5
        f.create_dataset("zeros", (20, 30), "i4", chunks=(8, 30))[:8] = 1
        missing = f.create_dataset("missing", (20, 30), "f4", chunks=(8, 30), fillvalue=np.float32(0.1))
        missing[:8] = 1
        missing.attrs["_FillValue"] = np.float32(0.1)
        f.create_dataset("none", (0, 3), "i4", chunks=(4, 3), maxshape=(None, 3))
    return name


def documents(name):
    """The keys of references and what they say, of JSON or of Parquet (of that without chunks)."""
    if os.path.isdir(name):
        with open(os.path.join(name, ".zmetadata"), encoding="utf-8") as f:
            return {key: json.dumps(value) for key, value in json.load(f)["metadata"].items()}
    with open(name, encoding="utf-8") as f:
        return json.load(f)["refs"]


def v2_array(refs, name):
    """What a reader of Zarr v2 makes of an array, with the codecs of numcodecs."""

    def get(key):
        value = refs.get(key)
        if isinstance(value, list):
            with open(value[0].removeprefix("file://"), "rb") as f:
                f.seek(value[1])
                return f.read(value[2])
        if value is None:
            return None
        return base64.b64decode(value.removeprefix("base64:")) if value.startswith("base64:") else value.encode()

    return v2_store.read_array(get, name, zeros=True)


@pytest.mark.parametrize("chosen", ["both", "2"])
def test_numcodecs_reads_what_h5py_reads(tmp_path, chosen):
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", "--zarr-format", chosen, path, tmp_path / "refs.json")
    refs = documents(tmp_path / "refs.json")
    assert ("zarr.json" in refs) == (chosen == "both")
    assert json.loads(refs[".zgroup"]) == json.loads(refs["g/.zgroup"]) == {"zarr_format": 2}
    assert json.loads(refs[".zattrs"])["title"] == "références"
    names = []
    with h5py.File(path) as f:
        f.visititems(lambda name, d: names.append(name) if isinstance(d, h5py.Dataset) else None)
        assert len(names) == 13
        for name in names:
            want = f[name].asstr()[()] if name == "text" else f[name][()]
            got = v2_array(refs, name)
            assert got.shape == np.shape(want) and (got.dtype == f[name].dtype or name in ("text", "truth")), name
            assert np.array_equal(got, want), name
    run("verify", path, tmp_path / "refs.json")
    inspected = run("inspect", tmp_path / "refs.json").stdout
    assert "native" in inspected


def test_the_metadata(tmp_path):
    """By hand, from the texts of Zarr v2 and numcodecs. A fill value that no chunk needs is null:
    xarray would take it for the missing value."""
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    refs = documents(tmp_path / "refs.json")
    plain = {"zarr_format": 2, "order": "C", "dimension_separator": ".", "filters": None, "compressor": None, "fill_value": None}
    shuffle, zlib = {"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 4}
    grid = {"shape": [20, 30], "chunks": [8, 30]}
    for name, more in {
        "g/native": {**grid, "dtype": "<i4", "filters": [shuffle], "compressor": zlib},
        "g/summed": {**grid, "dtype": "<i4", "filters": [shuffle, zlib, {"id": "fletcher32"}]},
        "big": {**grid, "dtype": ">f4"},
        "truth": {**grid, "dtype": "|b1"},
        "zeros": {**grid, "dtype": "<i4"},
        "missing": {**grid, "dtype": "<f4", "fill_value": float(np.float32(0.1))},
        "struct": {"shape": [12], "chunks": [12], "dtype": [["a", "<i2"], ["b", "<f8"]]},
        "number": {"shape": [], "chunks": [], "dtype": "<f8"},
        "text": {"shape": [12], "chunks": [5], "dtype": "|O", "filters": [{"id": "vlen-utf8"}]},
        "none": {"shape": [0, 3], "chunks": [4, 3], "dtype": "<i4"},
    }.items():
        assert json.loads(refs[f"{name}/.zarray"]) == {**plain, **more}, name
        dimensions = json.loads(refs[f"{name}/zarr.json"]).get("dimension_names", [])
        assert json.loads(refs[f"{name}/.zattrs"])["_ARRAY_DIMENSIONS"] == dimensions, name
    assert "_FillValue" in json.loads(refs["missing/zarr.json"])["attributes"] and "_FillValue" not in refs["missing/.zattrs"]
    assert ".zmetadata" not in refs
    run("convert", "-q", "--virtual", "--overwrite", "--consolidate", path, tmp_path / "refs.json")
    refs = documents(tmp_path / "refs.json")
    copies = json.loads(refs[".zmetadata"])
    assert copies["zarr_consolidated_format"] == 1
    assert copies["metadata"] == {k: json.loads(v) for k, v in refs.items() if "/.z" in k or k in (".zgroup", ".zattrs")}


def test_packbits(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["v"] = np.arange(60, dtype="u2").reshape(6, 10)
    run("convert", "-q", "--virtual", "--codec", "packbits", "--bits", "/v=12", tmp_path / "in.h5", tmp_path / "refs.json")
    made = json.loads(documents(tmp_path / "refs.json")["v/.zarray"])
    assert made["dtype"] == "<u2" and made["filters"][0] == {
        "id": "zarrbits.packbits",
        "dtype": "<u2",
        "bits": 12,
        "first_bit": 0,
        "padding_encoding": "none",
        "elements": 60,
    }


def test_keys_of_zarr_v3_alone(tmp_path):
    run("convert", "-q", "--virtual", "--zarr-format", "3", source(tmp_path / "in.h5"), tmp_path / "refs.json")
    refs = documents(tmp_path / "refs.json")
    assert "g/native/c/2/0" in refs and not any(".z" in key for key in refs)


def test_names_of_formats(tmp_path):
    path = source(tmp_path / "in.h5")
    assert "2, 3 or both" in run("convert", "--virtual", "--zarr-format", "4", path, tmp_path / "refs.json", status=2).stderr


def gaps(name):
    with h5py.File(name, "w") as f:
        f.create_dataset("v", (20, 30), "i4", chunks=(8, 30), fillvalue=-7)[:8] = 1
        other = f.create_dataset("other", (20, 30), "f8", chunks=(8, 30), fillvalue=-7)
        other[:8] = 1
        other.attrs["_FillValue"] = 5.0
        f["w"] = np.arange(3)
    return name


def test_what_only_zarr_v3_can_have(tmp_path):
    path, words = gaps(tmp_path / "in.h5"), "chunks that were never written read as -7"
    assert words in run("plan", "--virtual", path, tmp_path / "refs.json").stdout.replace("\n", " ")
    report = json.loads(run("convert", "--virtual", "--json", path, tmp_path / "refs.json").stdout)
    reasons = {o["path"]: o.get("reason", "") for o in report["objects"] if o["kind"] == "dataset"}
    assert f"only for readers of Zarr v3: {words}" in reasons["/v"] and "_FillValue, which is 5" in reasons["/other"]
    assert not reasons["/w"]
    refs = documents(tmp_path / "refs.json")
    assert "w/.zarray" in refs and "v/.zarray" not in refs and "other/.zarray" not in refs and "v/zarr.json" in refs
    run("verify", path, tmp_path / "refs.json")
    said = run("convert", "-q", "--virtual", path, tmp_path / "refs.parquet").stderr
    assert 'cannot have the array "/other"' in said and "--exclude" in said
    assert ".zgroup" not in documents(tmp_path / "refs.parquet")
    run("verify", path, tmp_path / "refs.parquet")
    said = run("convert", "-q", "--virtual", "--zarr-format", "2", path, tmp_path / "refs2.json", status=3).stderr
    assert "set --zarr-format to both or 3" in said and "v/.zarray" not in documents(tmp_path / "refs2.json")


def days(folder):
    names = []
    for i in range(3):
        names.append(folder / f"d{i}.h5")
        with h5py.File(names[-1], "w") as f:
            f.create_dataset("t", data=np.arange(8 * i, 8 * i + 8), chunks=(4,), maxshape=(None,))
            f["t"].make_scale("t")
            f.create_dataset(
                "x", data=VALUES[8 * i : 8 * i + 8, :6] if i < 2 else VALUES[:8, :6], chunks=(4, 6), maxshape=(None, 6)
            )
            f["x"].dims[0].attach_scale(f["t"])
    return names


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("chosen", ["both", "2", "3"])
def test_an_append_keeps_what_there_is(tmp_path, chosen, form):
    names, refs = days(tmp_path), tmp_path / f"refs.{form}"
    whole = tmp_path / f"whole.{form}"
    run("convert", "-q", "--virtual", "--zarr-format", chosen, "--concat", "t", *names, whole)
    run("convert", "-q", "--virtual", "--zarr-format", chosen, "--concat", "t", *names[:2], refs)
    assert "--zarr-format" in run("convert", "--zarr-format", "3", "--append", "t", names[2], refs, status=2).stderr
    run("convert", "-q", "--append", "t", names[2], refs)
    run("verify", "--concat", "t", *names, refs)
    made, again = documents(refs), documents(whole)
    assert made.keys() == again.keys() and any(k.endswith(".zattrs") for k in made) == (chosen != "3")
    if chosen != "3":
        assert json.loads(made["x/.zarray"])["shape"] == [24, 6]
        for key in made:
            if key.endswith((".zarray", "x/.zattrs", ".zgroup")):
                assert made[key] == again[key], key


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.__setitem__("big/.zarray", r["big/.zarray"].replace(">f4", "<f4")),
        lambda r: r.__setitem__("big/.zattrs", '{"_ARRAY_DIMENSIONS": ["b", "a"]}'),
        lambda r: r.pop("big/.zattrs"),
        lambda r: r.pop(".zgroup"),
        lambda r: r.__setitem__("more/.zgroup", '{"zarr_format": 2}'),
        lambda r: r.__setitem__(".zattrs", "{}"),
    ],
)
def test_verify_compares_both(tmp_path, form, change):
    path, name = source(tmp_path / "in.h5"), tmp_path / f"refs.{form}"
    run("convert", "-q", "--virtual", path, name)
    file = name if form == "json" else name / ".zmetadata"
    document = json.loads(file.read_text())
    if form == "json":
        change(document["refs"])
    else:
        texts = {k: json.dumps(v) for k, v in document["metadata"].items()}
        change(texts)
        document["metadata"] = {k: json.loads(v) for k, v in texts.items()}
    file.write_text(json.dumps(document))
    done = run("verify", path, name, status=1)
    assert "which readers of Zarr v2 use, does not say what the metadata of Zarr v3 say" in done.stdout + done.stderr
    run("inspect", name)


def test_two_references_to_one_chunk(tmp_path):
    """Of which readers would take different ones."""
    path = source(tmp_path / "in.h5")
    run("convert", "-q", "--virtual", path, tmp_path / "refs.json")
    document = json.loads((tmp_path / "refs.json").read_text())
    document["refs"]["big/c/0/0"] = "x"
    (tmp_path / "refs.json").write_text(json.dumps(document))
    done = run("verify", path, tmp_path / "refs.json", status=1)
    assert "two references are of the same chunk" in done.stdout + done.stderr
