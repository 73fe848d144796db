# SPDX-License-Identifier: BSL-1.0
"""Trees of files, and DANDI's checksums of them.

python3 tests/support/dandi_trees.py    # in an environment with zarr_checksum (PyPI): writes tests/golden/dandi.json
"""

import json
import pathlib
import random
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "dandi.json"


def trees():
    """Ten of them, as {path: bytes}."""
    pick = random.Random(57)
    made = {
        "one": {"zarr.json": b"{}"},
        "empty_file": {".zgroup": b""},
        "v2": {".zgroup": b'{"zarr_format":2}', "0/.zarray": b"{}", "0/0/0/0": b"abc", "0/0/0/1": b"", "0/0/1/0": bytes(5000)},
        "v3": {"zarr.json": b"{}", "a/zarr.json": b"{ }", "a/c/0": b"1", "a/c/1": b"2", "a/c/10": b"3", "b/zarr.json": b"{  }"},
        "deep": {"/".join("abcdefghij"[: i + 1]) + "/x": bytes([i]) for i in range(10)},
        "names": {"a b": b"1", "\u00fc/\u20ac": b"2", "\U0001f600": b"3", 'quote"': b"4", "back\\slash": b"5", "tab\t": b"6"},
        "order": {name: name.encode() for name in ("a", "B", "a-b", "a.b", "a0/b", "a-/b", "a.c/d", "_", "~")},
        "large": {"0": bytes(range(256)) * 20000},
    }
    for name, count in (("random", 50), ("many", 400)):
        made[name] = {}
        for _ in range(count):
            path = "/".join(str(pick.randrange(9)) for _ in range(pick.randint(1, 4))) + ".x"
            made[name][path] = bytes(pick.randrange(256) for _ in range(pick.randrange(100)))
    return made


def write(tree, folder):
    for path, content in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


if __name__ == "__main__":
    from zarr_checksum import compute_zarr_checksum
    from zarr_checksum.generators import yield_files_local

    golden = {}
    for key, files in trees().items():
        with tempfile.TemporaryDirectory() as place:
            golden[key] = str(compute_zarr_checksum(yield_files_local(write(files, pathlib.Path(place) / "store"))))
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
