#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes python/zarrbits/options.py, of which the docstrings of the calls are made, from what the command says of its options.

ZARRBITS_COMMAND=build/release/bin/zarrbits docs/man/docstrings.py           # writes it
ZARRBITS_COMMAND=build/release/bin/zarrbits docs/man/docstrings.py --check   # exit status 1 where it is another
"""

import os
import pathlib
import re
import subprocess
import sys

FILE = pathlib.Path(__file__).resolve().parent.parent.parent / "python/zarrbits/options.py"
VERBS = ("convert", "finalize", "plan", "export", "repack", "rename", "digest", "verify", "check", "inspect", "suggest", "doctor")
# what a call does itself, or what is for terminals
LEFT_OUT = {"help", "json", "quiet", "log_format"}
# keywords of Python have other names
NAMES = {"for": "access"}
HEAD = '''# SPDX-License-Identifier: BSL-1.0
# Made by docs/man/docstrings.py from the command's --help.
"""For each verb of the command, its options: what their value is ("" for none), and what they do."""

'''


def options_of(verb):
    """{name: (value, text)}, with "_" for "-", in the order of --help. An option begins at its flag;
    what is indented further goes on with it."""
    said = subprocess.run(
        [os.environ["ZARRBITS_COMMAND"], verb, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "1000"},
    ).stdout
    found, now = {}, None
    for line in said.splitlines():
        begins = re.match(r"  (?:-\w,)?--([\w-]+)(?:,-\w)?(?: (\S+))?(?: \.\.\.)?(?:\s{2,}(.*))?$", line)
        if begins:
            now = begins.group(1).replace("-", "_")
            found[now] = [begins.group(2) or "", begins.group(3) or ""]
        elif now and re.match(r" {8,}\S", line):
            found[now][1] += " " + line.strip()
        else:
            now = None
    return {NAMES.get(name, name): (value, text.strip()) for name, (value, text) in found.items() if name not in LEFT_OUT}


def page():
    text = HEAD + "OPTIONS: dict[str, dict[str, tuple[str, str]]] = {\n"
    for verb in VERBS:
        text += f"    {verb!r}: {{\n"
        for name, (value, said) in options_of(verb).items():
            words, lines = said.split(), [""]
            for word in words:  # lines that people read
                if len(lines[-1]) + len(word) > 120:
                    lines.append("")
                lines[-1] += word + " "
            lines[-1] = lines[-1].rstrip()
            text += f"        {name!r}: ({value!r},\n" + "\n".join(f"            {line!r}" for line in lines) + "),\n"
        text += "    },\n"
    return text + "}\n"


def main():
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text(encoding="utf-8") != page():
            sys.exit(f"{FILE} is not what the command says of its options; run docs/man/docstrings.py")
        print(f"{len(VERBS)} verbs: the docstrings say what --help says")
        return
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
