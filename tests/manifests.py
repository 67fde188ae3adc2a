"""Manifests of artefacts' folders, spoiled in the ways that their readers must refuse."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quietcorpus.indexes.folder import ArtefactError

PRIVATE = {
    "provenance": "private",
    "guarantee": {"definition": "d", "unit": "u", "parameters": {"epsilon": 1}, "statement": "s"},
}
JUNK = [None, True, -1, 0, 1.5, 1 << 70, "", "x", [], ["x"], {}, {"x": 1}]


def digest_of(folder: Path) -> str:
    """The digest of an artefact: its manifest's."""
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def edit(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest."""
    content = json.loads((folder / "manifest.json").read_text())
    change(content)
    (folder / "manifest.json").write_text(json.dumps(content))


def cover_up(folder: Path, name: str, content: bytes) -> None:
    """Change a file, and the manifest's entry for it, as somebody would who covers it up."""
    (folder / name).write_bytes(content)

    def describe(manifest: dict[str, Any]) -> None:
        entry = next(file for file in manifest["files"] if file["path"] == name)
        entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    edit(folder, describe)


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a manifest."""
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def spoiled(
    whole: dict[str, Any], paths: Iterable[tuple[Any, ...]], junk: Sequence[Any] = JUNK
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Manifests in which each of these values in turn becomes junk, with the value and the junk."""
    for *parents, last in paths:
        for other in junk:
            content = copy.deepcopy(whole)
            place: Any = content
            for parent in parents:
                place = place[parent]
            place[last] = other
            yield (*parents, last, other), content


def refusal_of(opens: Callable[[], object]) -> str:
    """Return the one line by which opening an artefact is refused."""
    with pytest.raises(ArtefactError) as raised:
        opens()
    message = str(raised.value)
    assert "\n" not in message
    assert raised.value.__cause__ is None
    return message
