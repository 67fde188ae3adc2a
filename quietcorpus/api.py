"""The commands of the command line, as functions; `quietcorpus` exports them all.

The functions print nothing, configure no logging and never end the process: they return results,
and raise `InputError` for anything that a person can mend. Log records come from loggers below
`quietcorpus`. While a function runs, the environment may hold a fresh master key and the retry
settings of object stores' clients. At its end, the settings of the process that it changed are
restored; the guide of the Python API lists them, and what is not restored. Errors of other
libraries pass unchanged, and their messages may quote private text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf
from operator import index as whole_of
from os import fspath
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, get_args

from quietcorpus.places import Place, absolute, process_restored
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from quietcorpus.indexes.candidates import CandidatesManifest
    from quietcorpus.indexes.pool import PoolManifest
    from quietcorpus.indexes.word_index import IndexManifest
    from quietcorpus.pipelines.calibrate.bags import Calibrated
    from quietcorpus.pipelines.calibrate.sentences import CalibratedUtility
    from quietcorpus.pipelines.card.model import Card
    from quietcorpus.pipelines.spec.spec import Spec

Number: TypeAlias = str | int | float | Decimal | Fraction
"""A number, taken as it is written: 0.1 is exactly one tenth."""

TriedMap: TypeAlias = Literal["frequency", "random", "none"]
"""A compression map that `calibrate_bags` can try."""


@process_restored()
def release(
    spec: Place | Mapping[str, Any] | Spec,
    *,
    workers: int = 1,
    beam_options: Iterable[str] = (),
    if_exists: Literal["refuse", "ok"] = "refuse",
    strict: bool = False,
    progress: bool = False,
    on_publishing: Callable[[], None] | None = None,
    summary: Place | None = None,
    deadline: float | None = None,
    worker_timeout: float = 10.0,
) -> Card:
    """Make the release that a spec describes, and publish it once it is complete.

    Args:
        spec: a YAML file, its content, or a checked spec.
        workers: the number of processes on this machine.
        beam_options: Beam's own options, in the form that its command line takes, for any other
            engine, such as `["--runner=DataflowRunner", "--project=..."]`.
        if_exists: `ok` returns the card of a complete release of the same id, mechanism and columns
            that is already at the output; its input is not compared.
        strict: refuse a guarantee that means little, and anything else that a run warns of before
            it begins.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.
        on_publishing: called just before publication; afterwards the release may exist. An error
            before it leaves nothing published. When `release` returns a card, `on_publishing` was
            called if and only if that call made the release.
        summary: a place outside the output for a summary of this run, however it ends: how, why,
            and at what cost. It replaces the summary of an earlier run.
        deadline: minutes until publication, after which the run is interrupted and raises
            `Unavailable`; for the main thread alone.
        worker_timeout: minutes that a job on a cluster waits for a first worker, or for another
            one once all are lost, before it raises `Unavailable`.

    Returns:
        The card, with the content of `release.json`.

    Raises:
        InputError: anything that a person can mend.
        StageError: a failure of a worker or an engine; `Unavailable` where another try may help.
        GraphIsValid: `beam_options` ask for a dry run, and the job's graph is valid.
    """
    _one_of("if_exists", if_exists, ("refuse", "ok"))
    _flags(strict=strict, progress=progress)
    _above_zero(deadline=deadline, worker_timeout=worker_timeout)
    from quietcorpus.pipelines.engine.engine import Engine
    from quietcorpus.pipelines.engine.interruption import deadline as kept
    from quietcorpus.pipelines.release import existing, needs
    from quietcorpus.pipelines.release.recorder import recorded
    from quietcorpus.pipelines.release.release import release as make
    from quietcorpus.pipelines.spec.loading import as_spec

    place = None if summary is None else absolute(summary)
    with recorded(place) as run, kept(deadline) as lift:
        described = as_spec(spec)
        run.describe(described)
        engine = Engine(tuple(beam_options), workers, worker_timeout, described.release)
        needs.check(described)
        card = existing.complete(described) if if_exists == "ok" else None
        if card is not None:
            run.existed(card, described.output)
            return card

        def publishes() -> None:
            lift()
            (on_publishing or _nothing)()

        begins = run.publishing(publishes)
        card = make(
            described,
            engine,
            begins,
            on_step=run.step,
            on_progress=run.progress,
            progress=progress,
            strict=strict,
        )
        run.published(card)
        return card


@process_restored()
def release_claim(output: Place, reason: str) -> list[str]:
    """Free an output from a run that died and that nobody will repeat; return what is left there.

    What the run has staged, uploaded and published without its card is deleted. The files that are
    left are of no run that this version knows. A ledger gives nothing back by that: see
    `quietcorpus.ledger.release_reservation`.

    Args:
        output: the place where the release was to be.
        reason: kept in the log.

    Raises:
        InputError: there is nothing to release, or a release.
        Unavailable: the run is alive, or gave a sign of life less than 15 minutes ago.
    """
    from quietcorpus.pipelines.storage import reachable, releasing
    from quietcorpus.pipelines.storage.stores import is_supported

    uri = absolute(output)
    if is_supported(uri):
        reachable.require([reachable.Need("output", uri, verb) for verb in ("list", "write")])
    return releasing.release_claim(uri, reason)


@process_restored()
def verify(release: Place, *, ledger: Place | None = None) -> Card:
    """Check every file of a release against its card, and refuse files that it does not list.

    Args:
        release: the release's place.
        ledger: a ledger that must count the release, as the card states.

    Raises:
        InputError: something differs from the card.
    """
    from quietcorpus.pipelines.card.verify import verify as check

    card = check(fspath(release))
    if ledger is not None:
        from quietcorpus.pipelines.ledger.check import verify_counted

        verify_counted(fspath(release), card, fspath(ledger))
    return card


@process_restored()
def reconstruct(
    release: Place,
    output: Place,
    *,
    factors: int = 30,
    engine: Literal["local", "ray"] = "local",
    progress: bool = False,
    on_publishing: Callable[[], None] | None = None,
) -> Card:
    """Make a better release from a bag of words that was made with `include: [bins]`.

    The result is a function of that release alone: it needs no corpus and no key, and costs
    nothing. A call that was interrupted can be repeated and continues where it stopped.

    Args:
        release: the release's place.
        output: the place for the new release.
        factors: the number of topics of the model; take more where there is less noise.
        engine: threads, or Ray: the cluster of RAY_ADDRESS, else one on this machine.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.
        on_publishing: called just before publication; afterwards the new release may exist.

    Raises:
        InputError: anything that a person can mend.
        StageError: a worker ended.
    """
    _one_of("engine", engine, ("local", "ray"))
    _flags(progress=progress)
    _whole(factors=factors)
    from quietcorpus.pipelines.reconstruct.reconstruct import reconstruct as make

    return make(
        fspath(release),
        absolute(output),
        factors,
        on_publishing or _nothing,
        backend=engine,
        progress=progress,
    )


@process_restored()
def audit(
    spec: Place | Mapping[str, Any] | Spec,
    *,
    output: Place | None = None,
    draws: int = 100_000,
    confidence: float = 0.9999,
) -> dict[str, Any]:
    """Compare the privacy loss of a spec's mechanisms with their guarantees. No corpus is read.

    Args:
        spec: a YAML file, its content, or a checked spec.
        output: an empty place for `audit.json`; None writes nothing.
        draws: the number of draws for each input, in the audits that draw.
        confidence: the probability that correct mechanisms pass all audits together.

    Returns:
        The content of `audit.json`: `passed`, and one of `audits` for each mechanism.

    Raises:
        InputError: anything that a person can mend.
    """
    _whole(100, 100_000_000, draws=draws)
    _between_0_and_1(confidence=confidence)
    from quietcorpus.pipelines.audit.audit import audit as job
    from quietcorpus.pipelines.spec.loading import as_spec

    place = None if output is None else absolute(output)
    return job(as_spec(spec), place, draws=draws, confidence=confidence)


@process_restored()
def evaluate(
    release: Place,
    *,
    against: Place,
    output: Place,
    spec: Place | None = None,
    text: str | None = None,
    id: str | None = None,
    label: str | None = None,
    user: str | None = None,
    documents: int = 5_000,
    draws: int | None = None,
    sweep: Mapping[str, Sequence[object]] | None = None,
    seed: int = 1,
    workers: int = 1,
    audits: bool = True,
    progress: bool = False,
) -> dict[str, Any]:
    """Measure the utility and the privacy loss of a release, against its private corpus.

    The report is not protected: keep it where the corpus is kept. A call that was interrupted can
    be repeated and continues where it stopped.

    Args:
        release: the release's place.
        against: the corpus: a path, a glob or a URI.
        output: a place for the report, inside the trust boundary.
        spec: the file that describes the release, for further draws, attacks and sweeps.
        text: the corpus's column of texts; by default the spec's, or `text`.
        id: the corpus's column of ids; by default the spec's, if there is one.
        label: the corpus's column of classes, for classifiers to learn.
        user: the corpus's column of authors, for attacks to infer.
        documents: the largest number of documents to sample.
        draws: the number of draws of every setting; the release is one draw of its own setting. By
            default 3 with a spec, and 1 without.
        sweep: values of keys of the mechanism, such as `{"epsilon": [1, 2, 5]}`; several keys make
            a grid.
        seed: the seed of the sample.
        workers: the number of processes on this machine, by Ray.
        audits: whether to audit the spec as well.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Returns:
        The content of `evaluation.json`.

    Raises:
        InputError: anything that a person can mend.
    """
    _flags(audits=audits, progress=progress)
    _whole(50, documents=documents)
    _whole(draws=draws, workers=workers)
    _whole(0, seed=seed)
    from quietcorpus.pipelines.evaluate import evaluate as job
    from quietcorpus.pipelines.evaluate.comparison import Comparison
    from quietcorpus.pipelines.evaluate.sweep import grid

    job.require()
    comparison = Comparison.of(
        absolute(release),
        absolute(against),
        None if spec is None else absolute(spec),
        text=text,
        id_=id,
        label=label,
        user=user,
        documents=documents,
        seed=seed,
    )
    effort = job.Effort.of(
        comparison, draws, grid(sweep or {}), workers, audit=audits, progress=progress
    )
    return job.evaluate(comparison, absolute(output), effort)


@process_restored()
def calibrate_words(
    index: Place,
    output: Place,
    *,
    mechanism: Literal["madlib", "brr"],
    epsilons: Sequence[Number],
    words: int | None = 10_000,
    draws: int = 1000,
    weights: Place | None = None,
    eta: Number = "0.05",
    unchanged_at_most: Number | None = None,
    set_size_at_least: int | None = None,
    share: Number = "0.95",
    confidence: float = 0.95,
    seed: int = 1,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    progress: bool = False,
    search: str | None = None,
) -> dict[str, Any]:
    """Measure the effect of a mechanism on an index's words, before anything is released.

    Args:
        index: a word index.
        output: an empty place for the results.
        mechanism: the mechanism to measure.
        epsilons: the grid of values, each per unit of distance.
        words: the number of words to measure; None for all.
        draws: the number of draws for each word and epsilon.
        weights: Parquet of term and weight, by which words are drawn; it must be public.
        eta: the share of a word's outputs that S_w may leave out: S_w holds 1 - eta of them.
        unchanged_at_most: solve for epsilon: N_w is at most this.
        set_size_at_least: solve for epsilon: S_w is at least this.
        share: the share of the words for which this must hold.
        confidence: the confidence of the solution.
        seed: equal seeds give equal numbers.
        engine: threads, or Ray.
        workers: the number of threads or processes here; None for one per processor.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.
        search: the engine that a release would use, as in `faiss-ivf:probes=32`; None for exact.

    Returns:
        The content of `calibration.json`.

    Raises:
        InputError: anything that a person can mend.
    """
    _one_of("mechanism", mechanism, ("madlib", "brr"))
    _one_of("engine", engine, ("local", "ray"))
    _flags(progress=progress)
    _whole(words=words, workers=workers)
    _whole(1, 1_000_000, draws=draws)
    _whole(2, set_size_at_least=set_size_at_least)
    _whole(0, seed=seed)
    _between_0_and_1(confidence=confidence)
    from quietcorpus.evaluation.demands import demanded
    from quietcorpus.indexes.search import EXACT
    from quietcorpus.pipelines.calibrate import words as job
    from quietcorpus.pipelines.calibrate.words_report import WordSettings
    from quietcorpus.transforms.artefacts.word_index import IndexSource
    from quietcorpus.transforms.privatizers.words import WordMechanism, parts_read

    grid, exact_eta, exact_share = _exact_numbers(epsilons), _exact(eta), _exact(share)
    unchanged = None if unchanged_at_most is None else _exact(unchanged_at_most)
    chosen = WordMechanism(mechanism)
    searching = EXACT if search is None else job.read_search("search", search)
    parts = parts_read(chosen, searching)
    opened = IndexSource.resolve("index", absolute(index)).open(*parts)
    given = None
    if weights is not None:
        given = job.read_weights("weights", fspath(weights), opened.vocabulary)
    settings = WordSettings(
        mechanism=chosen,
        epsilons=grid,
        words=words,
        draws=draws,
        eta=exact_eta,
        seed=seed,
        weights=given,
        demands=demanded(unchanged, set_size_at_least, exact_share),
        confidence=confidence,
        search=searching,
    )
    return job.calibrate(
        opened, absolute(output), settings, backend=engine, workers=workers, progress=progress
    )


@process_restored()
def calibrate_bags(
    source: Place | None = None,
    *,
    vocabulary: Place | None = None,
    histogram: Place | None = None,
    epsilons: Sequence[Number],
    bins: Sequence[int] = (100, 200, 400, 800, 1600),
    maps: Sequence[TriedMap] = ("frequency",),
    text: str = "text",
    documents: int | None = None,
    histogram_epsilon: Number = "0.5",
    runs: int = 5,
    seed: int = 1,
    progress: bool = False,
) -> Calibrated:
    """Find the map and number of bins that serve a budget best, for `reconstruct`.

    Args:
        source: public documents.
        vocabulary: the vocabulary of the planned release: text with a term a line, or Parquet.
        histogram: in place of both: a release whose vocabulary has weights.
        epsilons: the documents' epsilons, divided by N.
        bins: numbers of bins to try; those above the number of words are left out.
        maps: the maps to try; `none` has a bin for every term.
        text: the column of the text.
        documents: the number of documents that will be released; None for all there are. All of
            them, times the number of bins, must fit in memory.
        histogram_epsilon: the histogram's epsilon, also divided by N.
        runs: the number of runs, each with fresh noise.
        seed: the seed of the noise.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Raises:
        InputError: anything that a person can mend.
    """
    for name in maps:
        _one_of("maps", name, get_args(TriedMap))
    _flags(progress=progress)
    for number in bins:
        _whole(bins=number)
    _whole(documents=documents)
    _whole(2, runs=runs)
    _whole(0, seed=seed)
    from quietcorpus.indexes.compression import Method
    from quietcorpus.pipelines.calibrate import bags as job
    from quietcorpus.pipelines.calibrate.bag_documents import documents_of
    from quietcorpus.transforms.installed import require_installed

    require_installed("tomotopy", extra="evaluate")
    settings = job.SimulationSettings(
        epsilons=_exact_numbers(epsilons),
        bins=tuple(sorted(set(bins))),
        methods=[Method(name) for name in maps],
        histogram_epsilon=_exact(histogram_epsilon),
        runs=runs,
        seed=seed,
    )
    given = documents_of(
        None if source is None else absolute(source),
        None if vocabulary is None else absolute(vocabulary),
        None if histogram is None else fspath(histogram),
        text=text,
        documents=documents,
        seed=seed,
    )
    return job.calibrate(given, settings, progress=progress)


@process_restored()
def calibrate_sentences(
    candidates: Place,
    source: Place,
    *,
    epsilons: Sequence[Number],
    text: str = "text",
    encoder: str = "all-MiniLM-L6-v2",
    documents: int = 200,
    seed: int = 1,
) -> list[CalibratedUtility]:
    """Measure how well candidates represent public documents that they were not made of.

    Args:
        candidates: the candidates' place.
        source: public documents.
        epsilons: the epsilons of a sentence.
        text: the column of the text.
        encoder: the candidates' own: a folder, or the name, of a sentence-transformers model.
        documents: the number of documents to use.
        seed: the seed of the choice of documents.

    Returns:
        An exact expectation for every epsilon, utility and number of projections.

    Raises:
        InputError: anything that a person can mend.
    """
    _whole(documents=documents)
    _whole(0, seed=seed)
    from quietcorpus.pipelines.calibrate import sentences as job
    from quietcorpus.transforms.artefacts.candidates import CandidatesSource
    from quietcorpus.transforms.artefacts.encoder import EncoderSource
    from quietcorpus.transforms.reading.documents import Corpus

    return job.calibrate(
        CandidatesSource.resolve("candidates", absolute(candidates)),
        EncoderSource.resolve("encoder", encoder),
        Corpus(absolute(source), text),
        _exact_numbers(epsilons),
        documents=documents,
        seed=seed,
    )


@process_restored()
def build_index(
    source: Place,
    output: Place,
    *,
    provenance: Literal["public", "private"],
    guarantee: Place | None = None,
    bits: int = 256,
    only: Literal["codes"] | None = None,
    seed: int = 1,
    words: Place | None = None,
    search: str | None = None,
) -> IndexManifest:
    """Make a word index of word vectors, for `kind: words`.

    Args:
        source: word2vec text or binary, GloVe text, gensim KeyedVectors, NumPy's arrays, or FAISS's
            indexes Flat and IVF,Flat by Euclidean distance.
        output: an empty place for the index.
        provenance: whether the vectors were made from public data alone.
        guarantee: for private vectors: JSON with the guarantee under which they were made.
        bits: the length of a code; a multiple of 64.
        only: `codes` for an index without vectors, which is small and for the mechanism brr alone.
        seed: the seed of the codes' and lists' training.
        words: the words of a `.faiss` or `.npy` file, one a line; by default, the `.txt` beside it.
        search: inverted lists for the engine `faiss-ivf`, as in `ivf:lists=4096`.

    Raises:
        InputError: anything that a person can mend.
    """
    _one_of("provenance", provenance, ("public", "private"))
    _whole(0, seed=seed)
    if only is not None:
        _one_of("only", only, ("codes",))
    from quietcorpus.pipelines.artefacts import word_index as job

    return job.build(
        fspath(source),
        fspath(output),
        provenance=provenance,
        guarantee=None if guarantee is None else fspath(guarantee),
        bits=bits,
        seed=seed,
        only=only,
        words=None if words is None else fspath(words),
        search=search,
    )


@process_restored()
def search_report(
    index: Place,
    *,
    epsilons: Sequence[Number],
    output: Place | None = None,
    probes: Sequence[int] | None = None,
    queries: int = 2048,
    words: int = 64,
    draws: int = 256,
    seed: int = 1,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare the engines that find the words of noisy vectors: recall, speed, N_w and S_w.

    Args:
        index: a word index with vectors; with inverted lists, to see the engine `faiss-ivf`.
        epsilons: the grid of values, each per unit of distance.
        output: an empty place for the results, if they are to be kept.
        probes: the numbers of lists to search; None for some that are common.
        queries: the number of noisy vectors on which recall and speed are measured.
        words: the number of words whose N_w and S_w are estimated.
        draws: the number of draws for each of them.
        seed: equal seeds give equal numbers, except speeds.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Returns:
        The content of `search-report.json`.

    Raises:
        InputError: anything that a person can mend.
    """
    _flags(progress=progress)
    _whole(queries=queries, words=words)
    _whole(2, draws=draws)
    _whole(0, seed=seed)
    given = None if probes is None else tuple(probes)
    for number in given or ():
        _whole(probes=number)
    from quietcorpus.pipelines.calibrate import search_report as job
    from quietcorpus.transforms.artefacts.word_index import IndexSource

    settings = job.ReportSettings(_exact_numbers(epsilons), given, queries, words, draws, seed)
    place = None if output is None else absolute(output)
    source = IndexSource.resolve("index", absolute(index))
    opened = source.open("vectors")
    if "search" in opened.manifest.parts:
        opened = source.open("vectors", "search")
    return job.report(opened, place, settings, progress=progress)


