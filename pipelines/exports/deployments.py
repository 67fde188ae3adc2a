"""A record for the registry of deployments of differential privacy, in its YAML.

Source: github.com/opendp/deployments-registry-data, `schemas/deployments-schema.yaml` at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b. `url_slug` and all keys are its own, in its order.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any

from ruamel.yaml import YAML

from ..card.model import Card
from ..card.parameters import (
    DocumentParameters,
    Parameters,
    UserParameters,
    costs,
    total_cost,
)
from ..card.readme import mechanism
from .publisher import Publisher

_PRODUCTS = {
    "dataset": "Dataset",
    "statistics": "Summary statistics",
    "model": "Machine learning model",
}
_UNKNOWN = "The card does not say."
_FULL_DP = (DocumentParameters, UserParameters)
"""The guarantees of differential privacy itself, for the unit that the record names."""


def render(card: Card, publisher: Publisher) -> str:
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
