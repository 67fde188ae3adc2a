"""Metadata of a release for machines: Croissant, and the registry of deployments.

Croissant 1.1, which loaders of datasets read: docs.mlcommons.org/croissant, the format's
specification. A card has no licence, no citation and no address of the release: these recommended
properties are missing.

A record for the registry of deployments of differential privacy, in its YAML:
github.com/opendp/deployments-registry-data, `schemas/deployments-schema.yaml` at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b. `url_slug` and all keys are its own, in its order.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from quietcorpus.transforms.errors import InputError

from ..card.model import Card
from ..card.parameters import (
    DocumentParameters,
    Parameters,
    UserParameters,
    costs,
    total_cost,
)
from ..card.readme import mechanism
from ..storage import layout

CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
"""The types that the registry of deployments knows."""


@dataclass(frozen=True)
class Publisher:
    """The publisher's own statements, which nothing checks.

    Attributes:
        curator: who publishes the release.
        curator_type: one of `CURATOR_TYPES`.
        use: the purpose of the release.
        region: which region the documents are of, or whose law applies.
    """

    curator: str | None = None
    curator_type: str | None = None
    use: str | None = None
    region: str | None = None

    def require(self, form: str) -> tuple[str, str, str, str]:
        """Return all four; raises InputError if one is missing or empty."""
        for name in ("curator", "curator_type", "use", "region"):
            if not (getattr(self, name) or "").strip():
                raise InputError(f"{name}: the form {form} needs it, and no card has it")
        return str(self.curator), str(self.curator_type), str(self.use), str(self.region)


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
_FLOAT64 = "cr:Float64"
_OF_COLUMN = {
    **dict.fromkeys(("term_id", "bin", "candidate", "group"), (_INT32, False)),
    **dict.fromkeys(("terms", "counts", "bins"), (_INT32, True)),
    **dict.fromkeys(("votes", "estimate", "documents", "count"), (_INT64, False)),
    **dict.fromkeys(("share", "margin", "ratio", "low", "high", "certainty"), (_FLOAT64, False)),
    "is_empty": ("sc:Boolean", False),
    **dict.fromkeys(("embedding", "vector"), (_REAL, True)),
}
_WITH_IDS = (layout.TEXTS, layout.VOTES, layout.RESAMPLED, layout.EXAMPLES)
_OF_FILE = {
    (layout.VOCABULARY, "weight"): (_INT64, False),
    (layout.TEXTS, "weight"): (_FLOAT64, False),
    **{(path, "id"): (_INT64, False) for path in _WITH_IDS},
}
"""The type of a column, and whether it holds lists; all others hold text."""


def croissant(card: Card, publisher: Publisher) -> str:
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


_PRODUCTS = {
    "dataset": "Dataset",
    "statistics": "Summary statistics",
    "model": "Machine learning model",
}
_UNKNOWN = "The card does not say."
_FULL_DP = (DocumentParameters, UserParameters)
"""The guarantees of differential privacy itself, for the unit that the record names."""


def deployment(card: Card, publisher: Publisher) -> str:
    """Return the record; raises InputError if something of the publisher's is missing."""
    yaml = YAML(typ="safe")
    yaml.version = (1, 1)  # which PyYAML reads, and where 1e-06 and `no` would be other values
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 100
    stream = io.StringIO()
    yaml.dump(record(card, publisher), stream)
    return stream.getvalue()


def record(card: Card, publisher: Publisher) -> dict[str, Any]:
    """Return the record as plain values."""
    curator, curator_type, use, region = publisher.require("registry")
    product = _PRODUCTS[card.mechanism.product]
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", card.release.lower()).strip("-"),
        "deployment": {
            "basic": {
                "name": card.release,
                "data_curators": [
                    {"data_curator_name": curator, "data_curator_type": curator_type}
                ],
                "description": f"A release of kind {card.mechanism.kind}. "
                f"{card.guarantee.statement}",
                "intended_use": use,
                "data_product_type": product,
                "data_product_region": region,
                "publication_date": card.created[:10],
            },
            "dp_variant": _variant(card),
            "privacy_loss": _loss(card),
            "deployment_model": _model(card),
            "implementation": _implementation(card),
            "administrative": {
                "status": "Draft",
                "registry_authors": [f"{curator}, by quietcorpus {card.software['quietcorpus']}"],
                "tier": 2,
            },
        },
    }


def _variant(card: Card) -> dict[str, Any]:
    full = isinstance(card.guarantee.parameters, _FULL_DP)
    return {
        "variant_name": "Approximate DP" if full else "Custom",
        "data_domain": "Every corpus that the card's neighbouring relation can hold: "
        f"{card.guarantee.adjacency}.",
        "unprotected_quantities": "\n".join(f"- {line}" for line in card.guarantee.not_protected),
    }


def _loss(card: Card) -> dict[str, Any]:
    total = card.guarantee.parameters
    return {
        "privacy_unit": card.guarantee.unit,
        "privacy_unit_details": f"Neighbours are {card.guarantee.adjacency}.",
        "privacy_parameters": _numbers(total),
        "privacy_parameters_details": f"{card.guarantee.definition}: {total_cost(total)}. "
        f"{card.guarantee.statement} Exact values: "
        f"{json.dumps(total.model_dump(mode='json'), sort_keys=True)}",
    }


def _numbers(total: Parameters) -> dict[str, float]:
    delta: float = getattr(total, "delta", 0.0)
    return {"epsilon": float(total.epsilon)} | ({"delta": delta} if delta else {})


def _model(card: Card) -> dict[str, Any]:
    counted = (
        f"A ledger of the corpus counts it, as record {card.ledger.reservation}."
        if card.ledger
        else "No ledger counts it."
    )
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the documents, and runs the mechanism on them.",
        "trust_assumptions": "The curator, who holds the documents and the master key, and the "
        "machines that run the pipeline are trusted. Readers of the release are not: they may know "
        "everything else.",
        "release_type": "One release",
        "release_type_details": f"The costs of all releases of a corpus add up. {counted}",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(card: Card) -> dict[str, Any]:
    block = ", ".join(f"{key}: {value}" for key, value in mechanism(card))
    stages = "; ".join(f"{one.stage}: {costs(one.parameters)}" for one in card.budget.stages)
    inherited = "".join(
        f" On top comes what a private artefact cost: {json.dumps(one, sort_keys=True)}."
        for one in card.budget.inherited
    )
    return {
        "preprocessing_and_hyperparameter_tuning": _UNKNOWN,
        "mechanisms": f"quietcorpus {card.software['quietcorpus']}. The mechanism as it ran: "
        f"{block}. Noise is a keyed pseudo-random function (AES-256) of the stage, the corpus, the "
        "document and its place.",
        "composition": f"The stages add up to the total: {stages}.{inherited}",
        "post_processing": " ".join(card.mechanism.notes) or _UNKNOWN,
        "justification": _UNKNOWN,
        "additional_information": "release.json, the release's card, says all of this in "
        "machine-readable form; `quietcorpus verify` checks it against the files.",
    }
