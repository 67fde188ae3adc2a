"""Every data file of one small release of each kind, by its SHA-256.

A run that a crash cut short may be finished by a later version of the software, if the versions of
the laws of its noise are the same (`Kind.laws`). `stage_laws.json` pins each law by itself;
`release_bytes.json` pins what they make together, and how it is written, with the libraries that it
names. Whoever changes a digest does what the message of the test says; then

    python tests/project/test_release_bytes.py tests/project/release_bytes.json

writes the file anew (with this folder's parent and `build/links` on the path). The digests hold on
every processor: the encoder of these tests hashes, and its vectors, like those of the index, are
whole numbers on a coarse grid, so that no sum is rounded. What depends on the processor is not
here: the vectors of `word-embeddings`, of whose release only the words are pinned, and all of a
training, whose noise is bound to every byte of the software.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hashed_sentences import Hashed
from machine import MASTER_KEY, ROOT

from quietcorpus.indexes import candidates, pool, word_index
from quietcorpus.indexes.pool import Pool, PoolManifest
from quietcorpus.indexes.recoder import WIDTHS, Recoder
from quietcorpus.indexes.sentences import NAME
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.indexes.word_index_manifest import METRICS, IndexManifest
from quietcorpus.mechanisms.deep_candidate import on_grid
from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.pipelines.engine.engine import Engine
from quietcorpus.pipelines.kinds.embeddings_trained import TrainedEmbeddingsKind
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.release.release import release
from quietcorpus.pipelines.spec.loading import load_spec
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.reading.documents import Plan

TABLE = Path(__file__).with_name("release_bytes.json")
LAWS = Path(__file__).with_name("stage_laws.json")
WITHOUT_NOISE = {("shards", 1), ("claim", 1)}
"""Stages of all kinds, by which documents are spread over files, and runs told apart."""
LIBRARIES = ("cryptography", "numba", "numpy", "pyarrow", "scipy", "sentencex")
HERE = "/proc/self/cwd"
"""A path of the corpus that is the same in every folder: noise is bound to a document's place."""
SIZE, DIMENSIONS = 8, 12
WORDS = [a + b for a in "bdfg" for b in "aeio"]
TEXTS = [
    f"{WORDS[n % 16]} {WORDS[n * 5 % 16]}. {WORDS[n * 7 % 16]} {WORDS[n % 16]} {WORDS[n % 3]}!"
    for n in range(120)
]
ENCODER = EncoderSource("mechanism.encoder", "hashed", "0" * 64, "torch", "float32", "none")
PUBLIC = {"public": "words.txt"}
KINDS: dict[str, dict[str, Any]] = {
    "bag-of-words": {
        **{"precision": 3, "epsilon": 4, "histogram_epsilon": 1, "vocabulary": PUBLIC},
        **{"compression": {"method": "frequency", "size": 8}, "include": ["bins"]},
    },
    "histogram": {
        **{"precision": 3, "epsilon": 1},
        "vocabulary": {"private": {"epsilon": 0.8, "delta": 0.01}},
    },
    "words": {"mechanism": "madlib", "epsilon": 2, "index": "index", "out_of_vocabulary": "draw"},
    "words, brr": {"mechanism": "brr", "epsilon": 1, "index": "index"},
    "sentence-embeddings": {
        **{"mechanism": "deep-candidate", "epsilon": 9, "candidates": "candidates"},
        **{"projections": 5, "encoder": "hashed"},
    },
    "public-texts": {
        **{"pool": "pool", "epsilon": 20, "delta": 1e-3, "nearest": 2, "encoder": "hashed"},
    },
    "public-texts, resampled": {
        **{"pool": "pool", "epsilon": 20, "delta": 1e-3, "nearest": 2, "encoder": "hashed"},
        **{"resample": 50},
    },
    "public-texts, users": {
        **{"pool": "pool", "epsilon": 20, "delta": 1e-3, "nearest": 2, "encoder": "hashed"},
        **{"user": "author", "users": 120},
    },
    "word-embeddings": {
        **{"method": "cooccurrence", "user": "author", "users": 120, "epsilon": 60},
        **{"delta": 1e-3, "vocabulary": {"private": {"epsilon": 20, "delta": 1e-4, "words": 5}}},
        **{"dimensions": 2, "few_users": "accept"},
    },
}
PINNED: dict[str, tuple[str, ...]] = {"word-embeddings": ("vocabulary.parquet",)}
"""Of kinds with files that depend on the processor, those that do not."""


