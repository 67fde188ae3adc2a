"""Models of BERT's architecture, run by ONNX Runtime: a twentieth of what PyTorch installs.

The weights are those of a sentence-transformers folder; the graph is made here. Other
architectures need PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.onnx_runtime import onnxruntime

from .bert_folder import BertFolder
from .bert_graph import INPUTS, bert_graph
from .encoder_model import TOKENS, Row

PACKAGES = "onnx", "onnxruntime", "safetensors", "tokenizers"
_LEAST_NORM = 1e-12


class OnnxModel:
    """A model of BERT's architecture on processors, in float32; an `EncoderModel`."""

    rows = 4
    longest_shared = 96

    def __init__(self, folder: Path) -> None:
        """Load a model; raises UnsupportedModel, and any exception for a damaged folder."""
        self._asked = BertFolder.read(folder)
        config = self._asked.config
        self._blank = config["pad_token_id"] or 0
        self._tokenizer, self.most = self._asked.tokenizer()
        self.known = self._tokenizer.get_vocab_size()
        special = {
            token for token, of in self._tokenizer.get_added_tokens_decoder().items() if of.special
        }
        if set(self._tokenizer.encode("a").ids) <= special:
            raise ValueError("its vocabulary is missing")  # and every word is unknown
        module = onnxruntime()
        options = module.SessionOptions()
        # There is a worker for every processor.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = module.InferenceSession(
            bert_graph(config, self._asked.weights()),
            options,
            providers=["CPUExecutionProvider"],
        )

    def tokens(self, texts: Sequence[str]) -> list[Row]:
        prompted = [self._asked.prompt + text for text in texts]
        return [{TOKENS: found.ids} for found in self._tokenizer.encode_batch(prompted)]

    def run(self, rows: Sequence[Row], length: int) -> npt.NDArray[np.float32]:
        ids = np.full((len(rows), length), self._blank, dtype=np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row[TOKENS])] = row[TOKENS]
            mask[i, : len(row[TOKENS])] = 1
        (values,) = self._session.run(None, dict(zip(INPUTS, (ids, mask), strict=True)))
        if self._asked.pooling == "cls":
            found = values[:, 0]
        else:
            weights = mask.astype(np.float32)[:, :, None]
            found = (values * weights).sum(axis=1) / weights.sum(axis=1)
        if self._asked.normalized:
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), _LEAST_NORM)
        return np.ascontiguousarray(found[:, : self._asked.truncated], dtype=np.float32)
