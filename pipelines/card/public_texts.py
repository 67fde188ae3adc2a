"""The mechanism of `kind: public-texts` on the card, and the files of such a release."""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.pipelines.card.mechanism import FileFormat, Mechanism, Promise
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.parameters import DocumentParameters
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import layout
from quietcorpus.transforms.errors import InputError

_LOGGER = logging.getLogger("quietcorpus")


class PublicTextsMechanism(Mechanism):
    """A release of public texts, weighted by documents' votes."""

    kind: Literal["public-texts"]
    pool: str
    epsilon: float
    delta: float
    encoder: str
    nearest: int
    strata: dict[str, Any] | None = None
    pool_texts: int
    vote: int
    norm: int
    noise_multiplier: str
    least_votes: int
    encoder_precision: str
    encoder_software: str
    software: str

    @property
    def promise(self) -> Promise:
        """Return the form of document-level privacy."""
        return Promise(DocumentParameters)

    @property
    def files(self) -> Mapping[str, FileFormat]:
        """Return the formats of the texts and of the votes."""
        label, by, own = (
            (("label",), ", by `label`", " of that label") if self.strata else ((), "", "")
        )
        return {
            layout.TEXTS: FileFormat(
                f"the public texts that stand out of the noise{by}: `id` is their number in the "
                f"pool, and `weight`, of mean 1, goes by their share of the votes{own}",
                ("id", *label, "text", "weight"),
            ),
            layout.VOTES: FileFormat(
                f"the noisy `votes` of every text of the pool{by}; a document gives {self.vote} to "
                f"each of {self.nearest} texts",
                ("id", *label, "votes"),
            ),
        }

    @property
    def required(self) -> tuple[str, ...]:
        """Return the paths of all files."""
        return layout.TEXTS, layout.VOTES


def check(output: str, card: Card) -> None:
    """Check provenance, what is not told, what the noise costs, and which texts stand out.

    Raises InputError.
    """
    mechanism = card.mechanism
    assert isinstance(mechanism, PublicTextsMechanism)
    uri = f"{output}/{layout.CARD}"
    found = [(artefact.name, artefact.provenance) for artefact in card.artefacts]
    if found != [("pool", "public"), ("encoder", "public")]:
        raise InputError(f"{uri}: artefacts: not a public pool and a public encoder")
    if card.counts is not None:
        raise InputError(f"{uri}: counts: they tell whether a document is there, and are no part")
    _check_cost(uri, mechanism, card)
    _check_texts(output, mechanism)


def _check_cost(uri: str, mechanism: PublicTextsMechanism, card: Card) -> None:
    """Check with the accountant that the card's noise costs no more than the card says."""
    if importlib.util.find_spec("dp_accounting") is None:
        _LOGGER.warning("epsilon is not computed again: dp-accounting is not installed")
        return
    from quietcorpus.mechanisms.accounting import epsilon_of
    from quietcorpus.mechanisms.clipped_sum import STEPS
    from quietcorpus.mechanisms.votes import STANDS_OUT

    total = card.budget.total
    assert isinstance(total, DocumentParameters)
    try:
        noise = Fraction(mechanism.noise_multiplier)
        cost = epsilon_of(Fraction(1), noise, 1, Fraction(total.delta_exact))
        agree = (
            cost <= Fraction(total.epsilon_exact)
            and (mechanism.epsilon, mechanism.delta) == (total.epsilon, total.delta)
            and mechanism.norm == STEPS
            and mechanism.nearest * mechanism.vote**2 <= mechanism.norm**2
            and mechanism.least_votes == math.ceil(STANDS_OUT * noise * STEPS)
        )
    except (ValueError, ArithmeticError):
        agree = False
    if not agree:
        raise InputError(f"{uri}: budget: the noise that the card tells costs more than it says")


def _check_texts(output: str, mechanism: PublicTextsMechanism) -> None:
    """Check that the texts are those whose noisy votes stand out, by no other rule."""
    texts, votes = (storage.read_table(f"{output}/{path}") for path in (layout.TEXTS, layout.VOTES))
    labels = mechanism.strata["labels"] if mechanism.strata else [None]
    shape = len(labels), mechanism.pool_texts
    every = np.ones(shape, dtype=np.bool_)
    if _places(votes, mechanism) != _listed(every, labels):
        raise InputError(f"{output}/{layout.VOTES}: not a row for each text of the pool")
    noisy = votes["votes"].to_numpy().reshape(shape)
    chosen = noisy >= mechanism.least_votes
    totals = np.where(chosen, noisy, 0).sum(axis=1, keepdims=True)
    each = chosen.sum() / max(1, chosen.any(axis=1).sum())
    weights = (noisy / np.maximum(1, totals) * each)[chosen]
    if _places(texts, mechanism) != _listed(chosen, labels) or not np.array_equal(
        texts["weight"].to_numpy(), weights
    ):
        raise InputError(
            f"{output}/{layout.TEXTS}: not the texts whose votes stand out, with their weights"
        )


def _listed(chosen: npt.NDArray[np.bool_], labels: Sequence[str | None]) -> list[Any]:
    """Return label and number of the chosen texts, in order."""
    return [(labels[row], number) for row, number in np.argwhere(chosen).tolist()]


def _places(table: pa.Table, mechanism: PublicTextsMechanism) -> list[Any]:
    """Return label and number of each row of a table."""
    own = table["label"].to_pylist() if mechanism.strata else [None] * len(table)
    return list(zip(own, table["id"].to_pylist(), strict=True))
