"""Preparing `kind: word-embeddings`, by either method."""

from __future__ import annotations

from quietcorpus.transforms.errors import require_installed

from ...jobs.kind import Kind
from .spec import EmbeddingMethod, WordEmbeddingsSpec


def resolve(spec: WordEmbeddingsSpec, workers: int) -> Kind:
    """Prepare a release; raises InputError for an unusable spec or a missing package."""
    require_installed("dp_accounting", "flint", key="mechanism.kind", extra="embeddings")
    # The module imports optional packages.
    from .methods import CountedEmbeddingsKind, TrainedEmbeddingsKind

    if spec.method is EmbeddingMethod.SGD:
        return TrainedEmbeddingsKind.resolve(spec, workers)
    return CountedEmbeddingsKind.resolve(spec)
