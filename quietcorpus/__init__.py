"""Releases of large private text corpora under differential privacy.

    import quietcorpus as qc

    card = qc.release("spec.yaml", workers=8)
    print(card.guarantee.statement)

Importing this package loads neither Beam nor NumPy: each function loads them when it is called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quietcorpus import ledger
from quietcorpus.api import (
    audit,
    build_candidates,
    build_index,
    build_pool,
    calibrate_bags,
    calibrate_sentences,
    calibrate_words,
    evaluate,
    reconstruct,
    release,
    release_claim,
    search_report,
    verify,
)
from quietcorpus.transforms.errors import CapReached, InputError, StageError, Unavailable

if TYPE_CHECKING:
    from quietcorpus.pipelines.card.model import Card
    from quietcorpus.pipelines.engine.engine import GraphIsValid
    from quietcorpus.pipelines.spec.spec import Spec

__all__ = [
    "CapReached",
    "Card",
    "GraphIsValid",
    "InputError",
    "Spec",
    "StageError",
    "Unavailable",
    "audit",
    "build_candidates",
    "build_index",
    "build_pool",
    "calibrate_bags",
    "calibrate_sentences",
    "calibrate_words",
    "evaluate",
    "ledger",
    "reconstruct",
    "release",
    "release_claim",
    "search_report",
    "verify",
]

_LATER = {
    "Card": "quietcorpus.pipelines.card.model",
    "GraphIsValid": "quietcorpus.pipelines.engine.engine",
    "Spec": "quietcorpus.pipelines.spec.spec",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'quietcorpus' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
