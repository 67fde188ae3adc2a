"""Public vocabularies to begin with: the frequent words of a language, from a package.

wordfreq (Speer: rspeer/wordfreq, version 3, 2022) has lists of the words of forty languages by
their frequency in Wikipedia, subtitles, news, books, the web and social media. Its data may be
passed on under CC BY-SA 4.0.

The lists are case-folded. A final sigma is one again by the tokenisers' rule; of German words with
ss, those that pyspellchecker (Barrus: barrust/pyspellchecker) has with a sharp s alone are spelled
so, and where it has both, both are listed, with their parts of the frequency.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from quietcorpus.indexes.folder import MANIFEST, described
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.indexes.tokens.vocabulary import is_reachable
from quietcorpus.indexes.tokens.written_language import FORMAT, FREQUENT_WORDS, MOST, FrequentWords
from quietcorpus.transforms.errors import InputError, require_installed, shown

from ..environment.version import quietcorpus_version
from ..storage.output import result_folder
from ..storage.places import absolute

WORDS = "words.txt"
LISTED = (
    *("ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi"),
    *("hu", "id", "is", "it", "ja", "ko", "lt", "lv", "mk", "ms", "nb", "nl", "pl", "pt", "ro"),
    *("ru", "sk", "sl", "sv", "ta", "tr", "uk", "ur", "vi", "zh"),
)
"""The languages that wordfreq has, of those that tokenisers and artefacts know."""
_LICENCE = "CC BY-SA 4.0"
_GERMAN = "de"


_LIMITS = {
    "ko": "a Korean list has morphemes, and texts have words of several: most are not in it",
    "zh": "a Chinese list is in simplified characters: few words of traditional texts are in it",
}
"""The gaps of a list, by its language."""
_MOST_WORDS = 20_000


def build(output: str, *, language: str, words: int | None, tokenizer: Tokenizer) -> dict[str, Any]:
    """Write the `words` most frequent words of a language, one a line, and a manifest.

    They are 20,000 by default, or all if the language has fewer. Words that no text can yield under
    the tokeniser (numbers, abbreviations with stops) are left out, and others are in its normal
    form.

    Raises:
        InputError: wordfreq is not installed, or has no such language or fewer words; or something
            is at `output`.
    """
    require_installed("wordfreq", extra="vocabularies")
    if language == _GERMAN:
        require_installed("spellchecker", extra="vocabularies")
    import wordfreq

    known = sorted(wordfreq.available_languages())
    if language not in known:
        raise InputError(
            f"language: {shown(language)} is not one that wordfreq has; give one of "
            f"{', '.join(known)}"
        )
    with result_folder(absolute(output), last=MANIFEST) as folder:
        listed = _spelled(language, wordfreq.get_frequency_dict(language))
        normal = tokenizer.normalize(pa.array(listed, pa.large_string())).to_pylist()
        frequencies: dict[str, float] = dict.fromkeys(normal, 0.0)
        for form, frequency in zip(normal, listed.values(), strict=True):
            frequencies[form] += frequency
        terms = pa.array(frequencies, pa.large_string())
        found = terms.filter(pa.array(is_reachable(terms, tokenizer.spelled(terms), tokenizer)))
        if words is not None and len(found) < words:
            raise InputError(
                f"words: {words} is more than the {len(found)} that wordfreq has; give fewer"
            )
        ranked = sorted(found.to_pylist(), key=lambda word: -frequencies[word])
        kept = ranked[: words or _MOST_WORDS]
        first = tuple(kept[:MOST])
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "version": 1,
            "provenance": "public",
            "source": f"wordfreq {version('wordfreq')}",
            "licence": _LICENCE,
            "language": language,
            "words": len(kept),
            FREQUENT_WORDS: FrequentWords(first, tuple(frequencies[word] for word in first)).record,
            "tokenizer": tokenizer.record,
            "builder": f"quietcorpus {quietcorpus_version()}",
        }
        if language in _LIMITS:
            manifest["limit"] = _LIMITS[language]
        with open(f"{folder}/{WORDS}", "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{word}\n" for word in kept)
        manifest["files"] = list(described(folder, [WORDS]))
        with open(f"{folder}/{MANIFEST}", "w", encoding="utf-8") as stream:
            stream.write(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    return manifest


def _spelled(language: str, frequencies: Mapping[str, float]) -> dict[str, float]:
    """Return the frequencies of a list's words as they are spelled, the most frequent first."""
    if language != _GERMAN:
        return dict(frequencies)
    from spellchecker import SpellChecker

    known: Mapping[str, int] = SpellChecker(language=_GERMAN).word_frequency.dictionary
    spellings: dict[str, list[str]] = {}
    for word in known:
        if "\u00df" in word:
            spellings.setdefault(word.replace("\u00df", "ss"), []).append(word)
    spelled: dict[str, float] = {}
    for word, frequency in frequencies.items():
        forms = spellings.get(word, [])
        forms = [*forms, word] if word in known or not forms else forms
        uses = [known.get(form, 1) for form in forms]
        for form, use in zip(forms, uses, strict=True):
            spelled[form] = frequency * use / sum(uses)
    return spelled
