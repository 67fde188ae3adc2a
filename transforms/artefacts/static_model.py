"""Static encoders: one vector a token, in a table, added up in whole numbers.

A folder is read as sentence-transformers reads its module `StaticEmbedding`, which model2vec writes
as well: an embedding is the mean of the vectors of a text's tokens, with the norm 1 if the folder
asks for that.

Each number of a vector is rounded to a whole number before it is added. Sums are exact then, and
after them come a square root and a division, which IEEE 754 rounds correctly. So an embedding is a
function of its text alone, bit by bit, on every processor, in every batch and on any number of
threads. A table of 32-bit numbers is mapped from its file: all workers of a machine share it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled
from quietcorpus.indexes.documents.lsa import shortened

from .bert_folder import (
    UnsupportedModel,
    check_norm,
    limit,
    loaded_tensors,
    prompt_of,
    read_json,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGES = "safetensors", "tokenizers"
VERSION = 1
"""To be raised with every change after which an embedding may have other digits."""
_MODULES = ["StaticEmbedding"], ["StaticEmbedding", "Normalize"]
_TABLES = "embedding.weight", "embeddings"  # sentence-transformers' name, and model2vec's
_BITS = 28  # of a vector's largest number: sums of 2^25 tokens fit 53 bits
_SUM_BITS = 25  # the squares of 2^13 of these fit 63 bits
_MOST_DIMENSIONS = 1 << 13
_MOST_EXPONENT = 1000
_TEXTS_AT_ONCE = 256


def is_static(folder: Path) -> bool:
    """Return whether a folder's first module is of that kind; what is damaged is not."""
    try:
        kind = read_json(folder / "modules.json")[0]["type"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return str(kind).endswith(".StaticEmbedding")


def numbers_of_tokens(tokenizer: Tokenizer) -> int:
    """Return one more than the largest number of a token: there may be fewer tokens.

    A sum reads beyond a table that is shorter, whatever else is in the memory there.
    """
    return 1 + max(tokenizer.get_vocab().values(), default=-1)


@dataclass(frozen=True)
class StaticModel:
    """A static encoder, loaded into this process.

    Attributes:
        tokenizer: finds the tokens of a text.
        vectors: the tokens' vectors, float32 or float64 (V, d).
        exponent: a vector is added times 2^`exponent`, in whole numbers of at most 2^28.
        normalized: whether embeddings have the norm 1.
        prompt: the text before every sentence.
        truncated: the number of coordinates that are kept; None for all.
    """

    tokenizer: Tokenizer
    vectors: npt.NDArray[np.floating]
    exponent: int
    normalized: bool
    prompt: str = ""
    truncated: int | None = None

    @classmethod
    def load(cls, folder: Path) -> StaticModel:
        """Load a model; raises UnsupportedModel, and any exception for a damaged folder."""
        from tokenizers import Tokenizer

        modules = read_json(folder / "modules.json")
        types = [str(module["type"]) for module in modules]
        names = [one.rsplit(".", 1)[-1] for one in types]
        if names not in _MODULES or not all(
            one.startswith("sentence_transformers.") for one in types
        ):
            raise UnsupportedModel(f"its modules are {', '.join(types)}")
        if len(names) > 1:
            check_norm(read_json(folder / modules[1]["path"] / "config.json", {}))
        own = read_json(folder / "config_sentence_transformers.json", {})
        place = folder / modules[0]["path"]
        tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        tokenizer.no_padding()
        table = _table(place / "model.safetensors", numbers_of_tokens(tokenizer))
        largest = max(float(table.max()), -float(table.min()))
        if not np.isfinite(largest):
            raise ValueError("its vectors are not finite")
        return cls(
            tokenizer,
            table,
            exponent=min(_MOST_EXPONENT, _BITS - int(np.frexp(largest)[1])),
            normalized=len(names) > 1,
            prompt=prompt_of(own),
            truncated=limit(own.get("truncate_dim"), "truncate_dim"),
        )

    @property
    def dimensions(self) -> int:
        """Return the length of an embedding."""
        size: int = self.vectors.shape[1]
        return min(size, self.truncated or size)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Compute the embedding of every text, float32 (n, d); zeros for one without a token."""
        embeddings = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[start : start + _TEXTS_AT_ONCE]
            embeddings[start : start + len(some)] = self._of_some(some)
        return embeddings

    def _of_some(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        prompted = [self.prompt + text for text in texts]
        found = self.tokenizer.encode_batch(prompted, add_special_tokens=False)
        counts = np.array([len(one.ids) for one in found], dtype=np.int64)
        tokens = np.fromiter((id for one in found for id in one.ids), np.int64, int(counts.sum()))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        sums = _sums(offsets, tokens, self.vectors, np.ldexp(1.0, self.exponent))
        if self.normalized:
            sums = shortened(sums, _SUM_BITS)
            divisors = np.sqrt((sums * sums).sum(axis=1).astype(np.float64))
        else:
            divisors = np.ldexp(counts.astype(np.float64), self.exponent)
        divisors[divisors == 0] = 1
        kept: npt.NDArray[np.float64] = sums[:, : self.truncated] / divisors[:, None]
        return kept


def _table(path: Path, tokens: int) -> npt.NDArray[np.floating]:
    """Return a vector for each token, float32 or float64 (V, d).

    A model2vec model of a reduced vocabulary has a vector for several tokens (`mapping`), and a
    weight for each token.
    """
    from safetensors import safe_open

    with safe_open(str(path), "np") as opened:  # which checks the file
        name = next(name for name in _TABLES if name in opened.keys())  # noqa: SIM118
        alone = len(opened.keys()) == 1 and opened.get_slice(name).get_dtype() == "F32"
    table = _mapped(path, name) if alone else _combined(path, name)
    if table.ndim != 2 or len(table) < tokens or not 0 < table.shape[1] <= _MOST_DIMENSIONS:
        raise ValueError("its table does not have a vector for each token")
    return table


def _mapped(path: Path, name: str) -> npt.NDArray[np.float32]:
    """Map a tensor of 32-bit numbers: after the header's size and the header, which has places."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        own = json.loads(stream.read(size))[name]
    start, shape = 8 + size + own["data_offsets"][0], tuple(own["shape"])
    mapped = np.memmap(path, "<f4", mode="r", offset=start, shape=shape)
    found: npt.NDArray[np.float32] = np.require(mapped, requirements="A").view(np.ndarray)
    return found


def _combined(path: Path, name: str) -> npt.NDArray[np.floating]:
    tensors = loaded_tensors([path], "I64", "I32", "I8")
    vectors = tensors[name]
    table = vectors.astype(np.result_type(vectors, np.float32), copy=False)
    if (mapping := tensors.get("mapping")) is not None:
        table = table[mapping]
    if (weights := tensors.get("weights")) is not None:
        table = table.astype(np.float64) * weights.astype(np.float64)[:, None]
    return table


@compiled
def _sums(offsets, tokens, vectors, scale):  # type: ignore[no-untyped-def]
    """Add up the vectors of each text's tokens times a power of two, rounded: int64 (n, d)."""
    sums = np.zeros((len(offsets) - 1, vectors.shape[1]), dtype=np.int64)
    for text in range(len(offsets) - 1):
        for place in range(offsets[text], offsets[text + 1]):
            vector = vectors[tokens[place]]
            for i in range(len(vector)):
                sums[text, i] += np.int32(np.rint(vector[i] * scale))
    return sums
