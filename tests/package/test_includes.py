# SPDX-License-Identifier: BSL-1.0
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def test_includes_are_as_the_table_says():
    """includes.py says what; it is run by hand, too."""
    done = subprocess.run([sys.executable, HERE / "includes.py", HERE.parent.parent], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
