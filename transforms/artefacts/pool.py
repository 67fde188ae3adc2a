"""Pools of public texts by their URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

from quietcorpus.indexes.pool import Pool, PoolManifest, open_pool
from quietcorpus.transforms.artefacts.folders import FolderKind, FolderSource


class PoolSource(FolderSource[Pool]):
    """A pool, named by a key of the spec."""

    kind = FolderKind("a pool", "quietcorpus index build-pool", PoolManifest.read, open_pool)
