"""Audits and canaries of `kind: overview`."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.evaluation.audits.findings import Exact, Sampled
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import batches
from quietcorpus.transforms.users.overview import Grouping
from quietcorpus.transforms.users.users import gathered
from quietcorpus.transforms.vocabulary import load

from ...canaries.game import (
    Coins,
    Document,
    Game,
    Scores,
    apart_of,
    by_turns,
    enough,
    of_user,
    weaker,
    words_for,
)
from ...card.loading import LoadedRelease
from ..user_histogram.checks import of_clipped_sums
from .counts import OverviewKind
from .user_changes import of_overview

_NUMBERS = 128  # of what a user adds, most of which is alike
_CARRIERS, _MOST_CARRIED = 100, 100  # public texts that are looked at, and words of each


def audits(kind: OverviewKind) -> list[Exact | Sampled]:
    """Return the audits of all stages."""
    return [*of_clipped_sums(kind, of_overview(kind), _NUMBERS), of_groups(kind.grouping)]


def of_groups(grouping: Grouping) -> Exact:
    """Return the audit of the groups of texts, each of which must depend on that text alone."""

    def changed() -> float:
        texts = grouping.pool.open().texts[:_CARRIERS]
        together = grouping.numbers(texts)
        turned = grouping.numbers(texts.take(pa.array(np.arange(len(texts))[::-1])))[::-1]
        alone = np.concatenate([grouping.numbers(texts[n : n + 1]) for n in range(len(texts))])
        return float(((together != turned) | (together != alone)).sum())

    return Exact(
        "groups of documents beside others",
        0.0,
        "The figure is how many public texts of the pool have another group alone, or in another "
        "order, than together.",
        changed,
    )


def game(kind: OverviewKind, canaries: int, corpus: Corpus) -> Game:
    """Return users who write words of their own, as many as count in full, in one group each."""
    own, each = kind.corpus, kind.bound.items
    words = words_for(own.public, own.tokenizer, corpus, canaries * each)
    each = min(each, len(words) // canaries, kind.spec.tokens // 2)
    enough(canaries, len(words), "the vocabulary's words")
    carrier = _carrier(kind)
    texts = [
        f"{carrier} {' '.join(words[number * each : (number + 1) * each])}"
        for number in range(canaries)
    ]
    of_each = kind.grouping.numbers(pa.array(texts, pa.large_string())).tolist()
    listed = load(own.public, own.tokenizer).terms.to_pylist() if own.public else sorted(words)
    expected = _counts_in(corpus, kind, listed)
    place = {word: number for number, word in enumerate(listed)}
    groups = [group for group, most in enumerate(kind.norms.most.values()) if most]

    def score(loaded: LoadedRelease, _: Coins) -> Scores:
        terms = loaded.tables["vocabulary"]["term"].to_pylist()
        noisy = loaded.tables["counts"]["count"].to_numpy().reshape(-1, len(terms))
        known = {word: number for number, word in enumerate(terms)}
        sums = [
            sum(
                noisy[group, known[word]] - expected[group, place[word]]
                for word in words[number * each : (number + 1) * each]
                if word in known
            )
            for number, group in enumerate(of_each)
        ]
        return np.array(sums, float)

    def user(number: int) -> list[Document]:
        group = by_turns(number, groups)
        columns = of_user(own.named_users, f"canary {secrets.token_hex(8)} {number}", group)
        months = kind.spec.months
        dates = {months.column: months.first} if months else {}
        return [Document(texts[number], {**columns, **dates})]

    cost = kind.cost
    return Game(
        [(user(number), []) for number in range(canaries)],
        score,
        float(cost.epsilon),
        float(cost.delta),
        f"A canary is a user of {each} words that no other canary has, after words of a public "
        f"text that has a group{', with budgets by turns' if len(groups) > 1 else ''}. Its score "
        "is the sum of these words' noisy counts in the group of its text, less the corpus's.",
        apart_of(cost) if own.public is not None else None,
        twice=own.spec.model_copy(update={"epsilon": 2 * cost.epsilon, "budgets": None}),
        weaker=weaker(canaries, groups),
    )


def _carrier(kind: OverviewKind) -> str:
    """Return the fewest first words of public texts that put a document into a group.

    They take a part of the bound, and tell nothing of a canary.
    """
    texts = kind.grouping.pool.open().texts[:_CARRIERS].to_pylist()
    for count in range(_MOST_CARRIED):
        parts = pa.array([" ".join(text.split()[:count]) for text in texts], pa.large_string())
        usable = kind.grouping.numbers(parts) >= 0
        if usable.any():
            found: str = parts[int(np.flatnonzero(usable)[0])].as_py()
            return found
    raise InputError("mechanism.pool: its first texts have no words that its encoder knows")


def _counts_in(corpus: Corpus, kind: OverviewKind, words: list[str]) -> npt.NDArray[np.int64]:
    """Return the counts of words by group over a corpus, before noise, int64 (G, V)."""
    vocabulary, key = Vocabulary(words, kind.corpus.tokenizer), ReleaseKey.fresh()
    users = gathered(batches(corpus), kind.corpus.users, vocabulary, key, kind.grouping)
    cells, found = kind.counting.summed(users.items(), len(words), key)
    sums = np.zeros(kind.bound.cells_of(len(words)), np.int64)
    sums[cells] = found
    return kind.bound.counts(sums)[kind.bound.sizes :].reshape(-1, len(words))
