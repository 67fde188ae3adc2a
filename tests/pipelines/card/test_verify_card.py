"""Forged cards, whose sentences, pages and digests are made anew from them: `verify` refuses each.

A forger has our code: lines, README and page follow from the forged card, as after a release.
"""

from __future__ import annotations

import base64
import json
import logging
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tampering import edit_card, redress, refused, restate

import quietcorpus as qc
from quietcorpus.mechanisms.accounting.guarantees import Spending, UserPrivacy, compose
from quietcorpus.pipelines.card import limits, readme
from quietcorpus.pipelines.card.model import Card
from quietcorpus.pipelines.card.parameters import LENGTHS, Weights, document_losses
from quietcorpus.pipelines.card.statements import guarantee as guarantee_of
from quietcorpus.pipelines.card.statements import stated
from quietcorpus.pipelines.card.verify import verified
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.transforms.errors import InputError, is_plain, look_alike

Change = Callable[[dict[str, Any]], Any]
PERSON = "epsilon is .01 for every person"


@pytest.fixture
def copied(golden: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies that a test may spoil."""
    return lambda name: shutil.copytree(golden / f"out-{name}", tmp_path / "out")


def forge(release: Path, change: Change) -> None:
    """Change a card, and make anew all that follows from it: its lines, README and page."""

    def changed(content: dict[str, Any]) -> None:
        change(content)
        try:
            card = Card.model_validate(content)
            own = card.mechanism.limits(limits._spendings(card), card.artefacts)
            lines = limits._lines(card, own or [], card.id_column is not None)
            content["guarantee"]["not_protected"] = lines
        except (ArithmeticError, LookupError, TypeError, ValueError):
            pass  # it is none

    edit_card(release, changed)
    try:
        redress(release)
    except Exception:
        return


def within(*path: str, **values: Any) -> Change:
    """Set values in a part of the card; None deletes."""

    def change(card: dict[str, Any]) -> None:
        for key in path:
            card = card[key]
        for name, value in values.items():
            card[name] = value
            if value is None:
                del card[name]

    return change


def mechanism(**values: Any) -> Change:
    return within("mechanism", **values)


def meaning(**values: Any) -> Change:
    return within("meaning", **values)


def spread(value: float, name: str) -> Change:
    """State one value of all quantiles of a size."""

    def change(card: dict[str, Any]) -> None:
        own = card["meaning"]["typical"][0][name]
        own.update(dict.fromkeys(("least", "low", "median", "high", "largest"), value))

    return change


def searched(**values: Any) -> Change:
    given = {"lists": 2, "probes": 2, "seed": 0, "recall": {"1": 1.0}, "queries": 3}
    return mechanism(search=given | values)


def varied(**values: Any) -> Change:
    own = {"name": "x", "sha256": "a" * 64}
    given = {"card_sha256": "a" * 64, "command": ["x"], "files": [own]}
    return mechanism(variation=given | values)


def entry(**values: Any) -> Change:
    given = {"reservation": 7, "record_sha256": "a" * 64} | values
    return lambda card: card.update(ledger=given)


NOISE = {"rho": 0.001, "rho_exact": "1/1000", "delta": 0.0, "delta_exact": "0"}
OURS = stated(guarantee_of(UserPrivacy(Fraction(5), Fraction(1, 10**6)), [], [], counted=False))
STATED = {"definition": "d", "unit": "u", "parameters": {"epsilon": 1}, "statement": "s"}


def private(name: str, guarantee: dict[str, Any]) -> Change:
    """State that an artefact was made from private data, at a cost."""

    def change(card: dict[str, Any]) -> None:
        own = next(one for one in card["artefacts"] if one["name"] == name)
        own.update(provenance="private", guarantee=guarantee)
        card["budget"]["inherited"] = [{"artefact": name, **guarantee}]
        card["guarantee"]["statement"] += (
            f" This takes the {name} as given; it was made from private data, whose cost comes on "
            f"top: {guarantee.get('statement')}"
        )

    return change


OF_ALL: dict[str, tuple[Change, str]] = {
    "a name of several lines": (lambda c: c.update(release=f"x\n\n**{PERSON}**"), "release: "),
    "a name that is turned round": (lambda c: c.update(release="\u202ex"), "release: "),
    "software of no name": (within("software", note=PERSON), "software: "),
    "a version that is a text": (within("software", numpy=PERSON), "software: "),
    "another time zone": (lambda c: c.update(created="2026-11-29T06:00:00+01:00"), "created: "),
    "one more artefact": (
        lambda c: c["artefacts"].append(
            {"name": "z", "uri": PERSON, "digest": "0" * 64, "provenance": "public"}
        ),
        "artefacts: not those that the mechanism names",
    ),
    "a reconstruction": (
        lambda c: c.update(
            reconstruction={"card_sha256": "0" * 64, "factors": 1, "starts": 1, "passes": 1}
        ),
        "reconstruction: ",
    ),
    "another paper's figure": (
        lambda c: c.update(papers_figure={"epsilon": 0.01, "explanation": PERSON}),
        "papers_figure: ",
    ),
    "a partition of any name": (entry(partition=PERSON, disjoint="declared"), "ledger: "),
    "ids that were not compared": (entry(partition="p", identifier="doc"), "ledger: "),
    "no such noise": (entry(noise=NOISE), "ledger: "),
    "an unknown key": (mechanism(note=PERSON), "mechanism.note: "),
    "columns of any name": (lambda c: c.update(columns=["a\n\n# b"]), "release.json: "),
    "numbers of no end": (within("budget", "total", epsilon_exact="1e999999999"), "release.json: "),
}
OF_KINDS: dict[str, dict[str, tuple[Change, str]]] = {
    "bag-of-words": {
        "a tokeniser of any text": (mechanism(tokenizer=PERSON), "mechanism: "),
        "one that is described otherwise": (
            mechanism(tokenizer=f"unicode-words-v1 ({PERSON}; Unicode 14.0.0)"),
            "mechanism: ",
        ),
        "a note in the vocabulary": (
            within("mechanism", "vocabulary", note=PERSON),
            "mechanism: vocabulary.note: unknown key",
        ),
        "two vocabularies": (
            within("mechanism", "vocabulary", private={"epsilon": 1.0, "delta": 1e-9}),
            "mechanism: vocabulary: ",
        ),
        "no vocabulary": (mechanism(vocabulary={}), "mechanism: vocabulary: "),
        "a note in the map": (
            within("mechanism", "compression", note=PERSON),
            "mechanism: compression.note: unknown key",
        ),
        "a size as a text": (within("mechanism", "compression", size="8"), "compression.size: "),
        "bins twice": (mechanism(include=["bins", "bins"]), "mechanism: include: "),
        "no counts": (lambda c: c.pop("counts"), "release.json: "),
        "more bins than memory": (
            lambda c: (mechanism(bins=2**40)(c), c["mechanism"]["compression"].update(size=2**40)),
            "compression.size: larger than any that a release has",
        ),
        "more terms than memory": (
            mechanism(vocabulary_size=10**12),
            "mechanism: vocabulary_size",
        ),
        "estimates of words": (
            lambda c: c.update(meaning={"mean_distance": 1.0}),
            "release.json: ",
        ),
        "columns of rows": (lambda c: c.update(columns=["terms"]), "columns: "),
        "an encoder": (mechanism(encoder="x"), "mechanism.encoder: "),
    },
    "histogram": {
        "a copied column": (lambda c: c.update(columns=["a"]), "columns: this kind copies none"),
        "a copied id": (lambda c: c.update(columns=["id"], id_column="a"), "columns: this kind"),
        "a note in the private vocabulary": (
            within("mechanism", "vocabulary", "private", note=PERSON),
            "vocabulary.private.note: unknown key",
        ),
    },
    "words": {
        "two epsilons": (mechanism(document_epsilon=0.01), "mechanism: "),
        "a document's epsilon beside": (
            mechanism(
                document_epsilon={"epsilon": 0.01, "delta": 1e-9, "words": 9, "longer": "cut"}
            ),
            "mechanism: ",
        ),
        "gamma of no tem": (mechanism(gamma=0.1, gamma_exact="1/10"), "mechanism: gamma"),
        "tuning of no vickrey": (mechanism(tuning=0.5), "mechanism: tuning: only vickrey"),
        "a matched epsilon of any text": (mechanism(matched={"note": PERSON}), "mechanism: "),
        "an engine of any name": (
            mechanism(search={"engine": PERSON, "probes": 3}),
            "mechanism: search",
        ),
        "no estimates": (meaning(typical=[]), "meaning: "),
        "no losses of documents": (meaning(document_losses=None), "meaning: "),
        "no lengths": (meaning(loss_of_documents={}), "meaning: "),
        "other lengths": (
            lambda c: c["meaning"]["document_losses"].update(
                documents=c["meaning"]["document_losses"]["documents"][:1]
            ),
            "meaning: ",
        ),
        "a sample of any text": (meaning(sample=PERSON), "meaning: "),
        "a mean beyond the maximum": (
            lambda c: c["meaning"].update(maximum_distance=0.5, loss_at_maximum=1.0),
            "meaning: ",
        ),
        "an interval beside the mean": (meaning(mean_interval=[5.0, 6.0]), "meaning: "),
        "a map of any text": (meaning(rescaled={"by": PERSON, "epsilon": "0.01"}), "meaning: "),
        "an amount of any text": (meaning(rescaled={"by": "covariance", "lambda": PERSON}), "mea"),
        "recall of an exact search": (
            lambda c: c["meaning"]["typical"][0].update(
                recall={"share": 1.0, "interval": [1.0, 1.0], "queries": 2048}
            ),
            "meaning: ",
        ),
        "a chance above one": (
            lambda c: c["meaning"]["typical"][0]["unchanged"].update(largest=1.5),
            "meaning: ",
        ),
        "endless dimensions": (
            within("meaning", "document_losses", dimensions=2**31),
            "document_losses.dimensions: ",
        ),
        "no words": (mechanism(words=-5), "mechanism: "),
        "no rows at all": (
            lambda c: (c.update(files=[]), c["counts"].update(documents=0)),
            "files: one is missing",
        ),
        "a private index without statement": (private("index", {"x": 1}), "artefacts: "),
        "a private index with a further text": (
            private("index", STATED | {"note": PERSON}),
            "artefacts: the guarantee of the index has other keys",
        ),
        "a statement of several lines": (
            private("index", STATED | {"statement": f"s\n\n# {PERSON}"}),
            "a text of several lines",
        ),
    },
    "words, exponential": {
        "gamma": (mechanism(gamma=2.0, gamma_exact="2"), "mechanism: gamma"),
        "no estimates, and nothing accepted": (
            lambda c: (c["meaning"].update(typical=[]), c.pop("accepted")),
            "meaning: ",
        ),
    },
    "words, tem": {"no gamma": (mechanism(gamma=None), "mechanism: gamma is missing")},
    "sentence-embeddings": {
        "an encoder's software of any text": (mechanism(encoder_software=PERSON), "mechanism: "),
        "a precision of any text": (mechanism(encoder_precision=PERSON), "mechanism: "),
        "a splitter of any text": (mechanism(splitter=PERSON), "mechanism: "),
        "a language of any text": (mechanism(language=PERSON), "mechanism: "),
        "words of no words": (mechanism(out_of_vocabulary="drop"), "mechanism: "),
        "no number of candidates": (mechanism(candidates_number=None), "mechanism: candidates_num"),
        "a utility of any text": (mechanism(utility=PERSON), "mechanism: utility: "),
        "endless dimensions": (mechanism(dimensions=2**63), "release.json: "),
    },
    "public-texts": {
        "a search of any text": (
            mechanism(
                search={"lists": 1, "probes": 1, "seed": 0, "recall": {PERSON: 1.0}, "queries": 1}
            ),
            "mechanism.search.recall",
        ),
        "budgets of no users": (mechanism(budgets={"note": PERSON}), "mechanism: "),
        "strata of nothing": (mechanism(strata={}), "mechanism: strata"),
        "software of any text": (mechanism(software=PERSON), "mechanism: "),
        "more texts than memory": (mechanism(pool_texts=2**39), "votes.parquet: not a row for"),
        "numbers of documents": (
            lambda c: c.update(counts={"documents": 1, "rejected": 0}),
            "release.json: ",
        ),
        "a narrowed pool under a definition of another name": (
            private(
                "pool",
                STATED | {"definition": "document-level differential privacy "},
            ),
            "artefacts: ",
        ),
        "a command of several lines": (
            mechanism(
                variation={
                    "card_sha256": "a" * 64,
                    "command": [f"x\n\n# {PERSON}"],
                    "files": [],
                }
            ),
            "release.json: ",
        ),
    },
    "public-texts, users": {
        "budgets of any text": (mechanism(budgets={"note": PERSON}), "mechanism: "),
        "a column of several lines": (mechanism(user=f"a\n\n# {PERSON}"), "release.json: "),
        "no column": (mechanism(user=""), "mechanism: "),
    },
    "word-embeddings": {
        "few users of any text": (mechanism(few_users=PERSON), "mechanism: few_users: "),
        "a training of counts": (mechanism(training={"note": PERSON}), "mechanism: training"),
        "steps of counts": (mechanism(lot=5, steps_taken=7), "mechanism: "),
        "groups of counts": (mechanism(groups=[]), "mechanism: "),
        "endless dimensions": (mechanism(dimensions=2**63), "mechanism.dimensions: "),
    },
}


def exactly(exact: str) -> Change:
    """State another rational of the same decimal, in words as in numbers."""

    def change(card: dict[str, Any]) -> None:
        found = Card.model_validate(card).budget.stages[-1].parameters.guarantee
        own = replace(found, epsilon=Fraction(exact))
        restate(card, [Spending("documents", own)], own)
        card["mechanism"]["epsilon_exact"] = exact

    return change


def per_document(card: dict[str, Any]) -> None:
    """State that a document's words share the epsilon that every word has."""
    own = replace(Card.model_validate(card).budget.total.guarantee, per="document")
    restate(card, [Spending("documents", own)], own)


def scaled(card: dict[str, Any]) -> None:
    """State a little more noise than there was, with the threshold that follows."""
    noise = Fraction(card["mechanism"]["noise_multiplier"]) * Fraction(10001, 10000)
    least = math.ceil(3 * noise * card["mechanism"]["norm"])
    card["mechanism"].update(noise_multiplier=str(noise), least_votes=least)


def gamma(card: dict[str, Any]) -> None:
    """Count losses up to a small gamma."""
    meaning, epsilon = card["meaning"], Fraction(card["mechanism"]["epsilon_exact"])
    distances = (Fraction(meaning[f"{name}_distance"]) for name in ("mean", "maximum"))
    found = document_losses(Weights(Fraction(1, 2)), dict.fromkeys(LENGTHS, epsilon), *distances)
    meaning["document_losses"] = found.model_dump(mode="json", exclude_none=True)
    card["mechanism"].update(gamma=0.5, gamma_exact="1/2")


LEFT_OUT = (
    "the vectors' worth, of which no guarantee speaks: {} of {} words stand out of the noise; the "
    "others are left out"
)
VERSIONS = ", ".join(["torch 11111111.11111111.11111111.11111111"] * 8)
NOT_SOLVED = "mechanism: its votes, noise or norms are not those of its budget"
OTHER_CODE = within(code_sha256="0" * 64)


def endless(card: dict[str, Any]) -> None:
    """State a ledger's noise of thousands of digits, by another code's release."""
    entry(noise=NOISE | {"rho_exact": "9" * 2000})(card)
    OTHER_CODE(card)


def with_delta(delta: str) -> Change:
    """State a delta of bags whose counts have none."""

    def change(card: dict[str, Any]) -> None:
        stages = Card.model_validate(card).budget.stages
        spent = [Spending(one.stage, one.parameters.guarantee) for one in stages]
        last = replace(spent[-1], guarantee=replace(spent[-1].guarantee, delta=Fraction(delta)))
        restate(card, [*spent[:-1], last], compose([*spent[:-1], last]))

    return change


def losses(share: float, *names: str) -> Change:
    """State a share of the losses of documents."""

    def change(card: dict[str, Any]) -> None:
        for own in card["meaning"]["document_losses"]["documents"]:
            own.update({name: own[name] * share for name in names})

    return change


# What the card could say against itself, or beside what it says.
AGAINST: dict[str, list[tuple[str, Change, str]]] = {
    "words": [
        ("an epsilon of documents", per_document, "its epsilon is not that of every word"),
        (
            "digits of another epsilon",
            exactly(f"{2 * 10**30 - 1}/{10**30}"),
            "epsilon_exact is not the number that a spec has",
        ),
        ("more stages", lambda c: c["budget"].update(stages=c["budget"]["stages"] * 9), "stages: "),
        (
            "more lengths",
            lambda c: c["meaning"]["document_losses"].update(
                documents=c["meaning"]["document_losses"]["documents"] * 9
            ),
            "documents: larger than any that a release has",
        ),
        ("a count of many digits", mechanism(words=10**13), "mechanism.words: larger than any"),
        ("microseconds", within(created="2026-11-29T06:00:00.123456+00:00"), "created: "),
        ("a version of letters", within("software", numpy="2.0Jane"), "software: "),
        (
            "a hidden column",
            within(columns=["a\u200b"]),
            "a text of several lines, or one that hides",
        ),
        ("more words than there are", spread(200.0, "set_size"), "meaning: a number is not"),
        ("less than one word", spread(0.5, "set_size"), "meaning: a number is not"),
        ("distances beyond the maximum", meaning(mean_interval=[0.1, 1e9]), "meaning: a number"),
        ("one word", mechanism(words=1), "meaning: "),
        (
            "losses of no words, of another code",
            lambda c: (
                meaning(loss_of_documents={"0": 0.0, "-2": -2 * c["meaning"]["loss_at_mean"]})(c),
                OTHER_CODE(c),
            ),
            "meaning: ",
        ),
        *(
            (f"a private index of {name}", private("index", own), "the guarantee of the index has")
            for name, own in {
                "another definition": OURS | {"definition": "sentence-level privacy"},
                "another unit": OURS | {"unit": "one word"},
                "another statement": OURS | {"statement": "within a factor of exp(0.001)"},
                "noise of other decimals": OURS | {"noise": NOISE | {"rho": 0.5}},
                "noise that costs nothing": OURS
                | {"noise": NOISE | {"rho": 0.0, "rho_exact": "0"}},
                "two epsilons": STATED | {"parameters": {"epsilon": 1, "Epsilon": 1000}},
                "no cost, it says": OURS | {"statement": "The index cost nobody anything."},
                "a smaller delta, it says": OURS
                | {"statement": "within exp(5), up to a chance of 1e-30"},
            }.items()
        ),
        ("a loss that is rounded down", losses(0.99501, "worst"), "meaning: "),
        (
            "partitions that ids would tell apart",
            lambda c: (
                c.update(id_column="doc", columns=["id"]),
                entry(partition="p", disjoint="declared")(c),
            ),
            "ledger: ",
        ),
        (
            "partitions by another column",
            lambda c: (
                c.update(id_column="doc", columns=["id"]),
                entry(partition="p", disjoint="compared", identifier="other")(c),
            ),
            "ledger: ",
        ),
        (
            "a partition in another code's ledger",
            lambda c: (entry(partition=PERSON, disjoint="declared")(c), OTHER_CODE(c)),
            "ledger: ",
        ),
    ],
    "words, tem": [
        ("a smaller gamma", gamma, "gamma is not the one that losses are counted to"),
        ("losses that are rounded down", losses(0.99501, "epsilon_at_mean"), "meaning: "),
    ],
    "words, exponential": [("rounded down", losses(0.99501, "epsilon_at_maximum"), "meaning: ")],
    "words, brr": [("rounded down", losses(0.99501, "epsilon_at_mean"), "meaning: ")],
    "sentence-embeddings": [
        (
            "digits of an epsilon",
            exactly(f"{9 * 10**30 - 1}/{10**30}"),
            "epsilon_exact is not the number that a spec has",
        ),
        ("an encoder's processor", mechanism(encoder_software="torch 2.9; cpu; Jane"), "mechanism"),
        ("versions without an end", mechanism(encoder_software=f"{VERSIONS}!"), "mechanism: "),
        *(
            (
                f"a {key} of another code's",
                lambda c, key=key: (mechanism(**{key: PERSON})(c), OTHER_CODE(c)),
                "mechanism: ",
            )
            for key in ("splitter", "language", "encoder_precision", "encoder_software")
        ),
    ],
    "public-texts": [
        ("a recall of more texts than there are", searched(recall={"99": 1.0}), "mechanism.search"),
        ("a recall of no texts", searched(queries=0), "mechanism.search"),
        ("nearest texts that no list has", searched(recall={"1": 0.5}), "mechanism.search"),
        ("a command of no file", varied(files=[]), "mechanism.variation"),
        ("a ledger's noise without an end", endless, "its numbers cannot be"),
        ("a folder", varied(command=["/home/jane/x"]), "mechanism.variation"),
        ("more noise", scaled, NOT_SOLVED),
        ("no votes", mechanism(vote=0), NOT_SOLVED),
        ("a smoothed pool of few", mechanism(smooth=True), ""),
        ("files in another order", lambda c: c["files"].reverse(), "files: not in the order"),
        ("a processor", mechanism(software="dp-accounting 0.4; cpu; Jane Doe"), "mechanism: "),
        (
            "decimals of another code's noise",
            lambda c: (entry(noise=NOISE | {"rho": 0.5})(c), OTHER_CODE(c)),
            "ledger: ",
        ),
        (
            "what another code's release did not accept",
            lambda c: (c.pop("accepted", None), OTHER_CODE(c)),
            "was not accepted by name",
        ),
    ],
    "public-texts, geometric": [("a finer rate", mechanism(norm=65), "")],
    "bag-of-words": [
        (
            "a ledger's noise, of another code",
            lambda c: (entry(noise=NOISE)(c), OTHER_CODE(c)),
            "ledger: ",
        ),
        ("a delta of counts", with_delta("1/1000000"), "expected delta 0, got more"),
        ("a delta of a thousand digits", with_delta(f"1/{'9' * 1000}"), ""),
    ],
    "histogram": [
        ("no documents", within("counts", documents=0), "counts: "),
        ("1 / delta documents", lambda c: c["accepted"].remove("large-delta"), "not accepted by"),
    ],
    "public-texts, users": [
        (
            "labels of users' names",
            mechanism(strata={"column": "author", "labels": ["u1"]}),
            "columns: ",
        ),
        ("a norm of none", mechanism(norms={"": 0}), "costs more than it says"),
    ],
    "word-embeddings": [
        ("few users, not accepted", mechanism(few_users=None), "mechanism.few_users"),
        ("a partition of users", entry(partition="p", disjoint="declared"), "ledger: "),
        ("a group of any name", lambda c: renamed(c["mechanism"]["norms"]), "its training or the"),
    ],
}


def renamed(norms: dict[str, int]) -> None:
    norms["children, by epsilon 0"] = norms.pop("")


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, n) for kind, own in AGAINST.items() for n in range(len(own))]
)
def test_a_card_that_contradicts_itself_is_refused(
    copied: Callable[[str], Path], kind: str, number: int
) -> None:
    # Kills: a number or a text of a card that is not computed again from its block and budget.
    _, change, message = AGAINST[kind][number]
    release = copied(kind)
    forge(release, change)
    assert message in refused(release)


