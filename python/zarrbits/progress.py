# SPDX-License-Identifier: BSL-1.0
"""How far convert() is: for a function of the caller, or as a bar of tqdm where that is installed and somebody looks at it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Union


@dataclass(frozen=True)
class Progress:
    """Bytes of the source that are done, of all of them (never 0); objects likewise; the path of the object at hand."""

    done: int
    total: int
    objects_done: int
    objects: int
    path: str


Wanted = Union[bool, Callable[[Progress], object]]


def _make_bar() -> Any:
    """None without tqdm, and where neither a terminal nor a notebook shows it."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    if not (sys.stderr is not None and sys.stderr.isatty()) and "ipykernel" not in sys.modules:
        return None
    return tqdm(unit="B", unit_scale=True, leave=False)


@contextlib.contextmanager
def shown(progress: Wanted) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """What to call with each state that the command tells; None for nothing."""
    if callable(progress):
        call = progress

        def tell(state: dict[str, Any]) -> None:
            if state["total"]:  # known: done / total is a number
                call(Progress(**{name: state[name] for name in Progress.__dataclass_fields__}))

        yield tell
        return
    bar = _make_bar() if progress else None
    if bar is None:
        yield None
        return

    def draw(state: dict[str, Any]) -> None:
        bar.total = state["total"] or None
        bar.set_postfix_str(state["path"], refresh=False)
        bar.update(state["done"] - bar.n)

    with bar:
        yield draw
