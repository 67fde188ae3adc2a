"""Mechanisms with a fault each, of which an audit of what they promise must tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import correct_audits
import numpy as np
import pyarrow as pa
from correct_audits import (
    CLIP,
    DELTA,
    PURE_NORMS,
    SIGMA,
    TEM_POINTS,
    WORDS,
    Audits,
    Patch,
    all_words,
    bags,
    brr,
    candidates,
    choice,
    floats,
    histogram,
    in_lists,
    madlib,
    many_candidates,
    many_words,
    naive_laplace,
    near_words,
    one_of_two,
    per_entry,
    pure_voters,
    pure_voting_users,
    selection,
    shared_epsilon,
    sparse,
    tem,
    training,
    truncation,
    user_choice,
    user_selection,
    users,
    voters,
    voting_users,
)

import quietcorpus.mechanisms.brr
import quietcorpus.mechanisms.histogram
import quietcorpus.mechanisms.madlib
import quietcorpus.mechanisms.pure_votes
import quietcorpus.mechanisms.user_votes
import quietcorpus.mechanisms.vickrey
import quietcorpus.pipelines.audit.embeddings
import quietcorpus.transforms.privatizers.bags
import quietcorpus.transforms.privatizers.words
from quietcorpus.indexes.faiss_ivf import ListSearch
from quietcorpus.mechanisms.accounting import Schedule
from quietcorpus.mechanisms.bag_of_words import BagOfWords
from quietcorpus.mechanisms.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.distance_draws import Decline, DistanceDraws
from quietcorpus.mechanisms.exact import Bounds, Law, TwoSided
from quietcorpus.mechanisms.exponential import Decay, ExponentialMechanism
from quietcorpus.mechanisms.geometric import DenseNoise
from quietcorpus.mechanisms.histogram import Histogram, ThresholdedVocabulary
from quietcorpus.mechanisms.pure_votes import PureVotes
from quietcorpus.mechanisms.truncation import Truncation
from quietcorpus.mechanisms.user_training import Training
from quietcorpus.mechanisms.user_vocabulary import UserVocabulary
from quietcorpus.mechanisms.votes import Votes
from quietcorpus.transforms.privatizers.rows import Released
from quietcorpus.transforms.privatizers.words import WordPrivatizer
from quietcorpus.transforms.reading.documents import Documents

# Each plants itself, and returns what is then audited.


def of(stated: Callable[[], Audits], plant: Callable[[Patch], None]) -> Callable[[Patch], Audits]:
    def planted(patch: Patch) -> Audits:
        plant(patch)
        return stated()

    return planted


def louder(patch: Patch) -> None:
    patch.setattr(
        BagOfWords, "rate", property(lambda self: 2 * self.guarantee.epsilon / self.precision)
    )


def one_token(patch: Patch) -> None:
    patch.setattr(BagOfWords, "rate", property(lambda self: self.guarantee.epsilon))


def counted_twice(patch: Patch) -> None:
    real = quietcorpus.transforms.privatizers.bags.add_noise

    def twice(noise: Any, size: int, stream: Any, addresses: Any, offsets: Any, bins: Any) -> Any:
        return real(noise, size, stream, addresses, 2 * offsets, np.repeat(bins, 2))

    patch.setattr(quietcorpus.transforms.privatizers.bags, "add_noise", twice)


def without_place(module: Any) -> Callable[[Patch], None]:
    """Noise by a document's content alone: equal documents share it."""

    def plant(patch: Patch) -> None:
        real = module.document_addresses

        def shared(stream: Any, documents: Documents, offsets: Any, terms: Any) -> Any:
            nowhere = Documents(
                documents.source, 0 * documents.rows, documents.texts, documents.columns
            )
            return real(stream, nowhere, offsets, terms)

        patch.setattr(module, "document_addresses", shared)

    return plant


def by_key_alone(patch: Patch) -> None:
    """Noise that every pair of documents shares, whatever is in them."""
    real = DenseNoise.sample

    def shared(self: DenseNoise, stream: Any, addresses: Any) -> Any:
        return real(self, stream, np.repeat(addresses[::2], 2, axis=0)[: len(addresses)])

    patch.setattr(DenseNoise, "sample", shared)


