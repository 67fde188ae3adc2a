"""A check that refuses vocabularies of clauses, as text without spaces between words yields."""

from __future__ import annotations

from collections.abc import Sequence

from quietcorpus.indexes.tokens.scripts import are_clauses
from quietcorpus.indexes.tokens.tokenizers import ICU_WORDS_NAME, Tokenizer

from .errors import NoisyOutcome


def refuse_clauses(terms: Sequence[str], tokenizer: Tokenizer) -> None:
    """Raise NoisyOutcome if terms that were selected privately are clauses and not words.

    The selected terms count as released whatever happens here, so the refusal reveals no more.
    """
    if are_clauses(terms):
        remedy = f"give `tokenizer: {{name: {ICU_WORDS_NAME}, language: ...}}`"
        if tokenizer.takes_language:
            remedy = (
                f"{ICU_WORDS_NAME} has no dictionary for it; put spaces between its words first"
            )
        raise NoisyOutcome(
            "mechanism.vocabulary.private: too many of the selected terms are clauses and not "
            "words: the text is in a script without spaces between words (Chinese, Japanese, "
            f"Thai, ...); {remedy}"
        )
