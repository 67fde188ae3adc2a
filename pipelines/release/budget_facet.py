"""The facet of OpenLineage's that tells what a run spends of whose privacy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..card.model import Card
from ..card.parameters import Part
from ..ledger.balances import Balance
from ..schema.spec import Spec

NAME = "quietcorpus_budget"
URN = "urn:quietcorpus:budget-facet:1"


class BudgetFacet(Part):
    """The budget of a run: what is known of it when the event is sent."""

    kind: str = Field(description="of the release, as in its spec")
    definition: str | None = Field(None, description="of privacy, as on the card")
    unit: str | None = Field(None, description="what is protected, as on the card")
    epsilon: float | None = Field(None, description="of the release in all, rounded up")
    delta: float | None = Field(None, description="the same; absent if the definition has none")
    ledger: str | None = Field(None, description="its place; absent if the spec names none")
    accounts: list[Balance] | None = Field(
        None, description="of the ledger after the run, as in the run's summary"
    )

    @classmethod
    def of(
        cls, spec: Spec, accounts: Sequence[Balance] | None = None, card: Card | None = None
    ) -> BudgetFacet:
        """Return the facet of a run of a spec, with the card of its release if there is one."""
        total = card.budget.total if card else None
        return cls(
            kind=spec.mechanism.kind,
            definition=card.guarantee.definition if card else None,
            unit=card.guarantee.unit if card else None,
            epsilon=total.epsilon if total else None,
            delta=getattr(total, "delta", None),
            ledger=spec.ledger.path if spec.ledger else None,
            accounts=list(accounts) if accounts is not None else None,
        )

    def content(self, producer: str) -> dict[str, Any]:
        """Return the facet as an event has it."""
        own = self.model_dump(mode="json", exclude_none=True)
        return {"_producer": producer, "_schemaURL": f"{URN}#/$defs/BudgetFacet"} | own


def schema() -> str:
    """Return the JSON Schema of the facet."""
    found = BudgetFacet.model_json_schema()
    inner = found.pop("$defs")
    # Every facet has these two, and may have more than a version of its schema knows.
    common = {name: {"type": "string", "format": "uri"} for name in ("_producer", "_schemaURL")}
    found["properties"] = common | found["properties"]
    found["required"] = [*common, *found["required"]]
    del found["additionalProperties"]
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": URN,
        "$defs": inner | {"BudgetFacet": found},
        "type": "object",
        "properties": {NAME: {"$ref": "#/$defs/BudgetFacet"}},
    }
    return json.dumps(content, indent=2) + "\n"
