"""Exact audit: the largest likelihood ratio over all neighbours is the stated guarantee.

Nothing is drawn here. The output laws come from the laws that the samplers hold (that the samplers
follow them is tested beside them), at 200 bits; every pair of documents within N of one another is
tried, over every output in a box, beyond which a ratio of two-sided geometric masses is constant.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from quietcorpus.indexes.maps import compression
from quietcorpus.mechanisms.accounting.guarantees import Spending, compose
from quietcorpus.mechanisms.bags.bag_of_words import Accounting, BagOfWords
from quietcorpus.mechanisms.bags.histogram import Histogram, ThresholdedVocabulary
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise, TwoSidedGeometric, _Gap

BITS = 200
REACH = 24
CLOSE = 1e-9


def log_masses(law: TwoSidedGeometric) -> np.ndarray:
    """log Pr[Z = z] for z in -REACH .. REACH, from the survival function the sampler tabulates."""
    logs = np.empty(2 * REACH + 1)
    with localcontext(prec=250):
        before = Decimal(1)
        for index in range(2 * REACH + 1):
            after = Decimal(sum(law.survival(index, 4 * BITS))) / 2 / (1 << 4 * BITS)
            value = int(law.values(np.array([index]))[0])
            logs[value + REACH] = float((before - after).ln())
            before = after
    return logs


def dense_law(mechanism: BagOfWords) -> TwoSidedGeometric:
    noise = mechanism.noise()
    assert isinstance(noise, DenseNoise)
    law = noise.law
    assert isinstance(law, TwoSidedGeometric)
    return law


def documents(vocabulary: int, most: int) -> np.ndarray:
    return np.array(list(itertools.product(range(most + 1), repeat=vocabulary)))


def neighbours(vocabulary: int, most: int, precision: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """All ordered pairs of bags that differ, by at most `precision`."""
    bags = documents(vocabulary, most)
    distances = np.abs(bags[:, None] - bags[None]).sum(axis=2)
    return [(bags[i], bags[j]) for i, j in np.argwhere((distances > 0) & (distances <= precision))]


def compress(bag: np.ndarray, bins: np.ndarray, size: int) -> tuple[int, ...]:
    return tuple(np.bincount(bins, weights=bag, minlength=size).astype(int).tolist())


def log_law(logs: np.ndarray, counts: tuple[int, ...], box: range) -> np.ndarray:
    """log Pr[output] for every output in box^K."""
    outputs = np.arange(box.start, box.stop)
    joint = np.zeros(())
    for count in counts:
        joint = np.add.outer(joint, logs[outputs - count + REACH])
    return joint.ravel()


MAPS = {
    "none": ([0, 1, 2], 3),
    "one bin": ([0, 0, 0, 0], 1),
    "pairs": ([0, 1, 0, 1], 2),
    "uneven": ([2, 1, 0, 0], 3),
}
BOX = range(-4, 9)


def worst(mechanism: BagOfWords, name: str, precision: int) -> float:
    """The largest log-ratio of one document's release over all neighbours."""
    bins, size = np.array(MAPS[name][0]), MAPS[name][1]
    logs = log_masses(dense_law(mechanism))
    pairs = {
        (compress(one, bins, size), compress(other, bins, size))
        for one, other in neighbours(len(bins), 2, precision)
    }
    laws = {x: log_law(logs, x, BOX) for pair in pairs for x in pair}
    return max(float((laws[one] - laws[other]).max()) for one, other in pairs)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.parametrize(("precision", "epsilon"), [(1, Fraction(2)), (3, Fraction(1, 2))])
def test_a_documents_release(
    name: str, accounting: Accounting, precision: int, epsilon: Fraction
) -> None:
    bins, size = MAPS[name]
    mechanism = BagOfWords(precision, epsilon, len(bins), size, accounting)
    stated = float(mechanism.guarantee.epsilon)
    loss = worst(mechanism, name, precision)
    assert loss <= stated + CLOSE
    assert loss >= stated - CLOSE  # Attained: the statement cannot be improved.
    # Controls: noise of half the scale, and neighbours one token farther apart.
    half = BagOfWords(precision, 2 * epsilon, len(bins), size, accounting)
    assert worst(half, name, precision) > stated + CLOSE
    assert worst(mechanism, name, precision + 1) > stated + CLOSE


def test_the_papers_figure_is_no_bound_with_fewer_bins_than_terms() -> None:
    # The reason why the card states V * epsilon / K for the paper's accounting.
    mechanism = BagOfWords(1, Fraction(1), 4, 2, Accounting.PER_ENTRY)
    assert mechanism.papers_epsilon == 1
    assert worst(mechanism, "pairs", 1) == pytest.approx(2, abs=CLOSE)


def histogram_and_documents(histogram: Histogram, mechanism: BagOfWords, precision: int) -> float:
    """The largest log-ratio of the noisy histogram and the document's bins under the FREQUENCY
    map that the histogram chose, beside a corpus of other documents."""
    vocabulary, size, rest = 3, 2, np.array([2, 1, 1])
    h_noise = TwoSidedGeometric(histogram.guarantee.epsilon / histogram.precision)
    h_logs, x_logs = log_masses(h_noise), log_masses(dense_law(mechanism))
    box = range(-1, 7)
    maps = [
        tuple(compression.frequency(np.array(h, dtype=np.int64), size).tolist())
        for h in itertools.product(box, repeat=vocabulary)
    ]
    most = -math.inf
    for one, other in neighbours(vocabulary, 2, precision):
        histograms = log_law(h_logs, tuple(rest + one), box) - log_law(
            h_logs, tuple(rest + other), box
        )
        released = {}
        for bins in set(maps):
            x, x_other = (compress(bag, np.array(bins), size) for bag in (one, other))
            released[bins] = (log_law(x_logs, x, BOX) - log_law(x_logs, x_other, BOX)).max()
        most = max(most, float((histograms + np.array([released[m] for m in maps])).max()))
    return most


