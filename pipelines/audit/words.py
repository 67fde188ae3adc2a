"""Audits of text that is released word by word."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import epsilon_at_least
from quietcorpus.indexes.inverted_lists import around
from quietcorpus.indexes.search import Searching
from quietcorpus.indexes.vocabulary import Vocabulary, is_reachable
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.audit.inputs import LOSS, made_up_words, released
from quietcorpus.pipelines.audit.word_laws import of_laws
from quietcorpus.pipelines.audit.word_noise import of_flips, of_noise
from quietcorpus.pipelines.kinds.words import WordsKind
from quietcorpus.transforms.privatizers.rows import Privatizer
from quietcorpus.transforms.privatizers.words import WordMechanism, WordPrivatizer, WordsParameters

_WORDS_TRIED = 128
_LINE, _LISTS = 4, 2
_TEXTS = 1 << 18  # draws for one audit, from a made-up index
_PRODUCTS = 1 << 38  # multiplications, or words of bits compared, in one audit's searches
_LEAST = 1000  # draws at least, whatever they cost


def audits(kind: WordsKind) -> list[Exact | Sampled]:
    """Return the audits of the noise on words, and of releases of documents of one word."""
    index = kind.index
    epsilon = kind.parameters.epsilon
    noise, size = _of_law(kind)
    most = max(_LEAST, _PRODUCTS // (2 * size * len(index.vocabulary)))

    def privatizer() -> WordPrivatizer:
        return WordPrivatizer(kind.parameters, index, ReleaseKey.fresh())

    return [
        *noise,
        of_line(kind.parameters, index),
        *of_releases(privatizer, *alone(kind), epsilon, most),
    ]


def _of_law(kind: WordsKind) -> tuple[list[Exact | Sampled], int]:
    """Return the audits of the draws themselves, and the numbers that a word's search reads."""
    epsilon, sizes = kind.parameters.epsilon, kind.index.manifest
    match kind.parameters.mechanism:
        case WordMechanism.MADLIB | WordMechanism.VICKREY:
            return of_noise(epsilon, sizes.dimensions), sizes.dimensions
        case WordMechanism.BRR:
            return [of_flips(epsilon)], sizes.bits // 64
        case WordMechanism.TEM | WordMechanism.EXPONENTIAL:
            return [of_laws(kind.parameters, kind.index)], sizes.dimensions


def of_line(parameters: WordsParameters, index: WordIndex) -> Sampled:
    """Return the audit of documents whose words lie on a line, at distances that draws show well.

    Everything except the index is the run's. A document has two words where words share epsilon.
    """
    epsilon = parameters.epsilon
    line, apart = line_of(parameters.mechanism, epsilon, index)
    if parameters.search.approximate:
        line, parameters = in_lists(line, parameters)
    words = line.vocabulary.terms.to_pylist()
    tokens = 1 if parameters.per == "word" else 2
    known = pa.array([" ".join(some) for some in itertools.product(words, repeat=tokens)])
    first, second = (" ".join([word] * tokens) for word in words[1:3])

    def privatizer() -> WordPrivatizer:
        return WordPrivatizer(parameters, line, ReleaseKey.fresh())

    about = "a word" if tokens == 1 else "two equal words"
    return Sampled(
        f"documents: {about} of four on a line",
        round_up(epsilon * apart),
        f"Documents were released of words {float(apart):.4g} apart, of a made-up index in which "
        f"four such words are all there are{'' if tokens == 1 else '; the two share epsilon'}.",
        partial(epsilon_at_least, partial(texts_released, privatizer, known, first), first, second),
        most=_TEXTS,
    )


