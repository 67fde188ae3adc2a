"""What `verify` asks of word embeddings: the same vectors in every file, and an honest index."""

from __future__ import annotations

import importlib.util
import io
import logging
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from quietcorpus.indexes import artefact
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.vectors import VectorsError, read
from quietcorpus.pipelines.card.model import Card, UserParameters, stated
from quietcorpus.pipelines.spec.embeddings import EmbeddingMethod
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import layout
from quietcorpus.pipelines.storage.layout import BINARY, INDEX, TABLE, TEXT
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.errors import InputError

_LOGGER = logging.getLogger("quietcorpus.verify")
TABLES = {TABLE: ["word", "vector"], layout.VOCABULARY: ["term_id", "term", "weight"]}
OTHERS = (TEXT, BINARY, *(f"{INDEX}/{name}" for name in (MANIFEST, *artefact.FILES)))
"""The files that are no tables."""


def _check_cost(uri: str, card: Card) -> None:
    """What was drawn with the card's own noise must cost what it says, by the accountant here."""
    if importlib.util.find_spec("dp_accounting") is None:
        _LOGGER.warning("epsilon is not computed again: dp-accounting is not installed")
        return
    from quietcorpus.mechanisms.accounting import epsilon_of

    stage = card.budget.stages[-1].parameters
    assert isinstance(stage, UserParameters)
    delta = Fraction(stage.delta_exact)
    stated = {group.name: group.epsilon_exact for group in stage.groups}
    try:
        found = {
            name: epsilon_of(rate, noise, steps, delta)
            for name, rate, noise, steps in _drawn(card.mechanism)
        }
        agree = all(
            found[name] <= Fraction(stated.get(name, stage.epsilon_exact)) for name in found
        )
    except (KeyError, TypeError, ValueError, ArithmeticError):
        found, agree = {}, False
    if not found or not agree or (stated and stated.keys() != found.keys()):
        raise InputError(f"{uri}: budget: the noise that the card tells costs more than it says")


def _check_vocabulary(uri: str, card: Card) -> None:
    """A vocabulary costs what the mechanism's block says: a public one nothing."""
    before = [stage.parameters for stage in card.budget.stages[:-1]]
    spent = [(p.epsilon, p.delta, p.groups) for p in before if isinstance(p, UserParameters)]
    try:
        private = card.mechanism["vocabulary"].get("private")
        agree = spent == ([(private["epsilon"], private["delta"], [])] if private else [])
    except (AttributeError, KeyError, TypeError):
        agree = False
    if not agree:
        raise InputError(f"{uri}: budget: the vocabulary costs other than the mechanism says")


def _drawn(mechanism: dict[str, Any]) -> Iterator[tuple[str, Fraction, Fraction, int]]:
    """The name, sampling rate, noise multiplier and number of steps of each group."""
    from quietcorpus.mechanisms.clipped_sum import (
        STEPS,  # which needs what is not installed everywhere
    )

    noise = Fraction(mechanism["noise_multiplier"])
    if mechanism["method"] == EmbeddingMethod.SGD:
        for group in mechanism["groups"]:
            yield group["name"], Fraction(group["sampling_rate"]), noise, group["last_step"]
        return
    for name, norm in mechanism["norms"].items():
        steps = int(norm > 0)
        yield name, Fraction(1), noise * STEPS / max(norm, 1), steps


def check(output: str, card: Card) -> None:
    """Raise InputError unless all files are there, agree, and the index tells its cost."""
    uri = f"{output}/{layout.CARD}"
    paths = [file.path for file in card.files]
    for path in (*TABLES, *OTHERS):
        if path not in paths:
            raise InputError(f"{uri}: files: {path} is missing")
    _check_vocabulary(uri, card)
    _check_cost(uri, card)
    index = IndexSource.found("index", f"{output}/{INDEX}").open()
    table, terms = (storage.read_table(f"{output}/{name}") for name in (TABLE, layout.VOCABULARY))
    words = table["word"].to_pylist()
    values = np.array(table["vector"].to_pylist(), dtype=np.float32)
    found: list[tuple[str, list[str], Any]] = [
        (INDEX, index.vocabulary.terms.to_pylist(), index.vectors),
        (layout.VOCABULARY, terms["term"].to_pylist(), values),
    ]
    for path in (TEXT, BINARY):
        content = storage.read_bytes(f"{output}/{path}")
        try:
            vectors = read(path, {path: io.BytesIO(content)}.__getitem__)
        except VectorsError as error:
            raise InputError(f"{output}/{path}: {error}") from None
        found.append((path, vectors.words, vectors.values))
    for path, own, vectors in found:
        if own != words or not np.array_equal(vectors, values):
            raise InputError(f"{output}/{path}: not the words and vectors of {TABLE}")
    if (index.manifest.provenance, index.manifest.guarantee) != ("private", stated(card.guarantee)):
        raise InputError(f"{output}/{INDEX}: does not say what it cost as {layout.CARD} does")
