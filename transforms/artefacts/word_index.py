"""A word index by its URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

from quietcorpus.indexes.word_index import IndexManifest, WordIndex, open_index
from quietcorpus.transforms.artefacts.folders import FolderKind, FolderSource


class IndexSource(FolderSource[WordIndex]):
    """A word index, named by a key of the spec."""

    kind = FolderKind("an index", "quietcorpus index build", IndexManifest.read, open_index)
