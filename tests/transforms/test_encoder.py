"""Encoders: a sentence's embedding is that sentence's alone; models that are none are refused.

The packaged model is real; a small one of random weights has its shape, for what needs no sense.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from transforms import encoder as module
from transforms.encoder import PACKAGED, Encoder, EncoderSource
from transforms.errors import InputError

KEY = "mechanism.encoder"
WORDS = ["cat", "dog", "sun", "car", "red", "box", "man", "sky", "sea", "tree", "house", "bird"]
Floats = npt.NDArray[np.float32]


def of_tokens(count: int) -> str:
    """A random sentence of so many tokens, with the two that every sentence has."""
    return " ".join(np.random.default_rng().choice(WORDS, count - 2))


def sentences() -> list[str]:
    """Of no token to more than any batch has room for, on both sides of a batch's lengths."""
    lengths = [3, 7, *[8] * 6, 9, 16, 23, 96, 97, 300]
    return [
        "",
        "word",
        "It rains, but the match in K\u00f6ln goes on!",
        "\U0001f600 \u4e2d\u6587 na\u00efve \x00 caf\u00e9s",
        *map(of_tokens, lengths),
    ]


def folder_of(name: str) -> Path:
    return module._folder(KEY, name)


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def packaged(request: pytest.FixtureRequest) -> Encoder:
    """In either precision: a processor without bfloat16 is only slow at it."""
    return Encoder.load(KEY, PACKAGED, folder_of(PACKAGED), request.param)


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged model, but for its width and weights."""
    return make_small(tmp_path_factory.mktemp("models") / "small")


def make_small(folder: Path, weight: float | None = None) -> Path:
    """Write a model; each of its weights is random, or `weight`."""
    import torch
    from transformers import BertConfig, BertModel

    shutil.copytree(folder_of(PACKAGED), folder, ignore=shutil.ignore_patterns("model.*"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    config["num_hidden_layers"] = 2
    model = BertModel(BertConfig(**config))
    if weight is not None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(weight)
    model.save_pretrained(folder)
    pooling = folder / "1_Pooling" / "config.json"
    pooled = json.loads(pooling.read_text()) | {"word_embedding_dimension": 16}
    pooling.write_text(json.dumps(pooled))
    return folder


@pytest.fixture
def small(small_folder: Path) -> Encoder:
    """One that a test may change."""
    return Encoder.load(KEY, "small", small_folder, "float32")


def alone(encoder: Encoder, given: Sequence[str]) -> Floats:
    return np.concatenate([encoder.encode([sentence]) for sentence in given])


def is_of_the_sentence_alone(encoder: Encoder, given: Sequence[str]) -> bool:
    """Whether all bits are the same alone, together, in another order and in other company."""
    expected = alone(encoder, given)
    order = np.random.default_rng().permutation(len(given))
    return (
        np.array_equal(encoder.encode(given), expected)
        and np.array_equal(encoder.encode([given[i] for i in order]), expected[order])
        and np.array_equal(encoder.encode(given[1::2]), expected[1::2])
    )


# What an embedding depends on.


def test_an_embedding_depends_on_its_sentence_alone(packaged: Encoder) -> None:
    """Kills: batches padded to their longest sentence, a last batch that is not filled up, rows
    that come back in the order of their lengths.

    The control: what sentence-transformers makes of the same batches is not.
    """
    given = sentences()
    assert is_of_the_sentence_alone(packaged, given)
    theirs = packaged._model.encode(given)
    one_by_one = np.concatenate([packaged._model.encode([sentence]) for sentence in given])
    assert not np.array_equal(theirs, one_by_one)


def test_no_row_that_shares_a_batch_is_full(
    small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: full rows beside others, also of as many tokens as the model reads."""
    folder = shutil.copytree(small_folder, tmp_path / "short")
    for name in ("sentence_bert_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        limits = {key: 24 for key in ("max_seq_length", "model_max_length") if key in content}
        (folder / name).write_text(json.dumps(content | limits))
    encoder = Encoder.load(KEY, "short", folder, "float32")
    assert encoder._most == 24
    run, seen = encoder._run, []

    def noted(rows: list[dict[str, list[int]]], length: int) -> Floats:
        seen.extend((len(rows), len(row["input_ids"]), length) for row in rows)
        return run(rows, length)

    monkeypatch.setattr(encoder, "_run", noted)
    given = [
        of_tokens(length) for length in (3, 7, 8, 9, 15, 16, 17, 23, 24, 25, 60) for _ in "123"
    ]
    assert is_of_the_sentence_alone(encoder, given)
    assert {size for size, _, _ in seen} == {1, 4}
    assert all(tokens < length for size, tokens, length in seen if size > 1)
    assert max(tokens for _, tokens, _ in seen) == 24


@pytest.mark.parametrize("length", [8, 24])
def test_full_sentences_beside_others(packaged: Encoder, length: int) -> None:
    """A batch of full rows is computed without a mask, by other instructions.

    Kills: bits that tell whether all the others of a batch are full; a batch without a blank.
    """
    full = [of_tokens(length) for _ in range(packaged._rows)]
    together = packaged.encode(full)
    beside = packaged.encode([*full[:1], *[of_tokens(length - 1)] * (packaged._rows - 1)])
    np.testing.assert_array_equal(together[0], beside[0])
    np.testing.assert_array_equal(together, alone(packaged, full))


def test_embeddings_are_the_models(packaged: Encoder) -> None:
    """Kills: another pooling or none, blanks that are attended to, sentences that are cut early."""
    given = sentences()
    found = packaged.encode(given)
    assert found.dtype == np.float32
    assert found.shape == (len(given), packaged.dimensions) == (len(given), 384)
    theirs = packaged._model.encode(given, convert_to_tensor=True).float().cpu().numpy()
    rounding = 1e-5 if packaged._rows == 4 else 1e-2
    np.testing.assert_allclose(found, theirs, rtol=0, atol=rounding)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=rounding)


