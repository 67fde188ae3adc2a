"""Checking a release against its card: schema, digests, rows, columns, and nothing else inside."""

from __future__ import annotations

import hashlib
import math
import posixpath
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.mechanisms.brr import BinaryRandomizedResponse
from quietcorpus.mechanisms.guarantees import Spending, compose
from quietcorpus.mechanisms.madlib import Madlib
from quietcorpus.pipelines.card import verify_embeddings
from quietcorpus.pipelines.card.model import (
    Artefact,
    Card,
    LimitedPrecisionParameters,
    MetricParameters,
    SentenceParameters,
    UserParameters,
    guarantee,
    inherited,
    parameters,
)
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import layout
from quietcorpus.pipelines.storage.places import absolute
from quietcorpus.transforms.errors import InputError

_DATA = {
    "bag-of-words": ["id", "terms", "counts"],
    "words": ["id", "text"],
    "sentence-embeddings": ["id", "candidate", "embedding"],
    "histogram": [],
    "word-embeddings": [],
}
_PROMISES: dict[str, tuple[type, str | None]] = {
    "bag-of-words": (LimitedPrecisionParameters, None),
    "histogram": (LimitedPrecisionParameters, None),
    "words madlib": (MetricParameters, Madlib.metric),
    "words brr": (MetricParameters, BinaryRandomizedResponse.metric),
    "sentence-embeddings deep-candidate": (SentenceParameters, None),
    "sentence-embeddings truncation": (SentenceParameters, None),
    "sentence-embeddings madlib": (MetricParameters, Madlib.metric),
    "word-embeddings": (UserParameters, None),
}
_BAGS = ("bag-of-words", "histogram")
_TABLES = {
    layout.VOCABULARY: ["term_id", "term", "weight"],
    layout.COMPRESSION: ["term_id", "bin"],
}


def verify(path: str) -> Card:
    """The card of a release in which everything is as the card says; raises InputError if not."""
    FileSystems.set_options(PipelineOptions([]))
    output = absolute(path)
    card = _read_card(output)
    if card.mechanism.get("kind") not in _DATA:
        raise InputError(
            f"{output}/{layout.CARD}: mechanism.kind: {card.mechanism.get('kind')!r} is no kind "
            f"of release that is known here; they are {', '.join(_DATA)}"
        )
    for file in card.files:
        uri = f"{output}/{file.path}"
        if posixpath.normpath(file.path) != file.path or file.path.startswith(("/", "..")):
            raise InputError(f"{output}/{layout.CARD}: files: {file.path} is not a plain path")
        try:
            content = storage.read_bytes(uri)
        except (OSError, BeamIOError):
            raise InputError(
                f"{uri}: missing or unreadable, though release.json lists it"
            ) from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise InputError(f"{uri}: not the file that release.json describes (sha256 differs)")
        if not (_is_of_words(card) and file.path in verify_embeddings.OTHERS):
            _check_table(uri, file.path, file.rows, content, card)
    _check_sum(output, card)
    _check_completeness(output, card)
    _check_readme(f"{output}/{layout.README}", card)
    _refuse_strangers(output, card)
    if _is_of_words(card):
        verify_embeddings.check(output, card)
    return card


def _is_of_words(card: Card) -> bool:
    return card.mechanism.get("kind") == "word-embeddings"


def _read_card(output: str) -> Card:
    uri = f"{output}/{layout.CARD}"
    try:
        content = storage.read_bytes(uri)
    except (OSError, BeamIOError, ValueError):
        raise InputError(f"{output}: no release here: {layout.CARD} is missing") from None
    try:
        return Card.model_validate_json(content)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{uri}: not a release card of version 1: {where}: {first['msg']}"
        ) from None


def _check_sum(output: str, card: Card) -> None:
    """The stages must add up to the total, and the guarantee must be that total."""
    try:
        total = compose(Spending(s.stage, s.parameters.guarantee) for s in card.budget.stages)
        # Equal parameters are rounded alike, so that no decimal understates its rational.
        agree = parameters(total) == card.budget.total == card.guarantee.parameters
    except (ArithmeticError, TypeError, ValueError):  # of different definitions, or impossible
        agree = False
    if not agree:
        raise InputError(f"{output}/{layout.CARD}: budget: the stages do not add up to the total")
    if card.budget.inherited != inherited(card.artefacts):
        raise InputError(
            f"{output}/{layout.CARD}: budget: what private artefacts cost is not as they say"
        )
    _check_promise(f"{output}/{layout.CARD}", card)
    if card.guarantee != guarantee(total, card.guarantee.not_protected, card.artefacts):
        raise InputError(f"{output}/{layout.CARD}: guarantee: its words are not the budget's")


def _check_promise(uri: str, card: Card) -> None:
    """A mechanism gives its own kind of guarantee, at its own epsilon, and protects not all."""
    name = " ".join(str(card.mechanism.get(key, "")) for key in ("kind", "mechanism"))
    promise = _PROMISES.get(name.strip())
    total = card.budget.total
    metric = getattr(total, "metric", None)
    if promise is None or (type(total), metric) != promise:
        raise InputError(f"{uri}: mechanism: it does not give such a guarantee, or is not known")
    if not card.guarantee.not_protected:
        raise InputError(f"{uri}: guarantee: it does not say what is not protected")


