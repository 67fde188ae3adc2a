"""The sources that are said to be public: artefacts that hold texts, and those that hold none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hashed_sentences import SIZE, some_candidates
from public_pools import LETTERS
from small_specs import spec_of

from quietcorpus.indexes.documents import candidates, pool
from quietcorpus.indexes.documents.pool import PoolManifest
from quietcorpus.pipelines.provenance.provenance import (
    PublicSource,
    named_in,
    of_artefact,
    of_files,
)
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.transforms.errors import InputError


def test_a_pool_s_texts_are_compared(tmp_path: Path) -> None:
    texts = LETTERS.texts.to_pylist()
    manifest = PoolManifest(
        provenance="public",
        guarantee=None,
        source={"pattern": "p", "documents": len(texts)},
        encoder={"name": "letters", "sha256": "0", "dimensions": 4},
        texts=len(texts),
        left_out={"empty": 0, "equal": 0, "near": 0},
        near=None,
        builder="test",
    )
    pool.save(str(tmp_path), replace(LETTERS, manifest=manifest))
    mechanism = {"kind": "public-texts", "pool": str(tmp_path), "epsilon": 1, "delta": 1e-6}
    spec = Spec.model_validate(spec_of(mechanism=mechanism))
    (source,) = named_in(spec)
    assert source == PublicSource("pool", str(tmp_path))
    found = of_artefact(source)
    assert found is not None
    assert found.texts.to_pylist() == texts
    assert found.rows.tolist() == list(range(len(texts)))


@pytest.mark.parametrize("kept", [True, False])
def test_the_texts_of_candidates_are_compared_if_they_are_kept(tmp_path: Path, kept: bool) -> None:
    made = some_candidates()
    assert made.documents is not None
    if kept:
        numbers = pa.array(range(SIZE), pa.int32())
        made = replace(
            made,
            manifest=replace(made.manifest, source={**made.manifest.source, "text": True}),
            documents=made.documents.add_column(0, "candidate", numbers),
        )
    else:
        made = replace(made, documents=None)
    candidates.save(str(tmp_path), made)
    found = of_artefact(PublicSource("candidates", str(tmp_path)))
    assert (found is not None) == kept
    if found is not None:
        assert found.texts.to_pylist() == [f"text {number}" for number in range(SIZE)]


def test_an_artefact_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^pool: .* is not a pool"):
        of_artefact(PublicSource("pool", str(tmp_path)))


def test_files_of_every_format_are_read_with_the_places_of_their_texts(tmp_path: Path) -> None:
    # Kills: rows that are counted without the unreadable ones; a column that is not asked for.
    (tmp_path / "a.jsonl").write_text('{"body": "one"}\n{"body": null}\n{"body": "two"}\n')
    (tmp_path / "b.csv").write_text("body\nthree\n")
    (tmp_path / "c.txt").write_text("four\n")
    found = list(of_files([f"{tmp_path}/*.[jc]s*", f"{tmp_path}/c.txt"], "body"))
    places = [(Path(one.file).name, one.rows.tolist(), one.texts.to_pylist()) for one in found]
    assert places == [
        ("a.jsonl", [0, 2], ["one", "two"]),
        ("b.csv", [0], ["three"]),
        ("c.txt", [0], ["four"]),
    ]
