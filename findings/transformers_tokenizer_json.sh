#!/bin/bash
# transformers 5.23.0 (tokenizers 0.23.3), Python 3.11: AutoTokenizer passes over what a tokenizer.json says of texts.
#
# Guess: tokenizer.json is the whole tokeniser (its vocabulary, and how a text is normalised and split), and AutoTokenizer loads it as
#   it is; transformers 4.57.6 does.
# Seen: with `tokenizer_class: BertTokenizerFast`, as most BERT models have in tokenizer_config.json, only the vocabulary (and the way of
#   cutting) is taken from tokenizer.json. A normaliser that keeps accents and a splitter that keeps "don't" whole are replaced by BERT's,
#   without a warning: other tokens, and so other embeddings, than the same folder has by the library `tokenizers` or by transformers 4.
# Met: models whose authors changed the tokeniser's file alone (accents of French or Vietnamese, words with apostrophes); any program that
#   reads the same folder by `tokenizers` (ONNX Runtime, Rust and JavaScript servers).
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q transformers==5.23.0 tokenizers==0.23.3
"$work/venv/bin/python" - "$work" <<'PROGRAM'
import json
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer

folder = sys.argv[1]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "café", "don't", "don", "'", "t"]
tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer.save(f"{folder}/tokenizer.json")
json.dump({"model_type": "bert"}, open(f"{folder}/config.json", "w"))
json.dump({"tokenizer_class": "BertTokenizerFast"}, open(f"{folder}/tokenizer_config.json", "w"))

saved = tokenizer.encode("Café don't").tokens
loaded = AutoTokenizer.from_pretrained(folder)("Café don't").tokens()
print("tokenizers  ", saved)
print("transformers", loaded)
assert saved == ["[CLS]", "café", "don't", "[SEP]"]
assert loaded == ["[CLS]", "cafe", "don", "'", "t", "[SEP]"]
PROGRAM
