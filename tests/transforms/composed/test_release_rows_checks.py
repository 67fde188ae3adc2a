"""The checks that released rows wait for.

Beam finds no types in this module's rows if their annotations are strings.
"""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from apache_beam.typehints.row_type import RowTypeConstraint

from quietcorpus.transforms.composed.release_rows import AsBatches, AsRows
from quietcorpus.transforms.errors import StageError

SCHEMA = pa.schema([pa.field("id", pa.string())])


@pytest.mark.parametrize(
    "step", [AsRows(), AsBatches(RowTypeConstraint.from_fields([("id", str)]), SCHEMA)]
)
@pytest.mark.parametrize("place", [0, 1])
def test_rows_wait_for_every_check(step: AsRows, place: int) -> None:
    # Kills: rows that leave before a check of the whole input, or of what was released, is read:
    # some engines compute a side input only where it is read.
    def failing() -> Iterator[object]:
        raise StageError("the engine doubled a part")
        yield

    table = pa.table({"id": ["a", "b"]}, schema=SCHEMA)
    assert len(list(step.process(table))) > 0
    checks = [[], []]
    checks[place] = failing()
    with pytest.raises(StageError):
        next(iter(step.process(table, *checks)))
