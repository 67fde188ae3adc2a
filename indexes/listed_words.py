"""The language of a public list of words, as the manifest beside it tells it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from quietcorpus.indexes.languages import LANGUAGES

FORMAT = "quietcorpus-vocabulary"
_LEAST_OF_COVERAGE = 2 / 3


@dataclass(frozen=True)
class ListedWords:
    """The language of a list of words, and the share of a text that it holds.

    Attributes:
        language: the words' own, by its code.
        coverage: the share of a text's words that are in the list, in texts of this language.
    """

    language: str
    coverage: float

    @classmethod
    def of_manifest(cls, content: bytes, digest: str) -> ListedWords | None:
        """Read the manifest of a list by the SHA-256 of the list; None if it is not that list's."""
        try:
            manifest = json.loads(content)
            of_it = any(file["sha256"] == digest for file in manifest["files"])
            found = cls(manifest["language"], float(manifest["coverage"]))
            known = manifest["format"] == FORMAT and found.language in LANGUAGES
        except (ValueError, TypeError, KeyError):  # somebody else's manifest, or an earlier one
            return None
        return found if known and of_it else None

    def is_foreign(self, tokens: int, known: int) -> bool:
        """Return whether so few words of a corpus are in the list that its language is another.

        In corpora of ten languages, at least .68 of what the coverage promises were in lists of
        1,000 and of 20,000 words of their own, and at most .58 in lists of 1,000 of another. In
        lists of 20,000, English corpora can have more in six other languages, whose lists hold
        English words, and are then not noticed.
        """
        return known < _LEAST_OF_COVERAGE * self.coverage * tokens
