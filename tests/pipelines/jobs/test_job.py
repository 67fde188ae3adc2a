"""The graph that every kind shares."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import apache_beam as beam
from apache_beam.portability import common_urns

from quietcorpus.pipelines.jobs.job import splits_of
from quietcorpus.transforms.reading.documents import Split


def test_splits_are_spread_over_the_workers() -> None:
    """Kills: a graph that an engine fuses into one step, read by one worker."""
    job: Any = SimpleNamespace(plan=SimpleNamespace(splits=[Split("a", "csv"), Split("b", "csv")]))
    pipeline = beam.Pipeline()
    splits_of(pipeline, job) | beam.Map(print)
    transforms = pipeline.to_runner_api().components.transforms.values()
    assert common_urns.composites.RESHUFFLE.urn in {each.spec.urn for each in transforms}
