# SPDX-License-Identifier: BSL-1.0
"""Every C++ program in README.md and docs/ compiles without a warning, casts nothing, and ends with status 0. So do the examples cast nothing.

    programs.py ROOT CXX LIBRARY...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

root, cxx, libraries = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
bad, seen = [], 0
for document in [root / "README.md", *sorted(root.glob("docs/*.md"))]:
    name = document.relative_to(root)
    for block in re.findall(r"```cpp\n(.*?)```", document.read_text(encoding="utf-8"), re.S):
        if "_cast<char" in block or "_cast<const char" in block:
            bad.append(f"{name}: a program casts elements to char; write_elements() and read_elements() take them as they are")
        if "int main(" not in block:
            continue
        seen += 1
        with tempfile.TemporaryDirectory() as work:
            source = pathlib.Path(work) / "program.cpp"
            source.write_text(block, encoding="utf-8")
            build = subprocess.run([cxx, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{root / 'include'}", str(source), *libraries, "-o", f"{work}/program"])
            if build.returncode != 0:
                bad.append(f"{name}: its program number {seen} does not compile")
            elif (status := subprocess.run([f"{work}/program"], cwd=work).returncode) != 0:
                bad.append(f"{name}: its program ends with status {status}")
for example in sorted(root.glob("examples/*.cpp")):
    seen += 1
    if "reinterpret_cast" in example.read_text(encoding="utf-8"):
        bad.append(f"{example.relative_to(root)} casts")
print("\n".join(bad))
print(f"{seen} programs, {len(bad)} wrong")
sys.exit(1 if bad or seen < 5 else 0)
