"""A Beam pipeline of your own, with words privatised in the middle.

    python own_pipeline.py complaints.parquet index released

Beam's own options follow, such as `--runner=FlinkRunner`.
"""

import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.beam import PrivatizeWords


def main(source: str, index: str, released: str, *options: str) -> None:
    """Read complaints as rows, and write them privatised, with their card."""
    words = PrivatizeWords(
        "complaints-2026-11",
        index=index,
        mechanism="madlib",
        epsilon=10,
        text="narrative",
        id="complaint_id",
        keep=["product"],
    )
    print(words.card["guarantee"]["statement"])
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        rows = pipeline | beam.io.ReadFromParquet(source, as_rows=True)
        # Steps of your own may come here: they see private text.
        made = rows | words
        # Or here: they see nothing but what is released.
        made.rows | beam.io.WriteToParquet(f"{released}/rows", file_name_suffix=".parquet")
        made.card | beam.io.WriteToText(f"{released}/card", file_name_suffix=".json", num_shards=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
