"""The study of document embeddings that protect sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.attacks.facts import some_means
from quietcorpus.evaluation.attacks.linkage import Score, cosines
from quietcorpus.evaluation.classification import Folded
from quietcorpus.evaluation.results import Observation
from quietcorpus.indexes.candidates import Candidates
from quietcorpus.indexes.recoder import means
from quietcorpus.indexes.sentences import split
from quietcorpus.mechanisms.deep_candidate import DeepCandidate
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.evaluate.corpus import Strings
from quietcorpus.pipelines.evaluate.draws import Draw, drawn
from quietcorpus.pipelines.evaluate.encoders import Remembering
from quietcorpus.pipelines.evaluate.study import (
    FACTS,
    Studied,
    Study,
    Views,
    answered,
    attacks,
    attacks_beside_noise,
    judged,
    learnt,
    way_of,
)
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.kinds.sentences import SentencesKind
from quietcorpus.pipelines.kinds.sentences_by_words import EmbeddedWordsKind
from quietcorpus.pipelines.spec.sentences import SentencesSpec
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.privatizers.sentences import (
    SentencePrivatizer,
    SentencesParameters,
    utilities,
)

_NETWORK = "network"
_OF_ORIGINALS = "learnt from originals"
_BANDS = ((1, 3), (4, 7), (8, 15), (16, 10**9))


class SentencesStudy(Study):
    """The study of document embeddings: the mean of the sentences', and the released one."""

    swept = frozenset({"epsilon", "mechanism", "utility", "projections", "directions"})

    def __init__(self, studied: Studied) -> None:
        spec, sample = studied.described, studied.sample
        self._sample = sample
        self._kind = _prepared(spec)
        self._candidates = _candidates(self._kind)
        source = self._kind.parameters.encoder
        self._encoder = Remembering(source.open())
        assert isinstance(spec.mechanism, SentencesSpec)
        most, language = spec.mechanism.most_sentences, self._candidates.manifest.language
        found = split(sample.documents.texts.to_pylist(), most, language)
        self._offsets = found.offsets
        self._sentences = self._encoder.encode(found.texts)
        self._means = means(self._sentences, self._offsets).astype(np.float64)
        self._known = {
            way_of(most, "sentence"): some_means(
                self._sentences, self._offsets, most, np.random.default_rng(most)
            )
            for most in FACTS
        }
        self._learnt = cache(self._learn)
        self.notes = [
            "The original of a document is the mean of its sentences' embeddings, without noise. "
            f"By k: documents of so many sentences, of the {most} that count. The classifier is "
            "tested on documents as released, by five folds, and learns from others as released, "
            "or, where this is said, from their originals. It is a logistic regression, or, where "
            "this is said, a network of two layers of 64 units."
        ]

    def redraw(self, spec: Spec) -> Draw:
        """Draw a fresh embedding for every document."""
        kind = _prepared(spec)
        draw = drawn(self._privatizer(kind), self._sample)
        return replace(draw, law=kind.parameters)

    def references(self, number: int) -> Iterator[Observation]:
        """Yield the measures of the means, without noise."""
        generator = np.random.default_rng([number, 1])
        labels = self._sample.labels
        if labels is not None:
            by_line, by_network = (
                answered(labels, self._learnt(number, network=network), self._means)
                for network in (False, True)
            )
            yield from judged(labels, by_line, "original", groups=self._bands())
            yield from judged(labels, by_network, "original", classifier=_NETWORK)
        scores = {"": cosines(self._means, self._means)}
        views = Views(self._means, self._means, scores, self._facts(self._means))
        yield from attacks(self._sample, views, "original", generator)

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """Yield the measures of a draw."""
        generator = np.random.default_rng([number, 2])
        column = draw.rows["embedding"].combine_chunks()
        released = column.flatten().to_numpy().reshape(len(draw.rows), -1).astype(np.float64)
        if draw.labels is not None:
            yield from self._classified(draw.labels, released, number, placed=draw.placed)
        if draw.placed:
            scores = {"": self._score(draw, released)}
            views = Views(self._means, released, scores, self._facts(released))
            yield from attacks_beside_noise(self._sample, views, generator)

    def _privatizer(self, kind: SentencesKind | EmbeddedWordsKind) -> Privatizer:
        """Build the kind's privatizer with a fresh key; it reuses encoded sentences if it can."""
        if isinstance(kind, EmbeddedWordsKind):
            return kind.parameters.privatizer(ReleaseKey.fresh())
        return SentencePrivatizer(
            kind.parameters, self._candidates, self._encoder, ReleaseKey.fresh()
        )

    def _facts(self, released: npt.NDArray[np.float64]) -> dict[str, Score]:
        """Return the ways to find rows by known sentences: cosines with their mean embedding."""
        return {way: cosines(known, released) for way, known in self._known.items()}

    def _classified(
        self, labels: Strings, released: npt.NDArray[np.float64], number: int, *, placed: bool
    ) -> Iterator[Observation]:
        """Yield scores of classifiers on released rows; those of originals need their places."""
        by_line, by_network = (
            learnt(labels, released, number, network=network) for network in (False, True)
        )
        predicted = answered(labels, by_line, released)
        others = {_NETWORK: by_network}
        than, groups = None, self._bands() if placed else ()
        if placed:
            line = self._learnt(number, network=False)
            than = answered(labels, line, self._means)
            others[_OF_ORIGINALS] = line
            others[f"{_NETWORK} {_OF_ORIGINALS}"] = self._learnt(number, network=True)
        yield from judged(labels, predicted, "release", than, groups)
        for name, models in others.items():
            answers = answered(labels, models, released)
            yield from judged(labels, answers, "release", classifier=name)

    def _learn(self, number: int, *, network: bool) -> Folded:
        """Learn a classifier from the originals."""
        assert self._sample.labels is not None
        return learnt(self._sample.labels, self._means, number, network=network)

    def _bands(self) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
        """Yield groups of documents by their numbers of sentences."""
        lengths = np.diff(self._offsets)
        for low, high in _BANDS:
            band = f"k = {low} to {high}" if high < 10**9 else f"k = {low} or more"
            yield band, (lengths >= low) & (lengths <= high)

    def _score(self, draw: Draw, released: npt.NDArray[np.float64]) -> Score:
        """Score originals by likelihood where a candidate was drawn, else by cosine."""
        parameters = draw.law or self._kind.parameters
        law = getattr(parameters, "law", None)
        if not isinstance(law, DeepCandidate):
            return cosines(released, self._means)
        assert isinstance(parameters, SentencesParameters)
        found = utilities(law.utility, law.projections, self._candidates)
        rate = float(law.epsilon) / (2 * law.units)
        logs = rate * found(self._sentences, self._offsets).astype(np.float64)
        top = logs.max(axis=1, keepdims=True)
        logs -= top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        chosen = draw.rows["candidate"].to_numpy()
        return lambda numbers: logs[:, chosen[numbers]].T


def _prepared(spec: Spec) -> SentencesKind | EmbeddedWordsKind:
    kind = prepare(spec)
    assert isinstance(kind, SentencesKind | EmbeddedWordsKind)
    return kind


def _candidates(kind: SentencesKind | EmbeddedWordsKind) -> Candidates:
    if isinstance(kind, EmbeddedWordsKind):
        return kind.candidates.open()
    return kind.parameters.candidates.open()
