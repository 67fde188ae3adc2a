"""Calibration of public texts: pools, votes and rounds, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from os import fspath
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Interval

from quietcorpus.transforms.errors import InputError

from .arguments import (
    Count,
    Number,
    Seed,
    checked,
    exact,
    exact_numbers,
    require_within,
)
from .places import Place, absolute, process_restored

if TYPE_CHECKING:
    from quietcorpus.pipelines.kinds.public_texts.calibrate_report import CalibratedVotes

_SHARE = Interval(gt=0, lt=1)


@checked
@process_restored()
def calibrate_public_texts(
    source: Place,
    *,
    pools: Sequence[Place],
    epsilons: Sequence[Number],
    delta: Number | None = None,
    noise: Literal["gaussian", "geometric"] = "gaussian",
    nearest: Sequence[Count] = (20, 100, 500),
    label: str | None = None,
    text: str = "text",
    encoder: str = "all-MiniLM-L6-v2",
    documents: Count | None = None,
    runs: Annotated[int, Interval(ge=2)] = 5,
    seed: Seed = 1,
    rounds: Number | None = None,
    progress: bool = False,
) -> CalibratedVotes:
    """Find the pool, and the number of texts that a document votes for, that serve a budget best.

    Args:
        source: public documents like those that will be released, and not of a pool.
        pools: a pool to try.
        epsilons: the epsilons of a document.
        delta: the delta of the release, for Gaussian noise alone.
        noise: `gaussian`, or `geometric`, whose delta is zero.
        nearest: numbers of texts that a document votes for.
        label: the column of a label, which becomes the release's strata: settings are then compared
            by what a classifier learns, and otherwise by distances.
        text: the column of the text.
        encoder: the encoder of pools that carry none: a folder, or the name, of a
            sentence-transformers model.
        documents: the number of documents, or users, that will be released; by default, half of
            those here.
        runs: the number of runs, each with another split of the documents and fresh noise.
        seed: the seed of splits and noise.
        rounds: a share of epsilon: two releases are tried as well, of which the first has that
            share, and narrows a pool that has lists.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Raises:
        InputError: anything that a person can fix.
    """
    from quietcorpus.pipelines.kinds.public_texts.spec import MOST_NEAREST
    from quietcorpus.transforms.errors import require_installed

    for number in nearest:
        require_within("nearest", number, Interval(le=MOST_NEAREST))
    given = {"pools": pools, "epsilons": epsilons, "nearest": nearest}
    if none := next((name for name, values in given.items() if not values), None):
        raise InputError(f"{none}: none is given; give one or more")
    exact_delta = _delta_of(noise, delta)
    if rounds is not None:
        require_within("rounds", float(exact(rounds)), _SHARE)
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
    if (delta is None) != (noise == "geometric"):
        raise InputError(
            "delta: Gaussian noise needs it, and no other takes it; give it, or geometric noise"
        )
    if delta is None:
        return None
    require_within("delta", float(exact(delta)), _SHARE)
    return exact(delta)
