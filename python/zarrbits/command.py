# SPDX-License-Identifier: BSL-1.0
"""The command `zarrbits` as a child process of Python, so that no second libhdf5 is in this one.
calls.py has a function for each of its verbs."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

from .locations import Location, in_short
from .remote import Secrets
from .words import flags_of, in_python

Path = Union[str, "os.PathLike[str]"]
Option = Union[str, int, float, Path, Sequence[Union[str, int, "os.PathLike[str]"]], Mapping[str, Union[str, int]], None]
_END = 120  # seconds that the command has to clean up after SIGTERM

_NEVER_EMPTY = ("include", "chunk", "shard")  # a list of these

logger = logging.getLogger("zarrbits")
logger.addHandler(logging.NullHandler())  # silent until the program asks for it, by logging.basicConfig() or the like


class Error(RuntimeError):
    """What the command said.

    status: its exit status, 1 for a failure, 2 for wrong options.
    code: what went wrong, such as "not_found" or "changed" (docs/guide/python.md lists them); "" where the command does not say.
    file, object: what it is about, a file, a store or a server, and the path of an object in it; "" where it is about none.
    """

    def __init__(self, sentence: str, status: int, code: str = "", file: str = "", object: str = "") -> None:
        super().__init__(sentence)
        self.status, self.code, self.file, self.object = status, code, file, object

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is pickled by its `args`, which are the sentence alone, and OSError has a way of its own:
        # a pool of processes, or a cluster, could not send such an error back.
        return type(self), (str(self), self.status, self.code, self.file, self.object), self.__dict__


class NotFound(Error, FileNotFoundError):
    """A file that is not there."""


class Exists(Error, FileExistsError):
    """A store that is there already."""


class Denied(Error, PermissionError):
    """A file that may not be read or written."""


class WrongOption(Error, ValueError):
    """An option, or a value of one, that the command does not take."""


_KINDS: dict[str, type[Error]] = {"not_found": NotFound, "permission_denied": Denied, "already_exists": Exists}


def error_of(said: Log, status: int, otherwise: str) -> Error:
    """The error for what the command said, in Python's words and of Python's kind."""
    last = said.errors[-1] if said.errors else {}
    sentence = "\n".join(f"zarrbits: {e['message']}" for e in said.errors) or said.rest or otherwise
    code = last.get("code", "")
    kind = WrongOption if status == 2 else _KINDS.get(code, Error)
    return kind(in_python(sentence), status, code, last.get("file", ""), last.get("object", ""))


class Log:
    """What the command wrote to standard error, a JSON object a line."""

    def __init__(self, said: bytes) -> None:
        self.errors: list[dict[str, str]] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []
        rest = []
        for line in said.decode(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                level = entry["level"]
            except (ValueError, TypeError, KeyError):
                rest.append(line)  # of a library, or of a process that dies
                continue
            if level == "error":
                self.errors.append(entry)
            elif level == "warning":
                self.warnings.append(entry["message"])
            else:
                self.notes.append(entry["message"])
        self.rest = "\n".join(rest).strip()


def calls_this_package(path: str) -> bool:
    """Whether the file is the script that pip makes of main(), which would start itself again and again."""
    try:
        with open(path, "rb") as f:
            return b"zarrbits.command" in f.read(1024)
    except OSError:
        return False


def program() -> str:
    """The path of the command: that of ZARRBITS_COMMAND, this package's, or the one on PATH."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "zarrbits")
    on_path = [shutil.which("zarrbits", path=folder) for folder in os.get_exec_path()]
    for candidate in (os.environ.get("ZARRBITS_COMMAND"), here if os.path.exists(here) else None, *on_path):
        if candidate and not calls_this_package(candidate):
            return candidate
    raise Error("zarrbits: this package was installed without the command; build it, and name it by ZARRBITS_COMMAND or PATH", 1)


def certificates() -> dict[str, str]:
    """A variable with certifi's certificates, for a command that was built without a place for any, as the wheel's is."""
    try:
        import certifi
    except ImportError:
        return {}
    return {"ZARRBITS_CERTIFI": certifi.where()}


def require_values(options: dict[str, Option]) -> None:
    """An empty value comes from a variable that is not set, or a search that found nothing. Without the option, the command
    would do it with everything."""
    for name, value in options.items():
        is_list = isinstance(value, (list, tuple))
        if (isinstance(value, str) and not value) or (is_list and ("" in value or (not value and name in _NEVER_EMPTY))):  # type: ignore[operator]
            raise WrongOption(f"zarrbits: `{name}` is empty; set a value, or None to do without", 2)


