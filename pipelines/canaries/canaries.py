"""The job of `quietcorpus canaries`: releases of a copy of a corpus, in which coins are hidden."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from quietcorpus.evaluation.audits.one_run import (
    Curve,
    Guesses,
    approximate,
    fewest_right,
    gaussian,
    guess,
    independent_deviations,
    largest,
    right_of_gaussian,
)
from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon, rounded_up
from quietcorpus.mechanisms.accounting.guarantees import shown_up
from quietcorpus.transforms.errors import InputError, StageError

from .. import registry
from ..card.loading import load
from ..jobs.kind import prepare
from ..release.run import release
from ..runners.engine import Engine
from ..schema.mechanism import MechanismSpec
from ..schema.spec import Spec
from ..storage import files as storage
from ..storage.output import result_files
from ..terminal.progress import Steps
from .game import Copy, Game, copied

_SHARES = np.sqrt(2) ** np.arange(10)
"""By which a half of the canaries is divided, for the numbers of guesses that are tried."""
_LARGEST_DISTANCE = 40.0


@dataclass(frozen=True)
class Test:
    """One comparison of the guesses with a statement.

    Attributes:
        name: `stated`, of the epsilon and delta as such; `gaussian`, of noise of that law; or
            `independent`, of such noise on canaries that share none, from guesses of all coins.
        parameter: the stated epsilon, or the distance of the Gaussian's means.
        delta: the delta at which the parameter is stated as an epsilon.
        level: the chance that it errs.
    """

    name: str
    parameter: float
    delta: float
    level: float

    def curve(self, parameter: float) -> Curve:
        """Return the curve of a parameter."""
        if self.name != "stated":
            return gaussian(parameter)
        return approximate(parameter, self.delta)

    def found(self, runs: Sequence[Guesses]) -> float:
        """Return the largest parameter that runs refute; `independent` takes guesses of all."""
        if self.name == "independent":
            right, made = sum(run.right for run in runs), sum(run.made for run in runs)
            return independent_deviations(right, made, self.level)
        if self.name == "gaussian":
            return largest(runs, self.curve, self.level, _LARGEST_DISTANCE)
        return largest(runs, self.curve, self.level)

    def epsilon(self, parameter: float) -> float:
        """Return the epsilon at delta that a parameter means."""
        if self.name == "stated" or not parameter:
            return parameter
        rho = rounded_up(Fraction(parameter) ** 2 / 2)
        return float(gaussian_epsilon(rho, Fraction(self.delta)))


@dataclass(frozen=True)
class Plan:
    """The tests and the guesses, which are fixed before any run.

    Attributes:
        tests: the comparisons.
        guesses: the number of guesses in each run.
        reach: the largest epsilon that these guesses can show, if all are right.
        shows_twice: whether twice the loss would be found, more often than not, as far as it is
            known; after a rehearsal, whether that found twice the epsilon.
        rehearsal: what a release at twice the epsilon showed.
    """

    tests: tuple[Test, ...]
    guesses: int
    reach: float
    shows_twice: bool
    rehearsal: Guesses | None = None

    @property
    def tells(self) -> bool:
        """Return whether the guesses can show more than what is stated."""
        return self.reach > 0

    def rehearsed(self, loud: Guesses, runs: int) -> Plan:
        """Return the plan after a rehearsal, with the result of `runs` runs like it."""
        found = any(test.found([loud] * runs) > test.parameter for test in self.tests)
        return replace(self, shows_twice=found, rehearsal=loud)


def planned(game: Game, runs: int, level: float) -> Plan:
    """Fix the tests and the number of guesses, from what is stated alone.

    Guesses are a half of the canaries, or fewer: for Gaussian noise and drawn candidates, which
    reveal most at their tails, the number at which twice the loss is expected to pass by most
    deviations.
    """
    split = level / (1 + (game.apart is not None) + (game.own is not None))
    tests = [Test("stated", game.epsilon, game.delta, split)]
    if game.apart is not None:
        tests.append(Test("gaussian", game.apart, game.delta, split))
    most, told = game.unknown - game.weaker, tests[-1]
    tried = sorted({max(1, int(most / (2 * share))) for share in _SHARES})
    if game.apart is None and game.right is None:
        tried = tried[-1:]
    margins = {made: _margin(game, told, made, runs) for made in tried}
    made = max(tried, key=lambda one: (margins[one], one))
    if game.right is not None and margins[made] <= 0:
        made = tried[-1]  # which shows most of what has no noise at all
    known = game.shows is not None or game.right is not None
    best = [Guesses(game.unknown, made, made)] * runs
    reach = max(
        (test.epsilon(found) for test in tests if (found := test.found(best)) > test.parameter),
        default=0.0,
    )
    shows = known and margins[made] > 0
    if game.own is not None:
        assert game.apart is not None
        alone = Test("independent", game.apart, game.delta, split)
        tests.append(alone)
        every = game.unknown
        expected = (every - game.weaker) * stats.norm.cdf(game.apart) + game.weaker / 2
        shows = shows or alone.found([Guesses(every, every, int(expected))] * runs) > game.apart
        if (found := alone.found([Guesses(every, every, every)] * runs)) > game.apart:
            reach = max(reach, alone.epsilon(found))
    return Plan(tuple(tests), made, reach, shows)


def _margin(game: Game, test: Test, made: int, runs: int) -> float:
    """Return by how many deviations half of the noise passes a test, where scores show noise."""
    fewest = fewest_right(game.unknown, made, runs, test.curve(test.parameter), test.level)
    if fewest > made:
        return -math.inf
    if game.right is not None:
        share = game.right(made / game.unknown)
    elif game.apart is None:
        shown = game.epsilon if game.shows is None else game.shows
        share = 1 / (1 + math.exp(-2 * shown))
    else:
        share = right_of_gaussian(2 * game.apart, made / (game.unknown - game.weaker))
    deviation = math.sqrt(made * share * (1 - share)) + 1e-9
    return (made * share - fewest) / deviation


RESULT = "canaries.json"
_LAWS = {
    "stated": "",
    "gaussian": ", if the noise is Gaussian",
    "independent": ", if it is Gaussian and each canary's is independent",
}
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Effort:
    """The extent of an audit, and where it runs.

    Attributes:
        canaries: the number of canaries in each run.
        runs: the number of runs.
        confidence: the probability, at least, that a release which keeps its promise passes.
        beam_options, workers: of the engine, as for a release.
        work: the place for the copy and the releases; None for a temporary folder.
    """

    canaries: int
    runs: int
    confidence: float
    beam_options: tuple[str, ...]
    workers: int
    work: str | None


def audit(
    spec: Spec, effort: Effort, output: str | None = None, *, progress: bool = False
) -> dict[str, Any]:
    """Release copies of a spec's corpus, with canaries, and compare guesses with the guarantee.

    Args:
        spec: the spec.
        effort: the extent.
        output: an absolute path of a folder or an object-store URI, still empty, in which
            `canaries.json` is written; None to write nothing.
        progress: whether to show bars.

    Returns:
        The content of `canaries.json`, which holds none of the corpus's text.

    Raises:
        InputError: anything that a person can fix; nothing is written then.
    """
    make = registry.part_of(spec.mechanism, "canaries")
    if make is None:
        raise InputError(f"canaries: there are none for the kind {spec.mechanism.kind}")
    engine = Engine(effort.beam_options, effort.workers)
    if not engine.local and effort.work is None:
        raise InputError(
            "work: missing; workers on other machines must reach the copy of the corpus: name a "
            "private folder or an object store's prefix"
        )
    with result_files(output, last=RESULT) as files:
        content = _audited(spec, make, effort, progress)
        files[RESULT] = storage.as_json(content)
    return content


def _audited(spec: Spec, make: Any, effort: Effort, progress: bool) -> dict[str, Any]:
    steps = Steps(1 + effort.runs, bar=progress)
    placing = "placing canaries"
    with steps.step(placing) as display:
        game: Game = make(prepare(spec, effort.workers), effort.canaries, spec.corpus)
        plan = planned(game, effort.runs, 1 - effort.confidence)
        if not plan.tells:  # no run is made
            steps.total = 1
            display.title = steps.titled(placing)
    runs: list[Guesses] = []
    whole: list[Guesses] = []
    if plan.tells:
        with copied(spec, effort.work) as copy:
            copy.fill()
            if game.twice is not None:
                steps.total += 1
                with steps.step("rehearsal, at twice the epsilon"):
                    loud, _ = _played(copy, game, plan.guesses, "rehearsal", effort, game.twice)
                plan = plan.rehearsed(loud, effort.runs)
            for run in range(1, effort.runs + 1):
                with steps.step(f"run {run} of {effort.runs}"):
                    some, every = _played(copy, game, plan.guesses, f"released-{run}", effort)
                    runs.append(some)
                    whole.append(every)
    return {
        "schema_version": SCHEMA_VERSION,
        "spec": spec.release,
        "kind": spec.mechanism.kind,
        **verdict_of(game, plan, runs, effort, whole),
    }


def _played(
    copy: Copy,
    game: Game,
    guesses: int,
    name: str,
    effort: Effort,
    mechanism: MechanismSpec | None = None,
) -> tuple[Guesses, Guesses]:
    """Make one release with fresh coins; guess `guesses` of them, and then all of them."""
    coins = np.random.default_rng().random(len(game.canaries)) < 1 / 2
    copy.put(game, coins)
    asked = copy.released(name, game, mechanism)
    engine = Engine(effort.beam_options, effort.workers, name=asked.release)
    release(asked, engine, lambda: None)
    scores = game.score(load(asked.output, words=False), coins[: game.known])
    asked_of = coins[game.known :]
    return guess(scores, asked_of, guesses), guess(scores, asked_of, len(asked_of))


def verdict_of(
    game: Game,
    plan: Plan,
    runs: Sequence[Guesses],
    effort: Effort,
    whole: Sequence[Guesses] = (),
) -> dict[str, Any]:
    """Return the verdict on runs and its figures; without runs, that they could not tell.

    `whole` are the guesses of all coins of the same runs, for independent canaries.
    """
    found = {}
    for test in plan.tests:
        given = whole if test.name == "independent" else runs
        found[test.name] = test.found(given) if given else 0.0
    failed = [test.name for test in plan.tests if found[test.name] > test.parameter]
    verdict = "failed" if failed else "passed" if plan.shows_twice else "cannot tell"
    return {
        "confidence": effort.confidence,
        "canaries": len(game.canaries),
        "known": game.known,
        "guesses": plan.guesses,
        "rehearsal": asdict(plan.rehearsal) if plan.rehearsal else None,
        "runs": [asdict(run) for run in runs],
        "stated": {"epsilon": game.epsilon, "delta": game.delta},
        "tests": [
            {
                "name": test.name,
                "stated": test.epsilon(test.parameter),
                "found": test.epsilon(found[test.name]),
                "passed": test.name not in failed,
            }
            for test in plan.tests
        ],
        "reach": plan.reach,
        "shows_twice": plan.shows_twice,
        "verdict": verdict,
        "passed": verdict != "failed",
        "says": game.says,
    }


def lines(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the result as lines for a terminal."""
    stated, runs = content["stated"], content["runs"]
    at = f" at delta {shown_up(stated['delta'], 3)}" if stated["delta"] else ""
    each = " in each run" if runs else ""
    yield f"canaries  {content['canaries']:,}{each}. {content['says']}"
    yield f"stated    epsilon {shown_up(stated['epsilon'])}{at}"
    if not runs:
        yield (
            f"verdict   cannot tell: {content['guesses']:,} guesses a run could not show more than "
            "that, if all were right; give more canaries, or more runs"
        )
        return
    if content["rehearsal"]:
        yield f"rehearsed {_right([content['rehearsal']])} right, at twice the epsilon"
    yield f"guessed   {_right(runs)} right, of all runs"
    for test in content["tests"]:
        law = _LAWS[test["name"]]
        yield f"found     epsilon >= {test['found']:.4g}{at}{law}"
    yield (
        f"reach     {content['reach']:.4g} at most; a release that keeps its promise fails with a "
        f"chance of at most {1 - content['confidence']:.2g}"
    )
    match content["verdict"]:
        case "failed":
            yield "verdict   VIOLATION: more is given away than is stated"
        case "passed":
            yield "verdict   passed: consistent with what is stated, which proves nothing"
        case _:
            yield (
                "verdict   cannot tell: nothing was found, and at twice the epsilon nothing would "
                "be, more often than not; larger faults may be; give more canaries, or more runs"
            )


def _right(runs: Sequence[Mapping[str, int]]) -> str:
    return ", ".join(f"{run['right']:,} of {run['made']:,}" for run in runs)


def refuse(content: Mapping[str, Any]) -> None:
    """Raise StageError if more was found than is stated."""
    failed = [test for test in content["tests"] if not test["passed"]]
    if failed:
        worst = max(failed, key=lambda test: test["found"] / test["stated"])
        raise StageError(
            f"releases give away an epsilon of at least {worst['found']:.6g}, more than the "
            f"{worst['stated']:.6g} that is stated: release nothing"
        )
