#!/bin/bash
# kiwipiepy 0.24.1, Python 3.11: the morphemes of a Korean sentence, joined again, are another sentence.
#
# Guess: `join(tokenize(text))` restores a plain, well-spelt sentence; what is lost is at most the number of spaces.
# Seen: endings are contracted where both forms are right ("보았다" becomes "봤다"), and particles after Latin letters are chosen anew ("e-mail을"
#   becomes "e-mail를"). A sentence without such places comes back as it was. With `lm_search=False` or without it, the same.
# Met: replacing words of Korean texts by morphemes and joining the rest: words that no mechanism drew change, so that "unchanged words"
#   measured on texts and on tokens differ.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q kiwipiepy==0.24.1 kiwipiepy-model==0.24.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
from kiwipiepy import Kiwi

kiwi = Kiwi(num_workers=1)
joined = {}
for text in ("그는 배를 보았다.", "그는 e-mail을 보냈다.", "항구 관리자가 아침에 도착했다."):
    tokens = kiwi.tokenize(text)
    joined[text] = [kiwi.join(tokens), kiwi.join(tokens, lm_search=False)]
    print(text, [token.form for token in tokens], *joined[text])
assert joined["그는 배를 보았다."] == ["그는 배를 봤다."] * 2
assert joined["그는 e-mail을 보냈다."] == ["그는 e-mail를 보냈다."] * 2
assert joined["항구 관리자가 아침에 도착했다."] == ["항구 관리자가 아침에 도착했다."] * 2
PROGRAM
