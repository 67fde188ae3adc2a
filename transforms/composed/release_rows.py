"""The release of documents that come as rows, held back until the whole input is known to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from apache_beam.typehints.arrow_type_compatibility import arrow_schema_from_beam_schema
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import typing_to_runner_api
from apache_beam.utils.timestamp import Timestamp

from quietcorpus.mechanisms.keystream import ReleaseKey

from ..errors import redacted
from ..metrics import Progress
from ..privatizers.rows import ORDER, Parameters, PreparedPrivatizer
from ..reading.documents import Documents
from ..reading.identifiers import covered
from .fields import Fields

COVERED = "covered"


class ReleaseDocuments(beam.DoFn):
    """A DoFn from batches of documents to tables of their released columns and kept fields.

    A row is a function of its document, its id and the key, whatever batch they come in. The tagged
    output `COVERED` tells which documents have been released.
    """

    def __init__(
        self, fields: Fields, parameters: Parameters, key: Callable[[], ReleaseKey]
    ) -> None:
        self._released = fields.released()
        self._id = fields.id
        self._privatizer = PreparedPrivatizer(parameters)
        self._key = key
        self._progress = Progress("release")

    def start_bundle(self) -> None:
        self._release_key = self._key()

    @redacted
    def process(self, batch: Documents, side: Any = None) -> Iterator[object]:
        privatizer = self._privatizer.of(self._release_key, side)
        parts = []
        for documents in batch.parts(privatizer.documents_at_once):
            released = privatizer.release(documents)
            self._progress.count(documents, released.tokens)
            parts.append(released.rows.drop_columns([ORDER]))
        rows = pa.concat_tables(parts)
        fresh = {} if "id" in self._released else {"id": rows["id"]}
        kept = {name: batch.columns[field] for name, field in self._released.items()}
        own = {name: rows[name] for name in rows.column_names if name != "id"}
        yield pa.table(fresh | kept | own).combine_chunks()
        assert batch.ids is not None
        stream = self._release_key.identifying(self._id)
        digests = stream.addresses("", [0] * len(batch.ids), batch.ids)
        yield TaggedOutput(COVERED, covered(digests))


class AsRows(beam.DoFn):
    """A DoFn from tables to rows, which waits for checks that the whole input has passed.

    Those of `once`, if there are any, are of what was released.
    """

    def __init__(self, times: Iterable[str] = ()) -> None:
        """Configure for tables in which the columns `times` hold microseconds."""
        self._times = frozenset(times)

    @redacted
    def process(
        self, table: pa.Table, checks: Iterable[object] = (), once: Iterable[object] = ()
    ) -> Iterator[beam.Row]:
        for each in (checks, once):
            list(each)  # some engines compute a side input only where it is read
        names = table.column_names
        columns = [_values(table[name]) for name in names]
        for place, name in enumerate(names):
            if name in self._times:
                columns[place] = [
                    None if one is None else Timestamp(micros=one) for one in columns[place]
                ]
        for values in zip(*columns, strict=True):
            yield beam.Row(**dict(zip(names, values, strict=True)))


class AsBatches(AsRows):
    """A DoFn from tables to rows, many in one batch as far as those who take them can take it.

    Beam's sink of Parquet takes tables; anyone else gets a row at a time.
    """

    def __init__(self, row_type: RowTypeConstraint, schema: pa.Schema) -> None:
        """Configure for rows of a type, which Arrow has by this schema."""
        super().__init__()
        self._row_type = row_type
        self._schema = schema

    def infer_output_type(self, _: Any) -> RowTypeConstraint:
        """Return the type of a row."""
        return self._row_type

    def get_output_batch_type(self, _: Any) -> Any:
        """Return the type of a batch; Beam cannot read annotations that are strings."""
        return pa.Table

    @beam.DoFn.yields_batches  # type: ignore[untyped-decorator]
    @redacted
    def process(
        self, table: pa.Table, checks: Iterable[object] = (), once: Iterable[object] = ()
    ) -> Iterator[pa.Table]:
        for each in (checks, once):
            list(each)  # some engines compute a side input only where it is read
        columns = [table[field.name].cast(field.type) for field in self._schema]
        yield pa.table(columns, schema=self._schema)


def arrow_schema(row_type: RowTypeConstraint) -> pa.Schema | None:
    """Return the schema that Beam gives to a table of such rows; None if it knows none."""
    try:
        return arrow_schema_from_beam_schema(typing_to_runner_api(row_type).row_type.schema)
    except (NotImplementedError, TypeError, ValueError):  # such as timestamps
        return None


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values; Arrow takes ten times as long for lists, value by value."""
    array = column.combine_chunks()
    if not pa.types.is_list(array.type) and not pa.types.is_fixed_size_list(array.type):
        return list(array.to_pylist())
    flat = array.flatten().to_numpy()
    if pa.types.is_fixed_size_list(array.type):
        return list(flat.reshape(len(array), array.type.list_size).tolist())
    bounds = array.offsets.to_numpy() - array.offsets[0].as_py()
    return [flat[a:b].tolist() for a, b in zip(bounds, bounds[1:], strict=False)]
