"""Directions along which documents differ: Fisher's discriminants, what they are measured in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import linalg
from sklearn.covariance import ledoit_wolf
from small_candidates import some_candidates

from quietcorpus.indexes.documents.candidates import (
    LARGEST_DIRECTION,
    LARGEST_LIFT,
    MOST_DIRECTIONS,
    open_candidates,
    save,
)
from quietcorpus.indexes.documents.training import Discriminants, discriminants

DOCUMENTS, LENGTH, DIMENSIONS = 300, 8, 30


def corpus(spread: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], ...]:
    """Sentences, whose dimensions vary by 1 to 30, and means of documents that differ by `spread`.

    The shapes are (n, d) and (m, d).
    """
    generator = np.random.default_rng()
    shifts = generator.normal(size=(DOCUMENTS, 1, DIMENSIONS)) * spread
    own = generator.normal(size=(DOCUMENTS, LENGTH, DIMENSIONS)) * np.arange(1, DIMENSIONS + 1)
    whole = 0.01 * (own + shifts)
    return whole.reshape(-1, DIMENSIONS), whole.mean(axis=1)


def found_of(
    sentences: npt.NDArray[np.float64], documents: npt.NDArray[np.float64]
) -> Discriminants:
    every = np.arange(len(sentences))
    return discriminants(sentences, sentences.mean(axis=0), documents, every)


def units(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_documents_differ_along_the_first() -> None:
    """Kills: principal directions, which are those in which all sentences vary most."""
    spread = np.zeros(DIMENSIONS)
    spread[3] = 6.0  # sentences have 4 there, and 30 in the last dimension
    sentences, documents = corpus(spread)
    first = units(found_of(sentences, documents).directions)[0]
    assert abs(first[3]) > 0.95
    principal = np.linalg.svd(documents - documents.mean(axis=0))[2][0]
    assert abs(principal[3]) < 0.5


def test_they_are_those_of_the_definition() -> None:
    """By the generalised eigenvalues. Kills: whitening by a power, rows of another order."""
    sentences, documents = corpus(3.0 * np.arange(DIMENSIONS, 0, -1))
    found = units(found_of(sentences, documents).directions)
    covariance, _ = ledoit_wolf(sentences - sentences.mean(axis=0), assume_centered=True)
    expected = linalg.eigh(np.cov(documents.T), covariance)[1].T[::-1][: len(found)]
    cosines = np.abs((found * units(expected)).sum(axis=1))
    assert len(found) == MOST_DIRECTIONS
    assert cosines.min() > 0.99


def test_the_unit_of_embeddings_does_not_matter() -> None:
    """Kills: a floor of variances that is not a share, a radius in other units."""
    sentences, documents = corpus(3.0 * np.arange(DIMENSIONS, 0, -1))
    found, larger = (found_of(by * sentences, by * documents) for by in (1 / 1024, 1.0))
    signs = np.sign((found.directions * larger.directions).sum(axis=1))[:, None]
    np.testing.assert_allclose(found.directions, signs * larger.directions, atol=1)
    np.testing.assert_allclose(larger.radii, 1024 * found.radii, rtol=0.01)


def test_half_of_the_sentences_are_in_the_ball() -> None:
    """Kills: radii of other numbers of directions, or in units of the grid."""
    sentences, documents = corpus(3.0 * np.arange(DIMENSIONS, 0, -1))
    directions, radii, _ = found_of(sentences, documents)
    places = (sentences - sentences.mean(axis=0)) @ directions.T / LARGEST_DIRECTION
    for number, radius in enumerate(radii, start=1):
        lengths = np.linalg.norm(places[:, :number], axis=1)
        assert abs((lengths <= radius).mean() - 0.5) < 0.01


def test_lifts_lead_back() -> None:
    """Of documents on a plane. Kills: lifts that are the directions, a regression turned round."""
    sentences, _ = corpus(np.zeros(DIMENSIONS))
    plane = np.random.default_rng().normal(size=(2, DIMENSIONS))
    documents = np.random.default_rng().normal(size=(DOCUMENTS, 2)) @ plane
    directions, _, lifts = found_of(sentences, documents)
    own = documents - documents.mean(axis=0)
    lifted = own @ directions[:2].T @ lifts[:2] / LARGEST_DIRECTION**2
    np.testing.assert_allclose(lifted, own, atol=0.02 * np.abs(own).max())
    turned = own @ directions[:2].T @ directions[:2] / LARGEST_DIRECTION**2
    assert np.abs(turned - own).max() > 0.1 * np.abs(own).max()


def test_there_are_as_many_as_documents_differ_in() -> None:
    """Kills: directions without a spread, beside which the others have few steps of the grid."""
    generator = np.random.default_rng()
    plane = generator.normal(size=(5, DIMENSIONS))
    sentences = generator.normal(size=(DOCUMENTS * LENGTH, 5)) @ plane
    documents = sentences.reshape(DOCUMENTS, LENGTH, -1).mean(axis=1)
    directions = found_of(sentences, documents).directions
    assert len(directions) == 5
    assert np.linalg.norm(directions, axis=1).min() > LARGEST_DIRECTION / 50


@pytest.mark.parametrize(
    ("alike", "number"), [("sentences", 1), ("documents", 1), ("a dimension", 2), ("nothing", 2)]
)
def test_few_or_equal_documents(tmp_path: Path, alike: str, number: int) -> None:
    """Kills: a division by no variance, and candidates that no release can open."""
    given = some_candidates()
    sentences = np.random.default_rng().normal(size=(9, len(given.centre)))
    documents = sentences.reshape(3, 3, -1).mean(axis=1)
    if alike == "sentences":
        sentences[:], documents[:] = 0.5, 0.5
    elif alike == "documents":
        documents[:] = 0.5
    elif alike == "a dimension":
        sentences[:, 2], documents[:, 2] = 0, 0
    found = found_of(sentences, documents)
    assert len(found.directions) == number
    assert np.abs(found.lifts).max() <= LARGEST_LIFT
    save(str(tmp_path), some_candidates(**found._asdict()))
    opened = open_candidates(str(tmp_path))
    for name, array in found._asdict().items():
        np.testing.assert_array_equal(getattr(opened, name), array)
