# SPDX-License-Identifier: BSL-1.0
"""The digest of a file is that of its stores, and of the files made of them: whatever holds the values.
ZARRBITS_CORPUS says where files of others are; ZARRBITS_CASES=all asks for all of them."""

import hashlib
import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import pytest

from harness import run
from value_digests import array_digest, array_sums

CORPUS = os.environ.get("ZARRBITS_CORPUS")


def report(name, *options):
    return json.loads(run("digest", "--json", "-q", name, *options, status=(0, 3)).stdout)


def digests(name, *options):
    """The digests of all arrays that have one, by their paths."""
    return {a["path"]: a["digest"] for a in report(name, *options)["arrays"] if a["digest"]}


def example(path):
    record = np.dtype([("a", "i4"), ("b", "f8"), ("s", "S3"), ("list", "f4", (2,))])
    with h5py.File(path, "w") as f:
        f["big"] = np.arange(12, dtype=">i4").reshape(3, 4)
        f.create_dataset(
            "grows", data=np.arange(1000.0).reshape(10, 100), chunks=(4, 30), maxshape=(None, 200), compression="gzip"
        )
        f.create_dataset("filled", (10,), "i2", chunks=(3,), fillvalue=-7)[3:5] = 1
        f.create_dataset("unwritten", (10, 10), "f8", fillvalue=2.5)
        f["text"] = np.array(["x", "yö"], h5py.string_dtype())
        words = f.create_dataset("words", (50,), h5py.string_dtype(), chunks=(7,), compression="gzip")
        words[:20] = [f"word {i}" for i in range(20)]
        f["latin"] = np.array([b"\xe4", b"ab"], "S2")
        f["bool"] = np.array([True, False])
        f["not_bool"] = np.array([0, 1], "i1").astype(h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, basetype="i1"))
        f["record"] = np.array([(1, 2.5, b"abc", (3, 4))], record)
        f["table"] = np.array([(1, "aa"), (2, "")], np.dtype([("a", "i4"), ("s", h5py.string_dtype())]))
        ragged = f.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
        ragged[0], ragged[2] = [1, 2, 3], [4]
        names = f.create_dataset("names", (2,), h5py.vlen_dtype(h5py.string_dtype()))
        names[0] = np.array(["a", "bc"], object)
        f.create_dataset("no_rows", (2,), h5py.vlen_dtype("f8"))
        f["opaque"] = np.array([b"abc", b"de\0"], "V3")
        f["enum"] = np.array([1, 2]).astype(h5py.enum_dtype({"RED": 1, "GREEN": 2}, basetype="i2"))
        f["null"] = h5py.Empty("f4")
        f["scalar"] = 3.5
        f["a%2Fb/c\\d"] = np.arange(4)
        f["reference"] = np.array([f["a%2Fb"].ref, f["bool"].ref], h5py.ref_dtype)
        f["time"] = np.arange(10.0)
        f["time"].make_scale()
        f["grows"].dims[0].attach_scale(f["time"])
    return path


def test_every_form_of_a_file_has_its_digest(tmp_path):
    source = example(tmp_path / "in.h5")
    wanted = digests(source)
    assert wanted["/big"] == array_digest(np.arange(12, dtype="i4").reshape(3, 4)) and "/ragged/values" in wanted
    forms = {
        "plain.zarr": [], "one.zip": [], "other.zarr": ["--chunk", "grows=time:3", "--compress", "zstd:1"],
        "shards.zarr": ["--shard", "512"], "packed.zarr": ["--codec", "packbits"], "checked.zarr": ["--checksum", "crc32c"],
        "refs.json": ["--virtual"], "v2.json": ["--virtual", "--zarr-format", "both"],
    }  # fmt: skip
    for name, options in forms.items():
        run("convert", "-q", source, tmp_path / name, *options, status=(0, 3))
        assert digests(tmp_path / name) == wanted, name
    run("convert", "-q", tmp_path / "shards.zarr", tmp_path / "again.zarr", "--chunk", "grows=time:4", "--shard", "none")
    run("export", "-q", tmp_path / "again.zarr", tmp_path / "out.h5")
    run("export", "-q", "--filter", "zstd", tmp_path / "one.zip", tmp_path / "out.nc", status=(0, 3))
    run("repack", "-q", source, tmp_path / "repacked.h5", "--layout", "cloud")
    for name in ("again.zarr", "out.h5", "repacked.h5"):
        assert digests(tmp_path / name) == wanted, name
    netcdf = digests(tmp_path / "out.nc")
    common = netcdf.keys() & wanted.keys()
    # netCDF has no strings of fixed length in its structs
    assert len(common) > 10 and {path for path in common if netcdf[path] != wanted[path]} == {"/record"}


