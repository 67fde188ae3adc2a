"""The decorator of commands, and the options that several of them share.

The decorator of commands: it sets up the log, prints lines, and reports failures.

The options, and the types of options, that several commands share.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

import click

from quietcorpus.pipelines.terminal.logs import configure_logging, guarded
from quietcorpus.transforms.errors import InputError, StageError, shown

Work: TypeAlias = Callable[..., Iterator[str]]
_NOTE = f"{__name__}.note"


def command(
    name: str | None = None,
    *,
    group: click.Group | None = None,
    note: str = "",
    log_level: str = "INFO",
    **settings: Any,
) -> Callable[[Work], click.Command]:
    """Make a command of a generator whose lines are printed.

    Args:
        name: the command's name, if it is not the function's.
        group: the group that it belongs to, if any.
        note: the end of a failure's message, until the first line; see also `on_failure`.
        log_level: the level of the log, unless the command has an option for it, as it may have for
            the format. Of `quiet_option` it makes the argument `progress`: whether to show a bar.
        settings: those of `click.command`.
    """

    def made(work: Work) -> click.Command:
        @functools.wraps(work)
        def run(**given: Any) -> None:
            context = click.get_current_context()
            context.meta[_NOTE] = note
            level, form = given.pop("log_level", log_level), given.pop("log_format", "text")
            quiet = given.pop("quiet", None)
            configure_logging(level, form, progress=not quiet)
            if quiet is not None:
                given["progress"] = not quiet and _shows_bars()
            lines = _in_options(work(**given), context.command.params)
            step = functools.partial(next, lines, None)
            while (line := guarded(step, lambda: context.meta[_NOTE])) is not None:
                context.meta[_NOTE] = ""  # the work itself is done
                click.echo(line)

        return (group or click).command(name, **settings)(run)

    return made


def on_failure(note: str) -> None:
    """Replace the note that ends a failure's message."""
    click.get_current_context().meta[_NOTE] = note


def _shows_bars() -> bool:
    """Return whether standard error is a terminal that is not zero columns wide, as some are."""
    return sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).columns > 0


def _in_options(lines: Iterator[str], parameters: Sequence[click.Parameter]) -> Iterator[str]:
    """Yield lines; errors name arguments as the command line does: --workers for `workers`."""
    names = {
        one.name: one.opts[-1] if isinstance(one, click.Option) else one.human_readable_name
        for one in parameters
    }

    def named(found: re.Match[str]) -> str:
        name = names.get(found["key"] or found["name"])
        return f"{name}{found['value'] or ''}" if name else found[0]

    try:
        yield from lines
    except (InputError, StageError) as error:
        said = re.sub(r"^(?P<key>\w+)(?=: )|`(?P<name>\w+)(?P<value>=\w+)?`", named, str(error))
        raise type(error)(said) from None


_SMALLEST, _LARGEST = Decimal("0.000001"), Decimal(1_000_000)
# Their own module loads slowly.
TOKENIZERS = "unicode-words-v2", "icu-words-v2", "unicode-words-v1", "icu-words-v1"
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

engine_option = click.option(
    "--engine",
    default="local",
    show_default=True,
    type=click.Choice(["local", "ray"]),
    help="The engine: threads, or Ray: the cluster of RAY_ADDRESS, else one on this machine.",
)
"""The option of commands whose work runs on threads or on a Ray cluster."""

workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    help="The number of threads or processes here; by default, one per processor.",
)
"""The option of commands whose work runs on threads here, or on those of a cluster."""

processes_option = click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="The number of processes on this machine.",
)
"""The option of commands that make releases, on Beam's engines."""

new_place_option = click.option(
    "--output",
    required=True,
    help="The place for the result: a folder or an object-store URI, still empty.",
)
"""The option of commands that write files."""

quiet_option = click.option(
    "--quiet",
    is_flag=True,
    help="Show no progress: no bar, and where there is no terminal, no lines of the log.",
)
"""The option of commands that show progress; `command` makes an argument `progress` of it."""

noise_option = click.option(
    "--noise",
    default="gaussian",
    show_default=True,
    type=click.Choice(["gaussian", "geometric"]),
    help="The noise; geometric noise has a delta of zero.",
)
"""The option of calibrations of public texts."""

text_option = click.option(
    "--text", default="text", show_default=True, help="The column of the text."
)
"""The option of commands that read public documents."""


def tokenizer_options(of: str, *, recorded: bool = False) -> _Decorator:
    """Return the options for the rule by which something's words are found, and their language.

    An artefact has the language `recorded`, whatever the rule.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        named = click.option(
            "--tokenizer",
            default=TOKENIZERS[0],
            show_default=True,
            type=click.Choice(TOKENIZERS),
            help=f"The rule that finds the words of {of}, as in the spec of a release.",
        )
        of_language = "The language, as a code; it is recorded, and part of the rule icu-words-v2."
        spoken = click.option(
            "--language",
            help=of_language if recorded else "The language, as a code, for icu-words-v2 alone.",
        )
        return named(spoken(command))

    return decorated


def seed_option(of: str) -> _Decorator:
    """Return the option for the seed of something; equal seeds give equal results."""
    return click.option(
        "--seed",
        default=1,
        show_default=True,
        type=click.IntRange(0),
        help=f"The seed of {of}; equal seeds give equal results.",
    )


def provenance_option(help: str) -> _Decorator:
    """Return the option that states whether an artefact is made from public data alone."""
    return click.option(
        "--provenance", required=True, type=click.Choice(["public", "private"]), help=help
    )


class Number(click.ParamType):
    """A number above zero, within reason, exactly as it is written."""

    name = "number"
    least, most = _SMALLEST, _LARGEST

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        try:
            number = Decimal(value)
        except InvalidOperation:
            self.fail(f"{shown(value)} is not a number", param, ctx)
        if not (number.is_finite() and self.least <= number <= self.most):
            self.fail(f"{value} is not between {self.least} and {self.most}", param, ctx)
        return Fraction(number)


class DeltaNumber(Number):
    """A delta, exactly as it is written."""

    least, most = Decimal("1e-100"), Decimal("0.1")


class Wholes(click.ParamType):
    """A list of whole numbers above zero, separated by commas; sorted, without duplicates."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        one = click.IntRange(1)
        return tuple(sorted({int(one.convert(part, param, ctx)) for part in value.split(",")}))


class Numbers(Number):
    """A list of such numbers, separated by commas; sorted, without duplicates."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        parts = value.split(",")
        try:
            [Decimal(part) for part in parts]
        except InvalidOperation:  # a part of a long text would be short enough to be shown
            self.fail(f"{shown(value)} is not a list of numbers", param, ctx)
        return tuple(sorted({super(Numbers, self).convert(part, param, ctx) for part in parts}))


class _Words(click.ParamType):
    """A whole number above zero, or `all`, which is None."""

    name = "number|all"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        return None if value == "all" else int(click.IntRange(1).convert(value, param, ctx))


words_option = click.option(
    "--words",
    default=10_000,
    show_default=True,
    type=_Words(),
    help="The number of words to measure.",
)
"""The option of calibrations that measure words."""

draws_option = click.option(
    "--draws",
    default=1000,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="The number of draws for each word and epsilon.",
)
"""The option of calibrations that draw outputs of words."""

eta_option = click.option(
    "--eta",
    default="0.05",
    show_default=True,
    type=Number(),
    help="The share of a word's outputs that S_w may leave out: S_w holds 1 - eta of them.",
)
"""The option of calibrations that measure S_w."""
