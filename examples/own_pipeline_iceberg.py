"""A Beam pipeline of your own, from an Iceberg table to another, with words privatised.

    make iceberg                                # once: Beam's service for Iceberg, in Java
    java -jar build/iceberg/expansion-service.jar 8097 --alsoStartLoopbackWorker &
    python own_pipeline_iceberg.py private.complaints index released.complaints warehouse \
        127.0.0.1:8097 --runner=FnApiRunner

The catalogue is the folder `warehouse`; another one has other properties. The service runs the
steps in Java, sees private rows, and serves one pipeline: start it anew for the next.
"""

import sys
from pathlib import Path

import apache_beam as beam
from apache_beam import managed
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.beam import PrivatizeWords


def main(
    private: str, index: str, released: str, warehouse: str, service: str, *options: str
) -> None:
    """Read a table as rows, and write them privatised to another, which Beam makes if need be."""
    words = PrivatizeWords(
        "complaints-2026-11",
        index=index,
        mechanism="madlib",
        epsilon=10,
        text="narrative",
        id="complaint_id",
        keep=["product"],
    )
    place = {"type": "hadoop", "warehouse": Path(warehouse).absolute().as_uri()}
    catalogue = {"catalog_name": "local", "catalog_properties": place}
    read = managed.Read(
        managed.ICEBERG, config={"table": private, **catalogue}, expansion_service=service
    )
    write = managed.Write(
        managed.ICEBERG, config={"table": released, **catalogue}, expansion_service=service
    )
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        made = pipeline | "private" >> read | words
        made.rows | "released" >> write
        made.card | beam.io.WriteToText("card", file_name_suffix=".json", num_shards=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
