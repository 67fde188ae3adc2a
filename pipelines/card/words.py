"""The mechanism of `kind: words` on the card, and the files of such a release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from quietcorpus.mechanisms.brr import BinaryRandomizedResponse
from quietcorpus.mechanisms.madlib import Madlib
from quietcorpus.pipelines.card.mechanism import FileFormat, Mechanism, Promise
from quietcorpus.pipelines.card.model import Card, UsedArtefact
from quietcorpus.pipelines.card.parameters import MetricParameters, Part
from quietcorpus.pipelines.storage import layout
from quietcorpus.transforms.errors import InputError

METRICS = {"madlib": Madlib.metric, "brr": BinaryRandomizedResponse.metric}


class SearchUsed(Part):
    """The engine that found words, where the spec names one."""

    engine: str
    probes: int | None = Field(None, description="the number of lists that were searched")


class WordsMechanism(Mechanism):
    """A release of text, word by word."""

    kind: Literal["words"]
    mechanism: str
    epsilon: float | None = None
    document_epsilon: float | None = None
    index: str
    out_of_vocabulary: str
    tokenizer: str
    epsilon_exact: str
    words: int
    matched: dict[str, Any] | None = None
    search: SearchUsed | None = None

    @property
    def promise(self) -> Promise | None:
        """Return the form of metric privacy in the mechanism's metric; None if it is unknown."""
        metric = METRICS.get(self.mechanism)
        return Promise(MetricParameters, metric) if metric else None

    @property
    def notes(self) -> list[str]:
        """Return what an approximate search means."""
        return notes_on(self.search)

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the format of the data."""
        meaning = "`text`, the released words with single spaces between them"
        return {"data": FileFormat(meaning, ("id", "text"))}


def notes_on(search: SearchUsed | None) -> list[str]:
    """Return what the README says of a search; nothing of one that finds the nearest words."""
    if search is None or search.probes is None:
        return []
    return [
        f"Words were found by approximate search, in the {search.probes} lists of the index that "
        "are nearest to a noisy vector: not always the nearest word, but one that follows from the "
        "noisy vector and the public index alone. The guarantee is the same; the estimates of N_w "
        "and S_w are of this search."
    ]


def check(output: str, card: Card) -> None:
    """Check the index, the meaning of epsilon there, and epsilon itself; raises InputError."""
    mechanism = card.mechanism
    assert isinstance(mechanism, WordsMechanism)
    uri = f"{output}/{layout.CARD}"
    check_words(uri, card, card.artefacts)
    own = mechanism.document_epsilon if mechanism.epsilon is None else mechanism.epsilon
    check_epsilon(uri, card, own, mechanism.epsilon_exact)


def check_words(uri: str, card: Card, artefacts: Sequence[UsedArtefact]) -> None:
    """Check the index that defines the metric, and the losses stated for it; raises InputError."""
    if [artefact.name for artefact in artefacts] != ["index"] or card.meaning is None:
        raise InputError(f"{uri}: artefacts: the index, or what epsilon means there, is missing")
    if (artefacts[0].provenance == "private") != (artefacts[0].guarantee is not None):
        raise InputError(f"{uri}: artefacts: a private index, and no other, has a guarantee")
    epsilon, meaning = card.budget.total.epsilon, card.meaning
    for name, distance, loss in (
        ("mean", meaning.mean_distance, meaning.loss_at_mean),
        ("maximum", meaning.maximum_distance, meaning.loss_at_maximum),
    ):
        if not math.isclose(loss, distance * epsilon, rel_tol=1e-9):
            raise InputError(f"{uri}: meaning: loss_at_{name} is not epsilon times the distance")


def check_epsilon(uri: str, card: Card, epsilon: float | None, exact: str) -> None:
    """Compare the mechanism's epsilon with the budget's; raises InputError."""
    total = card.budget.total
    if exact != total.epsilon_exact:
        raise InputError(f"{uri}: mechanism: epsilon_exact is not the budget's")
    if epsilon != total.epsilon:
        raise InputError(f"{uri}: mechanism: epsilon is not the budget's")
