# SPDX-License-Identifier: BSL-1.0
"""References that call their sources by other names than when they were made:

zarrbits.rename_references("refs.json", "file:///data", "https://host/archive")
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any
from urllib.parse import quote

from .command import Error, Path
from .references import read


def _renamed(url: str, old: str, new: str) -> str | None:
    below = url[len(old) :]
    if not url.startswith(old) or below[:1] not in ("", "/"):
        return None
    return new + (quote(below, safe="/-._~!$&'()*+,;=:@") if new.startswith(("https://", "http://")) else below)


def rename_references(path: Path, old: str, new: str) -> int:
    """Of references in JSON, names that are `old` or below it begin with `new` instead. Returns how many files that were.

    Such files are known by their size only, as with convert(base=...): copies have times and ETags of their own.
    verify(base="FOLDER=URL") finds the local files again. The file of references is replaced in one step.
    Error where no name is like that, for a folder of Parquet, and for a URL with a user or a query, which everybody would see.
    """
    name, old, new = os.path.abspath(os.fspath(path)), old.rstrip("/"), new.rstrip("/")
    if os.path.isdir(name):
        raise Error(f'zarrbits: "{name}" has references in Parquet, which are not renamed; make them again with base=', 1)
    if not old or not new or "?" in new or "#" in new or "@" in new.partition("://")[2].partition("/")[0]:
        raise Error("zarrbits: the new name is empty, or has a user or a query, which may be a secret; leave these out", 1)
    references = read(name, "all")  # which also checks the form
    with open(name, encoding="utf-8") as f:
        document: dict[str, Any] = json.load(f)
    renamed: dict[str, str] = {}
    for key, value in document["refs"].items():
        told = _renamed(value[0], old, new) if isinstance(value, list) else None
        if told is not None:
            renamed[value[0]] = told
            document["refs"][key] = [told, *value[1:]]
    if not renamed:
        raise Error(f'zarrbits: no reference of "{name}" is to "{old}" or below; give what its names begin with', 1)
    sources = document.get("zarrbits", {}).get("sources", [])
    for source in sources:
        if (told := _renamed(source["url"], old, new)) is not None:
            source.pop("modified", None)
            source.pop("etag", None)
            renamed[source["url"]], source["url"] = told, told
    known = {s["url"] for s in sources}
    for was, told in renamed.items():
        beside = references.data_of(was)
        if beside is not None and told not in known:
            sources.append({"url": told, "size": os.path.getsize(beside)})
    temporary = f"{name}.renamed"
    with contextlib.suppress(FileNotFoundError):
        os.remove(temporary)  # of a run that was killed
    try:
        with open(temporary, "x", encoding="utf-8") as f:
            json.dump(document, f, ensure_ascii=False, separators=(",", ":"))
            f.write("\n")
        os.replace(temporary, name)
    except BaseException:  # a full disk
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
    return len(renamed)
