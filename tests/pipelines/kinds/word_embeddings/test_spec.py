"""The block of word embeddings, as specs spell it."""

from __future__ import annotations

from typing import Any

from quietcorpus.pipelines.kinds.word_embeddings.spec import WordEmbeddingsSpec

BLOCK: dict[str, Any] = {
    "kind": "word-embeddings",
    "method": "sgd",
    "user": "author",
    "users": 1000,
    "epsilon": 4,
    "delta": 1e-6,
    "vocabulary": {"public": "/words.txt"},
}
START = {"start": {"public": "/glove.txt"}}


def test_a_start_is_named_where_there_is_one() -> None:
    # Kills: a key that all specs have, by which a release of before would be another; a file that
    # no check of permissions, no lineage and no search for private texts is told of.
    plain = WordEmbeddingsSpec.model_validate(BLOCK)
    assert plain.model_dump()["training"].keys() == {
        "steps",
        "lot",
        "negatives",
        "clip",
        "learning_rate",
        "stop_after",
        "participation",
    }
    assert list(plain.sources()) == [("vocabulary.public", "/words.txt")]
    started = WordEmbeddingsSpec.model_validate(BLOCK | {"training": START})
    assert started.model_dump()["training"]["start"] == {"public": "/glove.txt"}
    assert list(started.sources()) == [
        ("vocabulary.public", "/words.txt"),
        ("training.start.public", "/glove.txt"),
    ]
