"""Selections: of whole buckets alone; terms that are clauses are refused, at the budget's cost."""

from __future__ import annotations

from typing import Any

import pytest

from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.errors import NoisyOutcome, StageError
from quietcorpus.transforms.sums import BUCKETS, AddNoiseByKey, OfParts
from quietcorpus.transforms.vocabulary import _Number, refuse_clauses


def test_clauses_that_were_selected_are_refused_at_a_cost() -> None:
    # Kills: a refusal that a ledger takes for one that costs nothing; a message that quotes.
    clause = "服务态度非常好"
    with pytest.raises(NoisyOutcome, match=r"^mechanism\.vocabulary\.private: too many ") as raised:
        refuse_clauses([clause], UNICODE_WORDS)
    assert not any(character in str(raised.value) for character in clause)


def test_words_are_not_refused() -> None:
    refuse_clauses(["服务", "quiet"], UNICODE_WORDS)


@pytest.mark.parametrize("bucket", [0, 1, BUCKETS - 1])
@pytest.mark.parametrize("held", [(0,), (0, 1, 1), (0, 1, 2), ()])
def test_every_bucket_holds_each_part_once_before_its_noise(
    bucket: int, held: tuple[int, ...]
) -> None:
    # Kills: parts that are compared in one bucket, and doubled in another.
    key = ReleaseKey(bytes(32))
    select = AddNoiseByKey(OfParts(2), lambda: key, lambda number, sums, _: (number, sums))
    select.start_bundle()
    whole = list(select.process((bucket, ({"quiet": 5}, (1, 0)))))
    assert whole == [(bucket, (bucket, {"quiet": 5}))]
    with pytest.raises(StageError, match=r"the engine (doubled|lost) a part"):
        list(select.process((bucket, ({"quiet": 5}, held))))


@pytest.mark.parametrize("change", [lambda own: own[1:], lambda own: [*own, own[0]]])
def test_a_vocabulary_has_the_terms_of_all_buckets(change: Any) -> None:
    # Kills: a bucket that the engine loses, with the terms whose release was paid for.
    number = _Number(2, "named", OfParts(1), UNICODE_WORDS)
    buckets = [(n, ["quiet"] if n == 7 else []) for n in range(BUCKETS)]
    (found,) = number.process(buckets)
    assert found.terms.to_pylist() == ["quiet"]
    with pytest.raises(StageError, match=r"the engine (doubled|lost) a part"):
        list(number.process(change(buckets)))