@process_restored()
def build_candidates(
    source: Place,
    output: Place,
    *,
    provenance: Literal["public"],
    text: str = "text",
    encoder: str = "all-MiniLM-L6-v2",
    language: str = "en",
    candidates: int = 5_000,
    clusters: int = 50,
    projections: int = 100,
    least_sentences: int = 8,
    most_sentences: int = 64,
    seed: int = 1,
    progress: bool = False,
) -> CandidatesManifest:
    """Make candidates of public documents, for `kind: sentence-embeddings`, on Ray.

    Args:
        source: a file, a glob or a folder of Parquet, JSON Lines, CSV or text.
        output: an empty place for the candidates.
        provenance: of the documents and of the encoder's training data; it must be public.
        text: the column of the text.
        encoder: a folder, or the name, of a sentence-transformers model.
        language: the language of the text, as a code.
        candidates: the number of candidates.
        clusters: the number of clusters of the documents' content.
        projections: the number of directions along which releases may measure depth.
        least_sentences: the fewest sentences of a document that is used.
        most_sentences: the number of sentences used of a document, from its beginning.
        seed: the seed of all choices.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Raises:
        InputError: anything that a person can mend.
    """
    _flags(progress=progress)
    _whole(candidates=candidates, least_sentences=least_sentences)
    _whole(2, clusters=clusters)
    _whole(1, 1000, projections=projections, most_sentences=most_sentences)
    _whole(0, seed=seed)
    from quietcorpus.pipelines.artefacts import candidates as job

    return job.build(
        fspath(source),
        fspath(output),
        text=text,
        provenance=provenance,
        encoder=encoder,
        language=language,
        candidates=candidates,
        clusters=clusters,
        projections=projections,
        least_sentences=least_sentences,
        most_sentences=most_sentences,
        seed=seed,
        progress=progress,
    )


