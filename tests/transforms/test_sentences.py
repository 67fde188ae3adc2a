"""The per-document path of a sentence-private release: what leaves it, what draws depend on.

Statistical checks reject a correct implementation with probability ALPHA at most. At a tiny epsilon
each of 8 candidates is drawn with probability 1/8 but for 1e-4 of it, whatever the document was;
of truncation's noise the sign is looked at.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

from indexes.candidates import LARGEST_PROJECTION, Candidates, Manifest, save
from indexes.recoder import WIDTHS, Recoder
from indexes.sentences import NAME
from mechanisms.deep_candidate import Utility
from mechanisms.guarantees import SentencePrivacy
from mechanisms.keystream import ReleaseKey
from mechanisms.truncation import STEPS, Box
from transforms.candidates import CandidatesSource
from transforms.documents import Documents
from transforms.encoder import PACKAGED, EncoderSource
from transforms.rows import ORDER, Released
from transforms.sentences import SentenceMechanism, SentencePrivatizer, SentencesParameters

ALPHA = 1e-6
SIZE, DIMENSIONS, PROJECTIONS, USED = 8, 12, 25, 20
SHARP = Fraction(10**6)
DRAWS = 4096

DRAWN = [utility.value for utility in Utility]
EVERY = [*DRAWN, "truncation"]
EACH = pytest.mark.parametrize("what", EVERY)


class Hashed:
    """An encoder: a sentence's embedding is its hash."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.dimensions = dimensions
        self.asked: list[str] = []

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += sentences
        found = [hashlib.shake_256(text.encode()).digest(self.dimensions) for text in sentences]
        values = np.frombuffer(b"".join(found), np.uint8).reshape(-1, self.dimensions)
        return (values.astype(np.float32) - 100) / 128


def some_candidates(dimensions: int = DIMENSIONS) -> Candidates:
    """Of random public embeddings, like those above."""
    generator = np.random.default_rng()
    sizes = [dimensions, *WIDTHS]
    recoder = Recoder(
        [
            (generator.normal(size=(a, b)) * np.sqrt(2 / a)).astype(np.float32)
            for a, b in zip(sizes, WIDTHS, strict=False)
        ],
        [generator.normal(size=width).astype(np.float32) for width in WIDTHS],
    )
    recoder = replace(recoder, weights=[*recoder.weights[:3], recoder.weights[3] * 1024])
    embeddings = generator.uniform(-0.8, 1.2, size=(SIZE, dimensions)).astype(np.float32)
    directions = np.rint(generator.normal(size=(PROJECTIONS, WIDTHS[-1])) * 1024)
    manifest = Manifest(
        "public",
        None,
        {"pattern": "p", "documents": 60},
        {"name": "hashed", "sha256": "0", "dimensions": dimensions},
        NAME,
        "en",
        1,
        64,
        SIZE,
        PROJECTIONS,
        (-0.5, 0.75),
        0,
        {},
        "test",
    )
    return Candidates(
        manifest,
        embeddings,
        generator.normal(size=dimensions) / 10,
        np.stack([np.full(dimensions, -0.5), generator.uniform(0.5, 1.5, size=dimensions)]),
        np.clip(directions, -LARGEST_PROJECTION, LARGEST_PROJECTION),
        recoder.recode(embeddings),
        recoder,
    )


CANDIDATES = some_candidates()


def parameters(what: str, epsilon: Fraction = Fraction(5), **changes: Any) -> SentencesParameters:
    truncated = what == "truncation"
    mechanism = SentenceMechanism("truncation" if truncated else "deep-candidate")
    return replace(
        SentencesParameters(
            mechanism,
            epsilon,
            Utility.DEPTH if truncated else Utility(what),
            USED,
            64,
            CandidatesSource("mechanism.candidates", "memory", "digest"),
            EncoderSource("mechanism.encoder", "hashed", "digest", "float32", "none"),
            DIMENSIONS,
        ),
        **changes,
    )


@pytest.fixture
def key() -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), "test")


def documents(*texts: str, first_row: int = 0, source: str = "file") -> Documents:
    rows = np.arange(first_row, first_row + len(texts), dtype=np.int64)
    return Documents(source, rows, pa.array(texts, pa.large_string()), pa.table({}))


def release(given: SentencesParameters, key: ReleaseKey, *texts: str, **place: Any) -> Released:
    privatizer = SentencePrivatizer(given, CANDIDATES, Hashed(), key)  # type: ignore[arg-type]
    return privatizer.release(documents(*texts, **place))


def embeddings_of(rows: pa.Table) -> npt.NDArray[np.float32]:
    column = rows["embedding"].combine_chunks()
    found: npt.NDArray[np.float32] = column.flatten().to_numpy().reshape(len(rows), -1)
    return found


def tiny(what: str) -> Fraction:
    """An epsilon at which candidates are alike; truncation's table of noise has to be made."""
    return Fraction(4) if what == "truncation" else Fraction(1, 10**4)