@pytest.mark.parametrize(
    "numbers",
    [{"Delta": 0.9}, {"Delta": "0.9"}, {"metric": "m", "epsilon": 99}, {"a day": {"epsilon": 99}}],
    ids=str,
)
def test_a_cost_of_any_name_is_told(copied: Callable[[str], Path], numbers: dict[str, Any]) -> None:
    # Kills: a private artefact whose cost no line tells, since its number has another name.
    release = copied("words")
    forge(release, private("index", STATED | {"parameters": {"epsilon": 1} | numbers}))
    begin = "the people whose data the index was made from: "

    def untold(content: dict[str, Any]) -> None:
        lines = content["guarantee"]["not_protected"]
        lines[:] = [line for line in lines if not line.startswith(begin)]

    edit_card(release, untold)
    redress(release)
    assert "guarantee: not_protected: it does not say" in refused(release)


@pytest.mark.parametrize("kind", ["words", "word-embeddings"])
def test_words_that_noise_left_out_are_those_of_the_card(
    copied: Callable[[str], Path], kind: str
) -> None:
    # Kills: a count of what noise left out that is read from the line itself.
    release = copied(kind)
    edit_card(release, lambda c: c["guarantee"]["not_protected"].append(LEFT_OUT.format(16, 33)))
    redress(release)
    assert "does not follow from the card" in refused(release)


