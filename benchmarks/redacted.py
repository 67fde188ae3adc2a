"""Attackers of texts without the names that a recogniser found, by the attacks of `evaluate`.

Redaction is what many do in place of a mechanism. It promises nothing, and the attackers on text by
Madlib and BRR say what it gives. The recogniser is compromise, an npm package with rules and lists
of its own, which fetches nothing when it runs.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from quietcorpus.evaluation.attacks.linkage import bag_cosines
from quietcorpus.evaluation.features import counted
from quietcorpus.evaluation.results import Observation
from quietcorpus.pipelines.evaluate.corpus import Columns, sample
from quietcorpus.pipelines.evaluate.study import (
    Views,
    attacks,
    by_words,
    facts_by_words,
    judged_by_words,
    known_sentences,
)
from quietcorpus.transforms.artefacts.local_index import LocalIndex

SCRIPT = Path(__file__).with_name("redact.mjs")
SUBJECT = "redacted"


def redacted(texts: list[str], packages: Path) -> list[str]:
    """Return texts without the names of people, places and organisations.

    `packages` is the folder in which npm has installed compromise.
    """
    run = subprocess.run(
        ["node", SCRIPT],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=packages,
        check=True,
    )
    found: list[str] = json.loads(run.stdout)
    return found


def figures(private: Path, index: Path, packages: Path, draws: int) -> list[dict[str, Any]]:
    """Return the attackers' figures, over so many draws of their halves and folds."""
    found = sample(str(private), Columns(id="id", label="label"), 1_000_000, 1)
    opened = LocalIndex.resolve(str(index)).open()
    tokenizer = opened.tokenizer.installed()

    def counts(texts: pa.Array) -> Any:
        offsets, words = opened.vocabulary.look_up(tokenizer.tokenize(texts))
        return counted(offsets, words, len(opened.vocabulary))

    texts = found.documents.texts
    known = {
        way: counts(pa.array(some, pa.large_string()))
        for way, some in known_sentences(found).items()
    }
    originals = counts(texts)
    left = counts(pa.array(redacted(texts.to_pylist(), packages), pa.large_string()))
    # A redacted text has another length, of which the attacker on words and length makes nothing.
    scores = {"by words and length": bag_cosines(left, originals)}
    views = Views(originals, left, scores, facts_by_words(known, originals, left))
    assert found.labels is not None

    def observed(number: int) -> Iterator[Observation]:
        kept = originals.minimum(left).sum() / originals.sum()
        yield Observation("unchanged", SUBJECT, float(kept))
        predicted = by_words(found.labels, left, originals, number)
        yield from judged_by_words(found.labels, predicted, SUBJECT)
        yield from attacks(found, views, SUBJECT, np.random.default_rng([number, 1]))

    values = defaultdict(list)
    for number in range(draws):
        for one in observed(number):
            values[one.measure, one.group].append(one.value)
    return [over_draws(*key, own) for key, own in values.items()]


def over_draws(measure: str, group: str, values: list[float]) -> dict[str, Any]:
    """Return a figure as `evaluate` writes it: the mean with its 95 % interval (Student's t)."""
    low = high = None
    if len(values) > 1 and np.ptp(values) > 0:
        half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
        low, high = np.mean(values) - half, np.mean(values) + half
    told = {"measure": measure, "group": group, "subject": SUBJECT, "setting": {}}
    return told | {"mean": float(np.mean(values)), "low": low, "high": high}
