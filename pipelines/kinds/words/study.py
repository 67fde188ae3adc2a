"""The study of text released word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from quietcorpus.evaluation.attacks.authorship import weighted
from quietcorpus.evaluation.attacks.best_guess import by_frequency
from quietcorpus.evaluation.attacks.facts import rare_terms
from quietcorpus.evaluation.attacks.linkage import Score, agreeing, bag_cosines, cosines
from quietcorpus.evaluation.attacks.word_linkage import Originals
from quietcorpus.evaluation.classification import counted, split, transferred
from quietcorpus.evaluation.results import Observation, classified, share_found
from quietcorpus.evaluation.verdict import WHOLE
from quietcorpus.evaluation.word_changes import semantic_similarity, unchanged_share, word_changes
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.words import WordPrivatizer, WordsParameters

from ...evaluate.corpus import Draw, drawn, texts_of
from ...evaluate.definition import EXACT, NOTE, observed
from ...evaluate.study import (
    FACTS,
    MOST_TOGETHER,
    OF_EVERY,
    REDRAWS,
    Studied,
    Study,
    Views,
    attacks,
    attacks_beside_noise,
    by_words,
    facts_by_words,
    judged_by_words,
    known_sentences,
    labelled,
    most_linked,
    refuse_unknown,
    remembered,
    sentences_of,
    way_of,
)
from ...jobs.kind import prepare
from ...schema.spec import Spec
from .guesses import (
    BEYOND,
    DEFINED,
    SECRETS,
    Adapted,
    Attack,
    TextAttacker,
    WordAttacker,
    by_places,
    by_text,
)
from .job import WordsKind

_LEAST_OCCURRENCES, _ETA = 20, Fraction(1, 20)
_TOGETHER = 1_024  # words that are guessed from the words around them
_RELEASES, _MOST_RELEASED = 2, 1 << 17  # of the sample, by an attacker on models; words of it

Words = npt.NDArray[np.int32]


class WordsStudy(Study):
    """The study of documents as words that the index knows, before and after the release."""

    swept = frozenset({"epsilon", "document_epsilon", "mechanism"})
    of_words = True
    defined = DEFINED
    beyond = BEYOND

    def __init__(self, studied: Studied) -> None:
        self._sample = studied.sample
        kind = prepare(studied.described)
        assert isinstance(kind, WordsKind)
        self._parameters = kind.parameters
        self._index = kind.parameters.index.open()  # vectors too, whatever the mechanism reads
        unknown = kind.parameters.out_of_vocabulary == "draw"
        texts = self._sample.documents.texts
        self._offsets, self._before = self._looked_up(texts, unknown=unknown)
        self._originals = self._counted(self._before)
        refuse_unknown(self._originals)
        self._known = {
            way: self._counted_texts(texts) for way, texts in known_sentences(self._sample).items()
        }
        self._facts = self._sentences(unknown=unknown)
        originals, labels = self._originals, studied.sample.labels
        self._transferred = cache(lambda number: self._learnt(originals, number))
        self._by_words = remembered(labels, lambda ls, n: by_words(ls, originals, originals, n))
        self._attacker = self._informed(studied)
        self._holder = TextAttacker(self._index, Originals(self._offsets, self._before))
        self._reference = self._left_by_another_tool(studied)
        self._released_anew = lru_cache(maxsize=1)(self._release_anew)
        self.notes = [
            "Words are those that the index knows.",
            _known_of(studied.public_text, len(self._index.vocabulary)),
            "The classifier learns from the released texts of two thirds of the documents, and is "
            "tested on the others as they are; the one by words, by five folds, on all of them.",
            "The two inputs of the definition are a document, and the same with one word replaced "
            "by another of the index, at random; or, at worst, the two words that are farthest "
            "apart. Of a whole document: two documents as long as the median one that differ in "
            f"all words. Where words are found for noise, the attacker sees the noise. {NOTE}",
            "Linkage by likelihood is by the law of the mechanism, computed where words are drawn "
            "by their distances and estimated from points where they are found for noise. There, "
            "what the guarantee allows is the success of an attacker who sees the noise itself.",
        ]
        if self._reference is not None:
            self.notes.append(
                "Text of another tool is measured as the release is, by words alone: its lengths "
                "and places may be others. Its words are unchanged if they are left, wherever. It "
                "has no guarantee, and noise alone is that of the release."
            )
        if not self._has_vectors:
            self.notes.append(
                "The index has codes alone. So similarity, and linkage by mean vectors, are not "
                "measured; an attacker may have the vectors."
            )

    def redraw(self, spec: Spec) -> Draw:
        """Draw fresh noise for every word."""
        kind = prepare(spec)
        assert isinstance(kind, WordsKind)
        draw = drawn(WordPrivatizer(kind.parameters, self._index, ReleaseKey.fresh()), self._sample)
        return replace(draw, law=kind.parameters)

    def references(self, number: int) -> Iterator[Observation]:
        """Yield the measures of the original text as it is, and as another tool left it."""
        generator = np.random.default_rng([number, 1])
        originals = self._originals
        yield from self._classified(originals, "original", number)
        yield from attacks(self._sample, self._views(self._before), "original", generator)
        if self._reference is not None:
            yield from self._of_another_tool(self._reference, number)

    def observe(self, draw: Draw, number: int) -> Iterator[Observation]:
        """Yield the measures of a draw."""
        if not draw.placed:
            return
        generator = np.random.default_rng([number, 2])
        after = self._after(draw)
        known = np.minimum(self._before, after) >= 0  # with `draw`, unknown ones are kept as -1
        before, own = self._before[known], after[known]
        documents = np.repeat(np.arange(len(self._sample)), np.diff(self._offsets))
        yield Observation("unchanged", "release", unchanged_share(before, own))
        changes = word_changes(before, own, _LEAST_OCCURRENCES, _ETA)
        if len(changes.words):
            yield Observation("n-w", "release", float(changes.unchanged_share.mean()))
            yield Observation("s-w", "release", float(changes.set_size.mean()))
        dealt = generator.permutation(after)  # words of all documents, shuffled
        if self._has_vectors:
            yield Observation("similarity", "release", self._similarity(after))
            yield Observation("similarity", "noise", self._similarity(dealt))
        counts = self._counted(after)
        yield from self._classified(counts, "release", number)
        law = draw.law or self._parameters
        attack = self._attack(law)
        yield from _expected(attack, self._attacker.floor)
        floor = before == self._attacker.likeliest
        yield share_found("inversion-bayes", "floor", floor, "", documents[known])
        order = generator.permutation(len(self._sample))
        adapted = self._attacker.adapted(law, self._offsets, after.astype(np.int64))
        for subject, words in (("release", after), ("noise", dealt)):
            guesses = adapted.guesses(self._offsets, words.astype(np.int64))[known]
            yield from self._inverted(before, words[known], documents[known], guesses, subject)
            yield from self._together(adapted, words, order, subject)
        # Shuffled words keep each document's length, which an attacker can use; here, whole
        # documents are shuffled instead.
        yield from attacks_beside_noise(self._sample, self._views(after, law), generator)
        yield from observed("release", self._holder.told_apart(law))
        yield from observed("guarantee", self._holder.worst(law))
        whole = f"{EXACT}, {WHOLE}"
        yield from observed("release", self._holder.told_apart_whole(law), whole)
        yield from observed("guarantee", self._holder.worst_whole(law), whole)
        seen = self._holder.seeing_noise(law)
        if seen is not None:
            if (kept := self._sample.kept) is not None:
                seen = agreeing(seen, kept[:, 0], kept[:, 0])
            found = most_linked(seen, len(self._sample))
            yield share_found("linkage", "guarantee", found, "by the noise itself")

    @property
    def _has_vectors(self) -> bool:
        return "vectors" in self._index.manifest.parts

    def _looked_up(self, texts: pa.Array, *, unknown: bool) -> tuple[npt.NDArray[np.int64], Words]:
        tokens = self._parameters.tokenizer.tokenize(texts)
        offsets, words = self._index.vocabulary.look_up(tokens, unknown=unknown)
        longest = self._parameters.longest
        return (offsets, words) if longest is None else longest.shortened(offsets, words)

    def _left_by_another_tool(self, studied: Studied) -> sp.csr_array | None:
        """Count the words of the documents as another tool left them, if they are given."""
        if studied.reference_text is None:
            return None
        assert self._sample.ids is not None
        texts = texts_of(studied.reference_text, studied.columns, self._sample.ids)
        offsets, words = self._looked_up(pa.array(texts, pa.large_string()), unknown=False)
        return counted(offsets, words, len(self._index.vocabulary))

    def _of_another_tool(self, counts: sp.csr_array, number: int) -> Iterator[Observation]:
        """Yield the measures of the documents as another tool left them."""
        kept = counts.minimum(self._originals).sum() / self._originals.sum()
        yield Observation("unchanged", "reference", float(kept))
        yield from self._classified(counts, "reference", number)
        generator = np.random.default_rng([number, 1])  # the halves and folds of the original
        yield from attacks(self._sample, self._views_of(counts), "reference", generator)

    def _after(self, draw: Draw) -> Words:
        """Return the released words, aligned with the original ones."""
        # Released words are not divided again: they have spaces between them in every script.
        tokens = self._parameters.tokenizer.spelled(draw.rows["text"].combine_chunks())
        offsets, words = self._index.vocabulary.look_up(tokens)
        if not np.array_equal(offsets, self._offsets):
            raise InputError(
                "against: the release's texts are not as long as the corpus's; give the corpus "
                "that the release was made of, and check `text`"
            )
        return words

    def _counted(self, words: Words) -> sp.csr_array:
        """Count each document's words; a word that the index lacks counts for nothing."""
        known = words >= 0
        offsets = np.concatenate([[0], np.cumsum(known)])[self._offsets]
        return counted(offsets, words[known], len(self._index.vocabulary))

    def _counted_texts(self, texts: Sequence[str]) -> sp.csr_array:
        """Count the known words of texts."""
        tokens = self._parameters.tokenizer.tokenize(pa.array(texts, pa.large_string()))
        offsets, words = self._index.vocabulary.look_up(tokens)
        return counted(offsets, words, len(self._index.vocabulary))

    def _sentences(self, *, unknown: bool) -> list[list[Words]]:
        """Return the words of the sentences of each document that an attacker may know."""
        sentences = sentences_of(self._sample)
        texts = pa.array([one for own in sentences for one in own], pa.large_string())
        tokens = self._parameters.tokenizer.tokenize(texts)
        offsets, words = self._index.vocabulary.look_up(tokens, unknown=unknown)
        found = iter(np.split(words, offsets[1:-1]))
        return [[next(found) for _ in own] for own in sentences]

    def _means(self, counts: sp.csr_array) -> npt.NDArray[np.float64]:
        lengths = np.maximum(np.asarray(counts.sum(axis=1)), 1)
        return np.asarray((counts @ self._index.vectors) / lengths[:, None], dtype=np.float64)

    def _similarity(self, after: Words) -> float:
        known = np.minimum(self._before, after) >= 0
        offsets = np.concatenate([[0], np.cumsum(known)])[self._offsets]
        vectors = self._index.vectors
        found = semantic_similarity(self._before[known], after[known], offsets, vectors)
        return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")

    def _classified(self, counts: sp.csr_array, subject: str, number: int) -> Iterator[Observation]:
        """Yield scores of classifiers learnt from `counts`, and tested on original documents."""
        labels = self._sample.labels
        if labels is None:
            return
        _, classes = labelled(labels)
        _, test = split(classes, number)
        own = subject == "original"
        clean, clean_by_words = self._transferred(number), self._by_words(number)
        predicted = clean if own else self._learnt(counts, number)
        yield from classified(subject, classes[test], predicted, None if own else clean)
        predicted = clean_by_words if own else by_words(labels, counts, self._originals, number)
        yield from judged_by_words(labels, predicted, subject, None if own else clean_by_words)

    def _learnt(self, counts: sp.csr_array, number: int) -> npt.NDArray[np.int64]:
        """Predict the classes of a third of the labelled documents, learnt from the others."""
        assert self._sample.labels is not None
        rows, classes = labelled(self._sample.labels)
        known, test = split(classes, number)
        return transferred(counts[rows[known]], classes[known], self._originals[rows[test]])

    def _informed(self, studied: Studied) -> WordAttacker:
        """Return the attacker with the prior that it has."""
        place, column = studied.public_text, studied.columns.text
        if place is None:
            return WordAttacker(self._index, by_places(len(self._index.vocabulary)))
        return WordAttacker(self._index, by_text(place, column, self._parameters, self._index))

    def _attack(self, law: WordsParameters) -> Attack:
        """Return the attack on a law."""
        # Where a document's words share epsilon, the attacker takes its typical length.
        length = np.median(np.diff(self._offsets)) if law.per == "document" else 1
        return self._attacker.against(law, float(law.epsilon) / max(1, length))

    def _together(
        self, adapted: Adapted, words: Words, order: npt.NDArray[np.int64], subject: str
    ) -> Iterator[Observation]:
        """Yield the success on words that are guessed together, of some documents in an order."""
        if not self._attacker.knows_pairs:
            return
        lengths = np.diff(self._offsets)[order]
        some = order[: int(np.searchsorted(np.cumsum(lengths), _TOGETHER)) + 1]
        right, blocks = [], []
        for document in some:
            own = slice(self._offsets[document], self._offsets[document + 1])
            guessed = adapted.together(document, words[own].astype(np.int64))
            known = self._before[own] >= 0
            right.append((guessed == self._before[own])[known])
            blocks.append(np.full(known.sum(), document))
        found = np.concatenate(right)
        if len(found):
            group = "by the words around"
            yield share_found("inversion-bayes", subject, found, group, np.concatenate(blocks))

    def _inverted(
        self,
        before: Words,
        after: Words,
        documents: npt.NDArray[np.int64],
        guesses: npt.NDArray[np.int64],
        subject: str,
    ) -> Iterator[Observation]:
        for name, guessed in (("inversion-bayes", guesses), ("inversion-nearest", after)):
            right = guessed == before
            yield share_found(name, subject, right, "", documents)
            for label, band in by_frequency(before.astype(np.int64) + 1).items():
                yield share_found(name, subject, right[band], f"words {label}", documents[band])

    def _views(self, words: Words, law: WordsParameters | None = None) -> Views:
        """Return documents of the original lengths; as released by a law, or by none."""
        views = self._views_of(self._counted(words))
        if law is None:
            return views
        logs = self._holder.likelihoods(law, words.astype(np.int64))
        counts = views.released

        def redrawn(numbers: npt.NDArray[np.int64]) -> list[sp.csr_array]:
            draws = (self._redrawn(law, numbers) for _ in range(REDRAWS))
            return [weighted(draw, counts) for draw in draws]

        scores = {"by likelihood": logs, **views.scores}
        styles = weighted(counts, counts)
        views = replace(views, scores=scores, logs=logs, styles=styles, redrawn=redrawn)
        if len(self._before) <= _MOST_RELEASED:
            views = replace(
                views,
                learnable=lambda numbers: [draw[numbers] for draw in self._released_anew(law)],
            )
        few = len(self._sample) <= MOST_TOGETHER
        found = self._holder.found(law, words.astype(np.int64), self._facts, FACTS) if few else None
        if found is None:
            return views
        facts: dict[str, Score] = {}
        for most in FACTS:
            fit, rare = found.sentences[most], rare_terms(self._originals, most)
            facts[way_of(most, "sentence")] = fit.astype(np.float64).__getitem__
            facts[way_of(most, "rare word")] = found.of_terms(rare, self._holder.secrets)
        together = {f"{way} {OF_EVERY}": score for way, score in facts.items()}
        return replace(views, facts=facts, known=together)

    def _release_anew(self, law: WordsParameters) -> list[sp.csr_array]:
        """Count the words of all documents in fresh releases."""
        every = np.arange(len(self._sample))
        return [self._redrawn(law, every) for _ in range(_RELEASES)]

    def _redrawn(self, law: WordsParameters, numbers: npt.NDArray[np.int64]) -> sp.csr_array:
        """Count the words of some documents in a fresh release."""
        privatizer = WordPrivatizer(law, self._index, ReleaseKey.fresh())
        texts = drawn(privatizer, self._sample, numbers).rows["text"].combine_chunks()
        offsets, words = self._index.vocabulary.look_up(self._parameters.tokenizer.spelled(texts))
        return counted(offsets, words, len(self._index.vocabulary))

    def _views_of(self, counts: sp.csr_array) -> Views:
        """Return documents as they are, and as their words were counted, whatever the length."""
        scores: dict[str, Score] = {"by words": bag_cosines(counts, self._originals)}
        if self._has_vectors:
            means = self._means(counts), self._means(self._originals)
            scores["by mean vectors"] = cosines(*means)
        facts = facts_by_words(self._known, self._originals, counts)
        return Views(self._originals, counts, scores, facts)


def _known_of(public_text: str | None, words: int) -> str:
    """Say what the best attacker knows."""
    source = (
        "by their places in the index (files of vectors commonly begin with the most frequent ones)"
        if public_text is None
        else f"and which follow which from the public texts {public_text}"
    )
    few = f", and considers the {SECRETS:,} most frequent of {words:,}" if words > SECRETS else ""
    return (
        "The best attacker on words is the best one with its prior: it knows the mechanism, the "
        f"index and how frequent words are {source}{few}. With another prior, or other knowledge, "
        "more may be found."
    )


def _expected(attack: Attack, floor: float) -> Iterator[Observation]:
    """Yield the best attacker's success over prior and law, its bound, and that of one guess."""
    name, best = "inversion-expected", attack.best
    yield Observation(name, "release", best.success, "", best.low, best.high)
    yield Observation(name, "guarantee", attack.bound)
    yield Observation(name, "floor", floor)
