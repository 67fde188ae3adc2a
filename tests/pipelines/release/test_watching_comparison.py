"""A partition's ids: all of its documents' are compared, or none."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.release.watching import identifiers
from quietcorpus.transforms.errors import StageError
from quietcorpus.transforms.sealed import seal
from quietcorpus.transforms.shards import Tally


def test_every_document_has_its_id_digested(tmp_path: Path) -> None:
    # Kills: a partition that is compared by some of its documents, since the digests of others were
    # lost or left by another attempt.
    key = ReleaseKey.derive(os.urandom(32), "test", b"")
    for number, digests in enumerate([os.urandom(32), os.urandom(16)]):
        path = tmp_path / f"{number:02}.attempt"
        path.write_bytes(seal(digests, str(path), key))
    job: Any = SimpleNamespace(identifiers=str(tmp_path))
    found = identifiers(job, Tally(3), key)
    assert len(found) == 48
    for documents in (2, 4):
        with pytest.raises(StageError, match="the engine lost the digests of some ids; run again"):
            identifiers(job, Tally(documents), key)
