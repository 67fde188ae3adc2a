"""The steps that every command shows, on a terminal and in a log."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from narrowed_pools import first_round
from public_candidates import PUBLIC_TEXTS
from scripts import run_script

from quietcorpus.cli import command
from quietcorpus.cli.main import main
from quietcorpus.pipelines.terminal import progress

if TYPE_CHECKING:
    from tests.conftest import Workspace

WORDS = [f"{'abcd'[n // 25]}word{'abcdefghijklmnopqrstuvwxy'[n % 25]}" for n in range(100)]
SECRET = "zanzibarquokka"
COMMANDS = {
    "release": "release spec.yaml",
    "dry run": "release spec.yaml --dry-run",
    "verify": "verify released/out",
    "audit": "audit spec.yaml --draws 100",
    "reconstruct": "reconstruct released/out --factors 3 --output",
    "index build": "index build v.txt --provenance public --search ivf:lists=4 --output",
    "index build-pool": "index build-pool texts.jsonl --encoder lsa --provenance public --output",
    "index build-candidates": "index build-candidates public.jsonl --provenance public "
    "--candidates 40 --clusters 4 --projections 20 --least-sentences 7 --most-sentences 5 --output",
    "calibrate words": "calibrate words index --mechanism brr --epsilons 1 --words 64 --draws 50 "
    "--unchanged-at-most 0.9 --share 0.5 --output",
    "calibrate compare": "calibrate compare index other --epsilons 1 --words 64 --draws 50 "
    "--output",
    "calibrate bag-of-words": "calibrate bag-of-words texts.jsonl --vocabulary words.txt "
    "--epsilons 20 --bins 5,100 --runs 2",
    "calibrate public-texts": "calibrate public-texts texts.jsonl --pool pool --epsilons 8 "
    "--delta 1e-6 --nearest 5 --runs 2",
    "calibrate sentence-embeddings": "calibrate sentence-embeddings candidates others.jsonl "
    "--epsilons 1 --documents 12",
    "evaluate": "evaluate released/out --against input/corpus.jsonl --spec spec.yaml --draws 1 "
    "--documents 60 --output",
    "canaries": "canaries counts.yaml --canaries 64 --runs 1 --output",
    "provenance": "provenance votes.yaml --accept 300",
    "index narrow-pool": "index narrow-pool votes/released/first --pool votes/pool --output",
    "vary": "vary votes/released/first --output",
}
"""The commands; one that makes an output gets a new one."""
APART = ("calibrate bag-of-words", "evaluate")
"""Commands that fit topics: where all the others have been loaded, tomotopy may not load."""
TOLD = """
import sys
from quietcorpus.cli import command
from quietcorpus.cli.main import main
from quietcorpus.pipelines.terminal import progress
progress._QUICK_SECONDS = 0.0
command._shows_bars = lambda bars=sys.argv.pop(1) == "bars": bars
main()
"""
"""The command in a process of its own, which shows bars or does not."""
VOTED = ("index narrow-pool", "vary")
"""Commands that take a release of public texts."""
_ROW = '{"id": row["id"], "text": row["text"]}'
SAME = f"import json, sys; [print(json.dumps({_ROW})) for row in map(json.loads, sys.stdin)]"
"""A program that leaves texts as they are."""
VOTES = {"kind": "public-texts", "epsilon": 4, "delta": 1e-6, "pool": "pool"}
ENCODED = ("index build-candidates", "calibrate sentence-embeddings")
"""Commands that encode sentences."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, new_workspace: type[Workspace]) -> Workspace:
    """A corpus, a release with its noisy bins, vectors, an index and public texts."""
    workspace: Workspace = new_workspace(tmp_path_factory.mktemp("progress"))
    generator = np.random.default_rng(1)
    texts = [" ".join(generator.choice(WORDS, 40)) for _ in range(300)]
    workspace.json_lines([f"{text} {SECRET}" for text in texts])
    workspace.release(
        {
            "mechanism.vocabulary": {"private": {"epsilon": 5, "delta": 1e-6}},
            "mechanism.epsilon": 5,
            "mechanism.histogram_epsilon": 5,
            "mechanism.compression": {"method": "random", "size": 30},
            "mechanism.include": ["bins"],
        }
    )
    rows = [f"{word} {' '.join(f'{x:.3f}' for x in generator.normal(size=8))}" for word in WORDS]
    (workspace.folder / "v.txt").write_text(f"{len(WORDS)} 8\n" + "\n".join(rows) + "\n")
    build = ("index", "build", "v.txt", "--provenance", "public", "--output", "index")
    assert workspace.run(*build, "--search", "ivf:lists=4").returncode == 0
    (workspace.folder / "w.txt").write_text("\n".join(rows[10:]) + "\n")
    build = ("index", "build", "w.txt", "--provenance", "public", "--output", "other")
    assert workspace.run(*build).returncode == 0
    (workspace.folder / "words.txt").write_text("\n".join(WORDS) + "\n")
    lines(workspace.folder / "texts.jsonl", texts)
    build = ("index", "build-pool", "texts.jsonl", "--provenance", "public", "--output", "pool")
    assert workspace.run(*build, "--encoder", "lsa").returncode == 0
    workspace.spec({"mechanism": VOTES}, "votes.yaml")
    counts = {"kind": "histogram", "precision": 2, "epsilon": 1}
    workspace.spec({"mechanism": counts | {"vocabulary": {"public": "words.txt"}}}, "counts.yaml")
    return workspace


