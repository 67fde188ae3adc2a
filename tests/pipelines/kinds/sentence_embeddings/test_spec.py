"""The mechanism block of `kind: sentence-embeddings`: what may stand there, and what may not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from quietcorpus.mechanisms.sentences.deep_candidate import Utility
from quietcorpus.pipelines.kinds.sentence_embeddings.spec import SentencesSpec
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.artefacts.encoder import PACKAGED
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.sentences import SentenceMechanism

if TYPE_CHECKING:
    from tests.conftest import Workspace

POSITIVE = "is not allowed; give a positive, finite number"
WHOLE = "is not allowed; give a positive whole number"
TRUNCATION = {"mechanism": "truncation"}
PROJECTED = {"mechanism": "projected-mean"}
MADLIB = {"mechanism": "madlib", "index": "built-index"}
INCLUDE = "is not allowed; give [text, recoded] or one of them, or leave it out"
INDEX = "index: give the words' own for madlib, and for nothing else"


@pytest.fixture
def loaded(workspace: Workspace) -> Callable[..., SentencesSpec]:
    """Loads a spec of sentence embeddings, good but for the given keys (... removes one)."""

    def load(**block: Any) -> SentencesSpec:
        whole = {
            "kind": "sentence-embeddings",
            "mechanism": "deep-candidate",
            "epsilon": 10,
            "candidates": "built",
        } | block
        changes = {"mechanism": {key: value for key, value in whole.items() if value is not ...}}
        mechanism = load_spec(str(workspace.spec(changes))).mechanism
        assert isinstance(mechanism, SentencesSpec)
        return mechanism

    return load


def test_what_is_good(loaded: Callable[..., SentencesSpec]) -> None:
    # Kills: another default, an epsilon that has been a float.
    plain = loaded(epsilon=0.1)
    assert plain.mechanism is SentenceMechanism.DEEP_CANDIDATE
    assert plain.epsilon == Fraction(1, 10)
    assert plain.candidates.startswith("/")
    assert (plain.encoder, plain.most_sentences) == (PACKAGED, 64)
    assert (plain.utility, plain.projections) == (None, None)
    for utility in Utility:
        assert loaded(utility=utility.value).utility is utility
    for depths in ({}, {"utility": "depth"}, {"utility": "mean-depth"}):
        assert loaded(projections=7, **depths).projections == 7
    assert (plain.include, loaded(include=["text"]).include) == (None, ["text"])
    assert loaded(include=["recoded", "text"]).include == ["recoded", "text"]
    assert "include" not in plain.model_dump()  # or a release of before would be another
    assert loaded(**TRUNCATION, most_sentences=1).mechanism is SentenceMechanism.TRUNCATION
    assert loaded(**PROJECTED, directions=24).directions == 24
    assert loaded(**PROJECTED).directions is None
    assert "directions" not in plain.model_dump()
    assert str(loaded(**MADLIB).index).endswith("/built-index")
    assert "search" not in plain.model_dump()
    searched = loaded(**MADLIB, search={"engine": "faiss-ivf", "probes": 8}).search
    assert searched is not None
    assert searched.probes == 8
    assert loaded(candidates="s3://bucket/made/").candidates == "s3://bucket/made"
    assert loaded(encoder="models/mine").encoder == "models/mine"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            {"search": {"engine": "exact"}},
            "mechanism.search: is for madlib alone, which searches for words",
        ),
        (
            MADLIB | {"search": {"engine": "faiss-binary-flat"}},
            "mechanism.search.engine: faiss-binary-flat is not for madlib; give one of exact, ",
        ),
        ({"epsilon": 0}, f"mechanism.epsilon: 0 {POSITIVE}"),
        ({"epsilon": float("nan")}, f"mechanism.epsilon: nan {POSITIVE}"),
        ({"epsilon": "10"}, "mechanism.epsilon: '10' is not a number; give a positive number"),
        ({"epsilon": ...}, "mechanism.epsilon: missing; give it a value"),
        ({"document_epsilon": 5}, "mechanism.document_epsilon: unknown key; allowed here: kind, "),
        ({"mechanism": ...}, "mechanism.mechanism: missing; give it a value"),
        ({"mechanism": "brr"}, "mechanism.mechanism: 'brr' is not allowed: "),
        ({"mechanism": "madlib"}, f"mechanism.{INDEX}"),
        ({"mechanism": "madlib", "index": " "}, "mechanism.index: ' ' is not allowed; give a"),
        ({"index": "built-index"}, f"mechanism.{INDEX}"),
        (TRUNCATION | {"index": "built-index"}, f"mechanism.{INDEX}"),
        (MADLIB | {"utility": "depth"}, "mechanism.utility: is for deep-candidate alone"),
        (
            MADLIB | {"projections": 5},
            "mechanism.projections: is for the depths of deep-candidate alone",
        ),
        ({"candidates": ...}, "mechanism.candidates: missing; give it a value"),
        ({"candidates": " "}, "mechanism.candidates: ' ' is not allowed; give a path or a URI"),
        ({"encoder": ""}, "mechanism.encoder: '' is not allowed"),
        ({"encoder": 3}, "mechanism.encoder: 3 is not a string; put it in quotes"),
        ({"utility": "depths"}, "mechanism.utility: 'depths' is not allowed: "),
        ({"projections": 0}, f"mechanism.projections: 0 {WHOLE}"),
        ({"projections": 1.5}, f"mechanism.projections: 1.5 {WHOLE}"),
        ({"projections": True}, f"mechanism.projections: True {WHOLE}"),
        ({"most_sentences": 0}, f"mechanism.most_sentences: 0 {WHOLE}"),
        ({"most_sentences": "all"}, f"mechanism.most_sentences: 'all' {WHOLE}"),
        ({"tokenizer": "unicode-words-v2"}, "mechanism.tokenizer: unknown key; allowed here: kin"),
        (PROJECTED | {"directions": 0}, f"mechanism.directions: 0 {WHOLE}"),
        (PROJECTED | {"directions": 25}, "mechanism.directions: 25 is not allowed"),
        # What is another mechanism's.
        ({"directions": 5}, "mechanism.directions: is for projected-mean alone"),
        (PROJECTED | {"utility": "depth"}, "mechanism.utility: is for deep-candidate alone"),
        (
            PROJECTED | {"projections": 5},
            "mechanism.projections: is for the depths of deep-candidate alone",
        ),
        (
            PROJECTED | {"include": ["text"]},
            "mechanism.include: is for deep-candidate alone, which draws public documents",
        ),
        ({"include": []}, f"mechanism.include: [] {INCLUDE}"),
        ({"include": "text"}, f"mechanism.include: 'text' {INCLUDE}"),
        ({"include": ["bins"]}, f"mechanism.include: list {INCLUDE}"),
        ({"include": ["text"] * 2}, f"mechanism.include: list {INCLUDE}"),
        (TRUNCATION | {"utility": "depth"}, "mechanism.utility: is for deep-candidate alone"),
        (
            TRUNCATION | {"projections": 5},
            "mechanism.projections: is for the depths of deep-candidate alone",
        ),
        (
            {"utility": "similarity", "projections": 5},
            "mechanism.projections: is for the depths of deep-candidate alone",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_what_is_refused(
    loaded: Callable[..., SentencesSpec],
    workspace: Workspace,
    block: dict[str, Any],
    message: str,
) -> None:
    # Kills: a key that is taken and then ignored.
    with pytest.raises(InputError) as raised:
        loaded(**block)
    found = str(raised.value)
    assert "\n" not in found
    assert found.removeprefix(f"{workspace.folder}/spec.yaml: ").startswith(message)


@pytest.mark.parametrize("name", ["candidate", "embedding"])
def test_what_is_released_is_never_kept(workspace: Workspace, name: str) -> None:
    # Kills: a column of the input's under the name of a released one.
    block = {
        "kind": "sentence-embeddings",
        "mechanism": "deep-candidate",
        "epsilon": 1,
        "candidates": "built",
    }
    source = {"path": "input/*", "keep": [name]}
    with pytest.raises(InputError, match=f"'{name}' is a name that releases use themselves"):
        load_spec(str(workspace.spec({"mechanism": block, "input": source})))
