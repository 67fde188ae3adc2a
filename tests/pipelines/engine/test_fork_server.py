"""Workers are forked by one server, end as their own processes do, and are nobody else's."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from machine import wait_until

from quietcorpus.pipelines.engine import fork_server
from quietcorpus.pipelines.environment.version import environment_digest

PATIENCE_SECONDS = 20
# Stands for a worker: it puts what it is into a file of its own, and does as it is told.
WORKER = """
import json, os, random, signal, sys, time
from quietcorpus.pipelines.engine import fork_server
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
        """Return the process id of a launcher's server."""
        wait_until(lambda: len(self.said()) > 0, PATIENCE_SECONDS)
        return int(self.said()[0])

    def said(self) -> list[str]:
        return self.output.read_text().splitlines()

    def clients(self) -> list[psutil.Process]:
        """The workers' own processes, which Beam would watch, in order."""
        found = psutil.Process(self.parent.pid).children()
        return [one for file in self.files for one in found if str(file) in one.cmdline()]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Workers]]:
    def make(*deeds: str, **options: object) -> Workers:
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        made.append(Workers(folder, *deeds, **options))  # type: ignore[arg-type]
        return made[-1]

    made: list[Workers] = []
    yield make
    for one in made:
        one.parent.kill()
        one.parent.communicate()


def gone(pid: object) -> bool:
    try:
        return psutil.Process(int(str(pid))).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_workers_share_a_server(start: Callable[..., Workers]) -> None:
    """Kills: a server for each worker; variables, or draws, of another worker; an exit code or a
    line of a worker's that its own process does not pass on; a worker with handlers of the server's
    own.
    """
    workers = start("0", "3", "sleep")
    first, second, third = workers.told()
    assert len({one["server"] for one in (first, second, third)}) == 1
    assert len({one["pid"] for one in (first, second, third)}) == 3
    assert len({one["draw"] for one in (first, second, third)}) == 3
    assert {one["id"] for one in (first, second, third)} == {None}  # it is a worker's own
    expected = [repr(signal.SIG_DFL), repr(signal.default_int_handler), repr(signal.SIG_DFL)]
    assert third["signals"] == [*expected, [0, 0]]
    assert [one["file"] for one in (first, second, third)] == [*map(str, workers.files)]
    wait_until(lambda: len(workers.said()) == 5, PATIENCE_SECONDS)
    assert {*workers.said()} == {f"said by {file}" for file in workers.files} | {"code 0", "code 3"}
    assert not gone(third["pid"])


def test_a_worker_of_another_environment(start: Callable[..., Workers]) -> None:
    """Kills: a fork with the key, or the settings, of another job."""
    workers = start("sleep", "other")
    wait_until(lambda: "code None" in workers.said(), PATIENCE_SECONDS)
    assert not workers.files[1].exists()


def test_a_killed_fork(start: Callable[..., Workers]) -> None:
    """Kills: a lost worker that nobody is told of."""
    workers = start("sleep")
    os.kill(int(workers.told()[0]["pid"]), signal.SIGKILL)
    wait_until(lambda: "code 137" in workers.said(), PATIENCE_SECONDS)


def test_a_killed_process_takes_its_fork_along(start: Callable[..., Workers]) -> None:
    """Kills: a worker that goes on, with private text in memory, after Beam has ended it; one that
    takes others along.
    """
    workers = start("sleep", "sleep")
    first, second = workers.told()
    workers.clients()[0].kill()
    wait_until(lambda: gone(first["pid"]), PATIENCE_SECONDS)
    assert not gone(second["pid"])


def test_a_killed_executor(start: Callable[..., Workers]) -> None:
    """Kills: a server, or a worker that looks at nobody, that outlives its executor."""
    workers = start("stay")
    (told,) = workers.told()
    clients = workers.clients()
    workers.parent.kill()
    workers.parent.communicate()
    wait_until(lambda: gone(told["pid"]) and gone(told["server"]), PATIENCE_SECONDS)
    wait_until(lambda: gone(clients[0].pid), PATIENCE_SECONDS)


