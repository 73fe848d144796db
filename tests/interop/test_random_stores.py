# SPDX-License-Identifier: BSL-1.0
"""Random stores of zarr-python, of Zarr v2 and v3, as the sources of other stores: with random options, in one process and in
shares, zarr-python reads the same values, and `verify` finds what is changed afterwards. cases.py has the variables that ask for
more cases."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest

from cases import each_case
from harness import contents, run, verify

zarr = pytest.importorskip("zarr")
pytest.importorskip("numcodecs")

from random_stores import make_store  # noqa: E402  (it needs zarr-python)

pytestmark = pytest.mark.filterwarnings("ignore")


def options(dice, arrays):
    """Of convert, from Zarr to Zarr."""
    chosen = dice.choice(
        [[], [], ["--profile", "portable"], *(["--compress", how] for how in ("zstd:1", "gzip:1", "blosc:lz4:5:shuffle", "none"))]
    )
    if dice.random() < 0.2:
        chosen += ["--checksum", "crc32c"]
    if "portable" not in chosen and dice.random() < 0.4:
        shape = dice.choice(arrays).shape
        if shape and 0 not in shape:
            chosen += ["--chunk", "x".join(str(dice.randint(1, n)) for n in shape)]
    if dice.random() < 0.4:
        chosen += ["--shard", dice.choice(["64", "1K", "1M", "none"])]
    return chosen


def equal(wanted, have):
    wanted, have = np.asarray(wanted), np.asarray(have)
    if wanted.dtype.names:
        return wanted.dtype == have.dtype and all(equal(wanted[n], have[n]) for n in wanted.dtype.names)
    if wanted.dtype.kind == "b":  # a struct may have any byte that is not zero for True
        wanted, have = (np.ascontiguousarray(v).view("u1") != 0 for v in (wanted, have))
    if wanted.dtype.kind in "UTO":
        return wanted.shape == have.shape and wanted.astype(object).tolist() == have.astype(object).tolist()
    return wanted.shape == have.shape and wanted.tobytes() == np.asarray(have, wanted.dtype).tobytes()


def check_rewrite(dice, folder):
    store, out, parts = (os.path.join(folder, name) for name in ("in.zarr", "out.zarr", "parts.zarr"))
    arrays = make_store(dice, store)
    chosen = options(dice, list(arrays.values()))
    done = run("convert", "-q", "--json", *chosen, store, out, status=(0, 3))
    told = {o.get("zarr_path", o["path"])[1:] for o in json.loads(done.stdout)["objects"] if o["outcome"] == "skipped"}
    root = zarr.open_group(out, mode="r")
    for name, values in arrays.items():
        assert (name in root) != (name in told), (chosen, name)
        if name in root:
            assert equal(values, root[name][...]), (chosen, name, values, root[name][...])
            assert dict(root[name].attrs).keys() >= dict(zarr.open_group(store, mode="r")[name].attrs).keys() - {
                "_ARRAY_DIMENSIONS"
            }
    assert verify(store, out, status=None)["exit_status"] == (3 if told else 0), chosen
    shares = dice.randint(2, 4)
    for i in range(shares):
        run("convert", "-q", *chosen, "--partition", f"{i}/{shares}", store, parts, status=(0, 3))
    run("finalize", "-q", *dice.choice([[], chosen]), store, parts, status=(0, 3))
    assert contents(out) == contents(parts), chosen
    change(dice, out, store)


def change(dice, out, store):
    """A byte of a chunk, or a value of an attribute: `verify` finds it, or the chunk has the same values."""
    objects = [p for p in pathlib.Path(out).rglob("*") if p.is_file() and p.name != "zarr.json" and p.stat().st_size > 0]
    if not objects:
        return
    changed = dice.choice(sorted(objects))
    data = bytearray(changed.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    changed.write_bytes(data)
    name = str(changed.relative_to(out)).split("/c/")[0].removesuffix("/c")
    try:
        before, after = (zarr.open_group(path, mode="r")[name][...] for path in (store, out))
        same = equal(before, after)
    except Exception:  # whatever zarr-python says of damaged chunks
        same = False
    found = verify(store, out, status=None)
    assert found["exit_status"] == 1 or same, (changed, found)


def test_random_stores_are_rewritten(tmp_path):
    each_case(str(tmp_path), 25, check_rewrite)
    shutil.rmtree(tmp_path)
