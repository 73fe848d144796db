#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the manual page zarrbits.1 and docs/reference/options.md from the command's own --help, so that all say the same.

ZARRBITS_COMMAND=build/release/bin/zarrbits docs/man/make.py           # writes them
ZARRBITS_COMMAND=build/release/bin/zarrbits docs/man/make.py --check   # exit status 1 if one of them differs
"""

import os
import re
import subprocess
import sys

COMMAND = os.environ["ZARRBITS_COMMAND"]
FOLDER = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(FOLDER, "zarrbits.1")
OPTIONS = os.path.join(FOLDER, "..", "reference", "options.md")

HEAD = r"""
.\" SPDX-License-Identifier: BSL-1.0
.TH ZARRBITS 1 "" "zarrbits @VERSION@" "User Commands"
.SH NAME
zarrbits \- Zarr's bytes and packbits codecs for streams, HDF5 files and Zarr v3 stores
.SH SYNOPSIS
.B zarrbits
.I COMMAND
.RI [ OPTIONS ]
.br
.B zarrbits
.RB [ \-\-help | \-\-version ]
.SH DESCRIPTION
.B zarrbits
converts HDF5 files to Zarr v3 stores, compares and shows both, encodes and decodes arrays with Zarr's codecs
.B bytes
and
.BR packbits ,
and reports what its HDF5 filter plugins do.
.B "zarrbits COMMAND \-\-help"
lists the options of a command.
"""

TAIL = r"""
.SH ENVIRONMENT
.TP
.B HDF5_PLUGIN_PATH
Folders, separated by colons, in which HDF5 searches for filter plugins: zarrbits' own, to read and write files with the filters packbits and bytes, and others, to convert files made with them.
.TP
.B ZARRBITS_KERNELS
The set of kernels to use instead of the best that the processor has: portable, avx2, avx512 or neon.
.TP
.B ZARRBITS_HDF5_LOG
What the plugins print on standard error when they refuse something.
.TP
.B ZARRBITS_STALLED_AFTER
Seconds of processor time without progress after which the command stops reading a file; 100 if it is not set.
.TP
.B ZARRBITS_SILENT_AFTER
Seconds with neither progress nor processor time after which the command stops reading a file; 3600 if it is not set.
.TP
.B ZARRBITS_LOG_FORMAT
json: each line on standard error is a JSON object, as with \-\-log\-format; text is the default.
.TP
.B ZARRBITS_PROGRESS_SECONDS
Seconds between two lines of progress without a terminal; 20 if it is not set, 0 for none.
.TP
.B ZARRBITS_PROGRESS_FD
A descriptor that gets the progress as lines of JSON, for programs.
.TP
.B COLUMNS
The width of tables, also of those that go to a pipe.
.TP
.B NO_COLOR
If it is set and not empty, the output has no colours.
.TP
.B AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL, AWS_CA_BUNDLE
For sources and targets in S3, with the same meaning as for other programs; profile files are read, too.
.TP
.B ZARRBITS_S3_PATIENCE
Seconds without a response from an S3 server before a request is sent again; 60 if it is not set.
.SH EXIT STATUS
0 success; 1 failure; 2 wrong usage or configuration; 3 done, but something was left out, which the output names. A command that is ended by a signal ends by that signal.
.SH SEE ALSO
.BR h5dump (1),
.BR h5repack (1)
"""


OPTIONS_HEAD = """# Options

`docs/man/make.py` writes this page from `zarrbits COMMAND --help`, and the test `cli_man` compares them.
Sizes may end in K, M, G or T: `64M` is 64 MiB.
An option with two meanings has a row for each.

"""


def help_of(*command):
    wide = {**os.environ, "COLUMNS": "100000"}  # a line for each option and paragraph
    return subprocess.run([COMMAND, *command, "--help"], capture_output=True, text=True, check=True, env=wide).stdout


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def parts(line):
    """The names of an option with its argument, and what it does."""
    return re.match(r"  (\S+(?: \S+)*)\s{2,}(.*)$", line).groups()


def option(line):
    names, said = parts(line)
    names, _, argument = names.partition(" ")
    flags = ", ".join(rf"\fB{escaped(n)}\fR" for n in names.split(","))
    if argument:
        flags += rf" \fI{escaped(argument)}\fR"
    return f".TP\n{flags}\n{escaped(said if said.endswith(('.', ')')) else said + '.')}\n"


def section(name):
    about, _, rest = help_of(name).partition("Usage: ")
    usage, *blocks = rest.strip().split("\n\n")
    page = f".SH ZARRBITS {name.upper()}\n.B zarrbits {name}\n.I {escaped(usage[len(f'zarrbits {name} ') :])}\n.PP\n{escaped(' '.join(about.split()))}\n"
    for block in blocks:
        first, *lines = block.splitlines()
        if first.endswith(":") and first != "Examples:" and lines and lines[0].startswith("  "):
            page += (f".SS {first[:-1]}\n" if first not in ("Options:", "Names:") else "") + "".join(map(option, lines))
        elif first == "Examples:":
            page += "\n".join([".PP", "Examples:", ".PP", ".nf", *map(escaped, lines), ".fi"]) + "\n"
        else:
            page += ".PP\n" + "\n".join(map(escaped, [first, *lines])) + "\n"
    return page


def options_of(name):
    """The options of a command, as (heading, names, text)."""
    for block in help_of(name).split("\n\n"):
        heading, *lines = block.splitlines()
        if heading.endswith(":") and heading not in ("Examples:", "Names:"):
            yield from ((heading[:-1], *parts(line)) for line in lines if line.startswith("  -") and "--help" not in line)


def option_tables(commands):
    """A table for each heading of the help: an option, the commands that have it, what it does.

    An option is below the heading that convert has it under, and the others are those of single commands."""
    headings, tables = {}, {}
    for command in commands:
        for heading, names, text in options_of(command):
            flag = names.split(" ")[0]
            heading = headings.setdefault(flag, "Other commands" if heading == "Options" else heading)
            tables.setdefault(heading, {}).setdefault((flag, names, text), []).append(command)
    page = ""
    for heading in sorted(tables, key="Other commands".__eq__):
        page += f"## {heading}\n\n| option | of | |\n|---|---|---|\n"
        for (flag, names, text), of in sorted(tables[heading].items(), key=lambda row: row[0][0].split(",")[-1]):
            cells = (f"`{names.replace(flag, flag.replace(',', '`, `'))}`", ", ".join(of), text)
            page += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
        page += "\n"
    return page.rstrip("\n") + "\n"


def main():
    commands = re.findall(r"^  ([a-z]+)  ", help_of().partition("Commands:")[2].partition("Options:")[0], re.M)
    version = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    pages = {
        PAGE: HEAD.lstrip("\n").replace("@VERSION@", version) + "".join(map(section, commands)) + TAIL.lstrip("\n"),
        OPTIONS: OPTIONS_HEAD + option_tables(commands),
    }
    for path, text in pages.items():
        if sys.argv[1:] == ["--check"]:
            with open(path, encoding="utf-8") as f:
                if f.read() != text:
                    sys.exit(f"{os.path.relpath(path)} does not match the command's --help; run docs/man/make.py")
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    if sys.argv[1:] == ["--check"]:
        print(f"{len(commands)} commands: the manual page and docs/reference/options.md say what --help says")


if __name__ == "__main__":
    main()
