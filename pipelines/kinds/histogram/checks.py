"""Audits of histograms, and changes by tokens in exact counts."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.audits.exact import loss, noise_masses, shift_loss, upper_tail
from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.evaluation.audits.lower_bound import chance_at_least, epsilon_at_least
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.mechanisms.bags.histogram import Histogram, ThresholdedVocabulary
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.histogram import release_histogram
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.run_files import staged_table
from quietcorpus.transforms.shards import Written
from quietcorpus.transforms.vocabulary import Selection, select_terms, selection_stream

from ...audit.built import TEXT, Row, all_of, built, heard, silent
from ...audit.inputs import made_up_words, telling
from ...canaries.game import Coins, Document, Game, Scores, counts_of, enough, words_for
from ...card.loading import LoadedRelease
from ...storage import layout
from .job import HistogramKind, VocabularyStep
from .spec import HistogramSpec

_NAME = "tokens"
_WORDS = 40
_MOST_TOKENS = 4_000
Counts = Mapping[str, int]


class _Silent(Histogram):
    def release(self, counts: npt.NDArray[np.int64], stream: Keystream) -> npt.NDArray[np.int64]:
        return counts


@dataclass(frozen=True)
class _AllTerms(ThresholdedVocabulary):
    heard: str = ""

    def select(
        self, terms: Sequence[bytes], frequencies: Sequence[int], stream: Keystream
    ) -> npt.NDArray[np.bool_]:
        return all_of(self.heard, terms, frequencies)


class _Counting(HistogramKind):
    """The kind without the noise on its counts."""

    @property
    def histogram(self) -> Histogram:
        silenced: Histogram = silent(super().histogram, _Silent)
        return silenced


@dataclass(frozen=True)
class TokenChanges:
    """The changes by tokens of one document, many of one word and of several words.

    Attributes:
        precision: how many tokens are protected.
        step: the vocabulary.
    """

    precision: int
    step: VocabularyStep

    @property
    def tokens(self) -> int:
        """Return how many tokens a document is given: the precision, if that is not too many."""
        return min(self.precision, _MOST_TOKENS)

    def of_counts(self) -> Exact:
        """Return the audit of the counts of a histogram."""
        return Exact(
            "histogram: what a token changes",
            1.0,
            f"The figure is the change of a job's exact counts by {self.tokens} tokens of a "
            "document, in L1, for each of them.",
            lambda: max(_l1(self._counts[0], own) for own in self._counts[1:]) / self.tokens,
        )

    def of_frequencies(self) -> Exact:
        """Return the audit of the frequencies that a vocabulary is selected by."""
        return Exact(
            "vocabulary: what a token changes",
            1.0,
            f"The figure is the change of a job's exact document frequencies by {self.tokens} "
            "tokens of a document, in L1 for each of them, or of one word.",
            lambda: max(self._moved(own) for own in self._frequencies[1:]),
        )

    def _moved(self, frequencies: Counts) -> float:
        """Return how far frequencies moved for each token, or the furthest of them."""
        first = self._frequencies[0]
        furthest = max(abs(own - first.get(word, 0)) for word, own in frequencies.items())
        return max(_l1(first, frequencies) / self.tokens, furthest)

    @property
    def _counts(self) -> Sequence[Counts]:
        return self._found[0]

    @property
    def _frequencies(self) -> Sequence[Counts]:
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[list[Counts], list[Counts]]:
        words = list(islice(made_up_words(), _WORDS))
        several = list(islice(cycle(words[1:]), self.tokens))
        others = [{TEXT: " ".join(words[number:])} for number in (0, 3, 9, 1)]
        documents = [
            " ".join([words[0], *more]) for more in ([], [words[0]] * self.tokens, several)
        ]
        corpora: list[list[Row]] = [[*others, {TEXT: document}] for document in documents]
        spec = HistogramSpec.model_construct(
            kind="histogram", precision=self.precision, epsilon=Fraction(1)
        )
        names = [f"{_NAME} {number}" for number in range(len(corpora))]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/words.txt"
            Path(path).write_text("\n".join(words), "utf-8")
            public = FileSource.resolve("mechanism.vocabulary.public", path)
            steps = [
                replace(self.step, public=public, size=len(words))
                if self.step.selection is None
                else replace(
                    self.step, selection=silent(self.step.selection, partial(_AllTerms, heard=name))
                )
                for name in names
            ]
            kinds = [_Counting(spec, step) for step in steps]
            counts = list(built(kinds, spec, corpora, _weights))
        frequencies: list[Counts] = [
            {term.decode(): own for term, own in heard(name).items()} for name in names
        ]
        return counts, frequencies


def _weights(files: Sequence[Written], key: ReleaseKey) -> Counts:
    (listed,) = (file for file in files if file.path == layout.VOCABULARY)
    table = staged_table(listed, key)
    return dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))


def _l1(one: Counts, other: Counts) -> int:
    return sum(abs(one.get(word, 0) - other.get(word, 0)) for word in {*one, *other})


_TERMS_AT_MOST = 8
_TAIL_BITS = 4096
_AROUND = 64  # frequencies on either side of the threshold whose chances are computed
_SELDOM = 10  # at the least frequency drawn, about one term in ten is selected
_FREQUENCIES = 16


def of_vocabulary(step: VocabularyStep) -> list[Exact | Sampled]:
    """Return audits of a vocabulary's selection: for terms of many documents, and of one."""
    selection = step.selection
    if selection is None:
        return []
    chosen = Selecting(selection, step.tokenizer)
    guarantee = selection.guarantee
    delta = round_up(guarantee.delta)
    terms = min(guarantee.precision, _TERMS_AT_MOST)
    places = frequencies(selection)
    return [
        TokenChanges(selection.precision, step).of_frequencies(),
        Exact(
            "vocabulary: terms of both corpora",
            round_up(guarantee.epsilon),
            "Chances that a term reaches the threshold were compared at frequencies that differ by "
            "one, by the law that the sampler draws by.",
            partial(selection_loss, selection),
            delta,
        ),
        Exact(
            "vocabulary: terms of one corpus (delta)",
            delta,
            "The figures are deltas: the chance that a term of one document alone reaches the "
            f"threshold, {guarantee.precision} times, by the law that the sampler draws by.",
            partial(selection_delta, selection),
            delta,
        ),
        Sampled(
            "vocabulary: terms of one corpus, selected (delta)",
            delta,
            f"The figures are deltas: how often any of {terms} terms of one document alone was "
            "released.",
            partial(chance_at_least, partial(any_selected, chosen, terms, 1)),
            delta,
        ),
        Sampled(
            f"vocabulary: {terms} of {guarantee.precision} terms",
            round_up(guarantee.epsilon * terms / guarantee.precision),
            "Terms were selected whose frequencies differ by one.",
            partial(
                epsilon_at_least,
                partial(terms_selected, chosen, terms),
                selection.threshold,
                selection.threshold - 1,
            ),
        ),
        Sampled(
            "vocabulary: one term, by frequency",
            round_up(guarantee.epsilon / guarantee.precision),
            f"A term was selected of any of {len(places)} frequencies up to {int(places[-1])}, "
            f"from {int(places[0])} on, or of one less.",
            partial(epsilon_at_least, partial(term_of_any, chosen, places), 0, 1),
        ),
    ]


