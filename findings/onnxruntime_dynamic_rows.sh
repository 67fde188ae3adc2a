#!/bin/bash
# onnxruntime 1.30.0, onnx 1.23.1, Python 3.11: after dynamic quantisation, a row's result depends on the other rows of its batch.
#
# Guess: "dynamic" quantisation finds the scale of activations when a model runs, for each row or token, as LLM.int8() does; weights have
#   fixed scales. So a row has one result, whatever stands beside it.
# Seen: one scale for the whole batch (`DynamicQuantizeLinear` is of a tensor). A row of 384 numbers alone has a product 1.3 % off the exact
#   one; beside a row of ten times its size, 7.2 %. Rows of like size change one another's digits, too (1.4 %).
# Met: sentence encoders that are quantised so (`export_dynamic_quantized_onnx_model` of sentence-transformers): a text's embedding hangs on
#   its neighbours and on the batch size; under sentence-level privacy, one sentence then changes the embeddings of others.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.30.0 onnx==1.23.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

generator = np.random.default_rng(1)
weights = generator.normal(size=(384, 384)).astype(np.float32)
shape = ["rows", 384]
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    "product",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    [numpy_helper.from_array(weights, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
onnx.save(model, "float.onnx")
quantize_dynamic("float.onnx", "int8.onnx")
session = onnxruntime.InferenceSession("int8.onnx", providers=["CPUExecutionProvider"])


def product(*rows: np.ndarray) -> np.ndarray:
    """The product of the first row, in a batch of all."""
    return session.run(None, {"x": np.stack(rows)})[0][0]


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


row, like = generator.normal(size=(2, 384)).astype(np.float32)
large = 10 * like
exact, alone = row @ weights, product(row)
print(f"alone: {apart(alone, exact):.4f} from the exact product")
print(f"beside a row of its size: {apart(product(row, like), exact):.4f}")
print(f"beside one ten times as large: {apart(product(row, large), exact):.4f}")
assert apart(alone, exact) < 0.03
assert not np.array_equal(product(row, like), alone)
assert apart(product(row, large), exact) > 3 * apart(alone, exact)
PROGRAM
