"""Copies of the text that begin after the launcher's sample: every kind of documents refuses them.

The workers compare kept columns with the text; where an earlier pass keeps terms, that pass does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_releases import HERE, KINDS, PUBLIC, TEXTS, fixed, publish

from quietcorpus.pipelines.jobs import notices
from quietcorpus.pipelines.jobs.notices import require_compared
from quietcorpus.transforms import staged
from quietcorpus.transforms.errors import InputError, StageError
from quietcorpus.transforms.reading.copies import Copies

NAMES: dict[str, dict[str, Any]] = {
    "bag-of-words": KINDS["bag-of-words"],
    "bag-of-words, one pass": {
        **{"precision": 3, "epsilon": 4, "vocabulary": PUBLIC, "compression": {"method": "none"}},
    },
    "words": KINDS["words"],
    "sentence-embeddings": KINDS["sentence-embeddings"],
}
SAMPLE = 60


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with fixed(tmp_path_factory.mktemp("late")):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_copies_that_begin_late_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: terms that are kept for the next pass without the copies in their documents; a kind
    # whose workers compare nothing.
    monkeypatch.setattr(notices, "SAMPLE", SAMPLE)
    monkeypatch.setattr(staged, "_FREE_BYTES", 0)
    notes = [text if n >= SAMPLE else "loan" for n, text in enumerate(TEXTS)]
    pq.write_table(pa.table({"text": TEXTS, "note": notes}), "corpus.parquet")
    source = {"path": f"{HERE}/corpus.parquet", "keep": ["note"]}
    with pytest.raises(InputError, match=r"^input\.keep: 'note' repeats the text"):
        publish(name, source, NAMES)


def test_a_run_that_compared_nothing_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: counts of copies that nothing asks for: where they are lost, there are no copies.
    monkeypatch.setattr(Copies, "of", lambda *_: Copies())
    pq.write_table(pa.table({"text": TEXTS, "note": ["loan"] * len(TEXTS)}), "corpus.parquet")
    source = {"path": f"{HERE}/corpus.parquet", "keep": ["note"]}
    with pytest.raises(StageError, match="'note' was compared with the text in 0 documents of 120"):
        publish("bag-of-words, one pass", source, NAMES)


@pytest.mark.parametrize("found", [{}, {"note": 9}, {"note": 11}, {"other": 10}], ids=str)
def test_every_kept_column_of_all_documents_is_compared(found: dict[str, int]) -> None:
    # Kills: a pass that compares nothing, or not all, and publishes what it has not seen.
    require_compared(Copies(documents={"note": 10}), ["note"], 10)
    require_compared(Copies(), [], 10)
    with pytest.raises(StageError, match=r"'note' was compared with the text in \d+ documents of"):
        require_compared(Copies(documents=found), ["note"], 10)
