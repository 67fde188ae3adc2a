"""Executors and launchers with workers that a server forks, each of which writes what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from machine import wait_until

PATIENCE_SECONDS = 120
# Stands for a worker: it puts what it is into a file of its own, and does as it is told.
WORKER = """
import json, os, random, signal, sys, time
from quietcorpus.pipelines.runners import fork_server
fork_server.PRELOADED = ()
fork_server._IDLE_SECONDS = float(os.environ["IDLE"])
fork_server._load_kernels = lambda: time.sleep(float(os.environ["LOADING"]))
def work(own, server):
    kept = [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGINT, signal.SIGCHLD)]
    told = dict(own, pid=os.getpid(), server=server, draw=random.random(), id=os.environ.get("ID"),
                signals=[*map(repr, kept), signal.getitimer(signal.ITIMER_REAL)])
    with open(own["file"] + ".new", "w") as stream:
        json.dump(told, stream)
    os.rename(own["file"] + ".new", own["file"])
    os.write(1, f"said by {own['file']}\\n".encode())  # at once: others write there, too
    while own["deed"] == "stay" or own["deed"] == "sleep" and os.getppid() == server:
        time.sleep(0.05)
    os._exit(0 if own["deed"] == "sleep" else int(own["deed"]))
if sys.argv[1] == "ahead":
    del os.environ["ID"]
    sys.exit(fork_server.become(work, ("file", "deed", "ID"), os.getppid()))
own = {"file": sys.argv[1], "deed": sys.argv[2], "ID": "1"}
if own["deed"] == "other":  # with another environment than the first worker's
    while not os.path.exists(own["file"][:-1] + "0"):
        time.sleep(0.05)
    os.environ["JOB"] = "2"
code = fork_server.run(work, own, os.getppid())
os.write(1, f"code {code}\\n".encode())
"""
# Stands for an executor: it starts a worker for each pair of arguments, and waits for them.
PARENT = """
import subprocess, sys
program, *pairs = sys.argv[1:]
started = [subprocess.Popen([sys.executable, "-c", program, *pair.split("=")]) for pair in pairs]
for one in started:
    one.wait()
if pairs:
    sys.stdin.read()
"""
# Stands for an executor with stages: it starts a worker when the one before has ended.
STAGES = """
import subprocess, sys
program, *pairs = sys.argv[1:]
for pair in pairs:
    subprocess.run([sys.executable, "-c", program, *pair.split("=")])
sys.stdin.read()
"""
# Stands for a launcher: it starts a server, at a first line workers, and at a second needs none.
LAUNCHER = """
import subprocess, sys
program, *pairs = sys.argv[1:]
ahead = subprocess.Popen([sys.executable, "-c", program, "ahead"], stdin=subprocess.PIPE)
print(ahead.pid, flush=True)
sys.stdin.readline()
started = [subprocess.Popen([sys.executable, "-c", program, *pair.split("=")]) for pair in pairs]
sys.stdin.readline()
ahead.stdin.close()
print("code", ahead.wait(), flush=True)
sys.stdin.read()
"""

AGAIN = """
sys.stdin.readline()
print("again", subprocess.run(ahead.args, stdin=subprocess.PIPE).returncode, flush=True)
"""

ENVIRONMENT = {"IDLE": "60", "LOADING": "0", "ID": "0", "JOB": "1"}


class Workers:
    """An executor with workers, each of whom writes a file."""

    def __init__(
        self,
        folder: Path,
        *deeds: str,
        idle: float = 60,
        loading: float = 0,
        program: str = PARENT,
    ) -> None:
        self.files = [folder / f"worker-{number}" for number in range(len(deeds))]
        pairs = [f"{file}={deed}" for file, deed in zip(self.files, deeds, strict=True)]
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.parent = subprocess.Popen(
                [sys.executable, "-c", program, WORKER, *pairs],
                env=os.environ | ENVIRONMENT | {"IDLE": str(idle), "LOADING": str(loading)},
                stdin=subprocess.PIPE,
                stdout=output,
            )

    def told(self) -> list[dict[str, Any]]:
        """Return what each worker wrote of itself, once all of them have begun."""
        wait_until(lambda: all(file.exists() for file in self.files), PATIENCE_SECONDS)
        return [json.loads(file.read_text()) for file in self.files]

    def go_on(self) -> None:
        """Give a launcher its next line."""
        assert self.parent.stdin is not None
        self.parent.stdin.write(b"\n")
        self.parent.stdin.flush()

    def ahead(self) -> int:
        """Return the process id of a launcher's server, once it listens."""
        wait_until(lambda: len(self.said()) > 0, PATIENCE_SECONDS)
        server = int(self.said()[0])
        wait_until(lambda: "fork-server" in psutil.Process(server).name(), PATIENCE_SECONDS)
        return server

    def said(self) -> list[str]:
        return self.output.read_text().splitlines()

    def clients(self) -> list[psutil.Process]:
        """The workers' own processes, which Beam would watch, in order."""
        found = psutil.Process(self.parent.pid).children()
        return [one for file in self.files for one in found if str(file) in one.cmdline()]


def gone(pid: object) -> bool:
    try:
        return psutil.Process(int(str(pid))).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
