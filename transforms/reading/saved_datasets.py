"""Folders that `Dataset.save_to_disk` of Hugging Face's `datasets` has written.

state.json          the names of the dataset's files, in the folder
dataset_dict.json   in a folder of several datasets: their names, which are folders in it
"""

from __future__ import annotations

import re
from typing import Any

import orjson
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.transforms.errors import InputError, client_errors

_STATE, _SPLITS = "state.json", "dataset_dict.json"
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")


def files_in(folder: str) -> list[str] | None:
    """Return the places of a dataset's files; None if the folder, or prefix, holds no dataset.

    Files that the dataset does not name, such as those of an earlier one, are left out, as
    `datasets.load_from_disk` leaves them out. Raises InputError for a folder of several datasets,
    and for one that cannot be read.
    """
    place = f"input.path: {folder}"
    state = _content(folder, _STATE)
    if state is None:
        splits = _content(folder, _SPLITS)
        if splits is None:
            return None
        named = splits.get("splits")
        listed = ", ".join(named) if isinstance(named, list) and all(map(_is_plain, named)) else ""
        raise InputError(
            f"{place} holds several datasets{listed and f' ({listed})'}; give the folder of one, "
            f"or {folder}/*/*.arrow for all"
        )
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise InputError(f"{place} is a selection of rows that an old version saved; save it again")
    try:
        names = [file["filename"] for file in state["_data_files"]]
    except (KeyError, TypeError):
        names = []
    if not names or not all(map(_is_plain, names)):
        raise InputError(
            f"{place} has a {_STATE} that does not name its files; save the dataset again"
        )
    return [f"{folder}/{name}" for name in names]


def _is_plain(name: Any) -> bool:
    return isinstance(name, str) and bool(_PLAIN_NAME.fullmatch(name))


def _content(folder: str, name: str) -> dict[str, Any] | None:
    """Return the object in a JSON file; None if there is no such file."""
    uri = f"{folder}/{name}"
    with client_errors(f"input.path: {uri}", "cannot be read; check the path and the permissions"):
        (found,) = FileSystems.match([uri])
        if not found.metadata_list:
            return None
        with FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            text = stream.read()
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise InputError(f"input.path: {uri} is not a JSON object; save the dataset again")
    return content
