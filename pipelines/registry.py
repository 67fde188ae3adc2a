"""The registry of kinds: every kind of release is listed here, once, with the places of its parts.

A part is named as `module:name` and imported at its first use: reading a spec loads no engine, and
making a release no evaluation.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Container
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KindParts:
    """The places of the parts of one kind, each as `module:name`.

    Attributes:
        block: the spec's mechanism block, a `schema.mechanism.MechanismSpec`.
        mechanism: the card's block, with the files of a release, a `card.mechanism.Mechanism`.
        resolve: a function of the checked block and a number of processes that finds the artefacts
            and returns a `jobs.kind.Kind`.
        audits: a function of that `Kind` that returns its audits (`evaluation.audits.findings`).
        canaries: a function of that `Kind`, a number and a corpus that returns a
            `canaries.game.Game`; None if there is none.
        study: the measures of an evaluation, an `evaluate.study.Study`; None if there are none.
        check: a function of an output and its card that raises InputError if the release is not as
            the card says, beyond files, columns and the sum of the budget; None if that is all.
        columns: the columns that its data files may have besides `id` and copied ones; no release
            copies a column of such a name.
    """

    block: str
    mechanism: str
    resolve: str
    audits: str
    canaries: str | None = None
    study: str | None = None
    check: str | None = None
    columns: tuple[str, ...] = ()

    @classmethod
    def of_package(cls, kind: str, name: str, *columns: str) -> KindParts:
        """Return the parts of a kind of this project, all in its package `pipelines/kinds/KIND/`.

        `name` is the one that its classes begin with.
        """
        package = f"quietcorpus.pipelines.kinds.{kind.replace('-', '_')}"
        return cls(
            block=f"{package}.spec:{name}Spec",
            mechanism=f"{package}.card:{name}Mechanism",
            resolve=f"{package}.job:resolve",
            audits=f"{package}.checks:audits",
            canaries=f"{package}.checks:game",
            study=f"{package}.study:{name}Study",
            check=f"{package}.card:check",
            columns=columns,
        )


_KINDS = {
    kind: KindParts.of_package(kind, *given)
    for kind, *given in (
        ("bag-of-words", "BagOfWords", "terms", "counts", "bins"),
        ("histogram", "Histogram"),
        ("user-histogram", "UserHistogram"),
        ("words", "Words", "text"),
        ("sentence-embeddings", "Sentences", "candidate", "recoded", "embedding"),
        ("word-embeddings", "WordEmbeddings"),
        ("public-texts", "PublicTexts"),
        ("overview", "Overview"),
    )
}


_FORMS = {"user-histogram": ("histogram", ("user", "unit"))}
"""The names here of kinds' other forms: the kind, and the keys of which each tells such a block."""


def register(kind: str, parts: KindParts) -> None:
    """Add a kind to this process; raises ValueError for a name that is taken."""
    if kind in _KINDS:
        raise ValueError(f"{kind} is registered already")
    _KINDS[kind] = parts


def is_registered(kind: object) -> bool:
    """Return whether a value is the name of a kind."""
    return isinstance(kind, str) and kind in names()


def names() -> tuple[str, ...]:
    """Return the names of all kinds, in the order in which they were listed."""
    return tuple(name for name in _KINDS if name not in _FORMS)


def forms() -> tuple[str, ...]:
    """Return the names of all kinds and of their other forms, in the same order."""
    return tuple(_KINDS)


def form(kind: str, keys: Container[str]) -> str:
    """Return the name of the form of a kind whose block has these keys."""
    for name, (of, telling) in _FORMS.items():
        if of == kind and any(key in keys for key in telling):
            return name
    return kind


def columns() -> set[str]:
    """Return the columns that the data files of some kind may have, besides `id`."""
    return {column for parts in _KINDS.values() for column in parts.columns}


def place(kind: str, name: str) -> str:
    """Return the place of a part of a kind, as `module:name`."""
    found: str = getattr(_KINDS[kind], name)
    return found


def part(kind: str, name: str) -> Any:
    """Import a part of a kind, by its name in `KindParts`; None if the kind has no such part."""
    place = getattr(_KINDS[kind], name)
    return None if place is None else pkgutil.resolve_name(place)


def part_of(block: Any, name: str) -> Any:
    """Import a part of the kind of a checked block, the spec's or the card's, in its form."""
    return part(form(block.kind, type(block).model_fields), name)
