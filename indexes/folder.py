"""A public artefact as a folder: its files, and a manifest that describes them.

    manifest.json   the artefact's kind and origin, and the SHA-256 of every other file

The digest of an artefact is the SHA-256 of its manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

MANIFEST = "manifest.json"
PROVENANCES = ("public", "private")
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")
_BLOCK = 1 << 20
_LONGEST, _SHOWN = 40, 8  # characters of a stranger's text in an error, and keys


class ArtefactError(ValueError):
    """An artefact that cannot be used; the message says why and what to do."""


def described(folder: str, names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """Build a manifest's entries for these files: path, bytes and sha256 of each."""
    return tuple(
        {
            "path": name,
            "bytes": os.path.getsize(f"{folder}/{name}"),
            "sha256": _sha256(folder, name),
        }
        for name in names
    )


def read_manifest(folder: str, noun: str, digest: str | None = None) -> bytes:
    """Read the manifest's text; raise ArtefactError if it is missing or not the one of `digest`.

    `noun` names what the folder should hold, as in "an index".
    """
    try:
        with open(f"{folder}/{MANIFEST}", "rb") as stream:
            content = stream.read()
    except OSError:
        raise ArtefactError(f"is not {noun}: it has no {MANIFEST} that can be read") from None
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise ArtefactError("has changed since the release began")
    return content


def absent(text: str | bytes, keys: Collection[str]) -> set[str]:
    """Return those of some keys that a manifest may lack, and lacks."""
    try:
        return set(keys) - set(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return set(keys)


def parse(
    text: str | bytes,
    format_name: str,
    versions: Sequence[int],
    keys: Collection[str],
    *,
    noun: str,
    source: str,
) -> dict[str, Any]:
    """Parse a manifest, whose keys must be `keys` and its format; return the values of `keys`.

    `versions` are those of the format that can be read, in ascending order. `noun` names what the
    manifest should describe, as in "an index", and `source` what that is made from, as in
    "vectors".

    Raises ArtefactError for a manifest that is damaged, of another format, newer, older, without
    provenance, private without a guarantee, or with other keys.
    """
    try:
        content: dict[str, Any] = json.loads(text)
        if content.pop("format") != format_name:
            raise ValueError
        if type(written := content["version"]) is not int:  # True and 1.0 equal 1
            raise TypeError
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise ArtefactError(f"has a {MANIFEST} that is not one of {noun}; build it again") from None
    built = (
        f"({_short(content.get('builder', 'unknown'))}, format {_short(written)}; this one reads"
    )
    if written > versions[-1]:
        raise ArtefactError(
            f"was built by a newer version {built} up to {versions[-1]}): update quietcorpus"
        )
    if written not in versions:
        readable = " or ".join(map(str, versions))
        raise ArtefactError(
            f"was built by an older version {built} format {readable}): build it again"
        )
    if content.get("provenance") not in PROVENANCES:
        raise ArtefactError(
            "does not say its provenance, public or private; build it again with --provenance"
        )
    if content["provenance"] == "private" and not content.get("guarantee"):
        raise ArtefactError(
            "was made from private data and does not say under which guarantee; build it "
            f"again with --guarantee, or from public {source}"
        )
    if wrong := set(content) ^ set(keys):
        raise ArtefactError(
            f"has a {MANIFEST} with missing or unknown keys "
            f"({', '.join(map(_short, sorted(wrong)[:_SHOWN]))}); build it again"
        )
    return content


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def check_listed(files: Any, names: Collection[str], optional: Collection[str] = ()) -> None:
    """Raise ArtefactError unless the files that a manifest lists are `names`, each once.

    Those of them that are `optional` may be missing.
    """
    found = _paths(files)
    needed = [name for name in names if name not in optional]
    if found is None or len(set(found)) < len(found) or not set(needed) <= set(found) <= set(names):
        raise ArtefactError(
            f"has a {MANIFEST} that does not list each of {', '.join(needed)} once; build it again"
        )


def check_possible(
    content: Mapping[str, Any], whose: str, possible: Callable[[Mapping[str, Any]], bool]
) -> None:
    """Raise ArtefactError unless every value that a release uses has the right type.

    `possible` tells so of a manifest's content, by a False or by an error of a missing or strange
    value. `whose` ends the sentence "values that no", as in "pool has".
    """
    try:
        fine = possible(content)
    except (AttributeError, KeyError, TypeError, ValueError):
        fine = False
    if not fine:
        raise ArtefactError(f"has a {MANIFEST} with values that no {whose}; build it again")


def is_encoded(content: Mapping[str, Any], *counts: str) -> bool:
    """Return whether a manifest names an encoder, digests of files, and these counts above zero.

    It raises KeyError or TypeError for values that are missing or of another kind altogether.
    """
    encoder = content["encoder"]
    numbers = [content[name] for name in counts]
    return (
        all(type(number) is int and number > 0 for number in (*numbers, encoder["dimensions"]))
        and all(isinstance(encoder[name], str) for name in ("name", "sha256"))
        and all(isinstance(file["sha256"], str) for file in content["files"])
    )


def plain_names(files: Any) -> list[str]:
    """Return the files that a manifest lists; raise ArtefactError if a path is not a plain name.

    Fetched files are written under these names, beside the manifest.
    """
    found = _paths(files)
    if found is None:
        raise ArtefactError(
            f"has a {MANIFEST} that lists files by other than plain names; build it again"
        )
    return found


def verify(folder: str, files: Sequence[Mapping[str, Any]]) -> None:
    """Raise ArtefactError unless every file matches the manifest."""
    for name, file in zip(plain_names(files), files, strict=True):
        try:
            digest = _sha256(folder, name)
        except OSError:
            raise ArtefactError(f"lacks {name}, or it cannot be read") from None
        if digest != file["sha256"]:
            raise ArtefactError(
                f"is damaged: {name} is not the file that {MANIFEST} describes (sha256 "
                "differs); copy it again, or build it again"
            )


def _paths(files: Any) -> list[str] | None:
    """Return the paths of a manifest's files, or None if it lists anything but plain names."""
    try:
        paths = [file["path"] for file in files]
        plain = all(_PLAIN_NAME.fullmatch(path) and path != MANIFEST for path in paths)
    except (KeyError, TypeError):
        return None
    return paths if plain else None


def _sha256(folder: str, name: str) -> str:
    digest = hashlib.sha256()
    with open(f"{folder}/{name}", "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
