"""Topic comparison against figures worked out by hand, and against planted topics."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from quietcorpus.evaluation.topics import (
    agreement,
    best_match_jaccard,
    density_ratio,
    fit_topics,
    length_ratio,
    paired,
    top_terms,
)

# tomotopy's compiled module lacks an attribute that Python is about to ask for.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")

TOPICS, TERMS_A_TOPIC = 5, 12


def planted(seed: int, documents: int = 400, length: int = 60) -> sp.csr_array:
    """Documents that mix topics of disjoint support; term t belongs to topic t // 12."""
    generator = np.random.default_rng(seed)
    rows = np.zeros((documents, TOPICS * TERMS_A_TOPIC), dtype=np.int64)
    for row in rows:
        mixture = generator.dirichlet(np.full(TOPICS, 0.2))
        drawn = generator.choice(TOPICS, size=length, p=mixture)
        np.add.at(row, drawn * TERMS_A_TOPIC + generator.integers(TERMS_A_TOPIC, size=length), 1)
    return sp.csr_array(rows)


def test_planted_topics_are_recovered() -> None:
    # Kills: counts taken as presence or shifted by a column, `used` out of order, no training.
    fitted = fit_topics(planted(1), TOPICS, iterations=200, seed=3)
    truth = np.arange(TOPICS * TERMS_A_TOPIC, dtype=np.int32).reshape(TOPICS, TERMS_A_TOPIC)
    found = top_terms(fitted, TERMS_A_TOPIC)
    assert best_match_jaccard(truth, found) == 1.0
    assert best_match_jaccard(found, truth) == 1.0


def test_unplanted_topics_are_not_recovered() -> None:
    # Negative control of the test above: one unigram law for all documents has no topics to find.
    terms = TOPICS * TERMS_A_TOPIC
    flat = np.random.default_rng(2).multinomial(60, np.full(terms, 1 / terms), size=400)
    fitted = fit_topics(sp.csr_array(flat), TOPICS, iterations=200, seed=3)
    truth = np.arange(terms, dtype=np.int32).reshape(TOPICS, TERMS_A_TOPIC)
    assert best_match_jaccard(truth, top_terms(fitted, TERMS_A_TOPIC)) < 0.5


def test_counts_weigh_as_repeated_tokens() -> None:
    # Kills: `np.repeat` dropped. The one topic is the smoothed corpus frequency, 6 : 2 of 8.
    counts = sp.csr_array(np.array([[4, 0, 1], [2, 0, 1]]))
    fitted = fit_topics(counts, 1, iterations=5, seed=1)
    np.testing.assert_allclose(fitted, [[6.01 / 8.02, 0, 2.01 / 8.02]], rtol=1e-5)


def test_empty_documents_are_left_out() -> None:
    # Kills: a tomotopy that counts empty documents, `indptr` paired with an offset of one.
    counts = planted(4, documents=50)
    padded = sp.csr_array(sp.vstack([sp.csr_array((1, counts.shape[1]), dtype=np.int64), counts]))
    np.testing.assert_array_equal(
        fit_topics(padded, TOPICS, iterations=10, seed=5),
        fit_topics(counts, TOPICS, iterations=10, seed=5),
    )


def test_the_seed_decides_the_topics() -> None:
    # Kills: a seed that is not passed on, or more than one thread.
    counts = planted(6, documents=50)
    first, again, other = (fit_topics(counts, TOPICS, iterations=10, seed=s) for s in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_top_terms_are_ordered_and_ties_go_to_the_lower_term() -> None:
    # Kills: ascending order, an unstable sort's order reversed, the wrong axis.
    probabilities = np.array([[0.1, 0.4, 0.1, 0.4], [0.7, 0.0, 0.2, 0.1]], dtype=np.float32)
    found = top_terms(probabilities, 3)
    assert found.tolist() == [[1, 3, 0], [0, 2, 3]]
    assert found.dtype == np.int32


def test_jaccard_by_hand() -> None:
    # Kills: Dice or overlap instead of Jaccard, mean instead of maximum over matches.
    # {0,1,2} meets {0,1,5}: 2/4, and {7,8,9}: 0. {7,8,6} meets {7,8,9}: 2/4. {3,4,5}: 1/5.
    reference = np.array([[0, 1, 2], [7, 8, 6], [3, 4, 5]], dtype=np.int32)
    other = np.array([[0, 1, 5], [7, 8, 9]], dtype=np.int32)
    assert best_match_jaccard(reference, other) == pytest.approx((0.5 + 0.5 + 0.2) / 3)


def test_jaccard_is_over_the_references_topics_and_not_one_to_one() -> None:
    # Kills: the swapped direction, and an assignment that uses each match once.
    reference = np.array([[0, 1], [1, 0]], dtype=np.int32)
    other = np.array([[0, 1], [2, 3]], dtype=np.int32)
    assert best_match_jaccard(reference, other) == 1.0
    assert best_match_jaccard(other, reference) == 0.5


def test_agreement_is_over_all_pairs_but_of_a_fit_with_itself() -> None:
    # Kills: fits that agree with themselves, and the pairs of one of them alone.
    one, two = np.array([[0, 1]], np.int32), np.array([[0, 2]], np.int32)
    three = np.array([[4, 5]], np.int32)
    assert agreement([one, two], [one, two]) == pytest.approx(1 / 3)
    assert agreement([one, two], [one.copy(), three]) == pytest.approx((1 + 0 + 1 / 3 + 0) / 4)


def test_ratios_by_hand() -> None:
    # Kills: released and original swapped, density counting tokens, length counting terms.
    original = sp.csr_array(np.array([[2, 0, 0, 1], [0, 1, 0, 0]]))  # 4 tokens, 3 terms
    released = sp.csr_array(np.array([[1, 2, 3, 0], [2, 0, 1, 1]]))  # 10 tokens, 6 terms
    assert length_ratio(original, released) == pytest.approx(2.5)
    assert density_ratio(original, released) == pytest.approx(2.0)


def test_ratios_are_of_means_and_stored_zeros_are_no_terms() -> None:
    # Kills: totals in place of means (half the documents), `nnz` in place of the non-zero ones.
    original = sp.csr_array(np.array([[2, 2], [2, 2]]))
    released = sp.csr_array((np.array([4, 0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert length_ratio(original, released) == pytest.approx(1.0)
    assert density_ratio(original, released) == pytest.approx(0.5)


def test_topics_are_paired_one_to_one_for_the_most_overlap() -> None:
    # The best pair (3 of 5 terms) would leave nothing to the others: 2/6 and 2/6 are more in all.
    # Kills: greedy pairs, a topic in two of them, the least overlap, other topics than the pair's.
    reference = np.array([[0, 1, 2, 3], [1, 9, 30, 31]], dtype=np.int32)
    other = np.array([[0, 1, 2, 9], [2, 3, 20, 21]], dtype=np.int32)
    assert paired(reference, other) == [(0, 1, 2 / 6), (1, 0, 2 / 6)]
    assert paired(reference[:1], other) == [(0, 0, 3 / 5)]
    more = np.array([[5, 6, 7, 8], [0, 1, 2, 3]], dtype=np.int32)
    assert paired(more, more[::-1]) == [(0, 1, 1.0), (1, 0, 1.0)]
