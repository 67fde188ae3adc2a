"""The card for people who open it in a browser: `page.html`, with a few released rows.

It has the guarantee as a person who wrote a document may read it: an example, in sentences. That
states only the definition; `odds` explains the consequences for others' beliefs. Every number is
rounded against the publisher.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from quietcorpus.evaluation.pages import rendered
from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
    ceiling,
    shown_up,
)
from quietcorpus.transforms.shards import Written

from ..environment.keys import SigningKey
from ..storage import layout
from . import readme, signature
from .mechanism import Mechanism
from .model import Card, File, Meaning
from .parameters import costs, total_cost
from .readme import blocks
from .statements import named
from .weakness import factor, in_words

_YOURS = "Suppose that you wrote one of the documents"


def example(total: Guarantee, meaning: Meaning | None = None) -> str:
    """Tell a person what a guarantee means for something that they wrote.

    `meaning` describes the index, for metric privacy.
    """
    match total:
        case LimitedPrecision():
            return f"{_YOURS}, and that {_passage(total.precision)}, {_same(total)}"
        case SentencePrivacy():
            return (
                f"{_YOURS}, and that one of its sentences tells something of you. Had you written "
                f"another sentence in its place, {_same(total)}"
            )
        case DocumentPrivacy():
            return f"{_YOURS}. Had it not been there, {_same(total)}"
        case UserPrivacy():
            return (
                "Suppose that you wrote some of the documents, however many. Had none of them been "
                f"there, {_same(total)}"
            )
        case MetricPrivacy():
            return _of_word(total, meaning)


def _passage(precision: int) -> str:
    """Say which change of one's words is hidden; ends where the comparison begins."""
    if precision == 1:
        return "one of its words tells something of you. Had you left it out"
    replaced = precision // 2
    words = "one of its words tells" if replaced == 1 else f"{replaced:,} of its words tell"
    place = "another in its place" if replaced == 1 else "others in their place"
    return f"{words} something of you. Had you written {place}"


def _same(total: LimitedPrecision | SentencePrivacy | DocumentPrivacy | UserPrivacy) -> str:
    """Say how alike the two releases are."""
    delta: Fraction = getattr(total, "delta", Fraction(0))
    apart = f", but for a chance of {ceiling(delta)}" if delta else ""
    return (
        "whatever may be read in this release would have come out with a chance that is at most "
        f"{factor(total.epsilon)} times as large or as small{apart}."
    )


def _of_word(total: MetricPrivacy, meaning: Meaning | None) -> str:
    if total.per == "document":
        words, apart = "all of its words were others, as many", "they are on average"
    else:
        words = "one of its words, which tells something of you, were another"
        apart = "the two are"
    mean = ""
    if meaning:
        times = factor(meaning.loss_at_mean)
        mean = f"; at the mean distance of the index's words, that is {times} times"
    return (
        f"{_YOURS}. If {words} in place of what you wrote, whatever may be read in this release "
        f"would come out with a chance that is at most exp({ceiling(total.epsilon)} * d) times as "
        f"large or as small, where d is how far apart {apart}{mean}. Words that are far apart are "
        "protected less than words that are close."
    )


OfRows = TypeVar("OfRows", Written, File)
ROWS = 5
LARGEST = 64 << 20
"""In bytes: rows are shown of no larger file, which this process would have to hold."""
_CHARACTERS, _ITEMS = 200, 12
_NOT_SHOWN = "(not shown)"


def texts(card: Card, rows: pa.Table | None, key: SigningKey | None) -> tuple[Card, dict[str, str]]:
    """Return a card with the digests of README and page, and the texts of a release.

    `rows` are those that `first_rows` gives; the page shows none where it is None. With a key, one
    of the texts is the card's signature.
    """
    read, page = readme.render(card), render(card, rows)
    digests = {"readme_sha256": _digest(read), "page_sha256": _digest(page)}
    card = card.model_copy(update=digests)
    content = card.to_json()
    signed = {layout.SIGNATURE: signature.of(content.encode(), key)} if key else {}
    return card, {layout.README: read, layout.PAGE: page, **signed, layout.CARD: content}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def render(card: Card, rows: pa.Table | None) -> str:
    """Return the page; equal cards and rows give equal pages."""
    total, counted = card.budget.total.guarantee, card.counts is not None
    return rendered(
        __name__.rpartition(".")[0],
        "page.html.j2",
        card=card,
        cost=total_cost(card.budget.total),
        example=example(total, card.meaning),
        odds=in_words(total, card.meaning, counted=counted),
        papers_epsilon=shown_up(card.papers_figure.epsilon) if card.papers_figure else None,
        stages=[(stage.stage, costs(stage.parameters)) for stage in card.budget.stages],
        contents=readme.contents(card),
        mechanism=readme.mechanism(card),
        columns=[] if rows is None else [(field.name, field.type) for field in rows.schema],
        rows=[] if rows is None else list(zip(*map(cells, rows.columns), strict=True)),
        copied=named(card.columns, card.id_column),
        opening=[(tool.replace("`", ""), lines) for tool, lines in blocks(card.mechanism)],
    )


def first_rows(
    mechanism: Mechanism,
    files: Sequence[OfRows],
    content: Callable[[OfRows], Iterable[bytes]],
) -> pa.Table | None:
    """Return the first rows of a release's main table, from its file of the fewest rows.

    None if the table is not Parquet, if it has no row, or if that file is larger than `LARGEST`.
    The choice depends on what is released alone, so every run of a release makes it alike.
    """
    path, main = next(iter(mechanism.files.items()))
    own = [one for one in files if one.rows and f"{one.path}/".startswith(f"{path}/")]
    if main.columns is None or not own:
        return None
    whole = within(LARGEST, content(min(own, key=lambda one: (one.rows, one.path))))
    if whole is None:
        return None
    file = pq.ParquetFile(pa.BufferReader(whole))
    batch = next(file.iter_batches(ROWS, use_threads=False))
    return pa.Table.from_batches([batch])


def within(most: int, chunks: Iterable[bytes]) -> bytes | None:
    """Return the chunks as one, or None if they have more than `most` bytes."""
    whole = io.BytesIO()
    for chunk in chunks:
        whole.write(chunk)
        if whole.tell() > most:
            return None
    return whole.getvalue()


def cells(column: pa.ChunkedArray) -> list[str]:
    """Return a released column's values as text, by Arrow alone, whatever else is installed.

    A copied column may hold anything. It must neither fail a release nor have its value in an
    error, so what Arrow cannot write as text is not shown.
    """
    kind = column.type
    listed = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    try:
        plain = _is_plain(kind.value_type if listed else kind)
        values = (column if plain else column.cast(pa.string())).to_pylist()
    except (pa.ArrowException, ValueError):
        return [_NOT_SHOWN] * len(column)
    return list(map(shown, values))


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether Python has the values of a type as they are."""
    types = pa.types
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(numbers or types.is_string(kind) or types.is_large_string(kind))


def shown(value: str | float | list[Any] | None) -> str:
    """Return a released value as text, cut where it is long."""
    match value:
        case None:
            return "—"
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(_items(value))
        case _:
            text = str(value)
            return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"


def _items(value: list[Any]) -> Iterator[str]:
    yield from map(shown, value[:_ITEMS])
    if len(value) > _ITEMS:
        yield f"… ({len(value):,} in all)"