def test_less_precision_changes_little() -> None:
    """Kills: rounding that takes a sentence elsewhere. The control: another sentence is far."""
    given = sentences()
    precise, rough = (
        Encoder.load(KEY, PACKAGED, folder_of(PACKAGED), precision).encode(given).astype(float)
        for precision in ("float32", "bfloat16")
    )
    cosines = (precise @ rough.T) / np.outer(*(np.linalg.norm(e, axis=1) for e in (precise, rough)))
    assert np.diag(cosines).min() > 0.999
    assert not np.array_equal(precise, rough)
    assert np.median(cosines) < 0.9


@pytest.mark.parametrize(("flags", "precision"), [("fpu amx_bf16", "bfloat16"), ("fpu", "float32")])
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
    monkeypatch.setattr(module, "_PROCESSOR", described)
    source = EncoderSource.found(KEY, str(small_folder))
    assert source.precision == precision
    described.write_text("flags : fpu\n")
    with caplog.at_level("WARNING", logger="quietcorpus"):
        opened = source.open()
    assert str(opened._model.dtype) == f"torch.{precision}"
    assert source.arithmetic.startswith(precision)
    assert bool(caplog.records) == (precision == "bfloat16")
    described.unlink()
    assert EncoderSource.found(KEY, str(small_folder)).precision == "float32"


def test_what_is_longer_than_the_model_reads_is_cut(packaged: Encoder) -> None:
    """Kills: text beyond the model's reach that fails, or counts in the sentence's stead."""
    tail = of_tokens(20)
    long = of_tokens(300)
    np.testing.assert_array_equal(*packaged.encode([long, f"{long} {tail}"]))


def test_threads_cut_alike(packaged: Encoder) -> None:
    """Beside a thread that sets the same tokenizer to read on. Kills: a sentence of more tokens
    than the model reads, now and then.
    """
    tokenizer = packaged._model.tokenizer
    done = threading.Event()

    def others() -> None:
        while not done.is_set():
            with packaged._tokenizing:
                tokenizer(["other"])

    thread = threading.Thread(target=others)
    thread.start()
    try:
        lengths = [len(packaged._tokens([of_tokens(400)])["input_ids"][0]) for _ in range(500)]
    finally:
        done.set()
        thread.join()
    assert set(lengths) == {packaged._most}