def outcomes(what: str, rows: pa.Table, texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """What is drawn: a candidate a row, or the signs of a row's noise."""
    if what != "truncation":
        found: npt.NDArray[np.int64] = rows["candidate"].to_numpy().astype(np.int64)
        return found
    low, width = CANDIDATES.box
    steps = [STEPS * text.count(".") for text in texts]
    noisy = (embeddings_of(rows) - low) / width * np.array(steps)[:, None]
    offsets = np.cumsum([0, *(text.count(".") for text in texts)])
    own = Box(low, width).sums(np.concatenate([encoded(text) for text in texts]), offsets)
    noise = np.rint(noisy) - own
    np.testing.assert_allclose(noisy - own, noise, atol=0.01)
    return np.sign(noise).astype(np.int64)


def independent(what: str, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    """Whether outcomes at a tiny epsilon agree as often as independent ones (exact, two-sided)."""
    same = one == other
    zero = math.tanh(float(tiny(what)) / (DIMENSIONS * STEPS) / 2)
    chance = (1 - zero) ** 2 / 2 + zero**2 if what == "truncation" else 1 / SIZE
    return bool(stats.binomtest(int(same.sum()), same.size, chance).pvalue >= ALPHA)


def number_of_draws(what: str) -> int:
    """As many documents as make about DRAWS outcomes."""
    return DRAWS // DIMENSIONS if what == "truncation" else DRAWS


def text_of(*sentences: int) -> str:
    """A text of sentences by number."""
    return " ".join(f"Sentence {number} is here." for number in sentences)


def encoded(text: str) -> npt.NDArray[np.float32]:
    """The embeddings of such a text's sentences."""
    return Hashed().encode([f"{part.strip()}." for part in text.split(".")[:-1]])


def some_texts(count: int) -> list[str]:
    """Of no sentence to nine."""
    generator = np.random.default_rng()
    lengths = generator.integers(0, 10, count)
    return [text_of(*generator.integers(0, 1 << 40, length).tolist()) for length in lengths]


# What is released.


@EACH
def test_the_columns(what: str, key: ReleaseKey) -> None:
    """Kills: lists of any length, a number of sentences or utilities beside the embedding."""
    given = parameters(what)
    rows = release(given, key, *some_texts(5)).rows
    names = ["embedding"] if what == "truncation" else ["candidate", "embedding"]
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
    assert (between.tokens, between.known) == (4, True)
    for row, text in ((1, some), (3, others)):
        assert between.rows.slice(row, 1).equals(release(given, key, text, first_row=row).rows)
    none = release(given, key)
    assert none.rows.schema == between.rows.schema
    assert (len(none.rows), none.tokens, none.known) == (0, 0, False)
    if what == "truncation":
        middle = (CANDIDATES.box[0] + CANDIDATES.box[1] / 2).astype(np.float32)
        for row in (0, 2, 4):
            np.testing.assert_array_equal(embeddings_of(between.rows)[row], middle)


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


# What the draw depends on.


@EACH
def test_a_batch_may_be_cut_anywhere(what: str, key: ReleaseKey) -> None:
    """By workers of their own, too. Kills: a draw, a utility or an id by a document's place."""
    texts = ["", *some_texts(100), "", text_of(*range(70))]
    given = parameters(what)
    whole = release(given, key, *texts).rows
    assert release(given, key, *texts).rows.equals(whole)
    cuts = np.sort(np.random.default_rng().choice(len(texts), 6, replace=False)).tolist()
    for edges in ([0, *cuts, len(texts)], range(len(texts) + 1)):
        privatizer = SentencePrivatizer(given, CANDIDATES, Hashed(), key)  # type: ignore[arg-type]
        parts = [
            privatizer.release(documents(*texts[start:stop], first_row=start)).rows
            for start, stop in itertools.pairwise(edges)
        ]
        assert pa.concat_tables(parts).combine_chunks().equals(whole)


@EACH
def test_equal_documents_draw_independently(what: str, key: ReleaseKey) -> None:
    """At other rows, in other files and under other keys.

    Kills: an address without the row or the file, a stage without the key.
    """
    given = parameters(what, tiny(what))
    texts = [text_of(1, 2, 3, 4, 5)] * number_of_draws(what)
    places = [
        (key, {}),
        (key, {"source": "other"}),
        (ReleaseKey.derive(os.urandom(32), "test"), {}),
    ]
    released = [release(given, each, *texts, **place).rows for each, place in places]
    found = [outcomes(what, rows, texts) for rows in released]
    for one, other in itertools.combinations(found, 2):
        assert independent(what, one, other)
    half = len(texts) // 2
    assert independent(what, found[0][:half], found[0][half : 2 * half])
    assert independent(what, found[0][1:], found[0][:-1])
    ids = {number for rows in released for number in rows["id"].to_pylist()}
    assert len(ids) == 3 * len(texts)
    assert not independent(what, found[0], found[0])  # the control


CHANGES: dict[str, dict[str, Any]] = {
    "epsilon": {},
    "most sentences": {"most_sentences": 63},
    "candidates": {"candidates": CandidatesSource("mechanism.candidates", "memory", "another")},
    "encoder": {
        "encoder": EncoderSource("mechanism.encoder", "hashed", "another", "float32", "none")
    },
}


@EACH
@pytest.mark.parametrize("change", CHANGES)
def test_another_setting_changes_all_draws(what: str, change: str, key: ReleaseKey) -> None:
    """Kills: a setting left out of the stage's parameters, with which two releases of one text
    would be one draw of two laws.
    """
    texts = [text_of(1, 2, 3)] * number_of_draws(what)
    given = parameters(what, tiny(what))
    changes = CHANGES[change] or {"epsilon": tiny(what) * Fraction(101, 100)}
    one, other = (release(each, key, *texts).rows for each in (given, replace(given, **changes)))
    assert independent(what, outcomes(what, one, texts), outcomes(what, other, texts))
    assert not set(one["id"].to_pylist()) & set(other["id"].to_pylist())


def test_every_mechanism_utility_and_number_of_projections_has_its_own_draws(
    key: ReleaseKey,
) -> None:
    """Kills: a law that does not tell them apart, where utilities agree (here they are all 0)."""
    given = [parameters(what, SHARP) for what in DRAWN]
    given += [replace(each, projections=USED - 1) for each in given]
    found = [release(each, key, *[""] * DRAWS).rows["candidate"].to_numpy() for each in given]
    for one, other in itertools.combinations(found, 2):
        assert independent("depth", one, other)
    every = [*given, parameters("truncation", SHARP)]
    assert len({release(each, key, "").rows["id"][0].as_py() for each in every}) == len(every)


@pytest.mark.parametrize("what", ["mean-depth", "similarity", "truncation"])
def test_another_sentence_changes_all_of_the_draw(what: str, key: ReleaseKey) -> None:
    """Kills: an address of the text's length or first sentence; noise that a difference cancels.

    Depths of other kinds are mostly equal, and equal utilities are one law and one draw.
    """
    given = parameters(what, tiny(what))
    numbers = range(number_of_draws(what))
    before = [text_of(number, -1, -2, -3) for number in numbers]
    after = [text_of(number, -1, -2, -4 - number) for number in numbers]
    one, other = (outcomes(what, release(given, key, *some).rows, some) for some in (before, after))
    assert independent(what, one, other)


@EACH
def test_sentences_beyond_the_most_change_nothing(what: str, key: ReleaseKey) -> None:
    """Kills: an encoder, a sum, a count or an address of all of a document's sentences."""
    given = parameters(what, most_sentences=3)
    tails = [(), (4,), (5, 6, 7, 8), tuple(range(100))]
    encoder = Hashed()
    privatizer = SentencePrivatizer(given, CANDIDATES, encoder, key)  # type: ignore[arg-type]
    found = [privatizer.release(documents(text_of(1, 2, 3, *tail), text_of(9))) for tail in tails]
    assert encoder.asked == [f"Sentence {number} is here." for number in (1, 2, 3, 9)] * len(tails)
    for each in found:
        assert each.rows.equals(found[0].rows)
        assert (each.tokens, each.known) == (4, True)
    wider = replace(given, most_sentences=4)
    assert release(wider, key, text_of(1, 2, 3, 4)).tokens == 4
    if what in ("mean-depth", "similarity", "truncation"):  # the control: the first three count
        ids = {
            release(given, key, text_of(*some)).rows["id"][0].as_py()
            for some in ((1, 2, 3), (2, 3, 5), (1, 2), (1, 2, 4), (4, 2, 3))
        }
        assert len(ids) == 5


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


# What is said of it, and how a worker makes it.


@EACH
def test_the_guarantee(what: str) -> None:
    assert parameters(what, Fraction(7, 2)).guarantee == SentencePrivacy(Fraction(7, 2))


@EACH
def test_where_candidates_lie_changes_nothing(what: str, key: ReleaseKey, tmp_path: Path) -> None:
    """Saved, found and opened with a real encoder, as a worker does it; moved candidates repeat
    their draws. Kills: the URI or the encoder's name in place of the digest.
    """
    save(str(tmp_path), some_candidates(384))
    source = CandidatesSource.found("mechanism.candidates", str(tmp_path))
    encoder = EncoderSource.found("mechanism.encoder", PACKAGED)
    given = parameters(what, candidates=source, encoder=encoder, dimensions=384)
    batch = documents("It rains. The match goes on! Why?", "", "Nobody came.")
    rows = given.privatizer(key).release(batch).rows
    assert rows.schema.field("embedding").type == pa.list_(pa.float32(), 384)
    moved = replace(
        given,
        candidates=replace(source, uri="elsewhere"),
        encoder=replace(encoder, name="other"),
    )
    elsewhere = SentencePrivatizer(moved, source.open(), encoder.open(), key)
    assert elsewhere.release(batch).rows.equals(rows)
