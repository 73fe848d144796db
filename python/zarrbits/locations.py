# SPDX-License-Identifier: BSL-1.0
"""What the calls take as a source or a store: names, paths, objects of universal_pathlib (UPath) and open files of h5py."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Union
from urllib.parse import unquote, urlsplit


class Upath(Protocol):
    """The members of a UPath of universal_pathlib that are used."""

    @property
    def protocol(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def storage_options(self) -> Mapping[str, Any]: ...


Location = Union[str, "os.PathLike[str]", Upath]  # and h5py.File, which has no types
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_SECRETS = re.compile(r"(?is)^(https?://)(?:[^/@]*@)?([^?]*).*")
_REACHED = {  # s3a and s3n: Hadoop's names for it; gcs: fsspec's; azure: obstore's
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "abfs",
    "abfss": "abfss",
    "http": "http",
    "https": "https",
}


AZURE = ("az", "abfs", "abfss")


def cloud_of(name: str) -> str:
    """The scheme of a name; one for all that Azure has."""
    scheme = name.partition("://")[0] if "://" in name else ""
    return "az" if scheme in AZURE else scheme


def is_location(given: Any) -> bool:
    """Whether it is one source, and not several."""
    return isinstance(given, (str, os.PathLike)) or _is_upath(given) or _is_h5py(given)


def name_of(given: Any, lock: bool = True) -> str:
    """The name under which the command finds it. ValueError where it cannot."""
    if _is_h5py(given):
        return _name_of_h5py(given, lock)
    if _is_upath(given):
        local = given.protocol in ("", "file", "local")
        return os.fsdecode(given.path) if local else _name_of_url(str(given))
    if isinstance(given, (str, os.PathLike)):
        return _name_of_url(os.fsdecode(given))
    raise TypeError(f"zarrbits: a source or a store is a name, a path, a UPath or an h5py.File, not {type(given).__name__}")


def storage_options_of(locations: list[Any]) -> Mapping[str, Any] | None:
    """What UPath objects say of their servers."""
    found = [dict(one.storage_options) for one in locations if _is_upath(one) and getattr(one, "storage_options", None)]
    if any(options != found[0] for options in found):
        raise ValueError("zarrbits: the UPath objects have different storage_options; set storage_options for all of them")
    return found[0] if found else None


def absolute(name: str) -> str:
    """The same for processes in other folders."""
    if name.startswith("@"):
        return "@" + absolute(name[1:])
    return name if _SCHEME.match(name) else os.path.abspath(name)


def in_short(names: Sequence[str]) -> str:
    """The first, and how many more there are. Of a URL without a user and a query, which may be secrets."""
    first = '"' + _SECRETS.sub(r"\1\2", names[0]) + '"' if names else "nothing"
    return first + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _name_of_url(name: str) -> str:
    match = _SCHEME.match(name)
    if not match or os.path.exists(name):
        return name
    scheme = match.group(1).lower()
    if scheme == "file":
        parts = urlsplit(name)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f'zarrbits: "{name}" is a file of the machine "{parts.netloc}"; use the path that it has here')
        # '?' and '#' are characters as others in the name of a file
        return unquote(name[match.end() + len(parts.netloc) :])
    if scheme not in _REACHED:
        raise ValueError(
            f'zarrbits: "{scheme}://" is not a scheme that zarrbits knows; use a path, s3://BUCKET/KEY, gs://BUCKET/KEY, '
            "az://CONTAINER/KEY or an https:// URL"
        )
    return f"{_REACHED[scheme]}://{name[match.end() :]}"


def _is_upath(given: Any) -> bool:
    """Those of servers are not always os.PathLike."""
    return all(hasattr(given, name) for name in ("protocol", "path", "storage_options"))


def _is_h5py(given: Any) -> bool:
    h5py = sys.modules.get("h5py")
    return h5py is not None and isinstance(given, h5py.File)


def _name_of_h5py(file: Any, lock: bool) -> str:
    if not file:
        raise ValueError("zarrbits: the h5py.File is closed; use its name")
    name = os.fsdecode(file.filename)
    if not os.path.isfile(name) and not _SCHEME.match(name):
        raise ValueError(
            f"zarrbits: the h5py.File {name!r} is not a file on a disk, where the command could read it; copy it to one"
        )
    if file.mode != "r":
        if lock and not file.swmr_mode:
            raise ValueError(
                f'zarrbits: "{name}" is open for writing in this process; close it first, or set lock=False and write '
                "nothing until the call ends"
            )
        file.flush()  # the command reads the file
    return name
