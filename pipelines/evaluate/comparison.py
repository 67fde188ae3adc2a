"""The comparison of one release with one corpus: the observations of a draw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from quietcorpus.evaluation.calibration import limited
from quietcorpus.evaluation.results import POINT, MeasuredDraw, Observation, Setting
from quietcorpus.transforms.errors import InputError, cut, redacted, shown

from .. import registry
from ..card.model import Card
from ..card.verify import verify
from ..jobs.kind import prepare
from ..release.existing import whole_difference
from ..schema.loading import load_spec
from ..schema.spec import Spec
from ..storage import files as storage
from ..storage import layout
from .corpus import Columns, Draw, Sample, released, sample
from .study import (
    LEAST_OF_AUTHOR,
    LEAST_OF_CLASS,
    Study,
    authors,
    labelled,
)

COMPARE = "compare"
"""The key of a setting whose value is the name of a variant."""
Compared = Mapping[Setting, Mapping[str, str]]
"""Variants, and the keys of the mechanism that each changes to values, as YAML.

A variant is a setting of its name alone, or of its name and the number of a point.
"""


@dataclass(frozen=True)
class Comparison:
    """The description of a comparison, small enough to be sent to other processes.

    Attributes:
        release: the place of the release.
        against: the corpus: a path, a glob or an object-store URI.
        spec: the file that describes the release; None if there is none.
        columns: the columns of the corpus.
        documents: the largest number of documents to sample.
        seed: the seed of the sample.
        compared: the variants of the mechanism that settings name.
        public_vectors: a file of public word vectors, to compare a release of vectors with.
        neighbours_of: words whose nearest ones are reported.
        public_text: public texts that an attacker on words learns from.
        reference_text: the documents as another tool left them, to measure beside the release.
    """

    release: str
    against: str
    spec: str | None
    columns: Columns
    documents: int
    seed: int
    compared: Compared = field(default_factory=dict)
    public_vectors: str | None = None
    neighbours_of: tuple[str, ...] = ()
    public_text: str | None = None
    reference_text: str | None = None

    @classmethod
    def of(
        cls,
        release: str,
        against: str,
        spec: str | None,
        *,
        text: str | None,
        id_: str | None,
        label: str | None,
        user: str | None,
        documents: int,
        seed: int,
        compared: Compared,
        target: str | None = None,
        public_vectors: str | None = None,
        neighbours_of: tuple[str, ...] = (),
        public_text: str | None = None,
        reference_text: str | None = None,
    ) -> Comparison:
        """Build a comparison whose columns default to the spec's.

        Raises InputError for a spec that cannot be used, and for ids that the release lacks.
        """
        described = None if spec is None else load_spec(spec)
        given = described.input if described else None
        columns = Columns(
            text or (given.text if given else "text"),
            id_ or (given.id if given else None),
            label,
            user or getattr(described and described.mechanism, "user", None),
            tuple(described.mechanism.columns) if described else (),
            target,
            given.escape if given else None,
        )
        made = cls(
            release,
            against,
            spec,
            columns,
            documents,
            seed,
            compared,
            public_vectors,
            neighbours_of,
            public_text,
            reference_text,
        )
        ids = {made.card.id_column, columns.id}
        copied = tuple(name for name in made.card.kept if name not in ids)
        object.__setattr__(made, "columns", replace(columns, kept=copied))
        kind = made.card.mechanism.kind
        if registry.part_of(made.card.mechanism, "study") is None:
            raise InputError(f"release: nothing measures a release of the kind {kind}")
        alone = {
            "target": target,
            "public_vectors": public_vectors,
            "neighbours_of": neighbours_of,
        }
        for key, value in alone.items() if not made.measures.of_vectors else ():
            if value:
                raise InputError(f"{key}: is for releases of word vectors, not of {kind}")
        for key, place in (("public_text", public_text), ("reference_text", reference_text)):
            if place is not None and not made.measures.of_words:
                raise InputError(f"{key}: is for releases of words, not of {kind}")
        if reference_text is not None and columns.id is None:
            raise InputError("id: missing; reference_text is joined to the corpus by it")
        if id_ is not None and id_ not in made.card.kept:
            kept = ", ".join(map(cut, made.card.kept)) or "none"
            raise InputError(f"id: the release keeps no column {shown(id_)} (it keeps {kept})")
        return made

    @cached_property
    def card(self) -> Card:
        """Return the release's card; raises InputError if the release differs from it."""
        return verify(self.release)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the card's file."""
        return hashlib.sha256(storage.read_bytes(f"{self.release}/{layout.CARD}")).hexdigest()

    @cached_property
    def sample(self) -> Sample:
        """Return the sampled documents, from which all draws are made."""
        return sample(self.against, self.columns, self.documents, self.seed)

    @cached_property
    def study(self) -> Study:
        """Return the kind's study; raises InputError for a kind that lacks its spec."""
        return self.measures(self)

    @property
    def measures(self) -> type[Study]:
        """Return the class of the study."""
        found: type[Study] = registry.part_of(self.card.mechanism, "study")
        return found

    @cached_property
    def own(self) -> Draw:
        """Return the release itself as a draw; raises InputError for another corpus."""
        # A card without counts tells of no corpus how many documents it has.
        if self.card.counts is not None and self.card.documents != self.sample.of:
            raise InputError(
                f"against: the corpus has {self.sample.of:,} documents and the release "
                f"{self.card.documents:,}; give the corpus that the release was made of"
            )
        return self.study.own or released(
            self.release, self.card, self.columns, self.sample, self.seed
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description alone: another process reads for itself, and gets no text."""
        return Comparison, tuple(getattr(self, one.name) for one in fields(self))

    def check(self, settings: Sequence[Setting]) -> None:
        """Raise InputError for what a person can fix, before the long work begins."""
        _ = self.card
        for setting in settings:
            prepare(self.at(setting))  # refuses what would else be refused after the draws before
        if self.spec is not None:
            user = getattr(self.described.mechanism, "user", self.columns.user)
            if user != self.columns.user:
                protected = "documents" if user is None else f"the users of {shown(user)}"
                raise InputError(f"user: the release protects {protected}; leave it out")
        self._check_columns()
        _ = self.own

    def at(self, setting: Setting) -> Spec:
        """Return the spec under a setting; raises InputError for one that is not allowed."""
        assert self.spec is not None
        changes: dict[str, str] = {}
        variant = tuple(pair for pair in setting if pair[0] in (COMPARE, POINT))
        swept = {key: value for key, value in setting if key not in (COMPARE, POINT)}
        compared = self.compared[variant] if variant else {}
        for option, given in ((COMPARE, compared), ("sweep", swept)):
            for one in given:
                self._check_swept(option, one)
            changes |= {f"mechanism.{one}": text for one, text in given.items()}
        spec = load_spec(self.spec, changes)
        source = spec.input.model_copy(update={"path": self.against})  # not the spec's path
        return spec.model_copy(update={"input": source})

    def _check_swept(self, option: str, key: str) -> None:
        """Raise InputError for a key that no draw follows; a variant may also give whole blocks."""
        keys = set(self.measures.swept)
        if option == COMPARE:
            keys |= {one.partition(".")[0] for one in keys}
        if key not in keys:
            raise InputError(
                f"{option}: {shown(key)} is not a key that a draw can follow here; give one of "
                f"{', '.join(sorted(keys))}"
            )

    def measured(self, setting: Setting, draw: int) -> MeasuredDraw:
        """Measure a draw: the release itself for draw 0 of its setting, else a fresh one.

        Raises InputError, or StageError, which quotes no text.
        """
        with limited():
            return MeasuredDraw(setting, draw, list(self._observed(setting, draw)))

    @redacted
    def paired_topics(self) -> Iterator[dict[str, Any]]:
        """Yield the release's topics and those of the original, pair by pair."""
        yield from self.study.topics(self.own)

    @redacted
    def _observed(self, setting: Setting, draw: int) -> Iterator[Observation]:
        is_own = not setting and draw == 0
        made = self.own if is_own else self.study.redraw(self.at(setting))
        yield from self.study.observe(made, draw)
        if not setting:
            yield from self.study.references(draw)

    def _check_columns(self) -> None:
        """Raise InputError for too few documents, classes or authors to learn from."""
        if len(self.sample) < LEAST_OF_CLASS:
            raise InputError(
                f"against: {self.against} has {len(self.sample)} documents, of which nothing "
                f"can be said; give {LEAST_OF_CLASS} or more"
            )
        if self.sample.labels is not None:
            _, classes = labelled(self.sample.labels)
            if len(np.unique(classes)) < 2:
                raise InputError(
                    f"label: the column {shown(self.columns.label)} has fewer than two classes of "
                    f"{LEAST_OF_CLASS} documents or more among {len(self.sample):,}; name "
                    "another column, or leave it out"
                )
        users = self.sample.users if self.measures.of_authors else None
        if users is not None and authors(users) is None:
            raise InputError(
                f"user: the column {shown(self.columns.user)} has fewer than two authors of "
                f"{LEAST_OF_AUTHOR} documents or more among {len(self.sample):,}; name another "
                "column, or leave it out"
            )

    @cached_property
    def described(self) -> Spec:
        """Return the spec of the release.

        Raises InputError if there is none, if it describes another release, or if the release was
        reconstructed or its texts varied.
        """
        if self.spec is None:
            kind = self.card.mechanism.kind
            raise InputError(
                f"spec: missing; evaluating {kind} needs the artefacts that the spec names"
            )
        if self.card.reconstruction is not None:
            raise InputError(
                f"spec: {self.release} was reconstructed, and further draws would not be; leave "
                "it out"
            )
        if getattr(self.card.mechanism, "variation", None) is not None:
            raise InputError(
                f"spec: the texts of {self.release} were varied, and further draws would not be; "
                "evaluate the release that they were made from"
            )
        spec = load_spec(self.spec)
        other = whole_difference(self.card, spec)
        if other is not None:
            raise InputError(f"spec: {self.spec} describes another release ({other})")
        return spec
