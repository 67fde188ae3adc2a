"""The card: its published schema, and the cards of real releases."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from card_schema import SCHEMA, VALIDATOR, assert_valid
from pydantic import ValidationError
from ruamel.yaml import YAML

from quietcorpus.mechanisms.accounting.guarantees import SentencePrivacy
from quietcorpus.pipelines.card import model as card
from quietcorpus.pipelines.card import readme, statements
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.parameters import (
    LimitedPrecisionParameters,
    SentenceParameters,
    costs,
    parameters,
)
from quietcorpus.pipelines.card.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Workspace

BAG = {
    "mechanism.compression": {"method": "frequency", "size": 2},
    "mechanism.histogram_epsilon": 0.3,
}
PRIVATE = {"mechanism.vocabulary": {"private": {"epsilon": 0.1, "delta": 1e-8}}}
HISTOGRAM = {"mechanism.kind": "histogram", "mechanism.compression": ...}


def test_the_published_schema_is_the_models() -> None:
    # To renew it:
    # python -c "from quietcorpus.pipelines.card.model import schema; print(schema(), end='')"
    assert SCHEMA.read_text() == card.schema()
    jsonschema.Draft202012Validator.check_schema(json.loads(card.schema()))


def test_the_text_of_many_files_is_written_piece_by_piece() -> None:
    # Kills: `json.dumps`, which holds a dozen objects for each file until it joins them.
    files = [card.File(path=f"data/{n}.parquet", sha256="0" * 64, rows=n) for n in range(1000)]
    made = Card.model_construct(release="many", files=files)
    expected = json.dumps(made.model_dump(mode="json", exclude_none=True), indent=2) + "\n"
    tracemalloc.start()
    try:
        assert made.to_json() == expected
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(expected)


def exact(parameters: dict[str, Any]) -> tuple[int, Fraction, Fraction]:
    """The numbers of a guarantee, once the floats are seen not to understate them."""
    epsilon, delta = Fraction(parameters["epsilon_exact"]), Fraction(parameters["delta_exact"])
    assert Fraction(parameters["epsilon"]) >= epsilon
    assert Fraction(parameters["delta"]) >= delta
    assert parameters["epsilon"] == pytest.approx(float(epsilon), rel=1e-15)
    return parameters["precision"], epsilon, delta


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ({}, {"documents": (2, 4, 0)}),
        (BAG, {"histogram": (2, Fraction(3, 10), 0), "documents": (2, 4, 0)}),
        (
            BAG | {"mechanism.accounting": "per-entry"},
            {"histogram": (2, Fraction(3, 10), 0), "documents": (2, 16, 0)},
        ),
        (HISTOGRAM, {"histogram": (2, 4, 0)}),
        (
            PRIVATE | HISTOGRAM,
            {"vocabulary": (2, Fraction(1, 10), Fraction(1, 10**8)), "histogram": (2, 4, 0)},
        ),
    ],
    ids=["plain", "bag", "per-entry", "histogram", "private"],
)
def test_the_card_of_a_release(
    workspace: Workspace, changes: dict[str, Any], stages: dict[str, tuple[Any, ...]]
) -> None:
    workspace.json_lines(["quiet world hello", "quiet world"] * 300 + [b"{"])
    workspace.release(changes | {"rejects": {"path": "rejects", "max_share": 0.1}})
    made = workspace.card()
    assert_valid(made)
    spent = {part["stage"]: exact(part["parameters"]) for part in made["budget"]["stages"]}
    assert spent == stages
    total = exact(made["budget"]["total"])
    assert total == (2, *(sum(s[i] for s in stages.values()) for i in (1, 2)))
    assert exact(made["guarantee"]["parameters"]) == total
    assert made["counts"] == {"documents": 600, "rejected": 1}
    assert made["release"] == "test"
    assert made["mechanism"]["epsilon"] == 4
    assert [a["name"] for a in made["artefacts"]] == (
        [] if "private" in str(changes) else ["vocabulary"]
    )
    # Rule 7: nothing exact about the content but the number of documents.
    assert set(made["counts"]) == {"documents", "rejected"}


def front_matter(text: str) -> dict[str, Any]:
    """The YAML at the head of a README."""
    assert text.startswith("---\n")
    content: dict[str, Any] = YAML(typ="safe").load(text.split("---\n")[1])
    return content


@pytest.mark.parametrize("release", ["plain", "1.0", "null", "2026-11-21", "no", "0x1F"])
def test_the_readme_begins_with_front_matter(release: str) -> None:
    # Kills: a name that YAML reads as a number, a date or a truth value.
    made = Card.model_validate(EXAMPLE | {"release": release})
    assert front_matter(readme.render(made))["pretty_name"] == release


def test_the_readme_says_what_the_card_says(workspace: Workspace) -> None:
    workspace.json_lines([{"text": "quiet", "product": "loan"}])
    workspace.release(BAG | {"input.keep": ["product"], "mechanism.accounting": "per-entry"})
    text = (workspace.output / "README.md").read_text()
    made = workspace.card()
    assert made["guarantee"]["statement"] in text
    assert made["papers_figure"]["explanation"] in text
    for line in made["guarantee"]["not_protected"]:
        assert f"- {line}\n" in text
    for artefact in made["artefacts"]:
        assert artefact["digest"] in text
    assert "epsilon 16.3" in text
    # What makes the guarantee mean little comes first, and what nothing protects next.
    weak, _, kept = made["guarantee"]["not_protected"][:3]
    assert "epsilon, 16.3, is above 10" in weak
    assert "product" in kept
    (config,) = front_matter(text)["configs"]
    assert config["data_files"] == [{"split": "train", "path": "data/*.parquet"}]
    assert list(workspace.output.glob("data/*.parquet"))


@pytest.mark.parametrize("name", ["case", "id"])
def test_a_kept_id_is_named_as_it_is_released(workspace: Workspace, name: str) -> None:
    # Kills: a card that names a column which the data files do not have; one that does not say
    # whose values their ids are.
    workspace.json_lines([{"text": "quiet", "product": "loan", name: "7"}])
    workspace.release({"input.id": name, "input.keep": ["product", name]})
    made = workspace.card()
    (path,) = workspace.output.glob("data/*.parquet")
    released = pq.read_schema(path).names
    assert made["columns"] == [n for n in released if n not in ("terms", "counts")]
    assert made["columns"] == ["id", "product"]
    assert made["id_column"] == name
    assert verify(str(workspace.output)).kept == [name, "product"]
    text = (workspace.output / "README.md").read_text()
    own = " (the input's `case`)" if name == "case" else ""
    assert f"- copied as they are: `id`{own}, `product`\n" in text
    own = own.replace("`", "")
    assert f"- the columns id{own}, product: copied as they are, and joinable" in text


def test_an_id_that_is_not_kept_is_not_named(workspace: Workspace) -> None:
    # Kills: fresh ids that pass for the input's.
    workspace.json_lines([{"text": "quiet", "product": "loan", "case": "7"}])
    workspace.release({"input.id": "case", "input.keep": ["product"]})
    made = workspace.card()
    assert made["columns"] == ["product"]
    assert "id_column" not in made


def test_a_histogram_keeps_no_column(workspace: Workspace) -> None:
    # Kills: a card that names columns of rows which there are not.
    workspace.json_lines([{"text": "quiet", "product": "loan"}])
    workspace.release(HISTOGRAM | {"input.keep": ["product"]})
    assert workspace.card()["columns"] == []
    assert "product" not in (workspace.output / "README.md").read_text()


def test_a_histogram_is_its_own_data(workspace: Workspace) -> None:
    workspace.release(HISTOGRAM)
    content = front_matter((workspace.output / "README.md").read_text())
    assert content["configs"][0]["data_files"][0]["path"] == "vocabulary.parquet"
    assert sorted(path.name for path in workspace.output.iterdir()) == [
        "README.md",
        "page.html",
        "release.json",
        "vocabulary.parquet",
    ]


def changed(place: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *parents, last = place.split(".")

    def change(content: dict[str, Any]) -> None:
        for parent in parents:
            content = content[int(parent)] if parent.isdigit() else content[parent]
        content[last] = value

    return change


def test_the_numbers_of_sentence_privacy_come_back() -> None:
    # Kills: an epsilon that is rounded down or to a float, the first definition that happens to
    # fit the numbers.
    promised = SentencePrivacy(Fraction(1, 3))
    numbers = parameters(promised)
    assert isinstance(numbers, SentenceParameters)
    assert numbers.guarantee == promised
    assert Fraction(numbers.epsilon) >= Fraction(1, 3)
    assert costs(numbers) == "epsilon 0.333334 a sentence"
    parts = {"parameters": numbers.model_dump(mode="json")}
    content = SENTENCES_EXAMPLE | {"guarantee": SENTENCES_EXAMPLE["guarantee"] | parts}
    assert Card.model_validate(content).guarantee.parameters == numbers
    said = statements.statement(promised)
    assert "at most exp(0.333334), and replacing a of them by one of at most exp(a * 0.3" in said
    text = readme.render(Card.model_validate(content))
    assert "| definition | d, epsilon 0.333334 a sentence |" in text


NUMBERS = LimitedPrecisionParameters(
    precision=2, epsilon=4, epsilon_exact="4", delta=0, delta_exact="0"
).model_dump(mode="json")
EXAMPLE: dict[str, Any] = {
    "schema_version": 1,
    "release": "example",
    "created": "2026-11-21T12:00:00+00:00",
    "mechanism": {
        "precision": 1,
        "epsilon": 1.0,
        "vocabulary": {"public": "vocabulary.txt"},
        "tokenizer": "unicode-words-v2",
        "kind": "histogram",
        "vocabulary_size": 8,
    },
    "guarantee": {
        "definition": "d",
        "adjacency": "a",
        "unit": "u",
        "parameters": NUMBERS,
        "statement": "s",
        "not_protected": [],
    },
    "budget": {"stages": [{"stage": "histogram", "parameters": NUMBERS}], "total": NUMBERS},
    "artefacts": [{"name": "v", "uri": "v", "digest": "d", "provenance": "public"}],
    "counts": {"documents": 1, "rejected": 0},
    "columns": [],
    "files": [{"path": "vocabulary.parquet", "sha256": "0" * 64, "rows": 1}],
    "readme_sha256": "0" * 64,
    "software": {"quietcorpus": "0"},
}
METRIC = {"metric": "m", "epsilon": 3.0, "epsilon_exact": "3", "per": "word"}
SPREAD = {"least": 0.0, "low": 0.1, "median": 0.5, "high": 1.0, "largest": 1.0}
WORDS_EXAMPLE = EXAMPLE | {
    "mechanism": {
        "kind": "words",
        "mechanism": "madlib",
        "epsilon": 10.0,
        "index": "index",
        "out_of_vocabulary": "drop",
        "tokenizer": "unicode-words-v2",
        "epsilon_exact": "10",
        "words": 8,
    },
    "guarantee": EXAMPLE["guarantee"] | {"parameters": METRIC},
    "budget": {"stages": [{"stage": "documents", "parameters": METRIC}], "total": METRIC},
    "meaning": {
        "mean_distance": 1.5,
        "maximum_distance": 2,
        "loss_at_mean": 4.5,
        "loss_at_maximum": 6,
        "typical": [
            {
                "document_words": n,
                "epsilon": 3.0,
                "unchanged": SPREAD,
                "set_size": SPREAD,
                "set_size_limit": 244,
            }
            for n in (10, 100)
        ],
        "sample": "s",
    },
    "artefacts": [
        {
            "name": "index",
            "uri": "index",
            "digest": "d",
            "provenance": "private",
            "guarantee": {"statement": "s"},
        }
    ],
}
SENTENCE = {"epsilon": 10.0, "epsilon_exact": "10"}
SENTENCES_EXAMPLE = EXAMPLE | {
    "mechanism": {
        "kind": "sentence-embeddings",
        "mechanism": "truncation",
        "epsilon": 10.0,
        "candidates": "candidates",
        "encoder": "encoder",
        "most_sentences": 4,
        "epsilon_exact": "10",
        "dimensions": 384,
        "encoder_precision": "float32",
        "encoder_software": "torch",
    },
    "guarantee": EXAMPLE["guarantee"] | {"parameters": SENTENCE},
    "budget": {"stages": [{"stage": "documents", "parameters": SENTENCE}], "total": SENTENCE},
    "artefacts": [
        {"name": name, "uri": name, "digest": "d", "provenance": "public"}
        for name in ("candidates", "encoder")
    ],
    "files": [{"path": "data/part-00000-of-00001.parquet", "sha256": "0" * 64, "rows": 1}],
}


CHANGES: dict[str, tuple[dict[str, Any], list[Callable[[dict[str, Any]], Any]]]] = {
    "histogram": (
        EXAMPLE,
        [
            changed("schema_version", 2),
            changed("note", "x"),
            changed("files.0.sha256", "00"),
            changed("mechanism.kind", "essays"),
            changed("mechanism.vocabulary_size", "many"),
            changed("mechanism.note", "x"),
            changed("files.0.path", "a b"),
            changed("files.0.rows", -1),
            changed("counts.tokens", 5),
            changed("guarantee.parameters.delta", 1.0),
            changed("guarantee.parameters.precision", 0),
            changed("artefacts.0.provenance", "unknown"),
            lambda content: content.pop("guarantee"),
        ],
    ),
    "words": (
        WORDS_EXAMPLE,
        [
            changed("guarantee.parameters.epsilon", -1.0),
            changed("guarantee.parameters.epsilon", 0.0),
            changed("guarantee.parameters.per", "sentence"),
            changed("guarantee.parameters.precision", 3),
            changed("budget.stages.0.parameters", {"metric": "m", "epsilon": 1.0}),
            changed("meaning.note", "x"),
            changed("meaning.loss_at_maximum", "much"),
            changed("meaning.typical.0.unchanged.low", None),
            changed("meaning.typical.0.document_words", 1.5),
            changed("artefacts.0.guarantee", "yes"),
            changed("artefacts.0.provenance", None),
            lambda content: content["meaning"].pop("mean_distance"),
            lambda content: content["meaning"]["typical"][0].pop("set_size"),
        ],
    ),
    # Kills: numbers of sentence privacy that are taken for another definition's, or are loose.
    "sentences": (
        SENTENCES_EXAMPLE,
        [
            changed("guarantee.parameters.epsilon", 0.0),
            changed("guarantee.parameters.per", "word"),
            changed("guarantee.parameters.sentences", 4),
            changed("budget.stages.0.parameters", {"epsilon": 10.0}),
            changed("budget.total", {"epsilon_exact": "10"}),
            changed("counts.sentences", 120),
            changed("artefacts.0.digest", None),
        ],
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_schema_and_model_refuse_the_same_cards(kind: str) -> None:
    # The example is good, and once changed neither the model nor the schema takes it.
    example, changes = CHANGES[kind]
    Card.model_validate(example)
    assert_valid(example)
    for number, change in enumerate(changes):
        content = json.loads(json.dumps(example))
        change(content)
        with pytest.raises(ValidationError):
            Card.model_validate(content)
        assert not VALIDATOR.is_valid(content), number
