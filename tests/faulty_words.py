"""Faults in the mechanisms of words, and the audits that tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from correct_audits import (
    TEM_POINTS,
    WORDS,
    Patch,
    all_words,
    brr,
    in_lists,
    madlib,
    many_words,
    near_words,
    one_of_two,
    shared_epsilon,
    tem,
)
from planting import Faults, of, without_place

import quietcorpus.mechanisms.brr
import quietcorpus.mechanisms.madlib
import quietcorpus.mechanisms.vickrey
import quietcorpus.transforms.privatizers.words
from quietcorpus.indexes.faiss_ivf import ListSearch
from quietcorpus.mechanisms.distance_draws import Decline, DistanceDraws
from quietcorpus.transforms.privatizers.rows import Released
from quietcorpus.transforms.privatizers.words import WordPrivatizer
from quietcorpus.transforms.reading.documents import Documents


def copy_all(patch: Patch) -> None:
    """Every word that the index knows stays as it is."""
    patch.setattr(WordPrivatizer, "_replace", lambda self, words, *others: words)


def entry_at_the_word(patch: Patch) -> None:
    """A search that begins in the list of the word itself, as a faster one might."""

    def entered(self: WordPrivatizer, words: Any, epsilons: Any, which: Any, parts: Any) -> Any:
        vectors = self._index.vectors[words]
        queries = quietcorpus.mechanisms.madlib.perturb(
            vectors, epsilons, which, self._stream, parts
        )
        search = self._search
        assert isinstance(search, ListSearch)
        found = np.full((len(words), 1), -1, dtype=np.int32)
        search._nearest(queries, search.entries(vectors), found, np.full((len(words), 1), np.inf))
        return found[:, 0]

    patch.setattr(WordPrivatizer, "_replace", entered)


def without_itself(patch: Patch) -> None:
    """Vickrey's choice of the two nearest of the *other* words, as a public library has it."""

    def drawn(self: WordPrivatizer, words: Any, epsilons: Any, which: Any, parts: Any) -> Any:
        ids, squares = self._vectors.several(self._noisy(words, epsilons, which, parts), 3)
        places = np.arange(2) + (ids[:, :1] == words[:, None])
        two = (np.take_along_axis(each, places, axis=1) for each in (ids, squares))
        tuning = self._parameters.tuning
        return quietcorpus.mechanisms.vickrey.chosen(*two, tuning, self._stream, parts)  # type: ignore[arg-type]

    patch.setattr(WordPrivatizer, "_drawn", drawn)


def unshared(patch: Patch) -> None:
    """A document's epsilon, for each of its words."""

    def whole(self: WordPrivatizer, offsets: Any) -> Any:
        return [self._parameters.epsilon], np.zeros(int(offsets[-1]), dtype=np.int64)

    patch.setattr(WordPrivatizer, "_epsilons", whole)


def half_madlib(patch: Patch) -> None:
    real = quietcorpus.mechanisms.madlib.perturb

    def half(vectors: Any, epsilons: Any, *others: Any) -> Any:
        return real(vectors, [2 * epsilon for epsilon in epsilons], *others)

    patch.setattr(quietcorpus.mechanisms.madlib, "perturb", half)


def half_flips(patch: Patch) -> None:
    real = quietcorpus.mechanisms.brr.Flip.survival

    def half(self: Any, index: int, bits: int) -> Any:
        return real(type(self)(2 * self.epsilon), index, bits)

    patch.setattr(quietcorpus.mechanisms.brr.Flip, "survival", half)
    quietcorpus.mechanisms.brr._digits.cache_clear()


def peers_bottom(patch: Patch) -> None:
    """TEM's element for all other words with the weight that a public library gives it."""
    real = DistanceDraws.weights

    def peers(self: DistanceDraws, words: Any) -> Any:
        (offsets, ids, squares), rests, bases = real(self, words)
        near, size = np.diff(offsets), len(TEM_POINTS)
        wrong = bases * (size / near) / (size - near)
        return (offsets, ids, squares), rests + np.repeat(bases - wrong, near), wrong

    patch.setattr(DistanceDraws, "weights", peers)


def whole_rate(patch: Patch) -> None:
    """exp(-epsilon d) in place of exp(-epsilon d / 2)."""
    patch.setattr(Decline, "rate", property(lambda self: self.epsilon))


def copied(patch: Patch) -> None:
    """Words that the index lacks are kept as they are."""

    class Copying(WordPrivatizer):
        def release(self, documents: Documents) -> Released:
            released = super().release(documents)
            texts = [
                " ".join([own, *(word for word in text.split() if word not in WORDS)])
                for text, own in zip(
                    documents.texts.to_pylist(), released.rows["text"].to_pylist(), strict=True
                )
            ]
            place = released.rows.schema.get_field_index("text")
            column = pa.array(texts, pa.large_string())
            return released._replace(rows=released.rows.set_column(place, "text", column))

    patch.setattr(quietcorpus.transforms.privatizers.words, "WordPrivatizer", Copying)


FAULTS: Faults = {
    "half of Madlib's noise, on a line": (of(madlib, half_madlib), "noise in one dimension"),
    "half of Madlib's noise, its length": (
        of(madlib, half_madlib),
        "noise's length, a unit of distance",
    ),
    "half of Madlib's noise, in words": (of(madlib, half_madlib), "documents: one word"),
    "equal words share noise": (
        of(madlib, without_place(quietcorpus.transforms.privatizers.words)),
        "documents: one word",
    ),
    "out-of-vocabulary words copied": (
        of(madlib, copied),
        "documents: a word out of the vocabulary",
    ),
    "every word copied, of 300": (of(many_words, copy_all), "documents: a word of four on a line"),
    "an entry point that sees the word, on a line": (
        of(in_lists, entry_at_the_word),
        "documents: a word of four on a line",
    ),
    "Vickrey without the word itself": (
        of(one_of_two, without_itself),
        "documents: a word of four on a line",
    ),
    "epsilon of a document for each word": (
        of(shared_epsilon, unshared),
        "documents: two equal words of four on a line",
    ),
    "bits that flip too rarely, on a line": (
        of(brr, half_flips),
        "documents: a word of four on a line",
    ),
    "bits that flip too rarely, by law": (
        of(brr, half_flips),
        "flips of a bit, a unit of distance",
    ),
    "bits that flip too rarely, in words": (of(brr, half_flips), "documents: one word"),
    "TEM with log(|V| / |L|) for log|W - L|": (
        lambda patch: tem(lambda near: len(TEM_POINTS) / near),
        "words, a unit of distance",
    ),
    "TEM with log(|V| / |L|) for log|W - L|, as released": (
        of(near_words, peers_bottom),
        "words: the laws of all pairs, a unit of distance",
    ),
    "exp(-epsilon d) for exp(-epsilon d / 2), near": (
        of(near_words, whole_rate),
        "words: the laws of all pairs, a unit of distance",
    ),
    "exp(-epsilon d) for exp(-epsilon d / 2), of 2,000": (
        of(all_words, whole_rate),
        "words: the laws of all pairs, a unit of distance",
    ),
}
