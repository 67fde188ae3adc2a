"""The rows of a sentence-private release: whose embedding is in them, and which candidate is best.

The statistical check rejects a correct implementation with probability ALPHA at most.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hashed_sentences import (
    ALPHA,
    AXES,
    CANDIDATES,
    DIMENSIONS,
    DRAWN,
    DRAWS,
    EACH,
    NOISY,
    SHARP,
    SIZE,
    Hashed,
    documents,
    embeddings_of,
    encoded,
    parameters,
    release,
    some_texts,
    text_of,
    tiny,
)
from scipy import stats

from quietcorpus.mechanisms.accounting.guarantees import SentencePrivacy
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.sentences.projected_mean import DIRECTION_UNIT, STEPS
from quietcorpus.mechanisms.sentences.truncation import Box
from quietcorpus.transforms.privatizers.rows import ORDER
from quietcorpus.transforms.privatizers.sentences import NoisySum, SentencePrivatizer, ball


@EACH
def test_the_columns(what: str, key: ReleaseKey) -> None:
    """Kills: lists of any length, a number of sentences or utilities beside the embedding."""
    given = parameters(what)
    rows = release(given, key, *some_texts(5)).rows
    names = ["embedding"] if what in NOISY else ["candidate", "embedding"]
    assert rows.column_names == ["id", *names, ORDER]
    assert [field.name for field in given.fields] == names
    for field in given.fields:
        assert rows.schema.field(field.name).type == field.type
    assert rows.schema.field("embedding").type == pa.list_(pa.float32(), DIMENSIONS)
    if names[:-1]:
        assert rows.schema.field("candidate").type == pa.int32()
    assert len(set(rows["id"].to_pylist())) == 5
    assert not any(rows[name].null_count for name in names)


@pytest.mark.parametrize("what", DRAWN)
def test_the_embedding_is_the_candidates(what: str, key: ReleaseKey) -> None:
    """Kills: the recoded vector or the document's own mean in its place; another row's."""
    rows = release(parameters(what, tiny(what)), key, *some_texts(200)).rows
    drawn = rows["candidate"].to_numpy()
    assert set(drawn.tolist()) == set(range(SIZE))
    np.testing.assert_array_equal(embeddings_of(rows), CANDIDATES.embeddings[drawn])


def test_truncated_means_are_near_their_own(key: ReleaseKey) -> None:
    """With hardly any noise. Kills: sums for means, a box or row of another, no clipping."""
    texts = some_texts(30)
    rows = release(parameters("truncation", SHARP), key, *texts).rows
    low, width = CANDIDATES.box
    for found, text in zip(embeddings_of(rows), texts, strict=True):
        own = encoded(text)
        clipped = np.clip(own, low, low + width)
        expected = clipped.mean(axis=0) if len(own) else low + width / 2
        np.testing.assert_allclose(found, expected, atol=width.max() / 8 + 1e-6)


def test_projected_means_are_near_their_own(key: ReleaseKey) -> None:
    """With hardly any noise. Kills: sums for means, another radius or number of directions."""
    texts = some_texts(30)
    rows = release(parameters("projected-mean", SHARP), key, *texts).rows
    assert CANDIDATES.directions is not None
    assert CANDIDATES.radii is not None
    assert CANDIDATES.lifts is not None
    axes, radius = CANDIDATES.directions[:AXES] / DIRECTION_UNIT, CANDIDATES.radii[AXES - 1]
    lifts = CANDIDATES.lifts[:AXES] / DIRECTION_UNIT
    for found, text in zip(embeddings_of(rows), texts, strict=True):
        places = (encoded(text) - CANDIDATES.centre) @ axes.T
        lengths = np.linalg.norm(places, axis=1, keepdims=True)
        places *= np.minimum(1, radius / np.maximum(lengths, 1e-9))
        mean = places.mean(axis=0) if len(places) else np.zeros(AXES)
        bound = 2 * radius / STEPS * np.abs(lifts).sum(axis=0) + 1e-6
        assert (np.abs(found - (CANDIDATES.centre + mean @ lifts)) <= bound).all()


def depths(what: str, text: str, projections: int) -> npt.NDArray[np.float64]:
    """Each candidate's depth among the sentences of a text, by definition."""
    found = []
    for direction in CANDIDATES.projections[:projections]:
        s = CANDIDATES.recoder.recode(encoded(text)) @ direction
        f = CANDIDATES.recoded @ direction
        found.append([min((s >= value).sum(), (s <= value).sum()) for value in f])
    take = {"depth": np.min, "optimistic-depth": np.max, "mean-depth": np.mean}[what]
    result: npt.NDArray[np.float64] = take(found, axis=0)
    return result


def similarities(text: str) -> npt.NDArray[np.float64]:
    """Each candidate's similarity to the sentences of a text, but for rounding."""
    own = encoded(text) - CANDIDATES.centre
    theirs = CANDIDATES.embeddings - CANDIDATES.centre
    lengths = np.linalg.norm(own, axis=1)[:, None] * np.linalg.norm(theirs, axis=1)
    low, high = CANDIDATES.manifest.cosines
    terms = np.clip((own @ theirs.T / lengths - low) / (high - low), 0, 1)
    result: npt.NDArray[np.float64] = terms.sum(axis=0)
    return result


