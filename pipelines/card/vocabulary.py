"""The vocabulary of a release on its card: the format of its file, and the check of its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.indexes.tokens.tokenizers import Tokenizer, TokenizerError
from quietcorpus.indexes.tokens.vocabulary import is_reachable
from quietcorpus.transforms.errors import InputError

from .mechanism import FileFormat
from .model import Stage
from .noise import within
from .parameters import exacts

VOCABULARY_FORMAT = FileFormat(
    "`term_id`, `term`, `weight`: the private histogram's noisy count of the term in the corpus; "
    "it may be negative, and is empty where no histogram is released",
    ("term_id", "term", "weight"),
    (pa.int32(), pa.string(), pa.int64()),
    nullable=frozenset({"weight"}),
)


def misfit_of(
    rows: pa.Table, vocabulary: Mapping[str, Any], tokenizer: str, rate: float | None
) -> str | None:
    """Return the fault of the rows of a vocabulary; None if there is none.

    Args:
        rows: all of them.
        vocabulary: the mechanism's block; a private one is in ascending order.
        tokenizer: the description on the card of the rule that finds terms.
        rate: of the noise in its counts; None if it has none.
    """
    if not np.array_equal(rows["term_id"].to_numpy(), np.arange(len(rows))):
        return "term_id is not the number of the row"
    terms = rows["term"].cast(pa.large_string()).combine_chunks()
    if pc.count_distinct(terms).as_py() != len(rows) or pc.any(pc.equal(terms, "")).as_py():
        return "a term is empty, or stands twice"
    if not are_tokens(terms, tokenizer):
        return "a term is not a word that the tokenizer finds"
    if "private" in vocabulary and pc.any(pc.less(terms[1:], terms[:-1])).as_py():
        return "its terms are not in ascending order"
    known = rows["weight"].drop_null()
    if len(known) != (0 if rate is None else len(rows)) or (
        rate is not None and pc.any(pc.less(known, -within(rate))).as_py()
    ):
        return "weight is not the count of a histogram, or one was not released"
    return None


def rule_of(tokenizer: str) -> Tokenizer | None:
    """Return the rule that a card describes; None if this process has it not, or another."""
    try:
        found = Tokenizer.of_description(tokenizer)
    except TokenizerError:
        return None
    return found if found.description == tokenizer else None


def are_tokens(words: pa.LargeStringArray, tokenizer: str) -> bool:
    """Return whether each word is a token of the rule that a card describes, if it is known here.

    Of a rule that is not, every word may be.
    """
    rule = rule_of(tokenizer)
    return rule is None or bool(is_reachable(words, rule.spelled(words), rule).all())


def check_vocabulary(uri: str, vocabulary: Mapping[str, Any], stages: Sequence[Stage]) -> None:
    """Check that the first stages agree with the mechanism's statement on the vocabulary.

    A public one costs nothing. Raises InputError.
    """
    private = vocabulary.get("private") or {}
    agree = [stage.stage for stage in stages] == (["vocabulary"] if private else [])
    for cost in (stage.parameters for stage in stages if agree):
        agree = not getattr(cost, "groups", None) and all(
            Fraction(getattr(cost, f"{name}_exact", 0)) in exacts(private[name])
            for name in ("epsilon", "delta")
        )
    if not agree:
        raise InputError(f"{uri}: budget: the vocabulary's cost is not the mechanism's")
