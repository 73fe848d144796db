# SPDX-License-Identifier: BSL-1.0
"""README.md shows the end of the demo's output, except for times."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def lines(text):
    """The lines of the table and all below it, without times and the spaces in front of them."""
    return [re.sub(r" +[0-9]+\.[0-9]{2} s$", "", line).rstrip() for line in text.splitlines()]


def test_readme_shows_what_the_demo_prints(folder):
    run = subprocess.run(
        [sys.executable, ROOT / "scripts/demo.py", os.environ["ZARRBITS_COMMAND"], "build/demo"],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"HDF5_PLUGIN_PATH": os.environ["ZARRBITS_PLUGINS"]},
    )
    assert run.returncode == 0, run.stdout
    printed = lines(run.stdout[run.stdout.index("Bytes of the stored chunks") :])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    begin = readme.index("Bytes of the stored chunks")
    shown = lines(readme[begin : readme.index("```", begin)])
    assert printed == shown
