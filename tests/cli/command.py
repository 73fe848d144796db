# SPDX-License-Identifier: BSL-1.0
"""Runs the command for the tests."""

import json
import os
import re
import subprocess

COMMAND = os.environ["ZARRBITS_COMMAND"]


def packbits(**configuration):
    return json.dumps({"name": "packbits", "configuration": configuration})


def run(*arguments, data=b"", **more):
    """Runs to the end; the result has returncode, stdout (bytes) and stderr (text)."""
    if "stdin" not in more:
        more["input"] = data
    more.setdefault("stdout", subprocess.PIPE)
    r = subprocess.run([COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, timeout=600, **more)
    r.stderr = r.stderr.decode(errors="replace")
    return r


def is_one_sentence(text):
    """`zarrbits: what, where, what to do`, and nothing else."""
    return re.fullmatch(r"zarrbits: [^\n]+\n", text) is not None and "terminate called" not in text
