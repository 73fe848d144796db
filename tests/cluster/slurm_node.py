# SPDX-License-Identifier: BSL-1.0
"""Slurm on this one machine, for as long as the `with` block lasts. Needs root, slurmctld, slurmd, slurm-client and munge.

with SlurmNode(folder) as slurm:
    slurm.run("srun", "-n", "2", "hostname")
"""

import os
import shutil
import signal
import socket
import subprocess
import time

DAEMONS = ("munged", "slurmctld", "slurmd")


class NotHere(Exception):
    """Slurm cannot be started here; the text says why."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class SlurmNode:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.processes = []

    def __enter__(self):
        if os.geteuid() != 0:
            raise NotHere("only root can start slurmd")
        for name in DAEMONS + ("srun", "sbatch"):
            if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
                raise NotHere(f"{name} is not installed")
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("state", "spool", "munge"):
            os.makedirs(os.path.join(self.folder, name))
        node = socket.gethostname().split(".")[0]
        munge_socket = os.path.join(self.folder, "munge", "socket")
        key = os.path.join(self.folder, "munge", "key")
        with open(key, "wb") as f:
            f.write(os.urandom(128))
        os.chmod(key, 0o600)
        self.configuration = os.path.join(self.folder, "slurm.conf")
        with open(self.configuration, "w") as f:
            f.write(f"""ClusterName=one
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={munge_socket}
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmUser=root
SlurmdUser=root
MpiDefault=none
NodeName={node} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={node} Default=YES MaxTime=INFINITE State=UP
""")
        self.environment = {
            **os.environ,
            "SLURM_CONF": self.configuration,
            "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin",
        }
        try:
            self.start(
                "munged",
                "--foreground",
                "--force",
                "--socket",
                munge_socket,
                "--key-file",
                key,
                "--pid-file",
                f"{self.folder}/munge/pid",
                "--log-file",
                f"{self.folder}/munge/log",
                "--seed-file",
                f"{self.folder}/munge/seed",
            )
            self.start("slurmctld", "-D", "-c", "-f", self.configuration)
            self.start("slurmd", "-D", "-f", self.configuration)
            self.wait_until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, name, *arguments):
        log = open(os.path.join(self.folder, name + ".log"), "wb")
        self.processes.append(
            subprocess.Popen([name, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        )
        time.sleep(0.5)

    def wait_until_idle(self):
        for _ in range(60):
            state = subprocess.run(
                ["sinfo", "-h", "-o", "%T"], env=self.environment, capture_output=True, text=True
            ).stdout.strip()
            if state == "idle":
                return
            for p in self.processes:
                if p.poll() is not None:
                    raise NotHere(f"{p.args[0]} ended with status {p.returncode} ({self.folder}/{p.args[0]}.log)")
            time.sleep(0.5)
        raise NotHere(f"the node did not come up: {state or 'no answer from slurmctld'}")

    def run(self, *command, timeout=120, **options):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout, **options)

    def __exit__(self, *_):
        for p in reversed(self.processes):
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
