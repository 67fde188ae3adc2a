"""The engine: its options, what it makes of a worker's error, and whom its servers listen to."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apache_beam as beam
import psutil
import pytest
from apache_beam.transforms.environments import python_sdk_dependencies
from scripts import run_in

from quietcorpus.pipelines.runners.engine import Engine, translated
from quietcorpus.pipelines.terminal.progress import Observer, Steps
from quietcorpus.transforms.errors import (
    UNREDACTED,
    InputError,
    NoisyOutcome,
    StageError,
    StoreUnavailable,
    redacted,
)

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "quietcorpus.transforms.errors.InputError: a: b [while running 'x/y']",
            InputError,
            "a: b",
        ),
        ("InputError: a: b", InputError, "a: b"),
        (
            "quietcorpus.transforms.errors.NoisyOutcome: a: b [while running 'x/y']",
            NoisyOutcome,
            "a: b",
        ),
        (
            "quietcorpus.transforms.errors.StoreUnavailable: a: b [while running 'x/y']",
            StoreUnavailable,
            "a: b",
        ),
        (
            "Traceback (most recent call last):\n  File x\ntransforms.errors.StageError: a\n\n"
            "During handling of the above exception, another exception occurred:\n\n"
            "Traceback (most recent call last):\n"
            "quietcorpus.transforms.errors.StageError: a [while running 'x']\n",
            StageError,
            "a",
        ),
        ("ValueError: InputError in the middle: private", StageError, None),
        ("java.lang.RuntimeException: private", StageError, None),
    ],
)
def test_a_workers_error_is_found_in_the_runners_text(
    text: str, kind: type[Exception], message: str | None
) -> None:
    # Kills: a refusal that tells a noisy outcome, and is taken for one that costs nothing.
    found = translated(RuntimeError(text))
    assert type(found) is kind
    assert "private" not in str(found)
    assert str(found) == (
        message
        or "the engine failed (RuntimeError), maybe because a worker was killed or had too little "
        "memory; `log_level` DEBUG shows its log"
    )


class Raise(beam.DoFn):
    """Raises what it is given."""

    @redacted
    def process(self, error: Exception) -> Iterator[None]:
        raise error
        yield


def run(error: Exception, *options: str) -> None:
    Engine(options, 1).run(
        lambda pipeline: pipeline | beam.Create([error]) | beam.ParDo(Raise()),
        Observer(None, Steps(1, bar=False)),
    )


def test_a_workers_error_comes_out_as_it_was() -> None:
    kind: type[InputError]
    for kind in (InputError, NoisyOutcome):
        with pytest.raises(InputError) as raised:
            run(kind("input.path: a.parquet is damaged; write it again"))
        assert type(raised.value) is kind
        assert str(raised.value) == "input.path: a.parquet is damaged; write it again"
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_an_unforeseen_error_comes_out_without_its_text() -> None:
    with pytest.raises(StageError) as raised:
        run(ValueError("private"))
    assert str(raised.value).startswith("ValueError at test_engine.py:")
    assert "private" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runer=SparkRunner"], "--runer: neither an option of this command nor of Beam's"),
        (["--worker", "2"], "--worker: neither an option of this command nor of Beam's"),
        (["surplus"], "an argument: neither an option of this command nor of Beam's"),
        (
            ["--direct_num_workers=many"],
            "--direct_num_workers: invalid int value; see Beam's",
        ),
        (["--runner"], "--runner: expected one argument"),
        (
            ["--runner=SparkRuner"],
            "--runner: 'SparkRuner' is not a runner of Beam's, or needs an ext",
        ),
        (["--runner=no.such.Runner"], "--runner: 'no.such.Runner' is not a runner of Beam's"),
    ],
)
def test_unknown_options_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(InputError) as raised:
        Engine(options, 1)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_workers_do_not_get_the_launchers_packages(tmp_path: Path) -> None:
    """Kills: a list of all that the launcher has installed, with tokens in places of packages, on
    every worker; seconds for `pip freeze` before every job.
    """
    options = ["--runner=DataflowRunner", "--project=p", "--region=r", "--temp_location=gs://b/t"]
    engine = Engine(options, 1)
    staged = python_sdk_dependencies(engine._options, str(tmp_path))
    assert not [one for one in staged if b"submission_environment" in one.SerializeToString()]
    assert not list(tmp_path.iterdir())


def test_local_workers_are_for_the_local_engine() -> None:
    assert Engine([], 2).local
    for name in ("DirectRunner", "direct", "fnapirunner"):
        assert Engine([f"--runner={name}"], 2).local
    assert not Engine(["--runner=SparkRunner"], 1).local
    with pytest.raises(InputError, match="workers: only the local engine takes it"):
        Engine(["--runner=SparkRunner"], 2)


def listening(process: psutil.Process) -> set[tuple[str, int] | str]:
    """The addresses that a process and its children listen at: of the network, or of sockets."""
    found: set[tuple[str, int] | str] = set()
    try:
        for member in [process, *process.children(recursive=True)]:
            for connection in member.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    found.add(tuple(connection.laddr))
            found |= {at.laddr for at in member.net_connections(kind="unix") if at.laddr}
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        pass
    return found


@pytest.mark.slow
@pytest.mark.parametrize("depth", [0, 20], ids=["short", "long"])
def test_worker_processes_are_spoken_to_by_private_sockets(
    workspace: Workspace, depth: int
) -> None:
    # Kills: a server that the network, or another user, can reach, since private text passes
    # through it, unencrypted; a place for temporary files that is too long for a socket's address.
    temporary = workspace.temporary.joinpath(*["far"] * depth, "away" * depth)
    temporary.mkdir(parents=True, exist_ok=True)
    workspace.environment["TMPDIR"] = str(temporary)
    workspace.parquet({"text": ["quiet world " * 20] * 60_000}, row_group_size=6000)
    spec = str(workspace.spec({"input.path": "input/*.parquet"}))
    found: set[tuple[str, int] | str] = set()
    modes = {}
    with subprocess.Popen(
        workspace.command("release", spec, "--workers", "2"),
        cwd=workspace.folder,
        env=workspace.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            found |= listening(watched)
            for place in {Path(at).parent for at in found if isinstance(at, str) and at[0] == "/"}:
                with suppress(FileNotFoundError):
                    modes[place] = place.stat().st_mode & 0o777
            time.sleep(0.05)
        assert process.stderr is not None
        assert process.returncode == 0, process.stderr.read()
    assert not [at for at in found if isinstance(at, tuple)]
    # Control, data, state and logging servers at least. The server of forks is no file.
    files = {Path(at) for at in found if isinstance(at, str) and at[0] == "/"}
    assert len(files) >= 4
    assert set(modes.values()) == {0o700}
    assert not any(place.exists() for place in modes)


PLANTED = """
import quietcorpus.transforms.histogram as module
def fail(*given):
    raise ValueError("planted")
