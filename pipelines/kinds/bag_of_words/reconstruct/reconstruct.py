"""The job of `quietcorpus reconstruct`: better documents from a release's noisy bins."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import fasteners
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.mechanisms.accounting.factors import Prior, means
from quietcorpus.mechanisms.bags.bags import Bags
from quietcorpus.mechanisms.bags.decompression import Decompression
from quietcorpus.mechanisms.noise.noisy_counts import draw, relative
from quietcorpus.transforms.artefacts.folders import scratch
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.bags import as_lists
from quietcorpus.transforms.shards import Written, staged_content, write_tables

from ....card import page
from ....card.model import Card, File, Reconstruction
from ....environment.keys import RELEASE_KEY, configured_key
from ....environment.version import environment_digest, quietcorpus_version, same_code, software
from ....runners.parallel import Backend
from ....storage.claims import Run
from ....storage.output import Output
from ....storage.places import inside
from ....terminal.progress import Steps
from .fit import STEPS_TO_FIT, Counts, Fitted, Floats, SavedFactors, Workers, fit, sample, workers
from .noisy_release import FilePart, NoisyRelease


def documents(
    workers: Workers, source: NoisyRelease, fitted: Fitted, staging: str, seed: int
) -> Iterator[Written]:
    """Write the data files of the new release, one for each part, with the same rows in order.

    Args:
        workers: the workers that hold the documents.
        source: the release.
        fitted: the fitted model.
        staging: the folder to write to.
        seed: the seed of the draws.
    """
    stretch = stretch_of(workers, fitted, source.decay, seed)
    return workers.each(_Write(source, fitted, stretch, staging, seed))


def stretch_of(workers: Workers, fitted: Fitted, decay: float, seed: int) -> np.float32:
    """Compute the factor on means that gives documents the histogram's mean length.

    A mean-field law is overconfident, the more so the more noise there is. Without the factor, its
    documents would be too short.
    """
    chosen, stretch = sample(workers.rows, seed), 1.0
    found = list(workers.each(partial(_seen_and_expected, fitted=fitted, chosen=chosen)))
    noisy, own = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    # A fixed point, since the expected lengths depend on the factor.
    for _ in range(8):
        stretched = own * np.float32(stretch)
        total = float((relative(noisy, stretched, decay) * stretched).sum())
        stretch *= fitted.prior.length * len(noisy) / total
    return np.float32(stretch)


def drawn(
    part: FilePart,
    rows: slice,
    fitted: Fitted,
    decay: float,
    stretch: np.float32,
    decompression: Decompression,
    generator: np.random.Generator,
) -> Bags:
    """Draw the terms of some documents of a part."""
    own = _means(part, fitted, rows) * stretch
    counts = draw(part.noisy[rows], own, decay, generator.random(own.shape))
    documents, bins = np.nonzero(counts)
    offsets = np.searchsorted(documents, np.arange(len(counts) + 1)).astype(np.int64)
    bags = Bags(offsets, bins.astype(np.int32), counts[documents, bins])
    return decompression.expand(
        bags, lambda count: generator.integers(0, 2**64, count, dtype=np.uint64)
    )


def _seen_and_expected(
    part: FilePart, fitted: Fitted, chosen: list[npt.NDArray[np.int64]]
) -> tuple[Counts, Floats]:
    rows = chosen[part.number]
    return part.noisy[rows], _means(part, fitted, rows)


def _means(part: FilePart, fitted: Fitted, rows: slice | npt.NDArray[np.int64]) -> Floats:
    shapes = part.shapes(fitted.passes, len(fitted.fits), fitted.prior.factors)
    return means(shapes[:, rows], fitted.fits, fitted.prior)


@dataclass(frozen=True)
class _Write:
    """The writer of a part's new data file."""

    source: NoisyRelease
    fitted: Fitted
    stretch: np.float32
    staging: str
    seed: int

    def __call__(self, part: FilePart) -> Written:
        file = self.source.files[part.number]
        schema = self.source.schema(file)
        return write_tables(self._tables(part, file, schema), schema, file.path, self.staging, None)

    def _tables(self, part: FilePart, file: File, schema: pa.Schema) -> Iterator[pa.Table]:
        kept = [name for name in schema.names if name not in ("terms", "counts")]
        decompression, start = self.source.decompression(), 0
        for batch, table in enumerate(self.source.tables(file, kept)):
            rows = slice(start, start + len(table))
            generator = np.random.default_rng([self.seed, part.number, batch])
            bags = drawn(
                part, rows, self.fitted, self.source.decay, self.stretch, decompression, generator
            )
            columns = dict(zip(table.schema.names, table.columns, strict=True)) | as_lists(bags)
            yield pa.table(columns).select(schema.names)
            start = rows.stop


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
