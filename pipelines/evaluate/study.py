"""The parts that the studies of all kinds share: views of documents, attacks and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from quietcorpus.evaluation.attacks.authorship import attributed, one_hot, prolific
from quietcorpus.evaluation.attacks.facts import by_bm25, rare_terms, some_sentences
from quietcorpus.evaluation.attacks.linkage import Score, agreeing, linked, linked_together
from quietcorpus.evaluation.attacks.membership import membership
from quietcorpus.evaluation.classification import (
    TWO_LAYERS,
    Folded,
    learnt_by_fold,
    learnt_by_words,
    out_of_fold,
    posteriors,
    scores,
    told,
)
from quietcorpus.evaluation.results import (
    Observation,
    classified,
    membership_found,
    power_found,
    share_found,
)
from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS, Tokenizer, TokenizerError
from quietcorpus.transforms.errors import InputError

from ..card.mechanism import Mechanism
from ..card.model import Card
from ..schema.spec import Spec
from .corpus import Columns, Draw, Sample, Strings

SHADOWS = 4
FOLDS = 5
MOST_AUTHORS, LEAST_OF_AUTHOR = 50, 10
LEAST_OF_CLASS = 4 * FOLDS
_LEAST_OF_GROUP = 30
REDRAWS = 6
"""The number of times that an attacker releases anew the documents that it knows."""
MOST_REDRAWS = 12
"""The same where releases cost little."""
_MOST_LEARNT = 1 << 26  # features of documents whose membership is inferred together
MOST_TOGETHER = 5_000
"""The most documents whose rows are all looked at together."""
TOGETHER = "by all rows together"
ANSWERS = "by all answers together"
OF_EVERY = "of every document"
BY_LAW = "and the law of the noise"
FACTS = (1, 3, 5)
"""The numbers of sentences or rare words of a document that an attacker knows."""


class Studied(Protocol):
    """A release under evaluation."""

    @property
    def release(self) -> str:
        """Return the place of the release."""

    @property
    def spec(self) -> str | None:
        """Return the file that describes the release, if there is one."""

    @property
    def card(self) -> Card:
        """Return the card."""

    @property
    def sample(self) -> Sample:
        """Return the sampled documents, from which all draws are made."""

    @property
    def columns(self) -> Columns:
        """Return the columns of the corpus."""

    @property
    def public_vectors(self) -> str | None:
        """Return the file of public word vectors to compare with, if there is one."""

    @property
    def public_text(self) -> str | None:
        """Return the public texts that an attacker on words learns from, if there are any."""

    @property
    def reference_text(self) -> str | None:
        """Return the documents as another tool left them, if they are given."""

    @property
    def described(self) -> Spec:
        """Return the checked spec; raises InputError if there is none."""


class Study(Protocol):
    """The measures of one kind of release on one sample.

    Attributes:
        swept: the keys of the mechanism's block that a redraw follows.
        of_documents: whether the release has a row for each document, which attacks need.
        of_authors: whether named users must include authors of many documents.
        has_topics: whether a draw has topics.
        of_vectors: whether the release holds word vectors, with which others can be compared.
        of_words: whether the release holds words, which an attacker guesses.
        defined: the difference of the two inputs of the definition, where the definition's unit
            is larger.
        beyond: a sentence on the limits of the definition's attacker.
        notes: the methods, and the limits of the measures.
        own: the release itself, for a kind that has no rows of documents.
    """

    own: Draw | None = None
    swept: ClassVar[frozenset[str]]
    of_documents: ClassVar[bool] = True
    of_authors: ClassVar[bool] = True
    has_topics: ClassVar[bool] = False
    of_vectors: ClassVar[bool] = False
    of_words: ClassVar[bool] = False
    defined: str | None = None
    beyond: str = ""
    notes: list[str]

    def __init__(self, studied: Studied) -> None:
        """Study a release; raises InputError for one that lacks the spec it needs."""

    def redraw(self, spec: Spec) -> Draw:
        """Make a fresh draw of the mechanism that a spec describes."""

    def references(self, number: int) -> Iterator[Observation]:
        """Yield the references of a draw: the original, and bounds of what is possible; if any."""
        yield from ()

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """Yield the measures of a draw."""

    def topics(self, draw: Draw) -> list[dict[str, Any]]:
        """Pair the topics of a draw with those of the original, if it has topics."""
        return []

    def neighbours(self, word: str) -> Mapping[str, Sequence[str]]:
        """Return the words nearest to one, by subject, if the release holds word vectors.

        Raises InputError for a word that the release lacks.
        """
        raise NotImplementedError


def tokenizer_of_card(mechanism: Mechanism) -> Tokenizer:
    """Return the rule by which a release found words; raises InputError if it is not to be had."""
    try:
        return Tokenizer.of_description(getattr(mechanism, "tokenizer", UNICODE_WORDS.description))
    except TokenizerError as error:
        raise InputError(f"the tokenizer of the release: {error}") from None


@dataclass(frozen=True)
class Views:
    """Documents as an attacker or a user sees them: as they are, and as released.

    Attributes:
        raw: features of the originals, (n, d).
        released: the same features of the released rows, (n, d); row i releases document i.
        scores: how well originals fit released rows, in one or several named ways.
        facts: how well released rows fit what is known of originals, likewise.
        logs: logarithms of originals' probabilities, where the law is known.
        known: logarithms of how likely known facts make rows, likewise.
        styles: features of the rows by which authors are named, (n, d), where not `released`.
        redrawn: a function that releases some documents anew, several times, and returns the same
            features, where the attacker can.
        learnable: the same for the features that models learn labels from, where they are others.
        beside: features of kept columns, of the originals and of the rows, (n, c).
    """

    raw: Any
    released: Any
    scores: Mapping[str, Score]
    facts: Mapping[str, Score]
    logs: Score | None = None
    known: Mapping[str, Score] = field(default_factory=dict)
    styles: Any = None
    redrawn: Callable[[npt.NDArray[np.int64]], Sequence[Any]] | None = None
    learnable: Callable[[npt.NDArray[np.int64]], Sequence[Any]] | None = None
    beside: tuple[sp.csr_array, sp.csr_array] | None = None

    def dealt(self, order: npt.NDArray[np.int64]) -> Views:
        """Return the rows in another order, from which nothing is learnt except by chance."""
        scores = {
            way: lambda numbers, score=score: score(order[numbers])
            for way, score in self.scores.items()
        }
        facts, known = (
            {
                way: lambda numbers, score=score: score(numbers)[:, order]
                for way, score in own.items()
            }
            for own in (self.facts, self.known)
        )
        logs = self.logs
        shuffled = None if logs is None else lambda numbers: logs(order[numbers])
        styles = None if self.styles is None else self.styles[order]
        seen = replace(self, scores=scores, facts=facts, logs=shuffled, known=known)
        return replace(seen, released=self.released[order], styles=styles, beside=None)

    def agreeing(self, kept: npt.NDArray[np.int64] | None, order: npt.NDArray[np.int64]) -> Views:
        """Return the views of an attacker who goes by kept columns, and rules out rows by them.

        Args:
            kept: int64 (n, 1 or more), as a sample has them; None without any.
            order: int64 (n,), the document that each row releases.
        """
        if kept is None:
            return self
        beside, kept = one_hot(kept), kept[:, 0]
        rows = kept[order]
        scores, facts, known = (
            {way: agreeing(score, *sides) for way, score in own.items()}
            for own, sides in (
                (self.scores, (rows, kept)),
                (self.facts, (kept, rows)),
                (self.known, (kept, rows)),
            )
        )
        logs = None if self.logs is None else agreeing(self.logs, rows, kept)
        sides = beside, beside[order]
        return replace(self, scores=scores, facts=facts, known=known, logs=logs, beside=sides)


def known_sentences(sample: Sample) -> dict[str, list[str]]:
    """Return what attackers know of each document, by the name of the way: some sentences."""
    sentences = sentences_of(sample)
    return {way_of(most, "sentence"): [" ".join(own[:most]) for own in sentences] for most in FACTS}


def sentences_of(sample: Sample) -> list[list[str]]:
    """Return the sentences of each document of which attackers know the first ones."""
    texts = sample.documents.texts.to_pylist()
    return some_sentences(texts, max(FACTS), np.random.default_rng(max(FACTS)))


def facts_by_words(
    known: Mapping[str, sp.csr_array], originals: sp.csr_array, released: sp.csr_array
) -> dict[str, Score]:
    """Return the ways to find rows by facts: known sentences, and the rarest words.

    Args:
        known: counts (n, V) of the words of known sentences, by the name of the way.
        originals: counts (n, V) of the documents, of which the attacker knows the rarest words.
        released: counts (n, V) of their rows.
    """
    both = {**known, **rare_words(originals)}
    return {way: by_bm25(facts, released) for way, facts in both.items()}


def rare_words(originals: sp.csr_array) -> dict[str, sp.csr_array]:
    """Return what attackers know of each document, by the name of the way: its rarest words."""
    return {way_of(most, "rare word"): rare_terms(originals, most) for most in FACTS}


def way_of(most: int, what: str) -> str:
    """Name a way to find rows: by at most `most` facts of a sort."""
    return f"by {most} {what}{'s' if most > 1 else ''}"


def attacks_beside_noise(
    sample: Sample, views: Views, generator: np.random.Generator
) -> Iterator[Observation]:
    """Yield the attacks on released rows, and on the same rows dealt to documents at random."""
    kept, count = sample.kept, len(sample)
    yield from attacks(sample, views.agreeing(kept, np.arange(count)), "release", generator)
    if kept is not None:
        yield from _by_kept_alone(kept, sample.users, generator)
    order = generator.permutation(count)
    dealt = views.dealt(order).agreeing(kept, order)
    yield from attacks(sample, dealt, "noise", generator)


def linked_beside_noise(
    score: Score,
    kept: npt.NDArray[np.int64] | None,
    count: int,
    way: str,
    generator: np.random.Generator,
) -> Iterator[Observation]:
    """Yield linkage by logarithms of chances, one by one and together, and in rows at random.

    Args:
        score: of `count` originals for as many rows.
        kept: the kept columns as one number for each document, (count,); None without any.
        count, way: the number of documents, and the name of the attack.
        generator: the generator of the order at random.
    """
    for subject, order in (("release", np.arange(count)), ("noise", generator.permutation(count))):

        def dealt(numbers: npt.NDArray[np.int64], order: npt.NDArray[np.int64] = order) -> Any:
            return score(order[numbers])

        own = dealt if kept is None else agreeing(dealt, kept[order], kept)
        yield share_found("linkage", subject, linked(own, count), way)
        yield share_found("linkage", subject, linked_together(own, count), f"{way}, {TOGETHER}")


def _by_kept_alone(
    kept: npt.NDArray[np.int64], users: Strings | None, generator: np.random.Generator
) -> Iterator[Observation]:
    """Yield the linkage and the authorship of attackers who see nothing but kept columns."""
    way, count = "by kept columns alone", len(kept)
    alone = agreeing(lambda numbers: np.zeros((len(numbers), count)), kept[:, 0], kept[:, 0])
    yield share_found("linkage", "floor", linked(alone, count), way)
    found = None if users is None else authors(users)
    if found is not None:
        rows, names = found
        copied = one_hot(kept[rows])
        right = attributed(lambda own: [copied[own]] * REDRAWS, copied, names, generator)
        yield share_found("authorship", "floor", right, way)


def attacks(
    sample: Sample, views: Views, subject: str, generator: np.random.Generator
) -> Iterator[Observation]:
    """Yield linkage, by documents and by facts; with labels or users, membership or authorship."""
    for way, score in views.scores.items():
        yield share_found("linkage", subject, linked(score, len(sample)), way)
    if views.logs is not None and len(sample) <= MOST_TOGETHER:
        yield share_found("linkage", subject, linked_together(views.logs, len(sample)), TOGETHER)
    for way, score in views.facts.items():
        yield share_found("facts", subject, linked(score, len(sample)), way)
    for way, score in views.known.items() if len(sample) <= MOST_TOGETHER else ():
        yield share_found("facts", subject, linked_together(score, len(sample)), way)
    if sample.labels is not None:
        yield from _membership(sample.labels, views, subject, generator)
    if sample.users is not None:
        yield from _authorship(sample.users, views, subject, generator)


def most_linked(logs: Score, count: int) -> npt.NDArray[np.float64]:
    """Return whether documents are linked by logarithms, all together if they are few."""
    return linked_together(logs, count) if count <= MOST_TOGETHER else linked(logs, count)


def _membership(
    labels: Strings, views: Views, subject: str, generator: np.random.Generator
) -> Iterator[Observation]:
    known, classes = labelled(labels)

    def learn(
        members: npt.NDArray[np.int64],
    ) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]:
        answers = posteriors(views.released[known[members]], classes[members])
        return lambda asked: answers(views.raw[known[asked]])

    anew = views.learnable if views.styles is not None else views.redrawn
    cells = len(known) * views.raw.shape[1]

    def redraw(numbers: npt.NDArray[np.int64]) -> tuple[Any, Sequence[Any]]:
        assert anew is not None
        return views.raw[known[numbers]], anew(known[numbers])

    able = anew is not None and len(known) <= MOST_TOGETHER and cells <= _MOST_LEARNT
    found = membership(learn, classes, SHADOWS, generator, redraw if able else None)
    yield membership_found(subject, found.learnt)
    yield membership_found(subject, found.by_network, group="by a network")
    yield membership_found(subject, found.calibrated, group="by calibration")
    if found.together is not None:
        yield membership_found(subject, found.together, group=ANSWERS)
    yield from power_found(subject, found.calibrated, "membership-power")
    if found.together is not None:
        yield from power_found(subject, found.together, "membership-power", ANSWERS)


def _authorship(
    users: Strings, views: Views, subject: str, generator: np.random.Generator
) -> Iterator[Observation]:
    found = authors(users)
    if found is None:
        return
    rows, names = found
    styles = views.released if views.styles is None else views.styles
    redrawn = views.redrawn or (lambda numbers: [views.raw[numbers]])
    beside = None if views.beside is None else (views.beside[0][rows], views.beside[1][rows])
    right = attributed(lambda known: redrawn(rows[known]), styles[rows], names, generator, beside)
    yield share_found("authorship", subject, right)


def authors(users: Strings) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return the most prolific authors' documents, and author numbers; None for fewer than two."""
    rows = np.flatnonzero([user is not None for user in users])
    names = np.unique(users[rows].astype(str), return_inverse=True)[1]
    try:
        chosen = prolific(names, LEAST_OF_AUTHOR, MOST_AUTHORS)
    except ValueError:
        return None
    return rows[chosen], names[chosen]


