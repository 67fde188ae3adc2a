"""The job of `quietcorpus canaries`: releases of a copy of a corpus, in which coins are hidden."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quietcorpus.evaluation.audits.one_run import (
    Curve,
    Guesses,
    approximate,
    fewest_right,
    gaussian,
    guess,
    largest,
    right_of_gaussian,
)
from quietcorpus.mechanisms.concentrated import gaussian_epsilon, rounded_up
from quietcorpus.pipelines import registry
from quietcorpus.pipelines.canaries.copy import Copy, copied
from quietcorpus.pipelines.canaries.game import Game
from quietcorpus.pipelines.card.loading import load
from quietcorpus.pipelines.engine.engine import Engine
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.release.release import release
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.pipelines.storage import files as storage
from quietcorpus.pipelines.storage.output import Output, refuse_in_release
from quietcorpus.pipelines.terminal.progress import Steps
from quietcorpus.transforms.errors import InputError, StageError

RESULT = "canaries.json"
SCHEMA_VERSION = 1
_SHARES = np.sqrt(2) ** np.arange(10)
"""By which a half of the canaries is divided, for the numbers of guesses that are tried."""
_LARGEST_DISTANCE = 40.0


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


@dataclass(frozen=True)
class Test:
    """One comparison of the guesses with a statement.

    Attributes:
        name: `stated`, of the epsilon and delta as such, or `gaussian`, of noise of that law.
        parameter: the stated epsilon, or the distance of the Gaussian's means.
        delta: at which the parameter is told as an epsilon.
        level: the chance that it errs.
    """

    name: str
    parameter: float
    delta: float
    level: float

    def curve(self, parameter: float) -> Curve:
        """Return the curve of a parameter."""
        if self.name == "gaussian":
            return gaussian(parameter)
        return approximate(parameter, self.delta)

    def found(self, runs: Sequence[Guesses]) -> float:
        """Return the largest parameter that runs refute."""
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
    """What is fixed before any run.

    Attributes:
        tests: the comparisons.
        guesses: the number of guesses in each run.
        reach: the largest epsilon that so many guesses can show, if all are right.
        shows_twice: whether noise of twice the loss would be found, more often than not; None if
            the scores do not show the noise itself.
    """

    tests: tuple[Test, ...]
    guesses: int
    reach: float
    shows_twice: bool | None

    @property
    def tells(self) -> bool:
        """Return whether the guesses can show more than what is stated."""
        return self.reach > 0


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
        The content of `canaries.json`, in which nothing is of the corpus's text.

    Raises:
        InputError: anything that a person can mend; nothing is written then.
    """
    if output is not None:
        refuse_in_release("output", output)
        Output(output).require_writable()
    make = registry.part(spec.mechanism.kind, "canaries")
    if make is None:
        raise InputError(f"canaries: there are none for the kind {spec.mechanism.kind}")
    engine = Engine(effort.beam_options, effort.workers)
    if not engine.local and effort.work is None:
        raise InputError(
            "work: missing; workers on other machines must reach the copy of the corpus: name a "
            "private folder or an object store's prefix"
        )
    with Output(output).folder(last=RESULT) if output is not None else nullcontext("") as folder:
        content = _audited(spec, make, effort, progress)
        if output is not None:
            raw = json.dumps(content, indent=2, allow_nan=False) + "\n"
            storage.write_bytes(f"{folder}/{RESULT}", raw.encode())
    return content


def _audited(spec: Spec, make: Any, effort: Effort, progress: bool) -> dict[str, Any]:
    steps = Steps(1 + effort.runs, bar=progress)
    with steps.step("placing canaries"):
        game: Game = make(prepare(spec, effort.workers), effort.canaries, spec.corpus)
        plan = planned(game, effort.runs, 1 - effort.confidence)
    runs: list[Guesses] = []
    if plan.tells:
        with copied(spec, effort.work) as copy:
            copy.fill()
            for run in range(effort.runs):
                with steps.step(f"run {run + 1} of {effort.runs}"):
                    runs.append(_played(copy, game, plan.guesses, run, effort))
    return _content(spec, game, plan, runs, effort)


