#!/bin/bash
# model2vec 0.10.0, tokenizers 0.23.3, Python 3.11: a limit of 512 tokens cuts a text by its letters, and long words sooner.
#
# Guess: `encode(texts, max_length=512)` looks at the first 512 tokens of a text, whatever they are.
# Seen: the text is cut first, after 512 times the median length of a token of the vocabulary (in letters). With a median of 4, a text of
#   words of 20 letters is read up to its 98th word, one of words of 4 letters (and spaces) up to the 409th. What follows changes nothing;
#   there is no warning.
# Met: embeddings of technical or compound-rich texts (German, chemistry, addresses): "the first 512 tokens" on a card is false for them,
#   and two vocabularies with the same tokeniser rules cut at different places. `max_length=None` cuts nothing.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q model2vec==0.10.0 tokenizers==0.23.3 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer, models, pre_tokenizers

LONG = "internationalisation"
words = ["[PAD]", "[UNK]", "tide", "boat", "quay", LONG]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
vectors = np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32)
model = StaticModel(vectors, tokenizer, normalize=False)


def last_word_counts(word: str, before: int, limit: int | None = 512) -> bool:
    """Whether a word after so many others changes the embedding."""
    text = " ".join([word] * before)
    with_it, without = (model.encode([each], max_length=limit)[0] for each in (f"{text} tide", text))
    return not np.array_equal(with_it, without)


def words_read(word: str) -> int:
    return next(number for number in range(600) if not last_word_counts(word, number))


short, long = words_read("boat"), words_read(LONG)
print(f"words of 4 letters: {short} are read; of {len(LONG)}: {long}")
assert long < 110
assert 400 < short <= 512
assert last_word_counts(LONG, 5000, None)
PROGRAM
