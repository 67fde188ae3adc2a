"""The recoder: codes by definition and of one sentence alone; what training is for.

Statistical checks reject a correct implementation with probability ALPHA at most.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn
from scipy import stats

from quietcorpus.indexes import recoder as module
from quietcorpus.indexes.recoder import LARGEST, WIDTHS, Recoder, means, train

ALPHA = 1e-6
DIMENSIONS = 6
CLUSTERS = 4

Floats = npt.NDArray[np.float32]

any_floats = hn.arrays(
    np.float32,
    st.tuples(st.integers(0, 9), st.just(DIMENSIONS)),
    elements=st.floats(-1e6, 1e6, width=32),
)


def some_recoder(size: float) -> Recoder:
    """Random layers, whose codes are about so large for embeddings of about 1."""
    generator = np.random.default_rng()
    sizes = [DIMENSIONS, *WIDTHS]
    weights = [
        generator.normal(size=(a, b)) * np.sqrt(2 / a)
        for a, b in zip(sizes, sizes[1:], strict=False)
    ]
    biases = [generator.normal(size=b) / 2 for b in WIDTHS]
    weights[-1] *= size
    biases[-1] *= size
    return Recoder(*([part.astype(np.float32) for part in parts] for parts in (weights, biases)))


def layer(value: Floats, weights: Floats, bias: Floats) -> Floats:
    """One row through one layer: sums in the order of inputs, each operation rounded."""
    sums = bias.copy()
    for one, row in zip(value, weights, strict=True):
        sums = sums + one * row
    assert sums.dtype == np.float32
    return sums


def slowly(recoder: Recoder, embedding: Floats) -> npt.NDArray[np.float64]:
    """A row's code, by definition."""
    value = embedding
    for number, (weights, bias) in enumerate(zip(recoder.weights, recoder.biases, strict=True)):
        value = layer(value, weights, bias)
        if number < len(WIDTHS) - 1:
            value = np.maximum(value, np.float32(0))
    return np.clip(np.rint(value.astype(np.float64)), -LARGEST, LARGEST)


def test_codes_are_the_definitions_bit_by_bit() -> None:
    """Codes are so large that most last digits of the sums are seen.

    Kills: sums in another order, in float64 or fused with products; a ReLU that is missing or one
    too many; layers, biases or weights that are mixed up; rounding down; codes that are not cut.
    """
    recoder = some_recoder(1 << 19)
    generator = np.random.default_rng()
    embeddings = generator.normal(size=(40, DIMENSIONS)).astype(np.float32)
    embeddings[generator.random(embeddings.shape) < 0.2] = 0
    expected = np.array([slowly(recoder, row) for row in embeddings])
    assert (np.abs(expected) == LARGEST).any()
    assert (np.abs(expected) < LARGEST).any()
    found = recoder.recode(embeddings)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(recoder.recode(np.asfortranarray(embeddings)), expected)

    def by_products(value: npt.NDArray[Any], kind: type) -> npt.NDArray[Any]:
        for number, (weights, bias) in enumerate(zip(recoder.weights, recoder.biases, strict=True)):
            value = value.astype(kind) @ weights.astype(kind) + bias.astype(kind)
            value = np.maximum(value, 0) if number < len(WIDTHS) - 1 else value
        return np.clip(np.rint(value.astype(np.float64)), -LARGEST, LARGEST)

    for kind in (np.float32, np.float64):  # the controls
        other = by_products(embeddings, kind)
        assert not np.array_equal(other, expected)
        np.testing.assert_allclose(other, expected, atol=LARGEST / 1e4)


@pytest.mark.parametrize("rectified", [False, True])
def test_a_layers_sums_are_the_definitions_bit_by_bit(rectified: bool) -> None:
    """Before any rounding to whole numbers.

    Kills: a kernel that may reorder or fuse operations (`fastmath`).
    """
    generator = np.random.default_rng()
    values, weights, bias = (
        generator.normal(size=shape).astype(np.float32) for shape in ((50, 37), (37, 19), 19)
    )
    expected = np.array([layer(row, weights, bias) for row in values])
    if rectified:
        expected = np.maximum(expected, np.float32(0))
        assert (expected == 0).any()
    np.testing.assert_array_equal(module._layer(values, weights, bias, rectified), expected)


RECODER = some_recoder(1 << 10)


