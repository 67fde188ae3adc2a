"""A corpus in another language than an artefact's, noticed by its use of frequent words alone."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.tokens.frequent_words import FrequentCounts, FrequentWords
from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.listed_words import ListedWords
from quietcorpus.indexes.tokens.tokenizers import Tokenizer
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError

from ..storage.files import read_bytes


def noticed(
    key: str, uri: str, language: str | None, frequent: FrequentWords | None, counts: FrequentCounts
) -> Sequence[str]:
    """Return a warning if a corpus seems to be in another language; it has no content.

    Args:
        key: the spec's, of the artefact.
        uri: where the artefact is.
        language: the artefact's, by its code, if it is known.
        frequent: the artefact's most frequent words; without any, there is no warning.
        counts: those of the corpus.
    """
    if frequent is None or not frequent.is_foreign(counts):
        return ()
    of = f"{LANGUAGES.get(language, language)}, the language of {uri}" if language else uri
    return [
        f"{key}: the corpus has few of the most frequent words of {of}: is it in another language, "
        "or in other letters? Keep this line where the corpus is kept"
    ]


def noticed_of_list(source: FileSource | None, counts: FrequentCounts) -> Sequence[str]:
    """Return the same warnings for a public list of words, or for None.

    There is no warning unless a manifest beside the list states its language.
    """
    listed = _listed(source) if source else None
    if source is None or listed is None:
        return ()
    if listed.language == "zh" and listed.frequent.is_traditional(counts):
        return [
            f"{source.key}: the corpus seems to be in traditional characters, and {source.uri} is "
            "in simplified ones. Keep this line where the corpus is kept"
        ]
    return noticed(source.key, source.uri, listed.language, listed.frequent, counts)


def require_rule(source: FileSource, tokenizer: Tokenizer) -> None:
    """Raise InputError for a list of `index build-vocabulary` that was made for another rule."""
    listed = _listed(source)
    if listed is not None and listed.tokenizer != tokenizer.title:
        raise InputError(
            f"{source.key}: {source.uri} was made for {listed.tokenizer}, and the release finds "
            f"words by {tokenizer.title}; name that rule as `tokenizer`, or build the list again "
            "with `--tokenizer`"
        )


def _listed(source: FileSource) -> ListedWords | None:
    try:
        content = read_bytes(posixpath.join(posixpath.dirname(source.uri), MANIFEST))
    except Exception:  # object stores' clients raise their own exceptions; a list may lack one
        return None
    return ListedWords.of_manifest(content, source.digest)
