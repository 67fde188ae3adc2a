"""Preparing `kind: word-embeddings`, by either method."""

from __future__ import annotations

import importlib.util

from quietcorpus.pipelines.kinds.kind import Kind
from quietcorpus.pipelines.spec.embeddings import EmbeddingMethod, WordEmbeddingsSpec
from quietcorpus.transforms.errors import InputError


def resolve(spec: WordEmbeddingsSpec, workers: int) -> Kind:
    """Prepare a release; raises InputError for an unusable spec or a missing package."""
    for module, package in (("dp_accounting", "dp-accounting"), ("flint", "python-flint")):
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"mechanism.kind: {package} is not installed; install the extra [embeddings]"
            )
    # These modules import optional packages.
    from quietcorpus.pipelines.kinds.embeddings_counted import CountedEmbeddingsKind
    from quietcorpus.pipelines.kinds.embeddings_trained import TrainedEmbeddingsKind

    if spec.method is EmbeddingMethod.SGD:
        return TrainedEmbeddingsKind.resolve(spec, workers)
    return CountedEmbeddingsKind.resolve(spec)
