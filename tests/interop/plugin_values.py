# SPDX-License-Identifier: BSL-1.0
"""The values that every libhdf5 of the plugin matrix writes and reads: plugin_values.py FOLDER

They lie in the folder as they do in the files, so that a peer can read them without numpy, and values.json says what they are.
"""

import json
import pathlib
import sys

import numpy as np

PACKBITS, BYTES = 45429, 45438


def make(folder):
    folder, rng = pathlib.Path(folder), np.random.default_rng(12)
    folder.mkdir(parents=True, exist_ok=True)
    cases = []

    def case(name, dtype, array, chunk, number, *parameters):
        (folder / f"{name}.bin").write_bytes(array.astype(dtype).tobytes())
        cases.append({"name": name, "dtype": dtype, "shape": array.shape, "chunk": chunk, "filter": number, "values": parameters})

    case("mask", "?", rng.integers(0, 2, (100, 70)), (64, 32), PACKBITS)
    case("numcodecs", "?", rng.integers(0, 2, 1001), (250,), PACKBITS, 1, 17)
    case("camera", "<u2", rng.integers(0, 4096, (100, 70)), (64, 32), PACKBITS, 12)
    case("big", ">u2", rng.integers(0, 4096, 999), (128,), PACKBITS, 12, 2)
    case("signed", ">i4", rng.integers(-16, 16, 999) << 3, (128,), PACKBITS, 5, 1, 3)
    case("wide", "<u8", rng.integers(0, 1 << 53, 500), (100,), PACKBITS, 53)
    values = rng.integers(0, 4096, 1024)
    values[300] = 4096
    case("one_raw_chunk", "<u2", values, (256,), PACKBITS, 12)
    case("bytes", "<f8", rng.normal(size=300), (77,), BYTES, 1)
    (folder / "values.json").write_text(json.dumps(cases))
    return folder


if __name__ == "__main__":
    make(sys.argv[1])
