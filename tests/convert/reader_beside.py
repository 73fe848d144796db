# SPDX-License-Identifier: BSL-1.0
"""A reader that looks at a store all the time, and commands that are killed meanwhile."""

import collections
import os
import signal
import subprocess
import threading
import time
import traceback

from same_store import COMMAND, wait_for_group


class Reader(threading.Thread):
    """Calls `look` again and again: what it returns is counted in `seen`, and nothing may be wrong with what it sees.

    with Reader(look) as reader:
        ...                          # a store comes to be
        with reader.paused:
            shutil.rmtree(store)     # by the test: no reader has to stand that
    """

    def __init__(self, look):
        super().__init__()
        self.look, self.seen, self.wrong = look, collections.Counter(), []
        self.stop, self.paused = threading.Event(), threading.Lock()

    def run(self):
        while not self.stop.is_set() and not self.wrong:
            with self.paused:
                try:
                    self.seen[self.look()] += 1
                except Exception as e:  # noqa: BLE001  (whatever it is, a reader must not see it)
                    self.wrong.append("".join(traceback.format_exception(e)))
            time.sleep(0.001)  # else the lock is taken again before another thread can have it

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, error, *_):
        self.stop.set()
        self.join()
        if error is None:
            assert not self.wrong and self.seen, self.wrong


def kill_after(seconds, *command, begun=None):
    """Kills all processes of a command after its start, or after this file has come; then none of them is left."""
    process = subprocess.Popen([COMMAND, *command], start_new_session=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while begun and process.poll() is None and not os.path.exists(begun):
        time.sleep(0.001)
    time.sleep(seconds)
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    wait_for_group(process.pid)
