#!/bin/bash
# tokenizers 0.23.2, Python 3.11: a model's BPE dropout, which is meant for training, is live when a saved tokenizer encodes.
#
# Guess: dropout (Provilkov et al., ACL 2020) regularises training; a tokenizer that is loaded from tokenizer.json to encode texts leaves
#   it out, as a network in evaluation mode does. So a text has one list of tokens.
# Seen: `Tokenizer.from_file` keeps `"dropout": 0.5`, and `encode` draws anew each time: 50 calls give dozens of lists, and there is no seed.
#   Nothing in an encoder's evaluation mode turns it off; `tokenizer.model.dropout = None` does.
# Met: encoders of sentences whose folder was saved in training: an embedding is drawn anew in each batch, retry and worker, so that caches,
#   deduplication and everything that takes an embedding for a function of its text fail silently.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tokenizers==0.23.2
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXT = "the harbour master keeps the tide tables in the office by the lighthouse"
made = Tokenizer(models.BPE(dropout=0.5))
made.pre_tokenizer = pre_tokenizers.Whitespace()
made.train_from_iterator([TEXT] * 9, trainers.BpeTrainer(vocab_size=300, show_progress=False))
made.save("tokenizer.json")

loaded = Tokenizer.from_file("tokenizer.json")
drawn = {tuple(loaded.encode(TEXT).ids) for _ in range(50)}
print(f"dropout {loaded.model.dropout}: {len(drawn)} lists of tokens of one text in 50 calls")
assert len(drawn) > 20

loaded.model.dropout = None
fixed = {tuple(loaded.encode(TEXT).ids) for _ in range(50)}
print(f"without it: {len(fixed)}")
assert len(fixed) == 1
PROGRAM
