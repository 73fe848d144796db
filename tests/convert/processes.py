# SPDX-License-Identifier: BSL-1.0
"""What a process took: its processor time, and the most memory that it ever held."""

import json
import os
import subprocess
import sys

COMMAND = os.environ["ZARRBITS_COMMAND"]
LARGE = bool(os.environ.get("ZARRBITS_LARGE"))
SANITIZED = bool(os.environ.get("ZARRBITS_SANITIZED"))  # a build with sanitizers: memory and time tell nothing


class Taken:
    def __init__(self, status, cpu, peak, errors):
        self.status, self.cpu, self.peak, self.errors = status, cpu, peak, errors


def run(*arguments, output=False):
    """zarrbits with these arguments, and the processes that it starts. The peak is that of the largest of them. `output`: its
    standard output is among the errors."""
    # a new process counts what the one held that it was started from, so that has to be a small one: this file, without numpy
    done = subprocess.run(
        [sys.executable, "-S", __file__, "all" if output else "errors", COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return Taken(**json.loads(done.stdout), errors=done.stderr)


if __name__ == "__main__":
    to_errors, to_nowhere = (os.POSIX_SPAWN_DUP2, 2, 1), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[to_errors if sys.argv[1] == "all" else to_nowhere])
    _, status, usage = os.wait4(pid, 0)
    json.dump(
        {"status": os.waitstatus_to_exitcode(status), "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024},
        sys.stdout,
    )
