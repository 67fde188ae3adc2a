"""A corpus in another language than a public list's: noticed by its share of known words alone."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.languages import LANGUAGES
from quietcorpus.indexes.listed_words import ListedWords
from quietcorpus.pipelines.storage.files import read_bytes
from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.shards import Tally


def noticed(source: FileSource | None, tally: Tally) -> Sequence[str]:
    """Return a warning if a corpus seems to be in another language than a list; it has no content.

    `source` is the list, or None: then, and where no manifest beside the list tells its language,
    there is no warning.
    """
    listed = _listed(source) if source else None
    if source is None or listed is None or not listed.is_foreign(tally.tokens, tally.known):
        return ()
    return [
        f"{source.key}: fewer words of the corpus are in {source.uri} than of "
        f"{LANGUAGES[listed.language]} text: is the corpus in this language? Keep this line where "
        "the corpus is kept"
    ]


def _listed(source: FileSource) -> ListedWords | None:
    try:
        content = read_bytes(posixpath.join(posixpath.dirname(source.uri), MANIFEST))
    except Exception:  # object stores' clients have exceptions of their own; a list may lack one
        return None
    return ListedWords.of_manifest(content, source.digest)
