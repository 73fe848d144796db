# SPDX-License-Identifier: BSL-1.0
"""Headers that are damaged, or made to do harm: each ends with one sentence, or with the values.
ZARRBITS_MUTATIONS asks for more, ZARRBITS_SEED for others."""

import os
import struct

import numpy as np
import pytest

from harness import COMMAND, execute, refused, run
from netcdf3_bytes import BYTE, DOUBLE, INT, Header
from netcdf3_files import KINDS, ncgen

MUTATIONS = int(os.environ.get("ZARRBITS_MUTATIONS", "2000"))
SEED = int(os.environ.get("ZARRBITS_SEED", "1"))


def small(version=1, records=2):
    h = Header(version, records)
    h.attributes.append(("title", 2, b"text"))
    t, x = h.dimension("t", 0), h.dimension("x", 3)
    h.variable("f", INT, [x], np.arange(3), [("a", INT, [1, 2])])
    h.variable("v", INT, [t, x], np.arange(6).reshape(2, 3))
    h.variable("time", DOUBLE, [t], np.arange(2.0), [("units", 2, b"days")])
    return h


def sentence(tmp_path, content, *words):
    (tmp_path / "in.nc").write_bytes(content)
    line = refused("convert", tmp_path / "in.nc", tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()
    for word in words:
        assert word in line, line
    return line


@pytest.mark.parametrize("version", [1, 2, 5])
def test_every_truncated_file_is_refused(tmp_path, version):
    content = small(version).bytes()
    for size in range(4, len(content), 7):
        sentence(tmp_path, content[:size], "get or write the file again")
    sentence(tmp_path, content[:-1], "truncated")


def change(edit, version=1):
    h = small(version)
    edit(h)
    return h


def variable(h, k, **fields):
    names = ("name", "kind", "dimensions", "values", "attributes", "begin")
    v = dict(zip(names, h.variables[k]))
    h.variables[k] = tuple({**v, **fields}[n] for n in names)


DAMAGED = {
    "two record dimensions": (lambda h: h.dimension("u", 0), "two record dimensions"),
    "a record dimension that is not the first": (lambda h: variable(h, 1, dimensions=[1, 0]), "not its first"),
    "a dimension that does not exist": (lambda h: variable(h, 0, dimensions=[9]), "does not exist"),
    "two variables of a name": (lambda h: variable(h, 0, name="time"), 'two variables have the name "time"'),
    "two dimensions of a name": (lambda h: h.dimension("x", 4), "two dimensions"),
    "two attributes of a name": (lambda h: h.attributes.append(("title", 2, b"")), "two attributes"),
    "an empty name": (lambda h: variable(h, 0, name=""), "a name is empty"),
    "a name with a NUL": (lambda h: variable(h, 0, name=b"a\0b"), "has a NUL"),
    "values in the header": (lambda h: variable(h, 0, begin=8), "begins within the header"),
    "values beyond the file": (lambda h: variable(h, 0, begin=2**31), "truncated"),
    "values of another variable": (lambda h: variable(h, 2, begin=len(h.bytes()) - 44), "share bytes"),
    "more records than the file has": (lambda h: setattr(h, "records", 1000), "truncated"),
    "a negative number of records": (lambda h: setattr(h, "records", 2**31), "negative"),
    "a type of CDF-5": (lambda h: variable(h, 0, kind=7), "not a data type"),
    "no type": (lambda h: h.variables.append(("b", 12, [1], b"abc", (), None)), "not a data type"),
    "many dimensions": (lambda h: variable(h, 0, dimensions=[1] * 2000), "2000 dimensions"),
    "sizes that overflow": (
        lambda h: variable(h, 0, dimensions=[h.dimension(f"d{k}", 2**30) for k in range(4)]),
        "more bytes than fit",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_header_is_a_sentence(tmp_path, name):
    edit, words = DAMAGED[name]
    sentence(tmp_path, change(edit).bytes(), words)


def test_counts_without_elements_take_no_memory(tmp_path):
    """A file of 100 bytes that declares 2^31 of everything."""
    many = struct.pack(">I", 2**31 - 1)
    for content in (
        b"CDF\1" + bytes(4) + struct.pack(">I", 10) + many,
        b"CDF\1" + bytes(4) + bytes(8) + struct.pack(">I", 12) + many,
        b"CDF\1" + bytes(4) + bytes(16) + struct.pack(">I", 11) + many,
        b"CDF\1" + bytes(4) + struct.pack(">II", 10, 1) + many,
        b"CDF\1" + bytes(4) + bytes(8) + struct.pack(">III", 12, 1, 1) + b"a\0\0\0" + struct.pack(">I", 6) + many,
        b"CDF\5" + bytes(8) + bytes(12) + struct.pack(">IQQ", 12, 1, 1) + b"a\0\0\0" + struct.pack(">IQ", 6, 2**61 + 1),
    ):
        sentence(tmp_path, content + bytes(60))


def test_values_of_an_attribute_are_counted_before_they_are_json(tmp_path):
    h = small()
    h.attributes.append(("many", BYTE, bytes(4 << 20)))
    (tmp_path / "in.nc").write_bytes(h.bytes())
    assert "increase --memory" in refused("convert", "--memory", "256MiB", tmp_path / "in.nc", tmp_path / "out.zarr")


def test_mutated_headers_end_with_values_or_a_sentence(tmp_path):
    rng = np.random.default_rng(SEED)
    seeds = [small(v).bytes() for v in (1, 2, 5)]
    words = [b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1", b"\0\0\0\x0c", b"/" * 4, b"\xff" * 8]
    names = []
    for k in range(MUTATIONS):
        content = bytearray(seeds[k % 3])
        for _ in range(int(rng.integers(1, 4))):
            position = int(rng.integers(4, len(content)))
            if rng.random() < 0.5:
                content[position] = int(rng.integers(0, 256))
            else:
                word = words[int(rng.integers(0, len(words)))]
                position -= position % 4
                content[position : position + len(word)] = word
        if rng.random() < 0.1:
            del content[int(rng.integers(4, len(content))) :]
        names.append(tmp_path / f"{k}.nc")
        names[-1].write_bytes(content)
    step = 50
    for first in range(0, len(names), step):
        some = names[first : first + step]
        done = execute("sh", "-c", f'ulimit -v {UNLIMITED} ; exec "$0" digest "$@"', COMMAND, *some, status=(0, 1, 3))
        lines = done.stderr.splitlines()
        assert all(line.startswith("zarrbits: ") for line in lines), done.stderr[-3000:]
        summed = sum(line.endswith(".nc") for line in done.stdout.splitlines())
        refusals = sum(line.startswith("zarrbits: ") and "warning" not in line for line in lines)
        assert summed + refusals == len(some), (summed, refusals, done.stderr[-3000:])


# address sanitizers reserve terabytes
UNLIMITED = "unlimited" if "ZARRBITS_SANITIZED" in os.environ else str(4 << 20)


@pytest.mark.parametrize("kind", KINDS)
def test_inspect_prints_what_a_file_has(tmp_path, kind):
    source = ncgen(tmp_path / "in.nc", "netcdf t { dimensions: x = 3 ; variables: float lat(x) ; data: lat = 1, 2, 3 ; }", kind)
    printed = run("inspect", source).stdout
    assert "lat" in printed and "float32" in printed


def test_a_file_of_no_format_is_refused_with_what_was_expected(tmp_path):
    (tmp_path / "in.nc").write_bytes(b"CDF\3" + bytes(100))
    assert "HDF5" in refused("convert", tmp_path / "in.nc", tmp_path / "out.zarr")
