#!/bin/bash
# snowballstemmer 2.2.0 and 3.1.1, PyStemmer 3.1.0, nltk 3.10.4: one name of a stemmer is two algorithms.
#
# Guess: the Snowball stemmers are published algorithms with names; "english" and "dutch" give the same stems in all libraries and versions,
#   but for mended mistakes in rare words.
# Seen: "dutch" is another algorithm (Kraaij and Pohlmann's) since version 3; the former is "dutch_porter". "english" no longer joins
#   "university" with "universe", "lateral" with "later", "international" with "intern". PyStemmer 3 agrees with version 3, and NLTK with
#   version 2.
# Met: vocabularies of stems, or bags of words, made by one library and read by another, or after an upgrade: a release's terms no longer
#   meet those of the public list.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q snowballstemmer==2.2.0 nltk==3.10.4
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import subprocess
import sys

import snowballstemmer
from nltk.stem.snowball import SnowballStemmer

WORDS = {
    "english": ["university", "universe", "lateral", "later", "international", "evening"],
    "dutch": ["bomen", "lopen", "huizen", "werkende"],
}
NEW = """
import Stemmer, snowballstemmer
for language, words in %r.items():
    stems = snowballstemmer.stemmer(language).stemWords(words)
    assert stems == Stemmer.Stemmer(language).stemWords(words)
    print(*stems)
assert "dutch_porter" in snowballstemmer.algorithms()
"""
old = [snowballstemmer.stemmer(language).stemWords(words) for language, words in WORDS.items()]
nltk = [[SnowballStemmer(language).stem(word) for word in words] for language, words in WORDS.items()]
installed = [sys.executable, "-m", "pip", "install", "-q", "--target", "new", "snowballstemmer==3.1.1", "PyStemmer==3.1.0"]
subprocess.run(installed, check=True)
told = subprocess.run([sys.executable, "-c", NEW % WORDS], cwd="new", check=True, capture_output=True, text=True).stdout
new = [line.split() for line in told.splitlines()]
print("2.2.0", old, "3.1.1", new, sep="\n")
assert nltk == old
assert old[0][0] == old[0][1] and new[0][0] != new[0][1]
assert all(one != other for one, other in zip(old[1], new[1]))
PROGRAM
