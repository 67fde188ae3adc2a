"""A classifier that learns from weighted texts."""

from __future__ import annotations

import numpy as np
import pytest

from quietcorpus.evaluation.classification import TextClassifier

TEXTS = ["good film", "good fine", "good one"] * 4 + ["bad film", "bad fine", "bad one"] * 4
LABELS = np.repeat([1, 0], 12)
EVERY = np.arange(24)


def test_it_learns_from_the_given_rows() -> None:
    # Kills: features by other rows, labels of other texts, texts to test that are learnt from.
    learnt = TextClassifier(TEXTS, ["a good one", "bad", "bad film"])
    assert learnt.predicted(EVERY, LABELS).tolist() == [1, 0, 0]
    assert learnt.predicted(EVERY[::-1], LABELS).tolist() == [0, 1, 1]
    assert learnt.predicted(EVERY[::2], LABELS[::2]).tolist() == [1, 0, 0]


def test_a_text_in_both_labels_goes_by_its_weights() -> None:
    # Kills: weights that are left out, or of other rows.
    learnt = TextClassifier(TEXTS, ["good", "bad"])
    rows, labels = np.concatenate([EVERY, EVERY]), np.repeat([0, 1], 24)
    right = np.where(labels == LABELS[rows], 3.0, 1.0)
    assert learnt.predicted(rows, labels, right).tolist() == [1, 0]
    assert learnt.predicted(rows, labels, 4 - right).tolist() == [0, 1]


@pytest.mark.parametrize(("labels", "expected"), [([], 0), ([3, 3], 3)])
def test_of_one_label_there_is_nothing_to_learn(labels: list[int], expected: int) -> None:
    found = TextClassifier(TEXTS, ["good", "bad"]).predicted(
        EVERY[: len(labels)], np.array(labels, np.int64)
    )
    assert found.tolist() == [expected] * 2


@pytest.mark.parametrize("texts", [["", ""], ["one", "two", "three", "four"], [""]])
def test_texts_without_a_common_word_teach_nothing(texts: list[str]) -> None:
    # Kills: an error, by which an evaluation of few texts would fail.
    labels = np.arange(len(texts)) % 2
    found = TextClassifier(texts, ["one"]).predicted(np.arange(len(texts)), labels)
    assert found.tolist() == [0]
