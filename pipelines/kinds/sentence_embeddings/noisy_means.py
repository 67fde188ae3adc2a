"""Audits of noisy means of clipped sentences, in all dimensions, by rows that are released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.exact import Unresolved
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import (
    LowerBound,
    chance_at_least,
    epsilon_at_least,
)
from quietcorpus.evaluation.audits.uniforms import (
    Uniforms,
    dependence_at_least,
    distance_at_least,
)
from quietcorpus.mechanisms.sentences.projected_mean import Ball
from quietcorpus.transforms.privatizers.sentences import Embeddings, NoisySum

from .documents import Releases, drawn_for, draws_of, of_streams, release_texts, vectors

_VALUES = 1 << 21  # numbers of noise that one audit reads
_LEAST = 1000
_MOST_PAIRS = 1 << 15
_NUMBERS = 12  # of a document's outputs, besides those of all dimensions together
_THOUSAND = 1000
_ABOVE = 1 + 1e-12  # rounding up of a distance

Noise = npt.NDArray[np.int64]


class Pair(NamedTuple):
    """Two sentences that a release must not tell apart by more than is stated.

    Attributes:
        name: how they lie to each other.
        embeddings: float32 (2, D).
    """

    name: str
    embeddings: Embeddings


class StatedLaw(Protocol):
    """The noise's law as the guarantee states it, whatever the sampler is."""

    @property
    def rate(self) -> float:
        """Return the log-ratio that a step of distance is worth."""

    @property
    def order(self) -> int:
        """Return the order of the norm in which distances are measured: 1 or 2."""

    @property
    def most(self) -> int:
        """Return how many steps a sentence may move sums by."""

    def likeliest(self, dimensions: int) -> float:
        """Return an upper bound on the chance of the likeliest noise, which is none."""

    def uniforms(self, noise: Noise) -> tuple[Uniforms, npt.NDArray[np.bool_]]:
        """Return uniforms, independent if noise (n, d) has the law, and of which rows they are."""

    def samples(self, noise: Noise) -> dict[str, Uniforms]:
        """Return uniforms, by name, independent within each sample if noise (n, d) has the law."""


