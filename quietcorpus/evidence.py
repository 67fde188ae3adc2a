"""Evidence on a release: audits, the provenance of public texts, utility and loss in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval

from quietcorpus.transforms.errors import InputError

from .arguments import Confidence, Count, Seed, checked
from .places import Place, absolute, process_restored

if TYPE_CHECKING:
    from quietcorpus.pipelines.schema.spec import Spec


@checked
@process_restored()
def audit(
    spec: Place | Mapping[str, Any] | Spec,
    *,
    output: Place | None = None,
    draws: Annotated[int, Interval(ge=100, le=100_000_000)] = 100_000,
    confidence: Confidence = 0.9999,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare the privacy loss of a spec's mechanisms with their guarantees. No corpus is read.

    Args:
        spec: a YAML file, its content, or a checked spec.
        output: an empty place for audit.json; by default, nothing is written.
        draws: the number of draws for each input, in the audits that draw.
        confidence: the probability that correct mechanisms pass all audits together.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Returns:
        The content of `audit.json`: `passed`, and one of `audits` for each mechanism.

    Raises:
        InputError: anything that a person can fix.
    """
    from quietcorpus.pipelines.audit.audit import audit as job
    from quietcorpus.pipelines.schema.loading import as_spec
    from quietcorpus.pipelines.terminal.progress import Steps

    place = None if output is None else absolute(output)
    return job(
        as_spec(spec), place, draws=draws, confidence=confidence, steps=Steps(1, bar=progress)
    )


@checked
@process_restored()
def canaries(
    spec: Place | Mapping[str, Any] | Spec,
    *,
    output: Place | None = None,
    canaries: Annotated[int, Interval(ge=16, le=1_000_000)] = 1_000,
    runs: Annotated[int, Interval(ge=1, le=100)] = 3,
    confidence: Confidence = 0.9999,
    workers: Count = 1,
    beam_options: Iterable[str] = (),
    work: Place | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Release copies of a spec's corpus in which coins hide canaries, and guess the coins.

    This publishes nothing, asks no ledger, and deletes the copy and its releases.

    Args:
        spec: a YAML file, its content, or a checked spec.
        output: an empty place for canaries.json; by default, nothing is written.
        canaries: the number of canaries in each run.
        runs: the number of runs, each a whole release.
        confidence: the probability, at least, that a release which keeps its promise passes.
        workers: the number of processes on this machine.
        beam_options: Beam's own options, for any other engine, as for `release`.
        work: a private place for the copy, which workers reach; a temporary folder by default.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Returns:
        The content of `canaries.json`: `verdict`, which is `passed`, `failed` or `cannot tell`, and
        the figures that it comes from.

    Raises:
        InputError: anything that a person can fix.
        StageError: a failure of a worker or an engine.
    """
    from quietcorpus.pipelines.canaries import canaries as job
    from quietcorpus.pipelines.schema.loading import as_spec

    effort = job.Effort(
        canaries,
        runs,
        confidence,
        tuple(beam_options),
        workers,
        None if work is None else absolute(work),
    )
    place = None if output is None else absolute(output)
    return job.audit(as_spec(spec), effort, place, progress=progress)


@checked
@process_restored()
def check_provenance(
    spec: Place | Mapping[str, Any] | Spec,
    *,
    report: Place,
    public: Sequence[Place] = (),
    text: str = "text",
    accept: Annotated[int, Interval(ge=0)] = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare a spec's corpus with the texts that its release takes to be public.

    The report and the result are made from the private corpus, without protection. This compares
    the texts of a pool, and of candidates that keep theirs; for other artefacts, give the files
    that they were made from.

    Args:
        spec: a YAML file, its content, or a checked spec.
        report: a path on this machine for the report, which only its owner can read.
        public: a file, a glob or a saved dataset of further texts that are said to be public.
        text: the column of the texts of `public`.
        accept: the number of texts that may be found in the corpus.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Returns:
        The content of the report: `passed`, figures on all `sources`, and the `texts` found.

    Raises:
        InputError: anything that a person can fix.
        StageError: the corpus changed while it was read, or a store does not answer.
    """
    from quietcorpus.pipelines.provenance import provenance as job
    from quietcorpus.pipelines.schema.loading import as_spec
    from quietcorpus.pipelines.terminal.progress import Steps

    if isinstance(public, str):
        raise InputError("public: give a list of places")
    return job.check(
        as_spec(spec),
        absolute(report),
        public=[absolute(place) for place in public],
        text=text,
        accept=accept,
        steps=Steps(2, bar=progress),
    )


@checked
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
    target: str | None = None,
    public_vectors: Place | None = None,
    public_text: Place | None = None,
    reference_text: Place | None = None,
    neighbours_of: Sequence[str] | None = None,
    documents: Annotated[int, Interval(ge=50)] = 5_000,
    draws: Count | None = None,
    sweep: Mapping[str, Sequence[object]] | None = None,
    compare: Place | None = None,
    seed: Seed = 1,
    workers: Count = 1,
    audits: bool = True,
    topics: bool = False,
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
        text: the corpus's column of texts; by default the spec's, or "text".
        id: the corpus's column of ids; by default the spec's, if there is one.
        label: the corpus's column of classes, for classifiers to learn.
        user: the corpus's column of authors, for attacks to infer.
        target: the corpus's column of numbers, for regressions on word vectors.
        public_vectors: public word vectors (GloVe's or word2vec's text), which are used alone, and
            beside a release's own and beside vectors that are learnt without privacy.
        public_text: public texts like the corpus's (a path, a glob or a URI, with the same column),
            from which an attacker on words learns how frequent words are, and which follow which.
        reference_text: the same documents as another tool left them, redacted, say (a path, a glob
            or a URI, with the columns of texts and ids), to measure beside a release of words.
        neighbours_of: words of a release of word vectors whose nearest ones are listed.
        documents: the largest number of documents to sample.
        draws: the number of draws of every setting; the release is one draw of its own setting. By
            default 3 with a spec, and 1 without.
        sweep: values of keys of the mechanism, such as `{"epsilon": [1, 2, 5]}`; several keys make
            a grid.
        compare: a YAML file of named variants of the mechanism, such as whole `compression` blocks;
            each is measured, under every combination of `sweep`.
        seed: the seed of the sample.
        workers: the number of processes on this machine, by Ray.
        audits: whether to audit the spec as well.
        topics: write the release's topics beside the corpus's own, in words, to
            topics.json in the same place (only for bags of words): as private as the corpus.
        progress: show a bar, on standard error or in a notebook; otherwise progress is logged.

    Returns:
        The content of `evaluation.json`.

    Raises:
        InputError: anything that a person can fix.
    """
    if isinstance(neighbours_of, str):
        raise InputError("neighbours_of: give a list of words")
    from quietcorpus.pipelines.evaluate import evaluate as job
    from quietcorpus.pipelines.evaluate.comparison import Comparison
    from quietcorpus.pipelines.evaluate.sweep import grid, named

    job.require()
    compared = {} if compare is None else named(absolute(compare))
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
        compared=compared,
        target=target,
        public_vectors=None if public_vectors is None else absolute(public_vectors),
        neighbours_of=tuple(neighbours_of or ()),
        public_text=None if public_text is None else absolute(public_text),
        reference_text=None if reference_text is None else absolute(reference_text),
    )
    effort = job.Effort.of(
        comparison,
        draws,
        grid(sweep or {}, compared),
        workers,
        audit=audits,
        topics=topics,
        progress=progress,
    )
    return job.evaluate(comparison, absolute(output), effort)
