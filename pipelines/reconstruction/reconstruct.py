"""The job of `quietcorpus reconstruct`: documents drawn from what a release's noisy bins tell."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import fasteners
import numpy as np

from mechanisms.factors import Prior
from pipelines import readme, storage
from pipelines.card import Card, Reconstruction
from pipelines.card import File as CardFile
from pipelines.publishing import area
from pipelines.reconstruction.documents import Documents
from pipelines.reconstruction.fit import PASSES, Work, fit
from pipelines.reconstruction.noisy_release import NoisyRelease
from pipelines.reconstruction.progress import progress
from pipelines.spec import inside
from pipelines.version import environment_digest, software
from transforms.errors import InputError
from transforms.shards import Written

_LOGGER = logging.getLogger("quietcorpus.reconstruct")
_STEPS = PASSES + 3
"""What is done for each document: compared, begun with, passed over, and drawn."""


def reconstruct(
    path: str, output: str, factors: int, begins: Callable[[], None], *, quiet: bool
) -> Card:
    """Make and publish a better release from the noisy bins of another: a function of that alone.

    Args:
        path: of the release, whose files are all checked.
        output: where the new one will be.
        factors: of the low-rank model.
        begins: is called when the release may exist from then on.
        quiet: log lines for progress even on a terminal.

    Raises:
        InputError: anything that a person can mend.
    """
    storage.refuse_existing(output)
    source = NoisyRelease.open(path)
    if inside(output, source.output):
        raise InputError(f"--output: {output} lies in the release; name a place of its own")
    run = hashlib.sha256(f"{source.digest} {factors} {environment_digest()}".encode()).hexdigest()
    with (
        area(output, source.card.release, run[:32]) as place,
        _work(source, factors, run) as work,
        progress(source.documents * _STEPS, quiet=quiet) as told,
    ):
        prior = _prior(source, work, factors)
        seed = int(source.digest, 16)
        found = fit(work, prior, source.decay, seed, told)
        documents = Documents(source, work.noisy, found, seed)
        files = [*source.tables_of_terms(place.staging), *documents.written(place.staging, told)]
        card = _card(source, files, place.created, found.prior.factors)
        text = readme.render(card)
        digest = hashlib.sha256(text.encode()).hexdigest()
        card = card.model_copy(update={"readme_sha256": digest})
        place.publish(files, {storage.README: text, storage.CARD: card.to_json()}, begins)
        work.clear()
    return card


@contextmanager
def _work(source: NoisyRelease, factors: int, run: str) -> Iterator[Work]:
    """A folder for this very fit, in which an earlier run may have left what it had done."""
    folder = Path(tempfile.gettempdir(), f"quietcorpus-reconstruct-{run[:32]}")
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = fasteners.InterProcessLock(folder / "lock")
    if not lock.acquire(blocking=False):
        raise InputError(f"{source.output}: is being reconstructed by another run; wait for it")
    try:
        work = Work(folder, source.documents, source.size)
        done = work.done()
        if done is None:
            _read(source, work)
        else:
            _LOGGER.info("going on after %d of %d passes of an earlier run", done[0], PASSES)
        yield work
    finally:
        lock.release()


def _read(source: NoisyRelease, work: Work) -> None:
    """The noisy counts of all documents, in the order of the files."""
    noisy, start = work.noisy, 0
    for file in source.files:
        for rows in source.noisy(file):
            noisy[start : start + len(rows)] = rows
            start += len(rows)
    noisy.flush()


def _prior(source: NoisyRelease, work: Work, factors: int) -> Prior:
    """What the histogram tells; where there is none, the sums of the noisy bins do."""
    given = source.histogram()
    counts = work.noisy.sum(axis=0, dtype=np.float64) if given is None else given
    counts = np.maximum(counts, 0.5)
    return Prior(counts / counts.sum(), counts.sum() / source.documents, factors)


def _card(source: NoisyRelease, files: list[Written], created: str, factors: int) -> Card:
    """The release's own card, for other files: what was spent was spent for both."""
    made = Reconstruction(card_sha256=source.digest, factors=factors, passes=PASSES)
    mechanism = {key: value for key, value in source.card.mechanism.items() if key != "include"}
    return source.card.model_copy(
        update={
            "created": created,
            "mechanism": mechanism,
            "reconstruction": made,
            "files": [CardFile(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
            "software": software(),
        }
    )
