# SPDX-License-Identifier: BSL-1.0
"""What hostile servers write instead of an answer, by the handler of the connection."""

import contextlib
import time


def raw(data, after=None):
    """Bytes on the connection, and its end."""

    def write(handler):
        with contextlib.suppress(OSError):
            handler.wfile.write(data)
            if after:
                after(handler)

    return write


def drip(handler, byte=b"x"):
    """A byte now and then, for a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        handler.wfile.write(byte)
        time.sleep(0.3)


def flood(data, times):
    def write(handler):
        for _ in range(times):
            handler.wfile.write(data)

    return write