def test_an_executor_that_is_killed_while_its_server_loads(start: Callable[..., Workers]) -> None:
    """Kills: a server that looks at its executor once it has loaded; a process that then takes the
    work upon itself, for nobody.
    """
    workers = start("stay", loading=600)
    wait_until(lambda: [one for one in family(workers) if "fork-server" in one.name()], 20)
    processes = family(workers)
    workers.parent.kill()
    workers.parent.communicate()
    wait_until(lambda: all(gone(one.pid) for one in processes), PATIENCE_SECONDS)
    assert workers.said() in ([], ["code 1"])


def family(workers: Workers) -> list[psutil.Process]:
    return psutil.Process(workers.parent.pid).children(recursive=True)


def test_a_killed_server(start: Callable[..., Workers]) -> None:
    """Kills: a process that waits for ever for a server that is gone."""
    workers = start("sleep")
    os.kill(int(workers.told()[0]["server"]), signal.SIGKILL)
    wait_until(lambda: "code 1" in workers.said(), PATIENCE_SECONDS)


def test_a_server_without_workers_ends(start: Callable[..., Workers]) -> None:
    """Kills: memory that an executor of a long life never gets back."""
    workers = start("0", idle=0.5)
    (told,) = workers.told()
    wait_until(lambda: gone(told["server"]), PATIENCE_SECONDS)


def test_a_server_with_a_worker_stays(start: Callable[..., Workers]) -> None:
    """Kills: a server that ends while its workers are at work, and them with it."""
    workers = start("sleep", idle=0.1)
    (told,) = workers.told()
    with pytest.raises(AssertionError):
        wait_until(lambda: gone(told["server"]), 1)


def test_a_server_ahead_of_its_workers(start: Callable[..., Workers]) -> None:
    """Kills: workers that do not find it, and import; one that takes its workers along, or stays
    for its idle minute, once its launcher needs none.
    """
    workers = start("sleep", program=LAUNCHER)
    ahead = workers.ahead()
    workers.go_on()
    assert {one["server"] for one in workers.told()} == {ahead}
    workers.go_on()
    with pytest.raises(AssertionError):
        wait_until(lambda: gone(workers.told()[0]["pid"]) or gone(ahead), 1)
    workers.clients()[0].kill()
    wait_until(lambda: "code 0" in workers.said() and gone(ahead), PATIENCE_SECONDS)


@pytest.mark.parametrize("killed", [False, True])
def test_a_server_that_loads_for_nobody(start: Callable[..., Workers], *, killed: bool) -> None:
    """Kills: a server that loads on where a spec was refused, or its launcher was killed."""
    workers = start(loading=600, program=LAUNCHER)
    ahead = workers.ahead()
    wait_until(lambda: "fork-server" in psutil.Process(ahead).name(), PATIENCE_SECONDS)
    if killed:
        workers.parent.kill()
    else:
        workers.go_on()
        workers.go_on()
    wait_until(lambda: gone(ahead), PATIENCE_SECONDS)


def test_one_server_for_a_launcher(start: Callable[..., Workers]) -> None:
    """Kills: a second server of a launcher that has one."""
    again = LAUNCHER.replace("sys.stdin.readline()\nstarted", f"{AGAIN}\nstarted")
    workers = start("sleep", program=again)
    ahead = workers.ahead()
    wait_until(lambda: "fork-server" in psutil.Process(ahead).name(), PATIENCE_SECONDS)
    workers.go_on()
    assert workers.told()[0]["server"] == ahead
    assert workers.said()[1] == "again 0"


