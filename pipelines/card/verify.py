"""Checking a release against its card: schema, digests, rows, columns, and no other files."""

from __future__ import annotations

import hashlib
import posixpath

import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
from apache_beam.io.filesystem import BeamIOError

from quietcorpus.mechanisms.guarantees import Guarantee, Spending, compose
from quietcorpus.pipelines import registry
from quietcorpus.pipelines.card import signature
from quietcorpus.pipelines.card.mechanism import UNKNOWN_KIND, FileFormat, Promise
from quietcorpus.pipelines.card.model import Card, File
from quietcorpus.pipelines.card.parameters import disagree, is_rounded, parameters
from quietcorpus.pipelines.card.statements import guarantee, inherited
from quietcorpus.pipelines.card.together import together
from quietcorpus.pipelines.spec.errors import first_line
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage import layout
from quietcorpus.pipelines.storage.places import absolute
from quietcorpus.pipelines.terminal.progress import Display
from quietcorpus.transforms.errors import InputError, blamed, client_errors


def verify(path: str, *, public_key: str | None = None, progress: bool = False) -> Card:
    """Check that a release is as its card says, and return the card; raises InputError if not.

    With `public_key`, the path of a PEM file, the card must be signed by that key. With `progress`,
    a bar is shown.
    """
    output = absolute(path)
    content = card_content(output)
    signature.check(output, content, public_key)
    card = parse_card(output, content)
    with Display("checking files", len(card.files), "files", bar=progress) as display:
        for file in card.files:
            content = read_listed(output, file)
            _check_format(f"{output}/{file.path}", file.path, file.rows, content, card)
            display.advance()
    _check_sum(output, card)
    _check_completeness(output, card)
    for name, digest in _pages(card).items():
        _check_page(f"{output}/{name}", digest)
    _refuse_strangers(output, card)
    if check := registry.part(card.mechanism.kind, "check"):
        check(output, card)
    return card


def read_listed(output: str, file: File) -> bytes:
    """Return the content of a file that a card lists; raises InputError if its digest differs."""
    uri = f"{output}/{file.path}"
    _check_path(output, file.path)
    with client_errors(f"{uri}:", "missing or unreadable, though release.json lists it"):
        content = storage.read_bytes(uri)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(f"{uri}: not the file that release.json describes (sha256 differs)")
    return content


def _check_path(output: str, path: str) -> None:
    if posixpath.normpath(path) != path or path.startswith(("/", "..")):
        raise InputError(f"{output}/{layout.CARD}: files: {path} is not a plain path")


def read_card(output: str) -> Card:
    """Return the card of the release at an output; raises InputError if there is none."""
    return parse_card(output, card_content(output))


def card_content(output: str) -> bytes:
    """Return the bytes of the card at an output; raises InputError if there is none."""
    uri = f"{output}/{layout.CARD}"
    with client_errors(uri, "cannot be read; check the path and the permissions"):
        try:
            return storage.read_bytes(uri)
        except (OSError, BeamIOError, ValueError) as error:
            problem = f"no release here: {layout.CARD} is missing"
            raise blamed(error, f"{output}:", problem) from None


def parse_card(output: str, content: bytes) -> Card:
    """Parse the card of the release at an output; raises InputError for anything else."""
    uri = f"{output}/{layout.CARD}"
    try:
        return Card.model_validate_json(content)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == UNKNOWN_KIND:
            raise InputError(f"{uri}: mechanism.kind: {first['msg']}") from None
        raise InputError(f"{uri}: not a release card of version 1: {first_line(error)}") from None


def check_card(output: str, card: Card) -> None:
    """Check what a card says by itself, without its files; raises InputError."""
    for file in card.files:
        _check_path(output, file.path)
        _format_of(f"{output}/{file.path}", file.path, card)
    _check_sum(output, card)


def _check_sum(output: str, card: Card) -> None:
    """Check that the stages add up to the total, and that the guarantee states that total."""
    # `parameters` rounds up: equality shows that no decimal understates its rational.
    try:
        spent = [Spending(s.stage, s.parameters.guarantee) for s in card.budget.stages]
        total = compose(spent)
        agree = parameters(total) == card.budget.total == card.guarantee.parameters
    except (ArithmeticError, TypeError, ValueError):  # of different definitions, or impossible
        agree = False
    if not agree:
        raise InputError(f"{output}/{layout.CARD}: budget: the stages do not add up to the total")
    if not all(is_rounded(stage.parameters) for stage in card.budget.stages):
        raise InputError(
            f"{output}/{layout.CARD}: budget: the decimals of a stage are not its rationals"
        )
    if card.budget.inherited != inherited(card.artefacts):
        raise InputError(
            f"{output}/{layout.CARD}: budget: what private artefacts cost is not as they say"
        )
    if any(disagree((a.guarantee or {}).get("parameters")) for a in card.artefacts):
        raise InputError(
            f"{output}/{layout.CARD}: budget: the decimals of what a private artefact cost are not "
            "its rationals"
        )
    _check_promise(f"{output}/{layout.CARD}", card)
    _check_words(f"{output}/{layout.CARD}", card, total)


