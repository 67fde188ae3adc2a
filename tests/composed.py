"""Pipelines of a user's own with a transform in the middle, and what their sinks have written.

Beam finds no types in this module's rows if their annotations are strings.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from machine import MASTER_KEY
from small_specs import WEAK

from quietcorpus.beam import PrivatizeWords
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.compose.card import RowsSpec
from quietcorpus.transforms.composed.fields import canonical
from quietcorpus.transforms.composed.sums import coverage, coverages
from quietcorpus.transforms.composed.users import owned
from quietcorpus.transforms.reading.documents import Documents
from quietcorpus.transforms.sums import NOBODY
from quietcorpus.transforms.users.users import Users


class Doc(NamedTuple):
    """A row of a user's own."""

    number: int
    body: Optional[str]  # noqa: UP045
    product: str
    secret: str


def doc(number: int, body: Any, product: Any = "card", secret: str = "zqxsecret") -> dict[str, Any]:
    """Return the fields of a row."""
    return {"number": number, "body": body, "product": product, "secret": secret}


Make = Callable[..., PrivatizeWords]
"""Makes a transform of words with these arguments in place of its own."""


def release_key(release: str = "test") -> ReleaseKey:
    """Return the key of a release of such rows."""
    rows = RowsSpec(release=release, text="body", id="number", keep=())
    return ReleaseKey.derive(bytes.fromhex(MASTER_KEY), release, rows.corpus)


def as_documents(docs: Sequence[dict[str, Any]]) -> Documents:
    """Return rows in one batch."""
    ids = [canonical(row["number"]) for row in docs]
    texts = pa.array([row["body"] for row in docs], pa.large_string())
    others = {name: pa.array([row[name] for row in docs]) for name in ("product", "secret")}
    return Documents("", np.arange(len(docs)), texts, pa.table(others), ids=ids)


def bound_key(docs: Sequence[dict[str, Any]], users: Users | None = None) -> ReleaseKey:
    """Return the key of sums over these documents, or over their users, all in one batch."""
    documents = as_documents(docs)
    if users is None:
        held = coverage(documents, "number", release_key())
    else:
        owners = [own or NOBODY for own in users.digests(documents, release_key())]
        others = owned(users, documents, owners)
        held = coverages(documents, "number", release_key(), others).sum(axis=0, dtype=np.uint64)
    return release_key().bound(held[3:].tobytes())


def _as_json(value: Any) -> str:
    return json.dumps(value if isinstance(value, str) else dict(value._asdict()))


SEEN = "seen"
"""The file to which a sink writes that waits for nothing: it exists once a row came through."""


def _seen(_: Any, path: str) -> None:
    Path(path).touch()


SURROGATE = "<surrogate>"
"""The stand-in for half a character until no coder is in its way."""


def _row(fields: dict[str, Any]) -> beam.Row:
    return beam.Row(**{k: "zqx\ud800" if v == SURROGATE else v for k, v in fields.items()})


def run(
    folder: Path,
    rows: Iterable[dict[str, Any]],
    transform: beam.PTransform,
    runner: Any = None,
    options: Any = None,
    **bundles: Any,
) -> dict[str, list[Any]]:
    """Run the transform on rows, and return what a text sink has of each of its outputs."""
    with beam.Pipeline(runner=runner or FnApiRunner(**bundles), options=options) as pipeline:
        given = pipeline | beam.Create(list(rows)) | beam.Map(_row).with_output_types(Doc)
        outputs = (given | transform)._asdict()
        outputs["rows"] | "seen" >> beam.Map(_seen, str(folder / SEEN))
        for name, output in outputs.items():
            lines = output | f"{name} as JSON" >> beam.Map(_as_json)
            lines | f"write {name}" >> beam.io.WriteToText(f"{folder}/{name}")
    return {name: written(folder, name) for name in outputs}


def written(folder: Path, name: str) -> list[Any]:
    """Return the lines of a sink's files, in no order of theirs."""
    lines = [line for path in folder.glob(f"{name}-*") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in sorted(lines)]


@pytest.fixture(autouse=True)
def master_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give launcher and workers, which are this process, one master key."""
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)


@pytest.fixture
def words_of(word_index: Path) -> Make:
    """Makes the transform, at so small an epsilon that little of a word is left."""

    def make(release: str = "test", **changes: Any) -> PrivatizeWords:
        given: dict[str, Any] = {
            "index": word_index,
            "mechanism": "brr",
            "epsilon": 0.05,
            "text": "body",
            "id": "number",
            "keep": ["product"],
        }
        return PrivatizeWords(release, **{"accept": WEAK} | given | changes)

    return make
