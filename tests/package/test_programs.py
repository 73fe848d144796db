# SPDX-License-Identifier: BSL-1.0
"""Every C++ program in README.md and docs/ compiles without a warning, casts nothing, and ends with status 0. The examples cast nothing, either."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCKS = [(f"{document.relative_to(ROOT)} {i}", block) for document in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
          for i, block in enumerate(re.findall(r"```cpp\n(.*?)```", document.read_text(encoding="utf-8"), re.S))]
PROGRAMS = [b for b in BLOCKS if "int main(" in b[1]]
EXAMPLES = sorted(ROOT.glob("examples/*.cpp"))


def test_there_are_some():
    assert PROGRAMS and len(PROGRAMS) + len(EXAMPLES) >= 5


@pytest.mark.parametrize("name, block", BLOCKS, ids=[name for name, _ in BLOCKS])
def test_nothing_is_cast_to_char(name, block):
    """write_elements() and read_elements() take elements as they are."""
    assert "_cast<char" not in block and "_cast<const char" not in block


@pytest.mark.parametrize("name, block", PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_a_program_compiles_and_runs(name, block, tmp_path):
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(block, encoding="utf-8")
    subprocess.run([os.environ["ZARRBITS_CXX"], "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT / 'include'}", source,
                    *os.environ["ZARRBITS_LIBRARIES"].split(":"), "-o", program], check=True)
    subprocess.run([program], cwd=tmp_path, check=True)


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.name for e in EXAMPLES])
def test_an_example_casts_nothing(example):
    assert "reinterpret_cast" not in example.read_text(encoding="utf-8")
