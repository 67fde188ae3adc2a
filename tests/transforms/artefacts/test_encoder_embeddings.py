"""Embeddings are the model's own, in either precision, of sentences of any number and length."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from encoders import (
    KEY,
    by_onnx,
    by_torch,
    is_of_the_sentence_alone,
    of_tokens,
    packaged_folder,
    sentences,
)

from quietcorpus.transforms.artefacts import encoder, torch_model
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.artefacts.encoder_model import TOKENS
from quietcorpus.transforms.artefacts.torch_model import Precision, TorchModel

pytestmark = pytest.mark.slow
PRECISIONS: tuple[Precision, Precision] = ("float32", "bfloat16")


def embedded(folder: Path, given: list[str]) -> np.ndarray:
    """Their embeddings by the library itself, which no other process of a test run has to load."""
    from sentence_transformers import SentenceTransformer

    return np.asarray(SentenceTransformer(str(folder), device="cpu").encode(given))


def test_embeddings_are_the_models(packaged: Encoder) -> None:
    """Kills: another pooling or none, blanks that are attended to, sentences that are cut early."""
    given = sentences()
    found = packaged.encode(given)
    assert found.dtype == np.float32
    assert found.shape == (len(given), packaged.dimensions) == (len(given), 384)
    theirs = embedded(packaged_folder(), given)
    rounding = 1e-5 if packaged._model._model.rows == 4 else 1e-2
    np.testing.assert_allclose(found, theirs, rtol=0, atol=rounding)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=rounding)


def test_what_is_longer_than_the_model_reads_is_cut(packaged: Encoder) -> None:
    """Kills: text beyond the model's reach that fails, or counts in the sentence's stead."""
    tail = of_tokens(20)
    long = of_tokens(300)
    np.testing.assert_array_equal(*packaged.encode([long, f"{long} {tail}"]))


def test_threads_cut_alike(packaged: Encoder) -> None:
    """Beside a thread that sets the same tokenizer to read on. Kills: a sentence of more tokens
    than the model reads, now and then.
    """
    model = packaged._model._model
    if not isinstance(model, TorchModel):
        pytest.skip("its tokenizer is set once")
    done = threading.Event()

    def others() -> None:
        while not done.is_set():
            with model._tokenizing:
                model.inner.tokenizer(["other"])

    thread = threading.Thread(target=others)
    thread.start()
    try:
        lengths = [len(model.tokens([of_tokens(400)])[0][TOKENS]) for _ in range(500)]
    finally:
        done.set()
        thread.join()
    assert set(lengths) == {model.most}


def test_no_sentences(packaged: Encoder) -> None:
    """Kills: a batch of none, without the width that everything after it needs."""
    found = packaged.encode([])
    assert found.dtype == np.float32
    assert found.shape == (0, 384)


def test_the_first_tokens_embedding(small_folder: Path, tmp_path: Path) -> None:
    """Kills: a mean for a model that was trained on its first token; a norm that it has not."""
    folder = shutil.copytree(small_folder, tmp_path / "first")
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    given = ["", "the sun", of_tokens(30)]
    theirs = embedded(folder, given)
    np.testing.assert_allclose(by_onnx(folder).encode(given), theirs, rtol=0, atol=1e-5)
    assert np.abs(np.linalg.norm(theirs, axis=1) - 1).min() > 0.01


@pytest.mark.parametrize("load", [by_onnx, by_torch])
def test_a_models_prompt_is_part_of_a_sentence(
    load: Callable[[Path], Encoder], small_folder: Path, tmp_path: Path
) -> None:
    """Kills: a model that is asked without the words that it was trained with."""
    folder = shutil.copytree(small_folder, tmp_path / "prompted")
    config = folder / "config_sentence_transformers.json"
    content = json.loads(config.read_text())
    prompts = {"prompts": {"other": "no: ", "query": "query: "}, "default_prompt_name": "query"}
    config.write_text(json.dumps(content | prompts))
    prompted, plain = load(folder), load(small_folder)
    given = ["cat", "the sun", ""]
    found = prompted.encode(given)
    np.testing.assert_array_equal(found, plain.encode([f"query: {each}" for each in given]))
    theirs = embedded(folder, given)
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-5)
    assert is_of_the_sentence_alone(prompted, given)


# The precision of its arithmetic.


def test_less_precision_changes_little() -> None:
    """Kills: rounding that takes a sentence elsewhere. The control: another sentence is far."""
    given = sentences()
    precise, rough = (
        by_torch(packaged_folder(), precision).encode(given).astype(float)
        for precision in PRECISIONS
    )
    cosines = (precise @ rough.T) / np.outer(*(np.linalg.norm(e, axis=1) for e in (precise, rough)))
    assert np.diag(cosines).min() > 0.999
    assert not np.array_equal(precise, rough)
    assert np.median(cosines) < 0.9


@pytest.mark.parametrize(
    ("flags", "precision"),
    [("fpu amx_bf16", "bfloat16"), ("fpu avx512_bf16", "bfloat16"), ("fpu avx512f", "float32")],
)
def test_the_launchers_processor_sets_the_precision(
    flags: str,
    precision: str,
    tmp_path: Path,
    small_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kills: a worker that rounds as its own processor likes, and so releases other bytes."""
    described = tmp_path / "cpuinfo"
    described.write_text(f"flags : {flags}\n")
    monkeypatch.setattr(torch_model, "_PROCESSOR", described)
    source = EncoderSource.resolve(KEY, str(small_folder))
    assert source.precision == precision
    described.write_text("flags : fpu\n")
    encoder._opened.cache_clear()
    with caplog.at_level("WARNING", logger="quietcorpus"):
        opened = source.open()
    assert isinstance(opened._model._model, TorchModel)
    assert str(opened._model._model.inner.dtype) == f"torch.{precision}"
    assert source.arithmetic.startswith(precision)
    assert bool(caplog.records) == (precision == "bfloat16")
    described.unlink()
    assert EncoderSource.resolve(KEY, str(small_folder)).precision == "float32"
