"""The canonical encoding of values: one for equal ones, and no two alike."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietcorpus.mechanisms.encoding import encode


class Named(StrEnum):
    ONE = "one"


@dataclass(frozen=True)
class Record:
    number: int = 1


def test_the_encoding() -> None:
    values = {"b": [1, True, None, "\u00e9"], "a": {"x": Fraction(1, 3), "y": b"\xff"}}
    assert encode(values) == (
        b'{"a":{"x":{"$fraction":[1,3]},"y":{"$bytes":"ff"}},"b":[1,true,null,"\xc3\xa9"]}'
    )
    assert encode({"x": 0.1, "y": Decimal("1.50")}) == (
        b'{"x":{"$float":"0x1.999999999999ap-4"},"y":{"$decimal":"1.50"}}'
    )


def test_equal_values_are_encoded_alike() -> None:
    # Kills: a name's class, a list's, or the order of insertion in what noise depends on.
    assert encode({"a": Named.ONE, "b": (1, 2)}) == encode({"b": [1, 2], "a": "one"})


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False)
    | st.fractions(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


def tagged(value: Any) -> Any:
    """A value with the types that Python's own equality leaves out."""
    if isinstance(value, dict):
        return {name: tagged(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [tagged(inner) for inner in value]
    return type(value).__name__, repr(value)


@given(plain, plain)
def test_other_values_are_encoded_otherwise(one: Any, other: Any) -> None:
    # Kills: True as 1, a fraction as a list or a string of its numbers, 1.0 as 1, bytes as text.
    try:
        encodings = encode({"v": one}), encode({"v": other})
    except TypeError:
        return  # a name begins with $
    assert (encodings[0] == encodings[1]) == (tagged(one) == tagged(other))


@pytest.mark.parametrize(
    "value", [Record(), {1}, object(), np.int64(1), np.zeros(2), {1: 2}, {"$fraction": [1, 2]}]
)
def test_other_types_are_refused(value: Any) -> None:
    # Kills: a repr where there is no encoding, and names that stand for the types JSON lacks.
    with pytest.raises(TypeError):
        encode({"v": value})


def test_what_is_not_unicode_is_refused() -> None:
    # Kills: one letter and two halves of it, written alike.
    for text in ("\ud800\udc00", "\udcff"):
        for values in ({"v": text}, {text: 1}):
            with pytest.raises(ValueError, match="surrogates"):
                encode(values)
