"""`index build --rescale`: an index of rescaled vectors, and what is refused."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from noisy_queries import clustered
from scipy.spatial.distance import pdist, squareform

from quietcorpus.indexes.folder import ArtefactError
from quietcorpus.indexes.maps.rescaling import by_covariance, by_information
from quietcorpus.indexes.search import inverted_lists
from quietcorpus.indexes.search.euclidean import Within
from quietcorpus.indexes.search.faiss_library import faiss
from quietcorpus.indexes.words.word_index import WordIndex, open_index
from quietcorpus.mechanisms.words.distance_draws import Decline, DistanceDraws
from quietcorpus.pipelines.kinds.words.laws import largest_loss
from quietcorpus.pipelines.prepare import word_index as index
from quietcorpus.transforms.errors import InputError

COUNT, DIMENSIONS = 200, 6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"w{a}{b}" for a in LETTERS for b in LETTERS][:COUNT]
SETTINGS = {"provenance": "public", "guarantee": None, "bits": 64, "seed": 1}
WEIGHTS = 1e6 / np.arange(1, COUNT + 1) ** 2


@pytest.fixture
def vectors(tmp_path: Path) -> np.ndarray:
    made = clustered(COUNT, DIMENSIONS) * np.float32([10, 1, 1, 1, 1, 1])
    np.save(tmp_path / "v.npy", made)
    (tmp_path / "v.txt").write_text("".join(f"{word}\n" for word in WORDS))
    return made


def build(folder: Path, name: str = "v.npy", **options: Any) -> Path:
    index.build(f"{folder}/{name}", f"{folder}/made", **SETTINGS | options)
    return folder / "made"


def weighed(folder: Path, words: list[str] = WORDS, weights: Any = WEIGHTS) -> str:
    """Write a file of weights, in another order than the vectors'."""
    table = pa.table({"term": words[::-1], "weight": np.asarray(weights)[::-1]})
    pq.write_table(table, folder / "weights.parquet")
    return str(folder / "weights.parquet")


def refusal(folder: Path, name: str = "v.npy", **options: Any) -> str:
    with pytest.raises(InputError) as raised:
        build(folder, name, **options)
    assert not (folder / "made" / "manifest.json").exists()
    assert "\n" not in str(raised.value)
    return str(raised.value)


def check_distances(made: WordIndex) -> None:
    """Check that the manifest's distances are those of the index's own vectors."""
    apart = pdist(made.vectors.astype(np.float64))
    given = made.manifest.distances["euclidean"]
    assert float(Fraction(given["mean"])) == pytest.approx(apart.mean(), rel=1e-5)
    assert float(Fraction(given["maximum"])) >= apart.max() * (1 - 1e-6)


def test_an_index_of_mahalanobis_distances(tmp_path: Path, vectors: np.ndarray) -> None:
    # Kills: a map that is recorded and not made, distances and codes of the vectors before it.
    made = open_index(str(build(tmp_path, rescale="covariance:lambda=0.2")))
    assert made.manifest.rescaled == {"by": "covariance", "lambda": "1/5"}
    np.testing.assert_array_equal(made.vectors, by_covariance(vectors, 0.2))
    check_distances(made)
    (tmp_path / "plain").mkdir()
    index.build(f"{tmp_path}/v.npy", f"{tmp_path}/plain", **SETTINGS)
    plain = open_index(str(tmp_path / "plain"))
    assert (plain.codes != made.codes).any()
    assert plain.manifest.rescaled is None
    assert "rescaled" not in json.loads((tmp_path / "plain" / "manifest.json").read_text())


def test_an_index_by_information(tmp_path: Path, vectors: np.ndarray) -> None:
    # Kills: weights by position instead of by word, a record without the file they are of.
    weights = weighed(tmp_path)
    made = open_index(str(build(tmp_path, rescale="information:power=1.5", public_weights=weights)))
    digest = hashlib.sha256(Path(weights).read_bytes()).hexdigest()
    assert made.manifest.rescaled == {"by": "information", "power": "3/2", "weights": digest}
    np.testing.assert_array_equal(made.vectors, by_information(vectors, WEIGHTS, 1.5))
    check_distances(made)
    assert any("rescaled" in line for line in index.show(str(tmp_path / "made"), []))


