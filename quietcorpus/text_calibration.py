"""Calibration of public texts: pools, votes and rounds, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from os import fspath
from typing import TYPE_CHECKING

from quietcorpus.transforms.errors import InputError

from .arguments import (
    Number,
    between_0_and_1,
    checked,
    exact,
    exact_numbers,
    one_of,
    whole,
)
from .places import Place, absolute, process_restored

if TYPE_CHECKING:
    from quietcorpus.pipelines.kinds.public_texts.calibrate_report import CalibratedVotes


@checked
@process_restored()
def calibrate_public_texts(
    source: Place,
    *,
    pools: Sequence[Place],
    epsilons: Sequence[Number],
    delta: Number | None = None,
    noise: str = "gaussian",
    nearest: Sequence[int] = (20, 100, 500),
    label: str | None = None,
    text: str = "text",
    encoder: str = "all-MiniLM-L6-v2",
    documents: int | None = None,
    runs: int = 5,
    seed: int = 1,
    rounds: Number | None = None,
    progress: bool = False,
) -> CalibratedVotes:
    """Find the pool, and the number of texts that a document votes for, that serve a budget best.

    Args:
        source: public documents like those that will be released, and not of a pool.
        pools: the places of pools.
        epsilons: of a document.
        delta: of the release; None with geometric noise alone.
        noise: `gaussian`, or `geometric`, whose delta is zero.
        nearest: numbers of texts that a document votes for.
        label: the column of a label, which becomes the release's strata: settings are then compared
            by what a classifier learns, and otherwise by distances.
        text: the column of the text.
        encoder: of pools that carry none: a folder, or the name, of a sentence-transformers model.
        documents: the number of documents that will be released; None for half of those here.
        runs: the number of runs, each with another split of the documents and fresh noise.
        seed: the seed of splits and noise.
        rounds: a share of epsilon: two releases are tried as well, of which the first has that
            share, and narrows a pool that has lists; None for one release alone.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Raises:
        InputError: anything that a person can fix.
    """
    whole(documents=documents)
    whole(2, runs=runs)
    whole(0, seed=seed)
    from quietcorpus.pipelines.kinds.public_texts.spec import MOST_NEAREST
    from quietcorpus.transforms.errors import require_installed

    for number in nearest:
        whole(1, MOST_NEAREST, nearest=number)
    given = {"pools": pools, "epsilons": epsilons, "nearest": nearest}
    if none := next((name for name, values in given.items() if not values), None):
        raise InputError(f"{none}: none is given; give one or more")
    exact_delta = _delta_of(noise, delta)
    if rounds is not None:
        between_0_and_1(rounds=float(exact(rounds)))
    require_installed("dp_accounting", "flint", key="pools", extra="public-texts")
    require_installed("sklearn", extra="evaluate")
    from quietcorpus.pipelines.kinds.public_texts import calibrate as job
    from quietcorpus.pipelines.kinds.public_texts.trials import TriedPool, VotesSettings
    from quietcorpus.transforms.reading.documents import Corpus

    settings = VotesSettings(
        epsilons=exact_numbers(epsilons),
        delta=exact_delta,
        nearest=tuple(sorted(set(nearest))),
        documents=documents,
        runs=runs,
        seed=seed,
        share=None if rounds is None else exact(rounds),
    )
    named = dict.fromkeys(fspath(one) for one in pools)
    return job.calibrate(
        [TriedPool.resolve(name, absolute(name), encoder) for name in named],
        Corpus(absolute(source), text, also=(("label", label),) if label else ()),
        label,
        settings,
        progress=progress,
    )


def _delta_of(noise: str, delta: Number | None) -> Fraction | None:
    """Return the delta; raise InputError for one that the noise lacks, or does not have."""
    one_of("noise", noise, ("gaussian", "geometric"))
    if (delta is None) != (noise == "geometric"):
        raise InputError(
            "delta: Gaussian noise needs it, and no other takes it; give it, or geometric noise"
        )
    if delta is None:
        return None
    between_0_and_1(delta=float(exact(delta)))
    return exact(delta)
