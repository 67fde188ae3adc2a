"""The words of private texts, found in a worker by the launcher's tokeniser."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quietcorpus.indexes.tokens.tokenizer import Tokens
from quietcorpus.indexes.tokens.tokenizers import Tokenizer, TokenizerError
from quietcorpus.indexes.tokens.vocabulary import Vocabulary

from .errors import InputError
from .reading.documents import Documents, Terms


def tokens_of(texts: pa.Array, tokenizer: Tokenizer) -> Tokens:
    """Tokenise texts; raises InputError where this process lacks the software of the tokeniser."""
    try:
        return tokenizer.tokenize(texts)
    except TokenizerError as error:
        raise InputError(f"mechanism.tokenizer: {error}") from None


def terms_of(documents: Documents, vocabulary: Vocabulary) -> Terms:
    """Find the terms of a batch's texts, unless they are kept; raises InputError as `tokens_of`."""
    if documents.terms is not None:
        return documents.terms
    tokens = tokens_of(documents.texts, vocabulary.tokenizer)
    return Terms(*vocabulary.look_up(tokens), np.diff(tokens.offsets))