@process_restored()
def build_pool(
    source: Place,
    output: Place,
    *,
    provenance: Literal["public"],
    text: str = "text",
    encoder: str = "all-MiniLM-L6-v2",
    progress: bool = False,
) -> PoolManifest:
    """Make a pool of public texts, for `kind: public-texts`, in this process.

    Args:
        source: a file, a glob or a folder of Parquet, JSON Lines, CSV or text.
        output: an empty place for the pool.
        provenance: of the documents and of the encoder's training data; it must be public.
        text: the column of the text.
        encoder: a folder, or the name, of a sentence-transformers model, or `lsa`: one by the
            texts' own words, which the pool carries.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Raises:
        InputError: anything that a person can mend.
    """
    _flags(progress=progress)
    from quietcorpus.pipelines.artefacts import pool as job

    return job.build(
        fspath(source),
        fspath(output),
        text=text,
        provenance=provenance,
        encoder=encoder,
        progress=progress,
    )


def _nothing() -> None:
    """Do nothing."""


def _exact(number: Number) -> Fraction:
    """Return the number as it is written; raise InputError if it is no number above zero."""
    try:
        exact = Fraction(repr(number) if isinstance(number, float) else number)
    except (ValueError, OverflowError):
        raise InputError(f"{number!r} is not a number") from None
    if exact <= 0:
        raise InputError(f"{number!r} is not above zero")
    return exact


