# SPDX-License-Identifier: BSL-1.0
"""Doxygen's input filter: the comments of the public headers, which are plain ones, as Doxygen wants them.

comments.py FILE      prints the file; no line is added or taken away, so that warnings name the right ones
"""

import os
import re
import sys

lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
c = sys.argv[1].endswith(".h")
# the group of groups.dox that each header belongs to
GROUPS = {
    "codec": "codecs",
    "data_type": "codecs",
    "bytes": "codecs",
    "packbits": "codecs",
    "chunk": "chunks",
    "transform": "chunks",
    "error": "errors",
    "codec_error": "errors",
    "encoder": "streams",
    "seekable_decoder": "streams",
    "elements": "streams",
    "checked": "streams",
    "transform_filter": "streams",
    "convert": "conversion",
    "source_name": "conversion",
    "verify": "verification",
    "inspect": "inspection",
}
hidden = os.path.basename(sys.argv[1]) == "transform_filter.hpp"
group = GROUPS.get(os.path.basename(sys.argv[1]).removesuffix(".hpp"))


def cpp(line):
    if line.startswith("// SPDX"):
        return "/// \\file"
    if m := re.match(r"(\s*)//(.*)", line):
        text = m[2]
        return m[1] + "///" + ("    " if re.match(r" {3,}\S", text) else "") + text  # examples are code
    # what the filters inherit is hidden in detail, but public
    line = re.sub(r"(namespace zarrbits::iostreams)::detail", r"\1", line) if hidden else line
    line = line.replace("public detail::transform_filter", "public transform_filter")
    if group and re.match(r"namespace zarrbits(::iostreams)? \{$", line):
        return line + f" /** \\addtogroup {group} */ /** @{{ */"
    if group and re.match(r"\}  // namespace zarrbits(::iostreams)?$", line):
        return "/** @} */ " + line
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
if sys.argv[1].endswith("/hdf5.h"):
    opening, closing = done.index("#define ZARRBITS_HDF5_H") + 1, lines.index("#endif /* ZARRBITS_HDF5_CONSTANTS_ONLY */") - 1
    assert done[opening] == done[closing] == ""
    done[opening], done[closing] = "/** \\addtogroup hdf5 */ /** @{ */", "/** @} */"
sys.stdout.write("\n".join(done))
