# SPDX-License-Identifier: BSL-1.0
"""Every sentence of SECURITY.md about the network is named by a test that proves it (tests/support/promises.py)."""

import ast
import pathlib
import re

from promises import SECURITY, promise, sentences

TESTS = pathlib.Path(__file__).resolve().parent.parent
ABOUT_THE_NETWORK = re.compile(
    r"\bserver|\bS3\b|[Rr]edirect|[Pp]rox|\bhttps?\b|\bURL|[Cc]redential|bucket|storage_options|abfs|\btokens?\b"
)
ADVICE = ("Nothing hides them from code that runs in this process",)  # what the reader has to do


def network_sentences():
    text = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", SECURITY.read_text(encoding="utf-8")).split())
    begin = text.index("**Who operates the server, or listens on the network**")
    section = text[begin : text.index("**The plugins**")]
    named = [s for s in sentences() if s in section or ABOUT_THE_NETWORK.search(s)]
    return [s for s in named if not s.startswith(ADVICE)]


def promised():
    """What the decorators of tests name: {beginning of a sentence: [test]}"""
    found = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            for d in node.decorator_list:
                if isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id == "promise":
                    found.setdefault(d.args[0].value, []).append(f"{path.name}: {node.name}")
    return found


def test_every_sentence_about_the_network_has_a_test():
    beginnings = promised()
    missing = [s for s in network_sentences() if not any(s.startswith(b) for b in beginnings)]
    assert len(network_sentences()) >= 20 and not missing, missing


def test_every_test_names_a_sentence_that_is_there():
    for beginning in promised():
        promise(beginning)
