# SPDX-License-Identifier: BSL-1.0
"""Every relative link of the Markdown files leads to a file, and to a heading of it; every folder that CONTRIBUTING.md names
exists, and so does every path of this tree, and every test, that a document or a source names."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def anchors(page):
    """Those that GitHub makes of headings, outside of code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


def test_links_lead_somewhere():
    wrong, seen = [], 0
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            seen += 1
            path, _, anchor = target.partition("#")
            page = document.parent / path if path else document
            if not page.exists():
                wrong.append(f"{document.relative_to(ROOT)}: {target} does not exist")
            elif anchor and anchor not in anchors(page):
                wrong.append(f"{document.relative_to(ROOT)}: {target}: the page has no such heading")
    assert not wrong and seen >= 10


def test_folders_are_there():
    folders = re.findall(r"^\| `([a-z/]+/)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
    assert len(folders) >= 10 and [f for f in folders if not (ROOT / f).is_dir()] == []


def is_there(path, beside):
    """A path from the root, or from the folder of the file that names it; * as a shell has it, and x.{c,h} for two names."""
    if braces := re.search(r"{([^{}]*)}", path):
        return all(is_there(path.replace(braces[0], word), beside) for word in braces[1].split(","))
    return any(any(folder.glob(path.rstrip("/"))) for folder in (ROOT, beside))


def paths_in(text, folders):
    """Without those that stand for many: `core/NAME.cpp`."""
    found = re.findall(rf"(?<![\w/.~$}}<>-])((?:{'|'.join(folders)})/[\w./*{{}},-]*\w[*/]?)(#[\w-]+)?", text)
    return [
        (path, anchor[1:]) for path, anchor in found if not re.search(r"[A-Z]{4}", pathlib.Path(path).name.replace("README", ""))
    ]


def wrong_paths(file, paths):
    wrong = []
    for path, anchor in paths:
        if not is_there(path, file.parent):
            wrong.append(f"{file.relative_to(ROOT)}: {path} does not exist")
        elif anchor and anchor not in anchors(ROOT / path):
            wrong.append(f"{file.relative_to(ROOT)}: {path}#{anchor}: the page has no such heading")
    return wrong


def test_paths_of_documents_are_there():
    """Those in backquotes and in blocks: of folders of this tree, and names of sources alone."""
    folders = [p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "build" and not p.name.startswith(".")]
    names = {p.name for folder in folders for p in (ROOT / folder).rglob("*.*")}
    wrong, seen = [], 0
    for document in DOCUMENTS:
        if document.name == "CHANGELOG.md" or "proposals" in document.parts:  # of earlier versions, and of other projects
            continue
        text = document.read_text(encoding="utf-8")
        blocks = re.findall(r"^ *```.*?^ *```$", text, re.M | re.S)
        words = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S))
        paths = paths_in("\n".join([*words, *blocks]), folders)
        seen += len(paths)
        wrong += wrong_paths(document, paths)
        for word in words:
            if re.fullmatch(r"[a-z_0-9]+\.(cpp|hpp|h|cmake)", word) and word not in names:
                wrong.append(f"{document.relative_to(ROOT)}: no file has the name {word}")
    assert wrong == [] and seen >= 200


def test_paths_in_sources_are_there():
    """In comments and messages: documents, scripts, tests. Not those that a variable completes, nor files of another package."""
    kinds = {".cpp", ".hpp", ".c", ".h", ".py", ".txt", ".cmake", ".sh", ".in", ".toml", ""}
    files = [
        f for top in ROOT.iterdir() if top.name not in ("build", ".git") for f in ([top] if top.is_file() else top.rglob("*"))
    ]
    wrong, seen = [], 0
    for file in files:
        if (
            file.suffix not in kinds
            or {"golden", "schema"}.intersection(file.parts)
            or file.name == "messages.txt"
            or not file.is_file()
        ):
            continue
        paths = paths_in(file.read_text(encoding="utf-8", errors="replace"), ["docs", "scripts", "tests", "cmake", "examples"])
        seen += len(paths)
        wrong += wrong_paths(
            file, [(path, anchor) for path, anchor in paths if not path.endswith("_") and "tests/data/" not in path]
        )
    assert wrong == [] and seen >= 200


def test_tests_that_documents_name_are_there():
    lists = "\n".join(
        p.read_text(encoding="utf-8") for p in [*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("tests/*/CMakeLists.txt")]
    )
    tests = set(re.findall(r"(?:_test\(|add_test\(NAME )([\w.]+)", lists))
    for prefix in [name for name in tests if name.endswith("_")]:  # cli_${name} in a loop
        tests |= {prefix + word for word in re.findall(r"\w+", lists)}
    named = [n for d in DOCUMENTS for n in re.findall(r"\btests? `(\w+)`", d.read_text(encoding="utf-8"))]
    assert len(named) >= 2 and [n for n in named if n not in tests] == []


# What runs the blocks of a document that are in a language; the first that fits.
RUN_BY = [
    (
        "README.md",
        "sh",
        "tests/package/test_demo.py, tests/convert/test_newcomers.py, tests/package/installs_and_links.sh",
    ),
    ("README.md", "python", "tests/package/test_readme.py"),
    ("README.md", "cmake", "tests/package/installs_and_links.sh, tests/package/subproject.sh"),
    ("CONTRIBUTING.md", "sh", "scripts/ci/steps"),
    ("docs/guide/*", "console", "tests/cli/test_guide.py"),
    ("docs/guide/hdf5.md", "python", "tests/filter/test_recipes.py"),
    ("docs/guide/hdf5.md", "sh", "tests/filter/test_recipes.py"),
    ("docs/guide/hdf5.md", "c", "tests/filter/test_recipes.py"),
    ("docs/guide/*", "python", "tests/interop/test_guide_programs.py"),
    ("docs/guide/c.md", "sh", "tests/package/installs_and_links.sh"),
    ("docs/guide/c.md", "c", "tests/package/test_programs.py"),
    ("docs/reference/codecs.md", "sh", "tests/interop/test_zarrs.py"),
    ("*", "cpp", "tests/package/test_programs.py"),
]


def test_every_block_is_run_by_a_test():
    """A block in a language that a page did not have before needs a row above; commands that cannot run here are indented."""
    used, wrong = set(), []
    for document in DOCUMENTS:
        name = str(document.relative_to(ROOT))
        if name.startswith("docs/proposals"):
            continue
        for language in set(re.findall(r"^ *```(\w+)$", document.read_text(encoding="utf-8"), re.M)):
            row = next((row for row in RUN_BY if document.match(row[0]) and row[1] == language), None)
            used.add(row)
            if row is None:
                wrong.append(f"{name}: nothing runs its blocks of {language}")
    assert wrong == [] and used == set(RUN_BY)
    assert [path for row in RUN_BY for path in row[2].split(", ") if not (ROOT / path).exists()] == []


def test_the_table_of_contents_has_every_page():
    contents = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [p for folder in ("guide", "reference", "explanation") for p in sorted((ROOT / "docs" / folder).glob("*.*"))]
    assert len(pages) >= 30
    assert [str(p) for p in pages if p.suffix != ".svg" and f"]({p.relative_to(ROOT / 'docs')})" not in contents] == []