def _played(copy: Copy, game: Game, guesses: int, run: int, effort: Effort) -> Guesses:
    """Make one release, with fresh coins, and guess them."""
    coins = np.random.default_rng().random(len(game.canaries)) < 1 / 2
    copy.put(game, coins)
    asked = copy.released(run, game)
    engine = Engine(effort.beam_options, effort.workers, name=asked.release)
    release(asked, engine, lambda: None)
    scores = game.score(load(asked.output, words=False), coins[: game.known])
    return guess(scores, coins[game.known :], guesses)


def planned(game: Game, runs: int, level: float) -> Plan:
    """Fix the tests and the number of guesses, from what is stated alone.

    Guesses are a half of the canaries, or fewer: for Gaussian noise, which tells most at its tails,
    so many that twice the loss is expected to pass the test by most deviations.
    """
    split = level if game.apart is None else level / 2
    tests = [Test("stated", game.epsilon, game.delta, split)]
    if game.apart is not None:
        tests.append(Test("gaussian", game.apart, game.delta, split))
    most, told = game.unknown, tests[-1]
    tried = sorted({max(1, int(most / (2 * share))) for share in _SHARES})
    if game.apart is None:
        tried = tried[-1:]
    margins = {made: _margin(game, told, made, runs) for made in tried}
    made = max(tried, key=lambda one: (margins[one], one))
    best = [Guesses(most, made, made)] * runs
    reach = max(
        (test.epsilon(found) for test in tests if (found := test.found(best)) > test.parameter),
        default=0.0,
    )
    return Plan(tuple(tests), made, reach, margins[made] > 0 if game.shown else None)


def _margin(game: Game, test: Test, made: int, runs: int) -> float:
    """Return by how many deviations twice the loss passes a test, where scores show the noise."""
    fewest = fewest_right(game.unknown, made, runs, test.curve(test.parameter), test.level)
    if fewest > made:
        return -math.inf
    if game.apart is None:
        share = 1 / (1 + math.exp(-2 * game.epsilon))
    else:
        share = right_of_gaussian(2 * game.apart, made / game.unknown)
    deviation = math.sqrt(made * share * (1 - share)) + 1e-9
    return (made * share - fewest) / deviation


def _content(
    spec: Spec, game: Game, plan: Plan, runs: Sequence[Guesses], effort: Effort
) -> dict[str, Any]:
    found = {test.name: test.found(runs) if runs else 0.0 for test in plan.tests}
    failed = [test.name for test in plan.tests if found[test.name] > test.parameter]
    verdict = "failed" if failed else "passed" if plan.tells else "cannot tell"
    return {
        "schema_version": SCHEMA_VERSION,
        "spec": spec.release,
        "kind": spec.mechanism.kind,
        "confidence": effort.confidence,
        "canaries": len(game.canaries),
        "known": game.known,
        "guesses": plan.guesses,
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
    at = f" at delta {stated['delta']:.3g}" if stated["delta"] else ""
    yield f"canaries  {content['canaries']:,} in each run. {content['says']}"
    yield f"stated    epsilon {stated['epsilon']:.6g}{at}"
    if content["verdict"] == "cannot tell":
        yield (
            f"verdict   cannot tell: {content['guesses']:,} guesses a run could not show more than "
            "that, if all were right; give more canaries, or more runs"
        )
        return
    right = ", ".join(f"{run['right']:,} of {run['made']:,}" for run in runs)
    yield f"guessed   {right} right, of all runs"
    for test in content["tests"]:
        law = ", if the noise is Gaussian" if test["name"] == "gaussian" else ""
        yield f"found     epsilon >= {test['found']:.4g}{at}{law}"
    yield (
        f"reach     {content['reach']:.4g} at most; a release that keeps its promise fails with a "
        f"chance of at most {1 - content['confidence']:.2g}"
    )
    if content["shows_twice"] is False:
        yield "          twice the loss would more often be missed: give more canaries or runs"
    if content["passed"]:
        yield "verdict   passed: consistent with what is stated, which proves nothing"
    else:
        yield "verdict   VIOLATION: more is given away than is stated"


def refuse(content: Mapping[str, Any]) -> None:
    """Raise StageError if more was found than is stated."""
    failed = [test for test in content["tests"] if not test["passed"]]
    if failed:
        worst = max(failed, key=lambda test: test["found"] / test["stated"])
        raise StageError(
            f"canaries: epsilon is at least {worst['found']:.6g}, more than the "
            f"{worst['stated']:.6g} that is stated: release nothing"
        )
