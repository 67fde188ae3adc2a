"""The job of `quietcorpus reconstruct`: better documents from a release's noisy bins."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import fasteners
import numpy as np
import numpy.typing as npt

from quietcorpus.mechanisms.accounting.factors import Prior
from quietcorpus.transforms.artefacts.folders import scratch
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.shards import Written, staged_content

from ....card import page
from ....card.model import Card, File, Reconstruction
from ....environment.signing import RELEASE_KEY, configured_key
from ....environment.version import environment_digest, quietcorpus_version, same_code, software
from ....runners.parallel import Backend
from ....storage.claims import Run
from ....storage.output import Output
from ....storage.places import inside
from ....terminal.progress import Steps
from .documents import documents
from .fit import STEPS_TO_FIT, Fitted, SavedFactors, fit
from .noisy_release import NoisyRelease
from .part import FilePart
from .workers import Workers, workers

_KEPT = "factors.npz"


def reconstruct(
    path: str,
    output: str,
    factors: int,
    on_publishing: Callable[[], None],
    *,
    backend: Backend,
    progress: bool,
) -> Card:
    """Make and publish a better release from the noisy bins of another, as a function of it alone.

    Args:
        path: the place of the release, whose files are all checked.
        output: the place of the new release.
        factors: the largest number of factors of the low-rank model.
        on_publishing: is called just before the new release may exist.
        backend: threads or Ray, see `workers`.
        progress: whether to show a bar.

    Raises:
        InputError: anything that a person can fix.
        StageError: a worker ended.
    """
    place = Output(output)
    place.require_free()
    signing = configured_key(RELEASE_KEY)
    steps = Steps(2 + STEPS_TO_FIT + 1, bar=progress)
    with steps.step("verifying the release"):
        source = NoisyRelease.open(path)
    if inside(output, source.output):
        raise InputError(f"output: {output} lies in the release; name a place of its own")
    run = hashlib.sha256(f"{source.digest} {factors} {environment_digest()}".encode()).hexdigest()
    mine = partial(scratch, f"reconstruct-{run[:32]}")
    seen = 0

    def advance(documents: int) -> None:
        nonlocal seen
        seen += documents

    def within(_: int) -> str:
        return f"{seen % source.documents:,} of {source.documents:,} documents of this pass"

    with (
        place.staging(_run(source, factors, run)) as staged,
        _locked(mine(), path) as folder,
        workers(backend, source, mine, advance) as crew,
    ):
        prior, kept = _prior(source, crew, factors), SavedFactors(folder / _KEPT)
        found = fit(crew, prior, source.decay, source.seed, kept, steps, within)
        files = list(source.tables_of_terms(staged.staging))
        with steps.step("drawing documents", source.documents, "documents") as display:
            for written in documents(crew, source, found, staged.staging, source.seed):
                files.append(written)
                display.advance(written.rows)
        with steps.step("publishing"):
            card = _card(source, files, staged.created, found)
            rows = page.first_rows(card.mechanism, files, lambda file: staged_content(file, None))
            card, texts = page.texts(card, rows, signing)
            staged.publish(files, texts, on_publishing)
        for _ in crew.each(FilePart.clear):
            pass
        shutil.rmtree(folder, ignore_errors=True)
    return card


def _run(source: NoisyRelease, factors: int, identity: str) -> Run:
    """Return the run as a claim identifies it; its output costs no budget, by any software."""
    asked = {"the release": source.digest, "the number of factors": f"{factors}"}
    return Run(source.card.release, identity, "", asked, quietcorpus_version())


@contextmanager
def _locked(folder: Path, path: str) -> Iterator[Path]:
    """Lock and yield the folder of this fit, which may hold the work of an earlier run."""
    lock = fasteners.InterProcessLock(folder / "lock")
    if not lock.acquire(blocking=False):
        raise InputError(f"{path}: is being reconstructed by another run; wait for it")
    try:
        yield folder
    finally:
        if not (folder / _KEPT).exists():  # nothing to go on from
            shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _prior(source: NoisyRelease, crew: Workers, factors: int) -> Prior:
    """Build the prior from the histogram or, without one, from the sums of the noisy bins."""
    given = source.histogram()
    if given is None:
        given = sum(crew.each(_sums), np.zeros(source.size))
    return Prior.of(given, source.documents, factors)


def _sums(part: FilePart) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = part.noisy.sum(axis=0, dtype=np.float64)
    return found


def _card(source: NoisyRelease, files: list[Written], created: str, found: Fitted) -> Card:
    """Return the release's own card with the new files: what was spent was spent for both."""
    made = Reconstruction(
        card_sha256=source.digest,
        factors=found.prior.factors,
        starts=len(found.fits),
        passes=found.passes,
    )
    return source.card.model_copy(
        update={
            "created": created,
            "mechanism": source.mechanism.model_copy(update={"include": None}),
            "reconstruction": made,
            "files": [File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
            "code_sha256": same_code(source.card.code_sha256),
            "software": software(),
        }
    )
