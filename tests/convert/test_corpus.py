# SPDX-License-Identifier: BSL-1.0
"""Real files in which raw copying goes wrong easily; ZARRBITS_CORPUS says where they are."""

import os
import subprocess

import h5py
import numpy as np
import pytest

from followed import files, followed
from harness import COMMAND, run
from store import Store

CORPUS = os.environ.get("ZARRBITS_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
TRAPS = [  # unlimited dimension that is not the first; filter masks; unfiltered edge chunks; user block; checksums; big endian
    "brtnfld+hdf5/test/testfiles/h5fc_ext1_i.h5",
    "brtnfld+hdf5/test/testfiles/h5fc_ext2_if.h5",
    "brtnfld+hdf5/tools/test/h5format_convert/testfiles/h5fc_ext2_is.h5",
    "brtnfld+hdf5/tools/test/h5format_convert/testfiles/h5fc_edge_v3.h5",
    "fsspec+kerchunk/tests/hdf5_mali_chunk2.h5",
    "Apollo3zehn+PureHDF/tests/PureHDF.Tests/TestFiles/sine_chunked.mat",
    "OPENDAP+bes/modules/fileout_netcdf/data/One_chunk_fletcher_shuf_deflate.h5",
    "brtnfld+hdf5/test/testfiles/be_data.h5",
]
HUGE = ["brtnfld+hdf5/tools/test/h5dump/testfiles/tbigdims.h5", "brtnfld+hdf5/test/testfiles/tlayouto.h5"]


def test_traps_give_the_values_that_libhdf5_reads(folder):
    compared = 0
    for i, name in enumerate(TRAPS):
        path = os.path.join(CORPUS, name)
        if not os.path.exists(path):
            raise AssertionError(f"not in the corpus: {name}")
        store = Store(os.path.join(folder, f"{i}.zarr"))
        run("convert", path, store.path, "--quiet", status=(0, 3))
        with h5py.File(path, "r") as f:
            names = []
            f.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
            for n in names:
                d = f[n]
                if d.dtype.kind not in "iuf" or d.shape is None or not store.has(n) or store.meta(n)["node_type"] != "array":
                    continue
                try:
                    wanted = d[()]
                except OSError:  # this libhdf5 lacks the filter
                    continue
                if any(c["name"] in ("zstd", "blosc") for c in store.meta(n)["codecs"]):
                    continue
                have = store.read(n)
                assert np.array_equal(np.asarray(wanted).astype(have.dtype), have, equal_nan=have.dtype.kind == "f"), (name, n)
                compared += 1
    print(compared, "datasets compared")
    assert compared >= 20, compared


def test_huge_extents_take_no_time(folder):
    for i, name in enumerate(HUGE):
        path = os.path.join(CORPUS, name)
        if os.path.exists(path):
            done = subprocess.run(
                [COMMAND, "convert", path, os.path.join(folder, f"{i}.zarr"), "--quiet"], capture_output=True, timeout=600
            )
            assert done.returncode in (0, 3), (name, done.stderr)


def test_verify_says_of_each_what_convert_says(folder):
    """For every twelfth file, or as ZARRBITS_CORPUS_EVERY says:
    all that was converted without loss is equal, attributes, names and links too."""
    every = int(os.environ.get("ZARRBITS_CORPUS_EVERY", "12"))
    files = sorted(os.path.join(root, name) for root, _, names in os.walk(CORPUS) for name in names)
    equal = 0
    for i, path in enumerate(sorted({os.path.join(CORPUS, name) for name in TRAPS} | set(files[::every]))):
        store = os.path.join(folder, f"v{i}.zarr")
        converted = run("convert", path, store, "--quiet", status=None, timeout=600)
        if converted.returncode != 0:
            continue
        run("verify", path, store, timeout=600)
        equal += 1
    print(equal, "files verified")
    assert equal >= len(TRAPS), equal


def test_references_lead_to_what_a_native_copy_has(tmp_path):
    """For every twelfth file, or as ZARRBITS_CORPUS_EVERY says: each key and each byte.
    `verify` reads every fourth of these also from Parquet."""
    every = int(os.environ.get("ZARRBITS_CORPUS_EVERY", "12"))
    all_files = sorted(os.path.join(root, name) for root, _, names in os.walk(CORPUS) for name in names)
    same = referred = 0
    for i, path in enumerate(sorted({os.path.join(CORPUS, name) for name in TRAPS} | set(all_files[::every]))):
        copy, refs, parquet = (tmp_path / f"{i}{end}" for end in (".zarr", ".json", ".parquet"))
        how = ["convert", "-q", path]
        copied = run(*how, copy, "--profile", "native", status=None, timeout=600)
        # of Zarr v3 alone: with v2 beside it, keys have another form
        made = run(*how, refs, "--virtual", "--zarr-format", "3", status=None, timeout=600)
        assert copied.returncode == made.returncode, (path, copied, made)
        if made.returncode not in (0, 3):
            continue
        content, there = files(copy), set()
        for key, found, where in followed(refs):
            with open(content[key], "rb") as f:
                assert f.read() == found, (path, key)
            there.add(key)
            referred += where == os.path.basename(path)
        assert there == content.keys(), path
        same += 1
        if i % 4 == 0 and made.returncode == 0 and "zarr.json" in content:
            done = run(*how, parquet, "--virtual", status=None, timeout=600)
            if done.returncode == 1 and "would be one array" in done.stderr:
                continue
            assert done.returncode == 0, (path, done.stderr)
            done = run("verify", path, parquet, timeout=600)
    print(same, "stores,", referred, "references")
    assert same >= 40 and referred > 100, (same, referred)