def _check_completeness(output: str, card: Card) -> None:
    """A release of bags has a vocabulary, and one of documents as many rows as documents."""
    uri = f"{output}/{layout.CARD}"
    kind = card.mechanism.get("kind")
    if not isinstance(kind, str) or kind not in _DATA:
        raise InputError(f"{uri}: mechanism: {kind!r} is no kind that this version knows")
    if kind in _BAGS and layout.VOCABULARY not in [file.path for file in card.files]:
        raise InputError(f"{uri}: files: {layout.VOCABULARY} is missing")
    if kind == "words":
        _check_words(uri, card, card.artefacts)
    if kind == "sentence-embeddings":
        _check_sentences(uri, card)
    if ("id" in card.columns) != (card.id_column is not None):
        raise InputError(f"{uri}: columns: it does not say which of the input's is copied as id")
    rows = sum(file.rows for file in card.files if file.path.startswith("data/"))
    if _DATA[kind] and rows != card.counts.documents:
        raise InputError(f"{uri}: counts: {card.counts.documents} documents, but {rows} rows")


def _columns(card: Card) -> list[str]:
    """The columns of a data file, but for kept ones."""
    columns = _DATA.get(str(card.mechanism.get("kind")), [])
    drawn = card.mechanism.get("mechanism") == "deep-candidate"
    included = ["bins"] if card.mechanism.get("include") == ["bins"] else []
    return [name for name in columns if drawn or name != "candidate"] + included


def _check_words(uri: str, card: Card, artefacts: Sequence[Artefact]) -> None:
    """A guarantee in a metric means nothing without the index that has it."""
    if [artefact.name for artefact in artefacts] != ["index"] or card.meaning is None:
        raise InputError(f"{uri}: artefacts: the index, or what epsilon means there, is missing")
    if (artefacts[0].provenance == "private") != (artefacts[0].guarantee is not None):
        raise InputError(f"{uri}: artefacts: a private index, and no other, has a guarantee")
    total = card.budget.total
    meaning = card.meaning
    for name, distance, loss in (
        ("mean", meaning.mean_distance, meaning.loss_at_mean),
        ("maximum", meaning.maximum_distance, meaning.loss_at_maximum),
    ):
        if not math.isclose(loss, distance * total.epsilon, rel_tol=1e-9):
            raise InputError(f"{uri}: meaning: loss_at_{name} is not epsilon times the distance")
    _check_epsilon(uri, card)


def _check_epsilon(uri: str, card: Card) -> None:
    total = card.budget.total
    if card.mechanism.get("epsilon_exact") != total.epsilon_exact:
        raise InputError(f"{uri}: mechanism: epsilon_exact is not the budget's")
    own = card.mechanism.get("epsilon", card.mechanism.get("document_epsilon"))
    if own != total.epsilon:
        raise InputError(f"{uri}: mechanism: epsilon is not the budget's")


def _check_sentences(uri: str, card: Card) -> None:
    """What is drawn or clipped by must be public: nothing accounts for it."""
    found = {artefact.name: artefact.provenance for artefact in card.artefacts[:2]}
    if found != {"candidates": "public", "encoder": "public"}:
        raise InputError(f"{uri}: artefacts: not public candidates and a public encoder")
    if card.mechanism.get("mechanism") == "madlib":
        _check_words(uri, card, card.artefacts[2:])
        return
    if len(card.artefacts) > len(found):
        raise InputError(f"{uri}: artefacts: more than candidates and an encoder")
    _check_epsilon(uri, card)


def _check_readme(uri: str, card: Card) -> None:
    try:
        content = storage.read_bytes(uri)
    except Exception:  # every object store's client has exceptions of its own
        raise InputError(f"{uri}: missing or unreadable") from None
    if hashlib.sha256(content).hexdigest() != card.readme_sha256:
        raise InputError(f"{uri}: not the file that release.json describes (sha256 differs)")


def _check_table(uri: str, path: str, rows: int, content: bytes, card: Card) -> None:
    name = path.split("/", maxsplit=1)[0]
    kind = str(card.mechanism.get("kind"))
    tables = (_TABLES if kind in _BAGS else {}) | {"data": _columns(card)}
    if _is_of_words(card):
        tables = verify_embeddings.TABLES
    if not tables.get(name):
        raise InputError(f"{uri}: no such file belongs to a release")
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        raise InputError(f"{uri}: not a Parquet file") from None
    if file.metadata.num_rows != rows:
        raise InputError(f"{uri}: {file.metadata.num_rows} rows, but release.json says {rows}")
    stated = {*tables[name], *(card.columns if name == "data" else [])}
    wrong = stated.symmetric_difference(file.schema_arrow.names)
    if wrong:
        names = ", ".join(sorted(wrong))
        raise InputError(f"{uri}: columns that release.json does not account for: {names}")


def _refuse_strangers(output: str, card: Card) -> None:
    expected = {f"{output}/{name}" for name in (layout.README, layout.CARD)}
    expected |= {f"{output}/{file.path}" for file in card.files}
    (found,) = FileSystems.match([f"{output}/**"])
    for metadata in found.metadata_list:
        if metadata.path not in expected:
            raise InputError(
                f"{metadata.path}: not part of the release; release.json lists no such file"
            )
