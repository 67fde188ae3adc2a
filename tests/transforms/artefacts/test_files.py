"""Artefacts are what the card says they were."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from quietcorpus.transforms.artefacts.files import FileSource
from quietcorpus.transforms.errors import InputError


def test_an_artefact_that_changes_is_refused(tmp_path: Path) -> None:
    # Kills: a digest that is taken but never compared.
    path = tmp_path / "vocabulary.txt"
    path.write_bytes(b"alpha\nbeta\n")
    artefact = FileSource.resolve("key", str(path))
    assert artefact.digest == hashlib.sha256(b"alpha\nbeta\n").hexdigest()
    assert artefact.content() == b"alpha\nbeta\n"
    path.write_bytes(b"alpha\nbets\n")
    with pytest.raises(InputError, match=r"vocabulary\.txt has changed since the release began"):
        artefact.content()


def test_an_artefact_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^key: .*absent\.txt cannot be read; check the path$"):
        FileSource.resolve("key", str(tmp_path / "absent.txt"))