@given(embeddings=any_floats)
def test_a_code_depends_on_its_sentence_alone(embeddings: Floats) -> None:
    """Kills: anything taken over the batch, products whose bits change with the number of rows."""
    found = RECODER.recode(embeddings)
    assert found.shape == (len(embeddings), WIDTHS[-1])
    for row, embedding in zip(found, embeddings, strict=True):
        np.testing.assert_array_equal(RECODER.recode(embedding[None])[0], row)
    np.testing.assert_array_equal(RECODER.recode(embeddings[::-1])[::-1], found)


@given(embeddings=any_floats)
def test_codes_are_whole_numbers_that_can_be_projected(embeddings: Floats) -> None:
    """Kills: codes that are not rounded, or cut on one side only."""
    found = RECODER.recode(embeddings)
    np.testing.assert_array_equal(found, np.rint(found))
    assert np.abs(found).max(initial=0) <= LARGEST


def test_codes_are_cut_on_both_sides() -> None:
    codes = RECODER.recode(np.full((1, DIMENSIONS), 1e9, np.float32))
    assert {-LARGEST, LARGEST} <= set(codes.ravel().tolist())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    """Kills: a NaN that becomes a code, an infinity that the cut makes one."""
    embeddings = np.zeros((3, DIMENSIONS), np.float32)
    embeddings[1, -1] = value
    with pytest.raises(ValueError, match=r"^an embedding is not finite$"):
        RECODER.recode(embeddings)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_means(kind: type) -> None:
    """Kills: sums for means, a mean over all lengths, means in float32, offsets shifted by one."""
    vectors = np.array([[1, 16_777_217], [2, 0], [6, 3], [-4, 1], [5, 0.5]]).astype(kind)
    found = means(vectors, np.array([0, 1, 4, 5]))
    assert found.dtype == np.float64
    whole = [vectors[:1], vectors[1:4], vectors[4:]]
    expected = [part.astype(np.float64).sum(axis=0) / len(part) for part in whole]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[1], [4 / 3, 4 / 3])
    # Documents of none, wherever they are. Kills: a neighbour's sum, NaN.
    some = means(vectors, np.array([0, 0, 1, 4, 4, 4, 5, 5]))
    np.testing.assert_array_equal(some[[1, 2, 5]], expected)
    assert not some[[0, 3, 4, 6]].any()
    assert not means(vectors[:0], np.array([0, 0, 0])).any()


class Corpus(NamedTuple):
    """Documents whose clusters one sentence hardly tells, and their mean does."""

    embeddings: Floats
    offsets: npt.NDArray[np.int64]
    clusters: npt.NDArray[np.int64]
    held: npt.NDArray[np.bool_]


CENTRES = np.eye(CLUSTERS, DIMENSIONS) / 5


def corpus(documents: int = 160) -> Corpus:
    """Sentences of deviation 0.4 around a cluster's centre, in an encoder's own place and unit.

    Of 30 or so, the mean has a deviation of 0.07, and centres are 0.28 apart.
    """
    generator = np.random.default_rng()
    lengths = generator.integers(24, 40, documents)
    clusters = generator.permutation(np.arange(documents) % CLUSTERS)
    whose = np.repeat(clusters, lengths)
    noise = generator.normal(size=(lengths.sum(), DIMENSIONS)) * 0.4
    embeddings = (3 + (CENTRES[whose] + noise) / 20).astype(np.float32)
    held = np.arange(documents) >= documents // 2
    return Corpus(embeddings, np.cumsum([0, *lengths]), clusters, held)


def passes(accuracy: float, trials: int) -> bool:
    """Return whether it is more than chance, one in CLUSTERS, would give (exact, one-sided)."""
    return bool(stats.binom.sf(round(accuracy * trials) - 1, trials, 1.5 / CLUSTERS) < ALPHA)


def some_seed() -> int:
    return secrets.randbits(32)


@pytest.fixture(scope="module")
def separable() -> Corpus:
    return corpus()


@pytest.fixture(scope="module")
def trained(separable: Corpus) -> tuple[Recoder, module.TrainingCourse]:
    return train(*separable, some_seed())