class Silent(DenseNoise):
    """No noise, by a law that says so."""

    def __init__(self, rate: Fraction, size: int) -> None:
        self.size = size

    @property
    def law(self) -> Law:
        return Never()

    def sample(self, stream: Any, addresses: Any) -> Any:
        return np.zeros((len(addresses), self.size), dtype=np.int16)


class Never(TwoSided):
    """Zero, always."""

    def survival(self, index: int, bits: int) -> Bounds:
        return 0, 0


def silent_histogram(patch: Patch) -> None:
    patch.setattr(quietcorpus.mechanisms.histogram, "DenseNoise", Silent)


def skipped_histogram(patch: Patch) -> None:
    patch.setattr(Histogram, "release", lambda self, counts, stream: counts)


def all_selected(patch: Patch) -> None:
    for kind in (ThresholdedVocabulary, UserVocabulary):
        patch.setattr(kind, "select", lambda self, terms, *others: np.ones(len(terms), bool))


def rare_dropped(patch: Patch) -> None:
    """Terms that will hardly reach the threshold are not even tried."""
    real = ThresholdedVocabulary.select

    def near(self: ThresholdedVocabulary, terms: Any, frequencies: Any, stream: Any) -> Any:
        kept = np.asarray(frequencies) >= self.threshold - 1
        return real(self, terms, frequencies, stream) & kept

    patch.setattr(ThresholdedVocabulary, "select", near)


def half_user_noise(patch: Patch) -> None:
    """Half of the noise on users' weights, and the threshold of all of it."""
    real = user_choice()
    wrong = replace(real)
    noise = ClippedSum(real.noise.noise_multiplier / 2)
    wrong.__dict__.update(noise=noise, threshold=real.threshold)
    patch.setattr(correct_audits, "user_choice", lambda: wrong)


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


def half_histogram(patch: Patch) -> None:
    patch.setattr(
        quietcorpus.mechanisms.histogram,
        "DenseNoise",
        lambda rate, size: DenseNoise(2 * rate, size),
    )


def low_threshold(patch: Patch) -> None:
    patch.setattr(ThresholdedVocabulary, "threshold", choice().threshold - 1)


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


def half_decay(patch: Patch) -> None:
    """Weights that fall twice as fast as their rate says."""
    real = ExponentialMechanism.law.fget
    assert real is not None
    patch.setattr(ExponentialMechanism, "law", property(lambda self: Decay(2 * real(self).rate)))


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


def whole_epsilon(patch: Patch) -> None:
    """exp(epsilon u) in place of exp(epsilon u / 2)."""
    patch.setattr(
        ExponentialMechanism, "rate", property(lambda self: self.epsilon / self.sensitivity)
    )


def loud_draws(patch: Patch) -> None:
    """The draws alone: the law that is stated stays."""
    real = ExponentialMechanism.draw

    def loud(self: ExponentialMechanism, *given: Any) -> Any:
        return real(ExponentialMechanism(2 * self.epsilon, self.sensitivity), *given)

    patch.setattr(ExponentialMechanism, "draw", loud)


def one_dimension(patch: Patch) -> None:
    """The noise of one coordinate's sensitivity in all of them."""
    patch.setattr(Truncation, "rate", property(lambda self: self.epsilon / 4))


def squared_norm(patch: Patch) -> None:
    """sigma C^2 for sigma C, as in the public code of dpUGC: less noise where C < 1."""
    wrong = Training(training().settings, ClippedSum(SIGMA * CLIP), 10.0, 0.05)
    patch.setattr(correct_audits, "training", lambda: wrong)


def unclipped(patch: Patch) -> None:
    def asked(values: np.ndarray, dither: np.ndarray) -> np.ndarray:
        return np.floor(values * STEPS + (dither + 0.5) / 2**16).astype(np.int64)

    patch.setattr(quietcorpus.pipelines.audit.embeddings, "clipped", asked)


def unclipped_votes(patch: Patch) -> None:
    """The whole norm for each of a document's texts."""
    patch.setattr(Votes, "weights", (STEPS,) * 5)


def half_vote_noise(patch: Patch) -> None:
    """Noise for half of the norm."""
    full = Votes(5, Fraction(2), DELTA).noise
    patch.setattr(Votes, "noise", ClippedSum(full.noise_multiplier / 2))


