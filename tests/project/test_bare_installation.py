"""An installation without extras makes the releases that need none, and audits and checks them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import not_installed
from workspace import TERMS

if TYPE_CHECKING:
    from tests.conftest import Workspace

# The packages of extras that tests have and a bare installation lacks.
EXTRAS = (
    "dp_accounting",
    "docstring_parser",
    "flint",
    "gensim",
    "icu4py",
    "jsonschema",
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
    "spellchecker",
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


KINDS: dict[str, dict[str, Any]] = {
    "bag-of-words": {"histogram_epsilon": 0.5, "compression": {"method": "frequency", "size": 3}},
    "histogram": {"vocabulary": {"private": {"epsilon": 1, "delta": 1e-6}}, "compression": ...},
    "words": {"mechanism": "madlib", "epsilon": 5},
}
ENDINGS = "^$|install the extra "
"""The errors of a command that works, or that lacks a package."""
FURTHER = (
    "calibrate bag-of-words input/corpus.jsonl --vocabulary vocabulary.txt --epsilons 1",
    "calibrate words index --mechanism madlib --epsilons 5 --output calibrated",
    "canaries spec.yaml --quiet",
    "card export released/out --as croissant",
    "evaluate released/out --against input/corpus.jsonl --spec spec.yaml --output report",
    "index build-candidates input/corpus.jsonl --output made --provenance public",
    "index build-encoder . --public input/corpus.jsonl --output encoder",
    "index build-pool input/corpus.jsonl --output pool --provenance public",
    "index build-vocabulary --language en --output vocabulary",
    "index show index",
    "init input/corpus.jsonl --want counts --output first.yaml",
    "provenance spec.yaml --report report.json --public input/corpus.jsonl --accept 40",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_command_ends_for_want_of_a_package(
    kind: str, workspace: Workspace, lee_file: Callable[[str], Path], lee_texts: list[str]
) -> None:
    # Kills: an import of an extra, by a command, that needs none, or does not name the extra: an
    # audit of bags did not run without the extra of word embeddings.
    environment = not_installed(workspace, *EXTRAS)
    workspace.json_lines([f"{text} {' '.join(TERMS)}" for text in lee_texts[:40]])

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return workspace.run(*command.split(), environment=environment, fresh=True)

    own: dict[str, Any] = {"kind": kind} | KINDS[kind]
    if kind == "words":
        vectors = lee_file("lee_fasttext.vec")
        built = run(f"index build {vectors} --output index --provenance public")
        assert built.returncode == 0, built.stderr
        own |= {"index": "index", "vocabulary": ..., "compression": ..., "precision": ...}
    workspace.spec({f"mechanism.{key}": value for key, value in own.items()})
    for command in ("release spec.yaml --dry-run", "release spec.yaml", "verify released/out"):
        done = run(command)
        assert done.returncode == 0, done.stderr
    done = run("audit spec.yaml")
    assert done.returncode == 0, done.stderr
    ended = {command: run(command).stderr for command in FURTHER if kind == "words"}
    unexpected = {own: said for own, said in ended.items() if not re.search(ENDINGS, said)}
    assert unexpected == {}
