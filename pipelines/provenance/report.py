"""The report on provenance: a private file, for readers who may read the corpus."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.overlap import EDITS
from quietcorpus.evaluation.shingles import LEAST_WORDS
from quietcorpus.transforms.errors import InputError

from ..storage import places
from ..storage.output import refuse_in_release
from .sources import PublicBatch, PublicSource

SCHEMA_VERSION = 1
MOST_DOCUMENTS = 10
"""The number of documents at which a text's are counted no further."""


class Tally:
    """The number of documents in which each public text was found."""

    def __init__(self, texts: int) -> None:
        """Begin with no documents near any of `texts` texts."""
        self.equal = np.zeros(texts, np.int64)
        self.near = np.zeros(texts, np.int64)

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Return which texts were near enough documents to need no further ones, (n,)."""
        return self.near >= MOST_DOCUMENTS

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        """Return which texts equal a document or are near one, (n,)."""
        return (self.equal > 0) | (self.near > 0)


def content(
    spec: str,
    *,
    documents: int,
    unreadable: int,
    accepted: int,
    batches: Sequence[PublicBatch],
    short: npt.NDArray[np.bool_],
    tally: Tally,
    not_compared: Sequence[PublicSource],
) -> dict[str, Any]:
    """Return the content of a report; `short` and `tally` are of the batches' texts, in order."""
    counted = tally.found & ~short
    starts = np.cumsum([0, *(len(batch.rows) for batch in batches)])
    spans: dict[PublicSource, list[int]] = {}
    for batch, start in zip(batches, starts, strict=False):
        spans.setdefault(batch.source, []).extend(range(start, start + len(batch.rows)))
    return {
        "schema_version": SCHEMA_VERSION,
        "private": "This report is made of the corpus, without protection. Keep it where that is.",
        "spec": spec,
        "passed": int(counted.sum()) <= accepted,
        "documents": documents,
        "unreadable": unreadable,
        "rule": {
            "edits": EDITS,
            "least_words": LEAST_WORDS,
            "accepted": accepted,
            "most_documents": MOST_DOCUMENTS,
        },
        "found": int(counted.sum()),
        "sources": [
            {"key": source.key, "place": source.place, **_figures(np.array(own), short, tally)}
            for source, own in spans.items()
        ],
        "not_compared": [{"key": one.key, "place": one.place} for one in not_compared],
        "texts": [
            {
                "file": batch.file,
                "row": int(batch.rows[number - start]),
                "match": "equal" if tally.equal[number] else "near",
                "short": bool(short[number]),
                "documents": int(min(MOST_DOCUMENTS, tally.equal[number] + tally.near[number])),
            }
            for batch, start in zip(batches, starts, strict=False)
            for number in start + np.flatnonzero(tally.found[start : start + len(batch.rows)])
        ],
    }


def _figures(
    own: npt.NDArray[np.int64], short: npt.NDArray[np.bool_], tally: Tally
) -> dict[str, Any]:
    """Return the figures on one source's texts."""
    equal, found = tally.equal[own] > 0, tally.found[own]
    long = ~short[own]
    return {
        "texts": len(own),
        "short": int((~long).sum()),
        "equal": int((equal & long).sum()),
        "near": int((found & ~equal & long).sum()),
        "short_equal": int((equal & ~long).sum()),
        "share": float((found & long).sum() / max(1, long.sum())),
    }


def check_place(place: str, output: str) -> None:
    """Raise InputError unless a new private file may be written at `place`.

    `output` is where the release will be, which everybody may read.
    """
    if not places.is_local(place):
        raise InputError(
            f"report: {place} is in an object store, where a file is not its writer's alone; give "
            "a path on this machine"
        )
    if places.inside(place, output):
        raise InputError(f"report: {place} is in the spec's output; give a private place")
    refuse_in_release("report", place)
    folder = os.path.dirname(place)
    if os.path.lexists(place):
        raise InputError(f"report: {place} exists already; give another path")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise InputError(f"report: {folder} is not a folder that can be written to; make it first")


def write(place: str, made: dict[str, Any]) -> None:
    """Write a report that its owner alone can read; raises InputError if that is impossible."""
    raw = (json.dumps(made, indent=2, allow_nan=False) + "\n").encode()
    try:
        # Created with this mode: a file whose mode is changed later was open to others before.
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(raw)
    except OSError:
        raise InputError(
            f"report: {place} cannot be written; check the path and the free space"
        ) from None
