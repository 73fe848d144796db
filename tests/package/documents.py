# SPDX-License-Identifier: BSL-1.0
"""Every relative link of the Markdown files leads somewhere, and every folder that CONTRIBUTING.md names is there. documents.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
bad, seen = [], 0
for document in [*root.glob("*.md"), *root.glob("docs/*.md")]:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        seen += 1
        if not (document.parent / target.split("#")[0]).exists():
            bad.append(f"{document.relative_to(root)}: {target} is not there")
for folder in re.findall(r"^\| `([a-z/]+/)`", (root / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M):
    seen += 1
    if not (root / folder).is_dir():
        bad.append(f"CONTRIBUTING.md: {folder} is not there")
print("\n".join(bad))
print(f"{seen} links and folders, {len(bad)} wrong")
sys.exit(1 if bad or seen < 10 else 0)