def test_no_sentences(packaged: Encoder) -> None:
    """Kills: a batch of none, without the width that everything after it needs."""
    found = packaged.encode([])
    assert found.dtype == np.float32
    assert found.shape == (0, 384)


def test_a_models_prompt_is_part_of_a_sentence(small_folder: Path, tmp_path: Path) -> None:
    """Kills: a model that is asked without the words that it was trained with."""
    folder = shutil.copytree(small_folder, tmp_path / "prompted")
    config = folder / "config_sentence_transformers.json"
    content = json.loads(config.read_text())
    prompts = {"prompts": {"other": "no: ", "query": "query: "}, "default_prompt_name": "query"}
    config.write_text(json.dumps(content | prompts))
    prompted, plain = (
        Encoder.load(KEY, "small", each, "float32") for each in (folder, small_folder)
    )
    given = ["cat", "the sun", ""]
    found = prompted.encode(given)
    np.testing.assert_array_equal(found, plain.encode([f"query: {each}" for each in given]))
    np.testing.assert_allclose(found, prompted._model.encode(given), rtol=0, atol=1e-5)
    assert is_of_the_sentence_alone(prompted, given)


# What becomes of a machine or model whose batches are not sound.


Leak = Callable[[Floats, list[dict[str, list[int]]]], Floats]


