"""Rules that say what to do: each at its threshold, and all of them in order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_content import figure

from quietcorpus.pipelines.card.weakness import Weakness
from quietcorpus.pipelines.evaluate import recommendations as rules
from quietcorpus.pipelines.evaluate.findings import Findings
from quietcorpus.pipelines.evaluate.recommendations import recommendations

GUIDE = Path(__file__).parents[3] / "docs/guides/evaluation.md"
BAGS = {
    "precision": 10,
    "epsilon": 5.0,
    "accounting": "tight",
    "compression": {"method": "frequency", "size": 400},
    "include": ["bins"],
}
JUST = 1e-9
HALF = figure("f1", "original", 0.5)


def found(*figures: dict[str, Any], kind: str = "bag-of-words", **given: Any) -> Findings:
    return Findings(kind, BAGS, figures, **given)


def attack(measure: str, value: float, against: str = "above", noise: float = 0.0) -> Findings:
    own = figure(measure, "release", 0.0, first=(value, 0, 1), against_noise=against)
    return found(own, figure(measure, "noise", 0.0, first=(noise, 0, 1)))


def pair(measure: str, release: float, other: float, subject: str = "original") -> Findings:
    return found(figure(measure, "release", release), figure(measure, subject, other))


def topics(kept: float) -> Findings:
    return found(
        figure("topic-jaccard", "release", 0.2 + 0.4 * kept),
        figure("topic-jaccard", "floor", 0.2),
        figure("topic-jaccard", "ceiling", 0.6),
    )


FIRES = {
    "audit-failed": (found(failed=["the law"]), found()),
    "weak-guarantee": (found(weaknesses=[Weakness("much", "lower it")]), found()),
    "traced": (attack("linkage", 0.1), attack("linkage", 0.1 - JUST)),
    "words-found": (attack("inversion-bayes", 0.5), attack("inversion-bayes", 0.5 - JUST)),
    "members-told": (attack("membership", 0.6), attack("membership", 0.6 - JUST)),
    "author-named": (
        attack("authorship", 0.3, noise=0.2 - JUST),
        attack("authorship", 0.3, noise=0.2 + JUST),
    ),
    "singled-out": (found(alone={"place": 0.01}), found(alone={"place": 0.01 - JUST})),
    "own-ids": (found(id_column="case"), found()),
    "labels-lost": (pair("words-f1", 0.6 - JUST, 0.8), pair("words-f1", 0.6 + JUST, 0.8)),
    "topics-lost": (topics(0.5 - JUST), topics(0.5 + JUST)),
    "noise-fills": (pair("length", 2.0, 1.0), pair("length", 2.0 - JUST, 1.0)),
    "counts-off": (pair("histogram-error", 0.5, 0.0), pair("histogram-error", 0.5 - JUST, 0.0)),
    "texts-noisy": (
        replace(pair("f1", 0.4 - JUST, 0.5, "exact"), kind="public-texts"),
        replace(pair("f1", 0.4 + JUST, 0.5, "exact"), kind="public-texts"),
    ),
    "pool-far": (
        found(figure("f1", "exact", 0.4 - JUST), HALF, kind="public-texts"),
        found(figure("f1", "exact", 0.4 + JUST), HALF, kind="public-texts"),
    ),
    "vectors-lost": (pair("map-list", 0.2 - JUST, 0.4), pair("map-list", 0.2, 0.4)),
}


@pytest.mark.parametrize("name", FIRES)
def test_a_rule_speaks_at_its_threshold_and_not_beyond(name: str) -> None:
    # Kills: another threshold, a comparison the wrong way round.
    speaks, is_silent = FIRES[name]
    assert [one["rule"] for one in recommendations(speaks)] == [name]
    assert recommendations(is_silent) == []


def test_every_rule_is_tried() -> None:
    assert [rule.name for rule in rules.RULES] == [*FIRES]


@pytest.mark.parametrize("against", ["not told apart", "below"])
def test_what_may_be_chance_is_no_finding(against: str) -> None:
    # Kills: advice on what the sample does not show.
    for measure in ("linkage", "membership", "inversion-bayes", "authorship"):
        assert recommendations(attack(measure, 0.99, against)) == []


def test_what_a_sweep_found_is_not_the_releases() -> None:
    # Kills: advice on another setting.
    own = figure("linkage", "release", 0.9, first=(0.9, 0, 1), against_noise="above", epsilon="99")
    assert recommendations(found(own)) == []


def test_privacy_comes_before_utility_and_few_are_shown() -> None:
    # Kills: utility first; a list that nobody reads; the same advice twice.
    figures = [one for speaks, _ in FIRES.values() for one in speaks.figures]
    everything = found(
        *figures,
        failed=["the law"],
        weaknesses=[Weakness("much", "lower it")],
        id_column="case",
        alone={"place": 0.5, "day": 0.2},
    )
    said = recommendations(everything)
    assert [one["part"] for one in said] == ["privacy"] * 5
    assert [one["rule"] for one in said] == [
        "audit-failed",
        "weak-guarantee",
        "traced",
        "author-named",
        "singled-out",
    ]
    assert "AUC of 0.60" in said[2]["found"]
    assert "'place'" in said[4]["advice"]


def test_no_privacy_is_spent_where_there_is_too_little() -> None:
    # Kills: "raise N" and "raise epsilon" in one list; ids that forbid to speak of epsilon.
    lost, traced = FIRES["labels-lost"][0], FIRES["traced"][0]
    both = recommendations(replace(lost, figures=[*lost.figures, *traced.figures]))
    assert [one["rule"] for one in both] == ["traced", "labels-lost"]
    assert "aise `mechanism.epsilon`" not in both[1]["advice"]
    calm = recommendations(replace(lost, id_column="case"))
    assert "Raise `mechanism.epsilon`" in calm[1]["advice"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "`mechanism.compression.size` (400 now)"),
        ({"include": None}, "`mechanism.include: [bins]`"),
        ({"accounting": "per-entry"}, "`mechanism.accounting: tight`"),
        ({"compression": {"method": "none", "size": None}}, "shorter `mechanism.vocabulary`"),
    ],
)
def test_what_costs_nothing_fits_the_spec(changes: dict[str, Any], said: str) -> None:
    # Kills: bins advised where there is no map, or where they cost epsilon.
    findings = replace(FIRES["labels-lost"][0], mechanism=BAGS | changes)
    assert said in recommendations(findings)[0]["advice"]


def test_an_epsilon_that_words_share_has_its_own_key() -> None:
    findings = replace(
        attack("linkage", 0.5), kind="words", mechanism={"epsilon": None, "document_epsilon": 9}
    )
    assert "`mechanism.document_epsilon`" in recommendations(findings)[0]["advice"]


def test_the_guide_lists_the_rules() -> None:
    # Kills: a rule or a threshold that the guide does not tell.
    table = [f"| {' | '.join(row)} |" for row in rules.rows()]
    text = GUIDE.read_text()
    assert "\n".join(table) in text
    assert f"at most {rules.MOST} " in text
