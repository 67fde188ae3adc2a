"""Every command in the documents is one that can be given, and what cannot run here says so."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from guide_pages import CLOUDS, blocks
from machine import ROOT

import quietcorpus as qc
from quietcorpus.cli.main import main

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"]
ELSEWHERE = {
    "airflow",
    "aws",
    "az",
    "dagster",
    "docker",
    "gcloud",
    "kubectl",
    "ray",
    "spark-submit",
}
"""Programs that need a cloud, a cluster or a service."""
ENDS = {"|", "&&", "||", ";", "&", "<", ">", "2>&1"}


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a page's shell blocks, joined where they go on, without prompts."""
    for block in re.findall(r"^[ \t]*```sh\n(.*?)^[ \t]*```", text, re.DOTALL | re.MULTILINE):
        yield from re.sub(r"\\\n\s*", "", block).splitlines()


def commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line, each a program and its arguments."""
    found: list[str] = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    for word in [*lexer, ";"]:
        if word not in ENDS:
            found.append(word)
            continue
        while found and re.fullmatch(r"\w+=.*", found[0]):  # of the environment
            found.pop(0)
        if found:
            yield found
        found = []


def given(text: str) -> list[list[str]]:
    """Return the arguments of all commands of ours in a page's shell blocks."""
    every = (own for line in lines(text) for own in commands(line))
    return [own[1:] for own in every if own[0] == "quietcorpus" and own[1:]]


def parse(arguments: list[str]) -> None:
    """Parse arguments as the command line does, and run nothing; raises click's errors."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, arguments = arguments[0], arguments[1:]
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no command {name}")
        command = found
    command.make_context(name, list(arguments))


COMMANDS = [
    pytest.param(own, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, own in enumerate(given(page.read_text("utf-8")))
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_documented_command(arguments: list[str]) -> None:
    # Kills: an option or a command that was renamed, a value that is no longer allowed.
    parse([word for word in arguments if word != "..."])


def test_commands_are_found() -> None:
    # Kills: a reader of pages that finds none. Controls: what must fail, fails.
    assert len(COMMANDS) > 60
    page = "```sh\nA=b quietcorpus release a.yaml \\\n  --workers 2 | cat   # c\n```\n"
    assert given(page) == [["release", "a.yaml", "--workers", "2"]]
    for wrong in (["releas"], ["verify"], ["verify", "a", "--publik-key", "b"]):
        with pytest.raises(click.UsageError):
            parse(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_option_in_a_sentence(page: Path) -> None:
    # Kills: an option that was renamed, in the middle of a sentence.
    known = {name for command in every(main) for name in options(command)}
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    spans = re.findall(r"`quietcorpus ([^`]+)`", re.sub(r"\s+", " ", prose))
    told = {name for span in spans for name in re.findall(r"(?<!\S)--[a-z][a-z-]+", span)}
    assert told <= known


def every(command: click.Command) -> Iterator[click.Command]:
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from every(child)


def options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    yield from ("--help", "--version", "--runner")


def test_a_target_of_make() -> None:
    # Kills: a target that was renamed.
    makefile = (ROOT / "Makefile").read_text("utf-8")
    known = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    told = {
        own[1]
        for page in PAGES
        for line in lines(page.read_text("utf-8"))
        for own in commands(line)
        if own[0] == "make"
    }
    told |= {
        name
        for page in PAGES
        for name in re.findall(r"`make ([a-z][\w-]*)", page.read_text("utf-8"))
    }
    told.discard("build")  # a folder of what make builds
    assert told
    assert told <= known


def test_a_benchmark_with_figures_has_a_target() -> None:
    # Kills: figures that `make` cannot repeat.
    name = re.compile(r"benchmarks/(\w+)\.py")
    told = {own for page in PAGES for own in name.findall(page.read_text("utf-8"))}
    programs = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text("utf-8")
    }
    made = set(name.findall((ROOT / "Makefile").read_text("utf-8")))
    assert len(told & made) > 15
    assert told & programs <= made


def test_a_function_in_a_sentence() -> None:
    # Kills: a function of the API that was renamed.
    told = {name for page in PAGES for name in re.findall(r"\bqc\.(\w+)", page.read_text("utf-8"))}
    assert len(told) > 15
    assert told <= {*qc.__all__, "beam", "calibration"}


def test_every_guide_is_run() -> None:
    # Kills: a guide with lines that nobody runs. How many blocks it has, its test says.
    tests = (ROOT / "tests" / "end_to_end" / "test_guides.py").read_text("utf-8")
    named = {*re.findall(r"GUIDES}/([\w-]+)\.md", tests)}
    guides = (ROOT / "docs" / "guides").glob("*.md")
    lined = {page.stem for page in guides if blocks(f"docs/guides/{page.name}")}
    assert len(lined) > 12
    assert lined <= named | CLOUDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_cannot_run_here_says_so(page: Path) -> None:
    # Kills: a command of a cloud on a page that lets a reader think that somebody ran it.
    text = page.read_text("utf-8")
    used = {own[0] for line in lines(text) for own in commands(line)} & ELSEWHERE
    assert not used or re.search(r"not run|not tried|was run|was built", text, re.IGNORECASE), used


EXTRAS = re.compile(r"pip install [^`\n]*?\w*\[([\w,-]+)\]|needs the extra `([\w-]+)`")


def extras(text: str) -> set[str]:
    """Return the extras of ours that a page asks its reader to install."""
    return {name for pair in EXTRAS.findall(text) for own in pair for name in own.split(",")} - {""}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_asks_for_one_extra_at_most(page: Path) -> None:
    # Kills: a guide by which one extra after another is missing.
    asked = extras(page.read_text("utf-8"))
    assert len(asked) <= 1
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert asked <= known["optional-dependencies"].keys()


def test_extras_are_found() -> None:
    # Controls: pages that ask for two.
    assert extras("`pip install '.[ray,calibrate]'`") == {"ray", "calibrate"}
    assert extras("```sh\npip install '.[a]'\npip install .\n```\nIt needs the extra `b`.") == {
        "a",
        "b",
    }
    assert extras("`pip install 'quietcorpus[all] @ file:///w.whl'`") == {"all"}
