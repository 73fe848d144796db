#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The table in CONTRIBUTING.md allows every #include of the project, and nothing that is not used. A folder has one namespace, of
its name, and a header's guard is its path. Only the command has flags: no text in the libraries has one. And only metadata/ names
the members of a zarr.json, and the codecs.

    tests/package/includes.py FOLDER_OF_THE_PROJECT
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
outside = {"HDF5": re.compile(r"(hdf5|H5\w+)\.h"), "Boost": re.compile(r"boost/.+")}
include = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
literal, flag = re.compile(r'"((?:[^"\\]|\\.)*)"'), re.compile(r"--[a-z]")
sources = {".hpp", ".cpp", ".h", ".c"}
# Members of the metadata of nodes in Zarr v3 and v2, as far as nothing else has such members. core/ has the codecs' own.
member = re.compile(
    r'"(zarr_format|node_type|chunk_grid|chunk_key_encoding|data_type|fill_value|storage_transformers|dimension_names'
    r"|consolidated_metadata|configuration|must_understand|chunk_shapes?|index_codecs|index_location|compressor"
    r'|dimension_separator|zarr_consolidated_format)"|"/(attributes|configuration)/'
)
knows_members = {"include", "core", "library", "streams", "filter", "metadata"}
# Reports have members of these names, too.
reports = {"command/inspect_command.cpp", "command/verify_command.cpp", "inspect/inspect_hdf5.cpp", "inspect/inspect_zarr.cpp"}
reports |= {"convert/plan/plan_report.cpp", "command/suggest_command.cpp", "digest/digest.cpp", "digest/partial_digests.cpp"}
# An option has the name of a member.
reports |= {"convert/pipeline/options_json.cpp"}
# An attribute of this name is what `verify` counts.
reports |= {"export/file_writer.cpp"}
# Names of codecs that nothing else is called. The core has those of its own codecs, and `verify` must not share ours.
codec_names = re.findall(r'\{"([^"]+)", codec_id::', (root / "metadata" / "codec_id.cpp").read_text())
codec_name = re.compile("|".join(f'"{name}"' for name in codec_names if re.search(r"[._-]|crc32c", name)))
knows_codecs = knows_members | {"verify", "tests", "bench"}
codec_comparison = re.compile(  # there is a data type "bytes"
    r'\bname (==|!=) "(' + "|".join(re.escape(name) for name in codec_names if name != "bytes") + r')"'
)
# Words of the command line.
of_options = {"command/option_parsers.cpp", "command/convert_arguments.cpp", "command/export_command.cpp"}
of_options |= {"repack/layout_rules.cpp"}
# Below the jobs nothing knows their options and reports.
of_jobs = re.compile(r"zarrbits/(convert\w*|verify|inspect|export|repack|rename|digest|check)\.hpp")
below_jobs = {"array", "text", "metadata", "io", "remote", "compressors", "hdf5", "zarr", "codecs"}
below_jobs |= {"core", "library", "streams", "filter"}
# Elsewhere the namespace is the folder's name. These names belong to public functions, and to the language.
namespaces = {
    "convert": "conversion",
    "inspect": "inspection",
    "verify": "verification",
    "export": "exporting",
    "repack": "repacking",
    "digest": "digesting",
    "check": "checking",
}
block = re.compile(r"^namespace ([\w:]+) \{(.*?)^\}", re.M | re.S)
forward = re.compile(r"\s*(?:(?:class|struct|enum class) \w+;(?:\s*//.*)?\s*)+")
guard = re.compile(r"^#ifndef (\w+)\n#define \1\b", re.M)
wrong = []

# The rows, from the top: the folders of each, and what they may include. A row that says "all", or nothing at all, has no rule.
rows = []
for line in (root / "CONTRIBUTING.md").read_text().split("## Where things are")[1].split("\n## ")[0].splitlines():
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    folders = re.findall(r"`([^`]+)/`", cells[0]) if len(cells) == 3 else []
    if folders and cells[1] and cells[2] != "all":
        rows.append((folders, [name.strip("`/ ") for name in cells[2].split(",") if name.strip()]))
if len(rows) < 10:
    sys.exit('CONTRIBUTING.md has no table of folders below "Where things are"')

row_of = {folder: i for i, (folders, _) in enumerate(rows) for folder in folders}
for i, (folders, allowed) in enumerate(rows):
    for name in allowed:
        if name not in outside and row_of.get(name, i) >= i:
            wrong.append(f"CONTRIBUTING.md: {folders[0]}/ may include {name}/, which is not a folder that stands above it")


def home(path):
    """The innermost folder of the table that a file is in."""
    return max((f for f in row_of if path.startswith(f + "/")), key=len, default=None)


