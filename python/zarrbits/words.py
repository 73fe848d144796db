# SPDX-License-Identifier: BSL-1.0
"""Python's keywords for the command's flags, and its sentences in Python's words: `overwrite=True` for --overwrite, `lock=False`
for --no-lock, `threads` for --threads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .options import FLAGS, OPTIONS


def flags_of(keyword: str) -> tuple[str, str]:
    """(the flag of its value, or of True; the flag of False). "" for one that is missing."""
    return FLAGS.get(keyword, ("--" + keyword.replace("_", "-"), ""))


def _words() -> dict[str, str]:
    words = {}
    for options in OPTIONS.values():
        for keyword, (value, _) in options.items():
            flag, negated = flags_of(keyword)
            words[flag] = f"`{keyword}`" if value else f"`{keyword}=True`"
            words[negated] = f"`{keyword}=False`"
    return words


_WORDS = _words()
# the library that reads HDF5 files calls --no-etag `no_etag`; its other options have Python's names
_FLAG = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*(?![\w-])|`no_[a-z_]+`")


def in_python(sentence: str) -> str:
    """Names of files and the like are between quotes, and stay as they are."""

    def word(match: re.Match[str]) -> str:
        said = match.group(0)
        flag = "--" + said.strip("`").replace("_", "-") if said.startswith("`") else said
        return _WORDS.get(flag, said)

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
