"""The words of private texts, found in a worker by the launcher's tokeniser."""

from __future__ import annotations

import pyarrow as pa

from quietcorpus.indexes.tokenizer import Tokens
from quietcorpus.indexes.tokenizers import Tokenizer, TokenizerError
from quietcorpus.transforms.errors import InputError


def tokens_of(texts: pa.Array, tokenizer: Tokenizer) -> Tokens:
    """Tokenise texts; raises InputError where this process lacks the software of the tokeniser."""
    try:
        return tokenizer.tokenize(texts)
    except TokenizerError as error:
        raise InputError(f"mechanism.tokenizer: {error}") from None
