# SPDX-License-Identifier: BSL-1.0
"""Runs a program on a pseudo-terminal."""

import fcntl
import os
import pty
import struct
import termios


def on_terminal(arguments, columns, **environment):
    """What the program wrote to the terminal, and its exit status."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            settings = {"TERM": "xterm-256color", **environment}
            keep = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.execve(arguments[0], arguments, {**keep, **settings})
        finally:
            os._exit(99)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(terminal)
    return written.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
