# SPDX-License-Identifier: BSL-1.0
"""Every relative link of the Markdown files leads somewhere, and every folder that CONTRIBUTING.md names is there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_links_lead_somewhere():
    wrong, seen = [], 0
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            seen += 1
            if not (document.parent / target.split("#")[0]).exists():
                wrong.append(f"{document.relative_to(ROOT)}: {target} is not there")
    assert not wrong and seen >= 10


def test_folders_are_there():
    folders = re.findall(r"^\| `([a-z/]+/)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
    assert len(folders) >= 10 and [f for f in folders if not (ROOT / f).is_dir()] == []
