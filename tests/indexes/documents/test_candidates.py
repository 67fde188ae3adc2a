"""Candidates on disk: what is read is what was written, or it is refused with a reason."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from manifests import PRIVATE, cover_up, digest_of, edit
from small_candidates import IMPOSSIBLE, SAVED, SIZE, manifest, parts, refusal, some_candidates

from quietcorpus.indexes.documents.candidates import (
    DOCUMENTS,
    LARGEST_PROJECTION,
    CandidatesManifest,
    open_candidates,
    read_names,
    save,
)
from quietcorpus.indexes.documents.recoder import LARGEST
from quietcorpus.indexes.folder import ArtefactError


def test_what_was_saved_is_opened(tmp_path: Path) -> None:
    """Kills: arrays or layers that are mixed up, cut or cast; a manifest that loses a value."""
    for number, made in enumerate(
        [some_candidates(), some_candidates(manifest=manifest(**PRIVATE))]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        saved = save(str(folder), made)
        found = open_candidates(str(folder), digest_of(folder))
        assert found.manifest == saved == replace(made.manifest, files=saved.files)
        assert [file["path"] for file in saved.files] == SAVED
        assert sorted(path.name for path in folder.iterdir()) == sorted([*SAVED, "manifest.json"])
        for before, after in zip(parts(made), parts(found), strict=True):
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)


def test_names_are_saved_beside_the_arrays(tmp_path: Path) -> None:
    """Kills: names in another order; a version that says nothing of them; names no digest is of."""
    assert read_names("nowhere", manifest()) is None
    table = pa.table({"candidate": pa.array(range(SIZE), pa.int32()), "id": [*"vwxyz"]})
    saved = save(str(tmp_path), some_candidates(documents=table))
    assert (saved.version, saved.files[-1]["path"]) == (4, DOCUMENTS)
    assert saved.lines()[-1] == "names         in documents.parquet"
    assert open_candidates(str(tmp_path)).manifest == saved
    assert read_names(str(tmp_path), saved).equals(table)
    for version in (1, 2, 3):
        edit(tmp_path, lambda m, v=version: m.update(version=v))
        assert refusal(tmp_path) == IMPOSSIBLE
    edit(tmp_path, lambda m: m.update(version=4))
    content = (tmp_path / DOCUMENTS).read_bytes()
    for spoilt_file in (content[:-1], b"PAR1" + content[4:], b""):
        (tmp_path / DOCUMENTS).write_bytes(spoilt_file + b"x")
        assert refusal(tmp_path).startswith("is damaged: documents.parquet is not the file that")


def test_texts_are_opened(tmp_path: Path) -> None:
    """Kills: candidates that promise texts and have none, or lack one."""
    numbers = pa.array(range(SIZE), pa.int32())
    texts = [f"text {number}" for number in range(SIZE)]
    promised = manifest(source={"pattern": "p", "documents": 9, "text": True})
    for number, (column, fits) in enumerate(
        [
            (pa.array(texts, pa.large_string()), True),
            (pa.array([*texts[1:], None], pa.large_string()), False),
            (numbers, False),
            (None, False),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        named = pa.table({"candidate": numbers} | ({} if column is None else {"text": column}))
        save(str(folder), some_candidates(manifest=promised, documents=named))
        if fits:
            assert promised.has_text
            assert open_candidates(str(folder)).documents.equals(named)
        else:
            assert refusal(folder) == "has a documents.parquet without the texts; build it again"
    assert not manifest().has_text


@pytest.mark.parametrize(
    "table",
    [
        {"candidate": [*range(SIZE - 1)]},
        {"candidate": [*range(SIZE)][::-1]},
        {"candidate": [None] * SIZE},
        {"id": [*range(SIZE)]},
        None,
    ],
)
def test_names_of_other_candidates(tmp_path: Path, table: dict[str, Any] | None) -> None:
    """Kills: names that are taken as they come, for candidates that they are not of."""
    own = {"candidate": [*range(SIZE)]}
    save(str(tmp_path), some_candidates(documents=pa.table(own)))
    sink = io.BytesIO(b"no Parquet")
    if table is not None:
        pq.write_table(pa.table(table), sink)
    cover_up(tmp_path, DOCUMENTS, sink.getvalue())
    saved = CandidatesManifest.read(str(tmp_path))
    with pytest.raises(ArtefactError, match="that does not name its candidates; build it again"):
        read_names(str(tmp_path), saved)


def test_arrays_are_saved_in_any_layout(tmp_path: Path) -> None:
    """Kills: arrays that are written as they lie in memory, transposed or strided."""
    made = some_candidates()
    changed = replace(
        made,
        embeddings=np.repeat(made.embeddings, 2, axis=0)[::2],
        recoded=np.asfortranarray(made.recoded),
    )
    save(str(tmp_path), changed)
    for before, after in zip(parts(made), parts(open_candidates(str(tmp_path))), strict=True):
        np.testing.assert_array_equal(before, after)


def test_values_at_the_edge_are_candidates(tmp_path: Path) -> None:
    """Kills: < for <= where whole numbers or cosines are checked."""
    made = some_candidates(manifest=manifest(cosines=(-1.0, 1.0)))
    made.projections[0, :2] = LARGEST_PROJECTION, -LARGEST_PROJECTION
    made.recoded[-1, :2] = LARGEST, -LARGEST
    made.box[1, 0] = np.nextafter(0, 1)
    save(str(tmp_path), made)
    assert open_candidates(str(tmp_path)).manifest.cosines == (-1.0, 1.0)


def test_it_says_what_is_in_it() -> None:
    """Kills: epochs, shares and quantiles of one another."""
    shown = manifest().lines()
    assert shown[0] == "documents     5 candidates of 60 used"
    assert shown[1] == "encoder       all-MiniLM-L6-v2, 6 dimensions, sha256 000000000000"
    assert shown[2] == "clusters      4 of 9 to 20 documents, silhouette 0.125"
    assert shown[3].endswith("documents: 1: 3.000 25%, 2: 2.500 50%, 3: 2.000 75%")
    assert "recoded: the deepest candidate at 0.375 of a document's sent" in shown[4]
    assert "1.5 candidates at 0.125 or more" in shown[4]
    assert shown[5] == "similarity    cosines from -0.250 to 0.750 count"