@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.parametrize("precision", [1, 2])
def test_histogram_and_document_compose(accounting: Accounting, precision: int) -> None:
    # The map depends on the noisy histogram: adaptive composition, exactly N tokens of one term
    # attaining the sum. Kills: a map made from the exact counts, a stage left out of the total.
    histogram = Histogram(precision, Fraction(3, 4))
    mechanism = BagOfWords(precision, Fraction(3, 2), 3, 2, accounting)
    stated = compose(
        [Spending("histogram", histogram.guarantee), Spending("documents", mechanism.guarantee)]
    )
    loss = histogram_and_documents(histogram, mechanism, precision)
    assert loss == pytest.approx(float(stated.epsilon), abs=CLOSE)
    weaker = Histogram(precision, Fraction(3, 2))
    assert histogram_and_documents(weaker, mechanism, precision) > float(stated.epsilon) + 0.5


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(2), Fraction(5)], ids=str)
def test_sparse_noise_has_the_joint_law_of_dense_noise(rate: Fraction) -> None:
    # The gaps' and values' laws, multiplied along the walk, are the product of the entries' masses.
    size = 3
    noise = SparseNoise(rate, size)
    gap, value = noise.laws
    assert isinstance(gap, _Gap)
    with localcontext(prec=60):

        def survival(law: object, index: int) -> Decimal:
            bounds = (1 << BITS,) * 2 if index < 0 else law.survival(index, BITS)  # type: ignore[attr-defined]
            return Decimal(sum(bounds)) / 2 / (1 << BITS)

        def mass(law: object, index: int) -> Decimal:
            return survival(law, index - 1) - survival(law, index)

        a = (Decimal(-rate.numerator) / Decimal(rate.denominator)).exp()
        values = [int(v) for v in value.values(np.arange(6))]
        assert sorted(values) == [-3, -2, -1, 1, 2, 3]
        for outcome in itertools.product(range(-3, 4), repeat=size):
            walk, last = Decimal(1), -1
            for position in range(size):
                if outcome[position]:
                    walk *= mass(gap, position - last - 1)
                    walk *= mass(value, values.index(outcome[position]))
                    last = position
            walk *= survival(gap, size - last - 2)
            product = math.prod((1 - a) / (1 + a) * a ** abs(z) for z in outcome)
            assert abs(walk / product - 1) < Decimal("1e-40")


def selection_law(selection: ThresholdedVocabulary, frequencies: tuple[int, ...]) -> np.ndarray:
    """Pr[exactly this set of terms is released], over all sets; a frequency of 0 never is."""
    law = TwoSidedGeometric(selection.epsilon / selection.precision)
    threshold = selection.threshold
    sets = np.ones(())
    for frequency in frequencies:
        least = threshold - frequency
        tail = law.tail(abs(least) + (least <= 0), BITS)[0] / (1 << BITS)
        chance = 0.0 if frequency == 0 else (1 - tail if least <= 0 else tail)
        sets = np.multiply.outer(sets, np.array([1 - chance, chance]))
    return sets.ravel()


def hockey_stick(selection: ThresholdedVocabulary, stated_epsilon: float) -> float:
    """The delta at `stated_epsilon`, over all corpora of a few frequencies and their neighbours."""
    near = selection.threshold
    frequencies = sorted({0, 1, 2, near - 1, near, near + 1})
    laws: dict[tuple[int, ...], np.ndarray] = {
        f: selection_law(selection, f) for f in itertools.product(frequencies, repeat=3)
    }
    worst_delta = 0.0
    for one, other in itertools.permutations(laws, 2):
        steps = [abs(f - g) for f, g in zip(one, other, strict=True)]
        if max(steps) <= 1 and sum(steps) <= selection.precision:
            excess = laws[one] - math.exp(stated_epsilon) * laws[other]
            worst_delta = max(worst_delta, float(np.maximum(excess, 0).sum()))
    return worst_delta


class OneLower(ThresholdedVocabulary):
    """The control: a threshold that is one too low."""

    @property
    def threshold(self) -> int:
        return super().threshold - 1


# All but those in which no delta below one has this threshold.
SELECTIONS = [
    (precision, rate, threshold)
    for precision in (1, 2, 3)
    for rate in (Fraction(1, 5), Fraction(1), Fraction(3))
    for threshold in (2, 3, 6)
    if precision * math.exp(-rate * (threshold - 1)) / (1 + math.exp(-rate)) < 1
]


@pytest.mark.parametrize(("precision", "rate", "threshold"), SELECTIONS)
def test_a_selected_vocabulary(precision: int, rate: Fraction, threshold: int) -> None:
    # A delta that the threshold just meets, some of them far above epsilon: documents that add
    # terms and documents that take them away both stay within (epsilon, delta).
    upper = TwoSidedGeometric(rate).tail(threshold - 1, BITS)[1]
    delta = Fraction(precision * (upper + 1), 1 << BITS)
    epsilon = rate * precision
    selection = ThresholdedVocabulary(precision, epsilon, delta)
    assert selection.threshold == threshold
    stated = selection.guarantee
    assert hockey_stick(selection, float(stated.epsilon)) <= float(stated.delta) + 1e-12
    if threshold > 2 and (precision == 1 or delta < Fraction(1, 10)):
        # Where the union bound is tight enough, one lower is too low.
        lower = OneLower(precision, epsilon, delta)
        assert hockey_stick(lower, float(stated.epsilon)) > float(stated.delta)