def leaking(encoder: Encoder, leak: Leak, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have the rows of a batch leak; the sizes of batches are noted."""
    run, sizes = encoder._run, []

    def leaky(rows: list[dict[str, list[int]]], length: int) -> Floats:
        sizes.append(len(rows))
        found = run(rows, length)
        return (found + leak(found, rows)).astype(np.float32)

    monkeypatch.setattr(encoder, "_run", leaky)
    return sizes


def at_place(place: int) -> Leak:
    return lambda found, _: 1e-3 * (np.arange(len(found)) == place)[:, None]


def by_place(found: Floats, _: list[dict[str, list[int]]]) -> Floats:
    return np.float32(1e-3) * np.arange(len(found), dtype=np.float32)[:, None]


def by_company(found: Floats, _: list[dict[str, list[int]]]) -> Floats:
    """By the average of a batch, as where it shares a scale or an expert."""
    return np.broadcast_to(found.mean(axis=0, keepdims=True), found.shape)


LEAKS: dict[str, Leak] = {
    "every place": by_place,
    **{f"place {place}": at_place(place) for place in range(1, 4)},
    "company": by_company,
}
MIXED = ["", "a", *[of_tokens(8) for _ in range(9)], *map(of_tokens, [7, 15, 16, 16, 24, 40])]


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
    assert not any(small._sound.values())
    assert set(small._sound) == {8, 16, 24, 32, 48}
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
    monkeypatch.setattr(small, "_is_sound", lambda length: True)
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
    assert small._sound == {16: True}
    sizes.clear()
    small.encode(nine)
    assert sizes == [4, 4, 4]
    sizes.clear()
    small.encode([of_tokens(104), of_tokens(104)])
    assert sizes == [1, 1]


# Which models are used.


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as raised:
        action()
    message = str(raised.value)
    assert "\n" not in message
    assert raised.value.__cause__ is None
    return message


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_are_not_released(tmp_path: Path, weight: float) -> None:
    """Kills: NaN that goes on to be a depth, a candidate's number and a release."""
    folder = make_small(tmp_path / "broken", weight)
    encoder = EncoderSource.found(KEY, str(folder)).open()
    message = f"{KEY}: {folder} gives embeddings that are not finite numbers"
    assert refusal(lambda: encoder.encode(["It rains."])) == message
    assert refusal(lambda: encoder.encode(["", of_tokens(8), of_tokens(120)])) == message


def test_one_embedding_that_is_not_finite_is_enough(
    small: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a look at the first embedding, or the first coordinate."""

    def last(found: Floats, rows: list[dict[str, list[int]]]) -> Floats:
        added = np.zeros_like(found)
        added[[len(row["input_ids"]) > 30 for row in rows], -1] = np.inf
        return added

    leaking(small, last, monkeypatch)
    monkeypatch.setattr(small, "_is_sound", lambda length: True)
    assert np.isfinite(small.encode(MIXED[:-1])).all()
    assert refusal(lambda: small.encode(MIXED)).endswith("that are not finite numbers")


def test_a_model_that_changed_is_refused(small_folder: Path, tmp_path: Path) -> None:
    """Kills: a digest of names, of some files or of the first folder alone; of hidden files."""
    folder = shutil.copytree(small_folder, tmp_path / "model")
    source = EncoderSource.found(KEY, str(folder))
    assert source.digest == EncoderSource.found(KEY, str(small_folder)).digest
    (folder / ".cache" / "download").mkdir(parents=True)
    (folder / ".cache" / "download" / "model.lock").write_text("x")
    (folder / ".gitattributes").write_text("*")
    assert EncoderSource.found(KEY, str(folder)) == source

    def refused() -> None:
        assert EncoderSource.found(KEY, str(folder)).digest != source.digest
        assert refusal(source.open) == (
            f"{KEY}: {folder} is not the model that the release began with, or has changed since; "
            "workers need the same one"
        )

    weights, pooling = folder / "model.safetensors", folder / "1_Pooling" / "config.json"
    for file in (weights, pooling, folder / "tokenizer.json"):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        refused()
        file.write_bytes(content)
    pooling.rename(folder / "1_Pooling" / "other.json")
    refused()
    (folder / "1_Pooling" / "other.json").rename(pooling)
    (folder / "more.txt").write_text("")
    refused()
    (folder / "more.txt").unlink()
    assert source.open().dimensions == 16


@pytest.mark.parametrize("damage", ["empty", "no weights", "half the weights", "no tokenizer"])
def test_a_folder_that_is_no_model(small_folder: Path, tmp_path: Path, damage: str) -> None:
    """Kills: a loader's own error, of many lines, or a model of random weights."""
    folder = tmp_path / "model"
    lost = ("tokenizer.json", "vocab.txt") if damage == "no tokenizer" else ("model.*",)
    if damage == "empty":
        folder.mkdir()
    else:
        shutil.copytree(small_folder, folder, ignore=shutil.ignore_patterns(*lost))
    if damage == "half the weights":
        content = (small_folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    assert refusal(EncoderSource.found(KEY, str(folder)).open) == (
        f"{KEY}: {folder} is not a model of sentence-transformers that can be loaded"
    )


NAMES = ["nobody/has-this-model", "./no/such/folder", "/no/such/folder", "two words", ""]
ASK = """
import sys
from transforms.encoder import EncoderSource
from transforms.errors import InputError
for name in sys.argv[1:]:
    try:
        EncoderSource.found("mechanism.encoder", name)
    except InputError as error:
        print(error)
"""


def test_names_that_cannot_be_had(tmp_path: Path) -> None:
    """In a process of its own, which contacts nobody. Kills: a traceback of the hub's client."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, *NAMES],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.splitlines() == [
        f"{KEY}: {name} is neither a folder nor a model that can be had; give the path of a "
        f"sentence-transformers model, or {PACKAGED} with the extra [sentences]"
        for name in NAMES
    ]
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("package", ["sentence-transformers", "sentencex"])
def test_without_a_library_the_remedy_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a look at the folder first, which needs no library, and an error in every worker."""
    found = importlib.util.find_spec

    def without(name: str, parent: str | None = None) -> Any:
        return None if name == package.replace("-", "_") else found(name, parent)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    for name in (PACKAGED, "/no/such/folder"):
        assert refusal(lambda name=name: EncoderSource.found(KEY, name)) == (  # type: ignore[misc]
            f"{KEY}: {package} is not installed; install the extra [sentences]"
        )


@pytest.mark.parametrize("place", ["../elsewhere", ".hidden", "/elsewhere", "a/../../b"])
def test_a_model_with_parts_outside_its_digest(
    small_folder: Path, tmp_path: Path, place: str
) -> None:
    """Kills: a part that may change while the digest stays."""
    folder = shutil.copytree(small_folder, tmp_path / "model")
    modules = json.loads((folder / "modules.json").read_text())
    modules[-1]["path"] = place
    (folder / "modules.json").write_text(json.dumps(modules))
    source = EncoderSource.found(KEY, str(folder))
    assert refusal(source.open).endswith(
        "is not a model of sentence-transformers that can be loaded"
    )
