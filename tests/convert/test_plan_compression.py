# SPDX-License-Identifier: BSL-1.0
"""What `zarrbits plan` says about datasets without compression: what --compress would save, by a sample."""

import json
import pathlib

import h5py
import numpy as np
import pytest

from harness import convert, run

WITH = "blosc:zstd:1"
SAVING = {"/mask", "/counts", "/flags/big", "/g/half"}  # the rest of source() does not become smaller, or is small


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path, noise = tmp_path_factory.mktemp("plan") / "in.h5", np.random.default_rng(1)
    y, x = np.ogrid[:2000, :2000]
    with h5py.File(path, "w") as f:
        f["mask"] = ((x - 1000) ** 2 + (y - 900) ** 2 < 640000).astype("u1")  # contiguous
        f.create_dataset("counts", data=noise.poisson(0.3, (500, 1000)).astype("i4"), chunks=(50, 1000))
        f.create_dataset("flags/big", data=noise.integers(0, 3, 300000).astype(">u2"), chunks=(100000,))
        half = np.zeros((64, 64, 64))
        half[:32] = noise.random((32, 64, 64))
        f["g/half"] = half
        f["noise"] = noise.random(200000)
        f["small"] = np.zeros(1000)
        f.create_dataset("zipped", data=np.zeros(200000), chunks=(10000,), compression="gzip")
        f.create_dataset("empty", shape=(1 << 20,), chunks=(1 << 16,), dtype="f8")
        sparse = f.create_dataset("sparse", shape=(1 << 20,), chunks=(1 << 16,), dtype="f8")
        sparse[: 1 << 16] = noise.random(1 << 16)
        f.create_dataset("text", data=["word"] * 20000, dtype=h5py.string_dtype())
    return path


def plan(source, *options):
    report = json.loads(run("plan", "--json", *options, source).stdout)
    return {d["path"]: d for d in report["datasets"]}


def suggestion(source, *options):
    return [line for line in run("plan", *options, source).stdout.splitlines() if line.startswith("--compress")]


def stored(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.name != "zarr.json")


def test_what_would_become_smaller_is_named_and_the_rest_is_not(source):
    found = {path: d["compressed"] for path, d in plan(source).items() if "compressed" in d}
    assert set(found) == SAVING
    assert all(c["compress"] == WITH + ":shuffle" and c["sampled"] <= 8 << 16 for c in found.values()), found


def test_the_estimate_is_near_what_a_conversion_makes(source, tmp_path):
    planned = plan(source)
    convert(source, tmp_path / "out.zarr", "--compress", WITH)
    for path in SAVING:
        real, said = stored(f"{tmp_path}/out.zarr{path}"), planned[path]["compressed"]["store_bytes"]
        assert abs(said - real) < 0.05 * planned[path]["store_bytes"], (path, said, real)


def test_nothing_is_compressed_unasked(source, tmp_path):
    planned = plan(source)
    convert(source, tmp_path / "out.zarr")
    for path in ("/mask", "/counts", "/g/half"):
        assert planned[path]["outcome"] == "raw"
        assert stored(f"{tmp_path}/out.zarr{path}") == planned[path]["store_bytes"]


def test_one_sentence_names_the_largest_savings_first(source):
    (line,) = suggestion(source)
    assert line.startswith(f"--compress {WITH}:shuffle would save about "), line
    assert line.endswith('by a sample of the values of "/mask", "/counts", "/g/half" and 1 more'), line
    saved = sum(d["store_bytes"] - d["compressed"]["store_bytes"] for d in plan(source).values() if "compressed" in d)
    number, unit = line.split("about ")[1].split()[:2]
    assert unit == "MiB" and float(number) == pytest.approx(saved / (1 << 20), rel=0.02), line


@pytest.mark.parametrize("options", [("--compress", "gzip:1"), ("--profile", "native"), ("--profile", "portable")])
def test_no_word_where_the_user_has_decided(source, options):
    assert suggestion(source, *options) == []
    assert not any("compressed" in d for d in plan(source, *options).values())


def test_references_cannot_be_compressed(source):
    report = json.loads(run("plan", "--json", "--virtual", source, "x.json").stdout)
    assert not any("compressed" in d for d in report["datasets"])
