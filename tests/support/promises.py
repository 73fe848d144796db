# SPDX-License-Identifier: BSL-1.0
"""Which sentences of SECURITY.md a test proves. A sentence that is not there (any more) is an error when the test is loaded, and
tests/package/test_security.py wants a test for each sentence about the network.

@promise("Secrets in URLs are not")
def test_a_query_is_in_no_output(): ...
"""

import pathlib
import re

SECURITY = pathlib.Path(__file__).resolve().parent.parent.parent / "SECURITY.md"


def sentences():
    """Those of what is promised, and of what is not, without their marks of lists and links."""
    text = SECURITY.read_text(encoding="utf-8")
    text = text[text.index("## What is promised") : text.index("## The attacks that are tests")]
    text = re.sub(r"^- ", "  ", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text), flags=re.MULTILINE)
    paragraphs = [p for p in re.split(r"\n\n|\n  (?=\S)|\n(?=\S)", text) if not p.startswith("#")]
    return [s for p in paragraphs for s in re.split(r"(?<=[.?!]) (?=[A-Z`])", " ".join(p.split())) if s.endswith(".")]


def promise(beginning):
    """`beginning`: so much of the sentence that no other one begins so."""
    found = [s for s in sentences() if s.startswith(beginning)]
    assert len(found) == 1, f"SECURITY.md has {len(found)} sentences that begin with {beginning!r}"
    return lambda test: test
