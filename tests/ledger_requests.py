"""Requests to a ledger in a folder, and refusals that write nothing."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision
from quietcorpus.pipelines.ledger.caps import Cost, Terms
from quietcorpus.pipelines.ledger.records import Sort
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.transforms.errors import InputError

RUN, OTHER = "0" * 32, "1" * 32
KEY = "0" * 16
CASES, ROWS, STRANGERS = (
    Sort("compared", column, key)
    for column, key in [("case", KEY), ("row", KEY), ("case", "1" * 16)]
)
DECLARED, UNKNOWN = Sort("declared"), Sort()
CARD, CHANGED = "c" * 64, "d" * 64
TOLD = "^ledger: release a ended in a way that may depend on its noise: telling that spent its"


def terms(corpus: Path | str, epsilon: int = 10) -> Terms:
    own = {"definition": "limited-precision", "precision": 2, "epsilon": epsilon}
    return Terms.model_validate({"corpus": str(corpus), "caps": [own]})


def request(place: str, release: str, epsilon: int = 4, **changes: Any) -> Request:
    folder = Path(place).parent
    cost = Cost(LimitedPrecision(2, Fraction(epsilon)))
    own = Request(release, RUN, f"{folder}/corpus/*.csv", f"{folder}/out/{release}", None, cost)
    return replace(own, **changes)


def files(place: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in Path(place).rglob("*")
        if path.is_file()
    }


class Refused:
    """InputError of one line, and nothing is written."""

    def __init__(self, place: str, message: str) -> None:
        self._place, self._message = place, message

    def __enter__(self) -> None:
        self._before = files(self._place)

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> bool:
        assert isinstance(error, InputError), error
        assert re.search(self._message, str(error)), str(error)
        assert "\n" not in str(error)
        assert files(self._place) == self._before
        return True


def ids(*names: str) -> bytes:
    """Digests as a release keeps them: sorted, 16 bytes each."""
    digests = [hashlib.sha256(name.encode()).digest()[:16] for name in names]
    return np.unique(np.frombuffer(b"".join(digests), dtype="V16")).tobytes()
