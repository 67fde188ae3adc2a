#!/bin/bash
# tokenizers 0.23.3, Python 3.11: BPE without an unknown token joins what stood on both sides of an unknown letter.
#
# Guess: a letter that the vocabulary lacks is an error, as WordPiece, WordLevel and Unigram raise it without an unknown token; or it is
#   left out, and the pieces beside it are tokens of their own.
# Seen: the letter vanishes before merges are sought: "azb" has the one token "ab", and a word of unknown letters has no token at all. Texts
#   with letters of another alphabet, or accents, get tokens that no part of them spells, and offsets that hide it.
# Met: BPE vocabularies trained on public texts of one alphabet, then used for private ones; counts rise for tokens that no text spells. An
#   `unk_token` at training keeps the gap.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tokenizers==0.23.3
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = ["abba harbour tide able about", "harbour tide above"] * 9


def trained(**unknown: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(**unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = list(unknown.values())
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


without, with_unknown = trained(), trained(unk_token="[UNK]")
for text in ("azb", "tiéde", "zzz", "harzzbour"):
    print(text, without.encode(text).tokens, with_unknown.encode(text).tokens)
assert without.encode("azb").tokens == ["ab"]
assert without.encode("tiéde").tokens == without.encode("tide").tokens == ["tide"]
assert without.encode("zzz").tokens == []
assert with_unknown.encode("azb").tokens == ["a", "[UNK]", "b"]
for model in (models.WordPiece({"a": 0}), models.WordLevel({"a": 0}), models.Unigram([("a", -1.0)])):
    try:
        Tokenizer(model).encode("z")
    except Exception as error:
        print(type(model).__name__, error)
    else:
        raise SystemExit(f"{type(model).__name__} takes an unknown letter")
PROGRAM