def test_an_object_is_the_root_of_its_digest(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["a/b/c"] = np.arange(5)
    run("convert", "-q", tmp_path / "in.h5", tmp_path / "out.zarr")
    run("convert", "-q", f"{tmp_path}/in.h5:/a/b", tmp_path / "part.zarr")
    run("convert", "-q", f"{tmp_path}/in.h5:/a/b/c", tmp_path / "one.zarr")
    for name, path in (("a/b", "/c"), ("a/b/c", "/")):
        other = report(tmp_path / ("part.zarr" if path == "/c" else "one.zarr"))
        for place in (f"{tmp_path}/in.h5:/{name}", f"{tmp_path}/out.zarr:/{name}"):
            found = report(place)
            assert found["digest"] == other["digest"] and [a["path"] for a in found["arrays"]] == [path]


def test_a_store_of_zarr_v2_has_the_digest_of_v3(tmp_path):
    """Written by hand, as Zarr v2 has it: big-endian, in Fortran order, with a fill value and numpy's fixed strings."""
    values = np.arange(20, dtype=">f4").reshape(4, 5)
    arrays = {"f": (values, (3, 2), 1.5), "s": (np.array([b"ab", b"c", b"def"]), (2,), None)}
    (tmp_path / "v2.zarr").mkdir()
    (tmp_path / "v2.zarr/.zgroup").write_text('{"zarr_format": 2}')
    for name, (a, chunks, fill) in arrays.items():
        folder = tmp_path / "v2.zarr" / name
        folder.mkdir()
        document = {"zarr_format": 2, "shape": a.shape, "chunks": chunks, "dtype": a.dtype.str, "order": "F"}
        document |= {"fill_value": fill, "compressor": None, "filters": None}
        (folder / ".zarray").write_text(json.dumps(document))
        for index in np.ndindex(*(-(-n // c) for n, c in zip(a.shape, chunks))):
            chunk = np.zeros(chunks, a.dtype)
            part = a[tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks))]
            chunk[tuple(slice(n) for n in part.shape)] = part
            (folder / ".".join(map(str, index))).write_bytes(chunk.tobytes("F"))
    (tmp_path / "v2.zarr/f/1.1").unlink()
    values[3:, 2:4] = 1.5
    assert digests(tmp_path / "v2.zarr") == {"/f": array_digest(values.astype("<f4")), "/s": array_digest(arrays["s"][0])}


def datetime(unit):
    return {"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": 10}}


def fixed(name, length):
    return {"name": name, "configuration": {"length_bytes": length}}


TIMES, TEXTS = np.array([0, 5, -(2**63)], "<i8"), np.array(["ab", "", "\U0001f600"], "<U2")
BYTES, COMPLEX = np.array([b"abc", b"", b"a\0b"], "S3"), np.array([1 + 2j, -0.0, 3], "<c8")
# Zarr's name of the data type, the values, a fill value, and the name in the digest
TYPES = {
    "microseconds": (datetime("\u03bcs"), TIMES, "NaT", "numpy.datetime64[10us]"),
    "us": (datetime("us"), TIMES, "NaT", "numpy.datetime64[10us]"),
    "utf32": (fixed("fixed_length_utf32", 8), TEXTS.view("<u4").reshape(3, 2), "", "fixed_length_utf32[8]"),
    "terminated": (fixed("null_terminated_bytes", 3), BYTES.view("u1").reshape(3, 3), "", "null_terminated_bytes[3]"),
    "complex": ("complex_float32", COMPLEX, [0, 0], "complex64"),
    "complex64": ("complex64", COMPLEX, [0, 0], "complex64"),
    "raw": ("r24", BYTES.view("u1").reshape(3, 3), [0, 0, 0], "r24"),
}


@pytest.mark.parametrize("case", list(TYPES))
def test_data_types_that_only_zarr_has(tmp_path, case):
    data_type, values, fill, name = TYPES[case]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [3],
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    (tmp_path / "c").mkdir()
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    (tmp_path / "c/0").write_bytes(values.tobytes())
    elements = np.frombuffer(values.tobytes(), f"V{values.nbytes // 3}")
    sums = [f"{total:032x}" for total in array_sums(elements)]
    text = f"zarrbits digest 1\ntype {name}\nshape 3\nsum {sums[0]} {sums[1]}\n"
    assert digests(tmp_path) == {"/": hashlib.sha256(text.encode()).hexdigest()}


def sample():
    files = sorted(p for p in pathlib.Path(CORPUS or "/nonexistent").rglob("*") if p.is_file() and h5py.is_hdf5(p))
    return files if os.environ.get("ZARRBITS_CASES") == "all" else files[3::19]


@pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
def test_files_of_others_keep_their_digests(tmp_path):
    """What convert, export and repack report as kept has the digest of the source."""
    wrong, compared = [], 0
    for path in sample():
        first = run("digest", "--json", "-q", path, status=None)
        if first.returncode not in (0, 3) or path.stat().st_size > 20 << 20:
            continue
        wanted = {a["path"]: a["digest"] for a in json.loads(first.stdout)["arrays"] if a["digest"] and not a.get("reason")}
        forms = [
            ("out.zarr", ["convert", path, tmp_path / "out.zarr"]),
            ("other.zarr", ["convert", path, tmp_path / "other.zarr", "--compress", "zstd:1", "--shard", "1M"]),
            ("refs.json", ["convert", path, tmp_path / "refs.json", "--virtual"]),
            ("out.h5", ["export", tmp_path / "out.zarr", tmp_path / "out.h5"]),
            ("repacked.h5", ["repack", path, tmp_path / "repacked.h5", "--layout", "cloud"]),
        ]
        lossy = False
        for name, command in forms:
            if name == "out.h5" and lossy or run(*command, "-q", status=None).returncode != 0:
                lossy = lossy or name == "out.zarr"
                continue
            compared += 1
            made = run("digest", "--json", "-q", tmp_path / name, "--external", "all", status=None)
            actual = {a["path"]: a["digest"] for a in json.loads(made.stdout)["arrays"]} if made.returncode in (0, 3) else {}
            # links into other files lead nowhere from another folder
            paths = actual.keys() if name == "repacked.h5" else wanted.keys() | actual.keys()
            different = {p for p in paths if wanted.get(p) != actual.get(p)}
            if different:
                wrong.append((str(path.relative_to(CORPUS)), name, sorted(different)[:3]))
        for child in tmp_path.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    assert not wrong and compared > 20, (compared, wrong)
