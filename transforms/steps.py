"""Steps in which a worker calls a function of a layer above: the DoFns live here, with their guard.

A card, a table or a refusal is made of what a pipeline has released, by code that knows specs and
cards. The launcher pickles such a function into one of these steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from .errors import redacted
from .reading.documents import Documents

_LOGGER = logging.getLogger("quietcorpus")


class Apply(beam.DoFn):
    """A DoFn that yields all that a function makes of an element and the side inputs."""

    def __init__(self, function: Callable[..., Iterable[Any]]) -> None:
        self._function = function

    @redacted
    def process(self, element: Any, *sides: Any) -> Iterator[Any]:
        yield from self._function(element, *sides)


class Check(beam.DoFn):
    """A DoFn that yields its elements, unless a function of them and the side inputs refuses."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    @redacted
    def process(self, element: Any, *sides: Any) -> Iterator[Any]:
        self._function(element, *sides)
        yield element


class DoubtKept(beam.DoFn):
    """A DoFn that logs what kept fields look like, by the first documents that come to a worker."""

    def __init__(
        self,
        keep: Sequence[str],
        documents: int,
        doubts: Callable[[Sequence[pa.Table]], Iterable[str]],
    ) -> None:
        """Configure for a number of documents, and a function that doubts or refuses fields."""
        self._keep = keep
        self._most = documents
        self._doubts = doubts
        self._seen: list[pa.Table] = []
        self._documents = 0
        self._warned: set[str] = set()

    @redacted
    def process(self, batch: Documents) -> Iterator[object]:
        if self._documents < self._most:
            self._seen.append(batch.columns.select(self._keep))
            self._documents += len(batch.rows)
            if self._documents >= self._most:
                self._judge()
                self._seen.clear()
        yield from ()

    @redacted
    def finish_bundle(self) -> Iterator[object]:
        # A bundle may be empty, or too small to tell: those before it are judged with it.
        self._judge()
        yield from ()

    def _judge(self) -> None:
        for doubt in list(self._doubts(self._seen)):  # all refusals come before any warning
            if doubt not in self._warned:
                _LOGGER.warning("%s", doubt)
                self._warned.add(doubt)
