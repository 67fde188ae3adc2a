"""The language of a public list of words, as the manifest beside it states it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .frequent_words import FREQUENT_WORDS, FrequentWords
from .languages import LANGUAGES
from .tokenizers import Tokenizer

FORMAT = "quietcorpus-vocabulary"


@dataclass(frozen=True)
class ListedWords:
    """The language of a list of words, and the use that its texts make of the first ones.

    Attributes:
        language: the words' own, by its code.
        frequent: the first words of the list, which are the language's most frequent.
        tokenizer: the title of the rule that the words are of.
    """

    language: str
    frequent: FrequentWords
    tokenizer: str

    @classmethod
    def of_manifest(cls, content: bytes, digest: str) -> ListedWords | None:
        """Read the manifest of a list by the SHA-256 of the list; None if it is not that list's."""
        try:
            manifest = json.loads(content)
            of_it = any(file["sha256"] == digest for file in manifest["files"])
            language, frequent = (
                manifest["language"],
                FrequentWords.of_record(manifest[FREQUENT_WORDS]),
            )
            known = manifest["format"] == FORMAT and language in LANGUAGES
            tokenizer = Tokenizer.of_record(manifest["tokenizer"]).title
        except (ValueError, TypeError, KeyError):  # somebody else's manifest, or an earlier one
            return None
        return cls(language, frequent, tokenizer) if known and of_it and frequent else None
