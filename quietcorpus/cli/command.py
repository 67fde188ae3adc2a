"""The decorator of commands: it sets up the log, prints lines, and reports failures."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import click

from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging
from quietcorpus.transforms.errors import InputError, StageError

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
