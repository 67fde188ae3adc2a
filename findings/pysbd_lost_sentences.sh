#!/bin/bash
# pysbd 0.3.4, Python 3.11: a sentence with one of some rare signs is missing from the segments.
#
# Guess: with `clean=False`, "non-destructive", the segments joined are the text; a strange sign at worst moves a boundary, or is replaced.
# Seen: the sentence, or its part up to the sign, is left out, without an error: of "A song: ♬ la la. Next." only "Next." comes back. Rules
#   mark places with signs such as ♬, ∯, ☉, ☝ or ȸ and turn all of them into punctuation afterwards; a sentence that then is not found in
#   the text is dropped. Other text is kept.
# Met: splitting documents before a mechanism that counts or averages sentences: lyrics, mathematics and old phonetics lose sentences, and
#   the number of units of a document is too small. Compare the joined segments with the text.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pysbd==0.3.4
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import pysbd

splitter = pysbd.Segmenter(language="en", clean=False)
plain = "The tide, e.g. at No. 7, rose by 3.5 m.  Dr. Quay left...\n\nWhat?! Yes."
assert "".join(splitter.segment(plain)) == plain
for text in ("A song: ♬ la la. Next.", "The law ∯ holds. Next.", "The ☉ rose. Next.", "A ☝ here. Next."):
    found = splitter.segment(text)
    print(repr(text), found)
    assert found[-1] == "Next."
    assert len("".join(found)) < len(text) - 4
assert "".join(splitter.segment("A song: ♪ la la. Next.")) == "A song: ♪ la la. Next."
PROGRAM
