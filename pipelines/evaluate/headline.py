"""The verdict that a report opens with: one sentence, from all that was found.

It is about what harms most: a rule about privacy that spoke (see `recommendations`), the measured
ones before those on what is kept or promised; else an attack that finds more than in noise; else
what was not tried, or was lost. All is well only where none of these is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from .findings import ATTACKS, Findings, attacked, of_tried, pairs
from .recommendations import (
    AUC,
    FOUND,
    NAMED,
    RULES,
    TRACED,
)

State = Literal["well", "caution", "harm"]

_ONLY = "publish this only where that does no harm"
_MEASURED: Mapping[str, Callable[[Findings], str]] = {
    "audit-failed": lambda found: (
        f"The mechanism leaks more than is stated, by {len(found.failed)} of its audits: do not "
        "publish this"
    ),
    "traced": lambda found: (
        f"An attacker who {_traced(found)} rows back to their documents: {_ONLY}"
    ),
    "words-found": lambda found: (
        f"An attacker who knows the mechanism recovers {_share(found, 'inversion-bayes')} words: "
        f"{_ONLY}"
    ),
    "members-told": lambda found: (
        f"An attacker tells who took part from who did not in {_most_pairs(found)} pairs: {_ONLY}"
    ),
    "author-named": lambda found: (
        "An attacker who knows other texts of the authors names the author of "
        f"{_share(found, 'authorship')} documents: {_ONLY}"
    ),
}
"""The verdicts where harm was measured, the most harmful first, by the rule that spoke."""
_STATED: Mapping[str, Callable[[Findings], str]] = {
    "singled-out": lambda found: (
        f"A kept column has, for {max(found.alone.values()):.0%} of the rows, a value that no "
        f"other row has, and so may tell whose they are: {_ONLY}"
    ),
    "own-ids": lambda found: (
        "Rows keep the input's ids, so a reader who has these knows whose each row is: "
        "publish this only where no reader has"
    ),
    "weak-guarantee": lambda _: (
        "What is promised is weak, though no attack that was tried shows it: publish this only "
        "where you would without a promise"
    ),
}
"""The verdicts where it is known without a measurement."""
_THRESHOLDS = {
    **dict.fromkeys(("linkage", "facts"), TRACED),
    "inversion-bayes": FOUND,
    **dict.fromkeys(("membership", "user-membership", "vote-membership", "count-membership"), AUC),
}
_CALM = "No attack finds more than chance would"


def headline(found: Findings) -> tuple[State, str]:
    """Return the state of a release, and the sentence about it."""
    state, sentence = _judged(found)
    return state, f"{sentence}."


def _judged(found: Findings) -> tuple[State, str]:
    spoken = {rule.name for rule in RULES if rule.part == "privacy" and any(rule.judge(found))}
    for state, verdicts in (("harm", _MEASURED), ("caution", _STATED)):
        for name, said in verdicts.items():
            if name in spoken:
                return state, said(found)  # type: ignore[return-value]
    above = [name for name in ATTACKS if found.above_noise(name) is not None]
    if above:
        figure = found.strongest(above[0])
        assert figure is not None
        return "caution", (
            f"Attackers find little, but more than chance would ({attacked(above[0], figure)}): "
            f"{_ONLY}"
        )
    lacking = next(_lacking(found), None)
    if lacking is not None:
        return "caution", lacking
    return "well", (
        f"{_CALM}, every audit passed, and the release is of use: publish it with its card"
    )


def _lacking(found: Findings) -> Iterator[str]:
    """Yield what keeps all from being well, the most important first."""
    tried = [one for name in ATTACKS if (one := found.strongest(name)) is not None]
    if not any(one["against_noise"] in {"below", "not told apart"} for one in tried):
        remedy = (
            ": name what the notes ask for, and evaluate it again" if found.of_documents else ""
        )
        yield f"No attack was tried on this release, so only its promise speaks for it{remedy}"
        return
    most = max(one["first"]["tried"] for one in tried)
    if any(_may_harm(found, name) for name in ATTACKS):
        more = (
            f", and the corpus has no more: {_ONLY}" if found.whole else ": evaluate more documents"
        )
        yield f"{_CALM}, but {most:,} cases are too few to rule out harm{more}"
    if not found.audited:
        yield f"{_CALM}, but the mechanism was not audited: give the spec, and evaluate it again"
    if found.untold:
        yield (
            f"{_CALM}, but {len(found.untold)} audits could not have shown a fault: run "
            "`quietcorpus audit` with more draws before you publish this"
        )
    for rule in RULES:
        for finding, _ in rule.judge(found) if rule.part == "utility" else ():
            lost = f"{finding[0].lower()}{finding[1:].removesuffix('.')}"
            yield f"{_CALM}, but little use is left: {lost}"
    if not found.useful:
        yield f"{_CALM}, but what the release is good for was not measured: name a label"


def _may_harm(found: Findings, measure: str) -> bool:
    """Return whether an attack's interval reaches what a rule calls harm."""
    figure = found.strongest(measure)
    if figure is None or figure["first"]["high"] is None:
        return False
    threshold = _THRESHOLDS.get(measure, found.noise(measure) + NAMED)
    return bool(figure["first"]["high"] >= threshold)


def _traced(found: Findings) -> str:
    if (found.above_noise("linkage") or 0.0) >= TRACED:
        return f"has the original texts links {_share(found, 'linkage')}"
    return f"knows a few sentences or rare words of each links {_share(found, 'facts')}"


def _share(found: Findings, measure: str) -> str:
    figure = found.strongest(measure)
    assert figure is not None  # the rule spoke of it
    return of_tried(figure["first"]["value"], figure["first"]["tried"])


def _most_pairs(found: Findings) -> str:
    areas = (found.above_noise(name) or 0.0 for name in _THRESHOLDS if name.endswith("membership"))
    return pairs(max(areas))