def noise_of_a_vote(patch: Patch) -> None:
    """Noise for one text's vote, as if a document had no others."""
    full = Votes(5, Fraction(2), DELTA)
    share = Fraction(full.weight, STEPS)
    patch.setattr(Votes, "noise", ClippedSum(full.noise.noise_multiplier * share))


def unclipped_users(patch: Patch) -> None:
    """The votes of all documents of a user, as they are."""

    def asked(values: np.ndarray, dither: np.ndarray, _: int) -> np.ndarray:
        return np.floor(values * STEPS + (dither + 0.5) / 2**16).astype(np.int64)

    patch.setattr(quietcorpus.mechanisms.user_votes, "clipped", asked)


def one_norm(patch: Patch) -> None:
    """The largest norm, whatever a user's budget."""
    real = quietcorpus.mechanisms.user_votes.clipped
    patch.setattr(
        quietcorpus.mechanisms.user_votes, "clipped", lambda votes, dither, _: real(votes, dither)
    )


def unclipped_pure_votes(patch: Patch) -> None:
    """The whole norm for each of a document's texts, under noise for one of them."""
    norm = PureVotes(5, Fraction(2)).norm
    patch.setattr(PureVotes, "norm", norm)
    patch.setattr(PureVotes, "weights", (norm,) * 5)


def half_pure_noise(patch: Patch) -> None:
    """Noise for half of the norm."""
    patch.setattr(PureVotes, "rate", 2 * PureVotes(5, Fraction(2)).rate)


def unclipped_pure_users(patch: Patch) -> None:
    """The votes of all documents of a user, as they are."""
    patch.setattr(quietcorpus.mechanisms.pure_votes, "copies", lambda votes, *_: votes)


def one_pure_norm(patch: Patch) -> None:
    """The largest norm, whatever a user's budget."""
    real, most = quietcorpus.mechanisms.pure_votes.copies, max(PURE_NORMS.most.values())
    patch.setattr(
        quietcorpus.mechanisms.pure_votes,
        "copies",
        lambda votes, _, start: real(votes, most, start),
    )


def one_step_stated(patch: Patch) -> None:
    """The cost of a single step, for all of them."""
    real = Schedule.spent
    patch.setattr(Schedule, "spent", lambda self, group, done: real(self, group, 1))