def test_training_pays(separable: Corpus, trained: tuple[Recoder, module.TrainingCourse]) -> None:
    """Held-out documents, far above half as much again as chance.

    Kills: weights that are never updated, a head on single sentences, sums that go to another
    document, clusters of other rows, accuracies of the documents that were trained on.
    """
    recoder, training = trained
    trials = int(separable.held.sum())
    assert len(training.losses) == len(training.accuracies)
    assert passes(training.accuracies[-1], trials)
    assert training.losses[-1] < 0.8 * training.losses[0]
    # The layers that are kept are the trained ones: documents lie nearest to their own kind.
    codes = means(recoder.recode(separable.embeddings), separable.offsets)
    kinds = np.array(
        [codes[~separable.held & (separable.clusters == c)].mean(axis=0) for c in range(CLUSTERS)]
    )
    nearest = ((codes[separable.held, None] - kinds) ** 2).sum(axis=2).argmin(axis=1)
    assert passes(float((nearest == separable.clusters[separable.held]).mean()), trials)


def test_control_clusters_without_a_meaning_cannot_be_learnt() -> None:
    """They can be learnt by heart: so many dimensions tell every document from the others.

    Kills: an accuracy of the documents that were trained on.
    """
    generator = np.random.default_rng()
    embeddings = generator.normal(size=(400, 128)).astype(np.float32)
    clusters = generator.integers(0, CLUSTERS, 200)
    held = np.arange(200) >= 100
    _, training = train(embeddings, np.arange(0, 401, 2), clusters, held, some_seed())
    assert not passes(training.accuracies[-1], 100)
    assert training.losses[-1] < 0.5


def test_codes_have_the_intended_spread(
    separable: Corpus, trained: tuple[Recoder, module.TrainingCourse]
) -> None:
    """Kills: a grid so coarse that depths tie, or so fine that codes are cut."""
    assert trained[0].recode(separable.embeddings).std() == pytest.approx(module._TYPICAL, rel=0.01)


def test_the_kept_layers_are_the_networks() -> None:
    """Folded: the embeddings' own place and unit, and the codes' grid.

    Kills: a centre that is forgotten or taken after the scale, a factor in each layer, weights for
    their transpose, dropout that is kept.
    """
    import torch
    from torch import nn

    generator = np.random.default_rng()
    layers = [nn.Linear(a, b) for a, b in zip([DIMENSIONS, *WIDTHS], WIDTHS, strict=False)]
    centre, spread = generator.normal(size=DIMENSIONS).astype(np.float32), 0.07
    embeddings = (centre + spread * generator.normal(size=(20, DIMENSIONS))).astype(np.float32)
    values = torch.from_numpy(((embeddings - centre) / spread).astype(np.float32))
    with torch.inference_mode():
        for layer in layers[:-1]:
            values = torch.relu(layer(values))
        expected = layers[-1](values).numpy()
    deviation = float(expected.std())
    found = module._folded(layers, centre, spread, deviation).recode(embeddings)
    assert found.std() == pytest.approx(module._TYPICAL, rel=0.01)
    np.testing.assert_allclose(found, expected * (module._TYPICAL / deviation), atol=1.5)


def layers_of(recoder: Recoder) -> list[bytes]:
    return [part.tobytes() for part in (*recoder.weights, *recoder.biases)]


def test_the_seed_decides() -> None:
    """Kills: a generator with fresh entropy, a fixed one; torch's state from what ran before."""
    import torch

    small, seed = corpus(80), some_seed()
    kept = [part.copy() for part in small]
    first = train(*small, seed)
    torch.rand(int(np.random.default_rng().integers(1, 100)))
    again, other = train(*small, seed), train(*small, seed + 1)
    assert layers_of(first[0]) == layers_of(again[0])
    assert first[1] == again[1]
    assert layers_of(first[0]) != layers_of(other[0])
    for before, after in zip(kept, small, strict=True):
        np.testing.assert_array_equal(before, after)


def test_what_is_trained_has_the_shapes_of_a_recoder(
    trained: tuple[Recoder, module.TrainingCourse],
) -> None:
    recoder, _ = trained
    assert [w.shape for w in recoder.weights] == list(
        zip([DIMENSIONS, *WIDTHS], WIDTHS, strict=False)
    )
    assert [b.shape for b in recoder.biases] == [(width,) for width in WIDTHS]
    for part in (*recoder.weights, *recoder.biases):
        assert part.dtype == np.float32
        assert part.flags.c_contiguous
