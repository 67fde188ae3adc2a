"""The distinct tokens of a batch, and of each of its texts."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.tokens.vocabulary import distinct_tokens, document_frequencies

words = st.sampled_from(["a", "b", "ab", "word", "\u00e9t\u00e9", "\u4e2d"])
texts = st.lists(st.lists(words, max_size=8), max_size=8)


@settings(deadline=None)
@given(given_texts=texts)
def test_each_text_has_its_words_once(given_texts: list[list[str]]) -> None:
    # Kills: a text's words at another's place (a user's say in the vocabulary would be someone
    # else's), a word twice, texts without words that shift those after them.
    batch = pa.array([" ".join(text) for text in given_texts], pa.large_string())
    tokens = tokenize(batch)
    found, offsets, numbers = distinct_tokens(tokens)
    listed = found.to_pylist()
    assert sorted(listed) == sorted({word for text in given_texts for word in text})
    assert offsets[0] == 0
    assert len(offsets) == len(given_texts) + 1
    assert offsets[-1] == len(numbers)
    for text, (a, b) in zip(given_texts, itertools.pairwise(offsets.tolist()), strict=True):
        own = [listed[n] for n in numbers[a:b].tolist()]
        assert sorted(own) == sorted(set(text))
    frequencies = dict(
        zip(*(x.to_pylist() for x in map(pa.array, document_frequencies(tokens))), strict=True)
    )
    assert frequencies == {w: sum(w in text for text in given_texts) for w in listed}
