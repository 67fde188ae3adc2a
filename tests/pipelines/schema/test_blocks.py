"""The key `tokenizer` of a spec: what is taken, as what it is kept, and what is refused."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from quietcorpus.indexes.tokens import tokenizers
from quietcorpus.pipelines.kinds.histogram.spec import HistogramSpec
from quietcorpus.pipelines.schema.blocks import tokenizer_of
from quietcorpus.pipelines.schema.json_schema import schema
from quietcorpus.pipelines.schema.loading import as_spec
from quietcorpus.transforms.errors import InputError

V1, ICU = "unicode-words-v2", "icu-words-v2"
THAI = {"name": ICU, "language": "th"}


def content(**block: Any) -> dict[str, Any]:
    vocabulary = {"private": {"epsilon": 1, "delta": 1e-8}}
    mechanism = {"kind": "histogram", "precision": 10, "epsilon": 1, "vocabulary": vocabulary}
    places = {"input": {"path": "corpus/*.parquet"}, "output": "released"}
    return {"release": "r", "mechanism": mechanism | block, **places}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (V1, V1),
        ({"name": V1}, V1),
        (ICU, {"name": ICU, "language": None}),
        ({"name": ICU}, {"name": ICU, "language": None}),
        (THAI, THAI),
    ],
)
def test_a_rule_has_one_form(given: Any, kept: Any) -> None:
    # Two spellings of one rule are one spec, whose run has one identity.
    spec = as_spec(content(tokenizer=given))
    assert spec.model_dump()["mechanism"]["tokenizer"] == kept
    if isinstance(given, str) or "language" in given:
        jsonschema.validate(content(tokenizer=given), schema())


def test_the_default_is_as_it_was() -> None:
    # Kills: a default that is written in another form, which would rename every run.
    spec = as_spec(content())
    assert spec.model_dump()["mechanism"]["tokenizer"] == V1
    assert "tokenizer" not in spec.model_dump(exclude_defaults=True)["mechanism"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bpe", f"'bpe' is not allowed: give one of {V1}, {ICU}"),
        (3, f"3 is not allowed: give one of {V1}, {ICU}"),
        ([], f"[] is not allowed: give one of {V1}, {ICU}"),
        ({"name": "bpe"}, f".name: 'bpe' is not allowed: give one of {V1}, {ICU}"),
        ({}, ".name: missing; give it a value"),
        (THAI | {"name": V1}, f"{V1} is the same for all languages; give its name alone, or {ICU}"),
        (
            THAI | {"language": "xx"},
            ".language: 'xx' is not allowed; give one of af, am",
        ),
        (THAI | {"langauge": "th"}, ".langauge: unknown key, did you mean language? allowed here:"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        as_spec(content(tokenizer=given))
    said = str(caught.value)
    space = "" if message.startswith(".") else ": "
    assert said.startswith(f"spec: mechanism.tokenizer{space}{message}")
    assert "\n" not in said


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a traceback, or a run that begins, where the package is not installed.
    mechanism = as_spec(content(tokenizer=THAI)).mechanism
    assert isinstance(mechanism, HistogramSpec)
    monkeypatch.setattr(tokenizers, "icu_version", lambda: None)
    said = "mechanism.tokenizer: icu4py is not installed; install the extra [languages]"
    with pytest.raises(InputError) as caught:
        tokenizer_of(mechanism.tokenizer)
    assert str(caught.value) == said
