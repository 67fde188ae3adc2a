"""Files that lay in the open before their budget was spent are not published."""

from __future__ import annotations

import pytest

from quietcorpus.pipelines.release.run import _check_sealed
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.shards import Written


def test_files_that_lay_in_the_open_are_refused() -> None:
    # Kills: one file of one kind that is staged without the key. Every release asks for this.
    sealed, bare = (Written("data", "staged", "", 1, sealed) for sealed in (True, False))
    _check_sealed([sealed, sealed])
    with pytest.raises(StageError, match="data was staged in the open"):
        _check_sealed([sealed, bare])
