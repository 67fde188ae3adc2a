#!/bin/bash
# tokenizers 0.23.3, Python 3.11: a WordPiece vocabulary is another one each time that it is trained on the same texts.
#
# Guess: training has no random part: the same texts and settings give the same tokenizer.json, as they do by BpeTrainer.
# Seen: six trainings by WordPieceTrainer number the tokens in six ways, so that a text has six lists of ids, with one thread, too; now and
#   then some rare tokens differ as well.
# Met: vocabularies that are trained again from public texts instead of being stored: embeddings or models of the first training are read
#   with the ids of the second, and a release's digest of the file changes. `BpeTrainer`, or sorted tokens, do not.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tokenizers==0.23.3
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

random.seed(1)
words = ["".join(random.choices("abcdefghij", k=random.randint(2, 8))) for _ in range(400)]
texts = [" ".join(random.choices(words, k=12)) for _ in range(500)]


def trained(kind: str) -> Tokenizer:
    if kind == "BPE":
        model, trainer = models.BPE(), trainers.BpeTrainer(vocab_size=300, show_progress=False)
    else:
        model = models.WordPiece(unk_token="[UNK]")
        trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


for kind in ("BPE", "WordPiece"):
    made = [trained(kind) for _ in range(6)]
    sets = {frozenset(tokenizer.get_vocab()) for tokenizer in made}
    numberings = {frozenset(tokenizer.get_vocab().items()) for tokenizer in made}
    lists = {str([tokenizer.encode(text).ids for text in texts]) for tokenizer in made}
    print(f"{kind}: {len(sets)} sets of tokens, {len(numberings)} numberings, {len(lists)} lists of ids")
    assert len(sets) == 1 or kind == "WordPiece"
    assert (len(numberings) > 1) == (len(lists) > 1) == (kind == "WordPiece")
PROGRAM
