"""Rows gathered into batches of documents; unreadable rows are refused, or set apart."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.timestamp import Timestamp

from quietcorpus.mechanisms.keystream import ReleaseKey

from ..errors import InputError, cut, redacted
from ..reading.copies import Copies
from ..reading.documents import BATCH_BYTES, BATCH_DOCUMENTS, Documents
from ..reading.identifiers import Identifiers
from .fields import Fields, Row, canonical

COPIES = "copies"
ERRORS = "errors"
_IS_A_DICTIONARY = "it is a dictionary, and the schema promises fields"


class ReadRows(beam.DoFn):
    """A DoFn from rows to `Documents`, and their identifiers, copies and errors as tagged outputs.

    Which rows share a batch is the engine's choice.
    """

    def __init__(
        self, fields: Fields, key: Callable[[], ReleaseKey], label: str, *, errors: bool
    ) -> None:
        """Configure for the transform `label`; unreadable rows fail it, unless `errors` are out."""
        self._fields = fields
        self._forms = fields.forms()
        self._required = fields.required
        self._key = key
        self._label = label
        self._errors = errors

    def start_bundle(self) -> None:
        self._release_key = self._key()
        self._clear()

    def _clear(self) -> None:
        self._ids: list[bytes] = []
        self._texts: list[str] = []
        self._columns: dict[str, list[Any]] = {name: [] for name in self._fields.columns}
        self._size = 0

    @redacted
    def process(self, row: Row) -> Iterator[object]:
        given: dict[str, Any] = {name: getattr(row, name, None) for name in self._forms}
        if isinstance(row, dict):
            yield self._refused(given, _IS_A_DICTIONARY)
        else:
            yield from self._taken(given)

    @redacted
    def finish_bundle(self) -> Iterator[object]:
        if self._texts:
            yield from map(_untimed, self._batch())

    def _taken(self, given: dict[str, Any]) -> Iterator[object]:
        """Take a row's fields; yield what is complete with it, or the row's error."""
        if problem := self._problem(given):
            yield self._refused(given, problem)
            return
        text = given[self._fields.text]
        self._texts.append(text)
        self._ids.append(canonical(given[self._fields.id]))
        for name, values in self._columns.items():
            values.append(given[name])
        self._size += sum(len(one) for one in given.values() if isinstance(one, str | bytes))
        if len(self._texts) == BATCH_DOCUMENTS or self._size >= BATCH_BYTES:
            yield from map(_untimed, self._batch())

    def _problem(self, given: dict[str, Any]) -> str | None:
        """Return the reason why a row cannot be read, without its content; None if it can."""
        for name, form in self._forms.items():
            value = given[name]
            if value is None:
                if name in self._required:
                    return f"the field {cut(name)} is null"
            elif problem := form.problem(value):
                return f"the field {cut(name)} {problem}"
        return None

    def _refused(self, given: dict[str, Any], problem: str) -> TaggedOutput:
        if not self._errors:
            raise InputError(
                f"{self._label}: a row cannot be read: {problem}; drop such rows before, or set "
                "them apart as errors"
            )
        identifier = given[self._fields.id]
        readable = identifier is not None and not self._forms[self._fields.id].problem(identifier)
        return TaggedOutput(ERRORS, beam.Row(id=identifier if readable else None, reason=problem))

    def _batch(self) -> Iterator[object]:
        """Yield the batch that was gathered, and begin another one."""
        columns = {
            name: pa.array(map(_plain, values), self._forms[name].arrow)
            for name, values in self._columns.items()
        }
        documents = Documents(
            "",
            np.arange(len(self._texts), dtype=np.int64),
            pa.array(self._texts, pa.large_string()),
            pa.table(columns),
            ids=self._ids,
        )
        self._clear()
        yield from self._outputs(documents)

    def _outputs(self, documents: Documents) -> Iterator[object]:
        # Every batch has a different number: equal ones are a corpus given twice.
        identifiers = Identifiers(self._fields.id, self._release_key, uuid.uuid4().int)
        identifiers.add(documents)
        yield from identifiers.outputs()
        yield TaggedOutput(COPIES, Copies.of(documents, self._fields.keep))
        yield documents


class ReadBatches(ReadRows):
    """A DoFn as `ReadRows`, which also takes many rows in one table, where a step gives them so.

    Beam's source of Parquet does.
    """

    def get_input_batch_type(self, _: Any) -> Any:
        """Return the type of a batch; Beam cannot read annotations that are strings."""
        return pa.Table

    @beam.DoFn.yields_elements  # type: ignore[untyped-decorator]
    @redacted
    def process_batch(self, table: pa.Table) -> Iterator[object]:
        for start in range(0, len(table), BATCH_DOCUMENTS):
            columns = self._columns_of(table.slice(start, BATCH_DOCUMENTS))
            if self._is_whole(columns):
                yield from map(_untimed, self._outputs(self._documents(columns)))
                continue
            values = map(_values, columns.values())
            for row in zip(*values, strict=True):
                yield from self._taken(dict(zip(columns, row, strict=True)))

    def _columns_of(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Return the fields that are read, by name: files may have them in different orders.

        A field that is not there is null. Values are copied, since a slice keeps what it is of.
        """
        found = rows.schema.names
        return {
            name: rows[name].combine_chunks() if name in found else pa.nulls(len(rows))
            for name in self._forms
        }

    def _is_whole(self, columns: dict[str, pa.Array]) -> bool:
        """Return whether rows are one batch of documents as they are: no row is looked at."""
        some = next(iter(columns.values()))
        return (
            len(some) == BATCH_DOCUMENTS
            and sum(column.nbytes for column in columns.values()) < BATCH_BYTES
            and all(
                self._forms[name].holds(column)
                and not (column.null_count and name in self._required)
                for name, column in columns.items()
            )
        )

    def _documents(self, columns: dict[str, pa.Array]) -> Documents:
        others = {name: columns[name].cast(self._forms[name].arrow) for name in self._columns}
        texts = columns[self._fields.text].cast(pa.large_string())
        ids = [canonical(one) for one in columns[self._fields.id].to_pylist()]
        return Documents("", np.arange(len(texts)), texts, pa.table(others), ids=ids)


def _values(column: pa.Array) -> list[Any]:
    """Return a column's values; what is not UTF-8 has surrogates, which `Form.problem` finds."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if one is None else one.decode(errors="surrogateescape") for one in raw]


def _untimed(output: object) -> object:
    """Remove the timestamp of an output.

    By default Beam would stamp it, and all rows released with it, with the time of the row that
    completes the batch, which no caller asked to keep.
    """
    if isinstance(output, TaggedOutput):
        return TaggedOutput(output.tag, GlobalWindows.windowed_value(output.value))
    return GlobalWindows.windowed_value(output)


def _plain(value: Any) -> Any:
    return value.micros if isinstance(value, Timestamp) else value
