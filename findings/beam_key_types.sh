#!/bin/bash
# apache-beam 2.77.0, Python 3.11: keys that are numpy.str_ or numpy.float64 are refused, and keys that are dicts group.
#
# Guess: keys without a hint may be what has a fixed encoding: numbers and strings, subclasses included (numpy.str_ is a str, and equal to
#   it), and frozen sets. A dict, unhashable and without an order, is refused.
# Seen: GroupByKey stops at numpy.str_, numpy.float64, numpy.int64 and frozenset ("Unable to deterministically encode"), and groups dicts of
#   equal items, whatever their order. 1, True and 1.0 are three keys, and so are 0.0 and -0.0 two.
# Met: keys from arrays (`for word in array` gives numpy.str_; sums give numpy.float64), where tests used literals; with a hint of `str` or
#   `int`, or `.tolist()`, they pass.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q apache-beam==2.77.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import logging
import pathlib

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

logging.disable(logging.CRITICAL)


def groups(*keys) -> int:
    """The number of groups that such keys make, or 0 if they are refused."""
    try:
        with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
            pairs = pipeline | beam.Create([0]) | beam.FlatMap(lambda _: [(key, 1) for key in keys])
            grouped = pairs | beam.GroupByKey() | beam.Map(lambda pair: "group")
            _ = grouped | beam.io.WriteToText("out", num_shards=1, shard_name_template="")
    except Exception as error:
        assert "Unable to deterministically encode" in str(error), error
        return 0
    return len(pathlib.Path("out").read_text().split())


expected = {
    "str": (["a", "a"], 1),
    "numpy.str_": ([np.str_("a")], 0),
    "float64": ([np.float64(1.5)], 0),
    "int64": ([np.int64(1)], 0),
    "frozenset": ([frozenset("ab")], 0),
    "dict": ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], 1),
    "numbers": ([1, True, 1.0], 3),
    "zeros": ([0.0, -0.0], 2),
}
found = {name: groups(*keys) for name, (keys, _) in expected.items()}
print(found)
assert found == {name: number for name, (_, number) in expected.items()}
PROGRAM
