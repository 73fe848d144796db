# SPDX-License-Identifier: BSL-1.0
"""What the calls of calls.py give: the command's reports, which notebooks show as tables."""
from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any, Dict, List, Optional, Sequence


@dataclass(frozen=True)
class Outcome:
    """What became of one object, or of one attribute of it."""

    path: str
    kind: str
    outcome: str
    attribute: Optional[str] = None
    reason: Optional[str] = None
    lossy: bool = False


@dataclass(frozen=True)
class Report:
    """What convert() did. `document` is all of the command's report."""

    source: str
    store: str
    counts: Dict[str, int]
    objects: List[Outcome]
    document: Dict[str, Any] = field(repr=False)

    @property
    def lost(self) -> List[Outcome]:
        """What is not in the store, or cannot be rebuilt from it; not what include and exclude left out."""
        return [o for o in self.objects if o.lossy or (o.outcome == "skipped" and o.reason != "not selected")]

    def _repr_html_(self) -> str:
        return _table(("outcome", "objects"), list(self.counts.items())) + (
            _table(("lost", "kind", "reason"), [(o.path, o.kind, o.reason or "") for o in self.lost]) if self.lost else "")


@dataclass(frozen=True)
class Plan:
    """What convert() would do. `complete`: whether all of the source would be in the store."""

    complete: bool
    datasets: List[Dict[str, Any]]
    document: Dict[str, Any] = field(repr=False)

    def _repr_html_(self) -> str:
        return _table(("dataset", "outcome", "how"), [(d.get("path", ""), d.get("outcome", ""), d.get("how", d.get("reason", ""))) for d in self.datasets])


@dataclass(frozen=True)
class Verification:
    """How a store compares with its source. `equal`: nothing differs, is missing or cannot be read; `complete`: and nothing was left unchecked."""

    equal: bool
    complete: bool
    document: Dict[str, Any] = field(repr=False)

    def _repr_html_(self) -> str:
        rows = [(k, v.get("equal", 0), v.get("differs", 0), v.get("missing", 0)) for k, v in self.document.items() if isinstance(v, dict) and "equal" in v]
        return _table(("", "equal", "differs", "missing"), rows)


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"
    return "<table>" + line(head, "th") + "".join(line(r, "td") for r in rows) + "</table>"