def _check_words(uri: str, card: Card, total: Guarantee) -> None:
    """Check what the release and its private artefacts cost together, and the guarantee's words."""
    limits, counted = card.guarantee.not_protected, card.counts is not None
    try:
        noise = card.mechanism.concentrated if card.budget.inherited else None
        both = together(total, noise, card.artefacts)
        agree = card.budget.together == (None if both is None else parameters(both))
    except (ArithmeticError, KeyError, TypeError, ValueError):
        agree = False
    if not agree:
        raise InputError(
            f"{uri}: budget: what release and private artefacts cost together is not as they say"
        )
    if card.guarantee != guarantee(total, limits, card.artefacts, counted=counted, noise=noise):
        raise InputError(f"{uri}: guarantee: its words do not match the budget")


def _check_promise(uri: str, card: Card) -> None:
    """Check that the mechanism gives this kind of guarantee, and that its limits are stated."""
    total = card.budget.total
    found = Promise(type(total), getattr(total, "metric", None))
    if card.mechanism.promise != found:
        raise InputError(f"{uri}: mechanism: it does not give such a guarantee, or is not known")
    if not card.guarantee.not_protected:
        raise InputError(f"{uri}: guarantee: it does not say what is not protected")


def _check_completeness(output: str, card: Card) -> None:
    """Check that every required file is listed, and that there are as many rows as documents."""
    uri = f"{output}/{layout.CARD}"
    paths = [file.path for file in card.files]
    for path in card.mechanism.required:
        if path not in paths:
            raise InputError(f"{uri}: files: {path} is missing")
    if ("id" in card.columns) != (card.id_column is not None):
        raise InputError(f"{uri}: columns: it does not say which of the input's is copied as id")
    rows = sum(file.rows for file in card.files if file.path.startswith("data/"))
    if "data" not in card.mechanism.files:
        return
    stated = card.counts.documents if card.counts else "no number of"
    if rows != stated:
        raise InputError(f"{uri}: counts: {stated} documents, but {rows} rows")


def _pages(card: Card) -> dict[str, str]:
    """Return the digests of what is for people; older releases have a README alone."""
    found = {layout.README: card.readme_sha256, layout.PAGE: card.page_sha256}
    return {name: digest for name, digest in found.items() if digest is not None}


def _check_page(uri: str, digest: str) -> None:
    with client_errors(f"{uri}:", "missing or unreadable"):
        content = storage.read_bytes(uri)
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"{uri}: not the file that release.json describes (sha256 differs)")


def _check_format(uri: str, path: str, rows: int, content: bytes, card: Card) -> None:
    name, expected = _format_of(uri, path, card)
    if expected.columns is None:
        return
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        raise InputError(f"{uri}: not a Parquet file") from None
    if file.metadata.num_rows != rows:
        raise InputError(f"{uri}: {file.metadata.num_rows} rows, but release.json says {rows}")
    stated = {*expected.columns, *(card.columns if name == "data" else [])}
    wrong = stated.symmetric_difference(file.schema_arrow.names)
    if wrong:
        names = ", ".join(sorted(wrong))
        raise InputError(f"{uri}: columns that release.json does not account for: {names}")


def _format_of(uri: str, path: str, card: Card) -> tuple[str, FileFormat]:
    """Return the name under which the mechanism describes a file, and the format."""
    name = layout.described(path)
    expected = card.mechanism.files.get(name)
    if expected is None:
        raise InputError(f"{uri}: no such file belongs to a release")
    return name, expected


def _refuse_strangers(output: str, card: Card) -> None:
    expected = {f"{output}/{name}" for name in (*_pages(card), layout.CARD, layout.SIGNATURE)}
    expected |= {f"{output}/{file.path}" for file in card.files}
    with client_errors(output, "cannot be listed; check the path and the permissions"):
        there = storage.listed(f"{output}/**")
    for path in there:
        if path not in expected:
            raise InputError(f"{path}: not part of the release; release.json lists no such file")