used, seen, count, edges = set(), {}, 0, {}
for top in sorted({folder.split("/")[0] for folder in row_of}):
    for file in sorted((root / top).rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix not in sources:
            continue
        place = home(path)
        if place is None:
            wrong.append(f"{path} is in no folder of the table in CONTRIBUTING.md")
            continue
        if top not in ("include", "core", "library", "streams", "filter"):
            other = seen.setdefault(file.name, path)
            if other != path:
                wrong.append(f"{path} has the name of {other}; names tell duties apart")
        if top != "command":
            of_aws = re.compile(r"(export-credentials|sso login) --profile|--format process")  # another command's
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if not line.lstrip().startswith("//") and any(
                    flag.search(of_aws.sub("", text)) for text in literal.findall(line)
                ):
                    wrong.append(f"{path}:{number} names a flag of the command; name the member of the options in backquotes")
        if top not in knows_members and path not in reports:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                for match in () if line.lstrip().startswith("//") else member.finditer(line.split("  // ")[0]):
                    wrong.append(
                        f"{path}:{number} names {match[0]}, a member of the metadata of nodes: metadata/ has functions for it"
                    )
        if top not in knows_codecs and path not in of_options:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = codec_name.search(line) or codec_comparison.search(line)
                if match and not line.lstrip().startswith("//"):
                    wrong.append(f"{path}:{number} has {match[0]}: codecs are compared and written as metadata::codec_id")
        if top not in ("include", "core", "library", "streams", "filter"):
            namespace = "zarrbits::" + namespaces.get(top, top)
            for name, content in block.findall(file.read_text()):
                # "zarrbits" itself has what the public headers declare
                if (
                    name not in (namespace, "zarrbits")
                    and not name.startswith(namespace + "::")
                    and not forward.fullmatch(content)
                ):
                    wrong.append(f"{path} has code in the namespace {name}; that of its folder is {namespace}")
            if file.suffix == ".hpp":
                wrong += [
                    f"{path} has `{line}`, which gives every file that includes it a second name for one thing"
                    for line in re.findall(r"^using (?:\w+::)+\w+;", file.read_text(), re.M)
                ]
        if file.suffix == ".hpp":
            name = path.removeprefix("include/zarrbits/").upper()
            expected = "ZARRBITS_" + re.sub(r"\W", "_", name).removeprefix("ZARRBITS_")
            actual = guard.search(file.read_text())
            if not actual or actual[1] not in (expected, "ZARRBITS_" + expected):
                wrong.append(f"{path} has the include guard {actual[1] if actual else 'none'}, and not {expected}")
        for name in include.findall(file.read_text()):
            if name.startswith("boost/") and "/detail/" in name:
                wrong.append(f"{path} includes {name}: what is in detail/ is Boost's own, and changes without a word")
            if of_jobs.fullmatch(name) and top in below_jobs:
                wrong.append(f"{path} includes {name}, which is above it: {top}/ knows no options and reports of jobs")
            target = "include/" + name if name.startswith("zarrbits/") else name
            edges.setdefault(path, set()).add(target)
            to = next((known for known, pattern in outside.items() if pattern.fullmatch(name)), None) or home(target)
            if to is None:
                continue  # a system's header, or one of another library
            count += 1
            folders, allowed = rows[row_of[place]]
            if to in folders:
                continue
            by = to if to in outside else next((a for a in allowed if a in rows[row_of[to]][0]), to)
            used.add((row_of[place], by))
            if by not in allowed:
                wrong.append(f"{path} includes {name}: the table in CONTRIBUTING.md has no arrow from {place}/ to {to}")

for i, (folders, allowed) in enumerate(rows):
    for name in allowed:
        if name not in outside and (i, name) not in used:
            wrong.append(f"CONTRIBUTING.md: nothing in {folders[0]}/ includes {name}, which it may; take it out")


def circle(path, above):
    """The files of a circle of includes that leads back to the first of `above`."""
    for to in sorted(edges.get(path, ())):
        if to == above[0]:
            return above
        if to in edges and to not in above and to not in free:
            found = circle(to, [*above, to])
            if found:
                return found
    free.add(path)  # nothing below it leads back
    return None


for file in sorted(edges):
    free = set()
    found = circle(file, [file])
    if found and file == min(found):
        wrong.append("a circle of includes: " + " includes ".join([*found, found[0]]))

if count < 500:
    wrong.append(f"only {count} #include lines were found")
print("\n".join(wrong) if wrong else f"{count} #include lines, all as the table in CONTRIBUTING.md has them")
sys.exit(bool(wrong))