@pytest.mark.parametrize("rescale", ["covariance:lambda=0.9", "information:power=2"])
def test_the_guarantee_holds_for_rescaled_distances(
    tmp_path: Path, vectors: np.ndarray, rescale: str
) -> None:
    # All pairs of words and all outputs, exactly: within epsilon a unit of the rescaled distance,
    # and, the control, not a unit of the distance before. Kills: draws by the vectors' own
    # distances on an index that states rescaled ones.
    weights = weighed(tmp_path) if rescale.startswith("information") else None
    made = open_index(str(build(tmp_path, rescale=rescale, public_weights=weights)))
    epsilon = Fraction(2)
    apart = squareform(pdist(np.asarray(made.vectors).astype(np.float64)))

    def loss(places: np.ndarray) -> float:
        draws = DistanceDraws(Within(places), Decline(epsilon))
        return largest_loss(draws.log_laws(np.arange(COUNT, dtype=np.int32)), apart)

    assert loss(np.asarray(made.vectors)) <= epsilon
    assert loss(vectors) > epsilon


@pytest.mark.parametrize(
    ("rescale", "message"),
    [
        ("covariance", "rescale: 'covariance' is not allowed; give covariance:lambda=NUMBER or"),
        ("covariance:power=1", "rescale: 'covariance:power=1' is not allowed"),
        ("covariance:lambda=-1", "rescale: 'covariance:lambda=-1' is not allowed"),
        ("density:power=1", "rescale: 'density:power=1' is not allowed"),
        ("information:power=nan", "rescale: 'information:power=nan' is not allowed"),
        ("covariance:lambda=1", "rescale: lambda must be below 1"),
        ("information:power=0", "rescale: power must be above 0, and at most 4"),
        ("information:power=4.1", "rescale: power must be above 0, and at most 4"),
        ("information:power=1", "rescale: information needs public weights"),
    ],
)
def test_maps_of_no_use(tmp_path: Path, vectors: np.ndarray, rescale: str, message: str) -> None:
    assert message in refusal(tmp_path, rescale=rescale)


def test_weights_of_no_use(tmp_path: Path, vectors: np.ndarray) -> None:
    # Kills: weights that are given and change nothing.
    weights = weighed(tmp_path)
    assert "public_weights: they are for `rescale`" in refusal(tmp_path, public_weights=weights)
    covariance = {"rescale": "covariance:lambda=0.2", "public_weights": weights}
    assert "public_weights: they are for information" in refusal(tmp_path, **covariance)
    power = {"rescale": "information:power=1", "public_weights": weights}
    others = weighed(tmp_path, ["zz"], [1.0])
    assert f"public_weights: {others} gives no word of the index" in refusal(tmp_path, **power)
    Path(others).write_bytes(b"PAR1")
    assert "is not a Parquet file with the columns term and weight" in refusal(tmp_path, **power)
    Path(others).unlink()
    assert f"public_weights: {others} cannot be read" in refusal(tmp_path, **power)


def test_vectors_in_lists_are_not_rescaled(tmp_path: Path, vectors: np.ndarray) -> None:
    lists = inverted_lists.train(vectors, 10, seed=5, threads=1).faiss_index
    faiss().write_index(lists, str(tmp_path / "v.faiss"))
    found = refusal(tmp_path, "v.faiss", rescale="covariance:lambda=0.2")
    assert "has inverted lists, which are not those of rescaled vectors" in found
    made = build(tmp_path, rescale="covariance:lambda=0.2", search="ivf:lists=10")
    assert open_index(str(made)).lists is not None


@pytest.mark.parametrize(
    "record",
    [
        {"by": "covariance"},
        {"by": "covariance", "lambda": "1/5", "weights": "0"},
        {"by": "covariance", "lambda": 0.2},
        {"by": "information", "power": "1"},
        {"by": "density", "power": "1"},
        {},
        [],
        None,
        "covariance",
    ],
)
def test_a_map_that_no_build_makes(tmp_path: Path, vectors: np.ndarray, record: Any) -> None:
    made = build(tmp_path)
    content = json.loads((made / "manifest.json").read_text())
    (made / "manifest.json").write_text(json.dumps(content | {"rescaled": record}))
    with pytest.raises(ArtefactError, match="with values that no index has"):
        open_index(str(made))
