"""A comparison of the engines that find the words of noisy vectors: recall, speed, N_w and S_w."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.calibration import (
    Measured,
    choose_words,
    held_draws,
    limited,
    measure,
)
from quietcorpus.evaluation.recall import Recall, noisy_queries, recall
from quietcorpus.evaluation.simulation import MadlibSimulator
from quietcorpus.evaluation.tallies import child
from quietcorpus.indexes.engines import vector_search
from quietcorpus.indexes.faiss_ivf import check_probes
from quietcorpus.indexes.search import EXACT, Search, SearchEngine, SearchError, Searching
from quietcorpus.indexes.word_index import WordIndex
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.installed import require_installed

from ...storage import files as storage
from ...storage.output import Output
from ...terminal.progress import Steps
from . import search_plot

RESULT = "search-report.json"
_ETA = Fraction(1, 20)
_PROBES = (8, 32, 128)
_WARM_UP = 16  # queries, after which kernels are compiled and lists are open

_TIMED = 256  # queries and draws


@dataclass(frozen=True)
class ReportSettings:
    """The settings of a report.

    Attributes:
        epsilons: the grid, per unit of Euclidean distance.
        probes: the numbers of lists to search; None for some that are common.
        queries: the number of noisy vectors on which recall and speed are measured.
        words, draws: of the estimates of N_w and S_w.
        seed: the seed of words and noise.
    """

    epsilons: tuple[Fraction, ...]
    probes: tuple[int, ...] | None = None
    queries: int = 2048
    words: int = 64
    draws: int = 256
    seed: int = 1

    def at_most(self, number: int) -> ReportSettings:
        """Return the same settings with so many queries and draws, and two words, at most."""
        fewer = min(self.queries, number), min(self.words, 2), min(self.draws, number)
        return ReportSettings(self.epsilons, self.probes, *fewer, self.seed)

    def searches(self, index: WordIndex) -> int:
        """Return the number of searches by one engine at one epsilon."""
        return 2 * self.queries + _words(index, self) * self.draws


def report(
    index: WordIndex, output: str | None, settings: ReportSettings, *, progress: bool = False
) -> dict[str, Any]:
    """Compare the engines on an index's vectors, in one thread.

    Args:
        index: the index, with vectors.
        output: None, or an absolute path or URI, still empty, for `search-report.json`, `.png` and
            `.svg`.
        settings: the epsilons, and how much is measured.
        progress: whether to show a bar.

    Returns:
        The content of `search-report.json`. All but the speeds follow from the settings.

    Raises:
        InputError: anything that a person can fix; nothing is written then.
    """
    engines = _engines(index, settings.probes)
    if output is None:
        return _content(index, settings, engines, progress=progress)
    require_installed("matplotlib", extra="calibrate")
    Output(output).require_writable()
    with Output(output).folder(last=RESULT) as folder:
        content = _content(index, settings, engines, progress=progress)
        files = search_plot.pictures(content)
        files[RESULT] = (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
        for name, made in files.items():
            storage.write_bytes(f"{folder}/{name}", made)
    return content


def _engines(index: WordIndex, probes: Sequence[int] | None) -> list[tuple[Searching, Search]]:
    """Return the engines to compare, exact search first; raises InputError."""
    try:
        lists = index.lists
        if lists is None:
            if probes is not None:
                raise SearchError("probes: the index has no inverted lists; leave `probes` out")
            numbers: list[int] = []
        elif probes is None:
            numbers = [number for number in _PROBES if number <= lists.number] or [lists.number]
        else:
            numbers = sorted(set(probes))
            for number in numbers:
                check_probes(lists, number)
        chosen = [EXACT, Searching(SearchEngine.FAISS_FLAT)]
        chosen += [Searching(SearchEngine.FAISS_IVF, number) for number in numbers]
        return [(one, vector_search(one, index.vectors, lists)) for one in chosen]
    except SearchError as error:
        raise InputError(str(error)) from None


def _content(
    index: WordIndex,
    settings: ReportSettings,
    engines: Sequence[tuple[Searching, Search]],
    *,
    progress: bool,
) -> dict[str, Any]:
    manifest = index.manifest
    lists = index.lists
    tasks = [(epsilon, *engine) for epsilon in settings.epsilons for engine in engines]
    steps = Steps(2, bar=progress)
    exact = engines[0][1]
    with limited():
        with steps.step("timing a few searches"):
            few = settings.at_most(_TIMED)
            _row(index, few, exact, *tasks[0])  # compiles and loads
            begun = time.perf_counter()
            for task in tasks[: len(engines)]:
                _row(index, few, exact, *task)
            spent = (time.perf_counter() - begun) / few.searches(index)
        steps.expect(spent * settings.searches(index) * len(settings.epsilons), "a few searches")
        rows = (_row(index, settings, exact, *task) for task in tasks)
        measured = list(steps.each(rows, len(tasks), "comparing engines", "engines at an epsilon"))
    count = len(engines)
    return {
        "schema_version": 1,
        "title": (
            f"Search among {manifest.words:,} words ({manifest.dimensions} dimensions"
            + (f", {lists.number:,} lists)" if lists else ")")
        ),
        "index": {
            "words": manifest.words,
            "dimensions": manifest.dimensions,
            "provenance": manifest.provenance,
            "source": dict(manifest.source),
            "lists": lists.number if lists else None,
            "files": {file["path"]: file["sha256"] for file in manifest.files},
        },
        "parameters": {
            "epsilons": [str(epsilon) for epsilon in settings.epsilons],
            "queries": settings.queries,
            "words": _words(index, settings),
            "draws": settings.draws,
            "eta": float(_ETA),
            "held": held_draws(settings.draws, _ETA),
            "seed": settings.seed,
        },
        "by_epsilon": [
            {"epsilon": float(epsilon), "engines": measured[e * count : (e + 1) * count]}
            for e, epsilon in enumerate(settings.epsilons)
        ],
    }


def _row(
    index: WordIndex,
    settings: ReportSettings,
    exact: Search,
    epsilon: Fraction,
    searching: Searching,
    search: Search,
) -> dict[str, Any]:
    seed = np.random.SeedSequence(settings.seed)
    queries = noisy_queries(index.vectors, float(epsilon), settings.queries, child(seed, 2))
    search.nearest(queries[:_WARM_UP])
    begun = time.perf_counter()
    search.nearest(queries)
    spent = time.perf_counter() - begun
    found = recall(search, exact, queries)
    estimates = _estimates(index, settings, epsilon, searching, search)
    return {
        "engine": searching.engine.value,
        "probes": searching.probes,
        "recall": _recall(found),
        "words_a_second": settings.queries / spent,
        "unchanged": _summary(estimates.unchanged_share[0]),
        "set_size": _summary(estimates.set_size[0]),
    }


def _words(index: WordIndex, settings: ReportSettings) -> int:
    return min(settings.words, index.manifest.words)


def _estimates(
    index: WordIndex,
    settings: ReportSettings,
    epsilon: Fraction,
    searching: Searching,
    search: Search,
) -> Measured:
    """Estimate N_w and S_w; all engines get the same words and the same noise."""
    seed = np.random.SeedSequence(settings.seed)
    words = choose_words(index.manifest.words, _words(index, settings), child(seed, 0))
    simulator = MadlibSimulator(index.vectors, search if searching.approximate else None)
    held = held_draws(settings.draws, _ETA)
    return measure(simulator, words, [float(epsilon)], settings.draws, held, child(seed, 1))


def _recall(found: Recall) -> dict[str, Any]:
    return {"share": found.share, "interval": list(found.interval)}


def _summary(values: npt.NDArray[np.number]) -> dict[str, float]:
    return {"mean": float(values.mean()), "median": float(np.median(values))}


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the table for a terminal."""
    parameters = found["parameters"]
    yield found["title"]
    yield (
        f"recall@1 and words a second (one thread) on {parameters['queries']:,} noisy vectors; N_w "
        f"and S_w from {parameters['draws']:,} draws for each of {parameters['words']:,} words"
    )
    yield ""
    yield (
        f"{'epsilon':>8}  {'engine':<16} {'probes':>6}  {'recall@1':>8} {'95 % interval':>15}  "
        f"{'words/s':>9} {'x exact':>7}  {'N_w mean':>8}  {'S_w mean':>8}"
    )
    for row in found["by_epsilon"]:
        base = row["engines"][0]["words_a_second"]
        for one in row["engines"]:
            low, high = one["recall"]["interval"]
            yield (
                f"{row['epsilon']:>8.4g}  {one['engine']:<16} {one['probes'] or '':>6}  "
                f"{one['recall']['share']:>8.3f} {f'{low:.3f}-{high:.3f}':>15}  "
                f"{one['words_a_second']:>9,.0f} {one['words_a_second'] / base:>7.2f}  "
                f"{one['unchanged']['mean']:>8.3f}  {one['set_size']['mean']:>8.1f}"
            )
    if found["index"]["lists"] is None:
        yield ""
        yield "the index has no inverted lists; build one with --search ivf:lists=NUMBER"
