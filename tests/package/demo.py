# SPDX-License-Identifier: BSL-1.0
"""README.md shows what the demo prints at its end, but for times. demo.py ROOT ZARRBITS PLUGINS"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root, zarrbits, plugins = pathlib.Path(sys.argv[1]), *sys.argv[2:]


def lines(text):
    """The lines of the table and all below it, without times and the spaces in front of them."""
    return [re.sub(r" +[0-9]+\.[0-9]{2} s$", "", line).rstrip() for line in text.splitlines()]


with tempfile.TemporaryDirectory() as folder:
    run = subprocess.run([sys.executable, root / "scripts/demo.py", zarrbits, "build/demo"], cwd=folder, text=True, stdout=subprocess.PIPE,
                         env=os.environ | {"HDF5_PLUGIN_PATH": plugins})
assert run.returncode == 0, run.stdout
printed = lines(run.stdout[run.stdout.index("Bytes of the stored chunks"):])
readme = (root / "README.md").read_text(encoding="utf-8")
begin = readme.index("Bytes of the stored chunks")
shown = lines(readme[begin:readme.index("```", begin)])
for a, b in zip(printed, shown):
    assert a == b, f"the demo prints\n{a}\nand README.md shows\n{b}"
assert len(printed) == len(shown), (len(printed), len(shown))
print(f"README.md shows the {len(shown)} lines that the demo prints")
