"""The JSON Schema of a spec, by which editors check one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from quietcorpus.pipelines.schema.json_schema import schema
from quietcorpus.pipelines.schema.loading import as_spec
from quietcorpus.transforms.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
VALIDATOR = jsonschema.Draft7Validator(schema())


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe", pure=True).load(path)
    return content


def test_the_schema_is_the_documented_one() -> None:
    # Kills: a schema that was not written again after a change.
    documented = (ROOT / "docs" / "reference" / "spec.schema.json").read_text()
    assert documented == json.dumps(schema(), indent=2) + "\n"
    jsonschema.Draft7Validator.check_schema(schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_names_the_schema_and_keeps_to_it(path: Path) -> None:
    # Kills: a schema that refuses what is allowed, and a path that editors do not find.
    first = path.read_text().partition("\n")[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == ROOT / "docs" / "reference" / "spec.schema.json"
    VALIDATOR.validate(read(path))


BAG = read(ROOT / "examples" / "bag-of-words.yaml")
WORDS = read(ROOT / "examples" / "words.yaml")
USERS = read(ROOT / "examples" / "word-embeddings.yaml")


def changed(spec: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return spec | {"mechanism": spec["mechanism"] | keys}


@pytest.mark.parametrize(
    "spec",
    [
        changed(BAG, include=["bins"]),
        changed(BAG, vocabulary={"private": {"epsilon": 1, "delta": 1e-8}}),
        changed(BAG, epsilon=0.5) | {"ledger": "ledger"},
        changed(BAG) | {"ledger": {"path": "ledger", "partition": "2026-01"}},
        changed(WORDS, epsilon={"matching": {"mechanism": "brr", "epsilon": 1}}),
    ],
    ids=range(5),
)
def test_what_the_models_accept_keeps_to_the_schema(spec: dict[str, Any]) -> None:
    # Kills: the keys that may be written in two ways, and the schema knows one of them.
    as_spec(spec)
    VALIDATOR.validate(spec)


@pytest.mark.parametrize(
    "spec",
    [
        BAG | {"weather": "fair"},
        {key: value for key, value in BAG.items() if key != "output"},
        BAG | {"output": 7},
        BAG | {"release": "a b"},
        changed(BAG, epsilon="5"),
        changed(BAG, epsilon=0),
        changed(BAG, epsilon=1e9),
        changed(BAG, precision=1.5),
        changed(BAG, precision=0),
        changed(BAG, kind="bags"),
        changed(BAG, kind="words"),
        changed(BAG, index="an index"),
        changed(BAG, include=["terms"]),
        changed(BAG, vocabulary={}),
        changed(BAG, vocabulary={"private": {"epsilon": 1, "delta": 1}}),
        changed(BAG, compression={"method": "best", "size": 2}),
        changed(WORDS, document_epsilon=1),
        changed(WORDS, out_of_vocabulary="keep"),
        changed(USERS, tokens=10_001),
        changed(USERS, budgets={"column": "tier", "levels": [1]}),
    ],
    ids=range(20),
)
def test_what_the_schema_refuses_the_models_refuse(spec: dict[str, Any]) -> None:
    # Kills: a schema that accepts anything, and one that refuses what is allowed.
    assert not VALIDATOR.is_valid(spec)
    with pytest.raises(InputError):
        as_spec(spec)
