"""The limits that a card states follow from the facts of its release, each from its own.

`verify` computes them by the functions that wrote them: only what stands here tells a wrong one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.pipelines.card.limits import Facts, check_budgets, of_release
from quietcorpus.pipelines.card.parameters import parameters
from quietcorpus.transforms.errors import InputError

ONE, DELTA = Fraction(1), Fraction(1, 3000)
WITHIN = (LimitedPrecision(2, ONE), SentencePrivacy(ONE), MetricPrivacy("Hamming distance", ONE))
DOCUMENTS, USERS = DocumentPrivacy(ONE, DELTA), UserPrivacy(ONE, DELTA)
PLAIN = Facts(WITHIN[0], (), [], None, False, None, None, False)
AGAIN = "a document that comes back in another partition"
LINES: dict[str, tuple[dict[str, Any], str, str]] = {
    "ids that are compared": ({"unique": True}, "(checked by the id column)", "not checked"),
    "no ids": ({}, "(not checked: no id column is named)", "(checked by"),
    "partitions by ids": (
        {"disjoint": "compared", "identifier": "case"},
        f"{AGAIN} under another id, or under the same one written otherwise (7 and 007 are two): "
        "the ledger counts partitions as if they had no document in common, and compares the ids "
        "of the column 'case'",
        "declared",
    ),
    "partitions by a declaration": (
        {"disjoint": "declared"},
        f"{AGAIN}: the ledger counts partitions as if they had no document in common; the "
        "publisher declared that none does, and nothing checked it",
        "compares",
    ),
    "partitions that add up": ({"disjoint": "unknown"}, f"{AGAIN}: nothing tells", "as if"),
    "no partitions": ({}, "that a document is in the corpus", AGAIN),
    "a delta of documents": (
        {"total": DOCUMENTS},
        "whether there is a release: a corpus of more than 3,000 documents makes none",
        "that a document is in the corpus",
    ),
    "a large delta": ({"total": DOCUMENTS, "accept": ["large-delta"]}, "large-delta", "makes none"),
    "no delta": ({"total": DocumentPrivacy(ONE, Fraction(0))}, "master key", "makes none"),
    "users": ({"total": USERS}, "master key", "makes none"),
    "copied columns": (
        {"columns": ["id", "place"], "id_column": "case"},
        "the columns id (the input's case), place: copied as they are, and joinable",
        AGAIN,
    ),
    "no copied columns": ({}, "what several documents of one person say", "copied as they are"),
    "a ledger": ({"counted": True}, "an id is unique within its ledger", "no ledger counts them"),
    "no ledger": ({}, "no ledger counts them, and none checks that", "unique within its ledger"),
}


@pytest.mark.parametrize("name", LINES)
def test_each_fact_has_its_line(name: str) -> None:
    # Kills: a line that is left out, or stands where the fact is another.
    changes, present, absent = LINES[name]
    said = of_release(PLAIN._replace(**changes), ["of the kind"])
    assert sum(present in line for line in said) == 1
    assert not any(absent in line for line in said)
    assert "of the kind" in said
    assert said[-1].startswith("anything against an adversary who holds the master key")


@pytest.mark.parametrize("total", WITHIN, ids=repr)
def test_what_units_within_a_document_leave_open(total: Any) -> None:
    # Kills: presence, numbers and repeated documents that a guarantee of passages seems to cover.
    said = " ".join(of_release(PLAIN._replace(total=total), []))
    for subject in (
        "that a document is in the corpus, the number of documents, and the number of unreadable",
        "or one document that the corpus holds twice",
        "how the input was divided into files",
    ):
        assert subject in said


@pytest.mark.parametrize(
    ("spent", "agrees"),
    [
        ({"few": Fraction(1), "many": Fraction(4)}, True),
        ({"few": Fraction(1, 2), "many": Fraction(4)}, True),
        ({"few": Fraction(2), "many": Fraction(4)}, False),
        ({"few": Fraction(1), "many": Fraction(5)}, False),
        ({"many": Fraction(4)}, False),
    ],
)
def test_each_group_keeps_to_its_own_budget(spent: dict[str, Fraction], agrees: bool) -> None:
    # Kills: groups that are compared with the largest budget alone; one that is left out.
    total: Any = parameters(UserPrivacy(max(spent.values()), DELTA, tuple(spent.items())))
    budgets = {"column": "plan", "epsilon": {"few": 1, "many": 4}}
    if agrees:
        check_budgets("card", total, budgets)
        return
    with pytest.raises(InputError, match="budgets are not those of the guarantee's groups"):
        check_budgets("card", total, budgets)
