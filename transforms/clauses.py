"""A refusal of vocabularies that are none: clauses of text without spaces between its words."""

from __future__ import annotations

from collections.abc import Sequence

from quietcorpus.indexes.scripts import are_clauses
from quietcorpus.transforms.errors import InputError


def refuse_clauses(terms: Sequence[str]) -> None:
    """Raise InputError if terms that were selected privately are clauses and not words.

    What was selected is released whatever happens here, so that the refusal tells no more.
    """
    if are_clauses(terms):
        raise InputError(
            "mechanism.vocabulary.private: too many of the selected terms are clauses and not "
            "words: the text is in a script without spaces between words (Chinese, Japanese, "
            "Thai, ...); put spaces between its words first"
        )
