"""Models of BERT's architecture as ONNX graphs, run by ONNX Runtime.

The graph of a BERT encoder in ONNX, from the weights that its checkpoint holds.

Devlin, Chang, Lee and Toutanova: BERT (NAACL 2019), with the names of Hugging Face's checkpoints.
Segments are not told apart: sentences have one.

Models of BERT's architecture, run by ONNX Runtime: a twentieth of what PyTorch installs.

The weights are those of a sentence-transformers folder; the graph is made here. Other
architectures need PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quietcorpus.indexes.onnx_runtime import onnxruntime

from .bert_folder import BertFolder
from .encoder_model import TOKENS, Row

VERSION = 2
"""To be raised with every change after which an embedding may have other digits."""
INPUTS = "ids", "mask"
"""The inputs, int64 (rows, tokens): the tokens, and 1 where there is one, 0 where there is none."""
_OPSET, _FORMAT = 20, 10


def bert_graph(config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return a model, from `INPUTS` to the embeddings of tokens, float32 (rows, tokens, d).

    Args:
        config: the checkpoint's config.json, of an encoder with GELU and absolute positions.
        weights: its tensors by name, with or without the prefix `bert.`.

    Raises:
        KeyError: a weight is missing.
    """
    return _Graph(config, weights).serialised()


class _Graph:
    """The nodes and the constants, as they are added."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]) -> None:
        self._config = config
        self._weights = {name.removeprefix("bert."): value for name, value in weights.items()}
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._heads = config["num_attention_heads"]
        self._width = config["hidden_size"]

    def serialised(self) -> bytes:
        from onnx import TensorProto, helper

        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["rows", "tokens"])
            for name in INPUTS
        ]
        found = self._embedded()
        bias = self._bias()
        for layer in range(self._config["num_hidden_layers"]):
            found = self._layer(f"encoder.layer.{layer}.", found, bias)
        output = helper.make_tensor_value_info(
            found, TensorProto.FLOAT, ["rows", "tokens", self._width]
        )
        graph = helper.make_graph(
            self._nodes, "bert", inputs, [output], list(self._constants.values())
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_FORMAT
        )
        serialised: bytes = model.SerializeToString()
        return serialised

    def _embedded(self) -> str:
        """Add the sum of the embeddings of words, places and the one segment, normalised."""
        words = self._constant("words", self._weight("embeddings.word_embeddings.weight"))
        places = self._weight("embeddings.position_embeddings.weight")
        segment = self._weight("embeddings.token_type_embeddings.weight")[0]
        zero = self._constant("zero", np.zeros(1, dtype=np.int64))
        tokens = self._add("Shape", [INPUTS[0]], start=1, end=2)
        here = self._add("Slice", [self._constant("places", places + segment), zero, tokens, zero])
        both = self._add("Add", [self._add("Gather", [words, INPUTS[0]]), here])
        return self._normalised("embeddings.LayerNorm", both)

    def _bias(self) -> str:
        """Add what attention adds for every token: nothing, or the least number where none is."""
        from onnx import TensorProto

        mask = self._add("Cast", [INPUTS[1]], to=TensorProto.FLOAT)
        absent = self._add("Sub", [self._constant("one", np.float32(1)), mask])
        least = self._constant("least", np.finfo(np.float32).min)
        axes = self._constant("axes", np.array([1, 2]))
        return self._add("Unsqueeze", [self._add("Mul", [absent, least]), axes])

    def _layer(self, name: str, values: str, bias: str) -> str:
        attended = self._dense(
            f"{name}attention.output.dense", self._attended(f"{name}attention.self.", values, bias)
        )
        values = self._normalised(
            f"{name}attention.output.LayerNorm", self._add("Add", [attended, values])
        )
        wide = self._add("Gelu", [self._dense(f"{name}intermediate.dense", values)])
        narrow = self._dense(f"{name}output.dense", wide)
        return self._normalised(f"{name}output.LayerNorm", self._add("Add", [narrow, values]))

    def _attended(self, name: str, values: str, bias: str) -> str:
        size = self._width // self._heads
        by_head = self._constant("by_head", np.array([0, 0, self._heads, size]))
        whole = self._constant("whole", np.array([0, 0, self._width]))
        scale = self._constant("scale", np.float32(1 / np.sqrt(size)))

        def part(which: str, order: list[int]) -> str:
            found = self._add("Reshape", [self._dense(name + which, values), by_head])
            return self._add("Transpose", [found], perm=order)

        query, key = part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1])
        scores = self._add("Mul", [self._add("MatMul", [query, key]), scale])
        shares = self._add("Softmax", [self._add("Add", [scores, bias])], axis=-1)
        found = self._add("MatMul", [shares, part("value", [0, 2, 1, 3])])
        return self._add("Reshape", [self._add("Transpose", [found], perm=[0, 2, 1, 3]), whole])

    def _dense(self, name: str, values: str) -> str:
        matrix = self._constant(f"{name}.weight", self._weight(f"{name}.weight").T)
        offset = self._constant(f"{name}.bias", self._weight(f"{name}.bias"))
        return self._add("Add", [self._add("MatMul", [values, matrix]), offset])

    def _normalised(self, name: str, values: str) -> str:
        scale, offset = (
            self._constant(f"{name}.{part}", self._weight(f"{name}.{part}"))
            for part in ("weight", "bias")
        )
        return self._add(
            "LayerNormalization",
            [values, scale, offset],
            epsilon=self._config["layer_norm_eps"],
        )

    def _weight(self, name: str) -> npt.NDArray[np.float32]:
        return self._weights[name].astype(np.float32)

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def _add(self, operation: str, inputs: list[str], **attributes: Any) -> str:
        from onnx import helper

        name = f"{operation}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [name], **attributes))
        return name


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
