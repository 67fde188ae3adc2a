"""`quietcorpus evaluate` of word embeddings beside public vectors, on classes and on numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from embedding_releases import common_words, embeddings
from evaluations import content_of, evaluate, figures

from quietcorpus.indexes.tokens.tokenizer import tokenize

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

USERS = 120
OPTIONS = ("--no-audit", "--label", "label", "--target", "points")
PUBLIC = ("--public-vectors", "public.txt")


@pytest.fixture(scope="module")
def evaluated(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> Workspace:
    """A report on texts whose class and number follow from their words' public vectors."""
    workspace = new_workspace(tmp_path_factory.mktemp("public"))
    texts = lee_texts[:USERS]
    words = common_words(texts, 60)
    vectors = dict(zip(words, np.random.default_rng(1).normal(size=(60, 6)), strict=True))
    vectors[words[1]] = vectors[words[0]] * 3  # of one direction, so nearest to each other
    found = tokenize(pa.array(texts))
    raw = found.data.tobytes()
    tokens = [raw[a:b].decode() for a, b in zip(found.starts, found.ends, strict=True)]
    unit = {word: vector / np.linalg.norm(vector) for word, vector in vectors.items()}
    sums = np.array(
        [
            sum((unit[t] for t in tokens[a:b] if t in unit), np.zeros(6))
            for a, b in zip(found.offsets, found.offsets[1:], strict=False)
        ]
    )
    points = 5 * sums[:, 0] - 3 * sums[:, 1]
    workspace.parquet(
        {
            "text": texts,
            "author": [f"user-{n}" for n in range(USERS)],
            "label": np.where(sums[:, 2] > np.median(sums[:, 2]), "high", "low"),
            "points": points,
            "name": [f"somebody-{n}" for n in range(USERS)],
        }
    )
    (workspace.folder / "words.txt").write_text("\n".join(words) + "\n")
    rows = [f"{word} {' '.join(f'{x:.6f}' for x in vectors[word])}" for word in words]
    (workspace.folder / "public.txt").write_text("\n".join(rows) + "\n")
    (workspace.folder / "two").write_text(" ".join(words[:2]))
    workspace.release(embeddings(workspace, "cooccurrence", users=USERS))
    of = ("--neighbours-of", f"{words[0]},{words[5]}")
    done = evaluate(workspace, *OPTIONS, *PUBLIC, *of, "--draws", "2")
    assert done.returncode == 0, done.stderr
    (workspace.folder / "printed").write_text(done.stdout)
    return workspace


def test_a_gain_is_the_difference_of_two_accuracies(evaluated: Workspace) -> None:
    # Kills: other folds for the vectors alone, the released vectors for the original ones, a
    # difference of the other sign, one vector in place of both.
    found = figures(content_of(evaluated))
    for subject in ("release", "original"):
        gain = found["accuracy", f"public-{subject}"] - found["accuracy", "public"]
        assert found["gain", f"public-{subject}"] == pytest.approx(gain)
    gains = [one for one in content_of(evaluated)["figures"] if one["measure"] == "gain"]
    assert len(gains) == 2
    for one in gains:
        first = one["first"]
        assert first["tried"] == USERS
        assert first["low"] <= first["value"] <= first["high"]
    assert ("gain", "public") not in found


def test_numbers_are_learnt_from_the_vectors_that_tell_them(evaluated: Workspace) -> None:
    # The number is a linear function of the public vectors. Kills: targets of other documents,
    # another vector's features, models or measures mixed up.
    content = content_of(evaluated)
    for model in ("ridge", "SVR"):
        found = figures(content, f"by {model}")
        assert found["correlation", "public"] > 0.9
        assert found["correlation", "release"] < found["correlation", "public"]
        assert found["rmse", "public"] < found["rmse", "release"]
    assert figures(content, "by ridge")["correlation", "public"] > 0.99
    assert figures(content)["accuracy", "public"] > 0.85


def test_nearest_words_stand_beside_each_other(evaluated: Workspace) -> None:
    # Kills: neighbours of another word, of another kind of vectors, the word itself.
    content = content_of(evaluated)
    one, other = (evaluated.folder / "two").read_text().split()
    told = content["neighbours"]
    assert next(iter(told)) == one
    assert told[one].keys() == {"release", "original", "public"}
    assert told[one]["public"][0] == other
    assert all(len(near) == 10 and one not in near for near in told[one].values())
    printed = (evaluated.folder / "printed").read_text()
    assert f"nearest   to {one}\n" in printed
    assert f"  public: {', '.join(told[one]['public'])}\n" in printed
    page = (evaluated.folder / "report/evaluation.html").read_text()
    assert ", ".join(told[one]["original"]) in page


def refused(workspace: Workspace, *arguments: str) -> str:
    done = evaluate(workspace, *arguments, "--no-audit", spec=None)
    assert done.returncode == 2, done.stderr
    assert "somebody-1" not in done.stderr
    return done.stderr.splitlines()[-1].removeprefix("quietcorpus: error: ")


def test_bad_input_is_one_line(evaluated: Workspace) -> None:
    (evaluated.folder / "strange.txt").write_text("zzzz 1 2\nyyyy 3 4\n")
    assert refused(evaluated, "--public-vectors", "nowhere.txt").startswith("--public-vectors: ")
    said = refused(evaluated, "--public-vectors", "strange.txt")
    assert said.endswith("strange.txt has no vector for any term of the vocabulary")
    assert refused(evaluated, "--target", "name") == (
        "--target: the column holds values that are not numbers"
    )
    assert "has no column 'none'" in refused(evaluated, "--target", "none")
    assert refused(evaluated, "--neighbours-of", "zzzz") == (
        "--neighbours-of: the release has no word 'zzzz'"
    )
    assert "has an empty word" in refused(evaluated, "--neighbours-of", "a,,b")


def test_they_serve_word_vectors_alone(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: an option that a kind ignores without a word.
    workspace.parquet({"text": lee_texts[:30]})
    workspace.release({})
    for option in ("--target", "--public-vectors", "--neighbours-of"):
        said = refused(workspace, option, "text")
        assert said == (f"{option}: is for releases of word vectors, not of bag-of-words")
