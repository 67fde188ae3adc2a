"""The verdict that a report opens with: one sentence, from all that was found.

It is about what harms most: a rule about privacy that spoke (see `recommendations`), the measured
ones before those on what is kept or promised; else an attack that finds more than in noise; else
what was not tried, or was lost. All is well only where none of these is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .findings import ATTACKS, Findings, attacked
from .recommendations import MEASURED, ONLY, RULES

State = Literal["well", "caution", "harm"]

_CALM = "No attack finds more than chance would"


def headline(found: Findings) -> tuple[State, str]:
    """Return the state of a release, and the sentence about it."""
    state, sentence = _judged(found)
    return state, f"{sentence}."


def _judged(found: Findings) -> tuple[State, str]:
    for rule in sorted(RULES, key=lambda rule: rule.known):
        if rule.verdict is not None and any(rule.judge(found)):
            state: State = "harm" if rule.known == MEASURED else "caution"
            return state, rule.verdict(found)
    above = [name for name in ATTACKS if found.above_noise(name) is not None]
    if above:
        figure = found.strongest(above[0])
        assert figure is not None
        return "caution", (
            f"Attackers find little, but more than chance would ({attacked(above[0], figure)}): "
            f"{ONLY}"
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
            f", and the corpus has no more: {ONLY}" if found.whole else ": evaluate more documents"
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
    return bool(figure["first"]["high"] >= found.harm(measure))
