# SPDX-License-Identifier: BSL-1.0
"""Which local files references may lead to: whoever made them may have written any name."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import BinaryIO, Union

from .command import Error, Path
from .servers import is_web

External = Union[None, Path, Sequence[Path]]
_FILE = "file://"


class NotRegular(OSError):
    pass


def open_regular(name: str) -> BinaryIO:
    """A file that is a regular one; a FIFO or a device would block, or never end."""
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular(f'"{name}" is not a regular file')
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def list_of(external: External) -> list[Path]:
    return [] if external is None else [external] if isinstance(external, (str, os.PathLike)) else list(external)


class LocalFiles:
    """Regular files in the folder of the references or below, symbolic links resolved, and what `external` allows:
    folders, or "all"; URLs in it are of servers."""

    def __init__(self, references: str, external: External = None) -> None:
        given = [f for f in list_of(external) if not is_web(os.fspath(f))]
        self._references = references
        self._all = "all" in given
        folders = [os.path.dirname(references), os.path.dirname(os.path.realpath(references))]
        for folder in (os.fspath(f) for f in given if f != "all"):
            if not os.path.isdir(folder):
                raise Error(
                    f'zarrbits: external is "{folder}", which is not a folder; use a folder whose files may be read, or "all"', 1
                )
            folders.append(folder)
        self._folders = [os.path.realpath(f) for f in folders]
        self._names: dict[str, str] = {}

    def name_of(self, url: str) -> str:
        """The real name of a file that may be read. Raises Error for any other that is there, OSError where there is none."""
        known = self._names.get(url)
        if known is not None:
            return known
        name = os.path.realpath(url[len(_FILE) :] if url.startswith(_FILE) else url)
        info = os.stat(name)
        why = None
        if not stat.S_ISREG(info.st_mode):
            why = "is not a regular file"
        elif not self._all and not any(name.startswith(f.rstrip("/") + "/") for f in self._folders):
            why = 'is not in their folder or below; if it may be read, give its folder as external=, or external="all"'
        if why:
            raise Error(f'zarrbits: "{self._references}" refers to "{name}", which {why}', 1)
        self._names[url] = name
        return name

    def stat(self, url: str) -> os.stat_result:
        with self.open(url) as f:
            return os.fstat(f.fileno())

    def open(self, url: str) -> BinaryIO:
        return open_regular(self.name_of(url))
