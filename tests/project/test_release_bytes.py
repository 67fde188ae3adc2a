"""Every data file of one small release of each kind, by its SHA-256.

A run that a crash cut short may be finished by a later version of the software, if the versions of
the laws of its noise are the same (`Kind.laws`). `stage_laws.json` pins each law by itself;
`release_bytes.json` pins what they make together, and how it is written, with the libraries that it
names. Whoever changes a digest does what the message of the test says; then

    python tests/project/test_release_bytes.py tests/project/release_bytes.json

writes the file anew (with this folder's parent on the path). The digests hold on
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
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from golden_releases import KINDS, fixed, publish
from machine import ROOT

from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.pipelines.jobs.kind import prepare
from quietcorpus.pipelines.kinds.word_embeddings.methods import TrainedEmbeddingsKind
from quietcorpus.pipelines.release.existing import whole_difference

TABLE = Path(__file__).with_name("release_bytes.json")
LAWS = Path(__file__).with_name("stage_laws.json")
OF_THE_CARD = ("release.json", "README.md", "page.html")
WITHOUT_NOISE = {("shards", 1), ("claim", 1)}
"""Stages of all kinds, by which documents are spread over files, and runs told apart."""
LIBRARIES = ("cryptography", "numba", "numpy", "pyarrow", "scipy", "sentencex")
PINNED: dict[str, tuple[str, ...]] = {"word-embeddings": ("vocabulary.parquet",)}
"""Of kinds with files that depend on the processor, those that do not."""


class Made(NamedTuple):
    """A release: the SHA-256 of its files but the card's three, and what it was drawn from.

    Attributes:
        digests: by the path.
        stages: the name and the version of every stage that was opened.
        laws: what the kind says of them.
        difference: what on the card is not as its own spec says.
    """

    digests: dict[str, str]
    stages: set[tuple[str, int]]
    laws: Mapping[str, int] | None
    difference: str | None


@functools.cache
def made(name: str) -> Made:
    """Make a release in this folder."""
    stages: set[tuple[str, int]] = set()
    own = ReleaseKey.stage

    def recorded(key: ReleaseKey, stage: str, version: int, /, **parameters: Value) -> Keystream:
        stages.add((stage, version))
        return own(key, stage, version, **parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReleaseKey, "stage", recorded)
        loaded = publish(name)
    out = Path(f"out-{name}")
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    digests = {
        path: hashlib.sha256(file.read_bytes()).hexdigest()
        for path, file in sorted(files.items())
        if path in PINNED.get(name, files) and path not in OF_THE_CARD
    }
    difference = whole_difference(verify(str(out)), loaded)
    return Made(digests, stages, prepare(loaded).laws, difference)


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


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_accepts_its_own_releases(name: str) -> None:
    # Kills: a card that states a value which the spec leaves out, and that counts as another's.
    assert made(name).difference is None


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
