# SPDX-License-Identifier: BSL-1.0
"""zarrbits suggest: the lines do what they say, whatever is in the file."""

import json
import subprocess

import h5py
import numpy as np
import pytest

from doctor import run
from harness import COMMAND


@pytest.fixture
def here(tmp_path):
    return tmp_path


@pytest.fixture
def links(here):
    source = here / "links.h5"
    with h5py.File(source, "w") as f:
        f["b"] = np.arange(100, dtype="u2")
        f["a/inner/x"] = f["b"]  # the same dataset: h5repack meets it here first
        f["z"] = f["b"]
    return source


def test_what_packbits_would_do(here):
    rng = np.random.default_rng(5)
    source = here / "it's plain.h5"
    fields = {
        "raw": (rng.integers(0, 4096, (300, 200)).astype("u2"), 0, 11),
        "mask": (rng.integers(0, 2, (30, 20)).astype(bool), 0, 0),
        "shifted": ((rng.integers(0, 1000, (64, 65)) << 4).astype(">i4"), 4, 14),
        "negative": (rng.integers(-8, 8, 1000), 0, 3),
        "floats": (rng.integers(0, 100, 1000).astype("f4"), 17, 30),
        "flags": (rng.integers(0, 2, 1000).astype("u1"), 0, 0),
        "zeros": (np.zeros(50, "u8"), 0, 0),
        "minus": (np.full(50, -1, "i2"), 0, 0),
        "top": (np.full(50, 128, "u1"), 7, 7),
        "least": (np.full(50, -128, "i1"), 7, 7),
    }
    with h5py.File(source, "w") as f:
        for name, (values, _, _) in fields.items():
            f[f"a group/{name}"] = values
            values.flat[0] = {
                "raw": 4095,
                "shifted": 1023 << 4 if values.dtype.kind == "i" else 0,
                "negative": -8,
                "floats": 99,
            }.get(name, values.flat[0])
            f[f"a group/{name}"][...] = values
        f["full"] = rng.integers(0, 65536, 1000).astype("u2")
        f["full"][0] = 65535
        f["text"] = np.array([b"a"] * 100)
        f["one"] = 5
        f.create_dataset("gzipped", data=np.zeros(1000, "u4"), compression="gzip")
        f.create_dataset("fill", shape=(1000,), chunks=(64,), dtype="u2", fillvalue=1023)
        f["fill"][:64] = 3
        f.create_dataset("chunked", data=np.arange(5000).astype("u4").reshape(50, 100), chunks=(16, 64))
    report = json.loads(run("suggest", "--json", source))
    found = {d["path"].rsplit("/")[-1]: d for d in report["datasets"]}
    for name, (_, first, last) in fields.items():
        assert (found[name]["first_bit"], found[name]["last_bit"]) == (first, last), (name, found[name])
        assert found[name]["worthwhile"], found[name]
    assert found["fill"]["last_bit"] == 9 and found["chunked"]["last_bit"] == 12 and found["chunked"]["chunk"] == [16, 64]
    assert not found["full"]["worthwhile"] and "no gain" in found["gzipped"]["obstacle"]
    assert {line["path"] for line in report["left_out"]} == {"/text", "/one"}, report["left_out"]
    # the lines do what they say
    text = run("suggest", source)
    all_at_once = text.split("All at once")[1].splitlines()[1].strip()
    subprocess.run(all_at_once, shell=True, check=True, cwd=here)
    with h5py.File(here / "packed.h5") as f, h5py.File(source) as g:
        for name in found:
            path = found[name]["path"]
            assert np.array_equal(f[path][...], g[path][...]), path
            if found[name]["worthwhile"]:
                assert f[path].id.get_storage_size() == found[name]["packed_bytes"], (
                    path,
                    f[path].id.get_storage_size(),
                    found[name],
                )
    assert f"{sum(d['worthwhile'] for d in found.values())} datasets would gain" in text, text
    done = run("suggest", "--all", here / "packed.h5")
    # "fill" was not packed, and h5repack wrote all its chunks
    assert "1 dataset would gain" in done and done.count("packed already") == len(fields) + 1, done


def test_the_lines_name_datasets_as_h5repack_does(here, links):
    (found,) = json.loads(run("suggest", "--json", links))["datasets"]
    assert "/a/inner/x:UD=" in found["h5repack"], found
    subprocess.run(f"h5repack {found['h5repack']} links.h5 links_packed.h5", shell=True, check=True, cwd=here)
    with h5py.File(here / "links_packed.h5") as f:
        assert f["z"].id.get_storage_size() == found["packed_bytes"] and np.array_equal(f["b"][...], np.arange(100))


def test_what_h5repack_cannot_read_is_warned_of(here, links):
    source = here / "lzf.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("packed", data=np.zeros((100, 100), "u2"), compression="lzf")
        f["plain"] = np.arange(100, dtype="u2")
    report = json.loads(run("suggest", "--json", source))
    assert [(u["path"], "lzf" in u["filter"]) for u in report["filter_not_found"]] == [("/packed", True)], report
    text = run("suggest", source)
    assert "WARNING: h5repack" in text and "/packed: lzf" in text, text
    assert "WARNING" not in run("suggest", links)


def test_suggestions_are_made_in_little_memory(here):
    big = here / "large.h5"
    with h5py.File(big, "w", libver="latest") as f:
        d = f.create_dataset("x", (1 << 26,), "u4", chunks=(1 << 20,))  # 256 MiB
        for i in range(0, 1 << 26, 1 << 22):
            d[i : i + (1 << 22)] = np.full(1 << 22, 7, "u4")
    r = subprocess.run(
        ["sh", "-c", f'ulimit -v 200000; exec "{COMMAND}" suggest --json "{big}"'], capture_output=True, text=True, timeout=600
    )
    big.unlink()
    assert r.returncode == 0 and json.loads(r.stdout)["datasets"][0]["last_bit"] == 2, r.stderr
