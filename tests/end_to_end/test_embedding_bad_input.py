"""Bad input to releases of word embeddings, in the corpus or on the machine: one line each, and
nothing written; and corpora that are odd, and of which a release is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from embedding_releases import (
    BUDGETS,
    EITHER,
    PRIVATE,
    WORDS,
    documents,
    embeddings,
    prepare,
    vectors_of,
    write_corpus,
)
from sentence_releases import refusal

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Terms

if TYPE_CHECKING:
    from tests.conftest import Workspace

USERS = 60
TRAINING = {"steps": 3, "lot": 30}


@pytest.fixture
def prepared(workspace: Workspace, lee_texts: list[str]) -> Workspace:
    """A corpus of a few users."""
    (workspace.input / "corpus.jsonl").unlink()
    prepare(workspace, lee_texts[:USERS])
    return workspace


def changes_of(workspace: Workspace, method: str, /, **block: Any) -> dict[str, Any]:
    few = {"users": USERS} | ({"training": TRAINING} if method == "sgd" else {})
    return embeddings(workspace, method, **few | block) | {"input": {"path": "input/*"}}


def noisy_refusal(workspace: Workspace, changes: dict[str, Any]) -> str:
    """The line of a refusal that noise alone decides, and that has spent its budget."""
    # Kills: a noisy outcome that is told at no cost.
    cap = {"definition": "user", "epsilon": 1000, "delta": 0.01}
    terms = Terms.model_validate({"corpus": str(workspace.input), "caps": [cap]})
    place = Ledger.init(str(workspace.folder / "ledger"), terms).uri
    message = refusal(workspace, changes | {"ledger": place})
    assert [one.record for one in Ledger.open(place).records[1:]] == ["reservation", "refusal"]
    return message


def write_others(folder: Path, name: str) -> None:
    """One file, without a column of users, or with one that is of no use."""
    for path in folder.iterdir():
        path.unlink()
    stem, extension = name.split(".")
    if extension == "parquet":
        columns = {"list": pa.array([["x"]]), "null": pa.nulls(1)}
        users = {"author": columns[stem]} if stem in columns else {}
        pq.write_table(pa.table({"text": ["the police"], **users}), folder / name)
        return
    contents = {
        "jsonl": '{"text": "the police", "writer": "x"}',
        "csv": "text,writer\nthe police,x",
        "txt": "the police",
    }
    (folder / name).write_text(contents[extension] + "\n")


NO_USERS = {
    "none.parquet": "has no column 'author'; it has 'text'",
    "none.jsonl": "has no column 'author'; check the spelling",
    "none.csv": "has no column 'author'; check the spelling",
    "none.txt": "is plain text and has no column 'author'; give Parquet",
    "list.parquet": "author in {path} is of type list<element: string>; name a column of strings",
    "null.parquet": "author in {path} is of type null, and has no value there, nor in other files",
}


@pytest.mark.parametrize("name", NO_USERS)
def test_no_column_of_users(prepared: Workspace, name: str) -> None:
    # Kills: documents of one user each, or all of one, where nobody says whose they are.
    write_others(prepared.input, name)
    message = refusal(prepared, changes_of(prepared, "cooccurrence"))
    assert message.startswith("mechanism.user: ")
    path = str(prepared.input / name)
    assert path in message
    assert NO_USERS[name].format(path=path) in message


@pytest.mark.slow
def test_no_column_of_groups(prepared: Workspace) -> None:
    # Kills: everybody in one group, or nobody in any, for a column that is misspelt.
    block = {"budgets": BUDGETS | {"column": "teams"}}
    assert refusal(prepared, changes_of(prepared, "sgd", **block)) == (
        f"mechanism.budgets.column: {prepared.input}/corpus.parquet has no column 'teams'; it has "
        "'author', 'team', 'text'"
    )


@pytest.mark.parametrize("method", EITHER)
def test_a_corpus_in_another_language(prepared: Workspace, method: str) -> None:
    # Kills: a release of noise about words that nobody uses.
    write_corpus(prepared, [{"author": "a", "text": "zażółć gęślą jaźń 123"}] * 9)
    assert refusal(prepared, changes_of(prepared, method)) == (
        "mechanism.vocabulary: no document has a word of it; check input.text and the vocabulary's "
        "language"
    )


@pytest.mark.parametrize("method", EITHER)
def test_users_without_a_word_among_others(
    prepared: Workspace, lee_texts: list[str], method: str
) -> None:
    # Kills: a mean over no words, a pair of one word, an empty list among lists.
    odd = ["", "12 #!", "the", "zzqx", "the the"]
    records = documents(lee_texts[:USERS])
    records += [{"author": f"odd-{n}", "text": text} for n, text in enumerate(odd)]
    write_corpus(prepared, records)
    prepared.release_here(changes_of(prepared, method))
    vectors = np.stack(list(vectors_of(prepared.output).values()))
    assert np.isfinite(vectors).all()
    assert prepared.card()["counts"]["documents"] == len(records)


@pytest.mark.parametrize("author", ["one", None])
@pytest.mark.parametrize("method", EITHER)
def test_one_user_or_nobody(prepared: Workspace, method: str, author: str | None) -> None:
    # What is released must not tell how few there are, so it is noise. Kills: an error that tells
    # it, a sum that is left out because nobody is in it.
    table = pa.table({"author": pa.array([author] * 9), "text": ["the police in the city of"] * 9})
    prepared.parquet({n: table[n].cast(pa.string()) for n in table.column_names})
    spec = str(prepared.spec(changes_of(prepared, method)))
    done = prepared.run("release", spec)
    if method == "cooccurrence" and done.returncode:  # four times of five; noise alone decides it
        message = prepared.error_of(done)
        assert message.startswith("mechanism.vocabulary: no pair of its words stands out of the no")
    else:
        assert done.returncode == 0, done.stderr
        assert len(vectors_of(prepared.output)) > 1
        assert prepared.run("verify", "released/out").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", EITHER)
def test_a_large_delta(prepared: Workspace, method: str) -> None:
    # Kills: a delta that protects nobody, and nobody is told.
    done = prepared.release(changes_of(prepared, method, delta=0.02))
    said = (
        f"any one of about {USERS} users with certainty: delta, 0.02, is not below 1 / users, and "
        "a mechanism that published one user's text whole would keep to it"
    )
    assert f"WARNING not protected: {said}" in done.stderr
    assert prepared.card()["guarantee"]["not_protected"][0] == said
    assert f"- {said}\n" in (prepared.output / "README.md").read_text()
    done = prepared.release(
        changes_of(prepared, method, delta=0.016) | {"output": "released/below"}
    )
    assert "with certainty" not in done.stderr


TINY: dict[str, tuple[str, dict[str, Any], str]] = {
    "sgd": ("sgd", {"epsilon": 1e-3}, "mechanism.epsilon"),
    "cooccurrence": ("cooccurrence", {"epsilon": 1e-3}, "mechanism.epsilon"),
    "budgets": (
        "cooccurrence",
        {"budgets": {"column": "team", "epsilon": {"gold": 1e-4, "silver": 1e-3}}},
        "mechanism.budgets.epsilon",
    ),
    "vocabulary": (
        "cooccurrence",
        {"vocabulary": {"private": {"epsilon": 1e-4, "delta": 1e-5}}},
        "mechanism.vocabulary.private",
    ),
}


@pytest.mark.parametrize("name", TINY)
def test_an_epsilon_that_no_noise_keeps_to(prepared: Workspace, name: str) -> None:
    # Kills: advice that is of no use, such as fewer steps where none are taken.
    method, block, key = TINY[name]
    message = refusal(prepared, changes_of(prepared, method, **block))
    assert message.startswith(f"{key}: no noise multiplier up to 64 keeps ")
    assert "larger epsilon or delta" in message
    assert ("fewer steps" in message) == (method == "sgd")


def test_a_group_whose_budget_buys_nothing(prepared: Workspace) -> None:
    # Its users have no part, and the one who stated the budget is told.
    # Kills: a group that is left out and nobody is told.
    budgets = {"column": "team", "epsilon": {"gold": 60, "silver": 1e-6}}
    done = prepared.release(changes_of(prepared, "cooccurrence", budgets=budgets))
    groups = {g["name"]: g for g in prepared.card()["guarantee"]["parameters"]["groups"]}
    assert groups["silver"]["epsilon_exact"] == "0"
    assert "silver" in done.stderr


@pytest.mark.slow
def test_a_vocabulary_that_nobody_supports(prepared: Workspace) -> None:
    # Kills: a release of no words.
    block = {"vocabulary": {"private": {"epsilon": 0.5, "delta": 1e-5}}}
    message = noisy_refusal(prepared, changes_of(prepared, "cooccurrence", **block))
    assert message.startswith("mechanism.vocabulary.private: no term's noisy frequency reaches ")
    assert "raise epsilon or delta, or give a public list" in message


def test_more_words_than_the_counts_support(prepared: Workspace, lee_texts: list[str]) -> None:
    # Kills: vectors of zeros, which are as near to each other as can be; words that are left out
    # and nobody is told.
    done = prepared.release(changes_of(prepared, "cooccurrence", epsilon=20))
    vectors = vectors_of(prepared.output)
    assert 1 < len(vectors) < WORDS
    assert f" {len(vectors)} of {WORDS} words stand out of the noise; " in done.stderr
    assert all(vector.any() for vector in vectors.values())
    assert prepared.card()["mechanism"]["vocabulary_size"] == len(vectors)


def test_no_word_that_the_counts_support(prepared: Workspace) -> None:
    # Kills: a release of no words.
    (prepared.folder / "words.txt").write_text("zzqx\n")
    write_corpus(prepared, [{"author": "a", "text": "zzqx"}] * 9)
    message = noisy_refusal(prepared, changes_of(prepared, "cooccurrence"))
    assert message.startswith("mechanism.vocabulary: ")
    assert "give fewer words, more users or a larger epsilon" in message


def test_one_word_makes_no_index(prepared: Workspace) -> None:
    # Kills: an index whose distances are all zero.
    (prepared.folder / "words.txt").write_text("the\n")
    message = noisy_refusal(prepared, changes_of(prepared, "sgd"))
    assert message.startswith("mechanism: what was made of the corpus cannot be made into codes: ")
    assert message.endswith("; give a larger epsilon, more users or another vocabulary")


def test_more_words_were_selected_than_a_model_may_have(
    prepared: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A public list is known to be too long before anything is read; that this one is, is not.
    monkeypatch.setattr("quietcorpus.pipelines.kinds.word_embeddings.methods._LARGEST_MODEL", 1)
    message = noisy_refusal(prepared, changes_of(prepared, "sgd", epsilon=60, vocabulary=PRIVATE))
    assert message.startswith("mechanism.vocabulary: ")
    assert message.endswith(" dimensions are more than 1 numbers; give fewer")


@pytest.mark.slow
@pytest.mark.parametrize("training", [{"learning_rate": 1000}, {"clip": 1e-6}])
def test_numbers_at_the_edge_of_what_a_spec_may_say(
    prepared: Workspace, training: dict[str, float]
) -> None:
    # Kills: NaN in what is published, or an exception that tells of a user's text.
    prepared.release_here(changes_of(prepared, "sgd", training={"steps": 20, **training}))
    vectors = np.stack(list(vectors_of(prepared.output).values()))
    assert np.isfinite(vectors).all()
    assert prepared.run("verify", "released/out").returncode == 0
