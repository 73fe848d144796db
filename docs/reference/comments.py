# SPDX-License-Identifier: BSL-1.0
"""Doxygen's input filter: the comments of the public headers, which are plain ones, as Doxygen wants them.

    comments.py FILE      prints the file; no line is added or taken away, so that warnings name the right ones
"""
import re
import sys

lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
c = sys.argv[1].endswith(".h")


def cpp(line):
    if line.startswith("// SPDX"):
        return "/// \\file"
    if m := re.match(r"(\s*)//(.*)", line):
        text = m[2]
        return m[1] + "///" + ("    " if re.match(r" {3,}\S", text) else "") + text  # examples are code
    if (m := re.match(r"(.*[;{,}0-9\"]) *// (.*)", line)) and not line.startswith("}"):
        return f"{m[1]}  ///< {m[2]}"
    return "" if line.startswith(("template <>", "struct std::")) else line  # it loses its way in specialisations within std


def plain_c(line):
    if line.startswith("/* SPDX"):
        return ""
    if m := re.match(r"(#define \w+ \S+) +/\* (.*)", line):
        return f"{m[1]}  /**< {m[2]}"
    if m := re.match(r" \*( {3,}\S.*)", line):
        return " *    " + m[1]
    return re.sub(r"^/\*(?!\*)", "/**", line)


done = [plain_c(line) if c else cpp(line) for line in lines]
if c:  # the first comment is that of the file
    first = done.index("/**")
    done[first] = "/** \\file"
sys.stdout.write("\n".join(done))
