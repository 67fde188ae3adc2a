"""The summary of a run, for the machines that schedule it: how it ended, and what it cost.

It holds nothing of the corpus but the numbers of records, and no message of an error.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from ..card.model import LedgerEntry
from ..card.parameters import Parameters, Part
from ..ledger.balances import Balance

Outcome = Literal["published", "existed", "valid", "refused", "failed", "interrupted", "unknown"]
Reason = Literal[
    "bad_spec",
    "bad_input",
    "cap_reached",
    "noisy_outcome",
    "claimed",
    "deadline",
    "store_unavailable",
    "unavailable",
    "failure",
    "interrupted",
]
Step = Literal["preparing", "comparing ids", "releasing", "checking", "publishing"]


class RunSummary(Part):
    """The end of one run of a release."""

    schema_version: Literal[1] = 1
    run: str = Field(description="an id of this run alone")
    release: str | None = Field(None, description="its id; absent if the spec cannot be read")
    outcome: Outcome = Field(
        description="existed: complete already, and nothing was done; valid: a dry run; unknown: "
        "it ended while it published, and the release may exist"
    )
    exit_code: int = Field(description="of the command")
    reason: Reason | None = Field(None, description="absent if the exit code is 0")
    began: str = Field(description="UTC, ISO 8601")
    seconds: float = Field(ge=0)
    steps: dict[Step, float] = Field(description="seconds of each step that the run came to")
    documents: int | None = Field(None, ge=0, description="of the release")
    rejects: int | None = Field(None, ge=0, description="records that could not be read")
    retries: int = Field(
        0, ge=0, description="requests to stores that the run repeated, its workers' included"
    )
    repeated_parts: int = Field(
        0,
        ge=0,
        description="how often workers read a part of the corpus again, as after a lost machine",
    )
    cost: Parameters | None = Field(None, description="of the release, in all")
    ledger: LedgerEntry | None = Field(None, description="its entry there")
    accounts: list[Balance] | None = Field(
        None, description="of the ledger, as they were when the run had ended"
    )
    card_sha256: str | None = Field(
        None, pattern=r"^[0-9a-f]{64}$", description="of the release's release.json"
    )

    def to_json(self) -> str:
        """Return the text of the summary."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"


def schema() -> str:
    """Return the JSON Schema of a summary."""
    content = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(content | RunSummary.model_json_schema(), indent=2) + "\n"
