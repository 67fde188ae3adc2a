"""The search for rows by facts: by its formula, at a known optimum, and at chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from quietcorpus.evaluation.attacks.facts import (
    by_bm25,
    rare_terms,
    some_means,
    some_sentences,
)
from quietcorpus.evaluation.attacks.linkage import linked

ALPHA = 1e-6


def bags(rows: list[list[int]]) -> sp.csr_array:
    return sp.csr_array(np.array(rows))


def test_scores_are_bm25_by_hand() -> None:
    # Kills: another k1 or b, the document's length for the row's, a frequency of occurrences.
    rows = bags([[2, 0, 1], [1, 1, 0], [0, 3, 5]])
    facts = bags([[1, 0, 0], [0, 2, 1], [0, 0, 0]])
    found = by_bm25(facts, rows)(np.array([0, 1, 2]))
    lengths, mean = (3, 2, 8), 13 / 3

    def weight(count: int, length: int, documents: int) -> float:
        rarity = math.log(1 + (3 - documents + 0.5) / (documents + 0.5))
        return rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))

    table = np.array([[weight(c, n, 2) for c in row] for row, n in
                      zip(rows.toarray().tolist(), lengths, strict=True)])  # fmt: skip
    np.testing.assert_allclose(found, facts.toarray() @ table.T, atol=1e-8)


def test_rare_terms_are_those_that_the_fewest_documents_have() -> None:
    # Kills: terms by their counts, the commonest, a term twice, other documents' terms.
    counts = bags([[9, 1, 0, 1], [1, 0, 0, 5], [1, 0, 2, 3]])
    assert rare_terms(counts, 1).toarray().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    assert rare_terms(counts, 2).toarray().tolist() == [[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0]]


def planted(documents: int, kept: float, generator: np.random.Generator) -> tuple[float, float]:
    """The shares of rows found, and by chance, where a document's only word of its own is released
    with a probability of `kept`."""
    originals = sp.hstack([sp.eye_array(documents), np.ones((documents, 3))]).tocsr()
    stays = (generator.random(documents) < kept).astype(float)
    released = sp.hstack([sp.diags_array(stays), np.ones((documents, 3))]).tocsr()
    facts = rare_terms(originals, 1)
    order = generator.permutation(documents)
    found = linked(by_bm25(facts, released), documents).mean()
    return float(found), float(linked(by_bm25(facts, released[order]), documents).mean())


@pytest.mark.parametrize("kept", [1.0, 0.3])
def test_the_optimum_is_reached_and_chance_where_rows_are_dealt_out(kept: float) -> None:
    # A word of one's own names the row, and a row without it is one of all: p + (1 - p) / n, as a
    # binomial share. Dealt out, a Poisson number of rows is found. Kills: a score of another row,
    # ties that count as found.
    n = 2_000
    found, dealt = planted(n, kept, np.random.default_rng())
    low, high = stats.binom.ppf([ALPHA, 1 - ALPHA], n, kept)
    assert low <= found * n <= high + 2
    assert dealt * n <= stats.poisson.isf(ALPHA, 2)


def test_documents_of_no_facts_are_found_by_chance() -> None:
    facts, rows = bags([[0, 0], [0, 0], [1, 0], [1, 0]]), bags([[1, 1], [0, 0], [1, 0], [1, 0]])
    assert linked(by_bm25(facts, rows), 4).tolist() == [0.25, 0.25, 0.5, 0.5]


def test_sentences_are_whole_and_of_the_text() -> None:
    # Kills: parts of sentences, the same one twice, fragments where there are sentences.
    text = "Yes. The bank has taken my money! Why did they do that to me? I wrote to them again\nOk"
    generator = np.random.default_rng()
    whole = {
        "The bank has taken my money!",
        "Why did they do that to me?",
        "I wrote to them again",
    }
    seen = {some_sentences([text], 1, generator)[0] for _ in range(200)}
    assert seen == whole
    (known,) = some_sentences([text], 5, generator)
    assert sorted(known) == sorted(" ".join(whole))
    assert some_sentences(["", "Too short.", "\u6771\u4eac\u3002"], 3, generator) == [
        "",
        "Too short.",
        "\u6771\u4eac\u3002",
    ]


def test_means_of_some_sentences_are_of_the_document() -> None:
    # Kills: other documents' sentences, the first ones alone, a sentence twice, none at all.
    vectors = 2.0 ** np.arange(9)[:, None]
    offsets = np.array([0, 3, 3, 4, 9])
    generator = np.random.default_rng()
    whole = some_means(vectors, offsets, 5, generator)
    assert whole.ravel().tolist() == [7 / 3, 0, 8, (2**9 - 2**4) / 5]
    some = np.array([some_means(vectors, offsets, 1, generator) for _ in range(200)])
    assert set(some[:, 3, 0]) == {16, 32, 64, 128, 256}  # one is missed with 5 * .8^200
    pairs = {float(some_means(vectors, offsets, 2, generator)[0, 0]) for _ in range(200)}
    assert pairs == {1.5, 2.5, 3}
