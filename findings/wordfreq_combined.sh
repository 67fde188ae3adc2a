#!/bin/bash
# wordfreq 3.1.1, Python 3.11: words that are in no list have a frequency, so that "known words" include phone numbers.
#
# Guess: `zipf_frequency(word, "en") > 0` if and only if the word is in the list of that language; an unknown word, or an arbitrary number,
#   has 0.
# Seen: a string is split first, and its parts are combined: "harbour-master" and "555-123-4567" have frequencies above 0 and stand in no
#   list. Digits are counted by their number only, and years have a model: 3023 is as frequent as a word of one in 20 million.
# Met: public vocabularies, or tests whether a word is public, by `word_frequency(...) > 0` instead of the list (`top_n_list`,
#   `get_frequency_dict`): private numbers and compounds of private texts pass as public words.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q wordfreq==3.1.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
from wordfreq import get_frequency_dict, zipf_frequency

listed = get_frequency_dict("en", "large")
for string in ("harbour", "harbour-master", "555-123-4567", "3023", "10115", "lighthousekeeper"):
    print(f"{string}: {zipf_frequency(string, 'en'):.2f}, in the list: {string in listed}")
assert zipf_frequency("harbour", "en") > 0 and "harbour" in listed
assert zipf_frequency("lighthousekeeper", "en") == 0
for string in ("harbour-master", "555-123-4567", "3023", "10115"):
    assert string not in listed
    assert zipf_frequency(string, "en") > 0
PROGRAM