def _exact_numbers(numbers: Sequence[Number]) -> tuple[Fraction, ...]:
    """Return numbers as `_exact` does, ascending, each once."""
    return tuple(sorted({_exact(number) for number in numbers}))


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"{name}: {value!r} is not known; give one of {', '.join(allowed)}")


def _flags(**given: object) -> None:
    """Raise InputError for an argument that is neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise InputError(f"{name}: {value!r} is neither True nor False")


def _whole(least: int = 1, most: int | None = None, /, **given: object) -> None:
    """Raise InputError for an argument that is no whole number in this range; None is left alone.

    The ranges are those of the command line.
    """
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, SupportsIndex) or isinstance(value, bool):
            raise InputError(f"{name}: {value!r} is not a whole number")
        number = whole_of(value)
        if number < least:
            said = "not above zero" if least == 1 else f"below {least}"
            raise InputError(f"{name}: {number} is {said}")
        if most is not None and number > most:
            raise InputError(f"{name}: {number} is above {most}")


def _above_zero(**given: float | None) -> None:
    """Raise InputError for an argument that is no number above zero; None is left alone."""
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
            raise InputError(f"{name}: {value!r} is not a number above zero")


def _between_0_and_1(**given: float) -> None:
    for name, value in given.items():
        if not 0 < value < 1:
            raise InputError(f"{name}: {value!r} is not between 0 and 1")
