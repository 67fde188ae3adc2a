"""Membership inference: whether a document was among those that a model was trained on.

A random half of documents that holds half of every class.

The inference of all documents that a logistic regression has learnt from, by all its answers.

At the optimum of a regularised logistic regression the coefficients of class c are a sum over the
documents learnt from: strength * ([label is c] - Pr[c]) times the released features. So the
model's log-odds on originals are linear in who was learnt from, and the attacker uses all of them
together: one document's own answer tells little about it where many resemble it.

Shadow models (Shokri et al., IEEE S&P 2017) in the design of BRR (Carvalho, Vasiloudis and
Feyisetan, ICML 2021 workshop): the model has learnt from released documents. The attacker holds an
original document, and infers from the model's posterior for it whether its release was learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..classification import Features, fitted, strength_of
from ..topics import weighted


def half(labels: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw a random half of the documents, bool (n,), from their classes (n,).

    Every document is in it with probability 1/2. It has half of each class and half of all n
    documents, rounded up or down.
    """
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    chosen = np.zeros(len(labels), dtype=np.bool_)
    chosen[order[generator.integers(2) :: 2]] = True
    return chosen


_LEAST_SQUARE = 1e-15
_FREE = 1e3  # the variance of an intercept, in those of answers
_SLIGHT, _OF_ANSWERS = 1e-3, 1e-6  # added to the covariance of answers, in parts of its trace
_PRIOR = 4.0  # the precision of a document that was learnt from or not, by halves

Array = npt.NDArray[np.float64]


class JointMembership:
    """An attacker who holds originals, and releases of them that it drew itself.

    From models of its own, each of a random half of the documents' fresh releases, it learns by how
    much a class falls short of a document's label. Released features are taken for normal, with
    means and variances of fresh releases, and membership for normal of mean 1/2 and variance 1/4:
    its posterior mean is a ridge regression.
    """

    def __init__(
        self,
        raw: Features,
        draws: Sequence[Features],
        labels: npt.NDArray[np.int64],
        generator: np.random.Generator,
    ) -> None:
        """Learn from fresh releases.

        Args:
            raw: features (n, d) of the originals, as models see them.
            draws: two or more fresh releases of the same documents, likewise.
            labels: the classes, 0 .. classes - 1, int64 (n,).
            generator: the generator of the halves.
        """
        self._shares = _shortfalls(draws, labels, generator) * strength_of(raw)
        self._shares -= self._shares.mean(axis=1, keepdims=True)
        prepared = _Prepared(draws)
        originals = prepared(raw)
        mean, squares = np.zeros(originals.shape), np.zeros(originals.shape[1])
        for draw in draws:
            features = prepared(draw)
            mean += features / len(draws)
            squares += (features**2).sum(axis=0)
        variance = np.maximum(squares - len(draws) * (mean**2).sum(axis=0), 0)
        variance /= (len(draws) - 1) * len(mean)
        self._alike = mean @ originals.T
        self._noise = (originals * variance) @ originals.T

    def __call__(self, posteriors: Array) -> Array:
        """Infer who was learnt from, by a model's posteriors of all originals, (n, classes).

        Returns float64 (n,): posterior means less 1/2.
        """
        logs = np.log(np.maximum(posteriors, _LEAST_SQUARE))
        logs -= logs.mean(axis=1, keepdims=True)
        count, shares, alike = len(logs), self._shares, self._alike
        # The covariance of answers, up to each class's mean square of half of the shares.
        noise = self._noise.copy()
        slight = _SLIGHT * np.trace(noise) + _OF_ANSWERS * (alike**2).sum()
        noise[np.diag_indices(count)] += slight / count + _LEAST_SQUARE
        noise += _FREE * np.trace(noise) / count
        told = np.linalg.solve(noise, np.column_stack([alike.T, logs]))
        products, towards = alike @ told[:, :count], alike @ told[:, count:]
        precision = _PRIOR * np.eye(count)
        found = np.zeros(count)
        for own, seen in zip(shares.T, towards.T, strict=True):
            square = max(float((own**2).sum()) / 2, _LEAST_SQUARE)
            precision += own[:, None] * products * own / square
            found += own * (seen - products @ own / 2) / square
        return np.asarray(np.linalg.solve(precision, found), dtype=np.float64)


class _Prepared:
    """Features as a model's coefficients see them: weighted counts, or standardised values."""

    def __init__(self, draws: Sequence[Features]) -> None:
        first = draws[0]
        self._scaled = isinstance(first, np.ndarray)
        if isinstance(first, np.ndarray):
            self._mean, spread = first.mean(axis=0), first.std(axis=0)
            self._spread = np.where(spread > 0, spread, 1)

    def __call__(self, features: Features) -> Array:
        if self._scaled:
            return np.asarray((features - self._mean) / self._spread, dtype=np.float64)
        return np.asarray(weighted(features).toarray())


