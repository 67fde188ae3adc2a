"""A word index by its URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial

from quietcorpus.indexes.words.manifest import IndexManifest, Part
from quietcorpus.indexes.words.word_index import WordIndex, open_index

from .folders import FolderKind, FolderSource


class IndexSource(FolderSource[WordIndex]):
    """A word index, named by a key of the spec."""

    kind = FolderKind("an index", "quietcorpus index build", IndexManifest.read, open_index)

    def open(self, *parts: Part) -> WordIndex:
        """Fetch, verify and map the words and these parts, or all that there are if none is named.

        Raises InputError if one is unusable, or the index lacks it. Other files are not looked at.
        """
        return self._open(_kind(parts) if parts else self.kind)


@functools.cache  # or each call would have a separate kind, and so open the index again
def _kind(parts: tuple[Part, ...]) -> FolderKind[WordIndex]:
    def read_manifest(folder: str, digest: str) -> IndexManifest:
        manifest = IndexManifest.read(folder, digest)
        return replace(manifest, files=manifest.needed(parts))

    return replace(
        IndexSource.kind, read_manifest=read_manifest, read=partial(open_index, parts=parts)
    )
