# SPDX-License-Identifier: BSL-1.0
"""python/zarrbits."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import h5py
import numpy as np
import pytest

import zarrbits

pytestmark = pytest.mark.skipif(
    (os.environ["ZARRBITS_PACKBITS_ID"], os.environ["ZARRBITS_BYTES_ID"]) != ("45429", "45438"),
    reason="the helper knows the usual filter ids, and the plugins have others",
)
rng = np.random.default_rng(2)
mask, camera = rng.integers(0, 2, 100).astype(bool), rng.integers(0, 4096, 100).astype("u2")


def bits_of(values, first, count):
    low = np.unpackbits(values.astype("<u2").view("u1").reshape(-1, 2), axis=1, bitorder="little")
    return np.packbits(low[:, first : first + count].ravel(), bitorder="little").tobytes()


def test_the_version_is_the_librarys():
    version = re.search(r'ZARRBITS_VERSION_STRING "(.*)"', (ROOT / "include/zarrbits/version.hpp").read_text()).group(1)
    assert zarrbits.__version__ == version, version


def test_what_the_helper_writes_and_refuses(folder):
    with h5py.File(os.path.join(folder, "x.h5"), "w") as f:
        cases = {
            "mask": (mask, zarrbits.packbits(), np.packbits(mask, bitorder="little").tobytes()),
            "camera": (camera, zarrbits.packbits(bits=12), bits_of(camera, 0, 12)),
            "numpy": (camera, zarrbits.packbits(bits=np.uint8(12), first_bit=np.int64(0)), bits_of(camera, 0, 12)),
            "shifted": (camera << 4, zarrbits.packbits(bits=12, first_bit=4), bits_of(camera << 4, 4, 12)),
            "counted": (
                camera[:99],
                zarrbits.packbits(bits=3, out_of_range="truncate", padding_encoding="last_byte"),
                bits_of(camera[:99], 0, 3) + b"\x07",
            ),
            "numcodecs": (
                mask,
                zarrbits.packbits(padding_encoding="first_byte", msb_first=True),
                b"\x04" + np.packbits(mask).tobytes(),
            ),
            "big": (camera, zarrbits.byte_order("big"), camera.astype(">u2").tobytes()),
            "wide": (camera, zarrbits.packbits(bits=4), camera.tobytes()),
        }
        for name, (values, arguments, chunk) in cases.items():
            d = f.create_dataset(name, data=values, chunks=values.shape, **arguments)
            f.flush()
            found = d.id.read_direct_chunk((0,))
            assert found == (0, chunk), (name, found)
        for arguments, words in (
            ({"bits": -1}, "bits is -1"),
            ({"bits": 65}, "bits is 65"),
            ({"bits": "12"}, "bits is '12'"),
            ({"first_bit": 1.5}, "first_bit"),
            ({"bits": np.float64(12)}, "bits"),
            ({"bits": np.True_}, "bits"),
            ({"bits": True}, "bits"),
            ({"bits": np.int64(-1)}, "0 to 64"),
            ({"padding_encoding": "start"}, "none, first_byte, last_byte"),
            ({"out_of_range": "drop"}, "raw, truncate, report, error"),
        ):
            try:
                zarrbits.packbits(**arguments)
            except ValueError as e:
                assert str(e).startswith("zarrbits: ") and words in str(e), e
            else:
                raise AssertionError(f"{arguments} was taken")
        try:
            f.create_dataset("refused", data=camera, chunks=(10,), **zarrbits.packbits(bits=17))
        except ValueError as e:
            assert "17 bits" in str(e), e
        else:
            raise AssertionError("17 bits of 16 were taken")


def test_without_the_plugin_a_sentence():
    """Not a file without the filter."""
    r = subprocess.run(
        [sys.executable, "-c", "import zarrbits; zarrbits.packbits(bits=12)"],
        capture_output=True,
        text=True,
        env={**os.environ, "HDF5_PLUGIN_PATH": "/nonexistent", "PYTHONPATH": str(ROOT / "python")},
    )
    assert r.returncode == 1 and "does not find libzarrbits_packbits.so" in r.stderr, r.stderr
