"""Pools of public texts by their URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.indexes.documents.pool import Pool, PoolManifest, open_pool
from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS, Tokenizer

from .folders import FolderKind, FolderSource


class PoolSource(FolderSource[Pool]):
    """A pool, named by a key of the spec."""

    kind = FolderKind("a pool", "quietcorpus index build-pool", PoolManifest.read, open_pool)


@dataclass(frozen=True)
class CarriedEncoder:
    """The encoder that a pool carries; it needs no software but this.

    Attributes:
        pool: the pool.
        name: the encoder's.
        digest: the SHA-256 of its terms and vectors.
        tokenizer: the tokeniser of the texts that it encodes.
    """

    pool: PoolSource
    name: str
    digest: str
    tokenizer: Tokenizer = UNICODE_WORDS

    arithmetic: ClassVar[str] = "whole numbers"

    @classmethod
    def of(cls, pool: PoolSource, manifest: PoolManifest) -> CarriedEncoder:
        """Return the encoder that the manifest of a pool that has been opened here describes."""
        described = manifest.encoder
        tokenizer = Tokenizer.of_law(described["tokenizer"])  # had, since the pool was opened
        return cls(pool, described["name"], described["sha256"], tokenizer)

    @property
    def software(self) -> str:
        """Return the tokeniser, for the card."""
        return self.tokenizer.description

    @property
    def computing(self) -> str:
        """Return what the embeddings depend on."""
        return f"{self.arithmetic}; {self.software}"

    def open(self) -> Lsa:
        """Open the pool, once per process, and return its encoder."""
        encoder = self.pool.open().encoder
        assert encoder is not None
        return encoder
