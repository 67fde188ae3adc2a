#!/bin/bash
# apache-beam 2.77.0, Python 3.11: a type hint of `int` turns 1.5 into 1, without an error.
#
# Guess: type hints are checked when the graph is built, at best; a value that does not fit its hint is an error where it is encoded, as a
#   number is under the hint `str`, or travels as it is. Runs without a shuffle and with one have the same values.
# Seen: between two stages, values are written by the coder of the hint: under `int`, .5, 1.0 and 1.5 arrive as 0, 1 and 1; under `float`,
#   2**60 + 1 loses its last digit. Without a shuffle the values are intact, so a Reshuffle that was added for speed changes results.
# Met: weights, clipped counts and noise that pass a step whose annotation says `int` (annotations of functions are hints); ids of 64 bits
#   beside floats. `--runtime_type_check` finds it.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q apache-beam==2.77.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import logging
import pathlib
import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

logging.disable(logging.CRITICAL)


def passed(values: list, hint: type, shuffled: bool) -> list[str]:
    """The values after a step with such a hint."""
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        rows = pipeline | beam.Create([0]) | beam.FlatMap(lambda _: values).with_output_types(hint)
        if shuffled:
            rows |= beam.Reshuffle()
        _ = rows | "Show" >> beam.Map(repr) | beam.io.WriteToText("out", num_shards=1, shard_name_template="")
    return sorted(pathlib.Path("out").read_text().split())


for values, hint in (([0.5, 1.0, 1.5], int), ([2**60 + 1], float)):
    before, after = passed(values, hint, False), passed(values, hint, True)
    print(f"hint {hint.__name__}: {before} without a shuffle, {after} after one")
    assert before == [repr(value) for value in values]
    assert after == [repr(hint(value)) for value in values] != before
try:
    passed([1], str, True)
except Exception as error:
    print("hint str:", str(error).splitlines()[0])
else:
    sys.exit("a number passes under the hint str")
PROGRAM
