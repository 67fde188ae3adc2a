"""Public vocabularies to begin with: the frequent words of a language, from a package.

wordfreq (Speer: rspeer/wordfreq, version 3, 2022) has lists of the words of forty languages by
their frequency in Wikipedia, subtitles, news, books, the web and social media. Its data may be
passed on under CC BY-SA 4.0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from quietcorpus.indexes.folder import MANIFEST, described
from quietcorpus.indexes.frequent_words import FREQUENT_WORDS, MOST, FrequentWords
from quietcorpus.indexes.listed_words import FORMAT
from quietcorpus.indexes.tokenizers import Tokenizer
from quietcorpus.indexes.vocabulary import is_reachable
from quietcorpus.pipelines.environment.version import quietcorpus_version
from quietcorpus.pipelines.storage.output import Output
from quietcorpus.pipelines.storage.places import absolute
from quietcorpus.transforms.errors import InputError, shown
from quietcorpus.transforms.installed import require_installed

WORDS = "words.txt"
LISTED = (
    *("ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi"),
    *("hu", "id", "is", "it", "ja", "ko", "lt", "lv", "mk", "ms", "nb", "nl", "pl", "pt", "ro"),
    *("ru", "sk", "sl", "sv", "ta", "tr", "uk", "ur", "vi", "zh"),
)
"""The languages that wordfreq has, of those that tokenisers and artefacts know."""
_LICENCE = "CC BY-SA 4.0"


def build(output: str, *, language: str, words: int, tokenizer: Tokenizer) -> dict[str, Any]:
    """Write the `words` most frequent words of a language, one a line, and a manifest.

    Words that no text can yield under the tokeniser (numbers, abbreviations with stops) are left
    out, and others are in its normal form.

    Raises:
        InputError: wordfreq is not installed, or has no such language or fewer words; or something
            is at `output`.
    """
    require_installed("wordfreq", extra="vocabularies")
    import wordfreq

    known = sorted(wordfreq.available_languages())
    if language not in known:
        raise InputError(
            f"language: {shown(language)} is not one that wordfreq has; give one of "
            f"{', '.join(known)}"
        )
    place = Output(absolute(output))
    place.require_writable()
    listed = list(wordfreq.iter_wordlist(language))
    normal = tokenizer.normalize(pa.array(listed, pa.large_string()))
    terms = pa.array(dict.fromkeys(normal.to_pylist()), pa.large_string())
    found = terms.filter(pa.array(is_reachable(terms, tokenizer.spelled(terms), tokenizer)))
    if len(found) < words:
        raise InputError(
            f"words: {words} is more than the {len(found)} that wordfreq has; give fewer"
        )
    kept = found[:words].to_pylist()
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "provenance": "public",
        "source": f"wordfreq {version('wordfreq')}",
        "licence": _LICENCE,
        "language": language,
        "words": words,
        FREQUENT_WORDS: _frequent(language, listed, normal, kept[:MOST]).record,
        "tokenizer": tokenizer.record,
        "builder": f"quietcorpus {quietcorpus_version()}",
    }
    with place.folder(last=MANIFEST) as folder:
        with open(f"{folder}/{WORDS}", "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{word}\n" for word in kept)
        manifest["files"] = list(described(folder, [WORDS]))
        with open(f"{folder}/{MANIFEST}", "w", encoding="utf-8") as stream:
            stream.write(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    return manifest


def _frequent(
    language: str, listed: Sequence[str], normal: pa.Array, first: Sequence[str]
) -> FrequentWords:
    """Return the first words of a list, with their shares of a text's words."""
    import wordfreq

    frequencies = wordfreq.get_frequency_dict(language)
    shares = dict.fromkeys(first, 0.0)
    for word, form in zip(listed, normal.to_pylist(), strict=True):
        if form in shares:
            shares[form] += float(frequencies[word])
    return FrequentWords(tuple(shares), tuple(shares.values()))
