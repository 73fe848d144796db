# SPDX-License-Identifier: BSL-1.0
"""Every relative link of the Markdown files leads to a file, and to a heading of it;
every folder that CONTRIBUTING.md names exists."""

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


def test_the_table_of_contents_has_every_page():
    contents = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [p for folder in ("guide", "reference", "explanation") for p in sorted((ROOT / "docs" / folder).glob("*.*"))]
    assert len(pages) >= 30
    assert [str(p) for p in pages if p.suffix != ".svg" and f"]({p.relative_to(ROOT / 'docs')})" not in contents] == []
