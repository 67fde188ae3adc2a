"""A pipeline that runs in this process, and what its collections held."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.combiners import ToListCombineFn

Outputs = Mapping[str, beam.PCollection]


def run(build: Callable[[beam.Pipeline], Outputs], **runner: Any) -> dict[str, list[Any]]:
    """The elements of each collection that `build` names, in no order.

    `runner` is for `FnApiRunner`.
    """
    with TemporaryDirectory() as folder:
        with beam.Pipeline(runner=FnApiRunner(**runner)) as pipeline:
            outputs = build(pipeline)
            for name, collection in outputs.items():
                (
                    collection
                    | f"list {name}" >> beam.CombineGlobally(ToListCombineFn())
                    | f"keep {name}" >> beam.Map(_keep, str(Path(folder, name)))
                )
        return {name: pickle.loads(Path(folder, name).read_bytes()) for name in outputs}


def _keep(elements: list[Any], path: str) -> None:
    Path(path).write_bytes(pickle.dumps(elements))
