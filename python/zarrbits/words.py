# SPDX-License-Identifier: BSL-1.0
"""The command's sentences in Python's words: `overwrite=True` for --overwrite, `threads` for --threads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .options import OPTIONS

_WITHOUT_VALUE = {name for options in OPTIONS.values() for name, (argument, _) in options.items() if not argument}
_ALL = {name for options in OPTIONS.values() for name in options}
_FLAG = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])")


def in_python(sentence: str) -> str:
    """Names of files and the like are between quotes, and stay as they are."""

    def word(match: re.Match[str]) -> str:
        name = match.group(1).replace("-", "_")
        return match.group(0) if name not in _ALL else f"`{name}=True`" if name in _WITHOUT_VALUE else f"`{name}`"

    parts = sentence.split('"')
    return '"'.join(part if i % 2 else _FLAG.sub(word, part) for i, part in enumerate(parts))


def of_options(verb: str, without: frozenset[str], others: Sequence[str] = ()) -> str:
    """The paragraphs of a docstring that say what each option of a verb is, and those that only `others` have."""
    text, known = "", set(without)
    for one in (verb, *others):
        lines = [f"    {name}: {words}" for name, (_, words) in OPTIONS[one].items() if name not in known]
        text += f"\n\n    Options{'' if one == verb else f' that only {one} has'}:\n" + in_python("\n".join(lines))
        known.update(OPTIONS[one])
    return text + "\n"
