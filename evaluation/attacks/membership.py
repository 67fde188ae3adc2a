"""Membership inference: whether a document was among those that a model was trained on.

Shadow models (Shokri et al., IEEE S&P 2017) in the design of BRR (Carvalho, Vasiloudis and
Feyisetan, ICML 2021 workshop): the model has learnt from released documents. The attacker holds an
original document, and infers from the model's posterior for it whether its release was learnt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.attacks.halves import half
from quietcorpus.evaluation.classification import fitted

_LEAST = 4  # halved twice, a class of so many still has one document in each part
_MOST_ANSWERS = 10_000
_CERTAIN = 1e-9

Posterior = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]
"""A model, from documents' numbers, int64 (b,), to posteriors of *raw* texts, (b, classes)."""

Learn = Callable[[npt.NDArray[np.int64]], Posterior]
"""Training, from documents' numbers, int64 (m,), to the model learnt from their *releases*."""


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
    """Three attacks on one target model.

    Attributes:
        learnt: by a logistic regression on the model's answers (Shokri et al.; BRR).
        by_network: the same by a network of two hidden layers of 64 units (BRR's other attacker),
            which learns from 10,000 answers at most.
        calibrated: by the true label's log-odds, less their mean over the shadow models, none of
            which has learnt from the document. A document's own difficulty cancels (Watson et al.,
            ICLR 2022); documents are ordered as by the ratio of RMIA (Zarifzadeh, Liu and Shokri,
            ICML 2024, with odds for probabilities and gamma = 1), which a population of other
            documents does not reorder.
    """

    learnt: Membership
    by_network: Membership
    calibrated: Membership


def membership(
    learn: Learn,
    labels: npt.NDArray[np.int64],
    shadows: int,
    generator: np.random.Generator,
) -> Memberships:
    """Attack a target model, by shadow models and their own members.

    Half of the documents belong to the target model and half to the shadow models; each model is
    trained on a random half of its documents. The first two attacks are learnt from all shadow
    models together, and not class by class as in Shokri et al., on the true label's log-odds and
    log-posterior, the entropy, and the sorted posteriors. All halves are stratified by label, so
    that no model lacks a class.

    Args:
        learn: trains a model; called once for each shadow model, and then for the target.
        labels: int64 (n,), the true classes, 0 .. classes - 1.
        shadows: the number of shadow models.
        generator: the generator of the halves.

    Raises:
        ValueError: there is no shadow model, a negative label, one class only, or a class of
            fewer than four documents.
    """
    _check(labels, shadows)
    numbers = np.arange(len(labels))
    targets = half(labels, generator)
    own, world = numbers[targets], numbers[~targets]
    worlds = [_attacked(learn, world, labels, generator) for _ in range(shadows)]
    models, signals, members = zip(*worlds, strict=True)
    answers, truth = np.concatenate(signals), np.concatenate(members)
    attack = fitted(answers, truth)
    some = generator.permutation(len(truth))[:_MOST_ANSWERS]
    network = fitted(answers[some], truth[some], int(generator.integers(2**32)))
    _, found, taught = _attacked(learn, own, labels, generator)
    expected = np.mean([_signals(model(own), labels[own])[:, 0] for model in models], axis=0)
    return Memberships(
        Membership(taught, attack.decision_function(found)),
        Membership(taught, network.predict_proba(found)[:, 1]),
        Membership(taught, found[:, 0] - expected),
    )


def _attacked(
    learn: Learn,
    world: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    generator: np.random.Generator,
) -> tuple[Posterior, npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Train a model; return it, its signals for each document of its world, and the members."""
    members = half(labels[world], generator)
    model = learn(world[members])
    return model, _signals(model(world), labels[world]), members


def _signals(
    posteriors: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Compute the attack's features of each document, float64 (b, classes + 3)."""
    clipped = np.clip(posteriors, _CERTAIN, 1 - _CERTAIN)
    logs = np.log(clipped)
    places = np.arange(len(labels)), labels
    odds = logs[places] - np.log1p(-clipped[places])
    entropy = -(clipped * logs).sum(axis=1)
    return np.column_stack([odds, logs[places], entropy, np.sort(posteriors, axis=1)])


def _check(labels: npt.NDArray[np.int64], shadows: int) -> None:
    if shadows < 1:
        raise ValueError(f"{shadows} shadow models teach nothing; train one or more")
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
