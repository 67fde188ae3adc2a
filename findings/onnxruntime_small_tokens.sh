#!/bin/bash
# onnxruntime 1.30.0, onnx 1.23.1, Python 3.11: dynamic quantisation makes tokens of small vectors equal.
#
# Guess: `quantize_dynamic` is for products of matrices, whose inputs it scales as they come; a table of token vectors is looked up and not
#   multiplied, so it stays in float, or has a scale for each row.
# Seen: the table (`Gather`) becomes bytes with one scale, that of its largest number. With ten vectors of 60 times the common size, 100
#   rare tokens of a hundredth of it, all distinct, have one vector, 0, and the common ones are two fifths of their length off.
#   `per_channel=True` changes nothing.
# Met: static encoders and token embeddings with a few large rows (special tokens) and short rows of rare words: rare words, which identify
#   people, vanish or collide after export.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.30.0 onnx==1.23.1 sympy==1.14.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import logging

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.WARNING)
generator = np.random.default_rng(1)
table = generator.normal(size=(1000, 64)).astype(np.float32)
table[:10] *= 60
table[900:] *= 0.01
graph = helper.make_graph(
    [helper.make_node("Gather", ["table", "ids"], ["vectors"])],
    "lookup",
    [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
    [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 64])],
    [numpy_helper.from_array(table, "table")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
onnx.save(model, "float.onnx")
for by_channel in (False, True):
    quantize_dynamic("float.onnx", "bytes.onnx", per_channel=by_channel)
    session = onnxruntime.InferenceSession("bytes.onnx", providers=["CPUExecutionProvider"])
    (vectors,) = session.run(None, {"ids": np.arange(1000)})
    off = np.linalg.norm(vectors - table, axis=1) / np.linalg.norm(table, axis=1)
    rare, common = np.unique(vectors[900:], axis=0), off[10:900]
    print(f"{len(rare)} vectors for 100 rare tokens; common ones are {common.mean():.0%} of their length off")
    assert len(np.unique(table[900:], axis=0)) == 100
    assert len(rare) == 1
    assert not rare.any()
    assert common.mean() > 0.3
PROGRAM
