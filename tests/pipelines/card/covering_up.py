"""Changing releases of word embeddings as somebody would who covers it up, and verifying them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_verify import edit_card

from quietcorpus.pipelines.card.verify import verify
from quietcorpus.transforms.artefacts.folders import _opened
from quietcorpus.transforms.errors import InputError


def refused(release: Path) -> str:
    """The line by which `verify` refuses a release."""
    _opened.cache_clear()  # every run of the command begins without it
    with pytest.raises(InputError) as raised:
        verify(str(release))
    message = str(raised.value)
    assert str(release) in message
    assert "\n" not in message
    return message


def cover_up(release: Path, path: str, content: bytes) -> None:
    """Write a file, and its digest on the card."""
    (release / path).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edit_card(
        release,
        lambda card: next(f for f in card["files"] if f["path"] == path).update(sha256=digest),
    )


def edit_index(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the index's manifest, and its digest on the card."""
    path = "index/manifest.json"
    manifest = json.loads((release / path).read_text())
    change(manifest)
    cover_up(release, path, json.dumps(manifest).encode())
