# SPDX-License-Identifier: BSL-1.0
from __future__ import annotations

import os
from typing import Any, BinaryIO

from fsspec.implementations.local import LocalFileSystem

from .local_files import LocalFiles


class AllowedFiles(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """LocalFiles for fsspec."""

    def __init__(self, files: LocalFiles, **options: Any) -> None:
        super().__init__(**options)
        self._files = files

    def _open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
        if mode != "rb":
            raise OSError("references are read-only")
        return self._files.open(path)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        with self._files.open(path) as f:
            size = os.fstat(f.fileno()).st_size
            first, last = slice(start, end).indices(size)[:2]
            f.seek(first)
            return f.read(max(0, last - first))
