"""The checks that a corpus stayed as it was, and that the engine read and wrote all of it, once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from quietcorpus.transforms.errors import InputError, StageError, blamed
from quietcorpus.transforms.parts import require_all
from quietcorpus.transforms.reading.documents import Split
from quietcorpus.transforms.reading.sources import require_unchanged, states
from quietcorpus.transforms.shards import Tally, Written, data_file

from ..card.page import LARGEST, within
from ..jobs.job import Job
from ..schema.spec import Spec

_LOGGER = logging.getLogger("quietcorpus.release")


def check_passes(tally: Tally, passes: int, splits: Sequence[Split]) -> None:
    """Check that every pass over the corpus has read every split, once."""
    names = {name for name, _ in tally.parts}
    for name in sorted(names):
        read = tuple(part for own, part in tally.parts if own == name)
        require_all(read, len(splits), lambda part: f"number {part}, of {splits[part].uri}")
    if len(names) != passes:
        raise StageError(
            f"the engine lost a pass over the corpus: {len(names)} of {passes} are there; run "
            "again, on another engine if that repeats"
        )


def check_files(files: Sequence[Written], tally: Tally, shards: int) -> None:
    """Check that the engine neither lost nor doubled a shard."""
    data = sorted(file.path for file in files if file.path.startswith("data/"))
    rows = sum(file.rows for file in files if file.path.startswith("data/"))
    if data != [data_file(number, shards) for number in range(shards)] or rows != tally.documents:
        lost = [name for n in range(shards) if (name := data_file(n, shards)) not in data]
        first = f" (the first lost is {lost[0]})" if lost else ""
        raise StageError(
            f"the engine lost or doubled a part: {len(data)} files of {shards}{first}, {rows} rows "
            f"of {tally.documents}; run again, on another engine if that repeats"
        )


def check_opens(files: Sequence[Written], content: Callable[[Written], Iterable[bytes]]) -> None:
    """Check that Arrow opens a Parquet file of each kind that was written, and reads its rows.

    Read is the first row group of the file of the fewest rows. A file larger than `LARGEST` is left
    out. What has no budget yet can be mended; what is published stays as it is.
    """
    kinds: dict[str, Written] = {}
    for file in sorted(files, key=lambda one: (one.rows == 0, one.rows, one.path)):
        if file.path.endswith(".parquet"):
            kinds.setdefault(file.path.split("/")[0], file)
    for file in kinds.values():
        try:
            whole = within(LARGEST, content(file))
            if whole is not None:
                opened = pq.ParquetFile(pa.BufferReader(whole))
                first = range(min(1, opened.num_row_groups))
                for batch in opened.iter_batches(row_groups=first, use_threads=False):
                    batch.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            problem = "was written, cannot be read by Arrow, and is not published; report this"
            raise blamed(error, file.path, problem, StageError) from None


def check_tally(tally: Tally, spec: Spec) -> None:
    """Refuse to publish an empty corpus, or one with too many unreadable records."""
    total, first = tally.documents + tally.rejected, tally.first
    where = f"{first.source} record {first.row}: {first.reason}" if first else ""
    if tally.documents == 0:
        all_of_them = f"all {total} records are unreadable (the first is {where}); fix them"
        unreadable = f": {all_of_them}" if first else ""
        raise InputError(f"input.path: {spec.input.path} holds no documents{unreadable}")
    if first is None:
        return
    tolerated = spec.rejects.max_share if spec.rejects else 0.0
    if tally.rejected > tolerated * total:
        remedy = "raise rejects.max_share" if spec.rejects else "name a place in rejects.path"
        raise InputError(
            f"input.path: {tally.rejected} of {total} records are unreadable, more than the "
            f"tolerated share of {tolerated:g} (the first is {where}); fix them, or {remedy}"
        )
    _LOGGER.warning("%d of %d records are unreadable (first: %s)", tally.rejected, total, where)


def check_unchanged(job: Job) -> None:
    """Check that the corpus is as it was planned: its noise must be on no other corpus."""
    require_unchanged(job.corpus, job.plan)


def is_unchanged(job: Job) -> bool:
    """Return whether the corpus is as it was planned."""
    return states(job.corpus) == job.plan.files
