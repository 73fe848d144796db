# SPDX-License-Identifier: BSL-1.0
"""Doxygen's input filter: the guides of docs/, with links as Doxygen wants them.

    pages.py FILE      prints the file; no line is added or taken away

A heading gets an anchor from the path of its page and its words; GitHub makes it from the words alone.
A link to something that is not a page becomes plain text.
"""

import os
import pathlib
import re
import sys

file = pathlib.Path(os.path.relpath(sys.argv[1]))
pages = {str(p) for p in pathlib.Path("docs").rglob("*.md")} | {"README.md", "CONTRIBUTING.md"}


def name(page, heading=""):
    return re.sub(r"\W", "_", page.removesuffix(".md") + ("_" + heading if heading else "")).lower()


def slug(words):
    return re.sub(r"[^\w\- ]", "", words.replace("`", "").lower()).replace(" ", "-")


def link(match):
    text, target = match.groups()
    path, _, heading = target.partition("#")
    page = os.path.normpath(file.parent / path) if path else str(file)
    if re.match(r"[a-z]+:", target) or target.endswith(".svg"):
        return match.group(0)
    return f"[{text}](#{name(page, heading)})" if page in pages else text


code = False
for line in file.read_text(encoding="utf-8").split("\n")[:-1]:
    if line.lstrip().startswith("```"):
        code = not code
        line = re.sub(r"```(sh|cmake|console|text)", "```", line)
    elif not code and not line.startswith("    "):
        if heading := re.match(r"(#+) (.*)$", line):
            words = heading[2].replace("`", "") if heading[1] == "#" else heading[2]  # titles stand in lists, too
            line = f"{heading[1]} {words} {{#{name(str(file), slug(heading[2]) if len(heading[1]) > 1 else '')}}}"
        else:
            line = line.replace("@", "\\@")  # Doxygen's commands, in tables even within code
            line = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", link, line)
    print(line)
