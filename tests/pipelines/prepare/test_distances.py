"""Epsilons that match by the privacy ratio, and indexes whose distances cannot say."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from manifests import JUNK, PRIVATE, spoiled
from scipy.spatial.distance import pdist

from quietcorpus.evaluation.distances import Distances, Estimate
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.indexes.words.word_index import open_index, save
from quietcorpus.mechanisms.words.brr import BinaryRandomizedResponse
from quietcorpus.mechanisms.words.madlib import Madlib
from quietcorpus.pipelines.kinds.words.job import WordsKind
from quietcorpus.pipelines.prepare.distances import distance, matched, summary
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

MADLIB, BRR = Madlib(), BinaryRandomizedResponse()
EXACT = Estimate(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))


def test_what_a_manifest_says_of_distances() -> None:
    # A rational stays one, a bound is not what was met, and an interval stands where one is.
    bound = Estimate(Fraction(5), Fraction(5), Fraction(13, 2))
    assert summary(Distances("bits", EXACT, bound)) == {
        "unit": "bits",
        "mean": "1/3",
        "maximum": "6.5",
        "largest_met": "5.0",
    }
    sampled = Estimate(Fraction(0.1), Fraction(0.05), Fraction(1, 7))
    said = summary(Distances("vector units", sampled, bound))
    assert (said["mean"], said["mean_interval"]) == ("0.1", ["0.05", "1/7"])


def test_the_index_says_how_far_apart_its_words_are(word_index: Path) -> None:
    index = open_index(str(word_index))
    bits = np.unpackbits(np.array(index.codes).view(np.uint8), axis=1)
    for mechanism, found in (
        (MADLIB, pdist(index.vectors.astype(np.float64))),
        (BRR, pdist(bits, "hamming") * bits.shape[1]),
    ):
        assert float(distance(index.manifest, mechanism, "mean")) == pytest.approx(found.mean())
        assert float(distance(index.manifest, mechanism, "maximum")) == pytest.approx(found.max())
    pairs = len(bits) * (len(bits) - 1) // 2
    assert pairs % distance(index.manifest, BRR, "mean").denominator == 0


def test_the_ratio_is_exact_and_has_a_direction(word_index: Path) -> None:
    # Kills: a ratio upside down, of floats, or of the other metric.
    manifest = open_index(str(word_index)).manifest
    epsilon = Fraction(3, 10)
    for by in ("mean", "maximum"):
        theirs, ours = (distance(manifest, m, by) for m in (MADLIB, BRR))
        found = matched(epsilon, MADLIB, BRR, by, manifest)
        assert found * ours == epsilon * theirs
        assert found < epsilon  # bits are small units
        assert matched(found, BRR, MADLIB, by, manifest) == epsilon


def test_a_mean_from_a_sample_errs_against_the_publisher(word_index: Path) -> None:
    # Kills: a matched epsilon that is too large wherever the sample was unlucky.
    manifest = open_index(str(word_index)).manifest
    euclidean = dict(manifest.distances["euclidean"]) | {"mean_interval": ["1.4", "1.5"]}
    distances = dict(manifest.distances) | {"euclidean": euclidean}
    sampled = dataclasses.replace(manifest, distances=distances)
    hamming = distance(manifest, BRR, "mean")
    assert matched(Fraction(10), MADLIB, BRR, "mean", sampled) == 14 / hamming
    assert matched(Fraction(10), BRR, MADLIB, "mean", sampled) == 10 * hamming / Fraction("1.5")
    found = matched(Fraction(10), MADLIB, BRR, "maximum", sampled)
    assert found == matched(Fraction(10), MADLIB, BRR, "maximum", manifest)


@pytest.fixture
def spec(workspace: Workspace) -> Callable[..., Any]:
    """The words block of a spec that names an index in the workspace."""

    def load(**block: Any) -> Any:
        whole = {"kind": "words", "mechanism": "brr", "epsilon": 10, "index": "index"} | block
        changes = {"mechanism": {key: value for key, value in whole.items() if value is not ...}}
        found = load_spec(str(workspace.spec(changes))).mechanism
        # In-process, paths are relative to this process's folder.
        return found.model_copy(update={"index": str(workspace.folder / "index")})

    return load


@pytest.fixture
def index(workspace: Workspace, word_index: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(word_index, workspace.folder / "index")


def refusal(spec: Any) -> str:
    with pytest.raises(InputError) as raised:
        WordsKind.resolve(spec)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_epsilon_that_leaves_nothing(spec: Callable[..., Any], index: Path) -> None:
    for key in ("epsilon", "document_epsilon"):
        found = refusal(spec(**{"epsilon": ..., key: 1e-9}))
        assert found.startswith(f"mechanism.{key}: 1e-09 is so small that nothing of a word is lef")
        matching = {"matching": {"mechanism": "madlib", "epsilon": 1e-6}}
        found = refusal(spec(**{"epsilon": ..., key: matching}))
        assert found.startswith(f"mechanism.{key}: ")
    assert WordsKind.resolve(spec(epsilon=1e-6)).parameters.epsilon == Fraction(1, 10**6)


def test_an_epsilon_that_matching_makes_absurd(spec: Callable[..., Any], index: Path) -> None:
    # Where a number is written, 1e9 is the limit.
    matching = {"matching": {"mechanism": "brr", "epsilon": 9e8}}
    found = refusal(spec(mechanism="madlib", epsilon=matching))
    assert found.startswith("mechanism.epsilon: ")


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a manifest, but for its files and measures."""
    for key, value in content.items():
        if key not in ("files", "measures"):
            yield (*path, key)
            if isinstance(value, dict):
                yield from places(value, (*path, key))


def shrunk(folder: Path) -> Path:
    """The index of a few of its words, which is quickly opened and explained."""
    index = open_index(str(folder))
    few = Vocabulary(index.vocabulary.terms.to_pylist()[:8])
    arrays = np.array(index.vectors[:8]), np.array(index.codes[:8])
    save(str(folder), dataclasses.replace(index.manifest, words=8), few, *arrays)
    return folder


@pytest.mark.slow
def test_any_manifest_is_good_or_refused_before_the_run(
    spec: Callable[..., Any], index: Path
) -> None:
    # Kills: a value that nobody checks, and that ends a run, when all its work is done, as an
    # unexpected error; or, worse, an epsilon that a manifest has made negative.
    path = shrunk(index) / "manifest.json"
    whole = json.loads(path.read_text()) | PRIVATE
    for metric in ("euclidean", "hamming"):
        whole["distances"][metric]["mean_interval"] = ["1.4", "1.5"]
    matching = spec(epsilon={"matching": {"mechanism": "madlib", "epsilon": 10}})
    wrong = []
    for value, content in spoiled(whole, places(whole), [*JUNK, "nan", "1/0"]):
        path.write_text(json.dumps(content))
        try:
            kind = WordsKind.resolve(matching)
            assert kind.artefacts
            assert kind.parameters.epsilon > 0
            for mechanism in (MADLIB, BRR):
                for by in ("mean", "maximum"):
                    assert distance(kind.index.manifest, mechanism, by) >= 0
        except InputError:
            continue
        except Exception as error:
            wrong.append((*value, repr(error)[:80]))
    assert not wrong, "\n".join(map(str, wrong))
