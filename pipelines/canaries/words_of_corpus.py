"""Words that canaries may consist of, and how often a corpus has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import batches
from quietcorpus.transforms.vocabulary import count_documents, load


def words_for(
    public: FileSource | None, tokenizer: Tokenizer, corpus: Corpus, most: int
) -> list[str]:
    """Return words that a release will know, in a random order.

    They are those of a public list, or else the `most` words that most documents of the corpus
    have: a private vocabulary has them if it has any.
    """
    if public is not None:
        words: list[str] = load(public, tokenizer).terms.to_pylist()
    else:
        frequencies: Counter[str] = Counter()
        for documents in batches(corpus):
            frequencies.update(count_documents(documents, tokenizer)[0])
        words = [word for word, _ in frequencies.most_common(most)]
    return [words[place] for place in np.random.default_rng().permutation(len(words))]


def counts_of(words: Sequence[str], tokenizer: Tokenizer, corpus: Corpus) -> npt.NDArray[np.int64]:
    """Count each word's occurrences in a corpus, int64 (n,)."""
    vocabulary = Vocabulary(words, tokenizer)
    found = np.zeros(len(words), np.int64)
    for documents in batches(corpus):
        _, terms = vocabulary.look_up(tokenizer.tokenize(documents.texts))
        found += np.bincount(terms, minlength=len(words))
    return found