module._counted = fail
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.slow  # two releases each, one by workers of its own: 6 seconds
def test_messages_are_kept_where_the_environment_asks_for_it(
    workers: str, workspace: Workspace
) -> None:
    # Kills: a variable that workers do not obey, or of which nothing warns; a cluster that takes
    # it; a message that is shown without it.
    folder = workspace.folder / "planted"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(PLANTED)
    workspace.environment["PYTHONPATH"] = str(folder)
    workspace.json_lines(["hello quiet world"] * 3)
    command = workspace.command(
        "release", str(workspace.spec({"mechanism.histogram_epsilon": 1})), "--workers", workers
    )
    hidden = run_in(workspace, *command).stderr
    assert "ValueError at histogram.py" in hidden
    assert "planted" not in hidden.replace(str(folder), "")
    workspace.environment[UNREDACTED] = "1"
    shown = run_in(workspace, *command).stderr
    assert "WARNING QUIETCORPUS_UNREDACTED=1: errors show the private text that they quote" in shown
    assert "ValueError: planted at histogram.py:" in shown
    assert ("Traceback" in shown) == (workers == "1")


def test_no_cluster_keeps_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNREDACTED, "1")
    with pytest.raises(InputError, match="QUIETCORPUS_UNREDACTED: expected no value on a cluster"):
        Engine(["--runner=PrismRunner"], 1)
