"""Static encoders: one vector a token, in a table, added up in whole numbers.

A folder is read as sentence-transformers reads its module `StaticEmbedding`, which model2vec writes
as well: an embedding is the mean of the vectors of a text's tokens, with the norm 1 if the folder
asks for that.

The vectors are rounded to whole numbers once. Sums are exact then, and after them come a square
root and a division, which IEEE 754 rounds correctly. So an embedding is a function of its text
alone, bit by bit, on every processor, in every batch and on any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quietcorpus.compiled import compiled

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
        vectors: the token's vectors times 2^`exponent`, int32 (V, d), at most 2^28.
        exponent: see `vectors`.
        normalized: whether embeddings have the norm 1.
        prompt: the text before every sentence.
        truncated: the number of coordinates that are kept; None for all.
    """

    tokenizer: Tokenizer
    vectors: npt.NDArray[np.int32]
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
        exponent = _BITS - int(np.frexp(np.abs(table).max(initial=0))[1])
        vectors = np.rint(np.ldexp(table, exponent)).astype(np.int32)
        return cls(
            tokenizer,
            vectors,
            exponent,
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
        prompted = [self.prompt + text for text in texts]
        found = self.tokenizer.encode_batch(prompted, add_special_tokens=False)
        counts = np.array([len(one.ids) for one in found], dtype=np.int64)
        tokens = np.fromiter((id for one in found for id in one.ids), np.int64, int(counts.sum()))
        sums = _sums(np.concatenate([[0], np.cumsum(counts)]), tokens, self.vectors)
        if self.normalized:
            # The exponent of a whole number below 2^53 is the number of its bits, exactly.
            bits = np.frexp(np.abs(sums).max(axis=1, initial=0).astype(np.float64))[1]
            sums >>= np.maximum(0, bits - _SUM_BITS)[:, None]
            divisors = np.sqrt((sums * sums).sum(axis=1).astype(np.float64))
        else:
            divisors = np.ldexp(counts.astype(np.float64), self.exponent)
        divisors[divisors == 0] = 1
        kept = sums[:, : self.truncated].astype(np.float64)
        embeddings: npt.NDArray[np.float32] = (kept / divisors[:, None]).astype(np.float32)
        return embeddings


def _table(path: Path, tokens: int) -> npt.NDArray[np.float64]:
    """Return a vector for each token, float64 (V, d).

    A model2vec model of a reduced vocabulary has a vector for several tokens (`mapping`), and a
    weight for each token.
    """
    tensors = loaded_tensors([path], "I64", "I32", "I8")
    vectors: npt.NDArray[Any] = next(tensors[name] for name in _TABLES if name in tensors)
    table = vectors.astype(np.float64)
    if (mapping := tensors.get("mapping")) is not None:
        table = table[mapping]
    if (weights := tensors.get("weights")) is not None:
        table *= weights.astype(np.float64)[:, None]
    if table.ndim != 2 or len(table) < tokens or not 0 < table.shape[1] <= _MOST_DIMENSIONS:
        raise ValueError("its table does not have a vector for each token")
    if not np.isfinite(table).all():
        raise ValueError("its vectors are not finite")
    return table


@compiled
def _sums(offsets, tokens, vectors):  # type: ignore[no-untyped-def]
    """Add up the vectors of each text's tokens: int64 (n, d)."""
    sums = np.zeros((len(offsets) - 1, vectors.shape[1]), dtype=np.int64)
    for text in range(len(offsets) - 1):
        for place in range(offsets[text], offsets[text + 1]):
            vector = vectors[tokens[place]]
            for i in range(len(vector)):
                sums[text, i] += vector[i]
    return sums