def test_texts_of_any_length_are_not_read(copied: Callable[[str], Path]) -> None:
    # Kills: a page of gigabytes, most of it nothing, that is read before anything is compared.
    for name, size in {"release.json.sig": 1 << 20, "README.md": 1 << 27}.items():
        release = copied("histogram")
        with (release / name).open("ab") as file:
            file.truncate(size)
        assert "which no release has there" in refused(release)
        shutil.rmtree(release)


def test_names_that_look_alike_are_refused() -> None:
    # Kills: two groups whose names differ in what no reader sees, or in Unicode's forms alone.
    for names in (["\u00e9", "e\u0301"], ["a", "a "], ["\uff41", "a"], [" ", "a"]):
        assert look_alike(names)
    assert not look_alike(["a", "b", "\u05d0"])
    for text in (
        "a\u200b",
        "\u3164",
        "\u2800",
        "\u200f",
        "\ue000",
        "\u0378",
        "\U000e0041",
        "x\ufe0f",
    ):
        assert not is_plain(text)
    assert is_plain("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645")  # Persian, of two parts


CASES = [
    *((name, forgery) for name in ("histogram", "words") for forgery in OF_ALL),
    *((name, forgery) for name, own in OF_KINDS.items() for forgery in own),
]


@pytest.mark.parametrize(("name", "forgery"), CASES)
def test_a_forged_card_is_refused(copied: Callable[[str], Path], name: str, forgery: str) -> None:
    # Kills: a text, a key or a number of the card that is believed though it has one form alone.
    change, message = OF_KINDS.get(name, {}).get(forgery) or OF_ALL[forgery]
    release = copied(name)
    forge(release, change)
    assert message in refused(release)


