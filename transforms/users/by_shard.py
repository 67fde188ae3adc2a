"""The users of a corpus, divided into shards by their digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import apache_beam as beam

from ..parts import doubled
from .training_shards import shard_of

_Share = TypeVar("_Share")


class ByShard(beam.PTransform):
    """A PTransform from (digest, share) pairs to a (shard, pairs) element for every shard.

    Each shard has a None among its pairs, so that one without users is there too: which ones have
    none is private, and the sum over all shards is released in any case.
    """

    def __init__(self, shards: int) -> None:
        super().__init__()
        self._shards = shards

    def expand(self, shares: beam.PCollection) -> beam.PCollection:
        count = self._shards
        nobody = (
            shares.pipeline
            | "nobody" >> beam.Create(range(count))
            | "shards" >> beam.Map(lambda number: (number, None))
        )
        users = shares | "by shard" >> beam.Map(lambda user: (shard_of(user[0], count), user))
        return (users, nobody) | beam.Flatten() | beam.GroupByKey()


def each_once(
    users: Iterable[tuple[bytes, _Share] | None],
) -> Iterator[tuple[bytes, _Share]]:
    """Yield the users of a shard; raises StageError for one whom the engine doubled.

    A user who counts twice would change a sum by twice the clipping norm.
    """
    seen: set[bytes] = set()
    for user in users:
        if user is None:
            continue
        if user[0] in seen:
            raise doubled("a user")
        seen.add(user[0])
        yield user
