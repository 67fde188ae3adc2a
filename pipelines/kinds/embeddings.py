"""Preparing `kind: word-embeddings`, by either method."""

from __future__ import annotations

from quietcorpus.transforms.installed import require_installed

from ..schema.embeddings import EmbeddingMethod, WordEmbeddingsSpec
from .kind import Kind


def resolve(spec: WordEmbeddingsSpec, workers: int) -> Kind:
    """Prepare a release; raises InputError for an unusable spec or a missing package."""
    require_installed("dp_accounting", "flint", key="mechanism.kind", extra="embeddings")
    # These modules import optional packages.
    from .embeddings_counted import CountedEmbeddingsKind
    from .embeddings_trained import TrainedEmbeddingsKind

    if spec.method is EmbeddingMethod.SGD:
        return TrainedEmbeddingsKind.resolve(spec, workers)
    return CountedEmbeddingsKind.resolve(spec)
