#!/bin/bash
# onnxconverter-common 1.16.0, onnx 1.23.1: conversion to float16 changes numbers that float16 has.
#
# Guess: `convert_float_to_float16` rounds each weight to the nearest number of float16; what is beyond 65,504 is infinite or 65,504, and
#   what is below 6e-8 is 0.
# Seen: weights are cut to 10,000 and, unless they are 0, raised to 1e-7: 20,000 and 65,000 become 10,000, and 1e-9 a number a hundred times
#   as large. There is a warning that names the extremes; arguments of the function change them. onnxruntime.transformers, which has a copy
#   of the function, cuts at 65,504 and 6e-8.
# Met: halved encoders: masks of -65,504, token tables with outliers, counts and norms that are stored as weights. Which of the two copies a
#   tool calls decides.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxconverter-common==1.16.0 onnx==1.23.1 onnxruntime==1.30.0 sympy==1.14.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import warnings

import numpy as np
import onnxconverter_common.float16
import onnxruntime.transformers.float16
from onnx import TensorProto, helper, numpy_helper

warnings.simplefilter("ignore")
weights = np.array([1e-9, 0, 0.1, 20_000, 65_000, -65_000], np.float32)
shape = [len(weights)]
graph = helper.make_graph(
    [helper.make_node("Add", ["x", "w"], ["y"])],
    "sum",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    [numpy_helper.from_array(weights, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def converted(module) -> np.ndarray:
    halved = module.convert_float_to_float16(model, keep_io_types=True)
    return numpy_helper.to_array(next(each for each in halved.graph.initializer if each.name == "w"))


common = converted(onnxconverter_common.float16)
own = converted(onnxruntime.transformers.float16)
print("rounded            ", weights.astype(np.float16))
print("onnxconverter-common", common)
print("onnxruntime         ", own)
assert common[3] == common[4] == -common[5] == 10_000
assert 9e-8 < float(common[0]) < 2e-7
assert own[3] == 20_000
assert own[4] == np.float16(65_000)
PROGRAM
