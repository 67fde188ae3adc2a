"""Every pass over a corpus has read every split of the plan, once, or nothing is published."""

from __future__ import annotations

import os
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.release.release import _check_passes, _check_sealed, _identifiers
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.reading.documents import Split
from quietcorpus.transforms.sealed import seal
from quietcorpus.transforms.shards import Tally, Written

SPLITS = [Split("file", "parquet", number, number=number) for number in range(3)]


def read(name: str, *numbers: int) -> Tally:
    return reduce(add, (Tally.of_pass(name, SPLITS[number]) for number in numbers), Tally())


def test_whole_passes() -> None:
    whole = read("vocabulary", 2, 0, 1) + read("release", 0, 1, 2)
    _check_passes(whole, 2, 3)
    assert (Tally(5, 1) + whole).of_parts_alone() == whole


@pytest.mark.parametrize(
    ("tally", "said"),
    [
        (read("vocabulary", 0, 1, 2) + read("release", 0, 2), "lost a part: 2 of 3"),
        (read("vocabulary", 0, 1, 2, 1) + read("release", 0, 1, 2), "doubled a part"),
        # As many as there should be, and as many in all. Kills: a count of parts.
        (read("vocabulary", 0, 1, 1) + read("release", 0, 1, 2), "doubled a part"),
        (read("vocabulary", 0, 1, 2), "lost a pass over the corpus: 1 of 2"),
        (Tally(3), "lost a pass over the corpus: 0 of 2"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_other_passes_are_refused(tally: Tally, said: str) -> None:
    with pytest.raises(StageError, match=said):
        _check_passes(tally, 2, 3)


def test_every_document_has_its_id_digested(tmp_path: Path) -> None:
    # Kills: a partition that is compared by some of its documents, since the digests of others were
    # lost or left by another attempt.
    key = ReleaseKey.derive(os.urandom(32), "test", b"")
    for number, digests in enumerate([os.urandom(32), os.urandom(16)]):
        path = tmp_path / f"{number:02}.attempt"
        path.write_bytes(seal(digests, str(path), key))
    job: Any = SimpleNamespace(identifiers=str(tmp_path))
    found = _identifiers(job, Tally(3), key)
    assert found is not None
    assert len(found) == 48
    for documents in (2, 4):
        with pytest.raises(StageError, match="the engine lost the digests of some ids; run again"):
            _identifiers(job, Tally(documents), key)
    job = SimpleNamespace(identifiers=None)
    assert _identifiers(job, Tally(3), key) is None


def test_files_that_lay_in_the_open_are_refused() -> None:
    # Kills: one file of one kind that is staged without the key. Every release asks for this.
    sealed, bare = (Written("data", "staged", "", 1, sealed) for sealed in (True, False))
    _check_sealed([sealed, sealed])
    with pytest.raises(StageError, match="data was staged in the open"):
        _check_sealed([sealed, bare])
