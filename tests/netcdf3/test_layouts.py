# SPDX-License-Identifier: BSL-1.0
"""How variables of any size and shape are divided into chunks: all values are where netCDF-C has them."""

import json

import numpy as np
import pytest

from harness import convert, run, verify
from netcdf3_bytes import BYTE, DOUBLE, FLOAT, INT, SHORT, Header
from netcdf3_files import netcdf4_values
from store import Store

MIB = 1 << 20


def check(tmp_path, header, trailing=b""):
    source = tmp_path / "in.nc"
    source.write_bytes(header.bytes() + trailing)
    convert(source, tmp_path / "out.zarr")
    store = Store(tmp_path / "out.zarr")
    for name, values in netcdf4_values(source, tmp_path / "copy.nc").items():
        np.testing.assert_array_equal(store.read(name), values)
    # with sanitizers, a comparison of a large part takes minutes
    assert verify(source, tmp_path / "out.zarr", ZARRBITS_STALLED_AFTER="1000")["exit_status"] == 0
    return {v[0]: chunk_of(store, v[0]) for v in header.variables}


def chunk_of(store, name):
    return store.meta(name)["chunk_grid"]["configuration"]["chunk_shape"]


def numbers(*shape, dtype=">i4"):
    return np.arange(np.prod(shape), dtype="i8").reshape(shape).astype(dtype)


def test_large_variables_are_cut_where_the_file_has_whole_chunks(tmp_path):
    h = Header(2)
    y, x, prime, wide = (
        h.dimension("y", 1000),
        h.dimension("x", 10_000),
        h.dimension("prime", 10_007),
        h.dimension("wide", 5 * MIB),
    )
    h.variable("even", INT, [y, x], numbers(1000, 10_000))
    h.variable("odd", INT, [prime, y], numbers(10_007, 1000))
    h.variable("rows", INT, [h.dimension("two", 2), wide], numbers(2, 5 * MIB))
    chunks = check(tmp_path, h)
    assert 4 * MIB <= 4 * np.prod(chunks["even"]) <= 16 * MIB and 1000 % chunks["even"][0] == 0 and chunks["even"][1] == 10_000
    assert chunks["odd"][1] == 1000 and chunks["odd"][0] * 4000 <= 16 * MIB
    assert chunks["rows"][0] == 1 and 5 * MIB % chunks["rows"][1] == 0


def test_records_are_chunks_and_small_ones_are_gathered(tmp_path):
    h = Header(5, 301)
    t, x, y = h.dimension("t", 0), h.dimension("x", 20_000), h.dimension("y", 7)
    h.variable("large", INT, [t, x], numbers(301, 20_000))
    h.variable("time", DOUBLE, [t], numbers(301, dtype=">f8"))
    h.variable("small", SHORT, [t, y], numbers(301, 7, dtype=">i2"))
    h.variable("bytes", BYTE, [t, y], (numbers(301, 7) % 100).astype(">i1"))
    chunks = check(tmp_path, h)
    assert chunks == {"large": [1, 20_000], "time": [301], "small": [301, 7], "bytes": [301, 7]}


def test_many_records_of_a_number_are_few_chunks(tmp_path):
    n = 300_007
    h = Header(1, n)
    t = h.dimension("t", 0)
    h.variable("time", DOUBLE, [t], numbers(n, dtype=">f8"))
    h.variable("value", FLOAT, [t], numbers(n, dtype=">f4"))
    chunks = check(tmp_path, h)
    assert chunks["time"][0] * 8 <= MIB and chunks["time"][0] * 8 > MIB // 4
    assert len(list((tmp_path / "out.zarr/time/c").iterdir())) == 3


@pytest.mark.parametrize("shape", [(3,), (2, 5), (70_001, 3), (5, 30_000)])
def test_one_record_variable_has_no_padding(tmp_path, shape):
    h = Header(1, shape[0])
    dims = [h.dimension("t", 0), *(h.dimension(f"d{k}", n) for k, n in enumerate(shape[1:]))]
    h.variable("v", BYTE, dims, (numbers(*shape) % 113).astype(">i1"))
    check(tmp_path, h)


def test_a_record_larger_than_a_chunk_is_cut(tmp_path):
    h = Header(1, 2)
    dims = [h.dimension("t", 0), h.dimension("z", 9), h.dimension("x", 600_000)]
    h.variable("v", INT, dims, numbers(2, 9, 600_000))
    h.variable("time", INT, dims[:1], numbers(2))
    assert check(tmp_path, h)["v"] == [1, 3, 600_000]


@pytest.mark.parametrize("version", [1, 2, 5])
def test_the_number_of_records_of_a_streamed_file_is_that_of_the_file(tmp_path, version):
    h = Header(version, 4)
    t, x = h.dimension("t", 0), h.dimension("x", 3)
    h.variable("v", SHORT, [t, x], numbers(4, 3, dtype=">i2"))
    h.variable("time", INT, [t], numbers(4))
    counted = h.bytes()
    h.records = -1
    (tmp_path / "in.nc").write_bytes(h.bytes())
    (tmp_path / "counted.nc").write_bytes(counted)
    convert(tmp_path / "in.nc", tmp_path / "out.zarr")
    convert(tmp_path / "counted.nc", tmp_path / "counted.zarr")
    for name in ("v", "time"):
        np.testing.assert_array_equal(Store(tmp_path / "out.zarr").read(name), Store(tmp_path / "counted.zarr").read(name))
        assert Store(tmp_path / "out.zarr").meta(name)["shape"][0] == 4
    assert verify(tmp_path / "in.nc", tmp_path / "out.zarr")["exit_status"] == 0


def test_random_files(tmp_path):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        version, records = int(rng.choice([1, 2, 5])), int(rng.integers(0, 5))
        h = Header(version, records)
        t = h.dimension("t", 0)
        dims = [h.dimension(f"d{k}", int(n)) for k, n in enumerate(rng.integers(1, 6, 4))]
        for k in range(int(rng.integers(1, 7))):
            kind = int(rng.choice([1, 3, 4, 5, 6] if version < 5 else [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]))
            own = [int(d) for d in rng.choice(dims, int(rng.integers(0, 4)), replace=False)]
            is_record = rng.random() < 0.5
            shape = ([records] if is_record else []) + [h.dimensions[d][1] for d in own]
            h.variable(f"v{k}", kind, ([t] if is_record else []) + own, rng.integers(-100, 100, shape).astype("i8"))
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(folder, h)
        document = json.loads(run("check", "--json", folder / "in.nc").stdout)
        assert not [f for f in document["findings"] if f["severity"] == "problem"]
