"""A recoder's training reaches its purpose, and its gradients are those of its loss.

Statistical checks reject a correct implementation with probability ALPHA at most.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from quietcorpus.indexes.documents import training as module
from quietcorpus.indexes.documents.recoder import TYPICAL, WIDTHS, Recoder, means
from quietcorpus.indexes.documents.training import train

ALPHA = 1e-6
DIMENSIONS = 6
CLUSTERS = 4

Floats = npt.NDArray[np.float32]


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


@pytest.mark.slow
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
    assert trained[0].recode(separable.embeddings).std() == pytest.approx(TYPICAL, rel=0.01)


def some_network() -> module._Network:
    return module._Network([DIMENSIONS, *WIDTHS, CLUSTERS], np.random.default_rng())


def test_the_kept_layers_are_the_networks() -> None:
    """Folded: the embeddings' own place and unit, and the codes' grid.

    Kills: a centre that is forgotten or taken after the scale, a factor in each layer, weights for
    their transpose, dropout that is kept.
    """
    generator = np.random.default_rng()
    network = some_network()
    centre, spread = generator.normal(size=DIMENSIONS).astype(np.float32), 0.07
    embeddings = (centre + spread * generator.normal(size=(20, DIMENSIONS))).astype(np.float32)
    expected = network.codes(((embeddings - centre) / spread).astype(np.float32))
    deviation = float(expected.std())
    found = module._folded(network, centre, spread, deviation).recode(embeddings)
    assert found.std() == pytest.approx(TYPICAL, rel=0.01)
    np.testing.assert_allclose(found, expected * (TYPICAL / deviation), atol=1.5)


def test_gradients_are_those_of_the_loss_under_dropout() -> None:
    """By differences, in float64, with the same sentences dropped.

    Kills: a layer's gradient without its ReLU or dropout, sentences whose gradient is another
    document's or is not divided, a loss of sums.
    """
    generator = np.random.default_rng()
    network, seed = some_network(), some_seed()
    network.weights = [values.astype(np.float64) for values in network.weights]
    # Without biases, a unit whose inputs are all dropped is at its ReLU's bend.
    network.biases = [generator.normal(size=values.shape) for values in network.biases]
    lengths = np.array([3, 1, 5])
    sentences = generator.normal(size=(9, DIMENSIONS))
    clusters = generator.integers(0, CLUSTERS, 3)

    def loss() -> float:
        return network.gradients(sentences, lengths, clusters, np.random.default_rng(seed))[0]

    _, gradients = network.gradients(sentences, lengths, clusters, np.random.default_rng(seed))

    def slope(values: npt.NDArray[np.float64], direction: npt.NDArray[np.float64]) -> float:
        kept, step = values.copy(), 1e-8
        values[:] = kept + step * direction
        above = loss()
        values[:] = kept - step * direction
        difference = (above - loss()) / (2 * step)
        values[:] = kept
        return difference

    for values, gradient in zip(network.parameters, gradients, strict=True):
        assert gradient.shape == values.shape
        # A step over a bend has another slope: that two directions lead over one is rarer still.
        directions = generator.normal(size=(2, *values.shape))
        assert any(
            slope(values, direction) == pytest.approx((gradient * direction).sum(), 1e-3, 1e-8)
            for direction in directions
        )


@pytest.mark.slow
def test_steps_are_adamws() -> None:
    """As PyTorch takes them. Kills: moments without their correction, decay within the gradient."""
    import torch

    generator = np.random.default_rng()
    values = generator.normal(size=(4, 3)).astype(np.float32)
    theirs = torch.nn.Parameter(torch.from_numpy(values.copy()))
    optimiser = torch.optim.AdamW([theirs], lr=1e-2, weight_decay=1e-4)
    ours = module._AdamW([values])
    for _ in range(6):
        gradient = generator.normal(size=values.shape).astype(np.float32)
        theirs.grad = torch.from_numpy(gradient.copy())
        optimiser.step()
        ours.step([gradient], 1e-2)
        np.testing.assert_allclose(values, theirs.detach().numpy(), rtol=1e-4, atol=1e-6)


def layers_of(recoder: Recoder) -> list[bytes]:
    return [part.tobytes() for part in (*recoder.weights, *recoder.biases)]


@pytest.mark.slow
def test_the_seed_decides() -> None:
    """Kills: a generator with fresh entropy, a fixed one, arguments that are changed."""
    small, seed = corpus(80), some_seed()
    kept = [part.copy() for part in small]
    first = train(*small, seed)
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
