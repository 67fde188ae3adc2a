"""Audits of text that is released word by word."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluation.audits.exact import LogMasses, log_masses
from evaluation.audits.findings import Exact, Sampled
from evaluation.audits.lower_bound import LowerBound, check, epsilon_at_least, rate_at_least
from indexes.artefact import WordIndex
from mechanisms import madlib
from mechanisms.brr import Flip
from mechanisms.guarantees import round_up
from pipelines.evidence.audit_inputs import LOSS, fresh_key, fresh_stream, released
from pipelines.words import WordsKind
from transforms.rows import Privatizer
from transforms.words import WordMechanism, WordPrivatizer

_WORDS_TRIED = 128
_NUMBERS = 1 << 24  # that are drawn for one audit of noise, about
_PRODUCTS = 1 << 38  # of coordinates, or of bits, that searches for nearest words may cost
_LEAST = 1000  # draws, whatever they cost
_LETTERS = string.ascii_lowercase


def of_words(kind: WordsKind) -> list[Exact | Sampled]:
    """The noise on words at the run's epsilon, and releases of documents of a word."""
    epsilon, index = kind.parameters.epsilon, kind.index
    if kind.parameters.mechanism is WordMechanism.MADLIB:
        noise: list[Exact | Sampled] = of_noise(epsilon, index.manifest.dimensions)
        size = index.manifest.dimensions
    else:
        noise = [of_flips(epsilon)]
        size = index.manifest.bits // 64
    most = max(_LEAST, _PRODUCTS // (2 * size * len(index.vocabulary)))

    def privatizer() -> WordPrivatizer:
        return WordPrivatizer(kind.parameters, index, fresh_key())

    return [*noise, *of_releases(privatizer, index, _distances(kind), epsilon, most)]


def of_noise(epsilon: Fraction, dimensions: int) -> list[Exact | Sampled]:
    """Madlib's noise: in one dimension, where events tell most, and its length in all of them."""
    apart = np.float32(LOSS / float(epsilon))
    return [
        Sampled(
            "noise in one dimension",
            round_up(epsilon * Fraction(float(apart))),
            f"Noise was added to two points {apart:g} apart.",
            partial(epsilon_at_least, partial(points_noised, epsilon), 0.0, float(apart)),
        ),
        Sampled(
            "noise's length, a unit of distance",
            round_up(epsilon),
            f"If noise in {dimensions} dimensions has Madlib's form, its epsilon is at least that "
            "much.",
            partial(_lengths, epsilon, dimensions),
            most=max(_LEAST, _NUMBERS // dimensions),
        ),
    ]


def of_flips(epsilon: Fraction) -> Exact:
    """BRR's bits."""
    return Exact(
        "flips of a bit, a unit of distance",
        round_up(epsilon),
        "The chances that a bit flips, and that it does not, were compared as they are drawn.",
        lambda: flip_loss(log_masses(Flip(epsilon), 2)),
    )


def flip_loss(masses: LogMasses) -> float:
    """The log-ratio of the chances of 0 and 1."""
    return max(masses[0][1] - masses[1][0], masses[1][1] - masses[0][0])


def of_releases(
    privatizer: Callable[[], Privatizer],
    index: WordIndex,
    distances: npt.NDArray[np.float64],
    epsilon: Fraction,
    most: int,
) -> list[Exact | Sampled]:
    """Documents of one word or another of the index, and of a word that it lacks or another.

    `distances`, float64 (m, m), are those of the index's first m words.
    """
    terms = index.vocabulary.terms
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
            float(epsilon) * distance * (1 + 1e-6),
            f"Documents were released of two words of the index that are {distance:.4g} apart.",
            partial(
                epsilon_at_least,
                partial(words_released, privatizer, terms, pair[0]),
                pair[0],
                pair[1],
            ),
            most=most,
        )
    )
    return audits


def telling_pair(distances: npt.NDArray[np.float64], epsilon: float) -> tuple[int, int] | None:
    """The two of some words, float64 (m, m), whose loss is nearest to what draws show well.

    None where no two differ.
    """
    far = np.where(
        distances > 0, np.abs(np.log(np.maximum(distances, 1e-300) * epsilon / LOSS)), np.inf
    )
    one, other = np.unravel_index(int(far.argmin()), far.shape)
    return (int(one), int(other)) if np.isfinite(far[one, other]) else None


def unknown_words(terms: pa.Array) -> tuple[str, str]:
    """Two words that are not among the terms."""
    letters = (itertools.product(_LETTERS, repeat=length) for length in itertools.count(6))
    words = ("".join(word) for length in letters for word in length)
    known = set(terms.to_pylist())
    one, other = itertools.islice((word for word in words if word not in known), 2)
    return one, other


def points_noised(epsilon: Fraction, place: float, count: int) -> npt.NDArray[np.float32]:
    """Madlib's noise on a point of a line: float32 (count, 1)."""
    return _noisy(epsilon, np.full((count, 1), place, dtype=np.float32))


def words_released(
    privatizer: Callable[[], Privatizer], terms: pa.Array, first: int, second: int, count: int
) -> npt.NDArray[np.int64]:
    """The words that two documents of one word became: int64 (count, 2); -1 for what is none."""
    texts = terms[first].as_py(), terms[second].as_py()
    parts = [
        pc.index_in(rows["text"].combine_chunks(), value_set=terms.cast(pa.large_string()))
        .fill_null(-1)
        .to_numpy(zero_copy_only=False)
        for rows in released(privatizer(), texts, count)
    ]
    return np.concatenate(parts).astype(np.int64).reshape(count, 2)


def canaries_released(
    privatizer: Callable[[], Privatizer], canaries: tuple[str, ...], text: str, count: int
) -> npt.NDArray[np.int64]:
    """How often each canary stands in what a document became: int64 (count, canaries)."""
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


def _lengths(epsilon: Fraction, dimensions: int, draws: int, level: float) -> LowerBound:
    check(draws, level)
    noise = _noisy(epsilon, np.zeros((draws, dimensions), dtype=np.float32))
    lengths = np.linalg.norm(noise.astype(np.float64), axis=1)
    bound = rate_at_least(lengths, dimensions, level)
    return LowerBound(bound, math.inf, draws, "the sum of the noise's lengths")


def _noisy(epsilon: Fraction, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    count = len(vectors)
    stream, addresses = fresh_stream([b""] * count)
    return madlib.perturb(vectors, [epsilon], np.zeros(count, np.int64), stream, addresses)


def _distances(kind: WordsKind) -> npt.NDArray[np.float64]:
    """Between the index's first words, float64 (m, m); rounded up where they are rounded."""
    if kind.parameters.mechanism is WordMechanism.MADLIB:
        vectors = np.asarray(kind.index.vectors[:_WORDS_TRIED]).astype(np.float64)
        apart: npt.NDArray[np.float64] = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
        return apart
    codes = np.asarray(kind.index.codes[:_WORDS_TRIED])
    differing: npt.NDArray[np.float64] = np.bitwise_count(codes[:, None] ^ codes[None]).sum(
        axis=2, dtype=np.float64
    )
    return differing
