"""A word index in a folder of this machine, which is opened without Beam."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from quietcorpus.indexes.folder import ArtefactError, read_manifest
from quietcorpus.indexes.words.manifest import Part
from quietcorpus.indexes.words.word_index import WordIndex, open_index

from ..errors import InputError


@dataclass(frozen=True)
class LocalIndex:
    """A word index, by its folder and the SHA-256 of its manifest."""

    uri: str
    digest: str

    @classmethod
    def resolve(cls, folder: str) -> LocalIndex:
        """Return the index as it is now; raises InputError if there is none."""
        try:
            manifest = read_manifest(folder, "an index")
        except ArtefactError as error:
            raise InputError(
                f"index: {folder} {error}; make one with `quietcorpus index build`"
            ) from None
        return cls(folder, hashlib.sha256(manifest).hexdigest())

    def open(self, *parts: Part) -> WordIndex:
        """Verify and map the words and these parts; raises InputError if one is unusable."""
        try:
            return open_index(self.uri, self.digest, parts)
        except ArtefactError as error:
            raise InputError(f"index: {self.uri} {error}") from None
