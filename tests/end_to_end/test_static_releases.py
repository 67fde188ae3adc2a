"""Releases by a static encoder: the same bytes on every processor and in every batch."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from instruction_sets import printed_by_levels
from machine import MASTER_KEY
from sentence_releases import LAWS, Sentences

import quietcorpus as qc

pytestmark = pytest.mark.slow

DOCUMENTS = 30
_RELEASED = """
import hashlib, pathlib, shutil
import quietcorpus as qc
from quietcorpus.transforms.artefacts import static_model
from quietcorpus.transforms.privatizers.sentences import SentencePrivatizer
for documents, texts in ((128, 256), (7, 5)):
    SentencePrivatizer.documents_at_once, static_model._TEXTS_AT_ONCE = documents, texts
    for spec in sorted(pathlib.Path().glob("*.yaml")):
        shutil.rmtree("released", ignore_errors=True)
        qc.release(spec)
        for path in sorted(pathlib.Path("released").rglob("*.parquet")):
            print(spec, path, hashlib.sha256(path.read_bytes()).hexdigest())
"""


def test_a_release_has_the_same_bytes_on_every_processor(
    tmp_path: Path,
    lee_texts: list[str],
    static_encoder: Path,
    static_sentences: Sentences,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: a float sum, a norm or a product whose last bits depend on instructions, threads or
    # batches, in the encoder and in all that follows it.
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
    for name, texts in (("public", lee_texts[:200]), ("private", lee_texts[200:][:DOCUMENTS])):
        pq.write_table(pa.table({"text": texts}), tmp_path / f"{name}.parquet")
    public, encoder = tmp_path / "public.parquet", str(static_encoder)
    qc.build_pool(public, tmp_path / "pool", provenance="public", encoder=encoder)
    texts = {"kind": "public-texts", "pool": "pool", "encoder": encoder, "nearest": 3}
    blocks = {"texts": texts | {"epsilon": 30, "delta": 1e-6}}
    for law in ("depth", "similarity", "projected-mean"):
        blocks[law] = static_sentences(**LAWS[law])["mechanism"]
    for name, block in blocks.items():
        spec = {"release": "one", "input": {"path": "private.parquet"}, "output": "released"}
        spec |= {"mechanism": block, "accept": ["large-epsilon"] if name == "texts" else []}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(spec))
    (printed,) = printed_by_levels(_RELEASED, tmp_path)
    lines = printed.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert len({line.split()[-1] for line in lines}) >= len(blocks)