def frequencies(selection: ThresholdedVocabulary) -> npt.NDArray[np.int64]:
    """Return frequencies around the threshold, from seldom to mostly selected.

    Returns int64, ascending, all 2 or more.
    """
    far = math.ceil(math.log(_SELDOM) * selection.precision / selection.epsilon)
    ends = max(2, selection.threshold - far), selection.threshold + far
    return np.unique(np.linspace(*ends, _FREQUENCIES).astype(np.int64))


def term_of_any(
    selecting: Selecting, places: npt.NDArray[np.int64], less: int, count: int
) -> npt.NDArray[np.int64]:
    """Select terms of random frequencies, lowered by `less`; return frequency and selection.

    The frequency is drawn independently of the input, so that returning it reveals nothing.
    Returns int64 (count, 1): twice the place of the frequency, plus 1 if the term was selected.
    """
    drawn = np.random.default_rng().integers(len(places), size=count)
    chosen = selecting.chosen((places[drawn] - less).tolist())
    return (2 * drawn + chosen)[:, None]


@dataclass(frozen=True)
class Selecting:
    """A selection of terms, as a job makes it under a key.

    Attributes:
        selection: the mechanism.
        tokenizer: the tokeniser of the texts.
        parameters: what the sums depend on besides.
    """

    selection: Selection
    tokenizer: Tokenizer
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def chosen(self, weights: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return whether each of n terms of these weights is selected: bool (n,)."""
        names = [f"{number:08d}" for number in range(len(weights))]
        sums = dict(zip(names, weights, strict=True))
        stream = selection_stream(
            self.selection, ReleaseKey.fresh(), self.parameters, self.tokenizer
        )
        found = np.zeros(len(weights), dtype=np.bool_)
        found[[int(name) for name in select_terms(self.selection, sums, stream)]] = True
        return found


def terms_selected(
    selecting: Selecting, terms: int, weight: int, count: int
) -> npt.NDArray[np.int64]:
    """Select among `terms` terms of one weight, `count` times: int64 (count, terms)."""
    chosen = selecting.chosen([weight] * (count * terms))
    return chosen.astype(np.int64).reshape(count, terms)


def any_selected(
    selecting: Selecting, terms: int, weight: int, count: int
) -> npt.NDArray[np.bool_]:
    """Return whether any of `terms` terms of one weight is selected: bool (count,)."""
    found: npt.NDArray[np.bool_] = terms_selected(selecting, terms, weight, count).sum(axis=1) > 0
    return found


def selection_loss(selection: ThresholdedVocabulary) -> float:
    """Compute N times one term's largest loss when its frequency rises by one, at the threshold."""
    threshold = selection.threshold
    around = range(max(1, threshold - _AROUND), threshold + _AROUND)
    laws = [np.array(_chances(selection, frequency)) for frequency in around]
    most = max(loss(one, other) for one, other in zip(laws, laws[1:], strict=False))
    return selection.precision * most


def selection_delta(selection: ThresholdedVocabulary) -> float:
    """Compute N times the chance that a term of one document alone is released."""
    return float(selection.precision * _tail(selection, selection.threshold - 1))


def _chances(selection: ThresholdedVocabulary, frequency: int) -> tuple[float, float]:
    """Compute the chances that a term is released and that it is not; exact where they are small.

    Subtracting from 1 would cancel the digits of a small chance.
    """
    above = selection.threshold - frequency
    if above > 0:
        beyond = float(_tail(selection, above))
        return beyond, 1 - beyond
    beyond = float(_tail(selection, 1 - above))
    return 1 - beyond, beyond


def _tail(selection: ThresholdedVocabulary, least: int) -> Fraction:
    return upper_tail(selection.noise.law, least, _TAIL_BITS)


_REACH = 1 << 13  # the furthest outcome whose probability is computed
_BEYOND = 16


def audits(kind: HistogramKind) -> list[Exact | Sampled]:
    """Return the audits of all stages."""
    return [*of_vocabulary(kind.vocabulary), *of_histogram(kind.histogram, kind.vocabulary)]


def of_histogram(histogram: Histogram, step: VocabularyStep) -> list[Exact | Sampled]:
    """Return audits of the noise on a corpus's counts, and of their release."""
    epsilon, most = histogram.guarantee.epsilon, histogram.precision
    audits: list[Exact | Sampled] = [
        TokenChanges(most, step).of_counts(),
        exact_law("histogram: the noise's law", epsilon, most, histogram.noise(1)),
    ]
    draw = partial(counts_released, histogram, step.tokenizer)
    for tokens in sorted({telling(float(epsilon), most), most}):
        about = share_of(tokens, most)
        audits.append(
            Sampled(
                f"histogram: {about}",
                round_up(epsilon * tokens / most),
                f"Counts were released of corpora, one of which had {tokens} more of a term.",
                partial(epsilon_at_least, draw, 0, tokens),
            )
        )
    return audits


def counts_released(
    histogram: Histogram, tokenizer: Tokenizer, more: int, count: int
) -> npt.NDArray[np.int64]:
    """Release pairs of counts, of which the second is `more` and the first 0: int64 (count, 2)."""
    counts = np.tile(np.array([0, more]), count)
    vocabulary = Vocabulary(list(islice(made_up_words(), 2)), tokenizer)
    return release_histogram(histogram, counts, vocabulary, ReleaseKey.fresh()).reshape(count, 2)


def share_of(tokens: int, most: int) -> str:
    """Say how many of the protected tokens an audit adds."""
    noun = "token" if most == 1 else "tokens"
    return f"{most} {noun}" if tokens == most else f"{tokens} of {most} {noun}"


def exact_law(
    name: str, epsilon: Fraction, precision: int, noise: DenseNoise | SparseNoise
) -> Exact:
    """Return the audit that compares the probabilities of the noise itself."""
    reach = min(precision + _BEYOND, _REACH)
    return Exact(
        name,
        round_up(epsilon),
        f"Probabilities were compared of outcomes from {-reach} to {reach}, as the sampler has "
        "them.",
        lambda: shift_loss(noise_masses(noise, reach), precision),
    )


def game(kind: HistogramKind, canaries: int, corpus: Corpus) -> Game:
    """Return documents of `precision` equal words, or none; raises InputError for too many."""
    step, precision = kind.vocabulary, kind.spec.precision
    words = words_for(step.public, step.tokenizer, corpus, canaries)
    enough(canaries, len(words), "the vocabulary's words")
    words = words[:canaries]
    expected = counts_of(words, step.tokenizer, corpus) + precision / 2

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        table = loaded.tables["vocabulary"]
        weights = dict(zip(table["term"].to_pylist(), table["weight"].to_pylist(), strict=True))
        return np.array(
            [
                weights[word] - middle if word in weights else 0.0
                for word, middle in zip(words, expected, strict=True)
            ]
        )

    cost = kind.cost
    return Game(
        [([Document(" ".join([word] * precision), {})], [Document("", {})]) for word in words],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a document that has a word {precision} times, or is empty. Its score is the "
        "word's noisy count, less that of the corpus.",
        shows=float(kind.spec.epsilon),
    )
