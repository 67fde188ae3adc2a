"""A Beam pipeline of your own, from a BigQuery table to another, on Dataflow.

    python own_pipeline_bigquery.py project:private.complaints gs://bucket/index \
        project:released.complaints --runner=DataflowRunner --project=project ...
"""

import sys
from typing import NamedTuple

import apache_beam as beam
from apache_beam.io.gcp.bigquery import ReadFromBigQuery, WriteToBigQuery
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.beam import PrivatizeWords


class Complaint(NamedTuple):
    """The columns that are read: a row of a table may have others."""

    complaint_id: str
    product: str
    narrative: str


def complaint(row: dict[str, str]) -> Complaint:
    """Take the columns of a row of BigQuery's."""
    return Complaint(*(row[name] for name in Complaint._fields))


def main(source: str, index: str, released: str, *options: str) -> None:
    """Read a table, and write one with the rows privatised."""
    words = PrivatizeWords(
        "complaints-2026-11",
        index=index,
        mechanism="madlib",
        epsilon=10,
        text="narrative",
        id="complaint_id",
        keep=["product"],
    )
    # The read method exports a snapshot: all attempts at a step see the same rows.
    read = ReadFromBigQuery(table=source, method=ReadFromBigQuery.Method.EXPORT)
    write = WriteToBigQuery(
        released,
        schema="id:STRING,product:STRING,text:STRING",
        create_disposition="CREATE_IF_NEEDED",
        write_disposition="WRITE_EMPTY",
        method=WriteToBigQuery.Method.FILE_LOADS,
    )
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        rows = pipeline | "private" >> read | beam.Map(complaint).with_output_types(Complaint)
        made = rows | words
        made.rows | beam.Map(lambda row: row._asdict()) | "released" >> write


if __name__ == "__main__":
    main(*sys.argv[1:])