def line_of(
    mechanism: WordMechanism, epsilon: Fraction, index: WordIndex
) -> tuple[WordIndex, Fraction]:
    """Build an index of four words on a line, and return it with the distance of adjacent words.

    That distance costs about `LOSS`. Codes are as long as the index's, which limits their
    distances. The manifest remains the one of `index`; none of it is read.
    """
    words = sorted(itertools.islice(made_up_words(), _LINE))
    step, bits = np.float32(LOSS / float(epsilon)), index.manifest.bits
    flips = min(max(1, round(LOSS / float(epsilon))), bits // (_LINE - 1))
    ones = np.arange(bits) < flips * np.arange(_LINE)[:, None]
    line = WordIndex(
        index.manifest,
        Vocabulary(words),
        step * np.arange(-1, _LINE - 1, dtype=np.float32)[:, None],
        np.packbits(ones, axis=1, bitorder="little").view("<u8"),
    )
    match mechanism:
        case (
            WordMechanism.MADLIB
            | WordMechanism.VICKREY
            | WordMechanism.TEM
            | WordMechanism.EXPONENTIAL
        ):
            return line, Fraction(float(step))
        case WordMechanism.BRR:
            return line, Fraction(flips)


def in_lists(line: WordIndex, parameters: WordsParameters) -> tuple[WordIndex, WordsParameters]:
    """Return the same index with two lists, and parameters by which one of them is searched.

    Neighbours on the line are in one list or in two, so that a search tells them apart if it begins
    at a word's own list.
    """
    halves = np.split(line.vectors, _LISTS)
    lists = around(np.stack([half.mean(axis=0) for half in halves]), line.vectors)
    return (
        WordIndex(line.manifest, line.vocabulary, line.vectors, line.codes, lambda: lists),
        replace(parameters, search=Searching(parameters.search.engine, probes=1)),
    )


def of_releases(
    privatizer: Callable[[], Privatizer],
    terms: pa.Array,
    distances: npt.NDArray[np.float64],
    epsilon: Fraction,
    most: int,
) -> list[Exact | Sampled]:
    """Return audits of documents that differ in a word of the index, or in one that it lacks.

    `distances`, float64 (m, m), are those between the first m of its terms.
    """
    canaries = unknown_words(terms)
    with_one, with_other = (f"{terms[0]} {canary}" for canary in canaries)
    audits: list[Exact | Sampled] = [
        Sampled(
            "documents: a word out of the vocabulary",
            0.0,
            "Documents were released that differ in a word that the index lacks.",
            partial(
                epsilon_at_least,
                partial(canaries_released, privatizer, canaries),
                with_one,
                with_other,
            ),
            most=most,
        )
    ]
    pair = telling_pair(distances, float(epsilon))
    if pair is None:
        return audits
    distance = float(distances[pair])
    audits.append(
        Sampled(
            "documents: one word",
            # A little more, to cover the rounding of the distance.
            float(epsilon) * distance * (1 + 1e-6),
            f"Documents were released of two words of the index that are {distance:.4g} apart.",
            partial(
                epsilon_at_least,
                partial(texts_released, privatizer, terms, terms[pair[0]].as_py()),
                terms[pair[0]].as_py(),
                terms[pair[1]].as_py(),
            ),
            most=most,
        )
    )
    return audits


def telling_pair(distances: npt.NDArray[np.float64], epsilon: float) -> tuple[int, int] | None:
    """Return the two words whose loss is nearest to `LOSS`, by their distances, float64 (m, m).

    Returns None where no two differ.
    """
    if not distances.size:
        return None
    far = np.where(
        distances > 0, np.abs(np.log(np.maximum(distances, 1e-300) * epsilon / LOSS)), np.inf
    )
    one, other = np.unravel_index(int(far.argmin()), far.shape)
    return (int(one), int(other)) if np.isfinite(far[one, other]) else None


def unknown_words(terms: pa.Array) -> tuple[str, str]:
    """Return two words that are not among the terms."""
    known = set(terms.to_pylist())
    one, other = itertools.islice((word for word in made_up_words() if word not in known), 2)
    return one, other


def texts_released(
    privatizer: Callable[[], Privatizer], known: pa.Array, first: str, second: str, count: int
) -> npt.NDArray[np.int64]:
    """Return which of the known texts two documents became: int64 (count, 2); -1 for others."""
    parts = [
        pc.index_in(rows["text"].combine_chunks(), value_set=known.cast(pa.large_string()))
        .fill_null(-1)
        .to_numpy(zero_copy_only=False)
        for rows in released(privatizer(), (first, second), count)
    ]
    return np.concatenate(parts).astype(np.int64).reshape(count, 2)


def canaries_released(
    privatizer: Callable[[], Privatizer], canaries: tuple[str, ...], text: str, count: int
) -> npt.NDArray[np.int64]:
    """Count each canary in a document's releases: int64 (count, canaries)."""
    parts = [
        np.column_stack(
            [
                pc.count_substring(rows["text"].combine_chunks(), canary).to_numpy()
                for canary in canaries
            ]
        )
        for rows in released(privatizer(), (text,), count)
    ]
    return np.concatenate(parts).astype(np.int64)


def alone(kind: WordsKind) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """Return the index's words, and the distances between the first m, float64 (m, m).

    First are words that are texts of one word: a dictionary may divide others where they stand
    alone.
    """
    terms, rule = kind.index.vocabulary.terms, kind.parameters.tokenizer
    first = terms[:_WORDS_TRIED]
    whole = is_reachable(first, rule.tokenize(first), rule)
    order = np.concatenate([np.flatnonzero(whole), np.arange(len(first), len(terms))])
    return terms.take(pa.array(order)), _distances(kind)[np.ix_(whole, whole)]


def _distances(kind: WordsKind) -> npt.NDArray[np.float64]:
    """Compute the distances between the index's first words, float64 (m, m)."""
    apart: npt.NDArray[np.float64]
    match kind.parameters.mechanism:
        case (
            WordMechanism.MADLIB
            | WordMechanism.VICKREY
            | WordMechanism.TEM
            | WordMechanism.EXPONENTIAL
        ):
            vectors = np.asarray(kind.index.vectors[:_WORDS_TRIED]).astype(np.float64)
            apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
            return apart
        case WordMechanism.BRR:
            codes = np.asarray(kind.index.codes[:_WORDS_TRIED])
            differing = np.bitwise_count(codes[:, None] ^ codes[None])
            apart = differing.sum(axis=2, dtype=np.float64)
            return apart
