#!/bin/bash
# syntok 1.4.4, Python 3.11: words that a text does not have are among its tokens.
#
# Guess: tokens with the space before each, joined, give a sentence back, and a token is the text at its offset: that is what `spacing` and
#   `offset` are for.
# Seen: `segmenter.process` makes "n't" of "can't", "won't" and "isn't" the word "not", so that `value` is not what stands at `offset`.
#   Hyphens and underscores inside words are no tokens but spacing: "e-mail" is "e" and "mail".
# Met: bags of words: counts of "not" rise with the contractions, "ca" and "wo" become words, and a vocabulary of compounds never matches. A
#   Tokenizer with `replace_not_contraction=False, emit_hyphen_or_underscore_sep=True` keeps all.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q syntok==1.4.4
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
from syntok import segmenter
from syntok.tokenizer import Tokenizer

TEXT = "I can't and won't. The co-operative e-mail isn't here."
tokens = [token for paragraph in segmenter.process(TEXT) for sentence in paragraph for token in sentence]
words = [token.value for token in tokens]
print(words)
assert words.count("not") == 3 and "not" not in TEXT
assert "-" not in words
joined = "".join(token.spacing + token.value for token in tokens)
print(joined)
assert joined == TEXT.replace("n't", "not")
strange = [token for token in tokens if TEXT[token.offset :][: len(token.value)] != token.value]
assert [token.value for token in strange] == ["not", "not", "not"]
keeping = Tokenizer(replace_not_contraction=False, emit_hyphen_or_underscore_sep=True)
kept = list(keeping.tokenize(TEXT))
print([token.value for token in kept])
assert "".join(token.spacing + token.value for token in kept) == TEXT
assert "-" in [token.value for token in kept]
PROGRAM
