"""Exclusivity and coherence by hand, by gensim, and where terms are missing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from gensim.models import CoherenceModel
from gensim.topic_coherence import direct_confirmation_measure
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quietcorpus.evaluation.topics import coherence, exclusivity

UNHURRIED = settings(deadline=None)  # a busy machine is no failure
TOPICS = np.array([[0.5, 0.3, 0.2, 0.0], [0.5, 0.0, 0.1, 0.4]])


def test_exclusivity_by_hand() -> None:
    # The top two terms are 0, 1 and 0, 3, and phi / sum is (1/2, 1, 2/3, 0) and (1/2, 0, 1/3, 1).
    # With one term alone, both topics have term 0. Kills: ranks in place of shares, shares of the
    # topic's own sum, all terms for the top ones, top terms by share.
    np.testing.assert_allclose(exclusivity(TOPICS, 2), [(1 / 2 + 1) / 2, (1 / 2 + 1) / 2])
    np.testing.assert_allclose(exclusivity(TOPICS, 1), [1 / 2, 1 / 2])
    np.testing.assert_allclose(exclusivity(TOPICS, 3), [13 / 18, 11 / 18])


def test_the_range_of_exclusivity() -> None:
    # Kills: a measure without a range, as the mean of ranks was: 1 for topics that are the same.
    np.testing.assert_allclose(exclusivity(np.full((3, 5), 0.2), 4), [1 / 3] * 3)
    np.testing.assert_allclose(exclusivity(np.kron(np.eye(3), np.full(4, 0.25)), 4), [1] * 3)


def test_own_terms_are_more_exclusive_than_shared_ones() -> None:
    # Four terms of each topic's own and four of all. Control: where its own are on top, all is 1.
    own, shared = np.kron(np.eye(3), np.ones(4)), np.ones((3, 4))
    np.testing.assert_allclose(exclusivity(np.hstack([shared / 5, own / 20]), 4), 1 / 3)
    np.testing.assert_allclose(exclusivity(np.hstack([shared / 20, own / 5]), 4), 1)


@UNHURRIED
@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.just(6)), elements=st.floats(0, 9)))
def test_exclusivity_is_between_one_in_t_and_one(phi: np.ndarray) -> None:
    # The bound that the docstring proves. Kills: terms that no topic has, and top terms of others.
    assume(np.count_nonzero(phi.sum(axis=0)) >= 3)
    scores = exclusivity(phi, 3)
    assert scores.max() <= 1 + 1e-12
    assert scores.mean() >= 1 / len(phi) - 1e-12


@UNHURRIED
@given(st.lists(st.integers(0, 4), max_size=6))
def test_unused_vocabulary_changes_nothing(places: list[int]) -> None:
    # Kills: a division by zero.
    padded = np.insert(TOPICS, places, 0, axis=1).astype(np.float32)
    np.testing.assert_allclose(exclusivity(padded, 3), exclusivity(TOPICS, 3))


def test_more_top_terms_than_there_are() -> None:
    padded = np.insert(TOPICS, 0, 0, axis=1)
    assert exclusivity(padded, 4).shape == (2,)
    with pytest.raises(ValueError, match="5 top terms are asked for, and 4 terms"):
        exclusivity(padded, 5)


def test_coherence_by_hand() -> None:
    # D = 3, 2, 1; D(1, 0) = 2, D(2, 0) = 0, D(2, 1) = 0. In the order 0, 1, 2 the pairs give 3/3,
    # 1/3 and 1/2; in the order 2, 1, 0 they give 1/1, 1/1, 3/2. Kills: counts for presence,
    # D(v_m) below, a sum for the mean, no + 1, a stored zero taken for a term.
    rows = np.array([[5, 1, 0], [1, 2, 0], [1, 0, 0], [0, 0, 7]])
    counts = sp.csr_array(rows)
    counts.data[counts.data == 7] = 0
    counts = sp.csr_array(sp.vstack([counts, sp.csr_array([[0, 0, 3]])]))
    tops = np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int32)
    np.testing.assert_allclose(coherence(counts, tops), np.log([1 / 6, 3 / 2]) / 3)


def test_terms_that_the_corpus_lacks_gain_nothing() -> None:
    # Kills: a division by zero, and a pair of an absent term scored as if it were perfect.
    # Term 3 stands nowhere: in front it costs log(1 / 4) a pair, behind it log(1 / D).
    counts = sp.csr_array(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]))
    tops = np.array([[3, 0], [0, 3], [0, 2], [1, 0]], dtype=np.int32)
    np.testing.assert_allclose(coherence(counts, tops), np.log([1 / 4, 1 / 2, 1 / 2, 1]))


@UNHURRIED
@given(arrays(np.int64, st.tuples(st.integers(2, 12), st.just(6)), elements=st.integers(0, 2)))
def test_coherence_is_gensims(rows: np.ndarray) -> None:
    # gensim adds a constant to D(v_m, v_l) / n: 1e-12, here 1 / n.
    # It gives 0 to a pair whose v_l is absent: such corpora are left out.
    # Kills: the order of the pair, or of the terms, turned round; a pair left out or taken twice.
    assume((rows > 0).any(axis=0).all())
    tops = np.array([[0, 1, 2, 3, 4, 5], [4, 0, 3, 5, 2, 1]], dtype=np.int32)
    corpus = [[(t, int(c)) for t, c in enumerate(row) if c] for row in rows]
    names = {t: str(t) for t in range(6)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(direct_confirmation_measure, "EPSILON", 1 / len(rows))
        model = CoherenceModel(
            topics=[[str(t) for t in top] for top in tops.tolist()],
            corpus=corpus,
            dictionary=_Names(names),
            coherence="u_mass",
        )
        expected = np.array(model.get_coherence_per_topic())
    np.testing.assert_allclose(coherence(sp.csr_array(rows), tops), expected, atol=1e-12)


class _Names(dict[int, str]):
    """The part of a dictionary that gensim needs."""

    @property
    def token2id(self) -> dict[str, int]:
        return {name: number for number, name in self.items()}

    @property
    def id2token(self) -> dict[int, str]:
        return self