@pytest.mark.parametrize("what", DRAWN)
def test_at_a_large_epsilon_the_best_candidate_is_drawn(what: str, key: ReleaseKey) -> None:
    """Kills: another utility, projection or document's sentences; a worst candidate; no centre,
    embeddings that are not recoded.
    """
    texts = [text for text in some_texts(60) if text]
    few = 2  # along many, depths are nearly all the same
    given = parameters(what, SHARP, projections=few)
    drawn = release(given, key, *texts).rows["candidate"].to_pylist()
    told = 0
    for number, text in zip(drawn, texts, strict=True):
        found = similarities(text) if what == "similarity" else depths(what, text, few)
        # A similarity's terms are rounded down by at most 1/255, and the grid moves them as much.
        doubt = 3 / 255 * text.count(".") if what == "similarity" else 1e-9
        assert found[number] >= found.max() - doubt
        told += int((found < found.max() - doubt).sum())
    assert told > len(texts)  # the control: that others would have been worse


@EACH
def test_a_document_without_sentences_gets_a_row(what: str, key: ReleaseKey) -> None:
    """Alone, and between others. Kills: rows that move up, a division by nought, a batch without
    sentences that ends the release.
    """
    given = parameters(what)
    alone = release(given, key, " \n\t")
    assert len(alone.rows) == 1
    assert (alone.tokens, alone.known) == (0, False)
    some, others = text_of(1, 2, 3), text_of(4)
    between = release(given, key, "", some, " \n", others, "")
    assert len(between.rows) == 5
    assert (between.tokens, between.known) == (4, 4)
    for row, text in ((1, some), (3, others)):
        assert between.rows.slice(row, 1).equals(release(given, key, text, first_row=row).rows)
    none = release(given, key)
    assert none.rows.schema == between.rows.schema
    assert (len(none.rows), none.tokens, none.known) == (0, 0, False)
    if what in NOISY:
        middle = CANDIDATES.centre
        if what == "truncation":
            middle = CANDIDATES.box[0] + CANDIDATES.box[1] / 2
        for row in (0, 2, 4):
            np.testing.assert_array_equal(
                embeddings_of(between.rows)[row], middle.astype(np.float32)
            )


@pytest.mark.parametrize("what", DRAWN)
def test_without_sentences_every_candidate_is_as_likely(what: str, key: ReleaseKey) -> None:
    """Kills: the first, or the utilities of the document before. At any epsilon.

    One candidate that is 15 % off adds 13 to a statistic of seven degrees that is refused above
    40; one that is left out adds 580.
    """
    drawn = release(parameters(what, SHARP), key, *[""] * DRAWS).rows["candidate"].to_numpy()
    counts = np.bincount(drawn, minlength=SIZE)
    assert stats.chisquare(counts).pvalue >= ALPHA
    joint = np.bincount(SIZE * drawn[::2] + drawn[1::2], minlength=SIZE**2)
    assert stats.chisquare(joint).pvalue >= ALPHA
    counts[1], counts[0] = counts[1] + counts[0] // 2, counts[0] - counts[0] // 2  # the control
    assert stats.chisquare(counts).pvalue < ALPHA


@EACH
def test_rows_are_taken_in_any_order(what: str, key: ReleaseKey) -> None:
    """Kills: columns that part, and lists that lose their length."""
    given = parameters(what)
    privatizer = SentencePrivatizer(given, CANDIDATES, Hashed(), key)  # type: ignore[arg-type]
    batches = [documents(*some_texts(20)), documents(*some_texts(15), first_row=20)]
    rows = pa.concat_tables([privatizer.release(batch).rows for batch in batches])
    order = np.random.default_rng().permutation(35)
    taken = privatizer.take(rows, order)
    assert taken.schema == rows.schema
    assert taken.to_pylist() == [rows.to_pylist()[i] for i in order]


@EACH
def test_the_guarantee(what: str) -> None:
    assert parameters(what, Fraction(7, 2)).guarantee == SentencePrivacy(Fraction(7, 2))


@pytest.mark.parametrize("what", NOISY)
@pytest.mark.parametrize("count", [512, 8_192, 32_767])
def test_sums_of_as_many_sentences_as_a_document_may_have(what: str, count: int) -> None:
    """Kills: sums in 16 bits, that a sentence more turns from the largest to the smallest."""
    clipping = ball(CANDIDATES, AXES) if what == "projected-mean" else Box(*CANDIDATES.box)
    one = np.full((1, DIMENSIONS), 9.0, dtype=np.float32)
    (each,) = clipping.sums(one, np.array([0, 1])).tolist()
    summed = NoisySum(clipping, None)  # type: ignore[arg-type]
    inputs = summed.inputs(one.repeat(count, axis=0), np.array([0, count]))
    assert max(map(abs, each)) > 1
    assert inputs.tolist() == [[count, *(count * value for value in each)]]