def test_a_number_of_another_party_may_have_no_end(copied: Callable[[str], Path]) -> None:
    # Kills: an exponent that is written out, in all memory there is.
    release = copied("words")
    forge(release, private("index", STATED | {"parameters": {"epsilon": "1e999999999"}}))
    card = verified(str(release)).card
    assert any("epsilon that it came with is no number" in x for x in card.guarantee.not_protected)


WRITINGS: dict[str, Callable[[bytes], bytes]] = {
    "spaces after it": lambda text: text + b" \t",
    "another order": lambda text: json.dumps(dict(reversed(json.loads(text).items()))).encode(),
    "an escape": lambda text: text.replace(b'"golden"', b'"\\u0067olden"'),
    "digits of a float": lambda text: text.replace(b": 4.0,", b": 4.00000000000000065110,", 1),
    "an exponent": lambda text: text.replace(b": 4.0,", b": 40e-1,", 1),
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "an absent value": lambda text: text.replace(b'  "artefacts"', b'  "x": null, "artefacts"', 1),
    "a null": lambda text: text.replace(b'  "artefacts"', b'  "ledger": null,\n  "artefacts"', 1),
    "minus zero": lambda text: text.replace(b'"delta": 0.0', b'"delta": -0.0'),
    "an integer": lambda text: text.replace(b": 4.0,", b": 4,", 1),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_card_is_written_in_one_way(copied: Callable[[str], Path], writing: str) -> None:
    # Kills: room for another text in the JSON of a card.
    release = copied("bag-of-words")
    path = release / "release.json"
    text = WRITINGS[writing](path.read_bytes())
    assert text != path.read_bytes()
    path.write_bytes(text)
    assert "release.json: " in refused(release)


def test_names_are_shown_as_they_are(golden: Path) -> None:
    # Kills: a column or a file whose name makes a heading, a link or a script of the README.
    card = Card.model_validate_json((golden / "out-words" / "release.json").read_bytes())
    name = "![x](//a.example/`x|<script>"
    lines = [*card.guarantee.not_protected, f"the columns {name}"]
    told = card.guarantee.model_copy(update={"not_protected": lines})
    text = readme.render(card.model_copy(update={"guarantee": told, "columns": [name]}))
    assert r"- the columns !\[x\](//a.example/\`x\|\<script\>" in text
    assert "`![x](//a.example/'x|<script>`" in text
    for name, shown in {
        "&#8238;b": r"\&\#8238;b",
        "~~b": r"\~\~b",
        "**b**": r"\*\*b\*\*",
        "https://a.example": r"https\://a.example",
        "www.a.example": r"www\.a.example",
        "a@b.example": r"a\@b.example",
        ":lock:": r"\:lock:",
        "_b_": r"\_b\_",
        "$b$": r"\$b\$",
        "epsilon 2 * d, of some_key (a: b)": "epsilon 2 * d, of some_key (a: b)",
    }.items():
        assert readme._plain(name) == shown


def test_what_could_not_be_compared_is_named(
    copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    # Kills: a check that is left out without a word.
    release = copied("public-texts")
    signature = base64.b64encode(bytes(64)).decode() + "\n"
    (release / "release.json.sig").write_text(signature)
    monkeypatch.setattr("quietcorpus.pipelines.card.verify.is_accountable", lambda: False)
    assert verified(str(release)).not_compared == (
        "what the noise costs (dp-accounting is not installed)",
        "release.json.sig (no public key was given)",
    )
    monkeypatch.undo()
    (release / "release.json.sig").unlink()
    forge(release, entry())
    with caplog.at_level(logging.WARNING):
        qc.verify(release)
    assert "not compared: the entry in a ledger (no ledger was given)" in caplog.text


@pytest.mark.parametrize("place", ["hdfs://host/release", "store://host/release"])
def test_another_store_is_named(place: str) -> None:
    # Kills: "no release here" of a store that was not asked.
    with pytest.raises(InputError, match=f"^{place}: releases are not read from such a store"):
        verified(place)


@pytest.mark.parametrize("folder", ["rel[1]", "a*b", "wh?t", "br{a,b}"])
def test_strangers_in_any_folder_are_found(
    golden: Path, tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a folder's name that is taken for a pattern, which matches none of its files.
    release = shutil.copytree(golden / "out-words", tmp_path / folder)
    verified(str(release))
    (release / "raw.txt").write_text("x")
    assert f"{release}/raw.txt: not part of the release" in refused(release)
    assert (f"{release}/raw.txt", 1) in storage.below(str(release))