def test_nobody_elses_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Kills: a worker's options given to whoever has taken the address, or a fork of another user's
    process taken for one's own.
    """
    if os.getuid() != 0:
        pytest.skip("the superuser alone can be somebody else")
    monkeypatch.setattr(fork_server, "PRELOADED", ())
    own = {"PIPELINE_OPTIONS": "xylocanary"}
    address = fork_server._address(os.getppid(), own)
    ready, tell = os.pipe()
    thief = os.fork()
    if thief == 0:
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(address)
            listener.listen()
            os.write(tell, b"+")
            taken, _ = listener.accept()
            os.write(2, taken.recv(1000))
        os._exit(0)
    os.read(ready, 1)
    assert fork_server.run(lambda *_: os._exit(0), own, os.getppid()) is None
    os.waitpid(thief, 0)
    assert capfd.readouterr().err == ""


def test_a_stranger_gets_no_fork(
    start: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a server that forks, with its executor's key, for whoever reaches its address and
    knows its environment.
    """
    workers = start("sleep")
    workers.told()
    own = {"file": str(workers.files[0].with_name("stolen")), "deed": "0", "ID": "0"}
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    listed = Path("/proc/net/unix").read_text(errors="replace")
    addresses = re.findall("@(quietcorpus-[0-9a-f]{64})", listed)
    assert addresses
    for address in addresses:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect("\0" + address)
            stranger.settimeout(PATIENCE_SECONDS)
            request = {"own": own, "shared": fork_server._shared(own)}
            with suppress(OSError):
                socket.send_fds(stranger, [json.dumps(request).encode()], [1, 2])
                assert stranger.recv(16) == b""


def test_an_address_that_nobody_attends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a worker that waits for ever for whoever listens and does not accept."""
    monkeypatch.setattr(fork_server, "PRELOADED", ())
    address = fork_server._address(os.getppid(), {})
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        ExitStack() as stack,
    ):
        listener.bind(address)
        listener.listen(0)
        for _ in range(2):
            one = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            one.settimeout(0.1)
            with suppress(OSError):
                one.connect(address)
        assert fork_server.run(lambda *_: os._exit(0), {}, os.getppid()) is None


def test_what_is_loaded_is_there() -> None:
    """Kills: a module by its old name, for which every worker would import by itself, unnoticed."""
    for name in fork_server.PRELOADED:
        importlib.import_module(name)


@pytest.mark.parametrize("change", ["folder", "parent", "own"])
def test_another_address(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a server for another executor; an address that tells what a variable holds."""
    own = {"WORKER_ID": "1"}
    monkeypatch.setenv("WORKER_ID", "1")
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", "one")
    before = fork_server._address(2, own)
    monkeypatch.setenv("WORKER_ID", "2")
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", "another")
    assert fork_server._address(2, own) == before
    if change == "folder":
        monkeypatch.chdir(tmp_path)
    if change == "own":
        own = {}
    assert fork_server._address(3 if change == "parent" else 2, own) != before


def test_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a worker with the key, or the settings of libraries, of another job."""
    before = fork_server._shared({"WORKER_ID": "1"})
    monkeypatch.setenv("WORKER_ID", "2")
    assert fork_server._shared({"WORKER_ID": "2"}) == before
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "77")
    assert fork_server._shared({"WORKER_ID": "2"}) != before


def test_software_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a worker that waits for a server that could not import, and not by itself."""
    monkeypatch.setattr(fork_server, "PRELOADED", ("no_such_module",))
    assert os.getppid() > 1
    assert fork_server.run(lambda *_: os._exit(0), {}, os.getppid()) is None


def test_the_software_is_told_apart_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: forks of software that has been replaced since, and that pass for the new one."""
    environment_digest.cache_clear()
    seen = []
    loads = lambda: seen.append(environment_digest.cache_info().currsize)  # noqa: E731
    monkeypatch.setattr(fork_server, "PRELOADED", ())
    monkeypatch.setattr(fork_server, "_load_kernels", loads)
    alive = os.pidfd_open(os.getpid())
    fork_server._preload(alive)
    os.close(alive)
    assert seen == [1]
