"""The decorator of commands: lines, notes of failures, and arguments by the names of options."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from quietcorpus.cli import command as module
from quietcorpus.cli.command import command, on_failure
from quietcorpus.cli.main import main
from quietcorpus.transforms.errors import InputError, StageError


@pytest.fixture(autouse=True)
def same_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "configure_logging", lambda level, form, *, progress: None)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def run(*steps: str | Exception, note: str = "; nothing was done") -> Result:
    """Run a command with the options of many; its lines are the steps that are texts."""

    @command("one", note=note)
    @click.argument("source", required=False)
    @click.option("--map", "maps")
    @click.option("--if-exists")
    @click.option("--later")
    def work(later: str | None, **given: Any) -> Iterator[str]:
        if later:
            on_failure(later)
        for step in steps:
            if isinstance(step, Exception):
                raise step
            yield step

    return CliRunner().invoke(work, ["--later", "; too late"] if note == "later" else [])


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("maps: 3 is too many", "--map: 3 is too many"),
        ("source: no file; check `maps`, too", "SOURCE: no file; check --map, too"),
        ("give it, or take `if_exists=ok`", "give it, or take --if-exists=ok"),
        ("maps.size: 3 of `maps.size`, `kind: maps`", "maps.size: 3 of `maps.size`, `kind: maps`"),
        ("spec: maps: wrong", "spec: maps: wrong"),
        ("`other`: maps", "`other`: maps"),
    ],
)
def test_arguments_are_named_as_options(message: str, said: str) -> None:
    # Kills: keys of a spec taken for arguments, an option's name guessed from the argument's.
    done = run(InputError(message))
    assert done.exit_code == 2
    assert done.stderr == f"quietcorpus: error: {said}\n"


def test_the_note_ends_with_the_work() -> None:
    # Kills: "nothing was done" after it was; a blank line that ends the output.
    done = run(StageError("a worker ended"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "quietcorpus: error: a worker ended; nothing was done\n"
    done = run("made", "", "it", StageError("refused"))
    assert (done.exit_code, done.stdout) == (1, "made\n\nit\n")
    assert done.stderr == "quietcorpus: error: refused\n"
    done = run(StageError("a worker ended"), note="later")
    assert done.stderr == "quietcorpus: error: a worker ended; too late\n"


def commands(group: click.Group) -> Iterator[click.Command]:
    for one in group.commands.values():
        yield from commands(one) if isinstance(one, click.Group) else [one]


def test_every_option_is_explained() -> None:
    # Kills: an option without help, and a fragment such as "Of the solution.".
    for one in commands(main):
        assert one.short_help
        for option in one.params:
            if isinstance(option, click.Option):
                assert option.help, (one.name, option.name)
                assert not option.help.startswith(("Of ", "That ", "Over ")), option.help


def test_a_bar_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a bar in a log file, or on a terminal whose width nobody has set; --quiet that means
    # nothing.
    found: list[bool] = []

    def api(*, progress: bool = False) -> None:
        """Do nothing.

        Args:
            progress: show a bar.
        """

    @command("tried", of=lambda: api)
    def tried(progress: bool) -> Iterator[str]:
        found.append(progress)
        yield "done"

    monkeypatch.setattr(
        module, "configure_logging", lambda level, form, *, progress: found.append(progress)
    )
    for columns in (None, 0, 80):
        size = os.terminal_size((columns or 0, 24))
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr.isatty", lambda size=columns: size is not None)
            patch.setattr(os, "get_terminal_size", lambda _, size=size: size)
            for options in ([], ["--quiet"]):
                tried(options, standalone_mode=False)
    assert found == [True, False, False, False] * 2 + [True, True, False, False]
