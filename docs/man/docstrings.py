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
VERBS = ("convert", "finalize", "plan", "export", "repack", "digest", "verify", "check", "inspect", "suggest", "doctor")
# what a call does itself, or what is for terminals
LEFT_OUT = {"--help", "--json", "--quiet", "--log-format"}
# keywords of Python have other names; of a flag --no-NAME, it is NAME=False
NAMES = {"--for": "access", "--header": "headers", "--no-missing": "allow_missing"}
# and other values
WORDS = {
    "headers": "With https://: send these headers, {'Authorization': 'Bearer TOKEN'}, to the server of the source alone; or "
    "those of the file of this name, one on each line (or set ZARRBITS_HEADERS)"
}
HEAD = '''# SPDX-License-Identifier: BSL-1.0
# Made by docs/man/docstrings.py from the command's --help.
"""For each verb of the command, its options: what their value is ("" for none), and what they do."""

# of keywords that are not the name of a flag: the flag of their value, or of True; the flag of False
'''


def options_of(verb):
    """{flag: (value, text)}, in the order of --help. An option begins at its flag; what is indented further goes on with it."""
    said = subprocess.run(
        [os.environ["ZARRBITS_COMMAND"], verb, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "1000"},
    ).stdout
    options, now = {}, None
    for line in said.splitlines():
        begins = re.match(r"  (?:-\w,)?(--[\w-]+)(?:,-\w)?(?: (\S+))?(?: \.\.\.)?(?:\s{2,}(.*))?$", line)
        if begins:
            now = begins.group(1)
            options[now] = [begins.group(2) or "", begins.group(3) or ""]
        elif now and re.match(r" {8,}\S", line):
            options[now][1] += " " + line.strip()
        else:
            now = None
    return {flag: (value, text.strip()) for flag, (value, text) in options.items() if flag not in LEFT_OUT}


def keywords_of(options):
    """({keyword: (value, text)}, {keyword: its two flags, if another rule than "_" for "-" makes them})."""
    keywords, flags = {}, {}
    for flag, (value, text) in options.items():
        is_negated = flag.startswith("--no-")
        plain = flag.removeprefix("--no-" if is_negated else "--").replace("-", "_")
        keyword = NAMES.get(flag, plain)
        text = WORDS.get(keyword, f"False: {text}" if is_negated else text)
        if keyword in keywords:  # --consolidate and --no-consolidate
            text = f"{keywords[keyword][1]}. {text}"
        keywords[keyword] = (value, text)
        if is_negated:
            flags[keyword] = ("--" + plain if "--" + plain in options else "", flag)
        elif keyword != plain:
            flags[keyword] = (flag, "")
    return keywords, flags


def page():
    verbs = {verb: keywords_of(options_of(verb)) for verb in VERBS}
    text = HEAD + "FLAGS: dict[str, tuple[str, str]] = {\n"
    for keyword, flags in {keyword: flags for _, of_verb in verbs.values() for keyword, flags in of_verb.items()}.items():
        text += f"    {keyword!r}: {flags!r},\n"
    text += "}\nOPTIONS: dict[str, dict[str, tuple[str, str]]] = {\n"
    for verb, (keywords, _) in verbs.items():
        text += f"    {verb!r}: {{\n"
        for name, (value, said) in keywords.items():
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
