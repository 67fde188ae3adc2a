"""The mechanism block of `kind: words`: what may stand there, and one line for what may not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from quietcorpus.pipelines.kinds.words.spec import MatchedEpsilon, WordsSpec
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

POSITIVE = "is not allowed; give a positive, finite number"
NUMBER = "is not a number; give a positive number"
ONE = "mechanism: give exactly one of `epsilon`, which every word has, and `document_epsilon`"
DOCUMENT = {"epsilon": 20, "delta": 1e-6, "words": 200}
MATCHING = {"mechanism": "madlib", "epsilon": 10}


@pytest.fixture
def loaded(workspace: Workspace) -> Callable[..., WordsSpec]:
    """Loads a spec of words, good but for the given keys (... removes one)."""

    def load(**block: Any) -> WordsSpec:
        whole = {"kind": "words", "mechanism": "brr", "epsilon": 10, "index": "built"} | block
        changes = {"mechanism": {key: value for key, value in whole.items() if value is not ...}}
        mechanism = load_spec(str(workspace.spec(changes))).mechanism
        assert isinstance(mechanism, WordsSpec)
        return mechanism

    return load


def test_what_is_good(loaded: Callable[..., WordsSpec], workspace: Workspace) -> None:
    plain = loaded(epsilon=0.1)
    assert plain.epsilon == Fraction(1, 10)
    assert (plain.document_epsilon, plain.out_of_vocabulary) == (None, "drop")
    assert loaded(mechanism="madlib", out_of_vocabulary="draw").out_of_vocabulary == "draw"
    assert loaded(epsilon=..., document_epsilon=5).document_epsilon == 5
    for by in ("mean", "maximum"):
        matched = loaded(epsilon={"matching": MATCHING | {"epsilon": 0.3, "by": by}}).epsilon
        assert isinstance(matched, MatchedEpsilon)
        assert (matched.matching.epsilon, matched.matching.by) == (Fraction(3, 10), by)
    matched = loaded(epsilon=..., document_epsilon={"matching": MATCHING}).document_epsilon
    assert isinstance(matched, MatchedEpsilon)
    assert matched.matching.by == "mean"
    whole = {"epsilon": 20, "delta": 1e-6, "words": 200}
    budget = loaded(epsilon=..., document_epsilon=whole).budget
    assert budget is not None
    assert (budget.epsilon, budget.delta, budget.words) == (20, Fraction(1, 10**6), 200)
    assert budget.longer == "refuse"  # nothing is cut unless it is asked for
    assert loaded(epsilon=..., document_epsilon=whole | {"longer": "cut"}).budget != budget
    assert plain.budget is None
    assert loaded(mechanism="tem", truncation=0.1).truncation == Fraction(1, 10)
    assert loaded(mechanism="tem").truncation is None
    assert "truncation" not in plain.model_dump()  # so that earlier specs keep their digests
    assert loaded(mechanism="vickrey", tuning=0.1).tuning == Fraction(1, 10)
    assert loaded(mechanism="vickrey", tuning=1).tuning == 1
    assert "tuning" not in plain.model_dump()
    assert loaded(index="s3://bucket/index/").index == "s3://bucket/index"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"epsilon": 0}, f"mechanism.epsilon: 0 {POSITIVE}"),
        ({"epsilon": -1}, f"mechanism.epsilon: -1 {POSITIVE}"),
        ({"epsilon": float("nan")}, f"mechanism.epsilon: nan {POSITIVE}"),
        ({"epsilon": float("inf")}, f"mechanism.epsilon: inf {POSITIVE}"),
        ({"epsilon": 1e12}, "mechanism.epsilon: 1000000000000.0 is not allowed; "),
        ({"epsilon": "10"}, f"mechanism.epsilon: '10' {NUMBER}"),
        ({"epsilon": True}, f"mechanism.epsilon: True {NUMBER}"),
        ({"epsilon": [10]}, f"mechanism.epsilon: list {NUMBER}"),
        ({"epsilon": ..., "document_epsilon": 0}, f"mechanism.document_epsilon: 0 {POSITIVE}"),
        ({"epsilon": ..., "document_epsilon": "5"}, f"mechanism.document_epsilon: '5' {NUMBER}"),
        ({"epsilon": ...}, ONE),
        ({"document_epsilon": 5}, ONE),
        ({"document_epsilon": {"matching": MATCHING}}, ONE),
        ({"epsilon": None}, ONE),
        # Matching.
        ({"epsilon": {}}, "mechanism.epsilon.matching: missing; give it a value"),
        (
            {"epsilon": {"matching": 3}},
            "mechanism.epsilon.matching: expected a mapping, got 3; give the",
        ),
        (
            {"epsilon": {"matching": {"mechanism": "madlib"}}},
            "mechanism.epsilon.matching.epsilon: missing; give it a value",
        ),
        (
            {"epsilon": {"matching": {"epsilon": 10}}},
            "mechanism.epsilon.matching.mechanism: missing; give it a value",
        ),
        (
            {"epsilon": {"matching": MATCHING | {"epsilon": 0}}},
            f"mechanism.epsilon.matching.epsilon: 0 {POSITIVE}",
        ),
        (
            {"epsilon": {"matching": MATCHING | {"epsilon": {"matching": MATCHING}}}},
            "mechanism.epsilon.matching.epsilon: ",
        ),
        (
            {"epsilon": {"matching": MATCHING | {"mechanism": "sentdp"}}},
            "mechanism.epsilon.matching.mechanism: 'sentdp' is not allowed: ",
        ),
        (
            {"epsilon": {"matching": MATCHING | {"by": "median"}}},
            "mechanism.epsilon.matching.by: 'median' is not allowed: ",
        ),
        (
            {"epsilon": {"matching": MATCHING | {"delta": 1}}},
            "mechanism.epsilon.matching.delta: unknown key; allowed here: mechanism, epsilon, by",
        ),
        (
            {"epsilon": {"matching": MATCHING, "by": "mean"}},
            "mechanism.epsilon.by: unknown key; allowed here: matching",
        ),
        (
            {"epsilon": ..., "document_epsilon": {"matching": MATCHING | {"eps": 1}}},
            "mechanism.document_epsilon.matching.eps: unknown key; allowed here: mechanism, epsi",
        ),
        (
            {"mechanism": "madlib", "epsilon": {"matching": MATCHING}},
            "mechanism.epsilon.matching.mechanism: madlib is this mechanism itself; give epsilon ",
        ),
        # Whole documents.
        (
            {"epsilon": ..., "document_epsilon": {"epsilon": 20, "words": 200}},
            "mechanism.document_epsilon.delta: missing; give it a value",
        ),
        (
            {"epsilon": ..., "document_epsilon": DOCUMENT | {"delta": 0.1}},
            "mechanism.document_epsilon.delta: 0.1 is not allowed; give a number below 0.1",
        ),
        (
            {"epsilon": ..., "document_epsilon": DOCUMENT | {"delta": 0}},
            f"mechanism.document_epsilon.delta: 0 {POSITIVE}",
        ),
        (
            {"epsilon": ..., "document_epsilon": DOCUMENT | {"words": 10001}},
            "mechanism.document_epsilon.words: 10001 is not allowed: ",
        ),
        (
            {"epsilon": ..., "document_epsilon": DOCUMENT | {"longer": "keep"}},
            "mechanism.document_epsilon.longer: 'keep' is not allowed: ",
        ),
        (
            {"epsilon": ..., "document_epsilon": DOCUMENT | {"matching": MATCHING}},
            "mechanism.document_epsilon.",
        ),
        ({"epsilon": DOCUMENT}, "mechanism.epsilon."),
        # The rest.
        ({"mechanism": "custext"}, "mechanism.mechanism: 'custext' is not allowed: "),
        ({"truncation": 2}, "mechanism.truncation: only tem takes it, above 0"),
        (
            {"mechanism": "exponential", "truncation": 2},
            "mechanism.truncation: only tem takes it, above 0",
        ),
        ({"mechanism": "tem", "truncation": 0}, f"mechanism.truncation: 0 {POSITIVE}"),
        ({"mechanism": "tem", "truncation": "2"}, f"mechanism.truncation: '2' {NUMBER}"),
        ({"mechanism": "tem", "truncation": 1e9}, "mechanism.truncation: 1000000000.0 is not all"),
        (
            {"mechanism": "tem", "search": {"engine": "faiss-flat"}},
            "mechanism.search.engine: faiss-flat is not for tem; give one of exact",
        ),
        ({"tuning": 0.5}, "mechanism.tuning: only vickrey takes it, and needs it, above 0 and at"),
        ({"mechanism": "vickrey"}, "mechanism.tuning: only vickrey takes it, and needs it"),
        ({"mechanism": "vickrey", "tuning": 0}, f"mechanism.tuning: 0 {POSITIVE}"),
        (
            {"mechanism": "vickrey", "tuning": 1.01},
            "mechanism.tuning: 1.01 is not allowed; give a number above 0, and at most 1",
        ),
        (
            {"mechanism": "vickrey", "tuning": 0.5, "search": {"engine": "faiss-binary-flat"}},
            "mechanism.search.engine: faiss-binary-flat is not for vickrey",
        ),
        ({"mechanism": ...}, "mechanism.mechanism: missing; give it a value"),
        ({"index": ...}, "mechanism.index: missing; give it a value"),
        ({"index": ""}, "mechanism.index: '' is not allowed; give a path or a URI"),
        ({"index": {"public": "x"}}, "mechanism.index: "),
        ({"out_of_vocabulary": "keep"}, "mechanism.out_of_vocabulary: 'keep' is not allowed: "),
        ({"tokenizer": "bpe"}, "mechanism.tokenizer: 'bpe' is not allowed: "),
        ({"precision": 2}, "mechanism.precision: unknown key; allowed here: kind, mechanism, eps"),
        ({"vocabulary": {"public": "v"}}, "mechanism.vocabulary: unknown key; allowed here: kin"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_what_is_refused(
    loaded: Callable[..., WordsSpec], workspace: Workspace, block: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        loaded(**block)
    found = str(raised.value)
    assert "\n" not in found
    assert found.removeprefix(f"{workspace.folder}/spec.yaml: ").startswith(message)


def test_a_text_column_is_never_kept(workspace: Workspace) -> None:
    # `text` is the name of what is released; a kept column of that name would be raw text.
    block = {"kind": "words", "mechanism": "brr", "epsilon": 1, "index": "built"}
    source = {"path": "input/*", "text": "body", "keep": ["text"]}
    with pytest.raises(InputError, match="'text' is a name that releases use themselves"):
        load_spec(str(workspace.spec({"mechanism": block, "input": source})))


def test_a_spec_without_search_is_as_before_there_were_engines(
    loaded: Callable[..., WordsSpec],
) -> None:
    # Its digest is of its values. Kills: a key with a default, which makes every digest another.
    assert "search" not in loaded().model_dump()
    flat = loaded(search={"engine": "faiss-binary-flat"})
    assert flat.model_dump()["search"] == {"engine": "faiss-binary-flat", "probes": None}


def test_probes_have_a_default_for_lists_alone(loaded: Callable[..., WordsSpec]) -> None:
    for given, probes in (({}, 32), ({"probes": 8}, 8)):
        spec = loaded(mechanism="madlib", search={"engine": "faiss-ivf"} | given)
        assert spec.search is not None
        assert spec.search.probes == probes
