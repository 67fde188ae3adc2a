"""Public documents: a sample by sentences, and the rows that name it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from quietcorpus.pipelines.prepare.public_documents import PublicDocuments, chosen
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus


def sample(folder: Path, **columns: object) -> PublicDocuments:
    """Thirty of those of a hundred documents that have two sentences or more."""
    lines = [
        {"text": f"This is {i}. " * (1 + i % 3), "key": f"k{i}", "label": i % 2} for i in range(100)
    ]
    path = folder / "public.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    generator = np.random.default_rng(1)
    return chosen(Corpus(str(path), **columns), "en", 2, 3, 30, generator)  # type: ignore[arg-type]


def test_each_documents_row_is_its_own(tmp_path: Path) -> None:
    # Kills: rows in the order of reading, those of a batch in place of a document's, those of
    # documents that were left out.
    found = sample(tmp_path, id="key", keep=("label",))
    starts = found.offsets[:-1].tolist()
    numbers = [int(found.sentences[start].split()[2].strip(".")) for start in starts]
    rows = [{"label": str(number % 2), "key": f"k{number}"} for number in numbers]
    assert found.columns.to_pylist() == rows
    assert len(set(numbers)) == 30
    assert numbers != sorted(numbers)


def test_names_change_no_choice(tmp_path: Path) -> None:
    plain = sample(tmp_path)
    named = sample(tmp_path, id="key", keep=("label",))
    assert plain.sentences == named.sentences
    assert plain.columns.column_names == []


@pytest.mark.parametrize(("key", "given"), [("id", {"id": "no"}), ("keep", {"keep": ("no",)})])
def test_a_column_that_is_not_there(tmp_path: Path, key: str, given: dict[str, object]) -> None:
    # Kills: the name of a spec's key, where there is no spec.
    with pytest.raises(InputError, match=f"^{key}: .* has no column 'no'"):
        sample(tmp_path, **given)
