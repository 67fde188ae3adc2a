"""Users who write on a pool's topics, one of them more than all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from public_pools import texts_on

if TYPE_CHECKING:
    from tests.conftest import Workspace


LAW = texts_on(["law"], 59, 2)
LOUD = texts_on(["sport"], 113, 3)
"""The texts of one user; these numbers of documents and users stand nowhere else."""
USERS = 1000
OF_USERS = {"user": "author", "users": USERS, "epsilon": 8}
BUDGETS = {"column": "team", "epsilon": {"gold": 8, "silver": 2}}
OF_TEAMS = {"user": "author", "users": USERS, "epsilon": ..., "budgets": BUDGETS}
LABELLED = {"strata": {"column": "team", "labels": ["gold", "silver"]}}


def corpus(workspace: Workspace, **columns: Sequence[Any]) -> None:
    """59 users with a document each, of two teams by turns, and one with 113; in several splits."""
    own = [f"user-{number}" for number in range(59)] + ["loud"] * 113
    teams = [("gold", "silver")[number % 2] for number in range(59)] + ["gold"] * 113
    whole = {"text": [*LAW, *LOUD], "author": own, "team": teams} | columns
    types = {name: pa.array(values, pa.string()) for name, values in whole.items()}
    workspace.parquet(types, row_group_size=40)
