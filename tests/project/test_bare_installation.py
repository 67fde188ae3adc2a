"""An installation without extras makes the releases that need none."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The packages of extras that tests have and a bare installation lacks.
EXTRAS = (
    "dp_accounting",
    "flint",
    "gensim",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "opentelemetry",
    "openlineage",
    "pandas",
    "ray",
    "safetensors",
    "sentence_transformers",
    "sentencex",
    "sklearn",
    "tokenizers",
    "tomotopy",
    "wordfreq",
    "torch",
)
IMPORT = """
import importlib, sys
class Lacking:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Lacking)
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module",
    [
        "pipelines.kinds.bags",
        "pipelines.kinds.histogram",
        "pipelines.kinds.words",
        "pipelines.release.dry_run",
        "pipelines.init.proposal",
        "beam",
    ],
)
def test_no_extra_is_imported(module: str) -> None:
    # Kills: an import of an optional package by what needs none; environments of tests have it.
    command = [sys.executable, "-P", "-c", IMPORT, f"quietcorpus.{module}", *EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
