"""The words of private texts, found in a worker by the launcher's tokeniser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from quietcorpus.indexes.tokens.tokenizer import Tokens
from quietcorpus.indexes.tokens.tokenizers import Tokenizer, TokenizerError
from quietcorpus.indexes.tokens.vocabulary import Terms, Vocabulary

from .errors import InputError
from .reading.documents import Documents


def tokens_of(texts: pa.Array, tokenizer: Tokenizer) -> Tokens:
    """Tokenise texts; raises InputError where this process lacks the software of the tokeniser."""
    with _refused():
        return tokenizer.tokenize(texts)


def terms_of(documents: Documents, vocabulary: Vocabulary) -> Terms:
    """Find the terms of a batch's texts, unless they are kept; raises InputError as `tokens_of`."""
    if documents.terms is not None:
        return documents.terms
    with _refused():
        return vocabulary.find(documents.texts)


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except TokenizerError as error:
        raise InputError(f"mechanism.tokenizer: {error}") from None
