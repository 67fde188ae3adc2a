"""Changing a release as somebody would who covers it up, and verifying it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quietcorpus.mechanisms.accounting.guarantees import Guarantee, Spending
from quietcorpus.pipelines.card import page
from quietcorpus.pipelines.card.model import Card, File, GuaranteePart
from quietcorpus.pipelines.card.statements import budget
from quietcorpus.pipelines.card.statements import guarantee as guarantee_part
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.transforms.artefacts.folders import _opened
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.shards import write_row_groups

DATA = "data/part-00000-of-00001.parquet"
PROMISE = "mechanism: it does not give such a guarantee, or is not known"
TEN = Fraction(10)


def refused(release: Path) -> str:
    """The line by which `verify` refuses a release."""
    _opened.cache_clear()  # every run of the command begins without it
    with pytest.raises(InputError) as raised:
        verify(str(release))
    message = str(raised.value)
    assert str(release) in message
    assert "\n" not in message
    return message


def cover_up(release: Path, path: str, content: bytes) -> None:
    """Write a file, and its digest on the card."""
    (release / path).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edit_card(
        release,
        lambda card: next(f for f in card["files"] if f["path"] == path).update(sha256=digest),
    )


def edit_index(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the index's manifest, and its digest on the card."""
    path = "index/manifest.json"
    manifest = json.loads((release / path).read_text())
    change(manifest)
    cover_up(release, path, (json.dumps(manifest, indent=2) + "\n").encode())


def edit_card(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a card, and write it as cards are written, if it still is one."""
    card = json.loads((release / "release.json").read_text())
    change(card)
    text = json.dumps(card, indent=2) + "\n"
    with suppress(ValueError, TypeError):
        written = Card.model_validate(card).to_json()
        same = [json.dumps(json.loads(one), sort_keys=True) for one in (text, written)]
        text = written if same[0] == same[1] else text
    (release / "release.json").write_text(text)


def rewrite(release: Path, path: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table and the card's entry for it, as somebody would who covers it up.

    The table is written as a release writes it, but for the names of lists' items.
    """
    content = json.loads((release / "release.json").read_text())
    rows = pq.read_metadata(release / path).row_group(0).num_rows
    table = change(pq.read_table(release / path))
    groups = [table.slice(start, rows) for start in range(0, len(table), max(rows, 1))] or [table]
    is_data = path.startswith("data/") and "reconstruction" not in content
    named = [content.get("id_column") or one if one == "id" else one for one in content["columns"]]
    with (release / path).open("wb") as sink:
        write_row_groups(groups, table.schema, sink, named if is_data else None)
    edit_card(
        release,
        lambda card: next(f for f in card["files"] if f["path"] == path).update(
            sha256=hashlib.sha256((release / path).read_bytes()).hexdigest()
        ),
    )


def flip(release: Path, path: str) -> None:
    content = bytearray((release / path).read_bytes())
    content[len(content) // 2] ^= 1
    (release / path).write_bytes(content)


def add(release: Path, path: str) -> None:
    (release / path).parent.mkdir(parents=True, exist_ok=True)
    (release / path).write_bytes(b"x")


def parameters_of(card: dict[str, Any]) -> list[dict[str, Any]]:
    """All places where the card says what was spent."""
    budget = card["budget"]
    return [card["guarantee"]["parameters"], budget["total"], budget["stages"][0]["parameters"]]


def everywhere(**values: Any) -> Callable[[Path], None]:
    def change(release: Path) -> None:
        edit_card(release, lambda card: [part.update(values) for part in parameters_of(card)])

    return change


def card(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda release: edit_card(release, change)


def restate(
    content: dict[str, Any], spendings: Sequence[Spending[Any]], total: Guarantee, **given: Any
) -> GuaranteePart:
    """Have a card's content promise so much throughout, in words as in numbers."""
    found = Card.model_validate(content)
    noise = found.mechanism.concentrated if found.budget.inherited else None
    spent = budget(spendings, total, found.artefacts, noise)
    content["budget"] = spent.model_dump(mode="json", exclude_none=True)
    limits = content["guarantee"]["not_protected"]
    stated = guarantee_part(total, limits, found.artefacts, noise=noise, **given)
    content["guarantee"] = stated.model_dump(mode="json")
    return stated


def promising(guarantee: Guarantee) -> Callable[[Path], None]:
    """Have a card promise something else throughout, in words as in numbers."""

    def change(content: dict[str, Any]) -> None:
        restate(content, [Spending("documents", guarantee)], guarantee)
        content["mechanism"] |= {"epsilon": 10.0, "epsilon_exact": "10"}

    return card(change)


def add_vocabulary(release: Path) -> None:
    """A list of words that the card accounts for, as a file."""
    table = pa.table({"term_id": [0], "term": ["secret"], "weight": [1]})
    pq.write_table(table, release / "vocabulary.parquet")
    digest = hashlib.sha256((release / "vocabulary.parquet").read_bytes()).hexdigest()
    entry = {"path": "vocabulary.parquet", "sha256": digest, "rows": 1}
    edit_card(release, lambda card: card["files"].append(entry))


def redress(release: Path) -> None:
    """Write README and page of a card that was changed, with their digests, as a release does."""
    card = Card.model_validate_json((release / "release.json").read_bytes())

    def content(file: File) -> list[bytes]:
        return [(release / file.path).read_bytes()]

    rows = page.first_rows(card.mechanism, card.files, content)
    _, texts = page.texts(card, rows, None)
    for name, text in texts.items():
        (release / name).write_text(text, "utf-8")
