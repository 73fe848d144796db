# SPDX-License-Identifier: BSL-1.0
"""A long stream needs no more memory than a short one."""

import random
import subprocess
import threading

from command import COMMAND, packbits

MIB = 256
LIMIT_KIB = 64 << 10  # what users were promised


def peak_kib(pid):
    """The most that a running process ever held. (What wait4() tells includes the parent's memory at the fork.)"""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


class TestMemory:
    def test_a_pipeline_of_256_mib_runs_in_bounded_memory_and_gives_its_input_back(self):
        for codec in (packbits(last_bit=11), packbits(last_bit=11, padding_encoding="last_byte")):
            rng = random.Random(9)
            block = b"".join(rng.getrandbits(12).to_bytes(2, "little") for _ in range(1 << 19))
            arguments = ["--data-type", "uint16", "--codec", codec]
            encode = subprocess.Popen([COMMAND, "encode", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            decode = subprocess.Popen([COMMAND, "decode", *arguments], stdin=encode.stdout, stdout=subprocess.PIPE)
            encode.stdout.close()

            def feed():
                for _ in range(MIB):
                    encode.stdin.write(block)
                encode.stdin.close()

            writer = threading.Thread(target=feed)
            writer.start()
            peak = {encode.pid: 0, decode.pid: 0}
            wrong = 0
            for i in range(MIB):
                wrong += decode.stdout.read(len(block)) != block
                if i % 8 == 0:
                    peak = {pid: max(kib, peak_kib(pid)) for pid, kib in peak.items()}
            rest = decode.stdout.read()
            decode.stdout.close()
            writer.join()
            assert (encode.wait(60), decode.wait(60), wrong, rest) == (0, 0, 0, b"")
            for kib in peak.values():
                assert 0 < kib < LIMIT_KIB, peak
