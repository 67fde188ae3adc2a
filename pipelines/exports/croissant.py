"""Croissant 1.1 metadata of a release, which loaders of datasets read.

Source: docs.mlcommons.org/croissant, the format's specification 1.1. A card has no licence, no
citation and no address of the release: these recommended properties are missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..card.model import Card
from ..storage import layout
from .publisher import Publisher

_PARQUET = "application/x-parquet"
_TERMS = "citeAs column extract field fileObject fileProperty fileSet format includes jsonPath key"
_MORE = "arrayShape containedIn equivalentProperty isArray isLiveDataset md5 parentField path"
_LAST = "recordSet references regex repeated replace samplingRate separator source subField"
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "transform": "cr:transform",
} | {name: f"cr:{name}" for name in f"{_TERMS} {_MORE} {_LAST}".split()}

_TEXT, _INT32, _INT64, _REAL = "sc:Text", "cr:Int32", "cr:Int64", "cr:Float32"
_OF_COLUMN = {
    **dict.fromkeys(("term_id", "bin", "candidate"), (_INT32, False)),
    **dict.fromkeys(("terms", "counts", "bins"), (_INT32, True)),
    **dict.fromkeys(("votes", "estimate"), (_INT64, False)),
    **dict.fromkeys(("embedding", "vector"), (_REAL, True)),
}
_OF_FILE = {
    (layout.VOCABULARY, "weight"): (_INT64, False),
    (layout.TEXTS, "weight"): ("cr:Float64", False),
    **{(path, "id"): (_INT64, False) for path in (layout.TEXTS, layout.VOTES, layout.RESAMPLED)},
}
"""The type of a column, and whether it holds lists; all others hold text."""


def render(card: Card, publisher: Publisher) -> str:
    """Return the metadata as JSON-LD, to be put beside release.json."""
    promised = [card.guarantee.statement, "Not protected:"]
    limits = [f"- {line}" for line in card.guarantee.not_protected]
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": card.release,
        "description": "\n".join([*promised, *limits]),
        "datePublished": card.created,
        "version": "1.0.0",
        "keywords": ["differential-privacy", "quietcorpus", card.mechanism.kind],
        "distribution": [*_objects(card), *_sets(card)],
        "recordSet": list(_record_sets(card)),
    }
    if publisher.curator:
        content["creator"] = {"@type": "sc:Organization", "name": publisher.curator}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _objects(card: Card) -> Iterator[dict[str, Any]]:
    """Yield every file of the release, with its digest."""
    for file in card.files:
        columns = card.mechanism.files[layout.described(file.path)].columns
        yield {
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path.replace("/", "-"),
            "contentUrl": file.path,
            "encodingFormat": _PARQUET if columns else "application/octet-stream",
            "sha256": file.sha256,
        }


def _sets(card: Card) -> Iterator[dict[str, Any]]:
    """Yield the set of all files with rows of documents, if there are any."""
    if any(layout.described(file.path) == layout.DATA for file in card.files):
        yield {
            "@type": "cr:FileSet",
            "@id": layout.DATA,
            "name": layout.DATA,
            "encodingFormat": _PARQUET,
            "includes": f"{layout.DATA}/*.parquet",
        }


def _record_sets(card: Card) -> Iterator[dict[str, Any]]:
    """Yield the tables of the release, with their columns."""
    for path in dict.fromkeys(layout.described(file.path) for file in card.files):
        columns, meaning = card.mechanism.files[path].columns, card.mechanism.files[path].meaning
        if columns is None:
            continue
        name = path.removesuffix(".parquet")
        kept = [one for one in card.columns if one not in columns] if path == layout.DATA else []
        copied = set(card.columns if path == layout.DATA else ())
        yield {
            "@type": "cr:RecordSet",
            "@id": f"table/{name}",
            "name": name,
            "description": meaning,
            "field": [_field(path, f"table/{name}", one, copied) for one in (*columns, *kept)],
        }


def _field(path: str, table: str, column: str, copied: set[str]) -> dict[str, Any]:
    own = (_TEXT, False) if column in copied else _OF_COLUMN.get(column, (_TEXT, False))
    kind, listed = _OF_FILE.get((path, column), own)
    said = "copied as it is, and read as text: its type is not on the card"
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        **({"description": said} if column in copied else {}),
        "dataType": kind,
        **({"isArray": True, "arrayShape": "-1"} if listed else {}),
        "source": {
            "fileSet" if path == layout.DATA else "fileObject": {"@id": path},
            "extract": {"column": column},
        },
    }