def _shortfalls(
    draws: Sequence[Features],
    labels: npt.NDArray[np.int64],
    generator: np.random.Generator,
) -> Array:
    """Estimate [label is c] - Pr[c] of each document if it is learnt from, (n, classes).

    Documents that few models have learnt from are drawn in towards the mean of their class.
    """
    classes = np.eye(int(labels.max()) + 1)[labels]
    found, counts = np.zeros(classes.shape), np.zeros(len(labels))
    for draw in draws:
        members = half(labels, generator)
        model = fitted(draw[members], labels[members])
        found[members] += classes[members] - model.predict_proba(draw[members])
        counts[members] += 1
    of_class = classes.T @ found / np.maximum(classes.T @ counts, 1)[:, None]
    shares: Array = (found + 2 * of_class[labels]) / (counts + 2)[:, None]
    return shares


_LEAST = 4  # halved twice, a class of this size still has one document in each part
_MOST_ANSWERS = 10_000
_CERTAIN = 1e-9


Posterior = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]
"""A model, from documents' numbers, int64 (b,), to posteriors of *raw* texts, (b, classes)."""

Learn = Callable[[npt.NDArray[np.int64]], Posterior]
"""Training, from documents' numbers, int64 (m,), to the model learnt from their *releases*."""

Redraw = Callable[[npt.NDArray[np.int64]], tuple[Features, Sequence[Features]]]
"""The features of documents, by their numbers, int64 (b,): as they are, and released anew twice or
more, as models see them."""


@dataclass(frozen=True)
class Membership:
    """The scores of the attack on the documents around the target model.

    Attributes:
        members: bool (m,), whether the target model was trained on each; half of them are.
        scores: float64 (m,), the higher, the likelier it was.
    """

    members: npt.NDArray[np.bool_]
    scores: npt.NDArray[np.float64]

    @property
    def auc(self) -> float:
        """Compute Pr[a member's score is above another's], ties counted by half: 1/2 is chance."""
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(self.members, self.scores))


class Memberships(NamedTuple):
    """The attacks on one target model.

    Attributes:
        learnt: by a logistic regression on the model's answers (Shokri et al.; BRR), on the mean
            answers of shadow models that have not learnt from the document, and on the scores of
            `together`.
        by_network: the same by a network of two hidden layers of 64 units (BRR's other attacker),
            which learns from 10,000 answers at most.
        calibrated: by the true label's probability or log-odds, compared with the mean over shadow
            models that have not learnt from the document: a document's own difficulty cancels
            (Watson et al., ICLR 2022). The comparison is the one of `_CALIBRATIONS` that tells the
            shadow models' own members best. Among them are the ratio of RMIA (Zarifzadeh, Liu and
            Shokri, ICML 2024, offline), which the comparison with a population does not reorder,
            and LiRA's difference of log-odds with one variance for all documents (Carlini et al.,
            IEEE S&P 2022, offline).
        together: by the answers on all documents together, see `JointMembership`; None where the
            attacker cannot release documents anew.
    """

    learnt: Membership
    by_network: Membership
    calibrated: Membership
    together: Membership | None


class _Answers(NamedTuple):
    """A model's answers on documents, and those of others that have not learnt from them.

    Attributes:
        signals: float64 (b, 2 * classes + 6), of the model's posteriors and of the others' mean.
        true: float64 (b,), the true label's probability.
        odds: float64 (b,), its log-odds.
        mean_true, mean_odds: the means of both over the others.
    """

    signals: Array
    true: Array
    odds: Array
    mean_true: Array
    mean_odds: Array


def _ratio(answers: _Answers, part: float) -> Array:
    """Compute RMIA's ratio, whose denominator estimates models with and without the document."""
    return answers.true / np.maximum(part * answers.mean_true + 1 - part, _CERTAIN)


def _difference(answers: _Answers, part: float) -> Array:
    """Compute the log-odds less a part of their mean over shadow models."""
    return answers.odds - part * answers.mean_odds


_CALIBRATIONS: Sequence[Callable[[_Answers], Array]] = [
    *(partial(_ratio, part=part / 10) for part in range(11)),
    *(partial(_difference, part=part / 5) for part in range(1, 6)),
]
"""RMIA's ratio, and differences of log-odds, each with so large a part of the shadows' mean. A part
of 0 compares documents by the target model alone."""


