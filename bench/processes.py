# SPDX-License-Identifier: BSL-1.0
"""What a whole process takes."""

import os
import resource
import shutil
import subprocess
import time


def measured(command, target, log):
    """CPU and elapsed seconds of a process that writes `target`, which is removed before; None if it fails."""
    shutil.rmtree(target, ignore_errors=True)
    if os.path.exists(target):
        os.remove(target)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, check=False, stdout=log, stderr=log)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds
