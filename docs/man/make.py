#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the manual page zarrbits.1 from the command's own --help, so that both say the same.

ZARRBITS_COMMAND=build/release/bin/zarrbits docs/man/make.py           # writes it
ZARRBITS_COMMAND=build/release/bin/zarrbits docs/man/make.py --check   # exit status 1 if it differs
"""

import os
import re
import subprocess
import sys

COMMAND = os.environ["ZARRBITS_COMMAND"]
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zarrbits.1")

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


def help_of(*command):
    wide = {**os.environ, "COLUMNS": "100000"}  # a line for each option and paragraph
    return subprocess.run([COMMAND, *command, "--help"], capture_output=True, text=True, check=True, env=wide).stdout


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def option(line):
    names, said = re.match(r"  (\S+(?: \S+)*)\s{2,}(.*)$", line).groups()
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


def main():
    commands = re.findall(r"^  ([a-z]+)  ", help_of().partition("Commands:")[2].partition("Options:")[0], re.M)
    version = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    page = HEAD.lstrip("\n").replace("@VERSION@", version) + "".join(map(section, commands)) + TAIL.lstrip("\n")
    if sys.argv[1:] == ["--check"]:
        with open(PAGE, encoding="utf-8") as f:
            if f.read() != page:
                sys.exit(f"{PAGE} does not match the command's --help; run docs/man/make.py")
        print(f"{len(commands)} commands: the manual page says what --help says")
        return
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page)


if __name__ == "__main__":
    main()
