"""What a finished release says of itself: the spec, resolved, and the guarantee in full."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from indexes.tokenizer import DESCRIPTION
from mechanisms.guarantees import LimitedPrecision, Spending, compose, round_up
from pipelines import bag_of_words, card, histogram, storage
from pipelines.card import Card
from pipelines.spec import BagOfWordsSpec, Spec
from pipelines.version import software
from transforms.artefacts import Artefact
from transforms.shards import ROW_GROUP_ROWS, Tally, Written


def describe(
    spec: Spec, files: Sequence[Written], tally: Tally, artefacts: dict[str, Artefact]
) -> Card:
    """The card of a release that wrote these files."""
    size = next(file.rows for file in files if file.path == storage.VOCABULARY)
    mechanism = spec.mechanism
    resolved: dict[str, Any] = _resolved(mechanism)
    resolved |= {"tokenizer": DESCRIPTION, "vocabulary_size": size}
    figure = None
    if isinstance(mechanism, BagOfWordsSpec):
        spendings = bag_of_words.spendings(mechanism, size)
        documents = bag_of_words.parameters(mechanism).mechanism(
            size, mechanism.compression.size or size
        )
        resolved |= {"bins": documents.bins, "noise_rate": str(documents.rate)}
        if documents.papers_epsilon != documents.guarantee.epsilon:
            figure = _papers_figure(documents.papers_epsilon, spendings)
    else:
        spendings = histogram.spendings(mechanism)
    total = compose(spendings)
    return Card(
        release=spec.release,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        mechanism=resolved,
        guarantee=card.guarantee(total, _not_protected(spec, total)),
        budget=card.budget(spendings, total),
        papers_figure=figure,
        artefacts=[
            card.Artefact(
                name=name,
                uri=_without_folders(found.uri),
                digest=found.digest,
                provenance="public",
            )
            for name, found in artefacts.items()
        ],
        counts=card.Counts(documents=tally.documents, rejected=tally.rejected),
        columns=list(spec.input.keep),
        files=[card.File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
        readme_sha256="0" * 64,  # of a text that is rendered from the rest of this card
        software=software(),
    )


def _resolved(value: Any) -> Any:
    """The spec's block in plain JSON values."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {name: _resolved(inner) for name, inner in fields.items() if inner is not None}
    if isinstance(value, Fraction):
        return round_up(value)
    if isinstance(value, str) and value.startswith("/"):
        return _without_folders(value)
    return getattr(value, "value", value)


def _without_folders(uri: str) -> str:
    """A local path says where things lie on somebody's machine: its last part is enough."""
    return posixpath.basename(uri) if storage.is_local(uri) else uri


def _papers_figure(epsilon: Fraction, spendings: Sequence[Spending]) -> card.PapersFigure:
    others = sum((s.guarantee.epsilon for s in spendings[:-1]), start=Fraction(0))
    return card.PapersFigure(
        epsilon=round_up(epsilon + others),
        explanation=(
            "It gives each of the vocabulary's terms a budget and lets the bins share them. It is "
            "not a bound on what a reader can learn; the guarantee above is."
        ),
    )


def _not_protected(spec: Spec, total: LimitedPrecision) -> list[str]:
    k_times = "at k times epsilon only" + (
        ", and with a delta that grows faster than k" if total.delta else ""
    )
    unique = "checked by the id column" if spec.input.id else "not checked: no id column is named"
    lines = [
        "that a document is in the corpus, the number of documents, and the number of unreadable "
        "records",
        f"what changes a bag of words by more than {total.precision} in L1: k times as much is "
        f"protected {k_times}",
        "a document's length, beyond what the precision hides; a row's counts are noisy, and "
        "clipped at zero, so that they add up to more words than the document has",
        "what several documents of one person say together, or one document that the corpus holds "
        f"twice ({unique}): the unit is a passage of one document",
        "how the input was divided into files and row groups, by their numbers of documents",
        "anything from whoever runs the release and sees the text: the histogram is made from "
        "exact counts by that party, whom the documents' authors must trust",
        "which documents have changed, if an altered corpus is released under the same id and "
        "master key: give every release an id of its own",
        "anything against an adversary who holds the master key, or breaks AES-256 or BLAKE2b",
    ]
    if spec.input.keep:
        names = ", ".join(spec.input.keep)
        lines.insert(
            0,
            f"the columns {names}: copied as they are, and joinable with other data",
        )
    if isinstance(spec.mechanism, BagOfWordsSpec):
        lines.append(
            "roughly where in the input a row comes from: rows are shuffled within a row group of "
            f"at most {ROW_GROUP_ROWS:,} rows, and the last one of a file may hold few"
        )
    return lines