FAULTS: dict[str, tuple[Callable[[Patch], Audits], str]] = {
    "half the noise on bags, by law": (of(bags, louder), "documents: the noise's law"),
    "half the noise on bags, by draws": (of(bags, louder), "documents: 4 tokens"),
    "half the sparse noise, by law": (of(sparse, louder), "documents: the noise's law"),
    "half the sparse noise, by draws": (of(sparse, louder), "documents: 1 token, sparse noise"),
    "N = 1 for N = 4, by law": (of(bags, one_token), "documents: the noise's law"),
    "N = 1 for N = 4, by draws": (of(bags, one_token), "documents: 4 tokens"),
    "tokens counted twice": (of(bags, counted_twice), "documents: 4 tokens"),
    "equal documents share noise": (
        of(bags, without_place(quietcorpus.transforms.privatizers.bags)),
        "documents: 4 tokens",
    ),
    "all documents share noise": (of(bags, by_key_alone), "documents: 4 tokens"),
    "per-entry noise of twice its rate": (
        of(per_entry, louder),
        "documents: 4 tokens",
    ),
    "no noise on the histogram, by law": (
        of(histogram, silent_histogram),
        "histogram: the noise's law",
    ),
    "a histogram that skips its noise": (of(histogram, skipped_histogram), "histogram: 4 tokens"),
    "half the noise on the histogram, by law": (
        of(histogram, half_histogram),
        "histogram: the noise's law",
    ),
    "half the noise on the histogram": (of(histogram, half_histogram), "histogram: 4 tokens"),
    "half the noise on frequencies": (of(selection, half_histogram), "vocabulary: 3 of 3 terms"),
    "half the noise on frequencies, by law": (
        of(selection, half_histogram),
        "vocabulary: terms of both corpora",
    ),
    "every term is selected": (
        of(selection, all_selected),
        "vocabulary: terms of one corpus, selected (delta)",
    ),
    "every word of users is selected": (
        of(user_selection, all_selected),
        "vocabulary: words of one user, selected (delta)",
    ),
    "half the noise on users' weights": (
        of(user_selection, half_user_noise),
        "vocabulary: a word with and without a user",
    ),
    "rare terms dropped by their frequency": (
        of(selection, rare_dropped),
        "vocabulary: one term, by frequency",
    ),
    "a threshold too low by one": (
        of(selection, low_threshold),
        "vocabulary: terms of one corpus (delta)",
    ),
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
    "floats with gaps": (lambda patch: floats(naive_laplace), "noise on a number"),
    "exp(epsilon u) for exp(epsilon u / 2)": (
        of(candidates, whole_epsilon),
        "documents: utilities that one sentence may give",
    ),
    "candidates drawn at twice epsilon": (
        of(candidates, loud_draws),
        "documents: candidates drawn, near",
    ),
    "weights that fall twice as fast": (
        of(candidates, half_decay),
        "documents: utilities that one sentence may give",
    ),
    "one of 2,000 candidates drawn at twice epsilon": (
        of(many_candidates, loud_draws),
        "documents: candidates drawn, near",
    ),
    "the sensitivity of one coordinate": (
        of(truncation, one_dimension),
        "documents: the noise's law",
    ),
    "sigma C^2 for sigma C, by accounting": (of(users, squared_norm), "accounting"),
    "sigma C^2 for sigma C, by draws": (
        of(users, squared_norm),
        "a step's sums, with and without a user",
    ),
    "users who are not clipped": (of(users, unclipped), "a step's sums, with and without a user"),
    "votes that are not clipped, by their length": (
        of(voters, unclipped_votes),
        "a document's votes",
    ),
    "votes that are not clipped, by draws": (
        of(voters, unclipped_votes),
        "votes, with and without a document",
    ),
    "half of the noise on votes, by accounting": (of(voters, half_vote_noise), "accounting"),
    "half of the noise on votes, by draws": (
        of(voters, half_vote_noise),
        "votes, with and without a document",
    ),
    "noise for a single text's vote": (
        of(voters, noise_of_a_vote),
        "votes, with and without a document",
    ),
    "users whose votes are not clipped, by their length": (
        of(voting_users, unclipped_users),
        "a user's votes: group gold",
    ),
    "users whose votes are not clipped, by draws": (
        of(voting_users, unclipped_users),
        "votes, with and without a user: group gold",
    ),
    "the largest norm for every budget, by length": (
        of(voting_users, one_norm),
        "a user's votes: group silver",
    ),
    "the largest norm for every budget, by draws": (
        of(voting_users, one_norm),
        "votes, with and without a user: group silver",
    ),
    "half of the noise on users' votes, by accounting": (
        of(voting_users, half_vote_noise),
        "accounting: group silver",
    ),
    "half of the noise on users' votes, by draws": (
        of(voting_users, half_vote_noise),
        "votes, with and without a user: group gold",
    ),
    "geometric votes that are not clipped, by their length": (
        of(pure_voters, unclipped_pure_votes),
        "a document's votes",
    ),
    "geometric votes that are not clipped, by draws": (
        of(pure_voters, unclipped_pure_votes),
        "votes, with and without a document",
    ),
    "half of the geometric noise on votes, by its law": (
        of(pure_voters, half_pure_noise),
        "votes: the noise's law",
    ),
    "half of the geometric noise on votes, by draws": (
        of(pure_voters, half_pure_noise),
        "votes, with and without a document",
    ),
    "users whose geometric votes are not clipped, by their length": (
        of(pure_voting_users, unclipped_pure_users),
        "a user's votes: group gold",
    ),
    "users whose geometric votes are not clipped, by draws": (
        of(pure_voting_users, unclipped_pure_users),
        "votes, with and without a user: group gold",
    ),
    "the largest norm for every budget under geometric noise, by length": (
        of(pure_voting_users, one_pure_norm),
        "a user's votes: group silver",
    ),
    "the largest norm for every budget under geometric noise, by draws": (
        of(pure_voting_users, one_pure_norm),
        "votes, with and without a user: group silver",
    ),
    "half of the geometric noise on users' votes, by its law": (
        of(pure_voting_users, half_pure_noise),
        "votes: the noise's law: group silver",
    ),
    "half of the geometric noise on users' votes, by draws": (
        of(pure_voting_users, half_pure_noise),
        "votes, with and without a user: group gold",
    ),
    "one step accounted for, of 40": (of(users, one_step_stated), "accounting"),
}
