# SPDX-License-Identifier: BSL-1.0
"""What the interop tests share. scripts/ci/interop sets ZARRBITS_COMMAND, HDF5_PLUGIN_PATH and ZARRBITS_ZARRS and runs them."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMMAND = os.environ.setdefault("ZARRBITS_COMMAND", str(ROOT / "build/release/bin/zarrbits"))
# before h5py is imported anywhere: libhdf5 reads it when it is loaded
os.environ.setdefault("HDF5_PLUGIN_PATH", str(ROOT / "build/release/plugins"))
# of zarrbits.File
os.environ.setdefault("ZARRBITS_READER_LIBRARY", str(ROOT / "build/release/library/libzarrbits_reader.so"))
DEBIAN_PYTHON = "/usr/bin/python3"

if not os.path.exists(COMMAND):
    sys.exit(f"{COMMAND} is not there; scripts/ci/interop builds it")

import harness  # noqa: E402  (it wants ZARRBITS_COMMAND)


def run(*arguments, data=None, status=0):
    """The zarrbits command; its standard output, as bytes. `status`: the exit status that must come."""
    return harness.run(*arguments, data=data or b"", status=status).stdout


def code(verb, data_type, codec, count, data):
    """`zarrbits encode` or `decode` of one chunk."""
    as_text = [x if isinstance(x, str) else json.dumps(x) for x in (data_type, codec)]
    return run(verb, "--data-type", as_text[0], "--codec", as_text[1], "--elements", count, data=data)


def packbits(**configuration):
    return {"name": "packbits", "configuration": configuration} if configuration else {"name": "packbits"}


@pytest.fixture(scope="session")
def vectors():
    """The golden vectors of the codecs, from a slow model and not from zarrbits."""
    return json.loads((ROOT / "tests/golden/codecs.json").read_text())


class Zarrs:
    """Asks zarrs; see zarrs-peer/src/main.rs. The answers are bytes, or None with the reason in `refused`."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what, **request):
        request["ask"] = what
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.refused = answer.get("refused")
        return bytes.fromhex(answer["hex"]) if "hex" in answer else None

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=600)


@pytest.fixture(scope="session")
def zarrs():
    program = os.environ.get("ZARRBITS_ZARRS")
    if not program:
        pytest.skip("zarrs was not built (ZARRBITS_ZARRS is not set)")
    peer = Zarrs(program)
    yield peer
    peer.close()


def debian_python(script, *arguments):
    """A script in Debian's Python, whose h5py uses Debian's libhdf5."""
    # the environment of the virtual one would bring the other h5py in
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    result = subprocess.run(
        [DEBIAN_PYTHON, "-c", script, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=600
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def packed_model(values, bits, first_bit=0):
    """packbits in one line: the payload is one long little-endian integer."""
    whole = sum(((int(v) >> first_bit) & ((1 << bits) - 1)) << (i * bits) for i, v in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


def write_zarr_json(folder, data_type, shape, chunk, codec, fill_value=0):
    """The metadata of an array whose chunks something else writes."""
    os.makedirs(folder, exist_ok=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": [codec],
        "attributes": {},
    }
    (pathlib.Path(folder) / "zarr.json").write_text(json.dumps(document))


def chunk_origins(shape, chunk):
    return itertools.product(*[range(0, n, c) for n, c in zip(shape, chunk)])