def lines(path: Path, texts: Sequence[str]) -> None:
    """Write texts as JSON Lines."""
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))


@pytest.fixture(scope="module")
def encoded(made: Workspace, candidates: Path, lee_texts: list[str]) -> None:
    """Candidates, the documents that they are of, and others."""
    (made.folder / "candidates").symlink_to(candidates)
    lines(made.folder / "public.jsonl", lee_texts[:PUBLIC_TEXTS])
    lines(made.folder / "others.jsonl", lee_texts[PUBLIC_TEXTS:])


@pytest.fixture(scope="module")
def voted(made: Workspace, new_workspace: type[Workspace]) -> None:
    """A release of public texts, and its pool in lists."""
    (made.folder / "votes").mkdir()
    first_round(
        new_workspace(made.folder / "votes"),
        lambda **block: {"mechanism": VOTES | {"nearest": 3} | block},
    )


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a command sets up in its process."""
    root, hook = logging.getLogger(), threading.excepthook
    before, level = root.handlers[:], root.level
    monkeypatch.setattr(root, "handlers", [])
    yield
    root.handlers, threading.excepthook = before, hook
    root.setLevel(level)


def run(
    workspace: Workspace, name: str, output: Path, capfd: pytest.CaptureFixture[str], *options: str
) -> str:
    """Run a command; what it writes to standard error."""
    words = COMMANDS[name].split()
    if words[-1] == "--output":
        words.append(str(output))
    if words[0] == "provenance":
        words += ["--report", str(output)]
    if words[0] == "vary":
        words += ["--", sys.executable, "-c", SAME]
    if words[0] == "release":
        spec = (workspace.folder / "spec.yaml").read_text().replace("released/out", str(output))
        (workspace.folder / "other.yaml").write_text(spec)
        words[1] = "other.yaml"
    if name in APART:
        done = run_script(workspace, TOLD, "bars" if command._shows_bars() else "lines", *words)
        assert done.returncode == 0, done.stderr
        return done.stderr
    main([*words[:2], *options, *words[2:]], standalone_mode=False)
    return capfd.readouterr().err


def titles(said: str) -> list[tuple[int, int, str]]:
    """The steps that are named: number, total, name."""
    found = re.findall(r"step (\d+) of (\d+): ([^:]+):", said)
    steps = dict.fromkeys((int(number), int(total), name) for number, total, name in found)
    return [step for step in steps if step[2] != "starting"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.slow]
            * (name in (*ENCODED, *APART, "calibrate compare", "canaries")),
        )
        for name in COMMANDS
    ],
)
def test_every_announced_step_is_told(
    made: Workspace,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    # Both in a log and on a terminal. Kills: a step more or fewer than announced, a command that
    # is silent, a bar in a log, what was read in a line.
    if name in ENCODED:
        request.getfixturevalue("encoded")
    if name in VOTED:
        request.getfixturevalue("voted")
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", made.environment["QUIETCORPUS_MASTER_KEY"])
    monkeypatch.setattr(progress, "_QUICK_SECONDS", 0.0)
    monkeypatch.setattr(command, "_shows_bars", lambda: False)
    logged = run(made, name, tmp_path / "logged", capfd)
    monkeypatch.setattr(command, "_shows_bars", lambda: True)
    barred = run(made, name, tmp_path / "barred", capfd)
    if name == "verify":  # a single step needs no number
        assert "checking files: 3 files in" in logged
        assert "checking files: 0 of" in barred
    else:
        steps = titles(logged)
        assert [number for number, _, _ in steps] == [*range(1, steps[0][1] + 1)]
        assert {total for _, total, _ in steps} == {len(steps)}
        assert titles(barred) == steps
    assert "\r" not in logged
    assert SECRET not in logged + barred
    assert ("this will take about" in logged) == name.startswith(("calibrate", "index search"))


def test_quiet_is_quiet(
    made: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Kills: --quiet that leaves lines of progress; one that takes warnings away.
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr(progress, "_QUICK_SECONDS", 0.0)
    said = run(made, "release", tmp_path / "quiet", capfd, "--quiet")
    assert [line.split()[0] for line in said.splitlines()] == ["WARNING"] * len(said.splitlines())
    assert "step" not in said


@pytest.mark.slow
def test_a_terminal_shows_each_pass_with_its_own_documents(made: Workspace, tmp_path: Path) -> None:
    # A real terminal. Kills: documents added up over passes, a bar that stays when all is done.
    spec = (made.folder / "spec.yaml").read_text().replace("released/out", str(tmp_path / "out"))
    (made.folder / "terminal.yaml").write_text(spec)
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(
        made.command("release", "terminal.yaml"),
        cwd=made.folder,
        env=made.environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            read = os.read(ours, 1 << 16)
        except OSError:  # Linux's end of a terminal
            break
        seen += read
        if not read:
            break
    os.close(ours)
    assert process.wait() == 0
    said = seen.decode()
    passes = ("choosing the vocabulary", "counting terms", "releasing documents")
    for number, name in enumerate(passes, 1):
        assert re.search(rf"step {number} of 4: {name}: 300(?: of 300)? documents", said), name
    assert "step 4 of 4: publishing" in said
    # Lines are overwritten, and the last one too; warnings stay above.
    assert [line for line in said.split("\n") if "step" in line.split("\r")[-1]] == []
