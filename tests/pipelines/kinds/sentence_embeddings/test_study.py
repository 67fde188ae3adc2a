"""The study of document embeddings: attackers on encoded words, of more documents than they afford.

Rows of invented documents stand for encoded ones: noise over the number of words around a mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quietcorpus.evaluation.attacks.linkage import by_simulations, linked
from quietcorpus.evaluation.results import Observation
from quietcorpus.pipelines.evaluate.corpus import Sample
from quietcorpus.pipelines.kinds.sentence_embeddings import study as module
from quietcorpus.pipelines.kinds.sentence_embeddings.study import SentencesStudy


@dataclass(frozen=True)
class Runs:
    """A law of encoded words, as far as its runs count."""

    most_runs: int = 100


LAW: Any = Runs()
AMONG = module._AMONG_FEW


class Invented(SentencesStudy):
    """Documents of 20 to 220 words in 24 dimensions; `made` counts the rows that are released."""

    def __init__(self, count: int, kept: npt.NDArray[np.int64] | None = None) -> None:
        self.generator = np.random.default_rng(count)
        self.means = 0.03 * self.generator.normal(size=(count, 24))
        self.made = np.zeros(count, np.int64)
        lengths = self.generator.integers(20, 220, count)
        documents: Any = SimpleNamespace(rows=np.arange(count))
        self._sample = Sample(documents, count, *[None] * 5, kept)
        self._words = SimpleNamespace(lengths=lengths)
        own: Any = SimpleNamespace(means=self.means)
        self._originals = lambda _: own
        self._simulated = cache(self._simulate)
        self._simulated_few = cache(self._simulate_few)

    def _released_often(self, law: Any, numbers: npt.NDArray[np.int64], count: int) -> Any:
        self.made[numbers] += count
        spread = np.geomspace(4, 0.2, 24) / np.sqrt(self._words.lengths[numbers])[:, None]
        noise = self.generator.normal(size=(count, len(numbers), 24))
        return self.means[numbers] + noise * spread


def found(study: Invented, released: Any) -> dict[tuple[str, str], Observation]:
    seen = study._linked_among_few(LAW, released, np.random.default_rng(1))
    return {(one.subject, one.group): one for one in seen}


def test_few_documents_are_released_as_often_as_is_worth_it() -> None:
    # Kills: six releases of documents whose rows more of them would link; a control that is in
    # order; more releases of all documents, which are encoded for minutes.
    study = Invented(2_500)
    (released,) = study._released_often(LAW, np.arange(2_500), 1)
    few, simulated = study._simulate_few(LAW)
    assert simulated.shape == (40, len(few), 24)
    assert 200 < len(few) <= 400
    assert study._runs(LAW)[few].sum() * 40 <= 80_000
    assert np.bincount(study.made).nonzero()[0].tolist() == [7, 41]
    seen = found(study, released)
    both = [seen["release", AMONG], seen["release", f"{AMONG}, by all rows together"]]
    own = by_simulations(
        released[few],
        simulated[:6],
        study.means[few],
        study._words.lengths[few],
    )
    before = linked(own, len(few)).mean()
    assert both[0].value > before + 0.05
    assert both[1].value >= both[0].value
    for one in ("", ", by all rows together"):
        assert seen["noise", AMONG + one].value * len(few) <= 10  # Pr[Poisson(1) > 10] is 1e-8
        assert seen["noise", AMONG + one].tried == len(few)


def test_kept_columns_rule_out_rows_among_few_documents() -> None:
    # Kills: the columns of other documents, or none.
    kept = np.arange(2_500)[:, None] // 2
    study, alone = Invented(2_500, kept), Invented(2_500)
    (released,) = study._released_often(LAW, np.arange(2_500), 1)
    assert found(study, released)["release", AMONG].value > 0.9
    assert found(alone, released)["release", AMONG].value < 0.9


@pytest.mark.parametrize("count", [60, 1])
def test_where_all_documents_are_released_as_often_there_are_no_others(count: int) -> None:
    # Kills: the same figures twice; a document alone, which cannot be mistaken.
    study = Invented(count)
    assert len(study._simulated(LAW)) == 40
    assert found(study, study.means) == {}
