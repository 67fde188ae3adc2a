"""The registry of kinds: every kind of release is listed here, once, with the places of its parts.

A part is named as `module:name` and imported at its first use: reading a spec loads no engine, and
making a release no evaluation.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PIPELINES = "quietcorpus.pipelines"


@dataclass(frozen=True)
class KindParts:
    """The places of the parts of one kind, each as `module:name`.

    Attributes:
        block: the spec's mechanism block, a `spec.mechanism.MechanismSpec`.
        format: the files of a release, a `card.formats.ReleaseFormat`.
        resolve: a function of the checked block and a number of processes that finds the artefacts
            and returns a `kinds.kind.Kind`.
        audits: a function of that `Kind` that returns its audits (`evaluation.audits.findings`).
        study: the measures of an evaluation, an `evaluate.study.Study`.
    """

    block: str
    format: str
    resolve: str
    audits: str
    study: str

    @classmethod
    def of_module(cls, module: str, name: str) -> KindParts:
        """The parts of a kind whose modules and classes are called alike in every wing."""
        return cls(
            block=f"{_PIPELINES}.spec.{module}:{name}Spec",
            format=f"{_PIPELINES}.card.{module}:{name}Format",
            resolve=f"{_PIPELINES}.kinds.{module}:resolve",
            audits=f"{_PIPELINES}.audit.{module}:audits",
            study=f"{_PIPELINES}.evaluate.{module}:{name}Study",
        )


_KINDS = {
    "bag-of-words": KindParts.of_module("bags", "BagOfWords"),
    "histogram": KindParts.of_module("histogram", "Histogram"),
    "words": KindParts.of_module("words", "Words"),
    "sentence-embeddings": KindParts.of_module("sentences", "Sentences"),
    "word-embeddings": KindParts.of_module("embeddings", "WordEmbeddings"),
}


def register(kind: str, parts: KindParts) -> None:
    """Add a kind to this process; raises ValueError for a name that is taken."""
    if kind in _KINDS:
        raise ValueError(f"{kind} is registered already")
    _KINDS[kind] = parts


def is_registered(kind: object) -> bool:
    """Whether a value is the name of a kind."""
    return isinstance(kind, str) and kind in _KINDS


def names() -> Iterator[str]:
    """The names of all kinds, in the order in which they were listed."""
    return iter(_KINDS)


def part(kind: str, name: str) -> Any:
    """Import a part of a kind, by its name in `KindParts`."""
    return pkgutil.resolve_name(getattr(_KINDS[kind], name))
