"""A comparison of a corpus with the texts that its releases take for public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.evaluation.overlap import Pairs, PublicTexts
from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.in_turn import in_turn
from quietcorpus.transforms.reading.documents import Corpus, Documents, Plan
from quietcorpus.transforms.reading.sources import plan, read, require_unchanged

from ..runners.parallel import processors, threads
from ..schema.spec import Spec
from ..terminal.progress import Display, Steps
from . import report as reports
from .report import Tally
from .sources import (
    PublicBatch,
    PublicSource,
    named_in,
    of_artefact,
    of_files,
)

_AHEAD = 2  # batches that wait for each thread


def check(
    spec: Spec,
    report: str,
    *,
    public: Sequence[str],
    text: str,
    accept: int,
    steps: Steps,
) -> dict[str, Any]:
    """Compare the corpus of a spec with its declared public sources; write a private report.

    Documents are read once, as a release reads them, and compared by a thread for each processor.

    Args:
        spec: the spec, with the corpus and artefacts of the release.
        report: an absolute path for the report, which only its owner can read.
        public: further files, globs or saved datasets, such as those of which artefacts were made.
        text: their column of texts.
        accept: the number of texts that may be found in the corpus.
        steps: the two steps of the command.

    Returns:
        The content of the report.

    Raises:
        InputError: anything that a person can fix; no report is written then.
        StageError: the corpus changed meanwhile; no report is written then.
    """
    reports.check_place(report, spec.output)
    with steps.step("reading public texts"):
        batches, not_compared = _public(spec, public, text)
        texts = PublicTexts([batch.texts for batch in batches])
    corpus = replace(spec.corpus, id=None, keep=(), also=())
    planned = plan(corpus)
    tally, counts = Tally(len(texts)), {"documents": 0, "unreadable": 0}
    with steps.step("comparing documents", planned.documents, "documents") as display:
        _compare(texts, _documents(corpus, planned, counts), tally, display)
    require_unchanged(corpus, planned)
    made = reports.content(
        spec.release,
        **counts,
        accepted=accept,
        batches=batches,
        short=texts.short,
        tally=tally,
        not_compared=not_compared,
    )
    reports.write(report, made)
    return made


def _public(
    spec: Spec, public: Sequence[str], text: str
) -> tuple[list[PublicBatch], list[PublicSource]]:
    """Return the public texts, and the artefacts that hold none; raises InputError for no text."""
    named = named_in(spec)
    found = [of_artefact(source) for source in named]
    batches = [batch for batch in found if batch is not None and len(batch.rows)]
    batches += of_files(public, text)
    if not batches:
        raise InputError(
            "public: nothing that the spec names holds texts; give the files that its artefacts "
            "were made of"
        )
    return batches, [source for source, own in zip(named, found, strict=True) if own is None]


def _documents(corpus: Corpus, planned: Plan, counts: dict[str, int]) -> Iterator[Documents]:
    """Read the corpus, batch by batch, and count its records."""
    for split in planned.splits:
        for documents in read(split, corpus):
            counts["documents"] += len(documents.rows)
            counts["unreadable"] += len(documents.rejects)
            yield documents


def _compare(
    texts: PublicTexts, documents: Iterator[Documents], tally: Tally, display: Display
) -> None:
    """Add up what batches of documents find, while others are read and compared."""

    def compare(given: tuple[Documents, npt.NDArray[np.bool_]]) -> tuple[Pairs, int]:
        batch, settled = given
        return texts.compare(batch.texts, settled), len(batch.rows)

    count = processors()
    with threads(count) as pool:
        given = ((batch, tally.settled) for batch in documents)
        for pairs, size in in_turn(pool, compare, given, _AHEAD * count + 1):
            for numbers, counts in ((pairs.equal, tally.equal), (pairs.near, tally.near)):
                np.add.at(counts, numbers, 1)
            display.advance(size)


def lines(content: Mapping[str, Any], report: str) -> Iterator[str]:
    """Yield lines for a terminal; none tells anything of the corpus but its number of documents."""
    texts = sum(source["texts"] for source in content["sources"])
    short = sum(source["short"] for source in content["sources"])
    yield f"compared      {texts:,} public texts with {content['documents']:,} documents"
    if short:
        yield (
            f"short         {short:,} texts have fewer than {content['rule']['least_words']} "
            "words: only their equals are sought, and do not count"
        )
    for source in content["not_compared"]:
        yield (
            f"not compared  {source['key']} {source['place']} holds no texts; give those that it "
            "was made of with --public"
        )
    yield f"report        {report} (private: keep it where the corpus is)"


def refuse(content: Mapping[str, Any]) -> None:
    """Raise StageError if more texts were found than are accepted."""
    if not content["passed"]:
        raise StageError(
            f"provenance: more public texts than the {content['rule']['accepted']} that are "
            "accepted are in the corpus, as the report says: release nothing that is made of them"
        )
