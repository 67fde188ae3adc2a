"""An installation without extras makes the releases that need none."""

from __future__ import annotations

import json
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
MODULES = (
    "quietcorpus.pipelines.kinds.bag_of_words.job",
    "quietcorpus.pipelines.kinds.histogram.job",
    "quietcorpus.pipelines.kinds.words.job",
    "quietcorpus.pipelines.release.dry_run",
    "quietcorpus.pipelines.init.proposal",
    "quietcorpus.beam",
)
IMPORT = """
import importlib, json, sys
modules, extras = map(json.loads, sys.argv[1:])
class Lacking:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in extras:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Lacking)
for module in modules:
    importlib.import_module(module)
"""


@pytest.mark.slow
def test_no_extra_is_imported() -> None:
    # Kills: an import of an optional package by what needs none; environments of tests have it. One
    # process imports all: what one module imported would be refused to the next no less.
    command = [sys.executable, "-P", "-c", IMPORT, json.dumps(MODULES), json.dumps(EXTRAS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
