"""Verification of releases of words: what is changed is caught, on the card too."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tampering import (
    DATA,
    PROMISE,
    TEN,
    add_vocabulary,
    card,
    everywhere,
    flip,
    parameters_of,
    promising,
    rewrite,
)

from quietcorpus.mechanisms.accounting.guarantees import (
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
)
from quietcorpus.mechanisms.words.brr import BinaryRandomizedResponse
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.statements import statement
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.pipelines.kinds.words.card import word_limits
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture(scope="module")
def original(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    words: Callable[..., dict[str, Any]],
) -> Path:
    workspace = new_workspace(tmp_path_factory.mktemp("release"))
    workspace.json_lines(["police in the city said"] * 40)
    workspace.release(words())
    return workspace.output


@pytest.fixture
def release(tmp_path: Path, original: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(original, tmp_path / "released" / "out")


def losses(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], Any]:
    """Return a change of what the card says documents are protected by."""
    return card(lambda c: change(c["meaning"]["document_losses"]))


TAMPERINGS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "data byte": (lambda r: flip(r, DATA), f"{DATA}: not the file that release.json describes"),
    "terms": (
        lambda r: rewrite(r, DATA, lambda t: t.append_column("terms", t["text"])),
        f"{DATA}: columns that release.json does not account for: terms",
    ),
    "no text": (
        lambda r: rewrite(r, DATA, lambda t: t.drop_columns("text")),
        f"{DATA}: columns that release.json does not account for: text",
    ),
    "fewer rows": (lambda r: rewrite(r, DATA, lambda t: t.slice(3)), "37 rows, but release.json"),
    "a vocabulary": (add_vocabulary, "vocabulary.parquet: "),
    "smaller epsilon": (
        everywhere(epsilon=1.0, epsilon_exact="1"),
        "guarantee: its words do not match the budget",
    ),
    "rounded down": (everywhere(epsilon=9.5), "budget: the stages do not add up to the total"),
    "another metric": (everywhere(metric="number of letters"), PROMISE),
    "a metric of one's own": (promising(MetricPrivacy("letters", TEN)), PROMISE),
    "the other mechanism's metric": (
        promising(MetricPrivacy(BinaryRandomizedResponse.metric, TEN)),
        PROMISE,
    ),
    "sentences": (promising(SentencePrivacy(TEN)), PROMISE),
    "bags": (promising(LimitedPrecision(1, TEN)), PROMISE),
    "another mechanism": (card(lambda c: c["mechanism"].update(mechanism="brr")), PROMISE),
    "a mechanism of no name": (
        card(lambda c: c["mechanism"].update(mechanism=["madlib"])),
        "not a release card of version 1: mechanism.mechanism: ",
    ),
    "another epsilon in words": (
        card(lambda c: c["mechanism"].update(epsilon=1.0)),
        "mechanism: epsilon_exact is not the number that a spec has",
    ),
    "nothing unprotected": (
        card(lambda c: c["guarantee"].update(not_protected=[])),
        "guarantee: it does not say what is not protected",
    ),
    "for the document": (
        everywhere(per="document"),
        "guarantee: its words do not match the budget",
    ),
    "smaller total": (
        card(lambda c: c["budget"]["total"].update(epsilon_exact="1", epsilon=1.0)),
        "budget: the stages do not add up to the total",
    ),
    "no number": (everywhere(epsilon_exact="ten"), "release.json: "),
    "division by zero": (everywhere(epsilon_exact="1/0"), "release.json: "),
    "negative": (everywhere(epsilon_exact="-10"), "release.json: "),
    "no meaning": (card(lambda c: c.pop("meaning")), "release.json: meaning: "),
    "smaller loss": (
        card(lambda c: c["meaning"].update(loss_at_maximum=0.1)),
        "release.json: meaning",
    ),
    "a document better protected": (
        losses(lambda given: given["documents"][2].update(epsilon_at_maximum=1.0)),
        "document_losses: an epsilon is not that of the index's distances",
    ),
    "a smaller delta": (
        losses(lambda given: given.update(delta=1e-9)),
        "meaning: not what is stated",
    ),
    "more dimensions": (
        losses(lambda given: given.update(dimensions=10 * given["dimensions"])),
        "document_losses: an epsilon is not that of the index's distances",
    ),
    "codes": (
        losses(lambda given: given.pop("dimensions")),
        "document_losses: they are not those of madlib",
    ),
    "a promise to documents": (
        card(
            lambda c: (
                c["mechanism"].pop("epsilon"),
                c["mechanism"].update(
                    document_epsilon={"epsilon": 1.0, "delta": 1e-6, "words": 20, "longer": "cut"},
                ),
            )
        ),
        "mechanism: document_epsilon is not what documents of so many words keep to",
    ),
    "endless documents": (
        losses(lambda given: given["documents"][0].update(words=10**9)),
        "meaning: not what is stated of an index of so many words",
    ),
    "another epsilon of the mechanism": (
        card(lambda c: c["mechanism"].update(epsilon_exact="1")),
        "mechanism: epsilon_exact is not the number that a spec has",
    ),
    "an inherited cost": (
        card(lambda c: c["budget"].update(inherited=[{"statement": "s"}])),
        "budget: what private artefacts cost is not as they say",
    ),
    "no index": (card(lambda c: c.update(artefacts=[])), "release.json: artefacts"),
    "no guarantee of the index": (
        card(lambda c: c["artefacts"][0].update(provenance="private")),
        "release.json: artefacts",
    ),
    "another kind": (
        card(lambda c: c["mechanism"].update(kind="essays")),
        "is not a kind of release that is known here",
    ),
    "limited precision": (
        card(
            lambda c: [
                part.update(precision=1, delta=0.0, delta_exact="0") for part in parameters_of(c)
            ]
        ),
        "release.json: ",
    ),
}


def test_an_untouched_release_passes(release: Path) -> None:
    assert [file.path for file in verify(str(release)).files] == [DATA]


def test_an_older_card_says_nothing_of_documents(release: Path) -> None:
    card(lambda c: (c["meaning"].pop("document_losses"), c.pop("code_sha256")))(release)
    assert verify(str(release)).meaning.document_losses is None  # type: ignore[union-attr]


def inheriting(definition: str = "d", unit: str = "u", **numbers: Any) -> Callable[[Path], None]:
    """Have the index come with a cost, everywhere on the card."""

    def change(content: dict[str, Any]) -> None:
        promise = {"definition": definition, "unit": unit, "parameters": numbers, "statement": "s"}
        content["artefacts"][0].update(provenance="private", guarantee=promise)
        content["budget"]["inherited"] = [{"artefact": "index", **promise}]
        found = Card.model_validate(content)
        total = found.budget.total.guarantee
        content["guarantee"]["statement"] = statement(total, found.artefacts)
        content["guarantee"]["not_protected"] += [word_limits(None, "", "", is_private=True)[-1]]
        content["code_sha256"] = "0" * 64  # for README and page say nothing of it

    return card(change)


def test_decimals_of_an_inherited_cost_are_its_rationals(release: Path) -> None:
    # Kills: what an index cost, taken as it says; a check that refuses other parties' words.
    message = "budget: the decimals of what a private artefact cost are not its rationals"
    own = SentencePrivacy(Fraction(1))
    for good in (
        {"definition": own.definition, "unit": own.unit, "epsilon": 1.0, "epsilon_exact": "1"},
        {"epsilon": 1.0, "delta": 1e-9, "relation": "replace one"},
    ):
        inheriting(**good)(release)
        verify(str(release))
    for bad in (
        {"epsilon": 1.0, "epsilon_exact": "1000"},
        {"epsilon": 1.0, "epsilon_exact": "1", "delta": 1e-9, "delta_exact": "1/2"},
    ):
        inheriting(**bad)(release)
        with pytest.raises(InputError) as raised:
            verify(str(release))
        assert str(raised.value) == f"{release}/release.json: {message}"


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_tampering_is_caught(release: Path, tampering: str) -> None:
    change, message = TAMPERINGS[tampering]
    change(release)
    with pytest.raises(InputError) as raised:
        verify(str(release))
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(release))
    assert "\n" not in str(raised.value)
