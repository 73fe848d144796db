# SPDX-License-Identifier: BSL-1.0
"""Source files have at most 400 lines (CONTRIBUTING.md)."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = [
    "bench",
    "command",
    "convert",
    "core",
    "docs",
    "examples",
    "filter",
    "include",
    "inspect",
    "library",
    "python",
    "scripts",
    "streams",
    "tests",
    "text",
    "verify",
]
SUFFIXES = {".c", ".cmake", ".cpp", ".h", ".hpp", ".mjs", ".py", ".rs", ".sh", ""}
LONGEST = 400
# longer since they are formatted, to be split; no other file may join them
TO_SPLIT = {
    "tests/cli/test_verify.py",
    "tests/cli/test_verify_metadata.py",
    "tests/cli/test_verify_stores.py",
    "tests/convert/random_files.py",
    "tests/convert/test_concat.py",
    "tests/convert/test_s3_sources.py",
    "tests/convert/test_types.py",
    "tests/convert/test_virtual_store.py",
    "tests/filter/test_doctor.py",
    "tests/interop/test_virtual_stores.py",
}
LONGEST_TO_SPLIT = 510


def test_no_file_is_longer():
    lengths = {}
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix in SUFFIXES and "target" not in file.parts and "__pycache__" not in file.parts:
                lengths[str(file.relative_to(ROOT))] = len(file.read_bytes().splitlines())
    assert len(lengths) > 400 and {f: n for f, n in lengths.items() if n > (LONGEST_TO_SPLIT if f in TO_SPLIT else LONGEST)} == {}
