"""A paraphraser by rules, for `quietcorpus vary`: it needs nothing but Python.

    quietcorpus vary releases/reviews-texts --output releases/reviews-varied -- \\
      python examples/paraphrase.py --seed 1

It writes contractions out or contracts, replaces some words by others of their meaning, and moves a
clause in front of a comma behind its sentence. Which of these it does at a place is a function of
the seed, the text's number and the place alone, so it writes the same texts whenever it is run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable

GROUPS = [
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("did not", "didn't"),
    ("is not", "isn't"),
    ("was not", "wasn't"),
    ("it is", "it's"),
    ("I am", "I'm"),
    ("film", "movie"),
    ("begin", "start"),
    ("maybe", "perhaps"),
    ("nearly", "almost"),
    ("also", "too"),
    ("big", "large"),
    ("quick", "fast"),
    ("however", "but"),
    ("buy", "purchase"),
    ("help", "assist"),
]
OTHERS = {word.lower(): group for group in GROUPS for word in group}
PLACES = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, OTHERS), key=len, reverse=True)) + r")\b", re.I
)
CLAUSE = re.compile(r"\b((?:When|If|Although|Because|While) [^,.!?]{3,80}), ([^.!?]{3,200})([.!?])")

Choose = Callable[[str], int]


def choices(seed: int, number: int) -> Choose:
    """Return a function of a place in a text, to a number from 0 to 255."""

    def choose(place: str) -> int:
        told = f"{seed} {number} {place}".encode()
        return hashlib.sha256(told).digest()[0]

    return choose


def paraphrase(text: str, choose: Choose) -> str:
    """Write a text anew, as the choices say."""

    def word(found: re.Match[str]) -> str:
        group = OTHERS[found[0].lower()]
        other = group[choose(f"word {found.start()}") % len(group)]
        return other[0].upper() + other[1:] if found[0][0].isupper() else other

    def clause(found: re.Match[str]) -> str:
        if choose(f"clause {found.start()}") % 2:
            return found[0]
        first, rest, end = found.groups()
        return f"{rest[0].upper()}{rest[1:]} {first[0].lower()}{first[1:]}{end}"

    return CLAUSE.sub(clause, PLACES.sub(word, text))


def main() -> None:
    """Vary what is on standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    for line in sys.stdin:
        row = json.loads(line)
        text = paraphrase(row["text"], choices(seed, row["id"]))
        print(json.dumps({"id": row["id"], "text": text}))


if __name__ == "__main__":
    main()
