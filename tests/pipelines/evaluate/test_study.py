"""The input of attacks on documents."""

from __future__ import annotations

import numpy as np

from quietcorpus.evaluation.attacks.linkage import Score
from quietcorpus.pipelines.evaluate.study import Views


def test_noise_alone_is_the_release_in_another_order() -> None:
    # Kills: features that stay in their places, so that noise is the release itself and every
    # attack is no better than on noise; scores of other rows than the features are of; the last
    # way's score for all ways; the originals dealt too; facts that are sought in rows as they were.
    raw, released = np.arange(6.0)[:, None], 10 + np.arange(6.0)[:, None]

    def score(factor: float) -> object:
        return lambda numbers: factor * released[numbers] * raw.T

    order = np.array([3, 0, 5, 1, 2, 4])
    scores = {"one": score(1.0), "two": score(2.0)}
    facts = {"by facts": lambda numbers: raw[numbers] * released.T}
    views = Views(raw, released, scores, facts)  # type: ignore[arg-type]
    dealt = views.dealt(order)
    np.testing.assert_array_equal(dealt.raw, raw)
    np.testing.assert_array_equal(dealt.released, released[order])
    numbers = np.array([0, 4])
    for way, factor in (("one", 1.0), ("two", 2.0)):
        expected = factor * released[order][numbers] * raw.T
        np.testing.assert_array_equal(dealt.scores[way](numbers), expected)
    expected = raw[numbers] * released[order].T
    np.testing.assert_array_equal(dealt.facts["by facts"](numbers), expected)


def test_kept_columns_rule_out_rows_wherever_they_are_sought() -> None:
    # Kills: a way that is left as it was; rows that keep their documents' columns when dealt.
    kept, order = np.array([0, 0, 1, 1, 2, 2]), np.array([3, 0, 5, 1, 2, 4])
    flat: Score = lambda numbers: np.zeros((len(numbers), 6))  # noqa: E731
    raw = np.zeros((6, 1))
    own = Views(raw, raw, {"": flat}, {"": flat}, flat, {"": flat}).agreeing(kept, order)
    of_rows, of_documents = kept[order][:, None] == kept, kept[:, None] == kept[order]
    every = np.arange(6)
    assert own.logs is not None
    for score in (own.scores[""], own.logs):
        np.testing.assert_array_equal(score(every) == 0, of_rows)
    for score in (own.facts[""], own.known[""]):
        np.testing.assert_array_equal(score(every) == 0, of_documents)
    plain = Views(raw, raw, {"": flat}, {"": flat})
    assert plain.agreeing(None, order) is plain