def make_artefacts() -> None:
    """Write a corpus, an index, candidates and a pool, of whole numbers, into this folder."""
    texts = {"text": TEXTS, "author": [f"u{n}" for n in range(len(TEXTS))]}
    pq.write_table(pa.table(texts), "corpus.parquet", row_group_size=50)
    Path("words.txt").write_text("\n".join(WORDS) + "\n")
    _make_index()
    _make_candidates()
    vectors = on_grid(Hashed(DIMENSIONS).encode(WORDS))
    encoder = {"name": "hashed", "sha256": ENCODER.digest, "dimensions": DIMENSIONS}
    source = {"pattern": "p", "documents": len(WORDS)}
    left_out = {"empty": 0, "equal": 0, "near": 0}
    public = PoolManifest("public", None, source, encoder, len(WORDS), left_out, 0.95, "test")
    Path("pool").mkdir()
    pool.save("pool", Pool(public, pa.array(WORDS, pa.large_string()), vectors))


def _make_index() -> None:
    places = np.arange(len(WORDS))
    vectors = np.stack([places % 4, places // 4], axis=1).astype(np.float32)
    codes = places.astype(np.uint64)[:, None] << np.uint64(60)
    apart = {m: {"mean": "1", "maximum": "2", "largest_met": "2"} for m in METRICS}
    manifest = IndexManifest(
        **{"provenance": "public", "guarantee": None, "source": {"uri": "v", "sha256": "0"}},
        **{"words": len(WORDS), "dimensions": 2, "bits": 64, "tokenizer": "unicode-words-v1"},
        **{"seed": 0, "measures": {}, "distances": apart, "builder": "test"},
    )
    Path("index").mkdir()
    word_index.save("index", manifest, Vocabulary(WORDS), vectors, codes)


def _make_candidates() -> None:
    sizes = [DIMENSIONS, *WIDTHS]
    recoder = Recoder(
        [np.eye(a, b, dtype=np.float32) * 128 for a, b in zip(sizes[:1], WIDTHS, strict=False)]
        + [np.eye(a, b, dtype=np.float32) for a, b in zip(WIDTHS, WIDTHS[1:], strict=False)],
        [np.zeros(width, np.float32) for width in WIDTHS],
    )
    embeddings = Hashed(DIMENSIONS).encode(WORDS[:SIZE])
    directions = np.zeros((5, WIDTHS[-1]))
    directions[np.arange(5), np.arange(5)] = 1
    encoder = {"name": "hashed", "sha256": ENCODER.digest, "dimensions": DIMENSIONS}
    manifest = candidates.CandidatesManifest(
        **{"provenance": "public", "guarantee": None, "encoder": encoder, "splitter": NAME},
        **{"source": {"pattern": "p", "documents": 60}, "language": "en", "least_sentences": 1},
        **{"most_sentences": 8, "candidates": SIZE, "projections": 5, "cosines": (-0.5, 0.75)},
        **{"seed": 0, "measures": {}, "builder": "test"},
    )
    box = np.stack([np.full(DIMENSIONS, -0.5), np.ones(DIMENSIONS)])
    made = candidates.Candidates(
        **{"manifest": manifest, "embeddings": embeddings, "centre": np.zeros(DIMENSIONS)},
        **{"box": box, "projections": directions, "recoded": recoder.recode(embeddings)},
        recoder=recoder,
    )
    Path("candidates").mkdir()
    candidates.save("candidates", made)


@contextmanager
def fixed(folder: Path) -> Iterator[None]:
    """Have releases in this process draw the same noise whenever, and from whatever folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
        patch.setattr(Plan, "corpus_digest", lambda *_: bytes(32))
        patch.setattr(EncoderSource, "resolve", lambda key, _: replace(ENCODER, key=key))
        patch.setattr(EncoderSource, "open", lambda _: Hashed(DIMENSIONS))
        make_artefacts()
        yield


class Made(NamedTuple):
    """A release: the SHA-256 of its files but the card's two, and what it was drawn from.

    Attributes:
        digests: by the path.
        stages: the name and the version of every stage that was opened.
        laws: what the kind says of them.
    """

    digests: dict[str, str]
    stages: set[tuple[str, int]]
    laws: Mapping[str, int] | None


@functools.cache
def made(name: str) -> Made:
    """Make a release in this folder."""
    block = {"kind": name.split(",", maxsplit=1)[0], **KINDS[name]}
    spec = {"release": "golden", "input": {"path": f"{HERE}/corpus.parquet"}, "mechanism": block}
    Path("spec.yaml").write_text(json.dumps(spec | {"output": f"{HERE}/out-{name}"}))
    stages: set[tuple[str, int]] = set()
    own = ReleaseKey.stage

    def recorded(key: ReleaseKey, stage: str, version: int, /, **parameters: Value) -> Keystream:
        stages.add((stage, version))
        return own(key, stage, version, **parameters)

    loaded = load_spec("spec.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReleaseKey, "stage", recorded)
        release(loaded, Engine([], 1), lambda: None)
    out = Path(f"out-{name}")
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    digests = {
        path: hashlib.sha256(file.read_bytes()).hexdigest()
        for path, file in sorted(files.items())
        if path in PINNED.get(name, files) and path not in ("release.json", "README.md")
    }
    return Made(digests, stages, prepare(loaded).laws)


def installed() -> dict[str, str]:
    """The versions of what makes and writes the files."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"python": python} | {name: version(name) for name in LIBRARIES}


@pytest.fixture(scope="module")
def known() -> Mapping[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with fixed(tmp_path_factory.mktemp("golden")):
        yield


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", KINDS)
def test_the_bytes_of_a_release_are_as_the_versions_say(
    name: str, known: Mapping[str, Any]
) -> None:
    # Kills: a draw, an order of rows, a table or an encoding that changes with no version raised.
    if installed() != known["libraries"]:
        pytest.skip(f"written with other libraries: {known['libraries']}")
    assert made(name).digests == known["releases"][name], (
        f"a release of {name!r} has other bytes. If its values changed, raise the version of the "
        "stage that draws them, where it is opened and in the kind's `laws`, and write "
        "stage_laws.json anew; if only their order or encoding changed, nothing is raised. Either "
        "way write release_bytes.json anew, and say in the changelog what changed (Privacy)"
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_names_every_law_of_its_noise(name: str) -> None:
    # Kills: a stage that a kind draws from and does not name, or names by an older version: another
    # law's run then finishes what this one's has begun to publish, and two draws are told as one.
    stages, laws = made(name).stages, made(name).laws
    assert laws is not None
    assert stages - WITHOUT_NOISE <= set(laws.items())
    known = json.loads(LAWS.read_text())
    versions = {(stage.split(",")[0], law["version"]) for stage, law in known.items()}
    assert set(laws.items()) <= versions


def test_a_training_can_be_finished_by_no_other_version() -> None:
    # Kills: a training that names its stages, whose noise another version draws independently.
    assert TrainedEmbeddingsKind.laws is None


def test_the_libraries_are_those_that_are_installed_here(known: Mapping[str, Any]) -> None:
    # Kills: a table of libraries that nobody installs, by which every test above is skipped.
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert {name: pinned[name] for name in LIBRARIES} == {
        name: known["libraries"][name] for name in LIBRARIES
    }
    assert known["releases"].keys() == KINDS.keys()


def main(table: Path) -> None:
    """Write the table anew."""
    table = table.resolve()
    with TemporaryDirectory() as folder, fixed(Path(folder)):
        releases = {name: made(name).digests for name in KINDS}
    content = {"libraries": installed(), "releases": releases}
    table.write_text(json.dumps(content, indent=2) + os.linesep)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
