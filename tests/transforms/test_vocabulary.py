"""Selected terms that are clauses are refused, at the budget's cost: the refusal tells of them."""

from __future__ import annotations

import pytest

from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS
from quietcorpus.transforms.errors import NoisyOutcome
from quietcorpus.transforms.vocabulary import refuse_clauses


def test_clauses_that_were_selected_are_refused_at_a_cost() -> None:
    # Kills: a refusal that a ledger takes for one that costs nothing; a message that quotes.
    clause = "服务态度非常好"
    with pytest.raises(NoisyOutcome, match=r"^mechanism\.vocabulary\.private: too many ") as raised:
        refuse_clauses([clause], UNICODE_WORDS)
    assert not any(character in str(raised.value) for character in clause)


def test_words_are_not_refused() -> None:
    refuse_clauses(["服务", "quiet"], UNICODE_WORDS)
