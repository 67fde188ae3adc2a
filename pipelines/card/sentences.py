"""The mechanism of `kind: sentence-embeddings` on the card, and the files of such a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from quietcorpus.mechanisms.madlib import Madlib
from quietcorpus.pipelines.card.mechanism import FileFormat, Mechanism, Promise
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.parameters import MetricParameters, SentenceParameters
from quietcorpus.pipelines.card.words import SearchUsed, check_epsilon, check_words, notes_on
from quietcorpus.pipelines.storage import layout
from quietcorpus.transforms.errors import InputError

_ROW = "`embedding`, and, where that is a public candidate's, its number `candidate`"
_FURTHER = {
    "text": ", and its `text`: a public document's, not the document's own",
    "recoded": ", and `recoded`: the mean of its recoded sentences",
}
_PROMISES = {
    "deep-candidate": Promise(SentenceParameters),
    "projected-mean": Promise(SentenceParameters),
    "truncation": Promise(SentenceParameters),
    "madlib": Promise(MetricParameters, Madlib.metric),
}
_PROOFS = {
    "deep-candidate": ("deep_candidate", "exponential"),
    "projected-mean": ("projected_mean",),
    "truncation": ("truncation", "geometric"),
    "madlib": ("madlib",),
}


class SentencesMechanism(Mechanism):
    """A release of one embedding for each document."""

    kind: Literal["sentence-embeddings"]
    mechanism: str
    epsilon: float
    candidates: str
    encoder: str
    index: str | None = None
    utility: str | None = None
    include: list[str] | None = None
    most_sentences: int
    epsilon_exact: str
    words: int | None = None
    tokenizer: str | None = None
    out_of_vocabulary: str | None = None
    run_words: int | None = None
    dimensions: int
    splitter: str | None = None
    language: str | None = None
    candidates_most_sentences: int | None = None
    encoder_precision: str
    encoder_software: str
    candidates_number: int | None = None
    projections: int | None = None
    directions: int | None = None
    search: SearchUsed | None = None

    @property
    def promise(self) -> Promise | None:
        """Return the form of sentence-level privacy, or of metric privacy for `madlib`."""
        return _PROMISES.get(self.mechanism)

    @property
    def proofs(self) -> tuple[str, ...]:
        """Return the modules with the proofs of its noise."""
        return _PROOFS.get(self.mechanism, ())

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the format of the data; a drawn candidate has a number."""
        drawn = ["candidate"] if self.mechanism == "deep-candidate" else []
        further = [name for name in _FURTHER if name in (self.include or ())]
        row = _ROW + "".join(_FURTHER[name] for name in further)
        return {"data": FileFormat(row, ("id", *drawn, *further, "embedding"))}

    @property
    def notes(self) -> list[str]:
        """Return a warning if candidates were calibrated with another number of sentences.

        An approximate search for words is noted as well.
        """
        searched = notes_on(self.search)
        own, public = self.most_sentences, self.candidates_most_sentences
        if public in (None, own):
            return searched
        return [
            *searched,
            f"Candidates were calibrated with the first {public} sentences of public documents, "
            f"and of these documents the first {own} count: the guarantee is the same, what the "
            "embeddings are good for may not be.",
        ]


def check(output: str, card: Card) -> None:
    """Check that candidates and encoder are public, since nothing accounts for private ones.

    Raises InputError.
    """
    mechanism = card.mechanism
    assert isinstance(mechanism, SentencesMechanism)
    uri = f"{output}/{layout.CARD}"
    found = {artefact.name: artefact.provenance for artefact in card.artefacts[:2]}
    if found != {"candidates": "public", "encoder": "public"}:
        raise InputError(f"{uri}: artefacts: not public candidates and a public encoder")
    if mechanism.mechanism == "madlib":
        check_words(uri, mechanism.mechanism, card, card.artefacts[2:])
    elif len(card.artefacts) > len(found):
        raise InputError(f"{uri}: artefacts: more than candidates and an encoder")
    check_epsilon(uri, card, mechanism.epsilon, mechanism.epsilon_exact)
