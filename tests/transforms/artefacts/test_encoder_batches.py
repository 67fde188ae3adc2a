"""A sentence's embedding is that sentence's alone, whatever shares its batch and on any machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from encoders import (
    MIXED,
    Floats,
    Leak,
    alone,
    by_onnx,
    by_torch,
    is_of_the_sentence_alone,
    leaking,
    of_tokens,
    sentences,
)

from quietcorpus.transforms.artefacts.encoder import Encoder
from quietcorpus.transforms.artefacts.encoder_model import Row
from quietcorpus.transforms.artefacts.torch_model import TorchModel

pytestmark = pytest.mark.slow
Load = Callable[[Path], Encoder]


def test_an_embedding_depends_on_its_sentence_alone(packaged: Encoder) -> None:
    """Kills: batches padded to their longest sentence, a last batch that is not filled up, rows
    that come back in the order of their lengths.

    The control: what sentence-transformers makes of the same batches is not.
    """
    given = sentences()
    assert is_of_the_sentence_alone(packaged, given)
    if isinstance(packaged._model._model, TorchModel):
        theirs = packaged._model._model.inner.encode(given)
        one_by_one = [packaged._model._model.inner.encode([sentence]) for sentence in given]
        assert not np.array_equal(theirs, np.concatenate(one_by_one))


@pytest.mark.parametrize("load", [by_onnx, by_torch])
def test_no_row_that_shares_a_batch_is_full(
    load: Load, small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: full rows beside others, also of as many tokens as the model reads."""
    folder = shutil.copytree(small_folder, tmp_path / "short")
    for name in ("sentence_bert_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        limits = {key: 24 for key in ("max_seq_length", "model_max_length") if key in content}
        (folder / name).write_text(json.dumps(content | limits))
    encoder = load(folder)
    assert encoder._model._model.most == 24
    run, seen = encoder._model._model.run, []

    def noted(rows: Sequence[Row], length: int) -> Floats:
        seen.extend((len(rows), len(row["input_ids"]), length) for row in rows)
        return run(rows, length)

    monkeypatch.setattr(encoder._model._model, "run", noted)
    given = [
        of_tokens(length) for length in (3, 7, 8, 9, 15, 16, 17, 23, 24, 25, 60) for _ in "123"
    ]
    assert is_of_the_sentence_alone(encoder, given)
    assert {size for size, _, _ in seen} == {1, 4}
    assert all(tokens < length for size, tokens, length in seen if size > 1)
    assert max(tokens for _, tokens, _ in seen) == 24


@pytest.mark.parametrize("length", [8, pytest.param(24, marks=pytest.mark.nightly)])
def test_full_sentences_beside_others(packaged: Encoder, length: int) -> None:
    """A batch of full rows is computed without a mask, by other instructions.

    Kills: bits that tell whether all the others of a batch are full; a batch without a blank.
    """
    full = [of_tokens(length) for _ in range(packaged._model._model.rows)]
    shorter = [of_tokens(length - 1) for _ in full[1:]]
    together = packaged.encode(full)
    beside = packaged.encode([*full[:1], *shorter])
    np.testing.assert_array_equal(together[0], beside[0])
    np.testing.assert_array_equal(together, alone(packaged, full))


# What becomes of a machine or model whose batches are not sound.


def at_place(place: int) -> Leak:
    return lambda found, _: 1e-3 * (np.arange(len(found)) == place)[:, None]


def by_place(found: Floats, _: Sequence[Row]) -> Floats:
    return np.float32(1e-3) * np.arange(len(found), dtype=np.float32)[:, None]


def by_company(found: Floats, _: Sequence[Row]) -> Floats:
    """By the average of a batch, as where it shares a scale or an expert."""
    return np.broadcast_to(found.mean(axis=0, keepdims=True), found.shape)


LEAKS: dict[str, Leak] = {
    "every place": by_place,
    **{f"place {place}": at_place(place) for place in range(1, 4)},
    "company": by_company,
}


@pytest.mark.parametrize("name", LEAKS)
def test_where_batches_leak_each_sentence_is_encoded_alone(
    name: str, small: Encoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kills: a look at the first places alone, or at one company; a finding of one length that is
    used for all; a batch that is used though it was found to leak.
    """
    sizes = leaking(small, LEAKS[name], monkeypatch)
    with caplog.at_level("INFO", logger="quietcorpus"):
        assert is_of_the_sentence_alone(small, MIXED)
    assert not any(small._model._sound.values())
    assert set(small._model._sound) == {8, 16, 24, 32, 48}
    said = {record.getMessage() for record in caplog.records}
    assert said == {"some sentences are encoded one by one"}  # whose lengths are nobody's business
    sizes.clear()
    small.encode(MIXED)
    assert sizes == [1] * len(MIXED)


@pytest.mark.parametrize("name", LEAKS)
def test_control_a_leak_that_is_not_found_is_seen(
    name: str, small: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaking(small, LEAKS[name], monkeypatch)
    monkeypatch.setattr(small._model, "_is_sound", lambda length: True)
    assert not is_of_the_sentence_alone(small, MIXED)


def test_sound_batches_are_used_and_looked_at_once(
    small: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a check that no machine passes, or that is made for every batch; long sentences that
    wait for others.
    """
    sizes = leaking(small, lambda found, rows: np.zeros_like(found), monkeypatch)
    nine = [of_tokens(8) for _ in range(9)]
    small.encode(nine)
    assert small._model._sound == {16: True}
    sizes.clear()
    small.encode(nine)
    assert sizes == [4, 4, 4]
    sizes.clear()
    small.encode([of_tokens(104), of_tokens(104)])
    assert sizes == [1, 1]


def test_a_sentence_is_encoded_once(small: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: repeated sentences that are computed again, or get another's embedding."""
    given = [of_tokens(104), "", of_tokens(105), of_tokens(104)]
    expected = alone(small, given)
    sizes = leaking(small, lambda found, rows: np.zeros_like(found), monkeypatch)
    repeated = [3, 0, 0, 1, 3, 2, 1, 0]
    found = small.encode([given[i] for i in repeated])
    np.testing.assert_array_equal(found, expected[repeated])
    assert sorted(sizes)[:3] == [1, 1, 1]
    assert len(sizes) == 4
