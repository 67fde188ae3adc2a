"""Models of BERT's architecture, run by ONNX Runtime: a twentieth of what PyTorch installs.

The weights are those of a sentence-transformers folder; the graph is made here. Other
architectures need PyTorch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.onnx_runtime import onnxruntime
from quietcorpus.transforms.artefacts.bert_graph import INPUTS, UnsupportedModel, bert_graph
from quietcorpus.transforms.artefacts.encoder_model import TOKENS, Row

PACKAGES = "onnx", "onnxruntime", "safetensors", "tokenizers"
_PARTS = ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


class OnnxModel:
    """A model of BERT's architecture on processors, in float32; an `EncoderModel`."""

    rows = 4
    longest_shared = 96

    def __init__(self, folder: Path) -> None:
        """Load a model; raises UnsupportedModel, and any exception for a damaged folder."""
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        parts = _parts(folder)
        config = _json(folder / "config.json")
        self._pooling = _pooling(parts[1])
        self._normalized = len(parts) == 3
        own = _json(folder / "sentence_bert_config.json", {})
        self.most = min(
            own.get("max_seq_length") or config["max_position_embeddings"],
            config["max_position_embeddings"],
        )
        asked = _json(folder / "config_sentence_transformers.json", {})
        if own.get("do_lower_case"):
            raise UnsupportedModel
        self.prefix = asked.get("prompts", {}).get(asked.get("default_prompt_name") or "") or ""
        self._blank = config["pad_token_id"]
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.most)
        self.known = self._tokenizer.get_vocab_size()
        special = {
            token for token, of in self._tokenizer.get_added_tokens_decoder().items() if of.special
        }
        if set(self._tokenizer.encode("a").ids) <= special:
            raise ValueError  # its vocabulary is missing, and every word is unknown
        module = onnxruntime()
        options = module.SessionOptions()
        # There is a worker for every processor.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = module.InferenceSession(
            bert_graph(config, load_file(folder / "model.safetensors")),
            options,
            providers=["CPUExecutionProvider"],
        )

    def tokens(self, texts: Sequence[str]) -> list[Row]:
        return [{TOKENS: found.ids} for found in self._tokenizer.encode_batch(list(texts))]

    def run(self, rows: Sequence[Row], length: int) -> npt.NDArray[np.float32]:
        ids = np.full((len(rows), length), self._blank, dtype=np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row[TOKENS])] = row[TOKENS]
            mask[i, : len(row[TOKENS])] = 1
        (values,) = self._session.run(None, dict(zip(INPUTS, (ids, mask), strict=True)))
        if self._pooling == "cls":
            found = values[:, 0]
        else:
            weights = mask.astype(np.float32)[:, :, None]
            found = (values * weights).sum(axis=1) / weights.sum(axis=1)
        if self._normalized:
            found /= np.linalg.norm(found, axis=1, keepdims=True)
        return np.ascontiguousarray(found, dtype=np.float32)


def _json(path: Path, otherwise: Any = None) -> Any:
    if otherwise is not None and not path.exists():
        return otherwise
    return json.loads(path.read_text(encoding="utf-8"))


def _parts(folder: Path) -> list[Path]:
    """Return the folders of a transformer, its pooling and, where there is one, its norm."""
    listed = _json(folder / "modules.json")
    if [module["type"].rsplit(".", 1)[-1] for module in listed] not in _PARTS or listed[0]["path"]:
        raise UnsupportedModel
    return [folder / module["path"] for module in listed]


def _pooling(folder: Path) -> str:
    """Return how the embeddings of tokens become one: their `mean`, or the first, `cls`."""
    config = _json(folder / "config.json")
    flags = [mode for name, mode in _POOLINGS.items() if config.get(name)]
    others = [name for name in config if name.startswith("pooling_mode_") and config[name]]
    found = config.get("pooling_mode") or (flags[0] if flags and len(others) == 1 else None)
    if found not in ("mean", "cls") or not config.get("include_prompt", True):
        raise UnsupportedModel
    return str(found)