def membership(
    learn: Learn,
    labels: npt.NDArray[np.int64],
    shadows: int,
    generator: np.random.Generator,
    redraw: Redraw | None = None,
) -> Memberships:
    """Attack a target model, by shadow models and their own members.

    Half of the documents belong to the target model and half to the shadow models; each model is
    trained on a random half of its documents. Attacks are learnt and chosen from all shadow models
    together, and not class by class as in Shokri et al.: each shadow model is the target of the
    others. The signals of posteriors are the true label's log-odds and log-posterior, the entropy,
    and the sorted posteriors. All halves are stratified by label, so that no model lacks a class.

    Args:
        learn: trains a model; called once for each shadow model, and then for the target.
        labels: int64 (n,), the true classes, 0 .. classes - 1.
        shadows: the number of shadow models, two or more.
        generator: the generator of the halves.
        redraw: releases documents anew for `Memberships.together`; None without that attack.

    Raises:
        ValueError: there are fewer than two shadow models, a negative label, one class only, or a
            class of fewer than four documents.
    """
    _check(labels, shadows)
    numbers = np.arange(len(labels))
    targets = half(labels, generator)
    own, world = numbers[targets], numbers[~targets]
    trained = [_trained(learn, world, labels, generator) for _ in range(shadows)]
    models, posteriors, members = map(list, zip(*trained, strict=True))
    of_shadows = [
        _answers(
            posteriors[number],
            np.array(posteriors[:number] + posteriors[number + 1 :]),
            ~np.array(members[:number] + members[number + 1 :]),
            labels[world],
        )
        for number in range(shadows)
    ]
    _, found, taught = _trained(learn, own, labels, generator)
    unlearnt = np.ones((shadows, len(own)), dtype=np.bool_)
    target = _answers(found, np.array([model(own) for model in models]), unlearnt, labels[own])
    signals, truth = np.concatenate([one.signals for one in of_shadows]), np.concatenate(members)
    asked, together = target.signals, None
    if redraw is not None:
        in_world, in_own = (
            JointMembership(*redraw(some), labels[some], generator) for some in (world, own)
        )
        jointly = in_own(found)
        together = Membership(taught, jointly)
        signals = np.column_stack([signals, np.concatenate([in_world(p) for p in posteriors])])
        asked = np.column_stack([asked, jointly])
    attack = fitted(signals, truth)
    some = generator.permutation(len(truth))[:_MOST_ANSWERS]
    network = fitted(signals[some], truth[some], int(generator.integers(2**32)))

    def told(score: Callable[[_Answers], Array]) -> float:
        """Return how well a calibration tells the members of all shadow models."""
        each = zip(members, of_shadows, strict=True)
        return sum(Membership(taught, score(answers)).auc for taught, answers in each)

    return Memberships(
        Membership(taught, attack.decision_function(asked)),
        Membership(taught, network.predict_proba(asked)[:, 1]),
        Membership(taught, max(_CALIBRATIONS, key=told)(target)),
        together,
    )


def _trained(
    learn: Learn,
    world: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    generator: np.random.Generator,
) -> tuple[Posterior, Array, npt.NDArray[np.bool_]]:
    """Train a model; return it, its posteriors of its world's documents, and the members."""
    members = half(labels[world], generator)
    model = learn(world[members])
    return model, model(world), members


def _answers(
    posteriors: Array,
    others: Array,
    unlearnt: npt.NDArray[np.bool_],
    labels: npt.NDArray[np.int64],
) -> _Answers:
    """Put a model's posteriors, (b, classes), beside those of others, (k, b, classes).

    A document that all others have learnt from (`unlearnt`, (k, b), is False) gets the mean over
    all documents: its own answers would show less than those on the target's documents.
    """
    places = np.arange(len(labels)), labels
    mean = _mean(others, unlearnt)
    odds = np.array([_signals(each, labels)[:, :1] for each in others])
    own = _signals(posteriors, labels)
    return _Answers(
        np.column_stack([own, _signals(mean, labels)]),
        posteriors[places],
        own[:, 0],
        mean[places],
        _mean(odds, unlearnt)[:, 0],
    )


def _mean(values: Array, counted: npt.NDArray[np.bool_]) -> Array:
    """Average values, (k, b, m), over the k where they are counted, (k, b); float64 (b, m)."""
    counts = counted.sum(axis=0)[:, None]
    means = (values * counted[:, :, None]).sum(axis=0) / np.maximum(counts, 1)
    filled: Array = np.where(counts, means, means[counts[:, 0] > 0].mean(axis=0))
    return filled


def _signals(posteriors: Array, labels: npt.NDArray[np.int64]) -> Array:
    """Compute the attack's features of each document, float64 (b, classes + 3)."""
    clipped = np.clip(posteriors, _CERTAIN, 1 - _CERTAIN)
    logs = np.log(clipped)
    places = np.arange(len(labels)), labels
    odds = logs[places] - np.log1p(-clipped[places])
    entropy = -(clipped * logs).sum(axis=1)
    return np.column_stack([odds, logs[places], entropy, np.sort(posteriors, axis=1)])


def _check(labels: npt.NDArray[np.int64], shadows: int) -> None:
    if shadows < 2:
        raise ValueError(f"{shadows} shadow models are not compared; train two or more")
    if len(labels) and labels.min() < 0:
        raise ValueError(f"a label is {labels.min()}; number the classes from zero")
    sizes = np.bincount(labels)
    if len(sizes) < 2:
        raise ValueError(
            f"the {len(labels)} documents have {len(sizes)} class; a model to attack needs two"
        )
    if sizes.min() < _LEAST:
        raise ValueError(
            f"class {sizes.argmin()} has {sizes.min()} documents; leave out or merge classes of "
            f"fewer than {_LEAST}"
        )