def audits(releases: Releases, law: StatedLaw, pairs: Sequence[Pair]) -> list[Exact | Sampled]:
    """Return the audits of sums, noise, losses, rows and streams."""
    mechanism = _mechanism(releases)
    told = told_dimensions(mechanism)
    dimensions = int(told.sum())
    few = max(_LEAST, min(_MOST_PAIRS, _VALUES // max(1, dimensions)))
    norm = {1: "L1", 2: "Euclidean"}[law.order]
    return [
        Exact(
            "documents: what a sentence moves sums by",
            float(law.most),
            f"The figures are steps in the {norm} norm: the largest change over pairs of documents "
            "of public sentences and of their reflections, some of them far beyond what is clipped "
            "to. A change of another document's sums counts as infinite.",
            partial(releases.change, law.order),
        ),
        Sampled(
            "documents: noise drawn, its distribution",
            0.0,
            "The figure is the largest difference between a distribution function and the stated "
            f"law's, over {dimensions} dimensions, other directions and the noise's length. The "
            "noise is what releases of texts added to the sums of their sentences.",
            partial(_distance, releases, law),
            most=few,
        ),
        Sampled(
            "documents: noise drawn, its independence",
            0.0,
            "The figure is the largest correlation between two dimensions, two documents that are "
            "any number of places apart, or the noise and the sums that it was added to.",
            partial(_dependence, releases, law),
            most=few,
        ),
        Sampled(
            "documents: noise drawn, its repeats",
            min(1.0, few * law.likeliest(dimensions)),
            "The figure is the chance that a document's noise is, in all dimensions, that of an "
            "earlier one; stated is the chance of the likeliest noise, times their number.",
            partial(_repeats, releases),
            most=few,
        ),
        *(_loss(releases, law, pair, few) for pair in pairs),
        Exact(
            "documents: rows besides noisy sums",
            0.0,
            "The figure is how many rows were not, bit for bit, what their own noisy sums and "
            "numbers of sentences give.",
            lambda: float(rows_besides_sums(releases)),
        ),
        *of_streams(releases),
    ]


def noise_of(releases: Releases, count: int) -> tuple[Noise, npt.NDArray[np.float64]]:
    """Release `count` documents; return the noise, and the sums in [-1, 1] about their mean.

    The shapes are (n, d), without dimensions of which released rows tell nothing.
    """
    privatizer, texts = releases.privatizer(), releases.texts
    mechanism = _mechanism(releases)
    sums = _sums(releases, mechanism)
    places = np.arange(count) % len(texts)
    rows = vectors(draws_of(privatizer, texts, count))
    noise = noisy_sums(mechanism, rows, releases.lengths[places]) - sums[places]
    told = told_dimensions(mechanism)
    about = sums - sums.mean(axis=0)
    about /= np.maximum(1, np.abs(about).max(axis=0))
    return noise[:, told], about[places][:, told]


def noisy_sums(
    mechanism: NoisySum, rows: Embeddings, lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Read the noisy sums off released rows of `lengths` sentences each: int64 (n, d)."""
    means = mechanism.clipping.means(rows)
    return np.rint(means * np.maximum(lengths, 1)[:, None]).astype(np.int64)


def told_dimensions(mechanism: NoisySum) -> npt.NDArray[np.bool_]:
    """Return in which dimensions released rows tell noisy sums, bool (d,): those of some width."""
    clipping = mechanism.clipping
    if isinstance(clipping, Ball):
        return np.ones(len(clipping.directions), dtype=bool)
    found: npt.NDArray[np.bool_] = clipping.width > 0
    return found


def rows_besides_sums(releases: Releases) -> int:
    """Count released rows that are not what the noisy sums that they tell give.

    Raises Unresolved where floats do not tell the sums.
    """
    mechanism = _mechanism(releases)
    rows = vectors(release_texts(releases.privatizer(), (*releases.texts, "")))
    lengths = np.append(releases.lengths, 0)
    noisy = noisy_sums(mechanism, rows, lengths)
    again = mechanism.noisy.rows(noisy, lengths)
    told = told_dimensions(mechanism)
    if (noisy_sums(mechanism, again, lengths) != noisy)[:, told].any():
        raise Unresolved("rows of 32 bits do not tell their sums")
    return int((again.view(np.int32) != rows.view(np.int32)).any(axis=1).sum())


def _loss(releases: Releases, law: StatedLaw, pair: Pair, most: int) -> Sampled:
    """Return the audit of two documents of a sentence each."""
    alone = replace(releases, embeddings=pair.embeddings, documents=((0,), (1,)))
    mechanism = _mechanism(alone)
    sums = _sums(alone, mechanism)
    told = told_dimensions(mechanism)
    moved = (sums[1] - sums[0]).astype(np.float64)
    steps = float(np.linalg.norm(moved, ord=law.order))
    stated = min(law.rate * law.most, law.rate * steps * _ABOVE)
    one, other = alone.inputs(mechanism, (0, 1))

    def released(given: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int64]:
        rows = vectors(drawn_for(alone.privatizer(), np.stack([one, given]), 2 * count))
        noisy = noisy_sums(mechanism, rows, np.ones(2 * count, dtype=np.int64))[:, told]
        return _outputs(noisy, sums[:, told], law).reshape(count, -1)

    return Sampled(
        f"documents: {pair.name}",
        stated,
        f"Two documents of a sentence were released, whose sums lie {steps:.4g} steps apart of "
        f"{law.most}, by the likelihoods of all dimensions and by single ones.",
        partial(epsilon_at_least, released, one, other),
        most=most,
    )


def _outputs(noisy: Noise, sums: Noise, law: StatedLaw) -> Noise:
    """Return numbers by which two sums, (2, d), may be told apart: int64 (n, k)."""
    moved = sums[1] - sums[0]
    first, second = (
        np.linalg.norm((noisy - own).astype(np.float64), ord=law.order, axis=1) for own in sums
    )
    likelihoods = np.rint(law.rate * _THOUSAND * (first - second)).astype(np.int64)
    changed = np.argsort(-np.abs(moved), kind="stable")[:_NUMBERS]
    return np.column_stack(
        [likelihoods, noisy @ moved, noisy[:, changed], noisy[:, changed[:1]] & 1]
    )


def _distance(releases: Releases, law: StatedLaw, draws: int, level: float) -> LowerBound:
    noise, _ = noise_of(releases, draws)
    return distance_at_least(law.samples(noise), level)


def _dependence(releases: Releases, law: StatedLaw, draws: int, level: float) -> LowerBound:
    noise, sums = noise_of(releases, draws)
    uniforms, left = law.uniforms(noise)
    return dependence_at_least(uniforms, level, sums[left])


def _repeats(releases: Releases, draws: int, level: float) -> LowerBound:
    # Given all before it, a document's noise is one of theirs with the stated chance at most.
    noise, _ = noise_of(releases, draws)
    _, first = np.unique(noise, axis=0, return_index=True)
    earlier = np.ones(len(noise), dtype=bool)
    earlier[first] = False
    return chance_at_least(lambda _: earlier, draws, level)


def _mechanism(releases: Releases) -> NoisySum:
    mechanism = releases.privatizer().mechanism
    assert isinstance(mechanism, NoisySum)
    return mechanism


def _sums(releases: Releases, mechanism: NoisySum) -> npt.NDArray[np.int64]:
    """Return the sums of every document, int64 (n, d)."""
    inputs = releases.inputs(mechanism, range(len(releases.documents)))
    return inputs[:, 1:].astype(np.int64)