def refuse_unknown(counts: Any) -> None:
    """Raise InputError if no document has a word that the release knows; counts are (n, V)."""
    if not counts.sum():
        raise InputError(
            f"text: none of {counts.shape[0]:,} documents has a word that the release knows; "
            "check the column, and `against`"
        )


def labelled(labels: Strings) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the documents of sufficiently large classes, and their classes as numbers."""
    rows = np.flatnonzero([label is not None for label in labels])
    classes, sizes = np.unique(labels[rows].astype(str), return_inverse=True, return_counts=True)[
        1:
    ]
    kept = sizes[classes] >= LEAST_OF_CLASS
    return rows[kept], np.unique(classes[kept], return_inverse=True)[1]


def folded(
    labels: Strings, features: Any, number: int, dimensions: int | None = None
) -> npt.NDArray[np.int64]:
    """Predict the classes of labelled documents by classifiers that did not learn from them.

    Args:
        labels: the documents' labels, (n,).
        features: (n, d), of the documents.
        number: the number of the draw, which seeds the folds.
        dimensions: None, or the most dimensions of a latent space of the features, see
            `out_of_fold`.
    """
    rows, classes = labelled(labels)
    if dimensions is not None:
        dimensions = min(dimensions, min(len(rows), features.shape[1]) // 2)
    return out_of_fold(features[rows], classes, FOLDS, number, dimensions)


def learnt(
    labels: Strings,
    features: Any,
    number: int,
    *,
    network: bool,
    hidden: tuple[int, ...] = TWO_LAYERS,
) -> Folded:
    """Learn models by fold from labelled documents, as `folded`, or a network in its place."""
    rows, classes = labelled(labels)
    return learnt_by_fold(features[rows], classes, FOLDS, number, network=network, hidden=hidden)


def answered(labels: Strings, models: Folded, features: Any) -> npt.NDArray[np.int64]:
    """Predict the classes of labelled documents, in any form of theirs, by the models of folds."""
    return told(models, features[labelled(labels)[0]])


def remembered(
    labels: Strings | None, predict: Callable[[Strings, int], npt.NDArray[np.int64]]
) -> Callable[[int], npt.NDArray[np.int64]]:
    """Return a function that predicts once for each number of a draw; it is for labels alone."""

    @cache
    def predicted(number: int) -> npt.NDArray[np.int64]:
        assert labels is not None
        return predict(labels, number)

    return predicted


def by_words(labels: Strings, known: Any, tested: Any, number: int) -> npt.NDArray[np.int64]:
    """Predict the classes of labelled documents by words, as those learn that did not see them.

    Args:
        labels: the documents' labels, (n,).
        known: counts (n, V) of the documents as they are learnt from.
        tested: counts (n, V) of the same documents as they are.
        number: the number of the draw, which seeds the folds.
    """
    rows, classes = labelled(labels)
    return learnt_by_words(known[rows], tested[rows], classes, FOLDS, number)


def judged(
    labels: Strings,
    predicted: npt.NDArray[np.int64],
    subject: str,
    than: npt.NDArray[np.int64] | None = None,
    groups: Iterable[tuple[str, npt.NDArray[np.bool_]]] = (),
    classifier: str = "",
) -> Iterator[Observation]:
    """Yield the scores of predicted classes of labelled documents.

    Args:
        labels, predicted, subject: as in `folded`.
        than: the classes that a classifier predicted which learnt from the originals, to tell the
            difference.
        groups: names and members, (n,), of groups of documents whose scores are reported as well.
        classifier: its name, where there are several.
    """
    rows, classes = labelled(labels)
    yield from classified(subject, classes, predicted, than, group=classifier)
    for group, members in groups:
        inside = members[rows]
        if inside.sum() >= _LEAST_OF_GROUP:
            yield Observation("f1", subject, scores(classes[inside], predicted[inside]).f1, group)


def judged_by_words(
    labels: Strings,
    predicted: npt.NDArray[np.int64],
    subject: str,
    than: npt.NDArray[np.int64] | None = None,
) -> Iterator[Observation]:
    """Yield the scores of classes that were predicted by words, as `judged`."""
    _, classes = labelled(labels)
    yield from classified(subject, classes, predicted, than, by_words=True)
