"""Pools of public texts by their URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quietcorpus.indexes.lsa import Lsa
from quietcorpus.indexes.pool import Pool, PoolManifest, open_pool
from quietcorpus.indexes.tokenizer import DESCRIPTION
from quietcorpus.transforms.artefacts.folders import FolderKind, FolderSource


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
    """

    pool: PoolSource
    name: str
    digest: str

    arithmetic: ClassVar[str] = "whole numbers"
    software: ClassVar[str] = DESCRIPTION
    computing: ClassVar[str] = f"{arithmetic}; {software}"

    def open(self) -> Lsa:
        """Open the pool, once per process, and return its encoder."""
        encoder = self.pool.open().encoder
        assert encoder is not None
        return encoder
