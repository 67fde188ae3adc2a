"""`quietcorpus privatize`: lines in, lines with their words replaced out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader
from typing import Any, cast

import click
import orjson

import quietcorpus as qc
from quietcorpus.transforms.errors import InputError, folded, shown

from .command import command

_BYTES_AT_ONCE = 1 << 16
_Record = dict[str, Any]


@command(
    api=lambda: qc.Privatizer,
    types={"epsilon": click.STRING},
    short_help="Replace the words of lines, in this process.",
    log_level="WARNING",
)
@click.option("--jsonl", is_flag=True, help="Each line is a JSON object with a text.")
@click.option("--text", default="text", show_default=True, help="With --jsonl: the text's key.")
@click.option("--keep", multiple=True, help="With --jsonl: a key to copy as it is; several times.")
def privatize(jsonl: bool, text: str, keep: Sequence[str], **given: Any) -> Iterator[str]:
    """Replace the words of each line of standard input, as `kind: words` does.

    Each line comes out as soon as it has come in. With --jsonl, only the text of each object comes
    out, with its words replaced, and the keys of --keep; all others are dropped. Noise is fresh:
    nothing can be repeated, and nothing counts the cost of a text that is privatised twice.
    """
    if keep and not jsonl:
        raise InputError("keep: is for JSON objects; give --jsonl as well, or drop it")
    for key in keep:
        if key != text and folded(key) == folded(text):
            raise InputError(f"keep: {shown(key)} reads like {shown(text)}, the text; drop it")
    if text in keep:
        raise InputError(f"keep: {text} is the text, which is privatised; drop it")
    release = qc.Privatizer(**given).release

    def read(number: int, line: bytes) -> _Record:
        return _object(number, line, text, keep) if jsonl else {text: _decoded(number, line)}

    for lines in _lines(cast("BufferedReader", sys.stdin.buffer)):
        records, failure = _until_failure(lines, read)
        for record, released in zip(records, release([one[text] for one in records]), strict=True):
            copied = {key: record[key] for key in keep}
            yield orjson.dumps({text: released, **copied}).decode() if jsonl else released
        if failure is not None:
            raise failure


def _lines(stream: BufferedReader) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the lines that have come, as many as there are, with their numbers."""
    held, number = b"", 0
    while block := stream.read1(_BYTES_AT_ONCE):
        *lines, held = (held + block).split(b"\n")
        if lines:
            yield list(enumerate(lines, number + 1))
            number += len(lines)
    if held:
        yield [(number + 1, held)]


def _decoded(number: int, line: bytes) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise InputError(f"line {number} of standard input is not UTF-8") from None


def _until_failure(
    lines: Sequence[tuple[int, bytes]], read: Callable[[int, bytes], _Record]
) -> tuple[list[_Record], InputError | None]:
    """Read lines as far as they can be read, and return the error that ends them, if any."""
    records: list[_Record] = []
    for number, line in lines:
        try:
            records.append(read(number, line))
        except InputError as error:
            return records, error
    return records, None


def _object(number: int, line: bytes, text: str, keep: Sequence[str]) -> _Record:
    """Parse a line; raises InputError, which quotes nothing of it."""
    try:
        record = orjson.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get(text), str):
        raise InputError(
            f"line {number} of standard input is not a JSON object with a text under {shown(text)}"
        )
    missing = [key for key in keep if key not in record]
    if missing:
        raise InputError(f"line {number} of standard input has no {shown(missing[0])}; see --keep")
    return record