def arguments(options: dict[str, Option]) -> list[str]:
    """The flags of keywords."""
    flags: list[str] = []
    for name, value in options.items():
        flag, negated = flags_of(name)
        if value is None:
            continue
        if isinstance(value, bool):
            flags += filter(None, [flag if value else negated])
        elif not flag:
            raise WrongOption(f"zarrbits: `{name}` is {value!r}; set True or False", 2)
        elif isinstance(value, (list, tuple)) and name in ("chunk", "shard") and not any(isinstance(n, str) for n in value):
            # the comma at the end tells a shape of one dimension from a size
            flags.append(f"{flag}={','.join(map(str, value))}{',' if len(value) == 1 else ''}")
        else:
            if isinstance(value, Mapping):
                value = [f"{pattern}={one}" for pattern, one in value.items()]
            for one in value if isinstance(value, (list, tuple)) else [value]:
                flags.append(f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return flags


def _ending(status: int) -> str:
    """For a command that had no time to say more."""
    if status >= 0:
        return f"failed with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # one of those for real time
        name = f"signal {-status}"
    return f"was ended by {name}" + (", probably for lack of memory, or by a user" if -status == signal.SIGKILL else "")


def _end(child: subprocess.Popen[bytes]) -> None:
    """The command cleans up and leaves nothing that looks whole.
    SIGTERM, since a shell's `&` makes all that it starts ignore SIGINT."""
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(timeout=_END)
    except BaseException:  # it does not end, or Ctrl-C again
        child.kill()
        child.wait()
        raise


def _collect(child: subprocess.Popen[bytes]) -> tuple[dict[str, bytes], list[threading.Thread]]:
    """Reads both outputs while this thread does something else."""
    got: dict[str, bytes] = {}

    def read(name: str, stream: Any) -> None:
        with stream:
            got[name] = stream.read()

    threads = [
        threading.Thread(target=read, args=(name, stream), daemon=True)
        for name, stream in (("out", child.stdout), ("said", child.stderr))
    ]
    for thread in threads:
        thread.start()
    return got, threads


def run(
    verb: str,
    paths: Sequence[Location],
    options: dict[str, Option],
    accepted: Sequence[int],
    told: Callable[[dict[str, Any]], None] | None = None,
    json_wanted: bool = True,
) -> tuple[dict[str, Any], int]:
    """(the command's report, its exit status). `told` is called in this thread with each state of the work.
    Its warnings become Python's."""
    document, status, sentences = execute(verb, paths, options, accepted, told, json_wanted)
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=3)
    return document, status


def execute(
    verb: str,
    paths: Sequence[Location],
    options: dict[str, Option],
    accepted: Sequence[int],
    told: Callable[[dict[str, Any]], None] | None = None,
    json_wanted: bool = True,
) -> tuple[dict[str, Any], int, list[str]]:
    """(the command's report, its exit status, its warnings)."""
    options = dict(options)
    require_values(options)
    secrets = Secrets(options, paths)
    command = [program(), verb, *(["--json"] if json_wanted else []), *arguments(options), "--", *secrets.paths]
    environment: dict[str, str] = certificates() | dict(os.environ) | secrets.environment
    ends: tuple[int, int] | None = None
    passed: tuple[int, ...] = ()
    environment.pop("ZARRBITS_PROGRESS_FD", None)
    environment["ZARRBITS_LOG_FORMAT"] = "json"
    environment["ZARRBITS_PARENT"] = str(os.getpid())  # the command ends when this process is killed
    if told is not None:
        ends = os.pipe()
        environment["ZARRBITS_PROGRESS_FD"], passed = str(ends[1]), (ends[1],)
    passed += secrets.descriptors
    logger.debug("%s", shlex.join(command))  # no secret is among its arguments
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, pass_fds=passed
        )
    except BaseException:
        for end in ends or ():
            os.close(end)
        raise
    finally:
        secrets.close()
    got, threads = _collect(child)
    try:
        if ends is not None and told is not None:
            os.close(ends[1])
            with os.fdopen(ends[0], "rb") as lines:
                try:
                    for line in lines:  # until both of the command's processes are gone
                        told(json.loads(line))
                except BaseException:
                    _end(child)  # while this end is open: the command cleans up in peace
                    raise
        child.wait()
    except BaseException:
        if child.poll() is None:
            _end(child)
        raise
    finally:
        for thread in threads:
            thread.join()
    said = Log(got.get("said", b""))
    sentences = [in_python(sentence) for sentence in said.warnings]
    for note in said.notes:
        logger.info("%s", in_python(note))
    for sentence in sentences:
        logger.warning("%s", sentence)
    seconds = time.monotonic() - began
    logger.info("zarrbits %s of %s: exit status %d after %.2f s", verb, in_short(secrets.paths), child.returncode, seconds)
    # there was nothing to do, or a partition was done, and so nothing is told
    nothing = verb == "finalize" or bool(options.get("resume") or options.get("append"))
    whole = child.returncode == 0 and (not json_wanted or nothing)
    if child.returncode not in accepted or not (whole or got.get("out", b"").strip()):
        raise error_of(said, child.returncode, f"zarrbits: {verb} {_ending(child.returncode)}")
    return json.loads(got["out"].strip() or b"{}"), child.returncode, sentences


def main() -> None:
    """`python -m zarrbits`, and `zarrbits` on PATH: the command itself."""
    try:
        path = program()
    except Error as e:
        sys.exit(str(e))
    os.execve(path, [path, *sys.argv[1:]], certificates() | dict(os.environ))
